"""Settings that a service reads from a file: it gets a private copy of the reader's own file, with the values in it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host.privilege import Privilege, ids_of
from loadframe.host.reading_as import read_as
from loadframe.kinds.service import formats
from loadframe.kinds.service.words import filled
from loadframe.model import TargetState
from loadframe.study.declaration import TargetTable
from loadframe.study.service_tables import SettingTable
from loadframe.system.files import Folder, Whose

MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Copy:
    """source: the reader's own. place: the copy. text: of the source."""

    source: Path
    place: Path
    text: str


class Files:
    """The copies of all files that settings are written to; one for each file, whatever the number of its keys."""

    def __init__(self, target: TargetTable, folder: Path) -> None:
        self._target, self._folder = target, folder
        self._tables = {name: table for name, table in target.setting.items() if table.apply == "file"}
        self._copies: dict[str, _Copy] = {}
        self._user: Privilege

    def make(self, user: Privilege) -> None:
        """Read the reader's files, with the rights of the user who runs the service, and make room for the copies,
        which the service may read and not replace. TargetError, OSError."""
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
        """A file, as the user of the service reads it. TargetError."""
        return _text(self._own(path), self._user)

    def _own(self, path: Path) -> Path:
        return Path(self._target.folder or os.curdir).absolute() / path

    def places(self) -> dict[str, str]:
        """Where the copies are, by what stands for them in braces."""
        found = {f"{name}_file": str(self._copies[table.file].place) for name, table in self._tables.items()}
        only = {str(copy.place) for copy in self._copies.values()}
        return {**found, **({"file": only.pop()} if len(only) == 1 else {})}

    def write(self, state: TargetState, values: Mapping[str, str]) -> None:
        """The copies as a state has them. A key of which it has no value is as in the reader's file. TargetError."""
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
