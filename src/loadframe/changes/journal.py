"""The journal of a run. A change has up to three lines: the intent, fsynced before anything is touched, what was read
back, and that it was reverted. Settings of a private target end with its process. What outlives the command is reverted
from the state directory (durable.py), and noted here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from loadframe.errors import RunError
from loadframe.model import Change, ChangeRecord, ChangeStatus, Layer, Remedy, SettingValue, TargetState

if TYPE_CHECKING:  # imports tables, for which every command would have to wait
    from loadframe.runs.folder import RunFolder

FILE = "changes.jsonl"
LAYERS: Sequence[tuple[str, Layer]] = (
    ("host", "host"), ("limits", "process"), ("cpus", "process"), ("settings", "server"), ("options", "application"),
)  # fmt: skip
"""The parts of a state, in the order in which they are changed."""


@dataclass(frozen=True, slots=True)
class Reason:
    """finding: the ids of the causes, remedy: the title of what is tried against them; both "" where the study itself
    asks for the change."""

    finding: str = ""
    remedy: str = ""
    why: str = ""


class Reasons:
    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._reasons: dict[tuple[str, str, SettingValue], Reason] = {}

    def note(self, treatment: str, title: str, state: TargetState, remedy: Remedy | None = None) -> None:
        """title: for users. remedy: the one that led to its state."""
        self._titles[treatment] = title
        if remedy is None:
            return
        whys = {(change.layer, change.setting): change.why for change in remedy.changes if change.needed}
        for change in differences(TargetState(), state):
            if (key := (change.layer, change.setting)) in whys:
                reason = Reason(", ".join(remedy.addresses), remedy.title, whys[key])
                self._reasons[(*key, change.after)] = reason

    def of(self, treatment: str, change: Change) -> Reason:
        key = (change.layer, change.setting, change.after)
        return self._reasons.get(key, Reason(why=self._titles.get(treatment, "")))


class Changed(Protocol):
    kind: str

    def apply(self, state: TargetState) -> None: ...

    def effective(self) -> dict[str, SettingValue]: ...


class Journal:
    def __init__(
        self,
        run: RunFolder,
        target: Changed,
        *,
        private: bool = True,
        reasons: Reasons | None = None,
        words: Callable[[], str] = str,
    ) -> None:
        """private: changes end with the target; else the first values are read, to which "before" and reverting refer.
        words: what is changed, for users; "" where the target's kind says it."""
        self._run = run
        self._target = target
        self._private = private
        self._first: dict[str, SettingValue] = {}
        self._number = 0
        self._reasons = Reasons() if reasons is None else reasons
        self._words = words
        self._made: dict[tuple[str, str], ChangeRecord] = {}

    def go(self, treatment: str, now: TargetState, then: TargetState) -> None:
        """Record intents, make the change, record what was read back."""
        changes = self._from_now(differences(now, then))
        entries = [self._entry("intent", treatment, change) for change in changes]
        try:
            self._target.apply(then)
            effective = self._target.effective()
        except BaseException:  # an interrupt, too: the private target is stopped then
            for entry in entries:
                self._append(replace(entry, status="failed", at=_now()))
            raise
        for entry in entries:
            self._append(replace(entry, status="applied", at=_now(), read_back=effective.get(entry.setting)))

    def close(self, state: TargetState, start: TargetState) -> None:
        """For a private target, which has ended."""
        for change in differences(start, state) if self._private else ():
            self._entry("ended", "", change)

    def reverted(self, outcomes: Iterable[ChangeRecord]) -> None:
        for outcome in outcomes:
            self._number += 1
            made = self._made.get((_layer(outcome), outcome.setting))
            self._append(_reverted(self._number, self._target.kind, outcome, made))

    def _from_now(self, changes: list[Change]) -> list[Change]:
        """Of a target that is not private: with the current value as `before`, and the first value when going back."""
        if self._private or not changes:
            return changes
        now = self._target.effective()
        self._first = {change.setting: now[change.setting] for change in changes if change.setting in now} | self._first
        return [
            replace(
                change,
                before=now.get(change.setting, change.before),
                after=self._first.get(change.setting, "") if change.after == "" else change.after,
            )
            for change in changes
        ]

    def _entry(self, status: ChangeStatus, treatment: str, change: Change) -> ChangeRecord:
        reason = self._reasons.of(treatment, change)
        self._number += 1
        entry = ChangeRecord(
            change.setting,
            change.before,
            change.after,
            status=status,
            id=self._number,
            words=self._words(),
            target=self._target.kind,
            layer=change.layer,
            treatment=treatment,
            finding=reason.finding,
            remedy=reason.remedy,
            why=reason.why,
            private=self._private,
            at=_now(),
        )
        self._append(entry)
        self._made[entry.layer, entry.setting] = entry
        return entry

    def _append(self, entry: ChangeRecord) -> None:
        self._run.append_line(FILE, "change", entry)


