"""Shares of requests: their intervals, and whether requests fail more rarely with one treatment than with another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

from loadframe.analysis import student

Z_INTERVAL = 1.96
"""95 %."""


def wilson(count: int, total: int) -> tuple[float, float]:
    """Wilson's score interval, 95 %: E. B. Wilson, JASA 22 (1927)."""
    share, z2 = count / total, Z_INTERVAL**2
    middle = share + z2 / (2 * total)
    half = Z_INTERVAL * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    scale = 1 + z2 / total
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


HALF = 0.5
"""Added to every count, so that zero has a logarithm (Haldane 1956, Annals of Human Genetics 20)."""
FEWEST_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests of one treatment in a block, and how many of them failed."""

    requests: int
    failed: int


def rarer(before: Sequence[Asked], after: Sequence[Asked], alpha: float) -> bool:
    """Whether requests fail more rarely after than before, proved at the one-sided level alpha; block i on both sides.
    The log ratio of the shares is averaged over the blocks. It must be below 0 by more than its t-interval, as failures
    come in bursts, and by more than the counting scatter (the variance of the logarithm of a count of k is about 1 /
    k): a few failures more or less are chance, however alike the blocks are."""
    pairs = list(zip(before, after, strict=False))
    if len(pairs) < FEWEST_BLOCKS:
        return False
    ratios = [_log_share(second) - _log_share(first) for first, second in pairs]
    blocks, counting = (
        len(pairs),
        fmean(1 / (first.failed + HALF) + 1 / (second.failed + HALF) for first, second in pairs),
    )
    scatter = float(student.quantile(1 - alpha, blocks - 1)) * stdev(ratios)
    chance = NormalDist().inv_cdf(1 - alpha) * math.sqrt(counting)
    return fmean(ratios) + max(scatter, chance) / math.sqrt(blocks) < 0


def _log_share(asked: Asked) -> float:
    return math.log((asked.failed + HALF) / (asked.requests + 2 * HALF))
