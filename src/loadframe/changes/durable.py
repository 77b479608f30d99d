"""Changes that outlive the command: of the machine, or of a server that Loadframe did not start. The previous value is
first written to the state directory, one file per command, atomically and fsynced. When the command ends everything is
reverted, in reverse order; after `kill -9` by `loadframe changes revert`, and by all commands that measure. What
another program has changed meanwhile is left alone; what cannot be reverted stays on the disk with reason and time.
What was changed from within other namespaces (a container) is reverted only where its address means the same here."""

import os
import secrets
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadframe.changes import lists
from loadframe.changes.lists import Record
from loadframe.changes.places import ON_HOST, Gone, Namespace, Place, Places
from loadframe.errors import ChangeError, UserError
from loadframe.host import identity
from loadframe.host.signals import undisturbed
from loadframe.host.state import Life, locked, remove_torn, state_directory, writing
from loadframe.model import ChangeRecord, ChangeStatus, SettingValue, UnrevertedChange

NOT_ALONE = "Nothing can be compared then; find out which one, and run again."
"""Remedy where another program changes a setting during a run."""


class DurableJournal:
    def __init__(self, what: str, run: Path) -> None:
        """what: for messages. CageError."""
        self._life: Life | None = None
        self._record = Record(
            id=secrets.token_hex(6),
            what=what,
            host=identity.host_name(),
            machine=identity.machine(),
            boot=identity.boot_id(),
            owner=identity.own(),
            namespaces={kind: identity.namespace(kind) for kind in ("net", "mnt")},
            run=str(run.absolute()),
        )

    @property
    def not_reverted(self) -> tuple[str, ...]:
        return tuple(change.setting for change in self._record.changes)

    def set(self, place: Place, name: str, value: SettingValue, moves: Sequence[str] = ()) -> SettingValue:
        """Returns what is read back. moves: others that may change with it. ChangeError where another command or
        program has changed it; UserError as `place` raises."""
        # What it moves comes first, so that it is reverted last.
        self._begin(place, {**dict.fromkeys(moves), name: value})
        place.write(name, value)
        read_back = {setting: place.read(setting) for setting in (*moves, name)}
        self._write(
            replace(change, read_back=read_back[change.setting], status="applied")
            if self._is(change, place, read_back)
            else change
            for change in self._record.changes
        )
        return read_back[name]

    def intend(self, place: Place, name: str, value: SettingValue) -> None:
        """For a change that another program makes."""
        self._begin(place, {name: value})

    def back(self, place: Place, names: Container[str] | None = None) -> list[ChangeRecord]:
        """Revert these settings of a place, or all, the last one first. What cannot be reverted stays recorded, for a
        later command. Does nothing in a forked child. Ctrl-C waits until it is done."""
        if os.getpid() != self._record.owner.pid:
            return []
        chosen = [change for change in self._record.changes if self._is(change, place, names)]
        if not chosen:
            return []
        with undisturbed():
            kept = tuple(released(change, place) if change in chosen else change for change in self._record.changes)
            self._record = replace(self._record, changes=kept)
            outcomes = [put_back(change, place) for change in reversed(kept) if self._is(change, place, names)]
            self._write(without(self._record.changes, outcomes))
        return outcomes

    def _begin(self, place: Place, wanted: Mapping[str, SettingValue | None]) -> None:
        """A setting without a value is only watched. Current values are read under the same lock: a value read earlier
        may be another command's."""
        with locked(lists.folder() / "lock"):
            changes = list(self._record.changes)
            for name, value in wanted.items():
                self._refuse_second(place, name)
                now = place.read(name)
                known = next((change for change in changes if self._is(change, place, (name,))), None)
                if known is None:
                    changes.append(
                        ChangeRecord(
                            name, now, now if value is None else value, place=dict(place.address), words=place.words
                        )
                    )
                    continue
                if not ours(known, now):
                    raise ChangeError(
                        f"{name} of {place.words} is {now}; this run has set it to {known.after}, so another program "
                        "changes it too",
                        remedy=NOT_ALONE,
                    )
                after = known.after if value is None else value
                begun = replace(known, after=after, read_back=None, status="intent")
                changes[changes.index(known)] = begun
            self._write(changes)

    def _refuse_second(self, place: Place, name: str) -> None:
        for record in lists.read():
            if record.id != self._record.id and any(_meet(change, place, name) for change in record.changes):
                how = f"was changed by a command that was killed ({record.run})"
                remedy = "`loadframe changes revert` puts it back."
                if record.alive():
                    how = f"is changed by another command (pid {record.owner.pid}, {record.run})"
                    remedy = "Wait until it ends."
                raise ChangeError(f"{name} of {place.words} {how}", remedy=remedy)
        for lost in lists.unreadable():
            if lists.may_speak_of(lost.file, name):
                raise ChangeError(
                    f"{name} of {place.words} may still be changed by a command that was killed: it is in {lost.file}; "
                    f"{lost.because}",
                    remedy="Put back by hand what that file says, then delete it.",
                )

    def _write(self, changes: Iterable[ChangeRecord]) -> None:
        self._record = replace(self._record, changes=tuple(changes))
        if self._record.changes and self._life is None:
            file = lists.folder() / f"{self._record.id}.json"
            with writing(f"next to {file}", ChangeError):
                self._life = Life(file)
        lists.save(self._record)
        if not self._record.changes and self._life is not None:
            self._life.end()
            self._life = None

    @staticmethod
    def _is(change: ChangeRecord, place: Place, names: Container[str] | None) -> bool:
        return change.place == place.address and (names is None or change.setting in names)


