"""The settings of MySQL Cluster by section of config.ini, from settings.toml, and the form of their values there."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from loadframe.formats.plain_numbers import whole
from loadframe.kinds.catalogue import Kind, SettingSpec
from loadframe.model import SettingValue

NodeValue = int | bool | str
Type = Literal["integer", "bytes", "boolean", "word", "text", "cpus"]
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
TRUE = frozenset({"Y", "y", "Yes", "YES", "yes", "True", "TRUE", "true", "1"})
FALSE = frozenset({"N", "n", "No", "NO", "no", "False", "FALSE", "false", "0"})
LARGEST_CPU = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(SettingSpec):
    """type: its form in config.ini. unit: of a number, "" for a count. restart: what has to be restarted for a new
    value, a key of RESTARTS. first: what must be changed before a value is accepted or has an effect. deprecated: it is
    still read. ours: a private cluster takes none from a study."""

    section: str
    type: Type
    restart: str
    deprecated: bool
    ours: bool
    first: str = ""

    def read(self, text: str) -> NodeValue:
        """A value as config.ini writes it. ValueError says what would be right."""
        match self.type:
            case "boolean":
                if text not in TRUE | FALSE:
                    raise ValueError("1 or 0, Y or N, true or false")
                return text in TRUE
            case "integer" | "bytes":
                return self._number(text)
            case "word":
                for choice in self.choices:
                    if str(choice).lower() == text.lower():
                        return choice
                raise ValueError(f"one of {self.range_words()}")
            case "cpus":
                read_cpus(text)
        return text

    def range_words(self) -> str:
        """Its values in words: "2 to 72", "1M to 16384G", "Default, Disabled, WaitExternal"; "" for any text."""
        match self.type:
            case "boolean":
                return "true, false"
            case "cpus":
                return "CPU numbers such as 0-3,6"
        if self.choices:
            return ", ".join(map(str, self.choices))
        if self.low is None or self.high is None:
            return "" if self.type == "text" else "a number"
        return f"{self.show(self.low)} to {self.show(self.high)}"

    def show(self, value: SettingValue) -> str:
        """Bytes in the largest unit that divides them."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if self.type != "bytes" or not isinstance(value, int) or not value:
            return str(value)
        unit = next(unit for unit, factor in reversed(UNITS.items()) if value % factor == 0)
        return f"{value // UNITS[unit]}{unit}"

    def _number(self, text: str) -> int:
        # ndb_mgmd ignores what comes after the unit ("16MB"), and knows k but neither m nor g
        written = re.fullmatch(r"([0-9]+)\s*(?:([kKMG])\w*)?", text)
        count = whole(written[1]) if written else None
        number = None if written is None or count is None else count * UNITS[(written[2] or "").upper()]
        if self.choices and number not in self.choices:
            raise ValueError(f"one of {self.range_words()}")
        if number is None:
            raise ValueError("a whole number, perhaps with K, M or G behind it (capitals)")
        if (self.low is not None and number < self.low) or (self.high is not None and number > self.high):
            raise ValueError(f"{self.range_words()}{' ' * bool(self.unit)}{self.unit}")
        return number


def read_cpus(text: str) -> frozenset[int]:
    """CPU numbers from a list such as "0-3, 6". ValueError for anything else, and for numbers above 65535."""
    cpus: set[int] = set()
    for part in text.split(","):
        span = re.fullmatch(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?", part)
        first, last = (whole(span[1]), whole(span[2] or span[1])) if span else (1, 0)
        if first is None or last is None or first > last:
            raise ValueError("CPU numbers such as 0-3,6")
        if last > LARGEST_CPU:
            raise ValueError(f"CPU numbers up to {LARGEST_CPU}")
        cpus.update(range(first, last + 1))
    return frozenset(cpus)


MANUAL = "MySQL 8.4 Reference Manual, "
MOST = 4294967039
"""0xFFFFFEFF, the largest value of most numbers."""
RESTARTS = {
    "N": "the nodes, in turn",
    "S": "the whole cluster",
    "IN": "the nodes, in turn, each with --initial",
    "IS": "the whole cluster, its data restored from a backup",
    "": "not said",
}
"""What has to be restarted for a new value (manual, table 25.15)."""

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8", errors="strict"))
MEMORY: Mapping[str, int] = _FILE["memory"]
"""Bytes of memory in a data node, for each unit of a setting."""
PER_PART = "RedoBuffer"
"""Bytes for each part of the redo log (ndbd.cpp)."""

TAKES: Mapping[str, str] = {
    **{name: "this much memory" for name, size in MEMORY.items() if size == 1},
    **{name: f"{size:,} bytes of memory each" for name, size in MEMORY.items() if size > 1},
    **_FILE["takes"],
}
GIVES_UP: Mapping[str, str] = {**_FILE["gives_up"], **_FILE["larger_gives_up"]}
FIRST: Mapping[str, str] = _FILE["first"]


def _table(section: str, source: str, rows: str, restart: str = "") -> Mapping[str, Setting]:
    cells = ([*map(str.strip, row.split("|")), restart][:4] for row in rows.splitlines())
    settings = (_row(section, source, *row) for row in cells)
    return {setting.name.lower(): setting for setting in settings}


def _row(section: str, source: str, name: str, values: str, default: str, restart: str) -> Setting:
    type_, low, high, choices, unit = _VALUES.fullmatch(values).groups()  # type: ignore[union-attr]
    plain, numbers = name.rstrip("*!"), type_ in ("integer", "bytes")
    of_data_node = section == "ndbd"
    setting = Setting(
        name=plain,
        kind=cast(Kind, type_) if numbers or type_ == "boolean" else "text",
        dynamic=False,
        low=_bound(low),
        high=_bound(high),
        choices=tuple(int(word) if numbers else word for word in (choices or "").split()),
        gives_up=GIVES_UP.get(plain) if of_data_node else None,
        source=source,
        unit=unit or "",
        takes=TAKES.get(plain) if of_data_node else None,
        section=section,
        type=cast(Type, type_),
        restart=restart,
        deprecated="*" in name,
        ours="!" in name,
        first=FIRST.get(plain, "") if of_data_node else "",
    )
    setting = replace(setting, default=setting.read(default)) if default else setting
    if plain not in _FILE["larger_gives_up"] or setting.low is None:
        return setting
    return replace(setting, safe=range(int(setting.low), int(setting.default or 0) + 1))


_VALUES = re.compile(r"(\w+)(?: (\w+)\.\.(\w+))?(?: {(.*)})?(?: (\w+))?")


def _bound(word: str | None) -> int | None:
    if word is None:
        return None
    return MOST if word == "MOST" else int(word.rstrip("KMG")) * UNITS[word.lstrip("0123456789")]


SETTINGS = {section: _table(section, **table) for section, table in _FILE["section"].items()}
"""All settings, by kind of section and name in small letters."""

POOL, POOL_MOST = "ndb_cluster_connection_pool", 63
"""A MySQL server's own option, 1 by default: its connections to the cluster, each a node (manual, 25.4.3.9.1)."""
