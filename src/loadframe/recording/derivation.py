"""The one derivation of every number: text of a source -> reading -> metrics. A window takes rates between its edges,
and combines the levels of its readings; a series takes rates since the reading before, and each level as it is; the
ledger takes rates between two looks, and the levels of the later one."""

import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from loadframe.errors import RecordingError
from loadframe.recording.frames import Entries, Facts, Tick

Metrics = dict[str, float]
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Derivation:
    """source: in a star's place stands any part of a name: all matches, in the order of their names, are one text.
    slower: sources that are recorded less often. parse: takes its text, then the latest of theirs (empty if not
    recorded yet). levels: metrics of one reading; rates: of two and the seconds between them (> 0). Each raises
    RecordingError if what it needs is missing or went back, without affecting the others."""

    source: str
    parse: Callable[..., Any]
    levels: Sequence[Callable[[Any], Metrics]] = ()
    rates: Sequence[Callable[[Any, Any, float], Metrics]] = ()
    slower: Sequence[str] = ()

    def text(self, entries: Entries) -> bytes | None:
        if "*" not in self.source:
            return entries.get(self.source)
        before, _, behind = self.source.partition("*")
        names = sorted(name for name in entries if name.startswith(before) and name.endswith(behind))
        return b"\n".join(entries[name] for name in names) if names else None

    def reading(self, entries: Entries) -> Any:
        text = self.text(entries)
        if text is None:
            raise RecordingError(f"{self.source} was not recorded.")
        return self.parse(text, *[entries.get(name, b"") for name in self.slower])

    def at(self, reading: object, page_bytes: int) -> Metrics:
        return _in_bytes(gather(partial(part, reading) for part in self.levels), page_bytes) if self.levels else {}

    def between(self, first: object, last: object, elapsed_s: float) -> Metrics:
        return gather(partial(part, first, last, elapsed_s) for part in self.rates) if self.rates else {}

    def looks(self, before: Entries, after: Entries, elapsed_s: float) -> tuple[Metrics, list[RecordingError]]:
        """The metrics of two looks at this machine, and why others are missing; no rates if both are of one moment."""
        try:
            first, last = self.reading(before), self.reading(after)
        except RecordingError as error:
            return {}, [error]
        parts = [partial(part, last) for part in self.levels]
        if elapsed_s > 0:
            parts += [partial(part, first, last, elapsed_s) for part in self.rates]
        metrics, reasons = collect(parts)
        return _in_bytes(metrics, PAGE_BYTES), reasons


class Track:
    def __init__(self, rows: Sequence[Derivation], page_bytes: int) -> None:
        self._rows = rows
        self._page_bytes = page_bytes
        self._slower = {name for row in rows for name in row.slower}
        self._heard: dict[str, bytes] = {}
        self._before: dict[str, tuple[float, Any]] = {}

    def step(self, at_s: float, entries: Entries) -> Metrics:
        """With the latest earlier reading of each source."""
        self._heard |= {name: entries[name] for name in self._slower & entries.keys()}
        texts = {**self._heard, **entries} if self._heard else entries
        metrics: Metrics = {}
        for row in self._rows:
            if row.source not in entries and "*" not in row.source:
                continue
            try:
                reading = row.reading(texts)
            except RecordingError:  # absent, or damaged: as if it was not recorded
                continue
            metrics |= row.at(reading, self._page_bytes)
            before = self._before.get(row.source)
            self._before[row.source] = at_s, reading
            if before is not None and at_s > before[0]:
                metrics |= row.between(before[1], reading, at_s - before[0])
        return metrics


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


def put_together(metric: str, values: Sequence[float]) -> float:
    if metric in AVERAGE:
        return sum(values) / len(values)
    return values[-1] if metric in LATEST else min(values) if metric in LOWEST else max(values)


def growth(first: float, last: float) -> float:
    """The growth of a counter. RecordingError if it went back, that is, was reset."""
    if last < first:
        raise RecordingError(f"A counter went back from {first} to {last}.")
    return last - first


def rates_of(metrics: Mapping[str, Sequence[str]], unit: float = 1.0) -> Callable[..., Metrics]:
    """Per second, in this unit, over the names of a metric that both readings have."""

    def between(first: Mapping[str, int], last: Mapping[str, int], elapsed_s: float) -> Metrics:
        rates = {}
        for metric, names in metrics.items():
            there = [name for name in names if name in first and name in last]
            if there:
                rates[metric] = sum(growth(first[name], last[name]) for name in there) / unit / elapsed_s
        return rates

    return between


def rate_of(metric: str, unit: float = 1.0) -> Callable[[float, float, float], Metrics]:
    return lambda first, last, elapsed_s: {metric: growth(first, last) / unit / elapsed_s}


def levels_of(metrics: Mapping[str, str]) -> Callable[[Mapping[str, int]], Metrics]:
    return lambda numbers: {metric: numbers[name] for metric, name in metrics.items() if name in numbers}


