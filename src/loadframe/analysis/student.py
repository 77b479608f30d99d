"""Student's t, without importing scipy, which takes a second at the start of every command. Integer degrees of freedom
have a finite series (Abramowitz and Stegun, 26.7.3 and 26.7.4); scipy.special, a third of a second, is imported for
other ones and for arrays."""

import math
from functools import lru_cache
from typing import Any

MOST_TERMS = 400
"""The most degrees of freedom for which the series is summed."""


def quantile(probability: Any, freedom: Any) -> Any:
    """The quantile of the t-distribution with `freedom` degrees of freedom; numbers, or arrays that broadcast."""
    if isinstance(probability, float) and isinstance(freedom, int) and 1 <= freedom <= MOST_TERMS:
        return _whole(probability, freedom)
    from scipy.special import stdtrit

    return stdtrit(freedom, probability)


@lru_cache(maxsize=1024)
def _whole(probability: float, freedom: int) -> float:
    """By bisection of the angle whose tangent is t / sqrt(freedom)."""
    if not 0 < probability < 1:
        return math.nan if not 0 <= probability <= 1 else math.copysign(math.inf, probability - 0.5)
    within = abs(2 * probability - 1)
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(middle, freedom) < within else (low, middle)
    return math.copysign(math.sqrt(freedom) * math.tan(low), probability - 0.5)


def _within(angle: float, freedom: int) -> float:
    """P(|T| <= t) with t = sqrt(freedom) tan(angle)."""
    sine, cosine, odd = math.sin(angle), math.cos(angle), freedom % 2
    term = cosine if odd else 1.0
    total = 0.0
    for power in range(odd, freedom - 1, 2):
        total += term
        term *= cosine**2 * (power + 1) / (power + 2)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
