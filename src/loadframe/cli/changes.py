"""loadframe changes list|revert|forget: what was changed, and what still is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import loadframe
from loadframe.cli.common import MUST_ACT, PLAIN, RUNS, Json, Runs, command
from loadframe.cli.terminal import answer, emit, say

if TYPE_CHECKING:
    from loadframe.changes.lists import Record, Unreadable
    from loadframe.model import ChangeRecord, SettingValue

app = typer.Typer(no_args_is_help=True, **PLAIN)


@app.command("list")
def list_changes(
    run: Annotated[Path | None, typer.Argument(help="A run folder; default: all under --runs.")] = None,
    runs: Runs = RUNS,
    as_json: Json = False,
) -> None:
    """List what is changed now outside private targets, then every change of the runs, oldest first."""
    with command(as_json, reports=False):
        from loadframe.changes.journal import read, runs_with_changes
        from loadframe.changes.lists import shape

        chosen = [loadframe.open_run(run).path] if run is not None else runs_with_changes(runs)
        journals = {path: read(path) for path in chosen}
        now, unreadable = loadframe.changes_not_reverted(), loadframe.unreadable_changes()
        if as_json:
            standing = [
                {"id": record.id, "run": record.run, "running": record.alive(), **shape(change)}
                for record in now
                for change in record.changes
            ]
            odd = _unreadable(unreadable)
            emit({"schema": "loadframe.changes/1", "standing": standing, "unreadable": odd, "changes": _rows(journals)})
            return
        for record in now:
            answer(f"Changed now, by {_author(record)} (id {record.id}):")
            for change in record.changes:
                answer(f"  {change.setting} of {change.words}: {_value(change.before)} -> {_value(change.after)}")
            if record.because:
                answer(f"  Could not be reverted: {record.because}")
        for damaged in unreadable:
            answer(str(damaged))
        if not (now or unreadable or any(journals.values())):
            answer("No run has changed anything.")
        for path, entries in journals.items():
            if entries:
                answer(str(path))
            for entry in entries:
                answer("  " + _line(entry))


@app.command()
def revert(runs: Runs = RUNS, as_json: Json = False) -> None:
    """Revert what a killed command changed on the machine or on a server it was attached to; exit 1 if something
    is not reverted. Settings of private targets end with them, so nothing is left to revert."""
    with command(as_json, reports=False):
        from loadframe.changes.journal import not_reverted, read, runs_with_changes
        from loadframe.changes.lists import shape

        outcomes, unreadable = loadframe.revert_changes(before=say), loadframe.unreadable_changes()
        standing = {path: not_reverted(read(path)) for path in runs_with_changes(runs)}
        ended = {
            path: left for path, entries in standing.items() if (left := [entry for entry in entries if entry.private])
        }
        running = [record for record in loadframe.changes_not_reverted() if record.alive()]
        if as_json:
            reverted = [
                {**shape(outcome), "outcome": outcome.status, "value": outcome.read_back, "because": outcome.because}
                for outcome in outcomes
            ]
            document = {"reverted": reverted, "unreadable": _unreadable(unreadable)}
            emit({"schema": "loadframe.reverted/1", **document, "ended_with_their_target": _rows(ended)})
        else:
            for line in (*outcomes, *unreadable):
                answer(str(line))
            for path, left in ended.items():
                words = ", ".join(sorted({entry.setting for entry in left}))
                answer(f"{path}: the run was killed; its private target is gone, including {words}. Nothing to do.")
            for record in running:
                answer(f"Left alone: changes made by {_author(record)}. It reverts them when it ends.")
            if not (outcomes or unreadable or ended or running):
                answer("Nothing is changed: every change was reverted or ended with its target.")
        if unreadable or any(outcome.status == "failed" for outcome in outcomes):
            raise typer.Exit(MUST_ACT)


@app.command()
def forget(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Of the killed command, as `changes list` shows it.")],
    as_json: Json = False,
) -> None:
    """Give up what a killed command changed, for a server that is gone for good: nothing is contacted and nothing is
    reverted, now or later. Names each change that is given up, with the old value."""
    with command(as_json, reports=False):
        from loadframe.changes.lists import shape

        outcomes = loadframe.forget_changes(identifier)
        if as_json:
            rows = [{**shape(outcome), "because": outcome.because} for outcome in outcomes]
            emit({"schema": "loadframe.forgotten/1", "forgotten": rows})
            return
        for outcome in outcomes:
            answer(str(outcome))


def _author(record: "Record") -> str:
    state = f"which is running (pid {record.owner.pid})" if record.alive() else "which was killed"
    return f"{record.what}, {state}, {record.run}"


def _unreadable(files: "Sequence[Unreadable]") -> list[dict[str, str]]:
    return [{"file": str(damaged.file), "because": damaged.because} for damaged in files]


def _rows(journals: "Mapping[Path, Sequence[ChangeRecord]]") -> list[dict[str, Any]]:
    names = (
        "at", "target", "treatment", "layer", "setting", "before", "after", "read_back", "private", "finding", "remedy",
        "why",
    )  # fmt: skip
    return [
        {"run": str(path), "number": entry.id, "phase": entry.status, **{name: getattr(entry, name) for name in names}}
        for path, entries in journals.items()
        for entry in entries
    ]


def _line(entry: "ChangeRecord") -> str:
    read_back = "" if entry.read_back is None else f", read back {entry.read_back}"
    change = f"{entry.setting}: {_value(entry.before)} -> {_value(entry.after)}"
    why = f"; {_reason(entry)}" if entry.status == "intent" else ""
    return f"{entry.at}  {entry.status:8}  {entry.target} {entry.layer}  {change}{read_back}{why}"


def _reason(entry: "ChangeRecord") -> str:
    cause = f", against {entry.finding}" if entry.finding else ""
    against = f"{entry.remedy}{cause}" if entry.remedy else ""
    return ": ".join(part for part in (against, entry.why) if part) or "for no noted reason"


def _value(value: "SettingValue | None") -> str:
    return "its default" if value in (None, "") else str(value)
