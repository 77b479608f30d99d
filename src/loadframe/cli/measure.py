"""loadframe measure STUDY: the curve only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, measured
from loadframe.cli.fleet import OverFleet, bench_of
from loadframe.cli.progress import Live
from loadframe.cli.terminal import answer, emit
from loadframe.reporting import document as doc
from loadframe.reporting.fleet_report import drivers_json, drivers_sentence, fleet_limits, fleet_limits_json


def measure(
    study: Annotated[Path, typer.Argument(help="A study file (TOML).")],
    overrides: Sets = None,
    runs: Runs = RUNS,
    live: Live = False,
    over: OverFleet = None,
    as_json: Json = False,
) -> None:
    """Measure throughput and latency at each load level. Changes nothing."""
    with command(as_json, measures=True):
        declared = loadframe.load_study(study, overrides or [])
        with bench_of(over, declared) as bench:
            found = measured(
                as_json, lambda progress: loadframe.measure(declared, runs, progress=progress, bench=bench), live=live
            )
        if as_json:
            shape = loadframe.curve_json(found.curve, quality=found.quality, answers=found.answers)
            warnings, clamped = [*shape["warnings"], *found.warnings], list(found.clamped)
            if found.drivers is not None:
                shape["drivers"] = drivers_json(found.drivers)
            if found.fleet_limits:
                shape["fleet_limits"] = fleet_limits_json(found.fleet_limits)
            emit({**shape, "warnings": warnings, "run": str(found.run), "silent_cuts": clamped}, run=found.run)
        else:
            more = (
                doc.listed("Drivers", () if found.drivers is None else (drivers_sentence(found.drivers),)),
                fleet_limits(found.fleet_limits),
                doc.listed("Silently clamped", found.clamped),
                doc.listed("Recording", found.warnings),
            )
            unit, work, quality, answers = found.axis_unit, found.work_unit, found.quality, found.answers
            text = loadframe.render_curve(
                found.curve, unit=unit, work=work, quality=quality, answers=answers, more=more
            )
            answer(text, run=found.run)
            answer(f"Run folder: {found.run}")
