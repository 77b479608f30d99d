"""Growth of a use over time that the load does not explain. Only the standard library: the lasting process of a watch
imports it. Rows in time order are autocorrelated: `series` determines how many count."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

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
    """Growth that the load does not explain. slope, low, high: units per second; ends: in seconds from the last row;
    use: at the end, at the usual load. load_known: whether it is the growth at equal load."""

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
    """The growth of a use over time at equal load; None where it is not significant at this level (one-sided), where
    there are too few rows for a line, and where it ends too far ahead. times_s ascending, with a use and a load each.
    Rows without a load are left out; where most have none, the load is ignored. ceiling: above the last use."""
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
    """A use of production data that grows with time at equal load, by `leak`. None where it does not, is full already,
    or would end beyond a month. time_s: ascending; NaN where missing; use: share of its ceiling."""
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
