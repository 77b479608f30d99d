"""Whether a use grows by itself, whatever the load does, and when it ends: regressed on time and load together.

Readings one after another are alike, so they are averaged in batches until neighbours are no longer correlated, as
`trend` does (method of batch means; Law, "Simulation Modeling and Analysis", 9.5.3). A cache that fills, or a service
that warms up, grows ever more slowly: the second half of what was seen has to rise nearly as the whole. The standard
library alone: the lasting process of a watch imports it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from loadframe.analysis import student

FEWEST_ROWS, FEWEST_BATCHES = 30, 8
CORRELATED = 0.5
"""As in analysis.trend: r sqrt(n) from which on neighbours count as correlated."""
STEADY = 0.5
"""The slope of the second half, as a share of that of the whole."""
WORTH = 0.02
"""Growth over all that was watched, as a share of the use at its end."""
LONGEST_S = 30 * 86400.0
"""What ends later is not told: within a month the service is started again, or the load is another one."""
FORESIGHT = 50.0
"""Nor what ends later than this many times the time watched. A regression on thousands of readings carries its interval
further than the ten times of analysis.trend."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Leak:
    """slope, low, high: units per second; ends_in_s with its interval: seconds from the last row until the ceiling.
    load_known: whether it is the growth at equal load."""

    slope: float
    low: float
    high: float
    ends_in_s: float
    ends_low_s: float
    ends_high_s: float
    watched_s: float
    load_known: bool


def leak(
    times_s: Sequence[float],
    uses: Sequence[float],
    loads: Sequence[float | None],
    ceiling: float,
    *,
    level: float,
) -> Leak | None:
    """The growth of a use in time at equal load; None where there is none, at this level (of a one-sided test), where
    the rows carry no line, and where it ends too far ahead. times_s rising; a use and a load for each. Rows without a
    load are left out; where most have none, load explains nothing. ceiling: above the last use."""
    count = len(uses)
    if count < FEWEST_ROWS or not math.isfinite(ceiling) or uses[-1] >= ceiling:
        return None
    times = [time - times_s[-1] for time in times_s]
    span_s = -times[0]
    rows = [(time, use, load) for time, use, load in zip(times, uses, _known(loads), strict=True) if load is not None]
    found = _slope(rows)
    if found is None or span_s <= 0:
        return None
    slope, error, freedom = found
    if error > 0 and slope / error < float(student.quantile(1 - level, min(freedom, student.MOST_TERMS))):
        return None
    half = _slope(rows[len(rows) // 2 :])
    if slope <= 0 or half is None or half[0] < STEADY * slope or slope * span_s < WORTH * uses[-1]:
        return None
    reach = float(student.quantile((1 + CONFIDENCE) / 2, min(freedom, student.MOST_TERMS))) * error
    room = ceiling - sum(uses[-3:]) / 3
    soonest, expected = room / (slope + reach), room / slope
    latest = room / (slope - reach) if slope > reach else math.inf
    if expected > min(LONGEST_S, FORESIGHT * span_s):
        return None
    return Leak(slope, slope - reach, slope + reach, expected, soonest, latest, span_s, _mostly(loads))


def _known(loads: Sequence[float | None]) -> Sequence[float | None]:
    """The loads; zeros where most are missing."""
    return loads if _mostly(loads) else [0.0] * len(loads)


def _mostly(loads: Sequence[float | None]) -> bool:
    """Whether at least half of them are known."""
    return 2 * sum(load is not None for load in loads) >= len(loads)


Row = tuple[float, float, float]


def _slope(rows: Sequence[Row]) -> tuple[float, float, int] | None:
    """(slope in time, its standard error, degrees of freedom); None where no batches leave neighbours uncorrelated, or
    time and load cannot be told apart."""
    while len(rows) >= FEWEST_BATCHES:
        fitted = _regressed(rows)
        if fitted is None:
            return None
        slope, error, left = fitted
        if not _correlated(left):
            return slope, error, len(rows) - 3
        rows = [
            _mean(one, two) for one, two in zip(rows[len(rows) % 2 :: 2], rows[len(rows) % 2 + 1 :: 2], strict=True)
        ]
    return None


def _mean(one: Row, two: Row) -> Row:
    return (one[0] + two[0]) / 2, (one[1] + two[1]) / 2, (one[2] + two[2]) / 2


def _regressed(rows: Sequence[Row]) -> tuple[float, float, list[float]] | None:
    """Slope in time of use on time and load, its standard error, and what is left."""
    count = len(rows)
    times, uses, loads = (_centred([row[at] for row in rows]) for at in range(3))
    tt, ll = _product(times, times), _product(loads, loads)
    tl, tu, lu = _product(times, loads), _product(times, uses), _product(loads, uses)
    free = ll > 1e-12 * max(1.0, tt) and tl * tl < 0.98 * tt * ll
    if ll > 0 and not free and tl * tl >= 0.98 * tt * ll:
        return None  # the load has risen with time, straight: whose the growth is cannot be told
    if not free:
        tl = lu = 0.0
        ll = 1.0
    determinant = tt * ll - tl * tl
    if determinant <= 0:
        return None
    slope, by_load = (tu * ll - lu * tl) / determinant, (lu * tt - tu * tl) / determinant
    left = [use - slope * time - by_load * load for time, use, load in zip(times, uses, loads, strict=True)]
    error = math.sqrt(_product(left, left) / max(1, count - 3) * ll / determinant)
    return slope, error, left


def _centred(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def _product(one: Sequence[float], two: Sequence[float]) -> float:
    return sum(map(float.__mul__, one, two))


def _correlated(left: Sequence[float]) -> bool:
    power, count = _product(left, left), len(left)
    if power <= 1e-24:
        return False
    correlation = _product(left[1:], left[:-1]) / power + 3 / count
    return correlation * math.sqrt(count) > CORRELATED
