"""loadframe report RUN: write the report of a run again, also of one that was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Details, Json, command, opened, tell


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    speedscope: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the sampled stacks, for https://www.speedscope.app.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every figure, as SVG and PNG, into this folder.")
    ] = None,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Write a run's report.html again and print it as text."""
    with command(as_json):
        folder = opened(run)
        if speedscope is not None:
            loadframe.write_speedscope(folder, speedscope)
        found = loadframe.write_answer(folder, loadframe.conclude(folder))
        if figures is not None:
            loadframe.write_figures(found, figures)
        tell(found, as_json, details=details)
