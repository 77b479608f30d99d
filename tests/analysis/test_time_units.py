"""Times that are told in another unit than they have are noticed by Little's law, and told; never converted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from loadframe.analysis import queueing
from loadframe.model import TIME_UNIT, WHOLE_SECONDS, Latency, Step


def step(
    level: float,
    throughput: float,
    mean_ms: float,
    *,
    flags: tuple[str, ...] = (),
    metrics: Mapping[str, float] | None = None,
    errors: int = 0,
) -> Step:
    return Step(
        number=1,
        round=1,
        block=1,
        treatment="A",
        level=level,
        started_s=0.0,
        ended_s=1.2,
        window_start_s=0.2,
        window_end_s=1.2,
        requests=int(throughput),
        errors=errors,
        throughput=throughput,
        batches=(throughput,) * 8,
        latency=Latency(mean_ms, mean_ms, mean_ms, mean_ms, mean_ms),
        waiting_share=0.0,
        operations=(),
        metrics=metrics or {},
        flags=flags,
    )


@pytest.mark.parametrize(
    ("users", "throughput", "mean_ms", "wrong"),
    [
        (8, 640, 12.5, False),
        (8, 640, 0.0125, True),
        (8, 640, 0.0125 / 1.25, True),
        (8, 640, 12_500.0, True),
        (8, 640, 12_500.0 * 1.25, True),
        (8, 640, 0.0125 / 1.5, False),  # off, and not by a unit
        (8, 640, 1.25, False),
        (8, 640, 0.0, False),
        (0, 640, 12.5, False),
    ],
)
def test_only_what_is_off_by_a_thousand_is_a_wrong_unit(
    users: float, throughput: float, mean_ms: float, wrong: bool
) -> None:
    assert queueing.is_wrong(users, throughput, mean_ms) is wrong


def test_the_numbers_are_told_of_the_lowest_level_and_what_to_do() -> None:
    steps = [step(16, 650, 0.0246, flags=(TIME_UNIT,)), step(8, 640, 0.0125, flags=(TIME_UNIT,)), step(1, 80, 12.5)]
    (said,) = queueing.warnings(steps)
    assert said == (
        "time-unit: the response times look like seconds, not milliseconds: 8 users / 640 per s = 12.5 ms, and "
        "the driver reported 0.0125 ms (2 of 3 steps). Nothing was converted: tell them in milliseconds (`latency_ms`; "
        "locust: `response_time`); if each user pauses between its requests, the times may be right"
    )
    (said,) = queueing.warnings([step(8, 640, 12_500.0, flags=(TIME_UNIT,))])
    assert "look like microseconds, not milliseconds" in said and "pauses" not in said
    (said,) = queueing.warnings([step(8, 640, 0.0125, flags=(TIME_UNIT, WHOLE_SECONDS))])
    assert "histograms look 1,000 times too short" in said and "`unit`" in said
    assert queueing.warnings([step(8, 640, 0.0125)]) == [], "who may pause is not judged"


def exposed(level: float, mean: float, *, name: str = "app_seconds", of: float = 1.0, **kind: int) -> Step:
    """A step of 10 ms at 100/s and a client, in which a service exposes a mean of its own. of: the share of the
    requests that it counts."""
    sums = {f'service.{name}_sum{{path="/{one}"}}': 50.0 * level * of * mean for one in "ab"}
    counts = {f'service.{name}_count{{path="/{one}"}}': 50.0 * level * of for one in "ab"}
    return step(level, 100.0 * level, 10.0, metrics={**sums, **counts}, **kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mean", "name", "looks"),
    [
        (9.0, "app_seconds", "look like milliseconds, not seconds: their mean is 9,000 ms, and a request took 10 ms"),
        (0.009, "app_milliseconds", "look like seconds, not milliseconds"),
        (0.009, "app_seconds", ""),
        (9.0, "app_milliseconds", ""),
        (0.0009, "app_seconds", ""),
    ],
)
def test_times_that_a_service_exposes_are_held_against_those_of_the_load(mean: float, name: str, looks: str) -> None:
    said = queueing.warnings([exposed(1, mean, name=name), exposed(4, mean, name=name)])
    assert len(said) == bool(looks) and looks in "".join(said)


def test_a_service_is_not_accused_by_what_is_not_of_these_requests_or_at_one_level_alone() -> None:
    wrong, right = 9.0, 0.009
    assert queueing.warnings([exposed(1, wrong)])
    assert not queueing.warnings([exposed(1, wrong, of=0.5), exposed(4, wrong, of=0.5)])
    assert not queueing.warnings([exposed(1, wrong), exposed(4, right)])
    assert not queueing.warnings([exposed(1, wrong, errors=50)])
    assert not queueing.warnings([exposed(64, 0.00001)]), "the time in its handler may be short"
    assert queueing.warnings([exposed(1, 0.00001), exposed(64, 0.00001)])
