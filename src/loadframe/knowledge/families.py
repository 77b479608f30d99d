"""Families of metrics, which other distributions bring: what programs report about themselves while a load runs."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from loadframe.entry_points import FAMILIES_GROUP, Flaw, Registry
from loadframe.knowledge.kinds import OURS, PLAIN
from loadframe.knowledge.rows import LimitRule
from loadframe.knowledge.signature import Trace


@dataclass(frozen=True, slots=True)
class Family:
    """kind: what the names of its metrics begin with, before the first dot. rows: `KIND.{name}.END | unit | what`.
    in_window: of a metric and its readings (time in s, value) in a window: values that replace or complete the largest
    one. derived: what follows from the values of a window or a moment. limits: rules, by the metrics that were read.
    trace: of one of its causes. in_series: all work passes through each of its causes: where a remedy gives nothing,
    the next may limit, so it refutes none; and less for the one that limits must cost. The others are modules, imported
    where they are used; tail: its `Tail` follows files (bench.loading.Tail); causes: diagnosis.findings.Causes; report:
    reporting.plots.Part."""

    kind: str
    rows: str
    in_window: Callable[[str, Sequence[tuple[float, float]]], Mapping[str, float]] = lambda _metric, _readings: {}
    derived: Callable[[Mapping[str, float]], Mapping[str, float]] = lambda _values: {}
    limits: Callable[[Collection[str]], Sequence[LimitRule]] = lambda _there: ()
    trace: Callable[[str], Trace | None] = lambda _cause: None
    in_series: bool = False
    tail: str = ""
    causes: str = ""
    report: str = ""


def flaw_of(family: Family) -> Flaw | None:
    if family.kind in OURS or PLAIN.fullmatch(family.kind) is None:
        return Flaw(f"its metrics cannot begin with {family.kind!r}: that is Loadframe's own, or no name")
    form = re.compile(rf"{re.escape(family.kind)}\.\{{name\}}\.\w+ *\|[^|]+\|[^|]+")
    wrong = next((row for row in family.rows.splitlines() if row and form.fullmatch(row) is None), None)
    return None if wrong is None else Flaw(f"{wrong!r} is not `{family.kind}.{{name}}.END | unit | what`")


FAMILIES = Registry(FAMILIES_GROUP, Family, tuple, flaw_of)


def family_of(name: str) -> Family | None:
    """name: of a metric, a limit or a cause."""
    return FAMILIES.get(name.partition(".")[0])


def in_series(cause: str) -> bool:
    family = family_of(cause)
    return family is not None and family.in_series


def derived(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for family in FAMILIES.values() for name, value in family.derived(values).items()}


def modules(part: Literal["tail", "causes", "report"]) -> list[Any]:
    return [import_module(module) for family in FAMILIES.values() if (module := getattr(family, part))]
