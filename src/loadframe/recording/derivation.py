"""One derivation of every number: what a source says -> a reading -> metrics.

A row of a table says what one reading tells (levels) and what two of them tell (rates). A window, the series of a
recording and the ledger at this moment are three ways to choose readings, and nothing else:

- a window takes rates between its two edges, and puts the levels of all its readings together (AVERAGE, LOWEST, LATEST;
  else the largest);
- a series takes rates since the reading before, and each level as it is;
- a moment takes rates between two looks, and the levels of the later one.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from loadframe.errors import RecordingError

Metrics = dict[str, float]
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
"""Of this machine."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """source: its name in a recording; one star stands for any part of a name, and what all of these say, in the order
    of their names, is one text. beside: sources that are recorded more seldom, whose text as last heard belongs to it.
    parse: its text, then theirs (empty for one not heard of). levels: the metrics of one reading; rates: of two and the
    seconds between them (> 0). Each function raises RecordingError where what it needs is missing or went back, and has
    no say in what the others tell."""

    source: str
    parse: Callable[..., Any]
    levels: Sequence[Callable[[Any], Metrics]] = ()
    rates: Sequence[Callable[[Any, Any, float], Metrics]] = ()
    beside: Sequence[str] = ()

    def text(self, entries: Mapping[str, bytes]) -> bytes | None:
        """What it said at a tick; None where it said nothing."""
        if "*" not in self.source:
            return entries.get(self.source)
        before, _, behind = self.source.partition("*")
        names = sorted(name for name in entries if name.startswith(before) and name.endswith(behind))
        return b"\n".join(entries[name] for name in names) if names else None

    def reading(self, entries: Mapping[str, bytes]) -> Any:
        """What it said at a tick, the sources beside it among the entries. RecordingError where it said nothing, or
        something damaged."""
        text = self.text(entries)
        if text is None:
            raise RecordingError(f"{self.source} was not recorded.")
        return self.parse(text, *[entries.get(name, b"") for name in self.beside])

    def at(self, reading: object, page_bytes: int) -> Metrics:
        """What one reading tells, of a machine with pages of this size."""
        return _in_bytes(gather(partial(part, reading) for part in self.levels), page_bytes) if self.levels else {}

    def between(self, first: object, last: object, elapsed_s: float) -> Metrics:
        """What two readings tell."""
        return gather(partial(part, first, last, elapsed_s) for part in self.rates) if self.rates else {}

    def looks(
        self, before: Mapping[str, bytes], after: Mapping[str, bytes], elapsed_s: float
    ) -> tuple[Metrics, list[RecordingError]]:
        """What two looks at this machine tell, the levels of the later one, and why the rest is not told; no rates of
        looks at one moment."""
        try:
            first, last = self.reading(before), self.reading(after)
        except RecordingError as error:
            return {}, [error]
        parts = [partial(part, last) for part in self.levels]
        if elapsed_s > 0:
            parts += [partial(part, first, last, elapsed_s) for part in self.rates]
        found, reasons = collect(parts)
        return _in_bytes(found, PAGE_BYTES), reasons


class Track:
    """The same sources at one tick after the other: a series."""

    def __init__(self, rows: Sequence[Derivation], page_bytes: int) -> None:
        self._rows = rows
        self._page_bytes = page_bytes
        self._beside = {name for row in rows for name in row.beside}
        self._heard: dict[str, bytes] = {}
        self._before: dict[str, tuple[float, Any]] = {}

    def step(self, at_s: float, entries: Mapping[str, bytes]) -> Metrics:
        """What a tick tells, with the reading of each source before it, however many ticks ago."""
        self._heard |= {name: entries[name] for name in self._beside & entries.keys()}
        texts = {**self._heard, **entries} if self._heard else entries
        found: Metrics = {}
        for row in self._rows:
            if row.source not in entries and "*" not in row.source:
                continue
            try:
                reading = row.reading(texts)
            except RecordingError:  # absent, or damaged: as if it had said nothing
                continue
            found |= row.at(reading, self._page_bytes)
            before = self._before.get(row.source)
            self._before[row.source] = at_s, reading
            if before is not None and at_s > before[0]:
                found |= row.between(before[1], reading, at_s - before[0])
        return found


AVERAGE = frozenset(
    {"system.processes.running", "system.processes.blocked", "system.cpu.frequency"}
    | {f"threads.{state}" for state in ("running", "blocked", "sleeping")}
)
LOWEST = frozenset({"system.memory.available"})
LATEST = frozenset(
    {"system.cpu.count", "system.memory.limit", "system.files.limit", "system.network.local_ports.limit"}
    | {f"cage.{name}" for name in ("cpu.limit", "memory.peak", "memory.limit", "pids.limit")}
)
IN_PAGES = frozenset({"system.network.tcp_memory"})
"""Levels that the kernel tells in pages."""


def put_together(metric: str, values: Sequence[float]) -> float:
    """A level over a window, from all its values there."""
    if metric in AVERAGE:
        return sum(values) / len(values)
    return values[-1] if metric in LATEST else min(values) if metric in LOWEST else max(values)


def growth(first: float, last: float) -> float:
    """last - first of a counter. RecordingError where it went back: it was reset, and the difference means nothing."""
    if last < first:
        raise RecordingError(f"A counter went back from {first} to {last}.")
    return last - first


def collect(groups: Iterable[Callable[[], Metrics]]) -> tuple[Metrics, list[RecordingError]]:
    """The metrics of all groups, and why some give none: what is missing or damaged is absent rather than wrong."""
    metrics: Metrics = {}
    reasons: list[RecordingError] = []
    for group in groups:
        try:
            metrics.update(group())
        except RecordingError as error:
            reasons.append(error)
    return metrics, reasons


def gather(groups: Iterable[Callable[[], Metrics]]) -> Metrics:
    """The metrics of all groups."""
    return collect(groups)[0]


def _in_bytes(found: Metrics, page_bytes: int) -> Metrics:
    return found | {metric: page_bytes * found[metric] for metric in IN_PAGES & found.keys()}
