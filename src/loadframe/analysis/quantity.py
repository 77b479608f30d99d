"""The quantity of a sample that is compared: mean, quantile, maximum, or typical value."""

import math
from collections.abc import Sequence

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Floats
from loadframe.analysis.series import Mean, batched, means
from loadframe.progress import counted

Ends = tuple[float, float, float]
"""A value, and the ends of its interval."""
TYPICAL = "typical"
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
QUANTITIES = ("mean", *QUANTILES, "max", TYPICAL)
"""typical: the location of the logarithms (`located`), which single outliers hardly move."""
SHOWN = ("mean", "p50", "p99", "p99.9", "max")
FEWEST_BEYOND = 10
"""Fewer values beyond a quantile do not determine it."""
OUTLYING = 1.345
"""Standard deviations at which a value is clipped (Huber 1981, Robust Statistics)."""
LEAST_SCALE = 0.7
"""Least scale, as a share of the standard deviation. Simulated: 5 % of equal samples of five are called different with
it, 8 % without."""
ROUNDS = 10


class TooFewError(ValueError):
    """The sample is too small for the requested quantity."""


def of(values: Sequence[float], quantity: str) -> float:
    """TooFewError for a quantile without a value beyond it."""
    if quantity == "mean":
        return float(np.mean(values))
    if quantity == TYPICAL:
        return float(np.median(values))
    share = QUANTILES.get(quantity, 0.5)
    if len(values) * (1 - share) < 1 - 1e-9:
        raise TooFewError(
            f"{counted(len(values), 'value')} cannot tell the {quantity}; it takes {math.ceil(1 / (1 - share) - 1e-9)}"
        )
    return float(max(values) if quantity == "max" else np.quantile(values, share))


def pseudo_values(logs: Floats, by: str, *, alike: bool = False) -> Floats:
    """(..., n): their mean is the logarithm of a quantity (mean, max, typical), and they scatter as it does."""
    if by == "mean":
        values = np.exp(logs)
        mean = values.mean(axis=-1, keepdims=True)
        return np.asarray(np.log(mean) + values / mean - 1)  # the delta method
    return batched(logs, np.max) if by == "max" else located(logs, alike=alike)


def located(values: Floats, *, alike: bool = False) -> Floats:
    """Pseudo-values of Huber's location. alike: the sides on the first axis share their scale, so that skewed noise
    cancels."""
    centre = np.median(values, axis=-1, keepdims=True)
    scale = np.maximum(
        1.4826 * np.median(np.abs(values - centre), axis=-1, keepdims=True),
        LEAST_SCALE * values.std(axis=-1, keepdims=True, ddof=1),
    )
    scale = scale.mean(axis=0, keepdims=True) if alike else scale
    scale = np.where(scale > 0, scale, 1.0)
    for _ in range(ROUNDS):
        away = (values - centre) / scale
        inside = np.maximum((np.abs(away) < OUTLYING).mean(axis=-1, keepdims=True), 0.4)
        pulls = np.clip(away, -OUTLYING, OUTLYING) * scale / inside
        pseudo = centre + pulls
        centre = pseudo.mean(axis=-1, keepdims=True)
    return np.asarray(pseudo)


def quantile_ends(before: Floats, after: Floats, quantity: str, alpha: float) -> tuple[Ends, Ends]:
    """The quantile of each of two samples in time order, with its interval at level 1 - alpha: that of the share of
    values above it (`series`), infinite beyond the largest value. TooFewError for fewer than FEWEST_BEYOND values
    beyond it."""
    share = QUANTILES[quantity]
    fewest = min(len(before), len(after))
    if fewest * min(share, 1 - share) < FEWEST_BEYOND:
        needed = math.ceil(FEWEST_BEYOND / min(share, 1 - share) - 1e-9)
        raise TooFewError(f"{counted(fewest, 'value')} cannot tell the {quantity}; {needed} of each side are needed")
    first, second = means(*(batched((side > np.quantile(side, share)).astype(np.float64)) for side in (before, after)))
    return _ends(before, share, first, alpha), _ends(after, share, second, alpha)


def _ends(values: Floats, share: float, beyond: Mean, alpha: float) -> Ends:
    freedom = np.maximum(beyond.worth - 1, 1.0)
    half = student.quantile(1 - alpha / 2, freedom) * np.sqrt(beyond.variance)
    middle, low, high = (float(np.quantile(values, min(max(end, 0), 1))) for end in (share, share - half, share + half))
    return middle, low if share > half else 0.0, high if share + half < 1 else math.inf
