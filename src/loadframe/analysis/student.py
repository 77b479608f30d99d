"""Quantiles of Student's t and of Fisher's F, without scipy, a fifth of what Loadframe installs. Whole degrees of
freedom of t have a finite series (Abramowitz and Stegun, 26.7.3 and 26.7.4), which needs no numpy either."""

import math
from functools import cache, lru_cache
from typing import Any

MOST_TERMS = 400
"""Degrees of freedom up to which the series is summed."""
NORMAL = 1e7
"""From this many degrees of freedom t equals the normal distribution to one in a million."""


def quantile(probability: Any, freedom: Any) -> Any:
    """Of t. freedom: at least 1; numbers, or arrays that broadcast."""
    if isinstance(probability, float) and isinstance(freedom, int) and 1 <= freedom <= MOST_TERMS:
        return _whole(probability, freedom)
    import numpy as np

    freedom = np.minimum(freedom, NORMAL)
    angle = _angle(np.abs(2 * np.asarray(probability) - 1), 1.0, freedom)
    return np.copysign(np.sqrt(freedom) * np.tan(angle), np.asarray(probability) - 0.5)


def quantile_of_f(probability: float, first: float, second: float) -> float:
    return float(second / first * math.tan(float(_angle(probability, first, second))) ** 2)


@lru_cache(maxsize=1024)
def _whole(probability: float, freedom: int) -> float:
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


STEPS = 100


def _angle(share: Any, first: Any, second: Any) -> Any:
    """Up to which the integral of sin(v)^(first - 1) cos(v)^(second - 1) is this share of that up to pi / 2: the
    incomplete beta function (Abramowitz and Stegun, 6.6.1, sin(v)^2 in place of t). By Newton's method, else
    bisection."""
    import numpy as np

    share, a, b = (np.asarray(number, dtype=float)[..., None] for number in (share, first, second))
    log_gamma = np.vectorize(math.lgamma, otypes=[float])
    scale = 2 * np.exp(log_gamma((a + b) / 2) - log_gamma(a / 2) - log_gamma(b / 2))
    nodes, weights = _rule()

    def integral(end: Any, a: Any, b: Any) -> Any:
        values = np.sin(end * nodes) ** (a - 1) * np.cos(end * nodes) ** (b - 1)
        return scale * end * (values * weights).sum(axis=-1, keepdims=True)

    angle = np.arctan(np.sqrt(2.5 * a / b))
    low, high = np.zeros_like(angle), np.full_like(angle, math.pi / 2)
    for _ in range(STEPS):
        above = 1 - integral(math.pi / 2 - angle, b, a)
        excess = np.where(angle < math.pi / 4, integral(angle, a, b), above) - share
        low, high = np.where(excess < 0, angle, low), np.where(excess > 0, angle, high)
        density = scale * np.sin(angle) ** (a - 1) * np.cos(angle) ** (b - 1)
        newton = angle - excess / np.maximum(density, np.finfo(float).tiny)
        following = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        if (np.abs(following - angle) <= 1e-12 * angle).all():
            break
        angle = following
    return following[..., 0]


@cache
def _rule() -> tuple[Any, Any]:
    """Nodes and weights of Gauss and Legendre in [0, 1], for integrands not smooth at 0: x = s^4."""
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(64)
    nodes = (nodes + 1) / 2
    return nodes**4, weights / 2 * 4 * nodes**3
