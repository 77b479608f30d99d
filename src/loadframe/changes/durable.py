"""Changes that outlive the command that made them: of the machine, or of a server that is somebody else's.

Before such a change, what was there is on the disk in the state directory: one file for each command, written whole and
fsynced. When the command ends everything is put back, in reverse order; after `kill -9` the next command does it. What
somebody else has changed meanwhile is left alone, and said. Putting back twice does no harm.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from loadframe.cage import identity
from loadframe.cage.identity import Identity
from loadframe.cage.signals import undisturbed
from loadframe.cage.state import locked, remove_torn, state_directory, writable, write_durably
from loadframe.changes.host import Host
from loadframe.changes.process import Gone, ServerProcess
from loadframe.errors import ChangeError, UserError
from loadframe.model import SettingValue, StandingChange

if TYPE_CHECKING:
    from loadframe.targets.attached import Attached

SCHEMA = "loadframe.standing/1"
NOT_ALONE = "Nothing can be compared then; find out who, and run again."
"""What to do where somebody else changes a setting amid a run."""


class Place(Protocol):
    """Where settings are that outlive us. All methods raise UserError where it does not let us."""

    address: Mapping[str, str]
    """How another command finds it again: `kind`, and what that kind needs. No secret: it is written to disk."""
    words: str
    """What it is, for people."""

    def read(self, name: str) -> SettingValue:
        """The value now."""

    def write(self, name: str, value: SettingValue) -> None:
        """Set it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One setting that is not, or may not be, what it was. before: what to put back. after: what was asked for last;
    read_back: what was read after that, None where a change was only begun."""

    place: Mapping[str, str]
    words: str
    setting: str
    before: SettingValue
    after: SettingValue
    read_back: SettingValue | None = None

    def ours(self, value: SettingValue) -> bool:
        """Whether a value was set by us, as far as can be told. Of a change that was only begun, whatever is found is
        ours: a server may take another value than it was given."""
        return self.read_back is None or value in (self.after, self.read_back)


@dataclass(frozen=True, slots=True)
class Record:
    """A file of the state directory: who changed what, in the order of the changes."""

    id: str
    what: str
    host: str
    boot: str
    owner: Identity
    run: str
    changes: tuple[Standing, ...] = ()

    def alive(self) -> bool:
        """Whether the command that made the changes still runs."""
        return self.boot == identity.boot_id() and identity.alive(self.owner)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one setting. reverted: put back, or was back already. left: somebody else has changed it. failed:
    it still stands."""

    what: Literal["reverted", "left", "failed"]
    change: Standing
    value: SettingValue | None
    because: str

    def __str__(self) -> str:
        return f"{self.change.setting} of {self.change.words}: {self.because}"


