"""What of a sample is compared: its mean, a quantile, its largest value, or what is typical of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import student
from loadframe.analysis.dependence import Mean, means
from loadframe.progress import counted

Numbers = NDArray[np.float64]

TYPICAL = "typical"
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
QUANTITIES = ("mean", *QUANTILES, "max", TYPICAL)
"""typical: the mean logarithm of the medians of batches, which single outliers hardly move."""

REDUCED: Mapping[str, Callable[..., Numbers]] = {"mean": np.mean, "max": np.max}

SHOWN = ("mean", "p50", "p99", "p99.9", "max")
"""Beside the one that decides."""

MOST_BATCHES = 20
"""The number of batches that a long sample is cut into (Schmeiser 1982, Operations Research 30(3): 10 to 30 are enough
for any interval, and the longer a batch, the less it resembles its neighbour)."""

FEWEST_BEYOND = 10
"""Fewer values beyond a quantile do not tell where it is."""


class TooFewError(ValueError):
    """The sample says too little of the quantity that was asked for."""


def of(values: Sequence[float], quantity: str) -> float:
    """The quantity of some values; `typical` is their median. TooFewError where a quantile has less than one value
    beyond it, and for the largest of one."""
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


def batched(values: Numbers, reduced: str = TYPICAL) -> Numbers:
    """Medians (means, largest) of at most MOST_BATCHES batches of as equal length as possible, (..., n) -> (...,
    batches)."""
    length = values.shape[-1]
    if length <= MOST_BATCHES:
        return values
    edges = np.linspace(0, length, MOST_BATCHES + 1).astype(int)
    parts = [values[..., start:end] for start, end in pairwise(edges)]
    return np.stack([REDUCED.get(reduced, np.median)(part, axis=-1) for part in parts], axis=-1)


def linear(values: Numbers) -> Numbers:
    """Values whose mean is the logarithm of the mean of the given ones, and which scatter as it does (delta method)."""
    mean = float(values.mean())
    return math.log(mean) + values / mean - 1


def quantile_ends(
    before: Numbers, after: Numbers, quantity: str, alpha: float
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """A quantile of each of two samples in time order with the ends of its interval at level 1 - alpha.

    The share of the values above it has an interval as any mean has, whatever the values resemble (`dependence`); the
    quantiles at its ends are those of the quantile (Woodruff 1952, JASA 47); beyond the largest value it is infinite.
    TooFewError where fewer than FEWEST_BEYOND values lie beyond the quantile.
    """
    share = QUANTILES[quantity]
    fewest = min(len(before), len(after))
    if fewest * min(share, 1 - share) < FEWEST_BEYOND:
        needed = math.ceil(FEWEST_BEYOND / min(share, 1 - share) - 1e-9)
        raise TooFewError(f"{counted(fewest, 'value')} cannot tell the {quantity}; {needed} of each side are needed")
    beyond = [batched((side > np.quantile(side, share)).astype(np.float64), "mean") for side in (before, after)]
    one, two = means(*beyond)
    return _ends(before, share, one, alpha), _ends(after, share, two, alpha)


def _ends(values: Numbers, share: float, beyond: Mean, alpha: float) -> tuple[float, float, float]:
    freedom = max(float(beyond.worth) - 1, 1.0)
    half = float(student.quantile(1 - alpha / 2, freedom) * np.sqrt(beyond.variance)) + float(beyond.drift) / 2
    middle, low, high = (float(np.quantile(values, min(max(end, 0), 1))) for end in (share, share - half, share + half))
    return middle, low if share > half else 0.0, high if share + half < 1 else math.inf
