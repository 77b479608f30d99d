"""Growth of a use over time that the load does not explain, the rows of a watch in which it is looked for, and what
they cannot show yet. Rows in time order are autocorrelated: `series` determines how many count."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from loadframe.analysis import series, student
from loadframe.analysis.saturation import Line, line, residuals
from loadframe.model import Saturation
from loadframe_watch.observed.records import GrowsByItself

FEWEST_ROWS, FEWEST_OF_GROWTH = 30, 8
STEADY = 0.5
"""Least slope of the second half, as a share of that of the whole: a cache that fills grows ever more slowly."""
WORTH = 0.02
"""Least growth over the time watched, as a share of the use at its end."""
LONGEST_S = 30 * 86400.0
"""Later ends are not reported: within a month the service is restarted, or the load changes."""
FORESIGHT_OF_GROWTH = 50.0
"""Nor ends later than this many times the time watched: thousands of readings would otherwise allow it."""
AROUND = 2.0
"""Deviations of the rows from the line: a lasting deviation is no error of the slope, but moves the end."""
MOST_ROWS, LEVEL = (300, 768, 1024), 0.001
"""Numbers of rows and the level for `grows`. Each number of rows in turn: few batches may miss by chance that
neighbours are still correlated. One in a thousand uses that do not grow is reported."""
DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Leak:
    """slope, low, high: units per second; ends: in seconds from the last row; use: at the end, at the usual load.
    load_known: whether it is the growth at equal load."""

    slope: float
    low: float
    high: float
    ends: Saturation
    use: float
    watched_s: float
    load_known: bool


def leak(
    times_s: Sequence[float], uses: Sequence[float], loads: Sequence[float | None], ceiling: float, *, level: float
) -> Leak | None:
    """None where the growth is not significant at this level (one-sided), where there are too few rows for a line, and
    where it ends too far ahead. times_s ascending, with a use and a load each. Rows without a load are left out; where
    most have none, the load is ignored. ceiling: above the last use."""
    if len(uses) < FEWEST_ROWS or not math.isfinite(ceiling) or uses[-1] >= ceiling:
        return None
    load_known = 2 * sum(load is not None for load in loads) >= len(loads)
    readings = zip(times_s, uses, loads if load_known else [0.0] * len(uses), strict=True)
    rows = [(time_s - times_s[-1], use, load) for time_s, use, load in readings if load is not None]
    fitted, half = _growth(rows), _growth(rows[len(rows) // 2 :])
    every_row = line(*zip(*rows, strict=True))
    watched_s = times_s[-1] - times_s[0]
    if fitted is None or every_row is None or half is None or watched_s <= 0:
        return None
    freedom, slope = min(fitted.freedom, student.MOST_TERMS), fitted.slope
    if slope <= fitted.error * float(student.quantile(1 - level, freedom)) or half.slope < STEADY * slope:
        return None
    use, scatter = every_row.at(0.0), math.sqrt(sum(map(float.__mul__, every_row.left, every_row.left)) / len(rows))
    room, low, high = ceiling - use, slope - fitted.half, slope + fitted.half
    if room <= 0 or slope * watched_s < WORTH * use or room / slope > min(LONGEST_S, FORESIGHT_OF_GROWTH * watched_s):
        return None
    latest = (room + AROUND * scatter) / low if low > 0 else math.inf
    ends = Saturation(room / slope, max(room - AROUND * scatter, 0.0) / high, latest, "extrapolated", "line")
    return Leak(slope, low, high, ends, use, watched_s, load_known)


def _growth(rows: Sequence[series.Row]) -> Line | None:
    """None where no batches have uncorrelated neighbours, or time and load are collinear."""
    rows = series.independent(rows, residuals, fitted=3, fewest=FEWEST_OF_GROWTH)
    return line(*zip(*rows, strict=True)) if len(rows) >= FEWEST_OF_GROWTH else None


def grows(resource: str, time_s: Iterable[float], load: Iterable[float], use: Iterable[float]) -> GrowsByItself | None:
    """A use that grows with time, by `leak`. None where it does not, is full already, or would end beyond a month.
    time_s: ascending; NaN where missing; use: share of its ceiling."""
    rows = [row for row in zip(time_s, use, load, strict=True) if math.isfinite(row[1]) and math.isfinite(row[2])]
    for most in MOST_ROWS:
        parts = min(len(rows), most)
        pieces = [rows[len(rows) * at // parts : len(rows) * (at + 1) // parts] for at in range(parts)]
        times, uses, loads = ([fmean(row[at] for row in piece) for piece in pieces] for at in range(3))
        growth = leak(times, uses, loads, 1.0, level=LEVEL / len(MOST_ROWS))
        if growth is not None:
            per_day, ends = (DAY_S * rate for rate in (growth.slope, growth.low, growth.high)), growth.ends
            ends_s = (times[-1] + end for end in (ends.load, ends.low, ends.high))
            return GrowsByItself(resource, growth.use, *per_day, *ends_s)
    return None


MOST_KEPT = 1024
LONGEST_STEP_S = 1200.0
"""1,024 rows of this are two weeks; older ones are dropped."""


@dataclass
class Thinned:
    """At most MOST_KEPT rows of several columns: once full, neighbours are averaged, and rows come half as often. step:
    rows that are averaged. ValueError where these do not fit together."""

    columns: list[str]
    rows: list[tuple[float, list[float | None]]] = field(default_factory=list)
    step: int = 1

    def __post_init__(self) -> None:
        self._waiting: list[tuple[float, list[float | None]]] = []
        if self.step < 1 or any(len(values) != len(self.columns) for _, values in self.rows):
            raise ValueError("a row has other columns")

    @property
    def first_s(self) -> float:
        """Infinite without rows."""
        rows = self.rows or self._waiting
        return rows[0][0] if rows else float("inf")

    def add(self, t_s: float, values: Sequence[float | None]) -> None:
        self._waiting.append((t_s, list(values)))
        if len(self._waiting) < self.step:
            return
        self.rows.append(_mean(self._waiting))
        self._waiting = []
        if len(self.rows) < MOST_KEPT:
            return
        if (self.rows[-1][0] - self.rows[0][0]) / MOST_KEPT >= LONGEST_STEP_S:
            del self.rows[0]
        else:
            self.rows = [_mean(self.rows[at : at + 2]) for at in range(0, len(self.rows), 2)]
            self.step *= 2

    def clear(self) -> None:
        self.rows, self._waiting, self.step = [], [], 1


def _mean(rows: Sequence[tuple[float, list[float | None]]]) -> tuple[float, list[float | None]]:
    columns = []
    for at in range(len(rows[0][1])):
        known = [value for _, row in rows if (value := row[at]) is not None]
        columns.append(sum(known) / len(known) if known else None)
    return sum(t_s for t_s, _ in rows) / len(rows), columns


SLOWER, FROM = "slower ones", "from %Y-%m-%d %H:%M UTC on"
SLOW_S = LONGEST_S / FORESIGHT_OF_GROWTH
"""After this time all leaks that end within LONGEST_S are judged."""


def unjudged(
    name: str,
    times_s: Sequence[float],
    use: float,
    ceiling: float | None,
    row_s: float,
    waits: tuple[Leak, float] | None,
) -> dict[str, Any] | None:
    """Which leaks of a metric cannot be judged yet, JSON-ready, else None. `from_s`: from when on, by times_s (None:
    never); `per_hour`: growth that can be judged already. waits: a leak that is seen, and when it will be reported."""
    if ceiling is None:
        return {"metric": name, "why": "its end is not known", "from_s": None, "per_hour": None}
    if len(times_s) < FEWEST_ROWS:
        first_s = times_s[0] if times_s else None
        from_s = None if first_s is None else first_s + FEWEST_ROWS * row_s
        return {"metric": name, "why": "a few minutes are too few", "from_s": from_s, "per_hour": None}
    if waits is not None:
        grows, from_s = waits
        return {"metric": name, "why": "files may be rotated", "from_s": from_s,
                "per_hour": grows.slope * 3600}  # fmt: skip
    watched_s = times_s[-1] - times_s[0]
    if not 0 < watched_s < SLOW_S:
        return None
    slowest = max(WORTH * use / watched_s, (ceiling - use) / (FORESIGHT_OF_GROWTH * watched_s))
    return {"metric": name, "why": SLOWER, "from_s": times_s[0] + SLOW_S, "per_hour": slowest * 3600}


def in_words(leaks: Iterable[Mapping[str, Any]], names: Mapping[str, str], amount: Callable[[str, float], str]) -> str:
    """One sentence, or "". amount: a metric's value in words; from_s: by the wall clock."""
    said: dict[str, list[str]] = {}
    for leak in leaks:
        name, per_hour = names[leak["metric"]], leak["per_hour"]
        if leak["why"] == SLOWER:
            name = f"{name} by less than {amount(leak['metric'], per_hour)} an hour"
        elif per_hour is not None:
            name = f"{name}, which grows by {amount(leak['metric'], per_hour)} an hour and may be a log"
        when = "" if leak["from_s"] is None else time.strftime(FROM, time.gmtime(min(leak["from_s"], 4e9)))
        said.setdefault(when or f"no time can be named: {leak['why']}", []).append(name)
    text = "; ".join(f"{', '.join(which)} ({when})" for when, which in said.items())
    return f"Leaks that cannot be judged yet: {text}" if text else ""
