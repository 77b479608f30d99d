"""Settings that a service reads from a file. A private service gets a copy of the user's file; in a running one's, keys
are set and taken back: its bytes are restored once no key is changed."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import ChangeError, TargetError
from loadframe.formats.named_files import read_up_to
from loadframe.host.privilege import Privilege, ids_of
from loadframe.host.reading_as import read_as
from loadframe.host.state import private_folder, state_directory, write_durably
from loadframe.kinds.service import formats
from loadframe.kinds.service.words import filled
from loadframe.model import SettingValue, TargetState
from loadframe.study.declaration import TargetTable
from loadframe.study.service_tables import SettingTable
from loadframe.system.files import Folder, Whose

MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Copy:
    source: Path
    place: Path
    text: str


class Files:
    """One copy for each file, whatever the number of its keys."""

    def __init__(self, target: TargetTable, folder: Path) -> None:
        self._target, self._folder = target, folder
        self._tables = {name: table for name, table in target.setting.items() if table.apply == "file"}
        self._copies: dict[str, _Copy] = {}
        self._user: Privilege

    def make(self, user: Privilege) -> None:
        """Read as the service's user. TargetError, OSError."""
        self._user = user
        if not self._tables:
            return
        self._folder.mkdir(mode=0o755)
        self._folder.chmod(0o755)
        sources = dict.fromkeys(table.file for table in self._tables.values())
        for number, source in enumerate(sources):
            path = self._own(Path(source))
            place = self._folder / str(number) / path.name
            place.parent.mkdir()
            place.parent.chmod(0o755)
            self._copies[source] = _Copy(path, place, _text(path, user))

    def text_of(self, path: Path) -> str:
        return _text(self._own(path), self._user)

    def _own(self, path: Path) -> Path:
        return Path(self._target.folder or os.curdir).absolute() / path

    def places(self) -> dict[str, str]:
        paths = {f"{name}_file": str(self._copies[table.file].place) for name, table in self._tables.items()}
        only = {str(copy.place) for copy in self._copies.values()}
        return {**paths, **({"file": only.pop()} if len(only) == 1 else {})}

    def write(self, state: TargetState, values: Mapping[str, str]) -> None:
        """A key without a value is as in the user's file. TargetError."""
        for source, copy in self._copies.items():
            text = copy.text
            for name, table in self._tables.items():
                if table.file == source and name in state.settings and table.key:
                    text = _edited(name, table, copy.source, text, state)
            if any(not table.key for table in self._tables.values() if table.file == source):
                text = filled(text, values)
            Folder(copy.place.parent, Whose.OURS, TargetError).replace(copy.place.name, text.encode(), mode=0o644)


def _edited(name: str, table: SettingTable, source: Path, text: str, state: TargetState) -> str:
    try:
        return formats.edited(text, table.format or formats.of_name(source.name), table.key, state.settings[name])
    except ValueError as error:
        raise TargetError(
            f"target.setting.{name}: {table.key} cannot be written to a copy of {source}: {error}",
            remedy="Correct target.setting.NAME.file, key or format.",
        ) from error


def _text(path: Path, user: Privilege) -> str:
    try:
        data = read_as(ids_of(user).uid, path, MOST_BYTES)
        if len(data) > MOST_BYTES:
            raise OSError(f"it has more than {MOST_BYTES:,} bytes")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(
            f"target.setting: {path} cannot be read by the user who runs the service: {error}",
            remedy="Give a text file that this user may read.",
        ) from error


class OwnFile:
    """keys: all that may be set in it."""

    def __init__(self, path: Path, format_: str, keys: Iterable[str]) -> None:
        self._path, self._format, self._keys = path, format_, tuple(keys)
        self._folder = Folder(path.parent, Whose.ANOTHERS, ChangeError)

    def read(self, key: str) -> SettingValue | None:
        """None: unchanged. ChangeError."""
        try:
            kept = self._kept()
            if not kept.exists():
                return None
            now = self._found(self._now()[0], key)
            return None if now == self._found(_kept_text(kept), key) else now
        except (OSError, ValueError) as error:
            raise self._refused(key, error) from error

    def set(self, key: str, value: SettingValue) -> None:
        """Once every key is as at first, so is every byte, unless the owner has changed the file meanwhile.
        ChangeError."""
        try:
            (now, status), kept = self._now(), self._kept()
            if self._found(now, key) is None:
                raise ValueError("it has no such key")
            if not kept.exists() or self._values(_kept_text(kept)) == self._values(now):
                write_durably(kept, now)
            first, after = _kept_text(kept), formats.edited(now, self._format, key, value)
            back = self._values(after) == self._values(first) and self._is_ours(now, first)
            self._folder.remove_torn()
            self._folder.replace(self._path.name, (first if back else after).encode(), like=status)
        except (OSError, ValueError) as error:
            raise self._refused(key, error) from error

    def done(self) -> None:
        """After the service has read it: the kept bytes are dropped where no key is changed. ChangeError."""
        try:
            kept = self._kept()
            if kept.exists() and self._values(_kept_text(kept)) == self._values(self._now()[0]):
                kept.unlink()
        except (OSError, ValueError) as error:
            raise self._refused("a key", error) from error

    def _is_ours(self, now: str, first: str) -> bool:
        was, made = self._values(first), first
        for key, value in self._values(now).items():
            if value is not None and value != was[key]:
                made = formats.edited(made, self._format, key, value)
        return made == now

    def _values(self, text: str) -> dict[str, SettingValue | None]:
        return {key: self._found(text, key) for key in self._keys}

    def _found(self, text: str, key: str) -> SettingValue | None:
        return formats.found(text, self._format, key)

    def _kept(self) -> Path:
        folder = private_folder(state_directory() / "files", "keep a file as it was")
        return folder / hashlib.sha256(os.fsencode(self._path)).hexdigest()

    def _refused(self, key: str, error: OSError | ValueError) -> ChangeError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return ChangeError(
            f"{key} cannot be set in {self._path}: {why}",
            remedy="It must be a text file of its format, with one name and this key, that we may write.",
        )

    def _now(self) -> tuple[str, os.stat_result]:
        """Text and status from one descriptor: in another user's folder a link may replace the file at any moment."""
        data, status = self._folder.read_own(self._path.name, MOST_BYTES)
        return data.decode("utf-8"), status


def _kept_text(path: Path) -> str:
    data = read_up_to(path, MOST_BYTES)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return data.decode("utf-8")