class DurableJournal:
    """What one command changes beyond its own life. Its file is there only while something is changed."""

    def __init__(self, what: str, run: Path) -> None:
        """what: words for people; run: the folder of the run that changes."""
        owner = identity.identify(os.getpid())
        assert owner is not None, "a process that runs has an entry in /proc"
        name = secrets.token_hex(6)
        self._record = Record(name, what, socket.gethostname(), identity.boot_id(), owner, str(run.absolute()))

    def set(self, place: Place, name: str, value: SettingValue, moves: Sequence[str] = ()) -> SettingValue:
        """Change one setting; answers what is read back. moves: others that may change with it.

        ChangeError where another command has changed it, or somebody else since we did; UserError as `place` raises.
        """
        for other in moves:  # first: they are put back after the one that moves them
            self._begin(place, other)
        self._begin(place, name, value)
        place.write(name, value)
        found = {each: place.read(each) for each in (*moves, name)}
        self._write(
            replace(each, read_back=found[each.setting]) if self._is(each, place, found) else each
            for each in self._record.changes
        )
        return found[name]

    def intend(self, place: Place, name: str, value: SettingValue) -> None:
        """What `set` writes down before it changes anything, for a change that somebody else makes."""
        self._begin(place, name, value)

    def back(self, place: Place, names: Container[str] | None = None) -> list[Outcome]:
        """Put these settings of a place, or all, back to what was there before their first change, the last one first.
        What cannot be put back still stands, and the next command tries again. In a forked child it does nothing.
        Ctrl-C waits until it is done."""
        if os.getpid() != self._record.owner.pid:
            return []
        chosen = [each for each in self._record.changes if self._is(each, place, names)]
        if not chosen:
            return []
        with undisturbed():
            kept = tuple(released(each, place) if each in chosen else each for each in self._record.changes)
            self._record = replace(self._record, changes=kept)
            outcomes = [put_back(each, place) for each in reversed(kept) if self._is(each, place, names)]
            self._write(_without(self._record.changes, outcomes))
        return outcomes

    def _begin(self, place: Place, name: str, value: SettingValue | None = None) -> None:
        """The intent, on the disk. Without a value the setting is only watched."""
        now = place.read(name)
        known = next((each for each in self._record.changes if self._is(each, place, (name,))), None)
        if known is not None:
            if not known.ours(now):
                raise ChangeError(
                    f"{name} of {place.words} is {now}; this run has set it to {known.after}, so somebody else changes "
                    "it too",
                    remedy=NOT_ALONE,
                )
            after = known.after if value is None else value
            self._write(
                replace(each, after=after, read_back=None) if each is known else each for each in self._record.changes
            )
            return
        with locked(_folder() / "lock"):
            self._refuse_second(place, name)
            change = Standing(dict(place.address), place.words, name, now, now if value is None else value)
            self._write((*self._record.changes, change))

    def _refuse_second(self, place: Place, name: str) -> None:
        for record in read():
            if record.id != self._record.id and any(self._is(each, place, (name,)) for each in record.changes):
                alive = f"is changed by another command (pid {record.owner.pid}, {record.run})"
                gone = f"was changed by a command that was killed ({record.run})"
                raise ChangeError(
                    f"{name} of {place.words} {alive if record.alive() else gone}",
                    remedy="Wait for its end." if record.alive() else "`loadframe changes revert` puts it back.",
                )

    def _write(self, changes: Iterable[Standing]) -> None:
        self._record = replace(self._record, changes=tuple(changes))
        _save(self._record)

    @staticmethod
    def _is(change: Standing, place: Place, names: Container[str] | None) -> bool:
        return change.place == place.address and (names is None or change.setting in names)


def released(change: Standing, place: Place) -> Standing:
    """One that was only watched, before those that move it are put back: where nobody else has changed it until now,
    it is ours whatever it is after that."""
    if change.after != change.before:
        return change
    try:
        return replace(change, read_back=None) if change.ours(place.read(change.setting)) else change
    except UserError:  # what cannot be read cannot be put back, and put_back says so
        return change


def put_back(change: Standing, place: Place) -> Outcome:
    """One setting as it was, unless it is already, or somebody else has changed it. Never raises."""
    try:
        now = place.read(change.setting)
        if now == change.before:
            return Outcome("reverted", change, now, f"is {_shown(now)}, as before")
        if not change.ours(now):
            was, ours = _shown(change.before), _shown(change.after)
            because = f"left at {_shown(now)}: that is neither {was} as before the run nor {ours} as it set it"
            return Outcome("left", change, now, because)
        place.write(change.setting, change.before)
        after = place.read(change.setting)
    except Gone:
        return Outcome("reverted", change, None, "the process has ended, and what was changed of it with it")
    except UserError as error:
        because = f"cannot be put back to {_shown(change.before)}: {error.fact} {error.remedy}".rstrip()
        return Outcome("failed", change, None, because)
    if after != change.before:
        return Outcome("failed", change, after, f"was set back to {_shown(change.before)}, but is {_shown(after)}")
    return Outcome("reverted", change, after, f"put back from {_shown(now)} to {_shown(after)}")


def _shown(value: SettingValue) -> str:
    """A value for people; "" is that of a setting that nobody has set."""
    return "what it is by itself" if value == "" else str(value)


def read() -> list[Record]:
    """Everything that stands on this machine, of commands that run and of such that were killed. ChangeError for a file
    that is none of ours."""
    return [record for file in _files() if (record := _read(file)) is not None]


def of_this_command() -> list[Record]:
    """What the command that asks has changed and not put back. Raises as `read` does."""
    owner = identity.identify(os.getpid())
    return [record for record in read() if record.alive() and record.owner == owner]


def failed(outcomes: Iterable[Outcome]) -> tuple[StandingChange, ...]:
    """What still stands after these, in their order: a setting may have been put back in the end."""
    last = {(outcome.change.words, outcome.change.setting): outcome for outcome in outcomes}
    return tuple(
        StandingChange(each.change.setting, each.change.words, each.change.before, each.change.after, each.because)
        for each in last.values()
        if each.what == "failed"
    )