def _meet(change: ChangeRecord, place: Place, name: str) -> bool:
    """However two commands reach it. A server's configuration file comes with a restart, which resets all of its
    settings."""
    addresses, aside = (change.place, place.address), ("option_file", "user", "words", "thing", "number")
    first, second = (
        address["thing"]
        if all(address.get("thing") for address in addresses)
        else {key: value for key, value in address.items() if key not in aside}
        for address in addresses
    )
    kinds = [address["kind"] for address in addresses]
    return first == second and ("config" in kinds or (change.setting == name and kinds[0] == kinds[1]))


def ours(change: ChangeRecord, value: SettingValue) -> bool:
    """Whether we set this value, as far as known. While only the intent is recorded, any value is ours: a server may
    take another value than it was given."""
    return change.read_back is None or value in (change.after, change.read_back)


def became(change: ChangeRecord, status: ChangeStatus, value: SettingValue | None, because: str) -> ChangeRecord:
    return replace(change, status=status, read_back=value, because=because)


def released(change: ChangeRecord, place: Place) -> ChangeRecord:
    """For a setting that was only watched, before those that move it are reverted: later values are ours, unless
    another program has changed it before."""
    if change.after != change.before:
        return change
    try:
        return replace(change, read_back=None) if ours(change, place.read(change.setting)) else change
    except UserError:  # put_back reports it
        return change


def put_back(change: ChangeRecord, place: Place) -> ChangeRecord:
    """Revert a setting, unless that is done, or another program has changed it. Never raises."""
    try:
        now = place.read(change.setting)
        if now == change.before:
            return became(change, "reverted", now, f"is {shown(now)}, as before")
        if not ours(change, now):
            was, asked = shown(change.before), shown(change.after)
            because = f"left at {shown(now)}: this is neither {was} from before the run nor {asked} as the run set it"
            return became(change, "left", now, because)
        assert change.before is not None, "what outlives a command is read before it is changed"
        place.write(change.setting, change.before)
        after = place.read(change.setting)
    except Gone:
        return became(change, "reverted", None, "the process has ended, and what was changed of it with it")
    except UserError as error:
        why = ". ".join(part for part in (error.fact, error.remedy) if part)
        return became(change, "failed", None, f"{cannot(change)}: {why}")
    if after != change.before:
        return became(change, "failed", after, f"was set back to {shown(change.before)}, but is {shown(after)}")
    return became(change, "reverted", after, f"put back from {shown(now)} to {shown(after)}")


def without(changes: Iterable[ChangeRecord], outcomes: Iterable[ChangeRecord]) -> list[ChangeRecord]:
    settled = [(outcome.place, outcome.setting) for outcome in outcomes if outcome.status != "failed"]
    return [change for change in changes if (change.place, change.setting) not in settled]


def cannot(change: ChangeRecord) -> str:
    return f"cannot be put back to {shown(change.before)}"


def shown(value: SettingValue | None) -> str:
    """A value in words; "" for a setting that was never set."""
    return "the server's own value" if value == "" else str(value)


def of_this_command() -> list[Record]:
    """Not reverted yet. CageError."""
    owner = identity.identify(os.getpid())
    return [record for record in lists.read() if record.owner == owner and record.alive()]


def failed(outcomes: Iterable[ChangeRecord]) -> tuple[UnrevertedChange, ...]:
    last = {(outcome.words, outcome.setting): outcome for outcome in outcomes}
    return tuple(
        UnrevertedChange(
            outcome.setting,
            outcome.words,
            outcome.before,
            outcome.after,
            outcome.because,
            host=outcome.place.get(ON_HOST, ""),
        )
        for outcome in last.values()
        if outcome.status == "failed"
    )


BY_HAND = (
    "Put it back where it was changed, with `loadframe changes revert`, or by hand (`loadframe changes list` shows "
    "what it was); then delete {file}."
)
OTHERS: Mapping[Namespace, str] = {"net": "network", "mnt": "mount"}


