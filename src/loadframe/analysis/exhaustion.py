"""At which load a limit runs out: its use regressed on load, and the crossing with the ceiling.

Use is u = a + b N, by ordinary least squares over the steps clearly below the ceiling: at the ceiling a use is cut
and no longer says what is wanted. The crossing N* = (c - a) / b has Fieller's interval: all N at which the line may
be c, (a + b N - c)^2 <= t^2 s^2 (1/n + (N - mean)^2 / Sxx) (Fieller 1954, JRSS B 16; Draper and Smith, "Applied
Regression Analysis", 3.2, inverse regression). It holds as far as use goes on growing in a straight line; beyond the
loads that were measured nothing proves that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import student
from loadframe.model import REACHED, LoadInterval

GROWTH_SHARE = 0.02
"""A use that grows by less than this share of its ceiling over all loads is not going to run out."""

ASSUMED_ERROR = 0.1
"""Two points leave no residual; each use is then taken to be known to 10 %."""

CONFIDENCE = 0.95

FEWEST_FREEDOM = 2
"""Of rows that are alike: how many are worth one is itself not known well enough to take fewer."""


@dataclass(frozen=True, slots=True)
class _Line:
    """use = intercept + slope * load; error: residual standard deviation; reach: quantile times error."""

    intercept: float
    slope: float
    mean_load: float
    count: float
    sxx: float
    reach: float
    growth: float

    @property
    def grows(self) -> bool:
        return self.slope > 0 and self.slope > self.reach / math.sqrt(self.sxx)


def exhausted_at(
    loads: NDArray[np.float64],
    uses: NDArray[np.float64],
    ceiling: float,
    *,
    highest_load: float | None = None,
    confidence: float = CONFIDENCE,
) -> LoadInterval | None:
    """The load at which use reaches `ceiling`, with its interval (by default of 95 %); None where it does not.

    loads, uses: (n,) one per step, several steps per load allowed, use in the ceiling's unit. From at least two loads
    below the ceiling: the regression's crossing; where the ceiling was seen to be reached it lies between the highest
    load below and the lowest at the ceiling, and the interval is cut to that. With one load below: that bracket, its
    low end raised to where use in proportion to load reaches the ceiling (a fixed part makes it later, never earlier).
    With none: low = load = high = the lowest load, read as "at or below". None where use does not grow with load (slope
    not significant, or less than 2 % of the ceiling over all loads) and the ceiling was not reached; None also where
    the crossing lies beyond `highest_load`, the largest load that means anything to the user.
    Raises ValueError where the ceiling is not positive or the arrays' lengths differ.
    """
    loads, uses = _checked(loads, uses, ceiling)
    line = _regression(loads, uses, ceiling, confidence)
    bracket = _bracket(loads, uses, ceiling)
    if bracket is not None and line is None:
        bracket = _in_proportion(loads, uses, ceiling, *bracket)
    crossing = _crossing(line, ceiling) if line is not None else None
    if bracket is not None:
        found: LoadInterval | None = _within(crossing, *bracket)
    elif line is None or crossing is None or line.growth < GROWTH_SHARE * ceiling:
        found = None
    else:
        # Nothing reached the ceiling yet, so it runs out beyond what was measured.
        found = _within(crossing, float(loads.max()), math.inf)
    if found is None or not math.isfinite(found.load) or (highest_load is not None and found.load > highest_load):
        return None
    return found


def crossing_of_alike(
    loads: NDArray[np.float64], uses: NDArray[np.float64], ceiling: float, alike: float
) -> LoadInterval | None:
    """Where the line through rows in time order meets the ceiling; None where it does not rise significantly.

    alike: how many rows are worth one independent row (their integrated autocorrelation time), at least 1. Raises
    ValueError as `exhausted_at`.
    """
    line = _regression(*_checked(loads, uses, ceiling), ceiling, worth=1 / alike)
    return None if line is None else _crossing(line, ceiling)


def demand_at(loads: NDArray[np.float64], uses: NDArray[np.float64], ceiling: float, load: float) -> float | None:
    """The use expected at `load` if there were no ceiling: the same line, never below 0.

    Where use does not grow significantly the mean use is the answer: a slope made of noise must not be extrapolated.
    With one load below the ceiling: in proportion to it, an upper bound. None where no load is below the ceiling.
    Outside the loads measured it is an extrapolation.
    """
    loads, uses = _checked(loads, uses, ceiling)
    line = _regression(loads, uses, ceiling)
    if line is None:
        below = uses < REACHED * ceiling
        return float(np.median(uses[below])) * load / float(loads[below][0]) if below.any() else None
    if abs(line.slope) <= line.reach / math.sqrt(line.sxx):
        return max(line.intercept + line.slope * line.mean_load, 0.0)
    return max(line.intercept + line.slope * load, 0.0)


def _checked(
    loads: NDArray[np.float64], uses: NDArray[np.float64], ceiling: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    loads, uses = np.asarray(loads, dtype=np.float64), np.asarray(uses, dtype=np.float64)
    if not ceiling > 0 or not math.isfinite(ceiling):
        raise ValueError(f"the ceiling is {ceiling}; it must be finite and above zero")
    if loads.shape != uses.shape or loads.ndim != 1:
        raise ValueError(f"{loads.shape} loads and {uses.shape} uses; one use per load is needed")
    known = np.isfinite(loads) & np.isfinite(uses)
    return loads[known], uses[known]


def _bracket(loads: NDArray[np.float64], uses: NDArray[np.float64], ceiling: float) -> tuple[float, float] | None:
    """Highest load below and lowest load at the ceiling, by the median use of each load; None if never reached."""
    reached = [float(load) for load in np.unique(loads) if np.median(uses[loads == load]) >= REACHED * ceiling]
    if not reached:
        return None
    below = loads[loads < reached[0]]
    return (float(below.max()) if below.size else reached[0]), reached[0]


def _in_proportion(
    loads: NDArray[np.float64], uses: NDArray[np.float64], ceiling: float, low: float, high: float
) -> tuple[float, float]:
    """The bracket, its low end raised to where the use at `low`, in proportion to load, reaches the ceiling."""
    use = float(np.median(uses[loads == low]))
    return (min(max(low, low * ceiling / use), high) if 0 < use < ceiling else low), high


def _regression(
    loads: NDArray[np.float64],
    uses: NDArray[np.float64],
    ceiling: float,
    confidence: float = CONFIDENCE,
    worth: float = 1.0,
) -> _Line | None:
    """worth: of a row, in independent ones."""
    below = uses < REACHED * ceiling
    loads, uses = loads[below], uses[below]
    if len(np.unique(loads)) < 2:
        return None
    mean_load, mean_use = float(loads.mean()), float(uses.mean())
    sxx = float(((loads - mean_load) ** 2).sum())
    slope = float(((loads - mean_load) * (uses - mean_use)).sum()) / sxx
    intercept = mean_use - slope * mean_load
    freedom = len(loads) - 2
    if freedom > 0:
        independent = freedom if worth == 1 else max(FEWEST_FREEDOM, round(len(loads) * worth) - 2)
        error = math.sqrt(float(((uses - intercept - slope * loads) ** 2).sum()) * worth / independent)
        reach = float(student.quantile((1 + confidence) / 2, independent)) * error
    else:
        reach = 1.96 * ASSUMED_ERROR * math.sqrt(float((uses**2).mean()))
    growth = slope * float(np.ptp(loads))
    return _Line(intercept, slope, mean_load, worth * len(loads), worth * sxx, reach, growth)


def _crossing(line: _Line, ceiling: float) -> LoadInterval | None:
    """Fieller's interval; None where the slope is not significant, for then it has no end."""
    if not line.grows:
        return None
    # Divided by b^2, with g = t^2 s^2 / (b^2 Sxx) < 1, d = N - mean and e = N* - mean, so that units cannot underflow:
    # (1 - g) d^2 - 2 e d + e^2 - g Sxx / n = 0.
    g = (line.reach / math.sqrt(line.sxx) / line.slope) ** 2
    distance = (ceiling - line.intercept) / line.slope - line.mean_load
    if not math.isfinite(distance) or g >= 1:
        return None
    root = math.sqrt(g * (distance**2 + (1 - g) * line.sxx / line.count)) if abs(distance) < 1e150 else math.inf
    if not math.isfinite(root / (1 - g)):
        return None
    low, high = (distance - root) / (1 - g), (distance + root) / (1 - g)
    return LoadInterval(line.mean_load + distance, line.mean_load + low, line.mean_load + high)


def _within(crossing: LoadInterval | None, low: float, high: float) -> LoadInterval:
    """The crossing cut to what was seen; the seen bracket itself where there is no crossing, or where all of it is
    outside: then the line is refuted, and not more is known."""
    if crossing is None or crossing.high < low or crossing.low > high:
        middle = math.sqrt(low) * math.sqrt(high) if low > 0 else (low + high) / 2
        return LoadInterval(min(max(middle, low), high), low, high)
    load = min(max(crossing.load, low), high)
    return LoadInterval(load, min(max(crossing.low, low), load), max(min(crossing.high, high), load))
