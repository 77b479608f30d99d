"""Mean value analysis of closed networks with one class of requests.

Exact: Reiser and Lavenberg, "Mean-Value Analysis of Closed Multichain Queueing Networks", JACM 27 (1980): a request
that arrives finds the network as it is with one request fewer. Several servers: the same with the probabilities that
few requests are at a station (Bolch et al., 8.2). Approximate: Schweitzer (1979): with one request fewer every queue is
shorter by its Nth part. Vectorised over leading axes: a thousand guesses of the demands cost little more than one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadframe.analysis.queueing.laws import Floats, positive

MOST_COUNTED = 16
"""Up to so many servers the probabilities of few requests are followed; rounding errors in them grow like e^m. Beyond,
a station is taken for one server m times as fast and a delay (Seidmann, Schweitzer, Shalev-Oren 1987)."""

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
    """demands: of the queues, (..., K); extra: seconds of pure delay at each station; think: of the requests, (...)."""

    demands: Floats
    extra: Floats
    servers: Floats
    think: Floats
    population: Floats


def exact(
    demands_s: ArrayLike, population: ArrayLike, think_s: ArrayLike = 0.0, servers: ArrayLike | None = None
) -> Solution:
    """The network's solution, exact up to MOST_COUNTED servers per station.

    demands_s: (..., K); population: whole numbers >= 0, and think_s, broadcast to (...); servers: (K,), inf for a
    delay. Takes as many rounds as the largest population. ValueError for negative demands or think times, and for
    populations that are not whole.
    """
    net = _network(demands_s, population, think_s, servers, counted=MOST_COUNTED)
    if (net.population != np.floor(net.population)).any():
        raise ValueError(f"exact mean value analysis counts whole requests, not {population}")
    delay = net.think + net.extra.sum(axis=-1)
    queue, residence = np.zeros_like(net.demands), np.zeros_like(net.demands)
    throughput = np.zeros(net.population.shape)
    few = _FewRequests(net)
    for n in range(1, int(net.population.max(initial=0)) + 1):
        active = net.population >= n
        spent = net.demands * (1 + queue + few.idle()) / net.servers
        rate = n / (delay + spent.sum(axis=-1))
        queue = rate[..., None] * spent
        few.advance(rate)
        throughput = np.where(active, rate, throughput)
        residence = np.where(active[..., None], spent, residence)
    return _solution(net, throughput, residence)


def schweitzer(
    demands_s: ArrayLike, population: ArrayLike, think_s: ArrayLike = 0.0, servers: ArrayLike | None = None
) -> Solution:
    """The same, approximately and at once, for any population >= 0, also between whole numbers; several servers as
    Seidmann's. X is too low by a few per cent at most, near the saturation of small populations."""
    net = _network(demands_s, population, think_s, servers, counted=1)
    delay = net.think + net.extra.sum(axis=-1)
    people = net.population[..., None]
    fewer = np.maximum(people - 1, 0) / np.maximum(people, 1)
    queue = np.broadcast_to(people / net.demands.shape[-1], net.demands.shape)
    for _ in range(MOST_ITERATIONS):
        spent = net.demands * (1 + fewer * queue) / net.servers
        cycle = delay + spent.sum(axis=-1)
        throughput = np.divide(net.population, cycle, out=np.zeros_like(cycle), where=cycle > 0)
        before, queue = queue, throughput[..., None] * spent
        if np.abs(queue - before).max(initial=0) <= TOLERANCE * max(float(net.population.max(initial=0)), 1.0):
            break
    return _solution(net, throughput, spent)


class _FewRequests:
    """p(j) = probability of j requests at a station, j < m, which tells how many servers an arrival finds idle."""

    def __init__(self, net: _Network) -> None:
        self._demands, self._servers = net.demands, net.servers[:, None]
        jobs = np.arange(int(net.servers.max(initial=1)))
        self._jobs = jobs
        self._idle = np.maximum(self._servers - 1 - jobs, 0.0)
        self._here = np.zeros((*net.demands.shape, len(jobs)))
        self._here[..., 0] = 1.0

    def idle(self) -> Floats | float:
        """sum over j < m - 1 of (m - 1 - j) p(j): what an arrival does not wait for, in services of the station."""
        if len(self._jobs) == 1:
            return 0.0
        return np.asarray((self._idle * self._here).sum(axis=-1))

    def advance(self, throughput: Floats) -> None:
        """One request more: p(j) = X D / j p(j - 1) below m, and what remains for p(0)."""
        if len(self._jobs) == 1:
            return
        offered = throughput[..., None] * self._demands
        few = offered[..., None] / self._jobs[1:] * self._here[..., :-1]
        few = np.where(self._jobs[1:] < self._servers, few, 0.0)
        rest = ((self._servers - self._jobs[1:]) * few).sum(axis=-1)
        self._here[..., 1:] = few
        self._here[..., 0] = np.clip(1 - (offered + rest) / self._servers[:, 0], 0.0, 1.0)


def _network(
    demands_s: ArrayLike, population: ArrayLike, think_s: ArrayLike, servers: ArrayLike | None, *, counted: int
) -> _Network:
    demands = positive(demands_s, "service demands")
    counts = np.broadcast_to(1.0 if servers is None else np.asarray(servers, dtype=np.float64), demands.shape[-1:])
    if not (counts >= 1).all():
        raise ValueError(f"a station has at least one server, not {servers}")
    people, think = positive(population, "populations"), np.asarray(think_s, dtype=np.float64)
    if not np.isfinite(people).all() or not np.isfinite(think).all():
        raise ValueError(f"populations and think times must be finite, got {population} and {think_s}")
    shape = np.broadcast_shapes(demands.shape[:-1], people.shape, think.shape)
    demands = np.broadcast_to(demands, (*shape, demands.shape[-1]))
    # A delay is a station that everybody leaves after its demand; many servers are a fast one and a delay.
    many = counts > counted
    share = np.where(many, 1 / counts, 1.0)
    return _Network(
        demands=demands * share,
        extra=demands * (1 - share),
        servers=np.where(many, 1.0, counts),
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
        utilization=throughput[..., None] * net.demands / net.servers,
    )
