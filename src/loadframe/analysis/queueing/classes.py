"""Several classes of requests: closed ones (a fixed number circulates), open ones (they arrive at a rate), and both.

Exact: Reiser and Lavenberg (1980), over all populations up to the one asked for. Schweitzer's approximation for large
ones. Open and mixed: Lazowska et al., chapter 7. Stations have one server; with a think time per class.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadframe.analysis.queueing.laws import Floats, positive
from loadframe.analysis.queueing.mva import MOST_ITERATIONS, TOLERANCE

MOST_STATES = 2_000_000
"""Exact analysis visits the product of all N_c + 1 populations; beyond this Schweitzer's approximation is asked for."""


@dataclass(frozen=True, slots=True)
class Classes:
    """throughput, response_s: (C,); residence_s, queue, utilization: (C, K), each class's own part."""

    throughput: Floats
    response_s: Floats
    residence_s: Floats
    queue: Floats
    utilization: Floats


def exact(demands_s: ArrayLike, populations: ArrayLike, think_s: ArrayLike = 0.0) -> Classes:
    """demands_s: (C, K); populations: (C,) whole; think_s: (C,). ValueError for more than MOST_STATES populations."""
    demands, people, think = _closed(demands_s, populations, think_s)
    states = int(np.prod(people + 1))
    if states > MOST_STATES:
        raise ValueError(f"{states:,} populations are too many for exact analysis; use Schweitzer's approximation")
    queues: dict[tuple[int, ...], Floats] = {}
    for state in itertools.product(*(range(int(count) + 1) for count in people)):
        seen = np.zeros_like(demands)
        for index, count in enumerate(state):
            if count:
                fewer = (*state[:index], count - 1, *state[index + 1 :])
                seen[index] = queues[fewer]
        residence = demands * (1 + seen)
        throughput = _throughput(np.array(state, dtype=np.float64), think, residence)
        queues[state] = throughput @ residence
    return _solution(demands, residence, throughput)


def schweitzer(demands_s: ArrayLike, populations: ArrayLike, think_s: ArrayLike = 0.0) -> Classes:
    """The same, approximately; populations need not be whole."""
    demands, people, think = _closed(demands_s, populations, think_s)
    queue = np.repeat(people[:, None] / demands.shape[1], demands.shape[1], axis=1)
    for _ in range(MOST_ITERATIONS):
        own = np.divide(queue, people[:, None], out=np.zeros_like(queue), where=people[:, None] > 0)
        residence = demands * (1 + queue.sum(axis=0) - own)
        throughput = _throughput(people, think, residence)
        before, queue = queue, throughput[:, None] * residence
        if np.abs(queue - before).max(initial=0) <= TOLERANCE * max(1.0, float(people.max(initial=0))):
            break
    return _solution(demands, residence, throughput)


def open_classes(arrivals: ArrayLike, demands_s: ArrayLike) -> Classes:
    """arrivals: (C,) per second; demands_s: (C, K). ValueError where a station would be used at 100 % or more."""
    rates, demands = positive(arrivals, "arrival rates"), positive(demands_s, "service demands")
    used = rates @ demands
    if not (used < 1).all():
        raise ValueError(f"the classes ask for {used.max():.3g} times what station {int(used.argmax())} can do")
    return _solution(demands, demands / (1 - used), rates)


def mixed(
    arrivals: ArrayLike,
    open_demands_s: ArrayLike,
    demands_s: ArrayLike,
    populations: ArrayLike,
    think_s: ArrayLike = 0.0,
) -> tuple[Classes, Classes]:
    """Open and closed classes at the same stations: (open, closed). What the open ones use, the closed ones do not
    have; the open ones find the queues of the closed ones."""
    rates, wanted = positive(arrivals, "arrival rates"), positive(open_demands_s, "service demands")
    used = rates @ wanted
    if not (used < 1).all():
        raise ValueError(f"the open classes ask for {used.max():.3g} times what station {int(used.argmax())} can do")
    closed = exact(positive(demands_s, "service demands") / (1 - used), populations, think_s)
    residence = wanted * (1 + closed.queue.sum(axis=0)) / (1 - used)
    own = np.asarray(demands_s) * closed.throughput[:, None]
    return _solution(wanted, residence, rates), Classes(
        closed.throughput, closed.response_s, closed.residence_s, closed.queue, own
    )


def _closed(demands_s: ArrayLike, populations: ArrayLike, think_s: ArrayLike) -> tuple[Floats, Floats, Floats]:
    demands, people = positive(demands_s, "service demands"), positive(populations, "populations")
    if demands.ndim != 2 or people.shape != demands.shape[:1]:
        raise ValueError(
            f"{demands.shape} demands and {people.shape} populations; one row of demands per class is needed"
        )
    return demands, people, np.broadcast_to(positive(think_s, "think times"), people.shape)


def _throughput(people: Floats, think: Floats, residence: Floats) -> Floats:
    cycle = think + residence.sum(axis=1)
    return np.asarray(np.divide(people, cycle, out=np.zeros_like(cycle), where=cycle > 0))


def _solution(demands: Floats, residence: Floats, throughput: Floats) -> Classes:
    rates = throughput[:, None]
    return Classes(throughput, residence.sum(axis=1), residence, rates * residence, rates * demands)
