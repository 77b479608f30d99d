"""A step meets the objective or misses it, and says by what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadframe.analysis.objective import lost_share, missed, most_waiting, use
from loadframe.model import CapacityObjective, Latency, Step

STEP = Step(
    1, 1, 1, "A", 500, 0, 4, 1, 4, 1500, 0, 500.0, (), Latency(2, 2, 9, 12, 20), 0, (), {"workload.offered": 500}
)
BOTH = CapacityObjective(loss_ratio=0.01, latency_p95_ms=10)


def test_what_is_served_in_time_meets() -> None:
    assert missed(BOTH, STEP) == ""
    assert lost_share(STEP) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"requests": 1440}, "3.93 % of the requests were lost, more than 1 %"),
        ({"latency": Latency(2, 2, 11, 12, 20)}, "p95 latency 11 ms, more than 10 ms"),
        ({"requests": 0}, "no request was served"),
        ({"flags": ("ended-early",)}, "so far behind"),
    ],
)
def test_what_is_missed_is_said(change: dict[str, object], words: str) -> None:
    assert words in missed(BOTH, replace(STEP, **change))  # type: ignore[arg-type]


def test_only_what_is_asked_for_counts() -> None:
    slow, lossy = replace(STEP, latency=Latency(2, 2, 99, 99, 99)), replace(STEP, requests=1000)
    assert missed(CapacityObjective(loss_ratio=0.01), slow) == ""
    assert missed(CapacityObjective(latency_p95_ms=10), lossy) == ""


def test_one_request_on_its_way_is_not_lost() -> None:
    few = replace(STEP, requests=29, metrics={"workload.offered": 10.0})
    assert lost_share(few) == 0
    assert lost_share(replace(few, requests=27)) == pytest.approx(2 / 30)


def test_in_a_closed_loop_only_failures_are_lost() -> None:
    closed = replace(STEP, metrics={}, requests=95, errors=5)
    assert lost_share(closed) == pytest.approx(0.05)
    assert lost_share(replace(closed, requests=0, errors=0)) == 0


def test_a_tenth_of_a_step_may_wait_and_a_few_always() -> None:
    assert most_waiting(500, 4) == 200
    assert most_waiting(5, 1) == 10


def test_how_much_of_what_is_allowed_is_used() -> None:
    assert use(BOTH, STEP) == pytest.approx(0.9)
    assert use(BOTH, replace(STEP, requests=1440)) == pytest.approx(3.93, rel=0.01)
    assert use(CapacityObjective(latency_p95_ms=3), STEP) == 3
    assert use(CapacityObjective(loss_ratio=0.0), STEP) == 0
    assert 1 < use(CapacityObjective(loss_ratio=0.0), replace(STEP, requests=1440)) < float("inf")


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        (CapacityObjective(latencies_ms={"p99_ms": 11}), "p99 latency 12 ms, more than 11 ms"),
        (CapacityObjective(latencies_ms={"mean_ms": 1}), "mean latency 2 ms, more than 1 ms"),
        (CapacityObjective(latencies_ms={"max_ms": 19, "p50_ms": 3}), "largest latency 20 ms, more than 19 ms"),
        (CapacityObjective(error_ratio=0.001), "0.266 % of the requests failed, more than 0.1 %"),
    ],
)
def test_any_quantile_the_mean_and_the_error_share_may_be_asked_for(objective: CapacityObjective, said: str) -> None:
    step = replace(STEP, errors=4)
    assert missed(objective, step) == said
    assert use(objective, step) > 1


def test_a_step_in_which_nothing_was_done_uses_more_than_all_whatever_is_asked() -> None:
    """Its response times are 0, and that is no short time."""
    nothing = replace(STEP, requests=0, errors=9000, latency=Latency(0, 0, 0, 0, 0))
    assert use(CapacityObjective(latency_p95_ms=10), nothing) > 1
    assert not nothing.latency_known and STEP.latency_known
