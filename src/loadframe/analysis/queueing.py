"""Queueing: what throughput and response time of a closed network of one class must be, given the seconds of each
resource that a request needs.

throughputs   exact, for stations with several servers: Buzen's convolution (CACM 16, 1973; Bolch et al., 8.1) in
              logarithms. Every term is positive; mean value analysis of such stations subtracts probabilities from 1
              and fails from a few dozen requests on (Chandy and Sauer, CACM 23, 1980). Costs K N^2.
schweitzer    approximate mean value analysis (1979): with one request fewer every queue is shorter by its Nth part.
              Vectorised over leading axes: a thousand guesses of the demands cost little more than one.

Symbols: N requests circulate (population), Z seconds think time (think_s), D_k seconds of station k per request
(demands_s), m_k servers (servers; infinite: a delay), X requests per second (throughput), R_k seconds at station k
(residence_s). Then Q_k = X R_k requests are there (Little's law), and U_k = X D_k / m_k of its servers are in use.
Sources: Lazowska, Zahorjan, Graham, Sevcik, "Quantitative System Performance" (1984); Jain, "The Art of Computer
Systems Performance Analysis" (1991); Bolch, Greiner, de Meer, Trivedi, "Queueing Networks and Markov Chains" (2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

TOLERANCE = 1e-10
MOST_ITERATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Solution:
    """throughput: (...); residence_s: (..., K)."""

    throughput: Floats
    residence_s: Floats


def throughputs(demands_s: ArrayLike, population: int, think_s: float = 0.0, servers: ArrayLike = 1.0) -> Floats:
    """X with 0, 1, ... N requests, for the price of the last: (N + 1,). A station with m servers works min(j, m) times
    as fast with j requests. ValueError for negative demands."""
    demands = _positive(demands_s, "service demands")
    counts = np.broadcast_to(np.asarray(servers, dtype=np.float64), demands.shape)
    jobs = np.arange(1.0, population + 1)
    whole = _factors(think_s, jobs)
    for demand, count in zip(demands, counts, strict=True):
        whole = _convolve(whole, _factors(float(demand), np.minimum(jobs, count)))
    return np.concatenate([[0.0], np.exp(whole[:-1] - whole[1:])])


def _factors(demand: float, rates: Floats) -> Floats:
    """log of f(j) = D^j / (a(1) ... a(j)), j = 0..N, for a station that works a(j) times as fast with j requests."""
    with np.errstate(divide="ignore"):
        return np.concatenate([[0.0], np.cumsum(np.log(demand) - np.log(rates))])


def _convolve(one: Floats, two: Floats) -> Floats:
    """log sum over j of exp(one[j] + two[n - j]), n = 0..N."""
    count = len(one)
    padded = np.concatenate([np.full(count - 1, -np.inf), two])
    # Row n holds two[n], two[n - 1], ..., and nothing beyond two[0].
    shifted = np.lib.stride_tricks.sliding_window_view(padded, count)[:, ::-1]
    terms = one + shifted
    top = terms.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(terms - safe[:, None]).sum(axis=1)))


def schweitzer(
    demands_s: ArrayLike,
    population: ArrayLike,
    think_s: ArrayLike = 0.0,
    servers: ArrayLike = 1.0,
    tolerance: float = TOLERANCE,
) -> Solution:
    """demands_s: (..., K); population: any numbers >= 0, also between whole ones, and think_s, broadcast to (...);
    servers: (K,): m of them as one that is m times as fast, and a delay (Seidmann, Schweitzer, Shalev-Oren 1987). X is
    too low by up to 10 %, near the saturation of small populations. tolerance: of a queue, as a share of the
    population. ValueError for negative demands or populations, what is not finite, and less than one server."""
    demands = _positive(demands_s, "service demands")
    counts = np.broadcast_to(np.asarray(servers, dtype=np.float64), demands.shape[-1:])
    if not (counts >= 1).all():
        raise ValueError(f"a station has at least one server, not {servers!r}")
    people, think = _positive(population, "populations"), np.asarray(think_s, dtype=np.float64)
    if not np.isfinite(people).all() or not np.isfinite(think).all():
        raise ValueError(f"populations and think times must be finite, got {population!r} and {think_s!r}")
    shape = np.broadcast_shapes(demands.shape[:-1], people.shape, think.shape)
    demands = np.broadcast_to(demands, (*shape, demands.shape[-1]))
    people = np.broadcast_to(people, shape)
    # A delay is a station that everybody leaves after its demand; many servers are a fast one and a delay.
    share = 1 / counts
    fast, extra = demands * share, demands * (1 - share)
    delay = np.broadcast_to(think, shape) + extra.sum(axis=-1)
    each = people[..., None]
    fewer = np.maximum(each - 1, 0) / np.maximum(each, 1)
    queue = np.broadcast_to(each / fast.shape[-1], fast.shape)
    for _ in range(MOST_ITERATIONS):
        spent = fast * (1 + fewer * queue)
        cycle = delay + spent.sum(axis=-1)
        throughput = np.divide(people, cycle, out=np.zeros_like(cycle), where=cycle > 0)
        before, queue = queue, throughput[..., None] * spent
        if np.abs(queue - before).max(initial=0) <= tolerance * max(float(people.max(initial=0)), 1.0):
            break
    return Solution(throughput, np.where(each > 0, spent + extra, 0.0))


def _positive(values: ArrayLike, what: str) -> Floats:
    """The values as an array. ValueError where one is negative or not a number; zeros are allowed."""
    array = np.asarray(values, dtype=np.float64)
    if not (array >= 0).all():
        raise ValueError(f"{what} must be 0 or more, got {values!r}")
    return array
