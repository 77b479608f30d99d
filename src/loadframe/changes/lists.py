"""The lists of changes that remain, in the state directory, one file per command. A file that this version cannot use
is left as it is."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from loadframe.errors import ChangeError
from loadframe.formats.json_text import write_json
from loadframe.formats.plain_numbers import is_number
from loadframe.host import identity
from loadframe.host.identity import Identity
from loadframe.host.state import (
    Damaged,
    check_keys,
    held,
    identity_of,
    list_of,
    private_folder,
    read_file,
    read_record,
    remove_torn,
    state_directory,
    text_of,
    texts_of,
    write_durably,
    writing,
)
from loadframe.model import ChangeRecord

KIND, VERSION = "standing", 2
"""Version 1 had no machine, no namespaces, no last attempt, and no sign of life next to the file."""
SINCE_2 = {"machine", "namespaces", "tried_at", "because"}
KEYS = {"id", "what", "host", "boot", "owner", "run", "changes"} | SINCE_2
OF_A_CHANGE = ("place", "words", "setting", "before", "after", "read_back")
"""Enough to revert a change, and to report it."""
AGAIN_AFTER_S = 600.0
"""Seconds before commands that measure try again to revert: a failing restart takes minutes, and affects others. Our
choice."""


@dataclass(frozen=True, slots=True)
class Record:
    """host: its name, for users. namespaces: "net" and "mnt". tried_at, because: last failed revert, in seconds since
    1970 (0: never), and why it failed."""

    id: str
    what: str
    host: str
    machine: str
    boot: str
    owner: Identity
    namespaces: Mapping[str, str]
    run: str
    changes: tuple[ChangeRecord, ...] = ()
    tried_at: float = 0.0
    because: str = ""

    def alive(self) -> bool:
        """Whether the command runs; True where unknown."""
        lives = held(state_directory() / "changes" / f"{self.id}.json")
        if lives is not None or self.boot != identity.boot_id():
            return lives or False
        return identity.alive(self.owner) or not identity.here(self.owner)

    def due(self) -> bool:
        return not 0 <= time.time() - self.tried_at < AGAIN_AFTER_S

    def words(self) -> str:
        changed = ", ".join(dict.fromkeys(f"{change.setting} of {change.words}" for change in self.changes))
        tried = f" Last tried {max(0.0, time.time() - self.tried_at):.0f} s ago: {self.because}" if self.because else ""
        standing = f"Still changed since a command was killed ({self.run}): {changed}."
        return f"{standing}{tried} `loadframe changes revert` puts it back, or says why it cannot."


@dataclass(frozen=True, slots=True)
class Unreadable:
    file: Path
    because: str

    def __str__(self) -> str:
        return (
            f"{self.file} is not a list of changes that this version can use: {self.because}; left as it is. Where it "
            "is text, it says what was changed from what: put that back, then delete it."
        )


def folder() -> Path:
    return private_folder(state_directory() / "changes", "keep what is changed")


def files() -> list[Path]:
    place = state_directory() / "changes"
    return sorted(folder().glob("*.json")) if place.exists() else []


def read() -> list[Record]:
    return [record for record in map(_try, files()) if isinstance(record, Record)]


def unreadable() -> list[Unreadable]:
    return [record for record in map(_try, files()) if isinstance(record, Unreadable)]


def may_speak_of(file: Path, setting: str) -> bool:
    """Whether an unusable file contains the name of a setting."""
    try:
        return write_json(setting) in read_file(file)
    except (FileNotFoundError, Damaged):
        return False


def save(record: Record) -> None:
    file = folder() / f"{record.id}.json"
    with writing(file, ChangeError):
        if not record.changes:
            file.unlink(missing_ok=True)
            remove_torn(file.parent)  # a dead owner's sign of life
            return
        changes = [shape(change) for change in record.changes]
        fields = {**asdict(replace(record, changes=())), "changes": changes}
        write_durably(file, write_json({"schema": f"loadframe.{KIND}/{VERSION}", **fields}, indent=1))


def shape(change: ChangeRecord) -> dict[str, Any]:
    return {name: getattr(change, name) for name in OF_A_CHANGE}


def _try(file: Path) -> Record | Unreadable | None:
    """None if it has disappeared, or is of another machine that shares the directory."""
    try:
        record = _read(file)
    except FileNotFoundError:
        return None
    except Damaged as error:
        return Unreadable(file, str(error))
    here = record.boot == identity.boot_id() or record.machine == identity.machine()
    return record if here else None


def _read(file: Path) -> Record:
    version, data = read_record(file, KIND, VERSION)
    data = check_keys(data, KEYS - (SINCE_2 if version == 1 else set()))
    if version == 1:  # identified a machine by its host name
        here = data["host"] == identity.host_name()
        data |= {"machine": identity.machine() if here else "", "namespaces": {}, "tried_at": 0.0, "because": ""}
    if text_of(data, "id") != file.stem:
        raise Damaged(f"it is the list of {text_of(data, 'id')!r}")
    if not is_number(data["tried_at"]):
        raise Damaged("'tried_at' is not a number")
    return Record(
        owner=identity_of(data["owner"]),
        namespaces=texts_of(data, "namespaces"),
        changes=tuple(_standing(change) for change in list_of(data, "changes")),
        tried_at=float(data["tried_at"]),
        **{name: text_of(data, name) for name in ("id", "what", "host", "machine", "boot", "run", "because")},
    )


def _standing(data: object) -> ChangeRecord:
    fields = check_keys(data, set(OF_A_CHANGE))
    place = texts_of(fields, "place")
    if "kind" not in place:
        raise Damaged("a place is of no kind")
    for key in ("before", "after", "read_back"):
        if not isinstance(fields[key], str | int | float | bool) and (key, fields[key]) != ("read_back", None):
            raise Damaged(f"{key!r} is not a value")
    read_back = fields["read_back"]
    return ChangeRecord(
        text_of(fields, "setting"),
        fields["before"],
        fields["after"],
        read_back,
        "intent" if read_back is None else "applied",
        place=place,
        words=text_of(fields, "words"),
    )
