"""Whether the load is approaching a limit and when it gets there; and what recurs at the same time of day, for up to
half a day: the rules and their false alarms are in docs/watching.md."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from loadframe.analysis import student
from loadframe.analysis.saturation import line
from loadframe.model import LoadInterval
from loadframe.progress import counted

DAY_S = 86400.0
HORIZON_S = 7 * DAY_S
HALF = 0.5
"""Share of the limit's load below which nothing is reported; and of the time of the rise in which it must be met."""
QUARTER, QUICK_S = 0.25, 4 * 3600.0
"""Share of the rise's time on the first day, for a rise that took longer than QUICK_S."""
WHOLE, HOUR_S = 1.0, 3600.0
"""Share of the rise's time for a rise within HOUR_S: no morning is as steep, and after half of that time again it is
nearly over."""
ABOVE = 1.1
"""Within a day the load must exceed the highest of the days before by this factor, as only its pace indicates more.
Over days the test of the rise decides: a peak that grows by 4 % a day is never 1.1 times the last."""
LATEST = 3
PARTIAL_S = 4 * 3600.0
"""A first day that lacks more than this may be without its highest hours: it counts together with the second."""
SMOOTHED, FEWEST_RISING = 3, 6
"""Rows over which the load is averaged, so that it lags by one; least rows of a rise within a day."""
FEWEST_DAYS, MOST_DAYS = 3, 14
LEVEL = 0.01
"""Level of the daily test that daily maxima rise: with the other conditions false alarms are rarer than monthly."""
FEWEST_OF_STEP = 2
"""Days on either side of a step: one day alone may be the first of a rise."""
FIRM, FAR, WEEK = 0.001, 2.0, 7
"""For a slow rise: at 2 % a day the last fifth before a limit takes ten days and more. It is reported so far ahead only
after more than a week, as loads rise from each weekend on."""


@dataclass(frozen=True, slots=True)
class Approach:
    """ends: seconds until the load reaches the limit."""

    ends: LoadInterval
    words: str


