"""loadframe investigate STUDY: the whole loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Details, Json, Runs, Sets, command, measured, tell
from loadframe.cli.fleet import OverFleet, bench_of
from loadframe.cli.progress import Live


def investigate(
    study: Annotated[Path, typer.Argument(help="A study file (TOML).")],
    overrides: Sets = None,
    runs: Runs = RUNS,
    live: Live = False,
    over: OverFleet = None,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Load the target until it bends, name the cause, change that one thing, prove the gain, and name the next
    limit."""
    with command(as_json, measures=True):
        declared = loadframe.load_study(study, overrides or [])
        with bench_of(over, declared) as bench:
            found = measured(
                as_json,
                lambda progress: loadframe.investigate(declared, runs, progress=progress, bench=bench),
                live=live,
            )
        tell(found, as_json, details=details)
