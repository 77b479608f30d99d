"""A window of a recording: its ticks, its length, and the arithmetic that all metrics share."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from loadframe.errors import RecordingError
from loadframe.recording.derivation import Derivation, Metrics, gather, put_together
from loadframe.recording.frames import Facts, Tick


@dataclass(frozen=True, slots=True)
class Window:
    """ticks: those of the schedule within start_s..end_s, at least two. around: all ticks that were given, in the
    order of their times, for what is recorded only once per second. elapsed_s: from the first to the last tick."""

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
        """A source at each tick of the window that has it; of a window without one, the nearest to it. RecordingError
        where there is none, or one is damaged."""
        having = [tick for tick in self.ticks if row.text(tick.entries) is not None]
        if not having:
            around = [tick for tick in self.around if row.text(tick.entries) is not None]
            if not around:
                raise RecordingError(f"{row.source} was not recorded.")
            having = [min(around, key=lambda tick: max(self.start_s - tick.monotonic_s, tick.monotonic_s - self.end_s))]
        return [row.reading(tick.entries) for tick in having]

    def pair(self, row: Derivation) -> tuple[Any, Any, float]:
        """Two readings of a source and the seconds between them: those of the window's edges; of one that is recorded
        more seldom those nearest to them. RecordingError where there are no two."""
        first, last = self.ticks[0], self.ticks[-1]
        if row.text(first.entries) is None or row.text(last.entries) is None:
            having = [tick for tick in self.around if row.text(tick.entries) is not None]
            chosen = nearest_pair([tick.monotonic_s for tick in having], self.start_s, self.end_s)
            if chosen is None:
                raise RecordingError(f"{row.source} was not recorded twice.")
            first, last = having[chosen[0]], having[chosen[1]]
        return row.reading(first.entries), row.reading(last.entries), last.monotonic_s - first.monotonic_s

    def of(self, names: Mapping[str, str], held: Collection[str]) -> "Window":
        """The same window of these sources alone, under other names (new by old). What those in `held` (new names) said
        last holds on; before they said anything, what they said first."""
        heard: dict[str, bytes] = {}
        for tick in reversed(self.around):
            heard |= {new: tick.entries[old] for old, new in names.items() if new in held and old in tick.entries}
        chosen = {}
        for tick in self.around:
            mine = {new: tick.entries[old] for old, new in names.items() if old in tick.entries}
            heard |= {name: text for name, text in mine.items() if name in held}
            chosen[id(tick)] = replace(tick, entries=heard | mine)
        ticks, around = ([chosen[id(tick)] for tick in each] for each in (self.ticks, self.around))
        return Window(self.start_s, self.end_s, ticks, around)


def window_of(ticks: Sequence[Tick], start_s: float, end_s: float) -> Window | None:
    """The window start_s..end_s; None where it has fewer than two ticks of the schedule."""
    around = sorted(ticks, key=lambda tick: tick.monotonic_s)
    inside = [tick for tick in around if tick.sample and start_s <= tick.monotonic_s <= end_s]
    if len(inside) < 2 or inside[-1].monotonic_s <= inside[0].monotonic_s:
        return None
    return Window(start_s, end_s, inside, around)


def nearest_pair(times: Sequence[float], start_s: float, end_s: float) -> tuple[int, int] | None:
    """Indices of the readings (times ascending) nearest to the two edges. Where both edges have the same nearest one,
    those that enclose the window; None where there are none."""
    first, last = _nearest(times, start_s), _nearest(times, end_s)
    if first == last:
        first = bisect_left(times, start_s) - 1
        last = bisect_left(times, end_s)
    if not 0 <= first < last < len(times) or times[last] <= times[first]:
        return None
    return first, last


def _nearest(times: Sequence[float], at_s: float) -> int:
    index = bisect_left(times, at_s)
    if index == len(times) or (index > 0 and at_s - times[index - 1] <= times[index] - at_s):
        return index - 1
    return index


def derive(window: Window, rows: Iterable[Derivation]) -> Metrics:
    """What these sources tell of a window; what cannot be told is absent."""
    return gather(partial(part, window, row) for row in rows for part in (_levels, _rates))


def _levels(window: Window, row: Derivation) -> Metrics:
    if not row.levels:
        return {}
    found: dict[str, list[float]] = {}
    for reading in window.readings(row):
        for metric, value in row.at(reading, window.facts.page_bytes).items():
            found.setdefault(metric, []).append(value)
    return {metric: put_together(metric, values) for metric, values in found.items()}


def _rates(window: Window, row: Derivation) -> Metrics:
    return row.between(*window.pair(row)) if row.rates else {}
