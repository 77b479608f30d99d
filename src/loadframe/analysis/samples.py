"""The statistical answer on two samples that others measured: in whatever order, on whatever machine.

Nothing is known of how they came about, so nothing is taken for granted: values may resemble their neighbours, drift,
and come in bursts. What that costs in certainty is estimated from the samples themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import quantity, student
from loadframe.analysis.comparison import bootstrap_ends, decide, exp_in_range, grains, logarithms, zeros_words
from loadframe.analysis.dependence import Mean, Numbers, means
from loadframe.model import Verdict

FEWEST = 3
"""Two values have no noise of their own beyond their difference."""

LASTING = 0.25
SHORT = 40
"""A sample of fewer than SHORT values may lie in a disturbance that outlasts it, and its values do not show that: of
ten values taken in bursts of twenty that take a fifth away, a quarter of all pairs differ by just that. So far apart
(in logarithms) short samples of unknown order must be, beyond their interval, to be called different."""

UNLIKE = (-0.5, 0.2)
"""Between these, the correlation of the two sides of a block does not show that a block has anything in common: then
the sides are as good as independent, and unpaired they have twice the degrees of freedom."""


def unpaired(
    before: Sequence[float],
    after: Sequence[float],
    *,
    by: str = quantity.TYPICAL,
    alpha: float = 0.05,
    fitted: int = 0,
    seed: int = 0,
) -> Verdict:
    """Ratio after / before of a quantity of two samples of positive values in time order, at least FEWEST each.

    Each sample is cut into at most MOST_BATCHES batches of equal length. by: "typical": ratio = exp of the difference
    of the mean logarithms of the batches' medians; "mean": of the arithmetic means; "max": of the largest values, where
    the interval is that of the batches' largest, widened to hold it; a quantile: of the whole samples, with the
    intervals of both (`quantity.quantile_ends`) combined (MOVER: Zou and Donner 2008, Statistics in Medicine 27).
    Interval of the others: at each end the wider of the t-interval with autocorrelated errors (`dependence.means`) and
    the block bootstrap whose blocks are the batches (Carlstein 1986), and further by half of each sample's trend from
    end to end, where one is seen: that far the level of a drifting sample depends on when it was taken. With fewer than
    SHORT values it is wider by LASTING. fitted: as in `dependence.means`.
    Values may be rounded: each is known to the smallest spacing of all of them only. Samples without any scatter prove
    nothing: what the values would be without rounding is not known.
    Raises ValueError for fewer values and for values that are negative or not finite; TooFewError for a quantile of
    which they say too little.
    """
    (first, second), zeros = logarithms([before, after])
    _check(first, second)
    if (constant := _without_scatter(before, after)) is not None:
        return constant
    lasting = LASTING if min(len(first), len(second)) < SHORT else 0.0
    if by in quantity.QUANTILES:
        centre, low, high = _quantiles(np.exp(first), np.exp(second), by, alpha)
        method = f"{by} of {len(first)} and {len(second)} values, intervals of their ranks"
    else:
        centre, low, high, batches = _by_batches(first, second, by, alpha, fitted, seed, grains(before, after))
        method = f"{batches} batches, {WORDS[by]}, wider of autocorrelation-corrected t and block bootstrap"
    if lasting:
        method += f", and further by {100 * math.expm1(lasting):.0f} %, which fewer than {SHORT} values cannot exclude"
    return _verdict(
        centre,
        low - lasting,
        high + lasting,
        blocks=min(len(first), len(second), quantity.MOST_BATCHES),
        method=f"{method} at {100 * (1 - alpha):.4g} %{zeros_words(zeros)}",
    )


WORDS = {quantity.TYPICAL: "mean log of their medians", "mean": "their means", "max": "their largest values"}


def _by_batches(
    first: Numbers, second: Numbers, by: str, alpha: float, fitted: int, seed: int, known: tuple[float, float]
) -> tuple[float, float, float, str]:
    """Log ratio with its ends, and how many batches there were. known: to what share of itself a value is."""
    if by == "mean":
        x, y = (quantity.batched(quantity.linear(np.exp(side)), "mean") for side in (first, second))
        observed = math.log(np.exp(second).mean()) - math.log(np.exp(first).mean())
    else:
        x, y = (quantity.batched(side, by) for side in (first, second))
        observed = float(second.max() - first.max()) if by == "max" else float(y.mean() - x.mean())
    one, two = (_rounded(mean, each) for mean, each in zip(means(x, y, fitted=fitted), known, strict=True))
    _, t_low, t_high = difference(one, two, alpha)
    boot_low, boot_high = bootstrap_ends([x, y], alpha, seed)
    low, high = min(float(t_low), boot_low, observed), max(float(t_high), boot_high, observed)
    return observed, low, high, f"{len(x)} and {len(y)}"


def _quantiles(before: Numbers, after: Numbers, by: str, alpha: float) -> tuple[float, float, float]:
    with np.errstate(divide="ignore"):
        one, two = (np.log(ends) for ends in quantity.quantile_ends(before, after, by, alpha))
    centre = float(two[0] - one[0])
    return (
        centre,
        centre - math.hypot(two[0] - two[1], one[2] - one[0]),
        centre + math.hypot(two[2] - two[0], one[0] - one[1]),
    )


def paired(
    before: Sequence[float],
    after: Sequence[float],
    *,
    by: str = quantity.TYPICAL,
    alpha: float = 0.05,
    seed: int = 0,
) -> Verdict:
    """Ratio after / before of two samples of positive values, value i of both from block i, at least FEWEST blocks.

    ratio = exp(mean of the log ratios, or of the medians of their batches), or by "mean" that of the arithmetic means:
    what slows down both sides of a block cancels. Interval: where the sides of a block are alike (UNLIKE), as in
    `unpaired`, on the log ratios. The sides of a block are measured together, so little that lasts is left in their
    ratio: its correlation is taken as estimated, not as its bound. If one side was always measured first, half of the
    drift from block to block looks like a difference; the interval is widened by that much, where a drift is seen.
    Where they are not alike: Welch's t-interval. Raises as `unpaired`.
    """
    (first, second), zeros = logarithms([before, after])
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} blocks; both sides of every block are needed")
    _check(first, second)
    if (constant := _without_scatter(before, after)) is not None:
        return constant
    ratios = second - first
    if by == "mean":
        first, second = (quantity.linear(np.exp(side)) for side in (first, second))
    centre, low, high = paired_difference(first, second, alpha, grain=math.hypot(*grains(before, after)))
    boot_low, boot_high = bootstrap_ends([quantity.batched(second - first)], alpha, seed)
    return _verdict(
        float(centre),
        min(float(low), boot_low),
        max(float(high), boot_high),
        blocks=len(ratios),
        method=f"paired blocks, {'means' if by == 'mean' else 'mean log ratio'}, wider of t (autocorrelation-corrected "
        "where the sides of a block are alike) and block bootstrap at "
        f"{100 * (1 - alpha):.4g} %{zeros_words(zeros)}",
        block_ratios=tuple(exp_in_range(float(value)) for value in ratios),
    )


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
    ratio = _rounded(means(quantity.batched(after - before), bound=0.0)[0], grain)
    one, two = means(quantity.batched(before), quantity.batched(after))
    half = student.quantile(1 - alpha / 2, np.maximum(ratio.worth - 1, 1.0)) * np.sqrt(ratio.variance)
    half = half + ratio.drift / 2 + (one.drift + two.drift) / 2 / before.shape[-1] / 2
    if before.shape[-1] > quantity.MOST_BATCHES:
        return ratio.value, ratio.value - half, ratio.value + half
    half = np.where(_unlike(before, after), _welch(before, after, alpha, grain), half)
    return ratio.value, ratio.value - half, ratio.value + half


def _unlike(before: Numbers, after: Numbers) -> NDArray[np.bool_]:
    """Whether the two sides of a block have nothing in common, as far as the blocks show."""
    one, two = (side - side.mean(axis=-1, keepdims=True) for side in (before, after))
    scale = np.sqrt((one**2).sum(axis=-1) * (two**2).sum(axis=-1))
    alike = np.divide((one * two).sum(axis=-1), scale, out=np.ones_like(scale), where=scale > 0)
    return np.asarray((alike > UNLIKE[0]) & (alike < UNLIKE[1]))


def _welch(before: Numbers, after: Numbers, alpha: float, grain: float) -> Numbers:
    """Half of the interval of the difference of two means of independent values."""
    count = before.shape[-1]
    one, two = (side.var(axis=-1, ddof=1) / count for side in (before, after))
    freedom = np.divide((one + two) ** 2 * (count - 1), one**2 + two**2, out=np.ones_like(one), where=one + two > 0)
    half = student.quantile(1 - alpha / 2, np.maximum(freedom, 1.0)) * np.sqrt(one + two + grain**2 / 12 / count)
    return np.asarray(half)


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
