"""loadframe measure STUDY: the curve only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command
from loadframe.cli.progress import shown
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
        with shown(quiet=as_json) as progress:
            measured = loadframe.measure(declared, runs, progress=progress)
        if as_json:
            found = loadframe.curve_json(measured.curve, conduct=measured.conduct)
            warnings = [*found["warnings"], *measured.warnings]
            silent_cuts = list(measured.silent_cuts)
            emit(
                {**found, "warnings": warnings, "run": str(measured.run), "silent_cuts": silent_cuts}, run=measured.run
            )
        else:
            answer(
                loadframe.render_curve(measured.curve, unit=measured.axis_unit, conduct=measured.conduct),
                run=measured.run,
            )
            for cut in measured.silent_cuts:
                answer(f"Silently clamped: {cut}.")
            for warning in measured.warnings:
                answer(warning)
            answer(f"Run folder: {measured.run}")
