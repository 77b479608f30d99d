"""loadframe report RUN: write the report of a run again, also of one that was killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Json, command, opened, tell


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    speedscope: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the sampled stacks, for https://www.speedscope.app.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run's report.html again and print it as text."""
    with command(as_json):
        folder = opened(run)
        if speedscope is not None:
            loadframe.write_speedscope(folder, speedscope)
        other = loadframe.measured_ladder(folder) or loadframe.measured_tuning(folder)
        if other is not None:
            tell(other, as_json)
            return
        found = loadframe.conclude(folder)
        here = replace(found, run=str(run), report=str(run / "report.html"))
        loadframe.write_report(folder, here)
        tell(here, as_json)
