"""Every metric by its name. Names follow OpenTelemetry's semantic conventions where they exist (conventions.txt); those
of one component of the study begin with the component (`target.`, `driver.`, `recorder.`, and `loader.`, `shard1.`, ...
of a target in several pieces); server counters with the kind of the server (`kinds/NAME/metrics.txt`). Shares are 0..1,
rates are per second, `cores` are CPU-seconds per second."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from loadframe.knowledge.families import FAMILIES
from loadframe.knowledge.kinds import rows, tables
from loadframe.metrics import exposed

IN_FRONT: tuple[str, ...] = tuple(chain.from_iterable(rows("metrics", "IN_FRONT", str).values()))
"""Components in front of a target's shards; each has a cage with limits of its own."""
MOST_SHARDS = 16
"""Enough for any machine that one command measures."""
OF_EACH_COMPONENT = tuple(
    f"target.{part}"
    for part in (
        *("cage.", "cpu.", "processes.", "threads.", "open_files", "memory.rss", "io.", "paging.", "context_switches."),
        *("waits.", "peers.", "served.", "accept_queue", "runtime."),
    )
)
"""Beginnings of names that the recorder has for every component, written for the target."""


@dataclass(frozen=True, slots=True)
class Metric:
    """name: as in Step.metrics. unit: as units.show takes it. what: one line for people."""

    name: str
    unit: str
    what: str

    @property
    def alone(self) -> str:
        """Where no column marks it as a share."""
        return f"share {self.what}" if self.what.startswith("of the ") else self.what


def _table(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8", errors="strict")


def _cells(table: str) -> list[list[str]]:
    lines = (line for line in table.splitlines() if line and not line.startswith("#"))
    return [[cell.strip() for cell in line.split("|")] for line in lines]


METRICS: dict[str, Metric] = {}


def register(rows: str, component: str = "", words: str = "") -> None:
    """Rows of name | unit | what. component: prefix of the names; words: for {}. ValueError for a known name."""
    for end, unit, what, *_ in _cells(rows):
        name, what = f"{component}{end}", what.replace("{}", words) if component else what
        if name in METRICS:
            raise ValueError(f"the metric {name} is registered twice")
        METRICS[name] = Metric(name, unit, what)


for _rows in (_table("metrics.txt"), *tables("metrics", "ROWS", str).values()):
    register(_rows)
register(_table("cage_metrics.txt"), "target.", "the target")
register(_table("cage_metrics.txt"), "driver.", "the load driver")
_pieces = {f"shard{number}": f"shard {number}" for number in range(1, MOST_SHARDS + 1)}
_pieces |= {name: f"the {name}" for name in IN_FRONT}
_whole = [row for row in METRICS.values() if row.name.startswith(OF_EACH_COMPONENT)]
for _piece, _words in _pieces.items():
    for _row in _whole:
        _name = _row.name.replace("target", _piece, 1)
        METRICS[_name] = Metric(_name, _row.unit, _row.what.replace("the target", _words))

_NAME = r"[a-z][a-z0-9_-]*"
_PARTS = {"component": _NAME, "program": _NAME, "peer": ".+", "name": r"[A-Za-z][A-Za-z0-9_-]{0,39}"}
_WORDS = {"component": {"target": "the target", "driver": "the load driver"}, "peer": {"others": "all others together"}}


def _families() -> dict[str, list[tuple[re.Pattern[str], Metric]]]:
    """By what follows the last dot of a name; a group for each part in braces."""
    by_end: dict[str, list[tuple[re.Pattern[str], Metric]]] = {}
    tables = "\n".join([_table("families.txt"), *(family.rows for family in FAMILIES.values())])
    for name, unit, what in _cells(tables):
        form = name.replace(".", r"\.").format_map({part: f"(?P<{part}>{text})" for part, text in _PARTS.items()})
        by_end.setdefault(name.rpartition(".")[2], []).append((re.compile(form, re.ASCII), Metric(name, unit, what)))
    return by_end


_FAMILIES = _families()


@cache
def _family_of(name: str) -> tuple[Metric, Mapping[str, str]] | None:
    for form, row in _FAMILIES.get(name.rpartition(".")[2], ()):
        if (match := form.fullmatch(name)) is not None:
            return row, match.groupdict()
    return None


def parts_of(name: str) -> Mapping[str, str]:
    """The component, peer, program or name in the name of a family's metric."""
    family = _family_of(name)
    return {} if family is None else family[1]


def metric(name: str) -> Metric:
    """An unknown one is described by its name."""
    return METRICS.get(name) or _by_its_name(name) or Metric(name, "", name)


def is_known(name: str) -> bool:
    return name in METRICS or _by_its_name(name) is not None


@cache
def _by_its_name(name: str) -> Metric | None:
    if name.startswith(exposed.OF):
        return Metric(name, exposed.unit_of(name), exposed.what_of(name))
    if (family := _family_of(name)) is not None:
        row, parts = family
        words = {part: _WORDS.get(part, {}).get(text, text) for part, text in parts.items()}
        return Metric(name, row.unit, row.what.format_map(words))
    component, _, rest = name.partition(".")
    whole = METRICS.get(f"target.{rest}")
    if whole is None or not whole.name.startswith(OF_EACH_COMPONENT) or not re.fullmatch(_NAME, component):
        return None
    return Metric(name, whole.unit, whole.what.replace("the target", _WORDS["component"].get(component, component)))
