"""The settings of a target as data, and the check of their values. Values have one canonical form
(docs/writing-a-target.md), so that configured and effective values are compared by `==`."""

import difflib
import math
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from loadframe.errors import StudyError, check_all
from loadframe.formats.plain_numbers import finite, whole
from loadframe.formats.said import words
from loadframe.knowledge.rows import metric_rows, row_of, toml_rows
from loadframe.model import CounterSpec, SettingValue
from loadframe.switches import switch

Kind = Literal["integer", "number", "text", "boolean", "bytes", "duration"]
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
TIMES = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}
_SWITCH = {True: ["on", "true"], False: ["off", "false"]}
MB = 1 << 20
Per = Literal["server", "connection"]


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """low, high: None where the target has no bound that matters; -1 stands for a special value (off, automatic).
    dynamic: the running target accepts a new value. sized_at_start: at its start the target adapts this setting, or
    others, to the rest and to the process's limits; only a restart shows the effective value. gives_up: what may be
    lost with values that are not `safe`, by default the default alone. source: of low, high, choices and default. unit:
    of a duration. takes: the memory or disk space that its value takes, and when."""

    name: str
    kind: Kind
    dynamic: bool
    low: float | None = None
    high: float | None = None
    choices: tuple[str | int, ...] = ()
    default: SettingValue | None = None
    gives_up: str | None = None
    sized_at_start: bool = False
    source: str = ""
    unit: str = ""
    takes: str | None = None
    safe: Container[SettingValue] = ()

    def weakens(self, value: SettingValue) -> bool:
        return self.gives_up is not None and value not in (self.safe or (self.default,))


@dataclass(frozen=True, slots=True)
class Catalogue:
    kind: str
    specs: tuple[SettingSpec, ...]
    source: str

    def get(self, name: str) -> SettingSpec | None:
        return next((spec for spec in self.specs if spec.name == name), None)

    def spelt(self, name: str) -> SettingSpec | None:
        """The setting by its name in any spelling: some targets write capitals."""
        return next((spec for spec in self.specs if plain(spec.name) == plain(name)), None)

    def known(self, name: str) -> SettingSpec:
        spec = self.get(name)
        assert spec is not None, f"{name} is in the catalogue"
        return spec

    def names(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)

    def defaults(self) -> dict[str, SettingValue]:
        return {spec.name: spec.default for spec in self.specs if spec.default is not None}

    def needs_restart(self, name: str) -> bool:
        spec = self.get(name)
        return spec is None or not spec.dynamic or spec.sized_at_start

    def shown(self, name: str, text: str | None) -> SettingValue:
        """A reported value, canonical where the setting is known; None: its default (0 without one)."""
        spec = self.get(name)
        if text is None:
            return 0 if spec is None or spec.default is None else spec.default
        if spec is not None:
            try:
                return canonical(self.kind, spec, text)
            except StudyError:  # beyond its bounds (18446744073709551615 for "no limit"), yet true
                pass
        return as_shown(text)

    def check(self, settings: Mapping[str, SettingValue], also: Iterable[str] = ()) -> dict[str, SettingValue]:
        """The settings in canonical form. also: further names, passed on unchecked. StudyError for an unknown name, a
        value of the wrong kind or out of bounds."""
        others = frozenset(also)
        checked: dict[str, SettingValue] = {}

        def check_one(given: str, value: SettingValue) -> None:
            name = plain(given)
            if (spec := self.spelt(name)) is not None:
                checked[spec.name] = canonical(self.kind, spec, value)
            elif name in others:
                checked[name] = value
            else:
                spelt = {plain(known): known for known in (*self.names(), *others)}
                close = [spelt[spelling] for spelling in difflib.get_close_matches(name, spelt, n=3, cutoff=0.6)]
                remedy = f"Did you mean {' or '.join(close)}? " if close else ""
                fact = f"target.settings.{given}: {self.kind} has no such setting"
                raise StudyError(fact, remedy=f"{remedy}({self.source})")

        check_all(partial(check_one, given, value) for given, value in settings.items())
        return checked


def catalogue_in(*files: Path) -> Catalogue:
    """The catalogue in the [settings] of TOML files: rows with the columns of SettingSpec, where a text may be a name
    in [words]. Without a `kind` a row is a boolean by its default, a text by its choices, else an integer. The last
    file gives the kind of server, and the source of rows without one. ValueError, with file and row."""
    documents = [toml_rows(file) for file in files]
    last = documents[-1]
    specs = (
        _spec(f"{file.name}: {name}", name, row, document.get("source", last.get("source", "")), document)
        for file, document in zip(files, documents, strict=True)
        for name, row in document["settings"].items()
    )
    return Catalogue(last["kind"], tuple(specs), last.get("listed", ""))


def _spec(where: str, name: str, row: Mapping[str, Any], source: str, document: Mapping[str, Any]) -> SettingSpec:
    words: Mapping[str, str] = document.get("words", {})
    kind = "boolean" if isinstance(row.get("default"), bool) else "text" if "choices" in row else "integer"
    columns = {"kind": kind, "dynamic": True, "source": source.format(name=name), **row}
    if columns["kind"] not in _READERS:
        raise ValueError(f"{where}: kind is {columns['kind']!r}, not one of {', '.join(_READERS)}")
    columns |= {text: words.get(columns[text], columns[text]) for text in ("takes", "gives_up") if text in columns}
    if "safe_to" in columns:
        columns["safe"] = range(columns.pop("safe_to") + 1)
    if columns["kind"] == "bytes":
        columns |= {bound: sized(columns[bound]) for bound in ("low", "high", "default") if bound in columns}
    return row_of(SettingSpec, where, {"name": name, **columns})


