"""Settings that a service reads from a file. A private service gets a copy of the user's file; in a running one's, keys
are set and taken back: its bytes are restored once no key is changed."""

import hashlib
import importlib
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadframe.errors import ChangeError, TargetError
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.named_files import read_up_to
from loadframe.formats.plain_numbers import whole
from loadframe.formats.toml_text import TomlError, parse_toml
from loadframe.host.privilege import Privilege, ids_of
from loadframe.host.processes import read_as
from loadframe.host.state import private_folder, state_directory, write_durably
from loadframe.kinds.service.placeholders import filled, shown
from loadframe.model import SettingValue, TargetState
from loadframe.study.declaration import TargetTable
from loadframe.system.files import Folder, Whose

MOST_BYTES = 1 << 20
ENDINGS = {
    ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".ini": "ini", ".cfg": "ini", ".conf": "ini",
    ".properties": "properties",
}  # fmt: skip
PACKAGES = {"toml": "tomlkit", "yaml": "ruamel.yaml"}
MOST_DEEP = 6
ITS_FAULTS = (AttributeError, KeyError, IndexError, TypeError, RecursionError, ValueError)
SECTION = re.compile(r"\s*\[([^\]]*)\]\s*")
LINE = re.compile(r"(\s*)([^=:#;\[\s][^=:]*?)(\s*[=:][^\S\r]*)(.*)")
Entry = tuple[int, str, re.Match[str]]
"""A setting as it is written: index of the line, section, parts of the line."""


@dataclass(frozen=True, slots=True)
class _Copy:
    source: Path
    place: Path
    text: str


class Files:
    """One copy for each file that settings are written to."""

    def __init__(self, target: TargetTable, folder: Path) -> None:
        self._target, self._folder = target, folder
        self._tables = {name: table for name, table in target.setting.items() if table.apply == "file"}
        self._copies: dict[str, _Copy] = {}
        self._user: Privilege

    def make(self, user: Privilege) -> None:
        """The user's files are read as the service's user. TargetError, OSError."""
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
        """A key without a value in the state is as in the user's file. TargetError."""
        for source, copy in self._copies.items():
            text = copy.text
            for name, table in self._tables.items():
                if table.file != source or name not in state.settings or not table.key:
                    continue
                try:
                    format_ = table.format or of_name(copy.source.name)
                    text = edited(text, format_, table.key, state.settings[name])
                except ValueError as error:
                    raise TargetError(
                        f"target.setting.{name}: {table.key} cannot be written to a copy of {copy.source}: {error}",
                        remedy="Correct target.setting.NAME.file, key or format.",
                    ) from error
            if any(not table.key for table in self._tables.values() if table.file == source):
                text = filled(text, values)
            Folder(copy.place.parent, Whose.OURS, TargetError).replace(copy.place.name, text.encode(), mode=0o644)


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
    """A settings file of a running service's owner. keys: all that may be set in it."""

    def __init__(self, path: Path, format_: str, keys: Iterable[str]) -> None:
        self._path, self._format, self._keys = path, format_, tuple(keys)
        self._folder = Folder(path.parent, Whose.ANOTHERS, ChangeError)

    def read(self, key: str) -> SettingValue | None:
        """The value that we gave a key, even before the service has read it; None: unchanged. ChangeError."""
        try:
            kept = self._kept()
            if not kept.exists():
                return None
            now, before = (found(text, self._format, key) for text in (self._now()[0], _kept_text(kept)))
            return None if now == before else now
        except (OSError, ValueError) as error:
            raise self._refused(key, error) from error

    def set(self, key: str, value: SettingValue) -> None:
        """Once every key is as at first, so is every byte, unless the owner has changed the file meanwhile.
        ChangeError."""
        try:
            (now, status), kept = self._now(), self._kept()
            if found(now, self._format, key) is None:
                raise ValueError("it has no such key")
            if not kept.exists() or self._values(_kept_text(kept)) == self._values(now):
                write_durably(kept, now)
            first, after = _kept_text(kept), edited(now, self._format, key, value)
            back = self._values(after) == self._values(first) and self._is_ours(now, first)
            self._folder.remove_torn()
            self._folder.replace(self._path.name, (first if back else after).encode(), like=status)
        except (OSError, ValueError) as error:
            raise self._refused(key, error) from error

    def done(self) -> None:
        """After the service has read it: drop the kept bytes where no key is changed. ChangeError."""
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
                made = edited(made, self._format, key, value)
        return made == now

    def _values(self, text: str) -> dict[str, SettingValue | None]:
        return {key: found(text, self._format, key) for key in self._keys}

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
        """From one descriptor: in another user's folder a link may replace the file at any moment."""
        data, status = self._folder.read_own(self._path.name, MOST_BYTES)
        return data.decode("utf-8"), status