def revert() -> list[Outcome]:
    """Put back what killed commands have left; what belongs to a command that runs is not touched. Idempotent, and safe
    to run at the same time in several processes."""
    remove_torn(state_directory() / "changes")
    if not _files():
        return []
    with locked(_folder() / "lock"):
        return [outcome for record in read() if not record.alive() for outcome in _revert_one(record)]


def _revert_one(record: Record) -> list[Outcome]:
    from loadframe.changes.journal import tell  # most commands find nothing to put back

    machine = [change for change in record.changes if change.place["kind"] == "host" and not _rebooted(record, change)]
    changes = [released(each, KINDS["host"](each.place)) if each in machine else each for each in record.changes]
    record = replace(record, changes=tuple(changes))
    outcomes = [
        _gone_with_the_boot(change) if _rebooted(record, change) else _put_back(change) for change in reversed(changes)
    ]
    try:
        tell(Path(record.run), [outcome for outcome in outcomes if outcome.what != "failed"])
    finally:
        _save(replace(record, changes=tuple(_without(record.changes, outcomes))))
    return outcomes


def _without(changes: Iterable[Standing], outcomes: Iterable[Outcome]) -> list[Standing]:
    """What still stands. It is written once everything is put back: what is named a little too long does no harm."""
    settled = [outcome.change for outcome in outcomes if outcome.what != "failed"]
    return [change for change in changes if change not in settled]


def _rebooted(record: Record, change: Standing) -> bool:
    return change.place["kind"] in ("host", "process") and record.boot != identity.boot_id()


def _gone_with_the_boot(change: Standing) -> Outcome:
    return Outcome("reverted", change, None, "the machine was started anew since, and it was not set again")


def _put_back(change: Standing) -> Outcome:
    try:
        place = KINDS[change.place["kind"]](change.place)
    except UserError as error:
        return Outcome("failed", change, None, f"cannot be put back to {_shown(change.before)}: {error.fact}. {WAY_IN}")
    return put_back(change, place)


WAY_IN = (
    "It may be down, or its password may be neither in the option file nor in the environment now (MYSQL_PWD, "
    "PGPASSWORD): `loadframe changes revert` tries again."
)


KINDS: Mapping[str, Callable[[Mapping[str, str]], Place]] = {
    "host": lambda address: Host(Path(address["root"])),
    "mariadb": lambda address: _server(address),
    "postgres": lambda address: _server(address),
    "process": ServerProcess.at,
    "config": lambda address: _config_file(address),
    "schema": lambda address: _schema(address),
}
"""How a place is found again by its address. UserError where it does not let us in."""


def _server(address: Mapping[str, str]) -> Attached:
    from loadframe.targets.attached import again  # most commands change no server, and need none of its packages

    return again(address)


def _config_file(address: Mapping[str, str]) -> Place:
    from loadframe.changes.config_file import ConfigFile

    return ConfigFile.at(address)


def _schema(address: Mapping[str, str]) -> Place:
    from loadframe.changes.schema import OwnSchema

    server = _server({**address, "kind": address["server"]})
    server.settle()
    return OwnSchema(server.endpoint(), server)


def _folder() -> Path:
    return writable(state_directory() / "changes", "keep what is changed", "LOADFRAME_STATE")


def _files() -> list[Path]:
    return sorted((state_directory() / "changes").glob("*.json"))


def _save(record: Record) -> None:
    file = _folder() / f"{record.id}.json"
    if not record.changes:
        file.unlink(missing_ok=True)
        return
    try:
        write_durably(file, json.dumps({"schema": SCHEMA, **asdict(record)}, indent=1))
    except OSError as error:
        raise ChangeError(
            f"Cannot write {file}: {error.strerror}", remedy="Make room, or set LOADFRAME_STATE."
        ) from error


def _read(file: Path) -> Record | None:
    """None for one that is gone meanwhile, or of another machine that shares the directory."""
    try:
        data: dict[str, Any] = json.loads(file.read_text())
        if data.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        changes = tuple(Standing(**each) for each in data.pop("changes"))
        record = Record(**{**data, "owner": Identity(**data["owner"])}, changes=changes)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ChangeError(
            f"{file} is not a list of changes that this version knows ({error})",
            remedy="It says in plain text what was changed from what; put that back, then delete it.",
        ) from error
    return record if record.host == socket.gethostname() else None
