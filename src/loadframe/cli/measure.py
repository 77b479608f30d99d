"""loadframe measure STUDY: the curve only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, measured
from loadframe.cli.terminal import answer, emit


def measure(
    study: Annotated[Path, typer.Argument(help="A study file (TOML).")],
    overrides: Sets = None,
    runs: Runs = RUNS,
    as_json: Json = False,
) -> None:
    """Measure throughput and latency at each load level. Changes nothing."""
    with command(as_json, measures=True):
        declared = loadframe.load_study(study, overrides or [])
        found = measured(as_json, lambda progress: loadframe.measure(declared, runs, progress=progress))
        if as_json:
            shape = loadframe.curve_json(found.curve, conduct=found.conduct)
            warnings, silent_cuts = [*shape["warnings"], *found.warnings], list(found.silent_cuts)
            emit({**shape, "warnings": warnings, "run": str(found.run), "silent_cuts": silent_cuts}, run=found.run)
        else:
            answer(loadframe.render_curve(found.curve, unit=found.axis_unit, conduct=found.conduct), run=found.run)
            for cut in found.silent_cuts:
                answer(f"Silently clamped: {cut}.")
            for warning in found.warnings:
                answer(warning)
            answer(f"Run folder: {found.run}")