def _kept_text(path: Path) -> str:
    data = read_up_to(path, MOST_BYTES)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return data.decode("utf-8")


def of_name(name: str) -> str:
    """The format of a file, by the ending of its name. ValueError for an unknown one."""
    known = ENDINGS.get(Path(name).suffix.lower())
    if known is None:
        raise ValueError(f"what format {name} has is not known; give `format`")
    return known


def edited(text: str, format_: str, key: str, value: SettingValue) -> str:
    """key: as "a.b.c". ValueError for another format, or without a place for the key."""
    editor = _EDITORS.get(format_)
    return _edit_lines(text, format_, key, value) if editor is None else editor(text, key, value)


def found(text: str, format_: str, key: str) -> SettingValue | None:
    """None where there is no such key, or no single value. ValueError as `edited`."""
    if format_ not in _TABLES:
        entry = _entry(_lines(text), format_, key)
        return entry[2][4].strip() if entry else None
    value = _pick(_TABLES[format_](text), key)
    return value if isinstance(value, str | bool | int | float) else None


def numbers(text: str, format_: str) -> dict[str, int]:
    """Every key whose value is a whole number above 0, with dots between its parts. ValueError as `edited`."""
    if format_ in ("ini", "properties"):
        entries = _in_order(_lines(text), format_)[::-1]  # of several of one key, keep the one that counts
        values = {_key(entry): whole(entry[2][4].strip()) or 0 for entry in entries}
        return {key: value for key, value in values.items() if value > 0}
    return dict(_numbers(_TABLES[format_](text), "", MOST_DEEP))


def _numbers(tables: Any, before: str, deep: int) -> Iterator[tuple[str, int]]:
    for name, value in tables.items() if isinstance(tables, dict) and deep else ():
        if not isinstance(name, str) or "." in name or not name:
            continue
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            yield f"{before}{name}", value
        yield from _numbers(value, f"{before}{name}.", deep - 1)


def _put(tables: Any, key: str, value: SettingValue) -> None:
    *path, last = parts_of(key)
    for part in path:
        tables = tables.setdefault(part, {}) if isinstance(tables, dict) else None
    if not isinstance(tables, dict):
        raise ValueError(f"{key} is below a single value")
    if isinstance(tables.get(last), dict | list):
        raise ValueError(f"{key} is a table or a list")
    tables[last] = value


def parts_of(key: str) -> list[str]:
    parts = key.split(".")
    if not all(parts):
        raise ValueError(f"the key {key!r} has an empty part")
    return parts


def _pick(tables: Any, key: str) -> Any:
    for part in parts_of(key):
        tables = tables.get(part) if isinstance(tables, dict) else None
    return tables


def _toml(text: str) -> Any:
    tomlkit = importlib.import_module(PACKAGES["toml"])
    try:
        parse_toml(text)  # it is stricter
        return tomlkit.parse(text)
    except (TomlError, tomlkit.exceptions.TOMLKitError) as error:
        raise ValueError(str(error)) from error


def _edit_toml(text: str, key: str, value: SettingValue) -> str:
    tomlkit, tables = importlib.import_module(PACKAGES["toml"]), _toml(text)
    try:
        _put(tables, key, value)
        written = str(tomlkit.dumps(tables))
    except tomlkit.exceptions.TOMLKitError as error:
        raise ValueError(str(error)) from error
    if _pick(_toml(written).unwrap(), key) != value:  # a table whose parts stand apart would get a second heading
        raise ValueError(f"{key} cannot be added: its table stands in several places of the file")
    return written


def _yaml(text: str) -> tuple[Any, Any]:
    yaml = importlib.import_module(PACKAGES["yaml"])
    round_trip = yaml.YAML(typ="rt")
    round_trip.preserve_quotes = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return round_trip, round_trip.load(text)
    except (yaml.YAMLError, Warning, *ITS_FAULTS) as error:
        raise ValueError(str(error)) from error


