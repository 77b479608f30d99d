"""What the requests of a step say: the time that was planned counts, whatever happened in it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from loadframe.analysis.window import Summary, summarise


def summary(end_s: NDArray[np.float64], *, whole: bool = False, waiting_ms: float = 0.0, failed: int = 0) -> Summary:
    """A step of 1 s from 10.0 s on, 0.2 s of it warm-up at least."""
    outcome = np.zeros(len(end_s), dtype=np.uint32)
    outcome[len(end_s) - failed :] = 1
    return summarise(
        end_s,
        np.full(len(end_s), 2.0, dtype=np.float32),
        np.full(len(end_s), waiting_ms, dtype=np.float32),
        np.zeros(len(end_s), dtype=np.uint32),
        outcome,
        operations=("submit",),
        judged=("submit",),
        planned_s=None if whole else 1.0,
        floor_s=0.2,
        fixed_warmup_s=None,
    )


def steady(until_s: float) -> NDArray[np.float64]:
    """One request each millisecond; the first, of 2 ms, begins at 10.0 s."""
    return np.arange(10.002, until_s, 0.001)


def test_a_steady_load_counts_as_it_is() -> None:
    found = summary(steady(11.0))
    assert found.settled
    assert found.throughput == pytest.approx(1000, rel=0.02)
    assert found.window_start_s > 10.19
    assert len(found.batches) > 1


def test_a_stall_is_time_lost_not_time_that_never_was() -> None:
    assert summary(steady(10.6)).throughput < 600


def test_the_longest_time_without_an_answer_is_told() -> None:
    assert summary(steady(11.0)).silence_ms == pytest.approx(1, abs=1.1)
    assert summary(steady(10.6)).silence_ms == pytest.approx(400, abs=2), "until the window's end"
    gap = np.concatenate([steady(10.5), np.arange(10.8, 11.0, 0.001)])
    assert summary(gap).silence_ms == pytest.approx(300, abs=3)


def test_what_ends_after_the_plan_does_not_count() -> None:
    late = np.sort(np.append(steady(11.0), [11.2, 11.4]))
    assert summary(late).requests == summary(steady(11.0)).requests


def test_waiting_and_holding_are_told_apart() -> None:
    found = summary(steady(11.0), waiting_ms=1.5)
    assert found.waiting_share == pytest.approx(0.75)
    assert found.lock_held == pytest.approx(0.5, rel=0.05)
    assert found.waiting == pytest.approx(1.5, rel=0.05)


def test_of_a_request_that_began_before_the_window_only_the_rest_counts() -> None:
    """One worker holds the lock all the time, in requests of 150 ms."""
    end_s = np.arange(10.15, 11.01, 0.15)
    found = summarise(
        end_s,
        np.full(len(end_s), 150.0, dtype=np.float32),
        np.zeros(len(end_s), dtype=np.float32),
        np.zeros(len(end_s), dtype=np.uint32),
        np.zeros(len(end_s), dtype=np.uint32),
        operations=("submit",),
        judged=("submit",),
        planned_s=1.0,
        floor_s=0.2,
        fixed_warmup_s=0.2,
    )
    assert 0.8 < found.lock_held <= 1
    assert found.concurrency <= 1


def test_who_starves_until_after_the_window_waits_in_it() -> None:
    """One worker has the lock all the time, in requests of 2 ms; the other gets it only once the first has ended."""
    end_s = np.append(steady(11.0), 11.3)
    zeros = np.zeros(len(end_s), dtype=np.uint32)
    latency_ms = np.full(len(end_s), 1.0, dtype=np.float32)
    waiting_ms = np.zeros(len(end_s), dtype=np.float32)
    latency_ms[-1], waiting_ms[-1] = 1300.0, 1200.0
    found = summarise(
        end_s, latency_ms, waiting_ms, zeros, zeros, operations=("submit",), judged=("submit",), planned_s=1.0,
        floor_s=0.2, fixed_warmup_s=0.2,
    )  # fmt: skip
    assert found.waiting == pytest.approx(1.0)
    assert found.concurrency == pytest.approx(2.0, rel=0.02)
    assert found.lock_held == pytest.approx(1.0, rel=0.02)
    assert found.requests < len(end_s)


def test_failed_requests_are_counted_and_are_no_throughput() -> None:
    good, bad = summary(steady(11.0)), summary(steady(11.0), failed=100)
    assert bad.errors == 100
    assert bad.requests == good.requests - 100


@pytest.mark.parametrize("error_ms", [0.1, 900.0])
def test_the_times_of_failed_requests_are_in_no_response_time(error_ms: float) -> None:
    """Of a service that is out of connections nine requests in ten fail at once, and those that are done are slow."""
    end_s = steady(11.0)
    outcome = (np.arange(len(end_s)) % 10 > 0).astype(np.uint32)
    latency_ms = np.where(outcome == 0, 40.0, error_ms).astype(np.float32)
    zeros = np.zeros(len(end_s), dtype=np.uint32)
    found = summarise(
        end_s, latency_ms, zeros.astype(np.float32), zeros, outcome, operations=("order",), judged=("order",),
        planned_s=1.0, floor_s=0.2, fixed_warmup_s=0.2,
    )  # fmt: skip
    assert found.errors == pytest.approx(9 * found.requests, rel=0.1)
    quantiles = (found.latency.mean_ms, found.latency.p50_ms, found.latency.p95_ms, found.latency.max_ms)
    assert quantiles == pytest.approx((40.0,) * 4)
    (order,) = found.operations
    assert (order.mean_ms, order.p95_ms) == pytest.approx((40.0, 40.0))


def test_where_every_request_failed_there_is_no_response_time() -> None:
    end_s = steady(11.0)
    found = summary(end_s, failed=len(end_s))
    assert (found.requests, found.latency.max_ms, found.throughput) == (0, 0.0, 0.0)
    assert [(one.requests, one.mean_ms, one.p95_ms) for one in found.operations] == [(0, 0.0, 0.0)]


def test_a_burst_counts_as_a_whole() -> None:
    found = summary(steady(11.0), whole=True)
    assert (found.window_start_s, found.window_end_s) == (pytest.approx(10.0), pytest.approx(11.0, abs=0.002))
    assert found.requests == len(steady(11.0))


def test_the_window_of_a_burst_is_that_of_the_requests_that_are_judged() -> None:
    """100 jobs are created from 10 to 20 s, then 400 are read within 2 s."""
    end_s = np.concatenate([np.linspace(10.1, 20.0, 100), np.linspace(20.005, 22.0, 400)])
    found = summarise(
        end_s,
        np.full(500, 5.0, dtype=np.float32),
        np.zeros(500, dtype=np.float32),
        (end_s > 20.0).astype(np.uint32),
        np.zeros(500, dtype=np.uint32),
        operations=("submit", "read"),
        judged=("read",),
        planned_s=None,
        floor_s=0.2,
        fixed_warmup_s=None,
    )
    assert (found.window_start_s, found.window_end_s) == (pytest.approx(20.0, abs=0.001), 22.0)
    assert (found.started_s, found.ended_s) == (pytest.approx(10.095), 22.0)
    assert found.throughput == pytest.approx(200, rel=0.01)
    assert {each.name: each.requests for each in found.operations} == {"submit": 100, "read": 400}
    assert found.inside.sum() == 400


def test_a_step_without_a_request_in_its_window_is_no_crash() -> None:
    found = summary(np.array([10.01]))
    assert found.throughput == 0
    assert found.latency.p95_ms == 0


def test_a_lock_is_held_by_one_at_a_time_though_requests_end_later() -> None:
    """Four workers: each has released the lock already while it waits for a CPU to say so."""
    end_s = np.repeat(np.arange(10.05, 11.01, 0.05), 4)
    latency_ms = np.full(len(end_s), 50.0, dtype=np.float32)
    zeros = np.zeros(len(end_s), dtype=np.uint32)
    waiting_ms = np.tile(np.array([0, 10, 20, 40], dtype=np.float32), len(end_s) // 4)
    found = summarise(
        end_s, latency_ms, waiting_ms, zeros, zeros, operations=("submit",),
        judged=("submit",), planned_s=1.0, floor_s=0.2, fixed_warmup_s=0.2,
    )  # fmt: skip
    assert found.lock_held == pytest.approx(1.0)
    assert found.waiting == pytest.approx(1.4, rel=0.02)
