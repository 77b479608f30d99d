"""loadframe tune STUDY: better settings, searched and proved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, measured, tell
from loadframe.cli.fleet import executor_of


def tune(
    study: Annotated[Path, typer.Argument(help="A study file (TOML).")],
    trials: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The maximum number of trials, if the budget allows them.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Continue from the trials of an earlier run of the same study.")
    ] = None,
    overrides: Sets = None,
    runs: Runs = RUNS,
    over: Annotated[
        Path | None,
        typer.Option("--fleet", metavar="FILE", help="Run the trials side by side on the hosts of this fleet."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search for better settings for the study's target, and prove them against the starting ones."""
    with command(as_json, measures=True):
        declared = loadframe.load_study(study, overrides or [])
        with executor_of(over, declared) as executor:
            found = measured(
                as_json,
                lambda progress: loadframe.tune(
                    declared, runs, trials=trials, resume=resume, progress=progress, executor=executor
                ),
            )
        tell(found, as_json)
