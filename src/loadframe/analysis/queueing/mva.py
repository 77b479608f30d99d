"""Mean value analysis of closed networks with one class of requests.

Exact: Reiser and Lavenberg, "Mean-Value Analysis of Closed Multichain Queueing Networks", JACM 27 (1980): a request
that arrives finds the network as it is with one request fewer. Approximate: Schweitzer (1979): with one request fewer
every queue is shorter by its Nth part. Vectorised over leading axes: a thousand guesses of the demands cost little more
than one. Stations with several servers are exact in convolution.py: mean value analysis follows the probabilities that
few requests are there, by subtraction from 1, and two busy stations with 8 servers made it 12 % wrong at N = 120.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadframe.analysis.queueing.laws import Floats, positive

TOLERANCE = 1e-10
MOST_ITERATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Solution:
    """Of a closed network. throughput, response_s: (...); residence_s, queue, utilization (of delays: 0): (..., K)."""

    throughput: Floats
    response_s: Floats
    residence_s: Floats
    queue: Floats
    utilization: Floats


@dataclass(frozen=True, slots=True)
class _Network:
    """demands: of the queues, (..., K), in seconds of all their servers; extra: seconds of delay at each station."""

    demands: Floats
    extra: Floats
    think: Floats
    population: Floats


def exact(
    demands_s: ArrayLike, population: ArrayLike, think_s: ArrayLike = 0.0, servers: ArrayLike | None = None
) -> Solution:
    """demands_s: (..., K); population: whole numbers >= 0, and think_s, broadcast to (...); servers: (K,), 1 or inf (a
    delay). Takes as many rounds as the largest population. ValueError for negative demands, populations that are not
    whole, and other numbers of servers.
    """
    if servers is not None and not np.isin(servers, (1, np.inf)).all():
        raise ValueError(f"convolution.multi_server is exact for several servers, not this: {servers!r}")
    net = _network(demands_s, population, think_s, servers)
    if (net.population != np.floor(net.population)).any():
        raise ValueError(f"exact mean value analysis counts whole requests, not {population!r}")
    delay = net.think + net.extra.sum(axis=-1)
    queue, residence = np.zeros_like(net.demands), np.zeros_like(net.demands)
    throughput = np.zeros(net.population.shape)
    for n in range(1, int(net.population.max(initial=0)) + 1):
        active = net.population >= n
        spent = net.demands * (1 + queue)
        rate = n / (delay + spent.sum(axis=-1))
        queue = rate[..., None] * spent
        throughput = np.where(active, rate, throughput)
        residence = np.where(active[..., None], spent, residence)
    return _solution(net, throughput, residence)


def schweitzer(
    demands_s: ArrayLike,
    population: ArrayLike,
    think_s: ArrayLike = 0.0,
    servers: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
) -> Solution:
    """The same, approximately, for any population >= 0, also between whole numbers, and any servers: m of them as one
    that is m times as fast, and a delay (Seidmann, Schweitzer, Shalev-Oren 1987). X is too low by up to 10 %, near the
    saturation of small populations. tolerance: of a queue, as a share of the population."""
    net = _network(demands_s, population, think_s, servers)
    delay = net.think + net.extra.sum(axis=-1)
    people = net.population[..., None]
    fewer = np.maximum(people - 1, 0) / np.maximum(people, 1)
    queue = np.broadcast_to(people / net.demands.shape[-1], net.demands.shape)
    for _ in range(MOST_ITERATIONS):
        spent = net.demands * (1 + fewer * queue)
        cycle = delay + spent.sum(axis=-1)
        throughput = np.divide(net.population, cycle, out=np.zeros_like(cycle), where=cycle > 0)
        before, queue = queue, throughput[..., None] * spent
        if np.abs(queue - before).max(initial=0) <= tolerance * max(float(net.population.max(initial=0)), 1.0):
            break
    return _solution(net, throughput, spent)


def _network(demands_s: ArrayLike, population: ArrayLike, think_s: ArrayLike, servers: ArrayLike | None) -> _Network:
    demands = positive(demands_s, "service demands")
    counts = np.broadcast_to(1.0 if servers is None else np.asarray(servers, dtype=np.float64), demands.shape[-1:])
    if not (counts >= 1).all():
        raise ValueError(f"a station has at least one server, not {servers!r}")
    people, think = positive(population, "populations"), np.asarray(think_s, dtype=np.float64)
    if not np.isfinite(people).all() or not np.isfinite(think).all():
        raise ValueError(f"populations and think times must be finite, got {population!r} and {think_s!r}")
    shape = np.broadcast_shapes(demands.shape[:-1], people.shape, think.shape)
    demands = np.broadcast_to(demands, (*shape, demands.shape[-1]))
    # A delay is a station that everybody leaves after its demand; many servers are a fast one and a delay.
    share = 1 / counts
    return _Network(
        demands=demands * share,
        extra=demands * (1 - share),
        think=np.broadcast_to(think, shape),
        population=np.broadcast_to(people, shape),
    )


def _solution(net: _Network, throughput: Floats, residence: Floats) -> Solution:
    there = np.where(net.population[..., None] > 0, residence + net.extra, 0.0)
    return Solution(
        throughput=throughput,
        response_s=there.sum(axis=-1),
        residence_s=there,
        queue=throughput[..., None] * there,
        utilization=throughput[..., None] * net.demands,
    )