def revert(
    places: Callable[[], Places], *, again: bool = True, before: Callable[[str], None] = lambda _: None
) -> list[ChangeRecord]:
    """Revert what killed commands have left; changes of running ones are not touched. Idempotent, and safe in several
    processes at once. places: called only where something remains changed. again: also what recently could not be
    reverted (lists.AGAIN_AFTER_S). before: called before what may take long. CageError."""
    remove_torn(state_directory() / "changes")
    if not lists.files():
        return []
    with locked(lists.folder() / "lock"):
        chosen = [record for record in lists.read() if not record.alive() and (again or record.due())]
        known = places() if chosen else {}
        return [outcome for record in chosen for outcome in _revert_one(known, record, before)]


def forget(identifier: str) -> list[ChangeRecord]:
    """Give up what a killed command has left changed; returns what each change leaves. identifier: of its list.
    ChangeError where no list has it, and where the command runs. CageError."""
    with locked(lists.folder() / "lock"):
        known = {record.id: record for record in lists.read()}
        record = known.get(identifier)
        if record is None:
            raise ChangeError(
                f"No killed command left changes with the ID {identifier!r}.",
                remedy=f"`loadframe changes list` shows the changes and their IDs; now: {', '.join(known) or 'none'}.",
            )
        if record.alive():
            raise ChangeError(
                f"The command of {identifier} runs (pid {record.owner.pid}, {record.run}).",
                remedy="It reverts its changes when it ends.",
            )
        outcomes = [
            became(
                change,
                "left",
                None,
                f"forgotten: may still be {shown(change.after)} (it was {shown(change.before)} before the run); "
                "nothing reverts it now",
            )
            for change in record.changes
        ]
        return _noted(record, outcomes, replace(record, changes=()))


def unreverted() -> list[str]:
    standing = [record.words() for record in lists.read() if not record.alive()]
    return [*standing, *map(str, lists.unreadable())]


def _revert_one(places: Places, record: Record, before: Callable[[str], None]) -> list[ChangeRecord]:
    kinds = (places.get(change.place["kind"]) for change in record.changes)
    if (most_s := sum(kind.longest_s for kind in kinds if kind is not None)) > 0:
        what = ", ".join(dict.fromkeys(f"{change.setting} of {change.words}" for change in record.changes))
        before(f"An earlier command was killed; restoring {what}. This may take up to {most_s:.0f} s.")
    changes = []
    for change in record.changes:
        kind = places.get(change.place["kind"])
        place = _place_of(places, record, change) if kind is not None and kind.moves else change
        changes.append(change if isinstance(place, ChangeRecord) else released(change, place))
    record = replace(record, changes=tuple(changes))
    outcomes = []
    for change in reversed(changes):
        place = _place_of(places, record, change)
        outcomes.append(place if isinstance(place, ChangeRecord) else put_back(change, place))
    left = replace(record, changes=tuple(without(record.changes, outcomes)))
    if reasons := [outcome.because for outcome in outcomes if outcome.status == "failed"]:
        left = replace(left, tried_at=time.time(), because="; ".join(dict.fromkeys(reasons)))
    return _noted(record, outcomes, left)


def _noted(record: Record, outcomes: list[ChangeRecord], left: Record) -> list[ChangeRecord]:
    from loadframe.changes.journal import tell  # most commands find nothing to put back

    try:
        tell(Path(record.run), [outcome for outcome in outcomes if outcome.status != "failed"])
        return outcomes
    except UserError as error:
        unnoted = f"(not noted in its run: {error.fact})"
        return [replace(outcome, because=f"{outcome.because} {unnoted}") for outcome in outcomes]
    finally:
        lists.save(left)


def _place_of(places: Places, record: Record, change: ChangeRecord) -> Place | ChangeRecord:
    """The outcome where a change cannot be reverted, or need not."""

    def failed(why: str) -> ChangeRecord:
        return became(change, "failed", None, f"{cannot(change)}: {why}")

    if (kind := places.get(change.place["kind"])) is None:
        return failed(f"{change.place['kind']!r} is not known here: an extension that is not installed may know it")
    if kind.ends_with_boot and record.boot != identity.boot_id():
        because = "the machine was restarted since, and the setting was not made again"
        return became(change, "reverted", None, because)
    needed, why = kind.namespace(change.setting), ""
    if needed == "pid" and not identity.here(record.owner):
        why = "its pid means another process here: it was changed in another PID namespace (a container)"
    if needed in OTHERS and record.namespaces.get(needed, identity.namespace(needed)) != identity.namespace(needed):
        why = f"it was changed in another {OTHERS[needed]} namespace (a container)"
    if why:
        return failed(f"{why}. {BY_HAND.format(file=lists.folder() / f'{record.id}.json')}")
    try:
        place = kind.find(change.place)
    except UserError as error:
        return failed(f"{error.fact}. {kind.way_in(change.place)}")
    except (KeyError, ValueError) as error:
        return failed(f"its address is not complete ({error})")
    was, now = change.place.get("thing", ""), place.address.get("thing", "")
    return failed(f"there is another server now ({now}, was {was})") if was and was != now else place
