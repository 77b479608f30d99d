"""loadframe measure STUDY: the curve only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, emit
from loadframe.cli.progress import shown


def measure(
    study: Annotated[Path, typer.Argument(help="A study file (TOML).")],
    overrides: Sets = None,
    runs: Runs = RUNS,
    as_json: Json = False,
) -> None:
    """Measure throughput and latency over the levels; change nothing."""
    with command(as_json):
        declared = loadframe.load_study(study, overrides or [])
        with shown(quiet=as_json) as progress:
            measured = loadframe.measure(declared, runs, progress=progress)
        if as_json:
            found = loadframe.curve_json(measured.curve, conduct=measured.conduct)
            warnings = [*found["warnings"], *measured.warnings]
            silent_cuts = list(measured.silent_cuts)
            emit({**found, "warnings": warnings, "run": str(measured.run), "silent_cuts": silent_cuts})
        else:
            print(loadframe.render_curve(measured.curve, unit=measured.axis_unit, conduct=measured.conduct))
            for cut in measured.silent_cuts:
                print(f"Cut silently: {cut}.")
            for warning in measured.warnings:
                print(warning)
            print(f"Run folder: {measured.run}")
