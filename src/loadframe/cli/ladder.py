"""loadframe ladder STUDY: which change gave which share of the gain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, measured, tell
from loadframe.cli.fleet import SideBySideOver, executor_of


def ladder(
    study: Annotated[Path, typer.Argument(help="A study file (TOML) with one [[change]] per rung.")],
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Keep every change, even those that make it worse or do nothing.")
    ] = False,
    overrides: Sets = None,
    runs: Runs = RUNS,
    over: SideBySideOver = None,
    as_json: Json = False,
) -> None:
    """Apply the study's changes one on top of the other, and measure what each one adds."""
    with command(as_json, measures=True):
        declared = loadframe.load_study(study, overrides or [])
        with executor_of(over, declared) as executor:
            found = measured(
                as_json,
                lambda progress: loadframe.ladder(
                    declared, runs, keep_all=keep_all, progress=progress, executor=executor
                ),
            )
        tell(found, as_json)
