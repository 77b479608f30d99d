"""The statistical answer on two treatments that alternated in blocks.

Within a block both treatments are measured close together, so what the machine does to all of them cancels in the
ratio. Ratios are averaged in logarithms: then after / before is exactly the reciprocal of before / after, and the
gains of successive changes add up to the whole (Fleming and Wallace 1986, CACM 29(3): the geometric mean is the
only correct average of normalised results).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from loadframe.model import Decision, LadderStep, Verdict

RESAMPLES = 2000

ZERO_COUNTS_AS = 0.01
"""A throughput of zero counts as this share of the smallest positive one of its level, on either side."""

FEWEST_BLOCKS = 2
"""One block says nothing about the noise."""

ROUNDING = 1e-9
"""An end of the interval within rounding of 1 is not a difference."""


def verdict(
    before: Mapping[float, Sequence[float]],
    after: Mapping[float, Sequence[float]],
    *,
    confidence: float = 0.95,
    looks: int = 1,
    seed: int = 0,
) -> Verdict:
    """Ratio after / before over the levels that both have, from their throughputs (1/s) per block.

    Index i of a level is block i on both sides; blocks are those complete on every level. Per block the log ratio is
    averaged over the levels; ratio = exp(mean over the blocks): the mean, because the interval below is centred on it.
    The interval is the wider, at each end, of the paired t-interval on the block log ratios and their bootstrap: with
    few blocks the bootstrap is too narrow (it resamples n - 1 degrees of freedom as if they were n), with many the t
    trusts symmetry too much. `looks` counts how often the caller has looked so far, this time included: look i spends
    alpha_i = alpha 6 / (pi^2 i^2), and the sum over all looks stays below alpha however often one looks.

    A throughput of zero (all requests failed) counts as 1 % of the smallest positive one at that level, both sides
    together; where both sides are zero the ratio is 1. A change that makes a level fail thus cannot look better.
    With fewer than two blocks: no proven difference, low and high are the extremes of the single levels' ratios.
    Raises ValueError where there is no common level, no complete block or a value is negative or not finite.
    """
    if not 0 < confidence < 1 or looks < 1:
        raise ValueError(f"confidence {confidence} must be between 0 and 1, looks {looks} at least 1")
    levels = tuple(sorted(set(before) & set(after)))
    if not levels:
        raise ValueError("the two treatments have no level in common; measure both at the same levels")
    blocks = min(min(len(before[level]), len(after[level])) for level in levels)
    if blocks == 0:
        raise ValueError("no block is complete on every level; measure at least one")
    pairs = [_log_ratios(before[level][:blocks], after[level][:blocks]) for level in levels]
    table = np.array([row for row, _ in pairs])
    zeros = sum(count for _, count in pairs)
    by_block = table.mean(axis=0)
    centre = float(by_block.mean())
    alpha = (1 - confidence) * 6 / (math.pi * looks) ** 2
    if blocks < FEWEST_BLOCKS:
        low, high = float(table.min()), float(table.max())
    else:
        low, high = _interval(by_block, alpha, seed)
    return Verdict(
        ratio=_exp(centre),
        low=_exp(low),
        high=_exp(high),
        decision=_decide(low, high) if blocks >= FEWEST_BLOCKS else "no-proven-difference",
        blocks=blocks,
        method=_method(blocks, alpha, looks, zeros),
        block_ratios=tuple(_exp(float(value)) for value in by_block),
        levels=levels,
    )


def shares(verdicts: Sequence[tuple[str, Verdict, str | None]]) -> tuple[LadderStep, ...]:
    """The ladder: (change, its verdict, what it gives up) in order -> share of each in the logarithm of the whole gain.

    The shares add up to 1, and are all 0 where the whole gain is 1. A change that lost has a negative share.
    """
    logs = [math.log(verdict.ratio) for _, verdict, _ in verdicts]
    total = sum(logs)
    return tuple(
        LadderStep(
            change=change,
            ratio=verdict.ratio,
            low=verdict.low,
            high=verdict.high,
            share=log / total if abs(total) > ROUNDING else 0.0,
            gives_up=gives_up,
        )
        for (change, verdict, gives_up), log in zip(verdicts, logs, strict=True)
    )


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """The whole gain of successive changes, each proved against the state before it.

    The ratios are multiplied; the intervals' half-widths are added in quadrature, in logarithms and each side by
    itself, as the trials are independent. A single verdict is returned as it is. Raises ValueError for none.
    """
    if not verdicts:
        raise ValueError("there is no verdict to combine")
    if len(verdicts) == 1:
        return verdicts[0]
    centre = sum(math.log(each.ratio) for each in verdicts)
    down = math.sqrt(sum((math.log(each.ratio) - math.log(each.low)) ** 2 for each in verdicts))
    up = math.sqrt(sum((math.log(each.high) - math.log(each.ratio)) ** 2 for each in verdicts))
    common = set(verdicts[0].levels).intersection(*(each.levels for each in verdicts))
    same = all(set(each.levels) == common for each in verdicts)
    method = f"product of {len(verdicts)} successive verdicts, intervals combined in quadrature of logarithms"
    if not same:
        method += "; the verdicts were taken at different levels, so the product is approximate"
    proven = all(each.blocks >= FEWEST_BLOCKS for each in verdicts)
    return Verdict(
        ratio=_exp(centre),
        low=_exp(centre - down),
        high=_exp(centre + up),
        decision=_decide(centre - down, centre + up) if proven else "no-proven-difference",
        blocks=min(each.blocks for each in verdicts),
        method=method,
        levels=tuple(sorted(common)),
    )


def _log_ratios(before: Sequence[float], after: Sequence[float]) -> tuple[NDArray[np.float64], int]:
    """Log ratios of one level per block, and how many of its values were zero."""
    both = np.array([before, after], dtype=np.float64)
    if not np.isfinite(both).all() or (both < 0).any():
        raise ValueError(f"throughputs must be finite and not negative, got {both.tolist()}")
    zero = both == 0
    if zero.any():
        positive = both[~zero]
        both[zero] = ZERO_COUNTS_AS * positive.min() if positive.size else 1.0
        # The smallest double there is has no hundredth.
        both = np.maximum(both, np.finfo(np.float64).tiny)
    ratios: NDArray[np.float64] = np.log(both[1]) - np.log(both[0])
    return ratios, int(zero.sum())


def _interval(by_block: NDArray[np.float64], alpha: float, seed: int) -> tuple[float, float]:
    """The wider of the paired t-interval and the bootstrap of the mean, at level 1 - alpha."""
    blocks = len(by_block)
    centre = float(by_block.mean())
    half = float(student.ppf(1 - alpha / 2, blocks - 1)) * float(by_block.std(ddof=1)) / math.sqrt(blocks)
    draws = np.random.default_rng(seed).integers(0, blocks, size=(RESAMPLES, blocks))
    low, high = np.quantile(by_block[draws].mean(axis=1), [alpha / 2, 1 - alpha / 2])
    return min(centre - half, float(low)), max(centre + half, float(high))


def _decide(low: float, high: float) -> Decision:
    """From the ends of the interval, in logarithms."""
    if low > ROUNDING:
        return "better"
    if high < -ROUNDING:
        return "worse"
    return "no-proven-difference"


def _exp(value: float) -> float:
    """exp without overflow: two blocks can have an interval that is wider than doubles are."""
    return math.exp(min(max(value, -700.0), 700.0))


def _method(blocks: int, alpha: float, looks: int, zeros: int) -> str:
    if blocks < FEWEST_BLOCKS:
        text = "one block: extremes of the levels' ratios, no interval"
    else:
        text = f"paired blocks, mean log ratio, wider of t and bootstrap at {100 * (1 - alpha):.4g} % (look {looks})"
    return text + (f"; {zeros} zero throughputs counted as 1 % of the smallest" if zeros else "")