def collect(groups: Iterable[Callable[[], Metrics]]) -> tuple[Metrics, list[RecordingError]]:
    metrics: Metrics = {}
    reasons: list[RecordingError] = []
    for group in groups:
        try:
            metrics.update(group())
        except RecordingError as error:
            reasons.append(error)
    return metrics, reasons


def gather(groups: Iterable[Callable[[], Metrics]]) -> Metrics:
    return collect(groups)[0]


def _in_bytes(metrics: Metrics, page_bytes: int) -> Metrics:
    return metrics | {metric: page_bytes * metrics[metric] for metric in IN_PAGES & metrics.keys()}


@dataclass(frozen=True, slots=True)
class Window:
    """ticks: of the schedule, within start_s..end_s, at least two. around: all given ticks, in time order, for what is
    recorded only once per second."""

    start_s: float
    end_s: float
    ticks: Sequence[Tick]
    around: Sequence[Tick]

    @property
    def elapsed_s(self) -> float:
        return self.ticks[-1].monotonic_s - self.ticks[0].monotonic_s

    @property
    def facts(self) -> Facts:
        return self.ticks[0].facts

    def readings(self, row: Derivation) -> list[Any]:
        """Readings at each tick of the window that has the source, else at the nearest. RecordingError."""
        having = [tick for tick in self.ticks if row.text(tick.entries) is not None]
        if not having:
            around = [tick for tick in self.around if row.text(tick.entries) is not None]
            if not around:
                raise RecordingError(f"{row.source} was not recorded.")
            having = [min(around, key=lambda tick: max(self.start_s - tick.monotonic_s, tick.monotonic_s - self.end_s))]
        return [row.reading(tick.entries) for tick in having]

    def pair(self, row: Derivation) -> tuple[Any, Any, float]:
        """Readings at the window's edges, or nearest to them, and the seconds between. RecordingError."""
        first, last = self.ticks[0], self.ticks[-1]
        if row.text(first.entries) is None or row.text(last.entries) is None:
            having = [tick for tick in self.around if row.text(tick.entries) is not None]
            chosen = nearest_pair([tick.monotonic_s for tick in having], self.start_s, self.end_s)
            if chosen is None:
                raise RecordingError(f"{row.source} was not recorded twice.")
            first, last = having[chosen[0]], having[chosen[1]]
        return row.reading(first.entries), row.reading(last.entries), last.monotonic_s - first.monotonic_s

    def of(self, names: Mapping[str, str], held: Collection[str]) -> "Window":
        """These sources only, renamed (old -> new). Those in `held` keep their latest text, or at first the next."""
        heard: dict[str, bytes] = {}
        for tick in reversed(self.around):
            heard |= {new: tick.entries[old] for old, new in names.items() if new in held and old in tick.entries}
        chosen = {}
        for tick in self.around:
            mine = {new: tick.entries[old] for old, new in names.items() if old in tick.entries}
            heard |= {name: text for name, text in mine.items() if name in held}
            chosen[id(tick)] = replace(tick, entries=heard | mine)
        ticks, around = ([chosen[id(tick)] for tick in sequence] for sequence in (self.ticks, self.around))
        return Window(self.start_s, self.end_s, ticks, around)


def window_of(ticks: Sequence[Tick], start_s: float, end_s: float) -> Window | None:
    around = sorted(ticks, key=lambda tick: tick.monotonic_s)
    inside = [tick for tick in around if tick.sample and start_s <= tick.monotonic_s <= end_s]
    if len(inside) < 2 or inside[-1].monotonic_s <= inside[0].monotonic_s:
        return None
    return Window(start_s, end_s, inside, around)


def nearest_pair(times: Sequence[float], start_s: float, end_s: float) -> tuple[int, int] | None:
    """Indices of the readings (ascending) nearest to the edges, or else around the window."""
    first, last = nearest(times, start_s), nearest(times, end_s)
    if first == last:
        first = bisect_left(times, start_s) - 1
        last = bisect_left(times, end_s)
    if not 0 <= first < last < len(times) or times[last] <= times[first]:
        return None
    return first, last


def texts_of(ticks: Iterable[Tick], source: str) -> list[bytes]:
    return [tick.entries[source] for tick in ticks if source in tick.entries]


def nearest(times: Sequence[float], at_s: float) -> int:
    """times: ascending. The index of the earlier of two; -1 without any."""
    index = bisect_left(times, at_s)
    if index == len(times) or (index > 0 and at_s - times[index - 1] <= times[index] - at_s):
        return index - 1
    return index


def derive(window: Window, rows: Iterable[Derivation]) -> Metrics:
    return gather(partial(part, window, row) for row in rows for part in (_levels, _rates))


def _levels(window: Window, row: Derivation) -> Metrics:
    if not row.levels:
        return {}
    levels: dict[str, list[float]] = {}
    for reading in window.readings(row):
        for metric, value in row.at(reading, window.facts.page_bytes).items():
            levels.setdefault(metric, []).append(value)
    return {metric: put_together(metric, values) for metric, values in levels.items()}


def _rates(window: Window, row: Derivation) -> Metrics:
    return row.between(*window.pair(row)) if row.rates else {}
