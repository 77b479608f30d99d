"""What weeks of a watch show of the load: at which load each limit is reached, and where the response bends.

Readings one after another are alike, and loads come unevenly: the readings are averaged in ranges of the load with
equally many of them, and each range counts as one (`exhaustion` fits a line through these, with Fieller's interval).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis.exhaustion import CONFIDENCE, crossing_of_alike, exhausted_at
from loadframe.analysis.series import rows_alike
from loadframe.analysis.use_in_a_curve import PROVEN, full_in_a_curve, square_term
from loadframe.model import REACHED, LoadInterval

RANGES, FEWEST_IN_RANGE, FEWEST_RANGES = 24, 4, 4
SPREAD = 1.3
"""Of the highest range's load to the lowest's, below which the load was the same all the time."""
LEAST_USE = 0.1
"""A limit that was never used by this share is not told: its line is mostly noise, and carries far."""
FORESIGHT = 10.0
"""Beyond this many times the highest load nothing is said."""
BENT = 1.5
"""The response at a load, as a multiple of that at the lowest loads, from which on it has bent; at all higher loads
too."""
ERRORS = 3.0
EARLY = 0.99
"""Of the first hours' intervals: they are looked at again and again, and it is the lowest that speaks first."""
FEWEST_WORTH = 4
"""Independent rows without which no limit is told: a line through them has two degrees of freedom left."""
CORRELATED = 0.5
"""As in analysis.trend: r sqrt(n) from which on neighbours count as correlated."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Means by range of load, in rising order of the load. scatter: the standard error of each mean."""

    loads: NDArray[np.float64]
    means: NDArray[np.float64]
    scatter: NDArray[np.float64]


