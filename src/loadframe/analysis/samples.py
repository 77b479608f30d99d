"""The statistical answer on two samples that somebody else measured: in whatever order, on whatever machine.

Nothing is known of how they came about, so nothing is taken for granted: values may resemble their neighbours, drift,
and come in bursts. What that costs in certainty is estimated from the samples themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.comparison import bootstrap_ends, decide, exp_in_range, grains, logarithms, zeros_words
from loadframe.analysis.dependence import Mean, Numbers, means
from loadframe.model import Verdict

MOST_BATCHES = 20
"""Long samples are cut into so many batches (Schmeiser 1982, Operations Research 30(3): 10 to 30 are enough for any
interval, and the longer a batch, the less it resembles its neighbour)."""

FEWEST = 3
"""Two values have no noise of their own beyond their difference."""


def unpaired(
    before: Sequence[float], after: Sequence[float], *, alpha: float = 0.05, fitted: int = 0, seed: int = 0
) -> Verdict:
    """Ratio after / before of two samples of positive values in time order, at least FEWEST each.

    Each sample is cut into at most MOST_BATCHES batches of equal length; ratio = exp of the difference of the mean
    logarithms of their medians (a batch of one value is that value). Interval: at each end the wider of the t-interval
    with autocorrelated errors (`dependence.means`) and the block bootstrap whose blocks are the batches (Carlstein
    1986), and further by half of each sample's trend from end to end, where one is seen: that far the level of a
    drifting sample depends on when it was taken. fitted: as in `dependence.means`.
    Values may be rounded: each is known to the smallest spacing of all of them only. Samples without any scatter prove
    nothing: what the values would be without rounding is not known.
    Raises ValueError for fewer values and for values that are negative or not finite.
    """
    (first, second), zeros = logarithms([before, after])
    _check(first, second)
    if (constant := _without_scatter(before, after)) is not None:
        return constant
    x, y = batch_means(first), batch_means(second)
    one, two = (
        _rounded(mean, each) for mean, each in zip(means(x, y, fitted=fitted), grains(before, after), strict=True)
    )
    centre, low, high = difference(one, two, alpha)
    boot_low, boot_high = bootstrap_ends([x, y], alpha, seed)
    return _verdict(
        float(centre),
        min(float(low), boot_low),
        max(float(high), boot_high),
        blocks=min(len(x), len(y)),
        method=f"{len(x)} and {len(y)} batches, mean log of their medians, wider of autocorrelation-corrected t and "
        f"block bootstrap at {100 * (1 - alpha):.4g} %{zeros_words(zeros)}",
    )


def paired(before: Sequence[float], after: Sequence[float], *, alpha: float = 0.05, seed: int = 0) -> Verdict:
    """Ratio after / before of two samples of positive values, value i of both from block i, at least FEWEST blocks.

    ratio = exp(mean of the log ratios, or of the medians of their batches): what slows down both sides of a block
    cancels. Interval as in `unpaired`, on the log ratios. The sides of a block are measured together, so little that
    lasts is left in their ratio: its correlation is taken as estimated, not as its bound. If one side was always
    measured first, half of the drift from block to block looks like a difference; the interval is widened by that much,
    where a drift is seen. Raises as `unpaired`.
    """
    (first, second), zeros = logarithms([before, after])
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} blocks; both sides of every block are needed")
    _check(first, second)
    if (constant := _without_scatter(before, after)) is not None:
        return constant
    ratios = second - first
    batches = batch_means(ratios)
    centre, low, high = paired_difference(first, second, alpha, grain=math.hypot(*grains(before, after)))
    boot_low, boot_high = bootstrap_ends([batches], alpha, seed)
    return _verdict(
        float(centre),
        min(float(low), boot_low),
        max(float(high), boot_high),
        blocks=len(ratios),
        method="paired blocks, mean log ratio, wider of autocorrelation-corrected t and block bootstrap at "
        f"{100 * (1 - alpha):.4g} %{zeros_words(zeros)}",
        block_ratios=tuple(exp_in_range(float(value)) for value in ratios),
    )


def batch_means(values: Numbers) -> Numbers:
    """Medians of at most MOST_BATCHES batches of as equal length as possible, (..., n) -> (..., batches)."""
    length = values.shape[-1]
    if length <= MOST_BATCHES:
        return values
    edges = np.linspace(0, length, MOST_BATCHES + 1).astype(int)
    return np.stack([np.median(values[..., start:end], axis=-1) for start, end in pairwise(edges)], axis=-1)


def difference(before: Mean, after: Mean, alpha: float) -> tuple[Numbers, Numbers, Numbers]:
    """after - before with the ends of its t-interval (Welch's degrees of freedom), widened by half of the drifts."""
    variance = before.variance + after.variance
    parts = sum(each.variance**2 / np.maximum(each.worth - 1, 0.5) for each in (before, after))
    degrees = np.divide(variance**2, parts, out=np.ones_like(variance), where=np.asarray(parts) > 0)
    half = student.quantile(1 - alpha / 2, np.maximum(degrees, 1.0)) * np.sqrt(variance)
    half = half + (before.drift + after.drift) / 2
    centre = after.value - before.value
    return centre, centre - half, centre + half


def paired_difference(
    before: Numbers, after: Numbers, alpha: float, *, grain: float = 0.0
) -> tuple[Numbers, Numbers, Numbers]:
    """Mean of after - before over the blocks (..., n) with the ends of its interval, as `paired` describes. grain: to
    what a difference is rounded."""
    ratio = _rounded(means(batch_means(after - before), bound=0.0)[0], grain)
    one, two = means(batch_means(before), batch_means(after))
    half = student.quantile(1 - alpha / 2, np.maximum(ratio.worth - 1, 1.0)) * np.sqrt(ratio.variance)
    half = half + ratio.drift / 2 + (one.drift + two.drift) / 2 / before.shape[-1] / 2
    return ratio.value, ratio.value - half, ratio.value + half


def _rounded(mean: Mean, grain: float) -> Mean:
    """With what rounding adds: a value is anywhere within a grain (variance grain^2 / 12)."""
    return replace(mean, variance=mean.variance + grain**2 / 12 / mean.worth)


def _without_scatter(before: Sequence[float], after: Sequence[float]) -> Verdict | None:
    """The verdict on two samples of one value each; None where there is any scatter to judge by."""
    if any(value != before[0] for value in before) or any(value != after[0] for value in after):
        return None
    (first, second), zeros = logarithms([before[:1], after[:1]])
    centre = float(second[0] - first[0])
    return _verdict(
        centre,
        min(0.0, 2 * centre),
        max(0.0, 2 * centre),
        blocks=min(len(before), len(after)),
        method=f"no scatter in either sample: all noise may have been rounded away{zeros_words(zeros)}",
    )


def _check(*samples: Numbers) -> None:
    fewest = min(len(each) for each in samples)
    if fewest < FEWEST:
        raise ValueError(f"{fewest} values or blocks say nothing about the noise; at least {FEWEST} are needed")


def _verdict(
    centre: float, low: float, high: float, *, blocks: int, method: str, block_ratios: tuple[float, ...] = ()
) -> Verdict:
    ratio, low_ratio, high_ratio = exp_in_range(centre), exp_in_range(low), exp_in_range(high)
    return Verdict(ratio, low_ratio, high_ratio, decide(low, high), blocks, method, block_ratios)
