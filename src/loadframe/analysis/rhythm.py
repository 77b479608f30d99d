"""What a series did at the same time a day and a week ago: a backup each night is no news.

A deviation recurs if the same number of consecutive rows, at the same time a day or a week ago, was off by 60 % or
more of what it is off now, to the same side, and the rows in between were not. What lasts for more than half a day is
no rhythm of a day, and what began yesterday has rows in between that are off, too. The standard library alone: the
lasting process of a watch imports it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from loadframe.analysis import kept

DAY_S, WEEK_S = 86400.0, 7 * 86400.0
SLACK_S = 1800.0
"""By which what recurs may begin earlier or later, our choice: jobs of a night wait for one another."""
LONGEST_S = DAY_S / 2
MOST, HALF = 0.6, 0.5
"""Shares of what is found now: from the first on it was so then, too; below the second it was not so in between."""
FEWEST = 3
"""Rows of a window: of fewer the median is one outlier."""
KEPT_S = WEEK_S + LONGEST_S + 2 * SLACK_S


@dataclass(slots=True)
class Rhythm:
    """The rows of the last week, in time order."""

    times_s: list[float] = field(default_factory=list)
    loads: list[float | None] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, t_s: float, load: float | None, value: float) -> None:
        """The next row. A time that is not behind the last one was told by a clock that has been set back: what was
        told of the time from there on is forgotten."""
        if self.times_s and t_s <= self.times_s[-1]:
            self._forget(slice(bisect_left(self.times_s, t_s), None))
        self.times_s.append(t_s)
        self.loads.append(load)
        self.values.append(value)
        if t_s - self.times_s[0] > KEPT_S + DAY_S / 24:  # an hour's rows at a time
            self._forget(slice(bisect_left(self.times_s, t_s - KEPT_S)))

    def _forget(self, gone: slice) -> None:
        del self.times_s[gone], self.loads[gone], self.values[gone]

    def recurs(
        self, since_s: float, now_s: float, rows: int, found: float, off: Callable[[float | None, float], float]
    ) -> bool:
        """Whether what has been found since `since_s` was so a day or a week ago, too. rows: of which `found` is the
        median; off: by how much a value at a load is off what is expected there."""
        if now_s - since_s > LONGEST_S or rows < FEWEST or found == 0:
            return False
        return any(self._was(since_s, now_s, period_s, rows, found, off) for period_s in (DAY_S, WEEK_S))

    def _was(
        self,
        since_s: float,
        now_s: float,
        period_s: float,
        rows: int,
        found: float,
        off: Callable[[float | None, float], float],
    ) -> bool:
        end_s = now_s - period_s + SLACK_S
        then = self._shares(since_s - period_s - SLACK_S, end_s, found, off)
        between = self._shares(end_s, since_s - SLACK_S, found, off)
        if len(then) < rows or not between or median(between) >= HALF:
            return False
        return max(median(then[at : at + rows]) for at in range(len(then) - rows + 1)) >= MOST

    def _shares(
        self, from_s: float, to_s: float, found: float, off: Callable[[float | None, float], float]
    ) -> list[float]:
        """By how much the rows of a time were off, as shares of what is found now."""
        low, high = bisect_left(self.times_s, from_s), bisect_right(self.times_s, to_s)
        return [off(self.loads[at], self.values[at]) / found for at in range(low, high)]

    # --- keeping ---

    def as_json(self) -> dict[str, Any]:
        """All of it, for `of_json`."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def of_json(cls, data: Any, value: Callable[[Any], float]) -> Rhythm:
        """ValueError where it is not what `as_json` has made. value: checks one of the series."""
        known = kept.fields(data, cls.__slots__)
        times_s = kept.listed(known["times_s"], kept.number)
        loads = kept.listed(known["loads"], lambda one: kept.optional(one, kept.number))
        values = kept.listed(known["values"], value)
        kept.rising(times_s)
        if not len(times_s) == len(loads) == len(values):
            raise ValueError("its parts do not fit together")
        return cls(times_s, loads, values)
