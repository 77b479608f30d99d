"""loadframe report RUN: write the report of a run again, also of one that was killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Json, command, show_investigation, show_ladder, show_tuning


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    speedscope: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the sampled stacks, for https://www.speedscope.app.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run's report.html again and print it as text."""
    with command(as_json):
        folder = loadframe.open_run(run)
        if speedscope is not None:
            loadframe.write_speedscope(folder, speedscope)
        if (ladder := loadframe.measured_ladder(folder)) is not None:
            show_ladder(ladder, as_json)
            return
        if (tuning := loadframe.measured_tuning(folder)) is not None:
            show_tuning(tuning, as_json)
            return
        found = loadframe.conclude(folder)
        here = replace(found, run=str(run), report=str(run / "report.html"))
        loadframe.write_report(folder, here)
        show_investigation(here, as_json)
