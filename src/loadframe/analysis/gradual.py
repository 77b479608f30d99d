"""Whether a throughput that levels off does so at a corner, or gradually: then no single load is its knee.

One family has both: X = a N / (1 + (N / k)^p)^(1/p). With a large p it is the corner of a bottleneck (the asymptotic
bounds, Lazowska et al. 1984, 5), with p = 1 the hyperbola of Michaelis and Menten and of the scalability law without
kappa. Its elasticity is 1 / (1 + (N / k)^p): it grows nearly in proportion below k SHARE^(-1/p) and hardly above
k SHARE^(1/p). Where straight pieces are put through such a curve, they meet at another load for each set of levels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis.pieces import Floats, Series
from loadframe.model import LoadInterval

SHARE = 4.0
"""Elasticities of 4/5 and of 1/5."""

GRADUAL = 2.0
"""Ends further apart than this factor, whichever of the curves that the levels allow is taken, are no corner."""

FEWEST_LEVELS = 5
SHARPNESS = np.geomspace(0.4, 40.0, 41)
PLACES = 80
BEYOND = 4.0
"""Times the highest load up to which a bend is looked for, and below the lowest one."""

ALLOWED = 5.99
"""Of chi squared with two degrees of freedom, 95 %."""

NOISE_FLOOR = 0.01
"""As in segments.py."""


def gradual(data: Series, pieces: Floats, knee: LoadInterval | None) -> LoadInterval | None:
    """The loads between which the throughput goes over from growing in proportion (an elasticity of 4/5) to hardly
    growing (1/5), cut to the levels; around the knee. None where a corner is not refuted, or the straight pieces,
    (n,), are nearer to the levels. Levels beyond the highest throughput are left out: a fall is no part of it."""
    if knee is None:
        return None
    top = int(data.value.argmax()) + 1
    if top < FEWEST_LEVELS or not np.all(data.value[:top] > 0):
        return None
    load, value, weight = data.load[:top], np.log(data.value[:top]), 1 / (data.spread[:top] + 1e-12)
    places, squares, _ = _fits(load, value, weight)
    weight = weight / weight.mean()
    straight = value - np.log(np.maximum(pieces[:top], 1e-12))
    straight -= (weight * straight).sum() / weight.sum()
    if squares.min() >= float((weight * straight**2).sum()):
        return None
    possible = _possible(squares, top, data.noise**2 * float(data.spread[:top].mean()))
    if not (SHARE ** (2 / SHARPNESS[possible.any(axis=1)]) > GRADUAL).all():
        return None
    apart = SHARE ** (1 / SHARPNESS[:, None])
    low, high = float((places / apart)[possible].min()), float((places * apart)[possible].max())
    return LoadInterval(
        knee.load, min(max(low, float(load[0])), knee.low), max(min(high, float(data.load[-1])), knee.high)
    )


def most(x: Floats, value: Floats, error: float) -> float:
    """The highest value that any of the curves that the levels allow comes to, however high x is; infinite where a
    straight line is among them. x, value: (n,) above 0, ascending x. error: of each value, relative, as its own
    scatter has it; 0 where that is not known."""
    if len(x) < FEWEST_LEVELS:
        return float("inf")
    places, squares, scale = _fits(x, np.log(value), np.ones(len(x)))
    reached = np.exp(scale) * places
    possible = _possible(squares, len(x), error**2)
    straight = possible & (places > x[-1])  # still in proportion at the highest: where it ends is not seen
    return float("inf") if straight.any() else float(reached[possible].max())


def _fits(load: Floats, value: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """The places k that are tried; for each sharpness and place the sum of squares and log a. value: logarithms."""
    weight = weight / weight.mean()
    places = np.geomspace(load[0] / BEYOND, BEYOND * load[-1], PLACES)
    bent = np.logaddexp(0.0, SHARPNESS[:, None, None] * np.log(load / places[:, None])) / SHARPNESS[:, None, None]
    left = value - np.log(load) + bent
    scale = (weight * left).sum(axis=2) / weight.sum()
    return places, np.asarray((weight * (left - scale[:, :, None]) ** 2).sum(axis=2)), np.asarray(scale)


def _possible(squares: Floats, levels: int, variance: float) -> NDArray[np.bool_]:
    """Which curves the levels allow. variance: of a level, as the scatter of its blocks has it."""
    least = float(squares.min())
    return np.asarray(squares <= least + ALLOWED * max(least / (levels - 3), NOISE_FLOOR**2, variance))
