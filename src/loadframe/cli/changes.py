"""loadframe changes list|revert: what was changed, and what still is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import loadframe
from loadframe.changes.journal import Entry, read, runs_with_changes, standing
from loadframe.cli.common import RUNS, Json, Runs, command, emit
from loadframe.model import SettingValue

app = typer.Typer(no_args_is_help=True, help="What was changed by which run, and what still is.")


@app.command("list")
def list_changes(
    run: Annotated[Path | None, typer.Argument(help="A run folder; all under --runs without it.")] = None,
    runs: Runs = RUNS,
    as_json: Json = False,
) -> None:
    """Every change, oldest first, with what was read back."""
    with command(as_json):
        chosen = [loadframe.open_run(run).path] if run is not None else runs_with_changes(runs)
        journals = {path: read(path) for path in chosen}
        if as_json:
            rows = [{"run": str(path), **asdict(entry)} for path, entries in journals.items() for entry in entries]
            emit({"schema": "loadframe.changes/1", "changes": rows})
            return
        if not any(journals.values()):
            print("No run has changed anything.")
        for path, entries in journals.items():
            if entries:
                print(path)
            for entry in entries:
                print("  " + _line(entry))


@app.command()
def revert(runs: Runs = RUNS, as_json: Json = False) -> None:
    """Take back whatever still stands. Settings of private targets end with them: there is nothing to take back."""
    with command(as_json):
        open_changes = {path: left for path in runs_with_changes(runs) if (left := standing(read(path)))}
        rows = [{"run": str(path), **asdict(entry)} for path, left in open_changes.items() for entry in left]
        if as_json:
            emit({"schema": "loadframe.reverted/1", "reverted": [], "ended_with_their_target": rows})
        elif not rows:
            print("Nothing is changed: every change was taken back or ended with its target.")
        else:
            for path, left in open_changes.items():
                words = ", ".join(sorted({entry.setting for entry in left}))
                print(f"{path}: the run was killed; its private target is gone, and with it {words}. Nothing to do.")


def _line(entry: Entry) -> str:
    read_back = "" if entry.read_back is None else f", read back {entry.read_back}"
    change = f"{entry.setting}: {_value(entry.before)} -> {_value(entry.after)}"
    return f"{entry.at}  {entry.phase:8}  {entry.target} {entry.layer}  {change}{read_back}"


def _value(value: SettingValue | None) -> str:
    return "its default" if value in (None, "") else str(value)
