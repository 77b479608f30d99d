"""Settings of the machine that a study may change: the kernel's, in /proc/sys and /sys. A setting has sysctl's name
("vm.dirty_ratio"), or one of ours for a file of sysfs ("block.vda.scheduler"); `*` stands for all CPUs or disks. Only
what is in host_settings.txt can be changed: what affects performance, takes effect at once, and can be reverted."""

import difflib
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from loadframe.errors import ChangeError, StudyError
from loadframe.formats.plain_numbers import whole
from loadframe.model import SettingValue
from loadframe.system.kernel import kernel_text
from loadframe.system.trees import closing

ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class HostSetting:
    """path: of its file; "" for sysctl's. low, high: of a number; without low the value is a word that the kernel
    offers. ceiling: others rely on it, so it may only be raised. ruled_by: the setting in force while this one reads 0;
    writing this one would clear it. moves: what the kernel changes along with it. offers: the file with the words,
    where its own does not list them."""

    name: str
    source: str
    low: int | None = None
    high: int | None = None
    path: str = ""
    ceiling: bool = False
    ruled_by: str = ""
    moves: str = ""
    offers: str = ""


def _catalogue() -> Iterator[HostSetting]:
    for line in kernel_text(Path(__file__).with_name("host_settings.txt")).splitlines():
        name, span, more, source = (cell.strip() for cell in line.split("|"))
        low, high = map(int, span.split("..")) if span[:1].isdigit() else (None, None)
        given = dict(word.partition("=")[::2] for word in more.split())
        if not name.startswith("#"):
            named = {key: given.get(key, "") for key in ("path", "ruled_by", "offers", "moves")}
            yield HostSetting(name, source, low, high, ceiling="ceiling" in given, **named)


CATALOGUE = tuple(_catalogue())


class Host:
    words = "this machine"

    def __init__(self, root: Path | None = None) -> None:
        """root: default /; a recorded or synthetic tree in tests."""
        self._root = ROOT if root is None else root
        self.address: Mapping[str, str] = {"kind": "host", "root": str(self._root)}

    def check(self, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """With each `*` expanded to every CPU or disk, numbers as numbers. StudyError for an unknown setting or an
        invalid value, ChangeError for a setting that this machine lacks or that we may not change."""
        return {name: self._checked(name, value) for given, value in settings.items() for name in self._named(given)}

    def read(self, name: str) -> SettingValue:
        return _value(self._text(self._file(name), name))

    def write(self, name: str, value: SettingValue) -> None:
        try:
            with closing(os.open(self._file(name), os.O_WRONLY | os.O_CLOEXEC)) as descriptor:
                os.write(descriptor, f"{value}\n".encode())
        except OSError as error:
            raise ChangeError(f"{name} cannot be set to {value}: {error.strerror}", remedy=RIGHTS) from error

    def moves(self, name: str) -> tuple[str, ...]:
        row, piece = _row(name)
        other = row.moves.replace("*", piece)
        return (other,) if other and self._file(other).exists() else ()

    def _named(self, given: str) -> list[str]:
        row, _ = _row(given)
        if "*" not in given:
            return [given]
        before, _, after = row.path.partition("*")
        paths = sorted(str(path.relative_to(self._root)) for path in self._root.glob(row.path))
        if not paths:
            raise ChangeError(f"{given}: this machine has none ({row.path})", remedy="Omit it.")
        return [row.name.replace("*", path[len(before) : len(path) - len(after)]) for path in paths]

    def _checked(self, name: str, value: SettingValue) -> SettingValue:
        row, piece = _row(name)
        file = self._file(name)
        now = _value(self._text(file, name))
        if not os.access(file, os.W_OK):
            raise ChangeError(f"{name} cannot be changed: {file} is not writable for this user", remedy=RIGHTS)
        if row.low is None:
            offered = self._text(self._root / row.offers.replace("*", piece) if row.offers else file, name)
            words = offered.replace("[", "").replace("]", "").split()
            if str(value) not in words:
                raise _wrong(name, value, f"one of {', '.join(words)}", row)
            return str(value)
        number = None if isinstance(value, bool) else whole(str(value).strip())
        if number is None or not row.low <= number <= (row.high or number):
            raise _wrong(name, value, f"{row.low} to {row.high}", row)
        if row.ceiling and isinstance(now, int) and number < now:
            raise _wrong(name, value, f"{now}, as it is now, or more: others on this machine rely on it", row)
        if row.ruled_by and now == 0 and (rules := _value(self._text(self._sysctl(row.ruled_by), row.ruled_by))) != 0:
            raise ChangeError(
                f"{name} is not in use on this machine: {row.ruled_by} = {rules} is, and would be lost",
                remedy="Omit it.",
            )
        return number

    def _file(self, name: str) -> Path:
        row, piece = _row(name)
        return self._root / row.path.replace("*", piece) if row.path else self._sysctl(name)

    def _sysctl(self, name: str) -> Path:
        return self._root / "proc/sys" / name.replace(".", "/")

    def _text(self, file: Path, name: str) -> str:
        try:
            return kernel_text(file).partition("\n")[0]
        except OSError as error:
            raise ChangeError(
                f"{name} is not available on this machine:  {file}: {error.strerror}", remedy="Omit it."
            ) from error


def command(name: str, value: SettingValue) -> str:
    """The root command that sets it. StudyError as `Host.check`."""
    row, piece = _row(name)
    if row.path:
        return f"echo {shlex.quote(str(value))} > {shlex.quote('/' + row.path.replace('*', piece))}"
    return f"sysctl -w {shlex.quote(f'{name}={value}')}"


RIGHTS = "Only root may change settings of the machine, and in a container not all of them; otherwise omit it."


def _row(name: str) -> tuple[HostSetting, str]:
    """The row, and what its `*` stands for. StudyError for an unknown one."""
    for row in CATALOGUE:
        if fnmatchcase(name, row.name) and "/" not in name:
            before, _, after = row.name.partition("*")
            return row, name[len(before) : len(name) - len(after)]
    close = difflib.get_close_matches(name, [row.name for row in CATALOGUE], n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(close)}? " if close else ""
    raise StudyError(
        f"host.settings: {name!r} is not a machine setting that Loadframe can change",
        remedy=f"{hint}docs/changes.md lists them.",
    )


def _value(text: str) -> SettingValue:
    """The bracketed word of a file's choices, else all of it."""
    chosen = re.search(r"\[(\S+)\]", text)
    word = chosen[1] if chosen else text.strip()
    return int(word) if re.fullmatch(r"-?[0-9]+", word) else word


def _wrong(name: str, value: SettingValue, right: str, row: HostSetting) -> StudyError:
    return StudyError(f"host.settings: {name} = {value!r} will not do", remedy=f"Give {right}. (Source: {row.source})")
