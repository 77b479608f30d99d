"""Whether times that others tell are in the unit that they say, by Little's law: of N users who ask one request after
the other, N = X R. Times that are 1,000 times off are told, and never converted.

A user who pauses between two requests makes N larger than X R as well, so what is found looks like another unit, and
proves none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loadframe.metrics.exposed import OF, split
from loadframe.model import TIME_UNIT, WHOLE_SECONDS, Step
from loadframe.units import show

FACTOR, MARGIN = 1000.0, 0.3
"""Off by 1,000, within 30 %: a wrong unit and the noise of a step, not a wrong number."""
MOST_FAILED = 0.1
"""Of the requests. The mean response time is of those that were done, and what failed has another."""
ALIKE = 0.2
"""A histogram that counts as many requests as the load driver, within 20 %, is of these requests: a service is asked
for its counters once in a second."""
TIMES: Mapping[str, tuple[float, str]] = {"_seconds": (1e3, "seconds"), "_milliseconds": (1.0, "milliseconds")}
"""How the names of exposed times end: milliseconds in their unit, and its name."""
OTHER = {"seconds": "milliseconds", "milliseconds": "seconds"}


def is_wrong(users: float, throughput: float, mean_ms: float) -> bool:
    """Whether response times that were told are about 1,000 times too short, or too long, for that many users of a
    closed loop. throughput: of all requests, in 1/s."""
    return _off(users, throughput * mean_ms / 1e3) != 0


def few_failed(done: int, failed: int) -> bool:
    return done > 0 and failed <= MOST_FAILED * (done + failed)


def warnings(steps: Sequence[Step]) -> list[str]:
    """In words, the times of the load driver and those that the service exposes that are not in their unit; [] where
    none are. steps: of one state."""
    return [*_of_driver(steps), *_of_service(steps)]


def _of_driver(steps: Sequence[Step]) -> Iterator[str]:
    marked = [step for step in steps if TIME_UNIT in step.flags]
    if not marked:
        return
    step = min(marked, key=lambda one: one.level)
    rate, told_ms = _asked(step), step.latency.mean_ms
    users = f"{step.level:g} user{'' if step.level == 1 else 's'}"
    right_ms = 1e3 * step.level / rate
    too_short = told_ms < right_ms
    if WHOLE_SECONDS in step.flags:
        looks = f"times in the histograms look 1,000 times too {'short' if too_short else 'long'}"
        remedy = "say the histograms' `unit`"
    else:
        looks = f"response times look like {'seconds' if too_short else 'microseconds'}, not milliseconds"
        remedy = "tell them in milliseconds (`latency_ms`; locust: `response_time`)"
    yield (
        f"time-unit: the {looks}: {users} / {rate:,.4g} per s = {show(right_ms, 'ms')}, and the driver told "
        f"{show(told_ms, 'ms')} ({len(marked)} of {len(steps)} steps). Nothing was converted: {remedy}"
        + ("; if each user pauses between its requests, the times may be right" if too_short else "")
    )


def _of_service(steps: Sequence[Step]) -> Iterator[str]:
    """Histograms and summaries of the load's own requests, by their sums and counts."""
    found: dict[str, list[_Told]] = {}
    for step in steps:
        if not step.latency_known or TIME_UNIT in step.flags or not few_failed(step.requests, step.errors):
            continue
        for base, mean in _means(step).items():
            found.setdefault(base, []).append(_Told(step, mean))
    for base, told in found.items():
        in_ms, unit = next(TIMES[ending] for ending in TIMES if base.endswith(ending))
        off = {_off(one.step.latency.mean_ms, one.mean * in_ms) for one in told}
        # what is short may be so, while requests wait elsewhere; not a thousandth of it at two loads
        if off == {-1} or (off == {1} and len({one.step.level for one in told}) > 1):
            first = min(told, key=lambda one: one.step.level)
            yield (
                f"time-unit: the values of {base} look like {OTHER[unit]}, not {unit}: their mean is "
                f"{show(first.mean * in_ms, 'ms')}, and a request took {show(first.step.latency.mean_ms, 'ms')}, at "
                f"{first.step.level:g}. Nothing was converted: expose them in the unit of their name"
            )


@dataclass(frozen=True, slots=True)
class _Told:
    step: Step
    mean: float


def _means(step: Step) -> dict[str, float]:
    """By the name of an exposed time its mean in this step, in its own unit; those alone that count as many requests as
    the load driver."""
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
    """All its requests in a second, also those that failed."""
    return step.throughput * (step.requests + step.errors) / step.requests if step.requests else 0.0


def _off(right: float, told: float) -> int:
    """1 where what was told is about 1,000 times too small, -1 where it is too large, else 0."""
    if right <= 0 or told <= 0:
        return 0
    ratio = right / told
    near = (abs(ratio / FACTOR - 1.0) <= MARGIN, abs(ratio * FACTOR - 1.0) <= MARGIN)
    return 1 if near[0] else -1 if near[1] else 0
