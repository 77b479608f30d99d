"""Bounds on throughput and response time of closed networks: what no tuning of queues can pass.

Asymptotic and balanced-job bounds: Lazowska et al., chapter 5 (tables 5.1 and 5.2); Zahorjan, Sevcik, Eager, Galler
(1982). Geometric bounds: Casale, Muntz, Serazzi, "Geometric Bounds: a Noniterative Analysis Technique for Closed
Queueing Networks", IEEE Transactions on Computers 57(6), 2008, equations 8 and 13. Stations have one server each, but
for the asymptotic bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadframe.analysis.queueing.laws import Floats, positive


@dataclass(frozen=True, slots=True)
class Bounds:
    """Throughput (1/s) and response time (s) lie within; saturation: N*, where the two asymptotes of X meet."""

    throughput_low: float
    throughput_high: float
    response_low_s: float
    response_high_s: float
    saturation: float


def asymptotic(
    demands_s: ArrayLike, population: float, think_s: float = 0.0, servers: ArrayLike | None = None
) -> Bounds:
    """N / (N D + Z) <= X <= min(N / (D + Z), min m_k / D_k), with D the sum of all demands."""
    demands = _checked(demands_s, population, think_s)
    total, slowest = float(demands.sum()), _ceiling(demands, servers)
    low = population / (population * total + think_s)
    high = min(population / (total + think_s), slowest)
    return _bounds(low, high, population, think_s, saturation(demands, think_s, servers))


def saturation(demands_s: ArrayLike, think_s: float = 0.0, servers: ArrayLike | None = None) -> float:
    """N* = (D + Z) min m_k / D_k: the population from which on requests must queue; not finite without demands."""
    demands = positive(demands_s, "service demands")
    return (float(demands.sum()) + think_s) * _ceiling(demands, servers)


def balanced_job(demands_s: ArrayLike, population: float, think_s: float = 0.0) -> Bounds:
    """Bounds by the balanced networks with all demands equal to the largest, and to the mean, of those given."""
    demands = _checked(demands_s, population, think_s)
    total, largest = float(demands.sum()), float(demands.max())
    others = population - 1
    low = population / (total + think_s + others * largest / (1 + think_s / (population * total)))
    mean = total / len(demands)
    high = min(1 / largest, population / (total + think_s + others * mean / (1 + think_s / total)))
    return _bounds(low, high, population, think_s, saturation(demands, think_s))


def geometric(demands_s: ArrayLike, population: int, think_s: float = 0.0) -> Bounds:
    """Queues below the bottleneck are nearly geometric, which bounds them on both sides; the rest of the population
    is at the bottlenecks. For Z > 0 the bounds are the roots of the quadratic that Little's law leaves (GSB); far below
    saturation the asymptotic ones are closer then."""
    demands = _checked(demands_s, population, think_s)
    total, largest, others = float(demands.sum()), float(demands.max()), population - 1
    below = demands[demands < largest]
    missing = largest - below
    few = _geometric_sum(below * others / (think_s + total + largest * others), others) if others else 0 * below
    many = _geometric_sum(below * _proportional(demands, others, think_s), others) if others else 0 * below
    work = think_s + total + largest * others
    at_least, at_most = work - float((missing * few).sum()), work - float((missing * many).sum())
    low = _root(population, at_least, think_s * largest * others)
    high = _root(population, at_most, think_s * largest * population)
    return _bounds(low, min(high, 1 / largest), population, think_s, saturation(demands, think_s))


def _proportional(demands: Floats, population: int, think_s: float) -> float:
    """Upper bound on throughput with a mean demand weighted by itself, sum D^2 / sum D: the proportional bound (Hsieh
    and Lam 1987) where Z = 0."""
    total = float(demands.sum())
    weighted = float((demands**2).sum()) / total
    thinking = think_s * min(1 / float(demands.max()), max(population - 1, 0) / (total + think_s))
    queued = max(population - 1 - thinking, 0.0)
    return min(1 / float(demands.max()), population / (think_s + total + weighted * queued))


def _geometric_sum(ratios: Floats, most: int) -> Floats:
    """y + y^2 + ... + y^most for each ratio y < 1."""
    return np.asarray(ratios * (1 - ratios**most) / (1 - ratios), dtype=np.float64)


def _root(population: int, work: float, thinking: float) -> float:
    """X = 2 N / (b + sqrt(b^2 - 4 c)), which is N / b for Z = 0."""
    return 2 * population / (work + math.sqrt(max(work**2 - 4 * thinking, 0.0)))


def _ceiling(demands: Floats, servers: ArrayLike | None) -> float:
    """min m_k / D_k."""
    counts = np.broadcast_to(1.0 if servers is None else np.asarray(servers, dtype=np.float64), demands.shape)
    needed = demands > 0
    return float((counts[needed] / demands[needed]).min()) if needed.any() else math.inf


def _bounds(low: float, high: float, population: float, think_s: float, saturated: float) -> Bounds:
    return Bounds(low, high, population / high - think_s, population / low - think_s, saturated)


def _checked(demands_s: ArrayLike, population: float, think_s: float) -> Floats:
    demands = positive(demands_s, "service demands")
    if not (population >= 1 and think_s >= 0 and demands.ndim == 1 and demands.sum() > 0):
        raise ValueError(
            f"bounds need a population of at least 1, a think time of at least 0 and a demand above 0; "
            f"got {population!r}, {think_s!r} and {demands_s!r}"
        )
    return demands
