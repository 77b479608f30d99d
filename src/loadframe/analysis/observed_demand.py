"""What a request needs of a resource, from rows in time order.

Utilisation law U = U0 + D X (Denning and Buzen 1978, ACM Computing Surveys 10(3)) holds for means over any stretch of
time, so it is fitted to the means of time blocks (observed_blocks.py), which are nearly independent: least squares with
Huber's weights (1964, Annals of Mathematical Statistics 35), so that a block that something else disturbed does not
tilt it. Its interval is the jackknife's over blocks, with Student's t: the variance of leaving one block out (MacKinnon
and White 1985, Journal of Econometrics 29: HC3), which holds for noise that grows with the load and for the few blocks
of the highest loads; and it is never narrower than what a request's need was seen to drift by (DRIFT).
"""

import math
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.observed_blocks import MAD, Floats
from loadframe.analysis.saturation_of_rows import DRIFT

HUBER = 1.5
ROUNDS = 20
CONFIDENCE = 0.95
FEWEST = 8
"""Blocks with both columns; fewer carry no interval that is worth a word."""

LEAST_SPREAD = 0.05
"""Throughputs of the blocks that vary by less than this share of their mean show no slope."""

LEAST_RISE = 0.003
"""A use that requests move by less than this over all throughputs that were seen is not known to be moved by them: no
counter of it is finer."""


@dataclass(frozen=True, slots=True)
class Line:
    """y = background + slope x with the slope's interval, and half of the part of it that is chance."""

    background: float
    slope: float
    low: float
    high: float
    chance: float


def law(x: Floats, y: Floats, weight: Floats) -> Line | None:
    """The line through block means, (n,) each, weight: rows of each. None where the blocks are few, or x hardly
    varies."""
    known = np.isfinite(x) & np.isfinite(y) & (weight > 0)
    x, y, weight = x[known], y[known], weight[known]
    if len(x) < FEWEST or not float(np.std(x)) > LEAST_SPREAD * abs(float(np.mean(x))):
        return None
    robust = weight * _huber(x, y, weight)
    slope, background = _least_squares(x, y, robust)
    left_out = _slopes(x, y, robust[None, :] * (1 - np.eye(len(x))))[0]  # jackknife
    count = len(x)
    error = math.sqrt(float(((left_out - left_out.mean()) ** 2).sum()) * (count - 1) / count)
    chance = float(student.quantile((1 + CONFIDENCE) / 2, count - 2)) * error
    half = math.hypot(chance, DRIFT * abs(slope))
    return Line(background, slope, slope - half, slope + half, chance)


@dataclass(frozen=True, slots=True)
class Growing:
    """The slope of the upper half as a ratio to that of the lower half; high is infinite where that may be 0."""

    ratio: float
    low: float
    high: float


def growing(x: Floats, y: Floats, weight: Floats) -> Growing | None:
    """How the slope changes from the lower half of x to the upper one; None unless it is proven to."""
    known = np.isfinite(x) & np.isfinite(y) & (weight > 0)
    x, y, weight = x[known], y[known], weight[known]
    if len(x) < 2 * FEWEST:
        return None
    middle = float(np.median(x))
    lower, upper = (law(x[side], y[side], weight[side]) for side in (x <= middle, x >= middle))
    if lower is None or upper is None or lower.slope <= 0 or upper.slope <= 0:
        return None
    apart = abs(upper.slope - lower.slope)
    error = math.hypot(upper.chance, lower.chance)
    if apart <= error:
        return None
    return _ratio(upper, lower)


def _ratio(upper: Line, lower: Line) -> Growing:
    """Fieller's interval: all r with (upper - r lower)^2 within the chance of both. 1 is outside, as it was tested."""
    square = lower.slope**2 - lower.chance**2
    middle, level = upper.slope * lower.slope, upper.slope**2 - upper.chance**2
    root = math.sqrt(max(middle**2 - square * level, 0.0))
    ratio = upper.slope / lower.slope
    low = level / (middle + root)
    high = (middle + root) / square if square > 0 else math.inf
    return Growing(ratio, max(min(low, ratio), 0.0), max(high, ratio))


def _slopes(x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted least squares of every draw: slopes and intercepts, (S,)."""
    total = np.maximum(weights.sum(axis=1), 1e-300)
    mean_x, mean_y = weights @ x / total, weights @ y / total
    spread = weights @ x**2 / total - mean_x**2
    product = weights @ (x * y) / total - mean_x * mean_y
    slope = np.divide(product, spread, out=np.zeros(len(total)), where=spread > 1e-12 * mean_x**2 + 1e-300)
    return slope, mean_y - slope * mean_x


def _least_squares(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    slope, background = _slopes(x, y, weight[None, :])
    return float(slope[0]), float(background[0])


def _huber(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Weights of at most 1: of a block further than HUBER robust deviations from the line, in proportion less. Noise is
    taken as growing with the fit."""
    robust = np.ones(len(x))
    for _ in range(ROUNDS):
        slope, background = _least_squares(x, y, weight * robust)
        fitted = background + slope * x
        size = np.maximum(np.abs(fitted), 0.1 * float(np.abs(fitted).max()) + 1e-12)
        away = np.abs(y - fitted) / size * np.sqrt(weight / weight.mean())
        scale = max(MAD * float(np.median(away)), 1e-9)
        moved = np.minimum(1.0, HUBER * scale / np.maximum(away, 1e-300))
        if np.abs(moved - robust).max() < 1e-4:
            break
        robust = moved
    return robust
