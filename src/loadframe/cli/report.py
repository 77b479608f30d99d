"""loadframe report RUN: write the report of a run again, also of one that was killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import Json, command, show_investigation


def report(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    as_json: Json = False,
) -> None:
    """Write report.html of a run anew and print it as text."""
    with command(as_json):
        found = loadframe.conclude(loadframe.open_run(run))
        here = replace(found, run=str(run), report=str(run / "report.html"))
        loadframe.write_page(here, run / "report.html")
        show_investigation(here, as_json)
