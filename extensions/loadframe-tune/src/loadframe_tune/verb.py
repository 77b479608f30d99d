"""loadframe tune: search for better settings."""

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, tell
from loadframe.cli.studies import StudyFile, result_of


def tune(
    study: StudyFile,
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
        from loadframe_tune import loop

        declared = loadframe.load_study(study, overrides or [])
        outcome = result_of(loop.tune, declared, as_json, over, runs=runs, trials=trials, resume=resume)
        tell(outcome, as_json)
