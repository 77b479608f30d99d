"""Closed networks of one class with load-dependent stations, exact and without cancellation: Buzen's convolution
(CACM 16, 1973; Bolch et al., 8.1) in logarithms.

Mean value analysis of such stations subtracts probabilities from 1 and fails from a few dozen requests on (Chandy and
Sauer, CACM 23, 1980); here every term is positive, and logarithms keep it within what a double holds. Costs K N^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from loadframe.analysis.queueing.laws import Floats, positive, utilization


@dataclass(frozen=True, slots=True)
class LoadDependent:
    """Of a closed network with N requests. queue, residence_s, utilization: (K,); utilization: share of the servers in
    use, or where speeds were given, of the time in which the station is not idle. probabilities: (K, N + 1), of 0..N
    requests at the station."""

    throughput: float
    response_s: float
    residence_s: Floats
    queue: Floats
    utilization: Floats
    probabilities: Floats


def multi_server(
    demands_s: ArrayLike, population: int, think_s: float = 0.0, servers: ArrayLike = 1.0
) -> LoadDependent:
    """Stations with m servers each (inf: a delay): with j requests they work min(j, m) times as fast."""
    demands = positive(demands_s, "service demands")
    counts = np.broadcast_to(np.asarray(servers, dtype=np.float64), demands.shape)
    found = load_dependent(demands, np.minimum(np.arange(1, population + 1), counts[:, None]), population, think_s)
    return replace(found, utilization=utilization(found.throughput, demands, counts))


def throughputs(demands_s: ArrayLike, population: int, think_s: float = 0.0, servers: ArrayLike = 1.0) -> Floats:
    """X with 0, 1, ... N requests, for the price of the last: (N + 1,)."""
    demands = positive(demands_s, "service demands")
    counts = np.broadcast_to(np.asarray(servers, dtype=np.float64), demands.shape)
    jobs = np.arange(1.0, population + 1)
    whole = _factors(think_s, jobs)
    for demand, count in zip(demands, counts, strict=True):
        whole = _convolve(whole, _factors(float(demand), np.minimum(jobs, count)))
    return np.concatenate([[0.0], np.exp(whole[:-1] - whole[1:])])


def load_dependent(demands_s: ArrayLike, speeds: ArrayLike, population: int, think_s: float = 0.0) -> LoadDependent:
    """Stations that work speeds[k, j - 1] times as fast with j requests as the demand says (1: as it says).

    demands_s: (K,) seconds; speeds: (K, N) above zero. ValueError for a population below 1 and shapes that do not fit.
    """
    demands, rates = positive(demands_s, "service demands"), np.asarray(speeds, dtype=np.float64)
    if population < 1 or rates.shape != (len(demands), population) or not (rates > 0).all() or not think_s >= 0:
        raise ValueError(
            f"{len(demands)} stations and {population} requests need as many speeds above zero and a think time of at "
            f"least 0, got {rates.shape} and {think_s}"
        )
    stations = [_factors(demand, rate) for demand, rate in zip(demands, rates, strict=True)]
    thinking = _factors(think_s, np.arange(1.0, population + 1))
    before = _running(stations, thinking)
    after = _running(stations[::-1], _factors(0.0, rates[0]))[::-1]
    whole = before[-1]
    throughput = float(np.exp(whole[-2] - whole[-1]))
    probabilities = np.exp(
        [
            station + _convolve(left, right)[::-1] - whole[-1]
            for station, left, right in zip(stations, before[:-1], after[1:], strict=True)
        ]
    )
    queue = probabilities @ np.arange(population + 1.0)
    return LoadDependent(
        throughput=throughput,
        response_s=population / throughput - think_s,
        residence_s=queue / throughput,
        queue=queue,
        utilization=1 - probabilities[:, 0],
        probabilities=probabilities,
    )


def _factors(demand: float, rates: Floats) -> Floats:
    """log of f(j) = D^j / (a(1) ... a(j)), j = 0..N."""
    with np.errstate(divide="ignore"):
        return np.concatenate([[0.0], np.cumsum(np.log(demand) - np.log(rates))])


def _running(stations: Sequence[Floats], start: Floats) -> list[Floats]:
    """The convolution of none, one, ... all of the stations, each with `start`."""
    found = [start]
    for station in stations:
        found.append(_convolve(found[-1], station))
    return found


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
