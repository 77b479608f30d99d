"""What the verbs share: options, output, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import loadframe
from loadframe.errors import Interrupted, UserError
from loadframe.model import Investigation, Ladder, Tuning

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout; everything else goes to stderr.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the study, for instance measure.budget=2m."),
]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Where run folders are made.")]
RUNS = Path("runs")

DONE, MUST_ACT, INTERRUPTED = 0, 1, 130


def say(words: str) -> None:
    """A line for people, on stderr."""
    print(words, file=sys.stderr, flush=True)


def emit(document: dict[str, Any]) -> None:
    """The one JSON object of a --json command."""
    print(json.dumps(document, allow_nan=False, ensure_ascii=False))


@contextmanager
def command(json_wanted: bool, *, reverts: bool = True) -> Iterator[dict[str, Any]]:
    """Frame of every verb: leftovers of killed commands are ended first, and what they changed is put back; UserError
    becomes a message and exit 1, Ctrl-C and SIGTERM (see entry.py) become exit 130 after everything was reverted. What
    could not be put back ends it with exit 1, whatever the answer, also where it was interrupted: that says what it is.

    reverts: False for a verb that shows what is changed, or puts it back itself. Gives a dictionary for what was
    reached before an error: with --json it stands beside it."""
    reached: dict[str, Any] = {}
    try:
        for swept in loadframe.sweep_leftovers():
            say(f"A command was killed earlier; cleaned up after it: {swept}")
        for outcome in loadframe.revert_changes() if reverts else ():
            say(f"A command was killed earlier; what it had changed: {outcome}")
        with _putting_back():
            yield reached
    except (Interrupted, KeyboardInterrupt) as error:
        code = MUST_ACT if _still_changed() else INTERRUPTED
        message = str(error) or "Stopped."
        _fail({"kind": "interrupted", "message": message, "remedy": "", **reached}, json_wanted, code)
    except UserError as error:
        kind = type(error).__name__
        _fail({"kind": kind, "message": str(error), "remedy": error.remedy, **reached}, json_wanted, MUST_ACT)


@contextmanager
def _putting_back() -> Iterator[None]:
    """Where what is done within has given its answer, with exit 0 or another code: exit 1 where something that it has
    changed still stands."""
    try:
        yield
    except typer.Exit:
        _check_put_back()
        raise
    _check_put_back()


def _check_put_back() -> None:
    if _still_changed():
        raise typer.Exit(MUST_ACT)


def _still_changed() -> bool:
    """Whether something that this command has changed still stands; says what."""
    left = [change.setting for record in loadframe.own_changes() for change in record.changes]
    if left:
        say(f"Still changed: {', '.join(left)}. `loadframe changes revert` tries again to put it back.")
    return bool(left)


def _fail(error: dict[str, Any], json_wanted: bool, code: int) -> NoReturn:
    say(error["message"])
    if json_wanted:
        emit({"schema": "loadframe.error/1", **error})
    raise typer.Exit(code)


def is_folder(name: str) -> bool:
    """Whether an argument is a folder, a run; anything else is read as a file, and reading it says what is wrong."""
    try:
        return Path(name).is_dir()
    except OSError:  # too long a name, a folder that may not be entered
        return False


def show_investigation(investigation: Investigation, json_wanted: bool) -> None:
    """The end of an investigation, for people or programs."""
    if json_wanted:
        emit(loadframe.investigation_json(investigation))
    else:
        print(loadframe.render_text(investigation))


def show_ladder(found: Ladder, json_wanted: bool) -> None:
    """A ladder, for people or programs."""
    if json_wanted:
        emit(loadframe.ladder_json(found))
    else:
        print(loadframe.render_ladder(found))


def show_tuning(found: Tuning, json_wanted: bool) -> None:
    """A search for settings, for people or programs."""
    if json_wanted:
        emit(loadframe.tuning_json(found))
    else:
        print(loadframe.render_tuning(found))