def _edit_yaml(text: str, key: str, value: SettingValue) -> str:
    round_trip, tables = _yaml(text)
    tables = {} if tables is None else tables
    _put(tables, key, value)
    out = io.StringIO()
    round_trip.dump(tables, out)
    return out.getvalue()


def _edit_json(text: str, key: str, value: SettingValue) -> str:
    _put(tables := _json(text), key, value)
    return json.dumps(tables, indent=2, ensure_ascii=False) + "\n"


def _json(text: str) -> Any:
    try:
        return parse_json(text)
    except JsonError as error:
        raise ValueError(str(error)) from error


def _edit_lines(text: str, format_: str, key: str, value: SettingValue) -> str:
    """INI: SECTION.KEY, or KEY before the first section. Properties: the whole key; a line whose end is escaped goes on
    in the next."""
    lines = _lines(text)
    if entry := _entry(lines, format_, key):
        first, _, parts = entry
        last = first
        while format_ == "properties" and _goes_on(lines[last]) and last + 1 < len(lines):
            last += 1
        # the line ends as it did
        line = f"{parts[1]}{parts[2]}{parts[3]}{_line(value)}" + ("\r" if parts[4].endswith("\r") else "")
        return _joined([*lines[:first], line, *lines[last + 1 :]], text)
    if format_ == "properties":
        return _joined([*lines, _added(f"{key}={_line(value)}", text)], text)
    section, _, name = key.rpartition(".")
    added, at, end = _added(f"{name} = {_line(value)}", text), "", None if section else 0
    for number, line in enumerate(lines, start=1):
        at = heading[1].strip() if (heading := SECTION.fullmatch(line)) else at
        end = number if at == section else end
    if end is None:
        return _joined([*lines, _added(f"[{section}]", text), added], text)
    return _joined([*lines[:end], added, *lines[end:]], text)


def _key(entry: Entry) -> str:
    _, section, parts = entry
    return f"{section}.{parts[2].strip()}" if section else parts[2].strip()


def _entry(lines: Sequence[str], format_: str, key: str) -> Entry | None:
    entries, (section, _, name) = _in_order(lines, format_), key.rpartition(".")
    of_section = (entry for entry in entries if entry[1] == section and entry[2][2].strip() == name)
    return next(of_section, None) or next((entry for entry in entries if _key(entry) == key), None)


def _in_order(lines: Sequence[str], format_: str) -> list[Entry]:
    """Of several of one key the one that counts comes first: the first in an INI file, the last in properties."""
    entries = list(_entries(lines, format_))
    return entries if format_ == "ini" else entries[::-1]


def _entries(lines: Sequence[str], format_: str) -> Iterator[Entry]:
    section = ""
    for number, line in enumerate(lines):
        if format_ == "ini" and (heading := SECTION.fullmatch(line)):
            section = heading[1].strip()
        elif format_ == "properties" and (line.lstrip().startswith("!") or (number and _goes_on(lines[number - 1]))):
            continue
        elif parts := LINE.fullmatch(line):
            yield number, section, parts


def _goes_on(line: str) -> bool:
    """A comment ends with its line."""
    text = line.rstrip("\r")
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1 and not text.lstrip().startswith(("#", "!"))


def _line(value: SettingValue) -> str:
    text = shown(value)
    if not text.isprintable():
        raise ValueError(f"{text!r} is more than a part of a line")
    return text


def _lines(text: str) -> list[str]:
    """At newlines alone: other characters at which Python would split lines are text."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines


def _added(line: str, text: str) -> str:
    return f"{line}\r" if "\r\n" in text else line


def _joined(lines: list[str], before: str) -> str:
    return "\n".join(lines) + ("\n" if not before or before.endswith("\n") else "")


_EDITORS: Mapping[str, Callable[[str, str, SettingValue], str]] = {
    "toml": _edit_toml,
    "yaml": _edit_yaml,
    "json": _edit_json,
}
_TABLES: Mapping[str, Callable[[str], Any]] = {
    "toml": lambda text: _toml(text).unwrap(),
    "yaml": lambda text: _yaml(text)[1],
    "json": _json,
}