@dataclass(slots=True)
class Days:
    """The load by day. maxima: one per day, the day in progress last. ValueError where these do not fit together."""

    maxima: list[float] = field(default_factory=list)
    day: int | None = None
    recent: list[float] = field(default_factory=list)
    today: list[tuple[float, float]] = field(default_factory=list)
    began_s: float = 0.0

    def __post_init__(self) -> None:
        check_rising([at_s for at_s, _ in self.today])
        if bool(self.maxima) != (self.day is not None) or bool(self.maxima) != bool(self.today):
            raise ValueError("its days do not fit together")

    def take(self, at_s: float, load: float) -> None:
        """at_s: ascending seconds; days count from zero."""
        if self.today and at_s <= self.today[-1][0]:  # the clock was set back: the stored rows are invalid
            self.today.clear()
        self.recent = [*self.recent[1 - SMOOTHED :], load]
        if len(self.recent) < SMOOTHED:
            return
        smooth = sum(self.recent) / len(self.recent)
        self.began_s = self.began_s or at_s
        day = int(at_s // DAY_S)
        if day - 1 == self.day == int(self.began_s // DAY_S) and self.began_s % DAY_S > PARTIAL_S:
            self.day = day
        if day != self.day:
            self.day = day
            self.maxima = [*self.maxima[1 - MOST_DAYS :], smooth]
        else:
            self.maxima[-1] = max(self.maxima[-1], smooth)
        self.today.append((at_s, smooth))
        while self.today[0][0] < at_s - DAY_S:
            self.today.pop(0)

    def approach(self, limit: float, low: float, high: float) -> Approach | None:
        """limit: the load at which it is reached, with its interval."""
        if not self.today or not self.maxima:
            return None
        now = self.today[-1][1]
        before = max(self.maxima[:-1], default=0.0)
        if now < HALF * limit or now >= limit or now <= before:
            return None
        within = self._within_a_day(now, limit, low, high) if now > ABOVE * before else None
        return within or self._over_days(now, limit, low, high)

    def _within_a_day(self, now: float, limit: float, low: float, high: float) -> Approach | None:
        lowest = min(range(len(self.today)), key=lambda at: (self.today[at][1], -at))
        rows = self.today[lowest:]
        at_s = rows[-1][0]
        rise, took_s = now - rows[0][1], at_s - rows[0][0]
        if len(rows) < FEWEST_RISING or rise < 0.1 * limit or took_s <= 0:
            return None
        third = rows[len(rows) - max(2, len(rows) // LATEST)]
        latest = (now - third[1]) / (at_s - third[0])
        pace = min(rise / took_s, latest)
        if pace <= 0:  # it falls again
            return None
        lag_s = (SMOOTHED - 1) / 2 * min(at_s - rows[-2][0], rows[-2][0] - rows[-3][0])
        took_s, in_s = took_s + lag_s, max(0.0, (limit - now) / pace - lag_s)
        first = at_s < self.began_s + DAY_S
        again = WHOLE if took_s <= HOUR_S else QUARTER if first and took_s > QUICK_S else HALF
        if in_s > took_s * again:
            return None
        words = f"it has risen from {rows[0][1]:.3g} to {now:.3g} within {span(took_s)}"
        soonest, latest = (low - now) / pace / 2 - lag_s, (high - now) / pace * 2 - lag_s
        return Approach(LoadInterval(in_s, max(0.0, soonest), max(0.0, latest)), words)

    def _over_days(self, now: float, limit: float, low: float, high: float) -> Approach | None:
        maxima = self.maxima
        count = len(maxima)
        if count < FEWEST_DAYS:
            return None
        fitted = line([float(at) for at in range(count)], maxima)
        if fitted is None:
            return None
        slope, error, reach = fitted.slope, fitted.error, fitted.half
        if slope <= 0 or slope < float(student.quantile(1 - LEVEL, count - 2)) * error:
            return None
        splits = range(FEWEST_OF_STEP, len(maxima) - FEWEST_OF_STEP + 1)
        by_a_step = min((_scatter(maxima[:at]) + _scatter(maxima[at:]) for at in splits), default=math.inf)
        if by_a_step < sum(left * left for left in fitted.left):
            return None
        in_s = (limit - now) / slope * DAY_S
        firm = count > WEEK and slope >= float(student.quantile(1 - FIRM, count - 2)) * error
        if in_s > (max(HORIZON_S, FAR * count * DAY_S) if firm else HORIZON_S):
            return None
        latest = max(0.0, (high - now) / (slope - reach) * DAY_S) if slope > reach else math.inf
        words = f"its daily maximum has risen by {slope:.3g} a day for {count} days, to {now:.3g}"
        return Approach(LoadInterval(in_s, max(0.0, (low - now) / (slope + reach) * DAY_S), latest), words)


def check_rising(values: Sequence[float]) -> None:
    """ValueError unless each value is above the one before."""
    if any(second <= first for first, second in pairwise(values)):
        raise ValueError("they do not rise")


def _scatter(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)


def span(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 5400 else counted(round(seconds / 60), "minute")


WEEK_S = 7 * DAY_S
SLACK_S = 1800.0
"""How much earlier or later a recurrence may begin, our choice: nightly jobs wait for one another."""
LONGEST_S = DAY_S / 2
MOST, HALF_SHARE = 0.6, 0.5
"""Shares of the present deviation: from MOST on it was alike then; below HALF_SHARE it was absent in between."""
FEWEST = 3
"""Rows of a window: of fewer the median is one outlier."""
KEPT_S = WEEK_S + LONGEST_S + 2 * SLACK_S


@dataclass(slots=True)
class Rhythm:
    """The rows of the last week, in time order. ValueError where these do not fit together."""

    times_s: list[float] = field(default_factory=list)
    loads: list[float | None] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_rising(self.times_s)
        if not len(self.times_s) == len(self.loads) == len(self.values):
            raise ValueError("its parts do not fit together")

    def add(self, t_s: float, load: float | None, value: float) -> None:
        """A time not after the last one shows a clock set back: rows from there on are dropped."""
        if self.times_s and t_s <= self.times_s[-1]:
            self._forget(slice(bisect_left(self.times_s, t_s), None))
        self.times_s.append(t_s)
        self.loads.append(load)
        self.values.append(value)
        if t_s - self.times_s[0] > KEPT_S + DAY_S / 24:  # drops an hour's rows at a time
            self._forget(slice(bisect_left(self.times_s, t_s - KEPT_S)))

    def _forget(self, gone: slice) -> None:
        del self.times_s[gone], self.loads[gone], self.values[gone]

    def recurs(
        self, since_s: float, now_s: float, rows: int, deviation: float, off: Callable[[float | None, float], float]
    ) -> bool:
        """Whether the deviation since `since_s` also occurred a day or a week ago. rows: of which `deviation` is the
        median; off: how far a value at a load is from the expected one."""
        if now_s - since_s > LONGEST_S or rows < FEWEST or deviation == 0:
            return False
        for period_s in (DAY_S, WEEK_S):
            end_s = now_s - period_s + SLACK_S
            then = self._shares(since_s - period_s - SLACK_S, end_s, deviation, off)
            between = self._shares(end_s, since_s - SLACK_S, deviation, off)
            if len(then) < rows or not between or median(between) >= HALF_SHARE:
                continue
            if max(median(then[at : at + rows]) for at in range(len(then) - rows + 1)) >= MOST:
                return True
        return False

    def _shares(
        self, from_s: float, to_s: float, deviation: float, off: Callable[[float | None, float], float]
    ) -> list[float]:
        low, high = bisect_left(self.times_s, from_s), bisect_right(self.times_s, to_s)
        return [off(self.loads[at], self.values[at]) / deviation for at in range(low, high)]
