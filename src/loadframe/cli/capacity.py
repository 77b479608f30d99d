"""loadframe capacity STUDY: the highest load that meets the objective."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.cli.common import RUNS, Json, Runs, Sets, command, measured, tell
from loadframe.cli.fleet import SideBySideOver, executor_of
from loadframe.errors import UsageError
from loadframe.model import LoadInterval
from loadframe.study.load_tables import HIGHEST
from loadframe.study.quantities import duration_s

LONE_GUESS = 1.5
"""A guess without an interval is taken to be right up to this factor."""


def capacity(
    study: Annotated[Path, typer.Argument(help="A study file (TOML) with an objective.")],
    hold: Annotated[
        str | None,
        typer.Option(
            "--hold", metavar="TIME", help="Total time for which the level must meet the objective, for example 60s."
        ),
    ] = None,
    guess: Annotated[
        str | None,
        typer.Option(
            "--guess", metavar="LOW..HIGH", help="The expected capacity: a load, or a forecast's 90 % interval."
        ),
    ] = None,
    overrides: Sets = None,
    runs: Runs = RUNS,
    over: SideBySideOver = None,
    as_json: Json = False,
) -> None:
    """Find the highest load that meets the objective, searching from below. Changes nothing."""
    with command(as_json, measures=True):
        expected = None if guess is None else _interval(guess)
        hold_s = 0.0 if hold is None else _seconds(hold)
        declared = loadframe.load_study(study, overrides or [])
        with executor_of(over, declared) as executor:
            found = measured(
                as_json,
                lambda progress: loadframe.capacity(
                    declared, runs, hold_s=hold_s, guess=expected, progress=progress, executor=executor
                ),
            )
        tell(found, as_json)


def _seconds(text: str) -> float:
    try:
        return duration_s(text)
    except ValueError as error:
        raise UsageError(f"--hold: {error}", remedy="For example --hold 60s.") from error


def _interval(text: str) -> LoadInterval:
    """From "500..700", or from "600" alone."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:\.\.\s*(\d+(?:\.\d+)?)\s*)?", text)
    low = float(match[1]) if match else 0.0
    high = float(match[2]) if match and match[2] else low
    if not 0 < low <= high <= HIGHEST:
        raise UsageError(
            f"--guess {text!r} is neither a load nor an interval", remedy="For example --guess 500..700 or --guess 600."
        )
    if low == high:
        return LoadInterval(low, low / LONE_GUESS, low * LONE_GUESS)
    return LoadInterval((low * high) ** 0.5, low, high)