def tell(path: Path, outcomes: Iterable[ChangeRecord]) -> None:
    """Add the outcomes to the journal of a killed run; skipped where the folder is gone or not writable. RunError."""
    from loadframe.runs.folder import RunFolder

    if not os.access(path / FILE, os.W_OK):
        return
    run = RunFolder(path)
    run.cut_torn_line(FILE)
    entries = read(path)
    last = {(entry.layer, entry.setting): entry for entry in entries if entry.status == "intent"}
    for number, outcome in enumerate(outcomes, start=1 + max((entry.id for entry in entries), default=0)):
        target = outcome.place.get("server", outcome.place["kind"])
        made = last.get((_layer(outcome), outcome.setting))
        run.append_line(FILE, "change", _reverted(number, target, outcome, made))


def _layer(outcome: ChangeRecord) -> Layer:
    layers: Mapping[str, Layer] = {"host": "host", "process": "process"}
    return layers.get(outcome.place["kind"], "server")


def _reverted(number: int, target: str, outcome: ChangeRecord, made: ChangeRecord | None) -> ChangeRecord:
    known = outcome if made is None else made
    return replace(
        outcome,
        id=number,
        place={"kind": outcome.place["kind"]},
        before=outcome.after,
        after=outcome.before,
        target=target,
        layer=_layer(outcome),
        finding=known.finding,
        remedy=known.remedy,
        why=known.why,
        at=_now(),
    )


def differences(now: TargetState, then: TargetState) -> list[Change]:
    """The changes in order: the machine, then limits of the process, which the server needs when it starts. `after` is
    "" where a setting goes back to the target's default."""
    return [
        Change(layer, name, before.get(name), after.get(name, ""))
        for part, layer in LAYERS
        for before, after in [(getattr(now, part), getattr(then, part))]
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def read(path: Path) -> list[ChangeRecord]:
    from loadframe.runs.folder import RunFolder

    return RunFolder(path).records(FILE, "change", ChangeRecord)


def not_reverted(entries: Sequence[ChangeRecord]) -> list[ChangeRecord]:
    """Those whose last entry does not show them ended, failed, reverted, or back at the first value."""
    first: dict[tuple[str, str, str], ChangeRecord] = {}
    last: dict[tuple[str, str, str], ChangeRecord] = {}
    for entry in entries:
        key = (entry.target, entry.layer, entry.setting)
        first.setdefault(key, entry)
        last[key] = entry
    remaining = []
    for what, entry in last.items():
        ends = {entry.after, first[what].before}
        differs = len(ends) > 1 and not ends <= {None, ""}  # both mean the default
        if entry.status == "intent" or (entry.status == "applied" and differs):
            remaining.append(entry)
    return remaining


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def runs_with_changes(root: Path) -> list[Path]:
    try:
        return sorted(path.parent for path in root.glob(f"*/{FILE}"))
    except OSError as error:  # name too long, or no permission
        raise RunError(f"{root} cannot be read: {error.strerror}", remedy="Name the folder with --runs.") from error
