"""Whether a use follows the load, or the hour of the day: a batch that runs at the hour of the daily peak looks like a
use that the load drives.

At one hour the load differs from day to day. A use that the load drives differs with it, by as much as the typical use
at those loads does; one that the hour drives does not. So the use of each stretch of a day, less its mean over the days
at that hour, is regressed on what is typical at its load, less its mean: the share is 1 where the load drives it, and 0
where the hour does. Errors of the load's readings would make it smaller: the load is the mean of every other row, and
that of the rows between is its instrument (Reiersol 1945, Arkiv for Matematik 32A). Its error is the jackknife's over
days.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.observed_blocks import Floats, reference
from loadframe.model.observed import Driver

DAY_S, STRETCH_S = 86400.0, 5400.0
FEWEST_DAYS, FEWEST_ROWS = 4, 4
"""Days that a stretch must be known of; rows of a stretch, half of them for each mean."""
CONFIDENCE = 0.99
LEAST, MOST = 0.3, 0.6
"""A share below MOST is the hour's doing at least in part; one above LEAST is the load's in part."""

EITHER = "Whether the load or the hour of the day drives the use cannot be told, as the days are alike or few"


@dataclass(frozen=True, slots=True)
class Share:
    """Of the use that the load seems to explain, how much it does at equal hours, with its interval."""

    value: float
    low: float
    high: float

    @property
    def driver(self) -> Driver:
        """hour: proven to drive it, at least in part; either: the two cannot be told apart."""
        if self.high < MOST:
            return "hour"
        return "load" if self.low > LEAST else "either"


Cells = Sequence[float | None] | Floats


def driver(time_s: Cells, load: Cells, use: Cells) -> Driver:
    """What drives a use, of what these rows can tell: (n,) each, in time order, None or NaN where missing. Rows of less
    than a day are asked nothing."""
    times, loads, shares = (np.array(cells, dtype=np.float64) for cells in (time_s, load, use))
    if len(times) < 2 or times[-1] - times[0] < DAY_S:
        return "load"
    found = share(times, loads, shares)
    return "either" if found is None else found.driver


def share(time_s: Floats, load: Floats, use: Floats) -> Share | None:
    """time_s, load, use: (n,) in time order, NaN where missing. None where no hour is known of FEWEST_DAYS days: one
    day has each hour once, and what comes at the same hour cannot be told apart in it."""
    known = np.isfinite(load) & np.isfinite(use) & (load > 0)
    time_s, load, use = time_s[known], load[known], use[known]
    if len(load) < FEWEST_DAYS * FEWEST_ROWS:
        return None
    typical = reference(load, use)
    stretch = np.floor(time_s / STRETCH_S).astype(np.int64)
    each, place = np.unique(stretch, return_inverse=True)
    odd = (np.arange(len(load)) % 2).astype(np.bool_)
    count = len(each)
    one, two = (_means(typical[side], place[side], count) for side in (odd, ~odd))
    mine = _means(use, place, count)
    rows = np.bincount(place, minlength=count)
    whole = (rows >= FEWEST_ROWS) & np.isfinite(one) & np.isfinite(two)
    per_day = round(DAY_S / STRETCH_S)
    hour, day = each[whole] % per_day, each[whole] // per_day
    often = np.bincount(hour, minlength=per_day)[hour] >= FEWEST_DAYS
    if not often.any():
        return None
    hour, day = hour[often], day[often]
    return _jackknife(one[whole][often], two[whole][often], mine[whole][often], hour, day)


def _jackknife(one: Floats, two: Floats, use: Floats, hour: np.ndarray, day: np.ndarray) -> Share | None:
    days = np.unique(day)
    if len(days) < FEWEST_DAYS:
        return None
    value = _slope(one, two, use, hour)
    left_out = np.array([_slope(*(part[day != gone] for part in (one, two, use, hour))) for gone in days])
    if not np.isfinite(value) or not np.isfinite(left_out).all():
        return Share(value if math.isfinite(value) else 0.0, -math.inf, math.inf)
    count = len(days)
    error = math.sqrt(float(((left_out - left_out.mean()) ** 2).sum()) * (count - 1) / count)
    reach = float(student.quantile((1 + CONFIDENCE) / 2, count - 1)) * error
    return Share(value, value - reach, value + reach)


def _slope(one: Floats, two: Floats, use: Floats, hour: np.ndarray) -> float:
    """Each less its mean at the hour; NaN where the load differs no more than its readings do."""
    one, two, use = (values - _means(values, hour, int(hour.max()) + 1)[hour] for values in (one, two, use))
    common = float(one @ two)
    return float((one + two) @ use) / 2 / common if common > 0 else math.nan


def _means(values: Floats, place: np.ndarray, count: int) -> Floats:
    number = np.bincount(place, minlength=count)
    total = np.bincount(place, weights=values, minlength=count)
    return np.asarray(np.divide(total, number, out=np.full(count, np.nan), where=number > 0))
