"""Closed queueing networks of one class, exactly (`throughputs`, Buzen's convolution, cost K N^2) and approximately
(`schweitzer`); sources: docs/mathematics.md. Also whether times are in the unit that they claim, by Little's law, N = X
R: times 1,000 times off are reported, never converted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from loadframe.analysis.arrays import Floats
from loadframe.metrics.exposed import OF, split
from loadframe.model import TIME_UNIT, WHOLE_SECONDS, Step, Steps, grouped
from loadframe.units import show

TOLERANCE = 1e-10
MOST_ITERATIONS = 10_000


@dataclass(frozen=True, slots=True)
class Solution:
    """throughput: (...); residence_s: (..., K)."""

    throughput: Floats
    residence_s: Floats


def throughputs(demands_s: ArrayLike, population: int, think_s: float = 0.0, servers: ArrayLike = 1.0) -> Floats:
    """X with 0, 1, ... N requests, (N + 1,). A station with m servers works min(j, m) times as fast with j requests."""
    demands = np.asarray(demands_s, dtype=np.float64)
    counts = np.broadcast_to(np.asarray(servers, dtype=np.float64), demands.shape)
    jobs = np.arange(1.0, population + 1)
    whole = _factors(think_s, jobs)
    for demand, count in zip(demands, counts, strict=True):
        whole = _convolve(whole, _factors(float(demand), np.minimum(jobs, count)))
    return np.concatenate([[0.0], np.exp(whole[:-1] - whole[1:])])


def _factors(demand: float, rates: Floats) -> Floats:
    """log of f(j) = D^j / (a(1) ... a(j)), j = 0..N."""
    with np.errstate(divide="ignore"):
        return np.concatenate([[0.0], np.cumsum(np.log(demand) - np.log(rates))])


def _convolve(first: Floats, second: Floats) -> Floats:
    """log sum over j of exp(first[j] + second[n - j]), n = 0..N."""
    count = len(first)
    padded = np.concatenate([np.full(count - 1, -np.inf), second])
    # Row n holds second[n], second[n - 1], ..., and nothing beyond second[0].
    shifted = np.lib.stride_tricks.sliding_window_view(padded, count)[:, ::-1]
    terms = first + shifted
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
    """demands_s: (..., K); population, also fractional, and think_s broadcast to (...); servers: (K,): m count as one m
    times as fast, and a delay (docs/mathematics.md). X is too low by up to 10 %, near the saturation
    of small populations. tolerance: of a queue, as a share of the population."""
    demands = np.asarray(demands_s, dtype=np.float64)
    counts = np.broadcast_to(np.asarray(servers, dtype=np.float64), demands.shape[-1:])
    people, think = (np.asarray(values, dtype=np.float64) for values in (population, think_s))
    shape = np.broadcast_shapes(demands.shape[:-1], people.shape, think.shape)
    demands = np.broadcast_to(demands, (*shape, demands.shape[-1]))
    people = np.broadcast_to(people, shape)
    # A delay is a station that every request leaves after its demand; many servers are a fast one and a delay.
    share = 1 / counts
    fast, extra = demands * share, demands * (1 - share)
    delay = np.broadcast_to(think, shape) + extra.sum(axis=-1)
    populations = people[..., None]
    fewer = np.maximum(populations - 1, 0) / np.maximum(populations, 1)
    queue = np.broadcast_to(populations / fast.shape[-1], fast.shape)
    for _ in range(MOST_ITERATIONS):
        spent = fast * (1 + fewer * queue)
        cycle = delay + spent.sum(axis=-1)
        throughput = np.divide(people, cycle, out=np.zeros_like(cycle), where=cycle > 0)
        before, queue = queue, throughput[..., None] * spent
        if np.abs(queue - before).max(initial=0) <= tolerance * max(float(people.max(initial=0)), 1.0):
            break
    return Solution(throughput, np.where(populations > 0, spent + extra, 0.0))


FACTOR, MARGIN = 1000.0, 0.3
"""Off by 1,000, within 30 %: a wrong unit and the noise of a step."""
MOST_FAILED = 0.1
"""Share of the requests: failures take another time."""
ALIKE = 0.2
"""A histogram whose count equals the driver's within 20 % is of these requests: counters are read once per second."""
TIMES: Mapping[str, tuple[float, str, str]] = {
    "_seconds": (1e3, "seconds", "milliseconds"),
    "_milliseconds": (1.0, "milliseconds", "seconds"),
}
"""Suffix of an exposed time's name -> milliseconds in its unit, the unit's name, and the other unit's."""


