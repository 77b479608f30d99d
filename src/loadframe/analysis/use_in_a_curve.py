"""A use that is proven to follow the load in a curve: where it is full is not where a straight line says.

A parabola is fitted to the means by range of load, each with its own error. Where its square term is proven, the use
is full between where the parabola and where the straight lines (of all ranges, and of the upper half of them) are 1:
one that rises ever faster is full long before its line, and one that flattens may never be.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loadframe.model import LoadInterval

PROVEN = 4.0
"""Standard errors of the square term from which on the use follows a curve: a straight one gets there by chance once in
many thousand fits."""
FEWEST = 8
"""Ranges of load: half of them must carry a line."""
DRAWS, SEED = 400, 20261127
EDGES = (0.025, 0.975)
Floats = NDArray[np.float64]


def square_term(loads: Floats, means: Floats, errors: Floats) -> float:
    """The square term of the parabola through the means, in its standard errors; 0 where the ranges are few. errors:
    (n,) standard errors of the means."""
    if len(loads) < FEWEST:
        return 0.0
    fitted, spread = _parabola((loads - loads[0]) / np.ptp(loads), means, errors)
    return float(fitted[2] / np.sqrt(spread[2, 2]))


def full_in_a_curve(
    straight: LoadInterval, loads: Floats, means: Floats, errors: Floats, *, furthest: float
) -> LoadInterval | None:
    """Where a use that follows a curve is full: (n,) loads in rising order. straight: where the line through all of
    them is 1. None where it flattens, and is not sure to be full up to the load `furthest`."""
    lowest, span = float(loads[0]), float(np.ptp(loads))
    share = (loads - lowest) / span
    fitted, spread = _parabola(share, means, errors)
    draws = np.random.default_rng(SEED).multivariate_normal(fitted, spread, size=DRAWS)
    crossings = np.array([_full_at(*(float(term) for term in one)) for one in draws])
    soonest, latest = (lowest + span * float(one) for one in np.quantile(crossings, EDGES, method="nearest"))
    upper = share >= np.median(share)
    slope, level = np.polyfit(share[upper], means[upper], 1, w=1 / errors[upper])
    line = lowest + span * max(1.0, float((1 - level) / slope)) if slope > 0 else np.inf
    if max(latest, line) > furthest:
        return None
    return LoadInterval(line, min(soonest, straight.low, line), max(latest, straight.high, line))


def flattens(x: Floats, means: Floats, errors: Floats, *, furthest: float) -> bool:
    """Whether a use is proven to flatten over x, (n,) in rising order, and is not sure to be full up to `furthest`."""
    if not np.all(np.isfinite(errors) & (errors > 0)) or square_term(x, means, errors) > -PROVEN:
        return False
    nowhere = LoadInterval(np.inf, np.inf, 0.0)
    return full_in_a_curve(nowhere, x, means, errors, furthest=furthest) is None


def _parabola(share: Floats, means: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Level, slope and square term by weighted least squares, with their covariance."""
    design = np.vander(share, 3, increasing=True) / errors[:, None]
    spread = np.asarray(np.linalg.inv(design.T @ design), dtype=np.float64)
    return spread @ design.T @ (means / errors), spread


def _full_at(level: float, slope: float, square: float) -> float:
    """Where the parabola is 1 at or above the highest share, 1; infinite where it never is."""
    if level + slope + square >= 1:
        return 1.0
    roots = np.roots([square, slope, level - 1])
    above = [float(one.real) for one in roots if abs(one.imag) < 1e-9 and one.real >= 1]
    return min(above, default=np.inf)