def sized(value: Any) -> Any:
    """A size that may be written as 32M, in bytes; anything else unchanged."""
    is_sized = isinstance(value, str) and value[:-1].isdigit()
    return int(value[:-1]) * UNITS[value[-1]] if is_sized else value


def plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def on_or_off(value: SettingValue) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def differing(settings: Mapping[str, SettingValue], other: Mapping[str, SettingValue]) -> list[str]:
    """A missing setting has the target's default."""
    return [name for name in {**settings, **other} if settings.get(name) != other.get(name)]


def counters_in(file: Path, *sources: str, kind: str = "") -> dict[str, CounterSpec]:
    """From a table of metrics (name | unit | what | source, with the server's own name after the source where it
    differs): the counters of these sources (none: of all), by the server's own names. A unit per second means a counter
    that only grows; any other is a level. kind: for tables that kinds share."""
    counters: dict[str, CounterSpec] = {}
    rows = (row for row in metric_rows(file).splitlines() if row.count("|") == 3)
    for cells in ([cell.strip() for cell in row.split("|")] for row in rows):
        metric, unit, _, (of, _, own) = *cells[:3], cells[3].partition(" ")
        of_kind, _, name = metric.partition(".")
        if of in (sources or (of,)) and kind in ("", of_kind):
            counters[own or name] = CounterSpec(name, metric, cumulative=unit.endswith("/s"))
    return counters


def canonical(kind: str, spec: SettingSpec, value: SettingValue) -> SettingValue:
    """StudyError, with what would be right, for a value that the target does not accept."""
    is_number = spec.kind not in ("boolean", "text")
    read, right = _READERS[spec.kind]
    among = f"one of {', '.join(map(str, spec.choices))}"
    parsed = None if is_number and isinstance(value, bool) else read(spec, value)
    if parsed is None:
        right = among if spec.kind == "text" and spec.choices else right.format(unit=spec.unit)
    elif is_number and spec.choices and parsed not in spec.choices:
        right = among
    elif isinstance(parsed, str) or not is_number:
        return parsed
    else:
        low = -math.inf if spec.low is None else spec.low
        if low <= parsed <= (math.inf if spec.high is None else spec.high):
            return parsed
        right = f"from {spec.low}" if None in (spec.low, spec.high) else f"{spec.low} to {spec.high}"
    raise StudyError(
        f"{kind} does not accept target.settings.{spec.name} = {value!r}",
        remedy=f"Give {right}. (Source: {spec.source})" if spec.source else f"Give {right}.",
    )


def as_shown(text: str) -> SettingValue:
    """The value of an unknown setting: a whole number, or printable words."""
    number = whole(text)
    return words(text) if number is None else number


def _text(spec: SettingSpec, value: SettingValue) -> str | None:
    words = [value] if isinstance(value, str) else _SWITCH[value] if isinstance(value, bool) else [str(value)]
    if not spec.choices:
        return None if isinstance(value, int | float) and not isinstance(value, bool) else words[0] or None
    among = {word.strip().lower() for word in words}
    return next((str(choice) for choice in spec.choices if str(choice).lower() in among), None)


def _duration(spec: SettingSpec, value: SettingValue) -> float | None:
    written = re.fullmatch(r"(.*?) *(us|ms|s|min|h|d)?", str(value).strip())
    number = finite(written[1]) if written is not None else None
    if written is None or number is None:
        return None
    taken = number * (TIMES[written[2]] / TIMES[spec.unit]) if written[2] else number
    return int(taken) if math.isfinite(taken) and taken == int(taken) else taken


def _bytes(spec: SettingSpec, value: SettingValue) -> int | None:
    if spec.low == -1 and str(value).strip() == "-1":
        return -1
    size = re.fullmatch(r"([0-9]+) *([KMGTP]?)(?:i?B)?", str(value).strip(), re.I)
    number = whole(size[1]) if size is not None else None
    return None if size is None or number is None else number * UNITS[size[2].upper()]


_READERS: Mapping[Kind, tuple[Callable[[SettingSpec, SettingValue], SettingValue | None], str]] = {
    "boolean": (lambda _, value: switch(value), "true or false"),
    "text": (_text, "a word"),
    "integer": (lambda _, value: whole(str(value).strip()), "a whole number"),
    "number": (lambda _, value: finite(str(value)), "a number"),
    "duration": (_duration, 'a time such as "30s", or a number of {unit}'),
    "bytes": (_bytes, "a size in bytes, such as 134217728 or 128M"),
}


@dataclass(frozen=True, slots=True)
class Tunable:
    """How far a setting may be varied: over these values, or from low to high in equal ratios. high: None is half of
    the machine's memory. relaxed: values that give up durability. unit_bytes: memory that each unit of the value takes,
    per server or per connection. without_effect: settings with any of which this one has no effect."""

    name: str
    values: tuple[SettingValue, ...] = ()
    low: float = 0
    high: float | None = 0
    relaxed: tuple[SettingValue, ...] = ()
    unit_bytes: float = 0
    per: Per = "server"
    without_effect: tuple[str, ...] = ()


def tunables_in(file: Path) -> tuple[Tunable, ...]:
    """The [tune] table of our TOML file, the most promising first. A size may be written as 32M, and the largest as
    "half of memory"."""
    tunables = []
    for name, row in toml_rows(file).get("tune", {}).items():
        columns = {column: None if value == "half of memory" else sized(value) for column, value in row.items()}
        tunables.append(row_of(Tunable, f"{file.name}: [tune] {name}", {"name": name, **columns}))
    return tuple(tunables)