def ranges(loads: Sequence[float | None], values: Sequence[float | None]) -> Ranges | None:
    """The means of values where both are known; None where the load hardly differed, or too little is known."""
    pairs = np.array([(a, b) for a, b in zip(loads, values, strict=True) if a is not None and b is not None], float)
    if len(pairs) < FEWEST_RANGES * FEWEST_IN_RANGE:
        return None
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    parts = np.array_split(pairs, min(RANGES, len(pairs) // FEWEST_IN_RANGE))
    found = Ranges(
        np.array([part[:, 0].mean() for part in parts]),
        np.array([part[:, 1].mean() for part in parts]),
        np.array([part[:, 1].std(ddof=1) / np.sqrt(len(part)) for part in parts]),
    )
    return found if found.loads[-1] > SPREAD * max(found.loads[0], 1e-12) else None


def batches(
    loads: Sequence[float | None], values: Sequence[float | None]
) -> tuple[Sequence[float | None], Sequence[float | None]]:
    """The rows where both are known, in time order, neighbours averaged two by two until what a straight line over the
    load leaves of them is not correlated, or as few are left as `ranges` takes (batch means, as in `leaks`)."""
    rows = np.array([(a, b) for a, b in zip(loads, values, strict=True) if a is not None and b is not None], float)
    while len(rows) >= 2 * FEWEST_RANGES * FEWEST_IN_RANGE and np.ptp(rows[:, 0]) > 0:
        slope, intercept = np.polyfit(rows[:, 0], rows[:, 1], 1)
        left = rows[:, 1] - intercept - slope * rows[:, 0]
        power = float(left @ left)
        if power <= 0 or (float(left[1:] @ left[:-1]) / power + 3 / len(left)) * np.sqrt(len(left)) <= CORRELATED:
            break
        rows = rows[len(rows) % 2 :].reshape(-1, 2, 2).mean(axis=1)
    return [float(load) for load, _ in rows], [float(value) for _, value in rows]


def limits_at(
    loads: Sequence[float | None], use: Mapping[str, Sequence[float | None]], *, batched: bool = False
) -> dict[str, LoadInterval]:
    """By the id of a limit, the load at which its use (shares of its ceiling) is 1; without those that the load does
    not bring there. batched: rows are averaged in time until neighbours are no longer alike, as their own scatter is
    what the interval is made of."""
    found = {}
    for name, shares in use.items():
        averaged = ranges(*batches(loads, shares)) if batched else ranges(loads, shares)
        if averaged is None or averaged.means.max() < LEAST_USE:
            continue
        crossing = exhausted_at(
            averaged.loads,
            averaged.means,
            1.0,
            highest_load=FORESIGHT * float(averaged.loads.max()),
            confidence=EARLY if batched else CONFIDENCE,
        )
        if crossing is not None and not batched:
            crossing = _widened(crossing, averaged, loads, shares)
        if crossing is not None:
            found[name] = crossing
    return found


def _widened(
    crossing: LoadInterval, averaged: Ranges, loads: Sequence[float | None], shares: Sequence[float | None]
) -> LoadInterval | None:
    """The interval at least as wide as that of a line through the rows, of which as many count as are independent: a
    deviation that lasts for hours moves the means of neighbouring ranges together, so that their scatter does not show
    it. None where fewer than FEWEST_WORTH are, or these do not prove that the use rises: then it is too early. A
    ceiling that was seen to be reached is told by that."""
    if averaged.means.max() >= REACHED:
        return crossing
    rows = np.array([(a, b) for a, b in zip(loads, shares, strict=True) if a is not None and b is not None], float)
    slope, intercept = np.polyfit(rows[:, 0], rows[:, 1], 1)
    alike = rows_alike(rows[:, 1] - intercept - slope * rows[:, 0])
    enough = len(rows) / alike >= FEWEST_WORTH
    by_rows = crossing_of_alike(rows[:, 0], rows[:, 1], 1.0, alike) if enough else None
    if by_rows is None:
        return None
    below, above = by_rows.load - by_rows.low, by_rows.high - by_rows.load
    low = max(float(averaged.loads.max()), min(crossing.low, crossing.load - below))
    straight = LoadInterval(crossing.load, min(low, crossing.load), max(crossing.high, crossing.load + above))
    return unless_curved(straight, averaged, errors_of(averaged, rows[:, 0], rows[:, 1]))


def errors_of(averaged: Ranges, loads: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The standard error of the mean of each range, where rows that are alike count as one. loads, values: (n,), in
    time order, none missing."""
    alike = rows_alike(values - np.polyval(np.polyfit(loads, values, 2), loads))
    return averaged.scatter * np.sqrt(alike) if np.isfinite(alike) else np.full_like(averaged.scatter, np.inf)


def unless_curved(straight: LoadInterval, averaged: Ranges, errors: NDArray[np.float64]) -> LoadInterval | None:
    """The same interval, unless the use is proven to follow the load in a curve; None where it flattens."""
    if not np.all(np.isfinite(errors) & (errors > 0)):
        return straight
    if abs(square_term(averaged.loads, averaged.means, errors)) < PROVEN:
        return straight
    furthest = FORESIGHT * float(averaged.loads.max())
    return full_in_a_curve(straight, averaged.loads, averaged.means, errors, furthest=furthest)


def bend(loads: Sequence[float | None], responses: Sequence[float | None]) -> LoadInterval | None:
    """The load from which on the response is above that of the lowest third of loads: between the last range that is
    not and the first one that is. None where no range is, or all of it is flat."""
    averaged = ranges(loads, responses)
    if averaged is None:
        return None
    third = max(1, len(averaged.means) // 3)
    flat = float(np.median(averaged.means[:third]))
    error = float(np.median(averaged.scatter[:third]))
    above = (averaged.means > BENT * flat) & (averaged.means - flat > ERRORS * np.hypot(averaged.scatter, error))
    if not above[-1]:
        return None
    first = int(len(above) - np.argmin(above[::-1])) if not above.all() else 0
    if first < third:
        return None
    low, high = float(averaged.loads[first - 1]), float(averaged.loads[first])
    return LoadInterval((low + high) / 2, low, high)