def is_wrong(users: float, throughput: float, mean_ms: float) -> bool:
    """Whether times are about 1,000 times off, in a closed loop. throughput: of all requests, 1/s."""
    return _off(users, throughput * mean_ms / 1e3) != 0


def few_failed(done: int, failed: int) -> bool:
    return done > 0 and failed <= MOST_FAILED * (done + failed)


def warnings(steps: Steps) -> list[str]:
    """Wrong units of times, in words. steps: of one state."""
    return [*_of_driver(steps), *_of_service(steps)]


def _of_driver(steps: Steps) -> Iterator[str]:
    marked = [step for step in steps if TIME_UNIT in step.flags]
    if not marked:
        return
    step = min(marked, key=lambda step: step.level)
    rate, reported_ms = _asked(step), step.latency.mean_ms
    users = f"{step.level:g} user{'' if step.level == 1 else 's'}"
    right_ms = 1e3 * step.level / rate
    too_short = reported_ms < right_ms
    if WHOLE_SECONDS in step.flags:
        looks = f"times in the histograms look 1,000 times too {'short' if too_short else 'long'}"
        remedy = "say the histograms' `unit`"
    else:
        looks = f"response times look like {'seconds' if too_short else 'microseconds'}, not milliseconds"
        remedy = "tell them in milliseconds (`latency_ms`; locust: `response_time`)"
    yield (
        f"time-unit: the {looks}: {users} / {rate:,.4g} per s = {show(right_ms, 'ms')}, and the driver reported "
        f"{show(reported_ms, 'ms')} ({len(marked)} of {len(steps)} steps). Nothing was converted: {remedy}"
        + ("; if each user pauses between its requests, the times may be right" if too_short else "")
    )


def _of_service(steps: Steps) -> Iterator[str]:
    usable = [
        step
        for step in steps
        if step.latency_known and TIME_UNIT not in step.flags and few_failed(step.requests, step.errors)
    ]
    of_bases = grouped((base, (step, mean)) for step in usable for base, mean in _means(step).items())
    for base, means in of_bases.items():
        in_ms, unit, other = next(TIMES[ending] for ending in TIMES if base.endswith(ending))
        off = {_off(step.latency.mean_ms, mean * in_ms) for step, mean in means}
        # short times may be right where requests wait elsewhere, but not a thousandth at two loads
        if off == {-1} or (off == {1} and len({step.level for step, _ in means}) > 1):
            step, mean = min(means, key=lambda pair: pair[0].level)
            yield (
                f"time-unit: the values of {base} look like {other}, not {unit}: their mean is "
                f"{show(mean * in_ms, 'ms')}, and a request took {show(step.latency.mean_ms, 'ms')}, at "
                f"{step.level:g}. Nothing was converted: expose them in the unit of their name"
            )


def _means(step: Step) -> dict[str, float]:
    sums: dict[str, float] = {}
    counts: dict[str, float] = {}
    for name, value in step.metrics.items():
        if name.startswith(OF):
            base = split(name.removeprefix(OF)).base
            for kept, ending in ((sums, "_sum"), (counts, "_count")):
                if base.endswith(tuple(f"{unit}{ending}" for unit in TIMES)):
                    base_of = base.removesuffix(ending)
                    kept[base_of] = kept.get(base_of, 0.0) + value
    asked = _asked(step)
    return {
        base: sums[base] / count
        for base, count in counts.items()
        if base in sums and asked > 0 and abs(count / asked - 1.0) <= ALIKE
    }


def _asked(step: Step) -> float:
    return step.throughput * (step.requests + step.errors) / step.requests if step.requests else 0.0


def _off(right: float, reported: float) -> int:
    """1 where the reported time is about 1,000 times too small, -1 where too large."""
    if right <= 0 or reported <= 0:
        return 0
    ratio = right / reported
    return next((sign for sign in (1, -1) if abs(ratio / FACTOR**sign - 1.0) <= MARGIN), 0)
