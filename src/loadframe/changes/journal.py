"""The journal: what was changed, from what, to what, and what the system says it is now.

A change is three lines: the intent is fsynced before anything is touched, then what was read back, then - where the
change did not stay - that it was reverted. Settings of a private target end with its process: a run that was killed
between its intent and its end needs no action of the user, and `loadframe changes list` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from loadframe.model import Change, SettingValue, TargetState
from loadframe.runs.formats import decode
from loadframe.targets.base import Target

if TYPE_CHECKING:  # it imports tables, which every command would wait for
    from loadframe.runs.folder import RunFolder

Phase = Literal["intent", "applied", "failed", "reverted", "ended"]
FILE = "changes.jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal. read_back: what the target really uses afterwards (None while that is not known).
    private: the setting lives in a private target and ends with it."""

    number: int
    phase: Phase
    at: str
    target: str
    treatment: str
    layer: str
    setting: str
    before: SettingValue | None
    after: SettingValue | None
    read_back: SettingValue | None = None
    private: bool = True


class Journal:
    """Every change of a run goes through here."""

    def __init__(self, run: RunFolder, target: Target) -> None:
        self._run = run
        self._target = target
        self._number = 0

    def go(self, treatment: str, now: TargetState, then: TargetState) -> None:
        """Bring the target from one state to another: intents first, then the change, then what was read back."""
        changes = differences(now, then)
        entries = [self._intent(treatment, change) for change in changes]
        try:
            self._target.apply(then)
            effective = self._target.effective()
        except BaseException:  # an interrupt too: the private target is stopped then
            for entry in entries:
                self._write(entry, "failed")
            raise
        for entry in entries:
            self._write(entry, "applied", effective.get(entry.setting))

    def close(self, state: TargetState, start: TargetState) -> None:
        """The private target has ended: whatever was changed ended with it."""
        for change in differences(start, state):
            self._number += 1
            self._append(self._entry(self._number, "ended", "", change))

    def _intent(self, treatment: str, change: Change) -> Entry:
        self._number += 1
        entry = self._entry(self._number, "intent", treatment, change)
        self._append(entry)
        return entry

    def _entry(self, number: int, phase: Phase, treatment: str, change: Change) -> Entry:
        return Entry(
            number=number,
            phase=phase,
            at=_now(),
            target=self._target.kind,
            treatment=treatment,
            layer=change.layer,
            setting=change.setting,
            before=change.before,
            after=change.after,
        )

    def _write(self, entry: Entry, phase: Phase, read_back: SettingValue | None = None) -> None:
        self._append(
            Entry(
                number=entry.number,
                phase=phase,
                at=_now(),
                target=entry.target,
                treatment=entry.treatment,
                layer=entry.layer,
                setting=entry.setting,
                before=entry.before,
                after=entry.after,
                read_back=read_back,
            )
        )

    def _append(self, entry: Entry) -> None:
        self._run.append_line(FILE, "change", entry)


def differences(now: TargetState, then: TargetState) -> list[Change]:
    """What has to change between two states, limits of the process first: the server needs them when it starts.

    `after` is "" where a setting goes back to the target's own default.
    """
    changes = [
        Change("process", name, now.limits.get(name), then.limits.get(name, ""))
        for name in sorted({*now.limits, *then.limits})
        if now.limits.get(name) != then.limits.get(name)
    ]
    changes += [
        Change("process", name, now.cpus.get(name), then.cpus.get(name, ""))
        for name in sorted({*now.cpus, *then.cpus})
        if now.cpus.get(name) != then.cpus.get(name)
    ]
    changes += [
        Change("server", name, now.settings.get(name), then.settings.get(name, ""))
        for name in sorted({*now.settings, *then.settings})
        if now.settings.get(name) != then.settings.get(name)
    ]
    return changes


def read(path: Path) -> list[Entry]:
    """The journal of a run folder, oldest line first; a torn last line is left out."""
    from loadframe.runs.folder import RunFolder

    run = RunFolder(path)
    return [decode("change", line, Entry, where=where) for line, where in run.lines(FILE)]


def standing(entries: Sequence[Entry]) -> list[Entry]:
    """The changes that this journal does not show as ended, failed or reverted, nor as changed back to what was there
    first: the last word on each setting."""
    first: dict[tuple[str, str, str], Entry] = {}
    last: dict[tuple[str, str, str], Entry] = {}
    for entry in entries:
        key = (entry.target, entry.layer, entry.setting)
        first.setdefault(key, entry)
        last[key] = entry
    return [
        entry
        for key, entry in last.items()
        if entry.phase == "intent" or (entry.phase == "applied" and not _same(entry.after, first[key].before))
    ]


def _same(one: SettingValue | None, other: SettingValue | None) -> bool:
    """Whether two values of a setting are the same; both words for its default are."""
    return one == other or (one in (None, "") and other in (None, ""))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def runs_with_changes(root: Path) -> list[Path]:
    """The run folders under root that have a journal, oldest first."""
    return sorted(path.parent for path in root.glob(f"*/{FILE}"))
