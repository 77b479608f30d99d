"""What the requests of a step say: the time that was planned counts, whatever happened in it."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from loadframe.analysis.window import Summary, summarise
from loadframe.model import UNFINISHED


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


def test_a_timeout_counts_by_its_time() -> None:
    """One client of two waits for half a second and is refused: one request of a hundred, half of the time."""
    end_s = np.append(np.arange(10.01, 10.8, 0.01), [10.6, 11.1])
    latency_ms = np.full(len(end_s), 10.0, dtype=np.float32)
    latency_ms[-2:], outcome = 500.0, np.zeros(len(end_s), dtype=np.uint32)
    outcome[-2:] = 1
    order, none = np.argsort(end_s), np.zeros(len(end_s), dtype=np.uint32)
    found = summarise(
        end_s[order],
        latency_ms[order],
        np.zeros(len(end_s), dtype=np.float32),
        none,
        outcome[order],
        operations=("get",),
        judged=("get",),
        planned_s=0.8,
        floor_s=0.1,
        fixed_warmup_s=0.2,
    )
    assert found.errors < 0.02 * found.requests
    assert found.failed_time == pytest.approx(0.5, abs=0.1)
    assert summary(steady(11.0)).failed_time == 0


def test_what_ends_after_the_plan_does_not_count() -> None:
    late = np.sort(np.append(steady(11.0), [11.2, 11.4]))
    assert summary(late).requests == summary(steady(11.0)).requests


def test_waiting_and_holding_are_told_apart() -> None:
    found = summary(steady(11.0), waiting_ms=1.5)
    assert found.waiting_share == pytest.approx(0.75, abs=0.001)
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
    assert len(found.latencies_ms) == 400
    assert (found.balanced, found.needed_s) == (True, 0.0), "all of its work is measured, however little"


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


# --- latency ---


def of_times(times: list[tuple[float, float]], cut_s: float, until_s: float, unfinished: int = 0) -> Summary:
    """The window cut_s..until_s of these requests (begin, end); the first begins at 0. unfinished: of the last ones."""
    times = sorted(times, key=lambda each: each[1])
    begin_s, end_s = (np.array(each) for each in zip(*times, strict=True))
    zeros = np.zeros(len(times), dtype=np.uint32)
    outcome = zeros.copy()
    outcome[len(times) - unfinished :] = UNFINISHED
    kind = (outcome == 0).astype(np.uint32)
    return summarise(
        end_s, (1000 * (end_s - begin_s)).astype(np.float32), zeros.astype(np.float32), kind, outcome,
        operations=("other", "ask"), judged=("ask",), planned_s=until_s, floor_s=cut_s, fixed_warmup_s=cut_s,
    )  # fmt: skip


def one_lock(users: int, until_s: float, again: float, seed: int) -> list[tuple[float, float]]:
    """Users of one lock, in requests of 1.2 ms on average (exponential); who gives it back has it again with this
    probability, else another one has it, whichever. All work until until_s, and end their last request."""
    draw = random.Random(seed)
    begun, done, now, holder = dict.fromkeys(range(users), 0.0), [], 0.0, 0
    while begun:
        now += draw.expovariate(1 / 0.0012)
        done.append((begun.pop(holder), now))
        last = holder
        if now < until_s:
            begun[last] = now
        others = [user for user in begun if user != last]
        holder = draw.choice(others) if others and (last not in begun or draw.random() >= again) else last
    return done


def queue(arriving: float, serving: float, until_s: float, seed: int) -> list[tuple[float, float]]:
    """M/M/1: arrivals and services a second, first come, first served."""
    draw = random.Random(seed)
    at, free, found = 0.0, 0.0, []
    while at < until_s:
        free = max(at, free) + draw.expovariate(serving)
        found.append((at, free))
        at += draw.expovariate(arriving)
    return found


@pytest.mark.parametrize("again", [0.0, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(5))
def test_response_time_of_users_of_one_lock_is_what_littles_law_says(again: float, seed: int) -> None:
    """Four users without a pause: four are in flight. Who starves for longer than the window ends outside of it."""
    found = of_times(one_lock(4, 0.7, again, seed), 0.4, 0.7)
    assert found.concurrency == pytest.approx(4, rel=0.01)
    assert found.throughput * found.latency.mean_ms / 1000 == pytest.approx(4, rel=0.1)
    assert found.balanced


def test_the_longest_request_is_seen_though_it_ends_after_the_window() -> None:
    times = [(0.0, 1.3), *pairwise(np.arange(0.0, 1.001, 0.001).tolist())]
    found = of_times(times, 0.2, 1.0)
    assert found.latency.max_ms == found.latencies_ms[-1] == pytest.approx(1300)
    assert len(found.latencies_ms) == found.requests
    assert found.latency.p50_ms == pytest.approx(1, rel=0.01)


def test_what_had_not_ended_counts_with_its_age() -> None:
    """Three of four users hang from the middle of the window on; they are no errors, and nothing is done by them."""
    times = [each for _ in range(4) for each in pairwise(np.arange(0.0, 0.601, 0.01).tolist())]
    times += list(pairwise(np.arange(0.6, 1.001, 0.01).tolist()))
    found = of_times([*times, *[(0.6, 3.0)] * 3], 0.2, 1.0, unfinished=3)
    assert (found.errors, found.latency.max_ms) == (0, pytest.approx(2400))
    assert found.concurrency == pytest.approx(4, rel=0.03)
    assert found.requests == pytest.approx(200, abs=4)


@pytest.mark.long
@pytest.mark.parametrize("window_s", [0.1, 0.3, 2.0])
def test_the_response_time_of_a_queue_is_the_truth_whatever_the_window(window_s: float) -> None:
    """M/M/1 at 80 %, where a request takes 1 / (100 - 80) = 50 ms and one in 1,000 seven times as long."""
    times = queue(80.0, 100.0, 60.0, seed=7)
    starts = np.arange(1.0, 58.0, window_s)
    found = [of_times(times, float(start), float(start) + window_s) for start in starts]
    in_flight = sum(each.concurrency for each in found) / len(found)
    served = sum(each.requests for each in found) / len(found) / window_s
    counts = [each.concurrency * window_s * 1000 / each.latency.mean_ms if each.concurrency else 0 for each in found]
    mean_ms = sum(each.latency.mean_ms * count for each, count in zip(found, counts, strict=True)) / sum(counts)
    truth = np.mean([end - begin for begin, end in times])
    assert mean_ms == pytest.approx(1000 * truth, rel=0.1)
    assert served * mean_ms / 1000 == pytest.approx(in_flight, rel=0.05)


def test_requests_that_pile_up_are_out_of_balance() -> None:
    """Twice as many come as are served: throughput times response time is not what is in flight."""
    arrivals = np.arange(0.0, 1.0, 0.005)
    found = of_times([(at, 0.01 * (place + 1)) for place, at in enumerate(arrivals.tolist())], 0.0, 1.0)
    assert not found.balanced
    assert of_times([(at, at + 0.01) for at in arrivals.tolist()], 0.0, 1.0).balanced


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.0, 9.0), st.floats(0.001, 9.0)), min_size=1, max_size=30),
    st.lists(st.floats(0.01, 19.0), max_size=5),
)
def test_each_request_counts_once_in_all_windows_together(
    requests: list[tuple[float, float]], ends: list[float]
) -> None:
    """However a time is cut into windows: no request is lost between them, and none counts twice."""
    times = [(0.0, 0.001), *((begin, begin + length) for begin, length in requests)]
    edges = sorted({0.0, *ends, 20.0})
    spent_ms = counted = 0.0
    for start, until in pairwise(edges):
        found = of_times(times, start, until)
        in_flight_ms = found.concurrency * (until - start) * 1000
        spent_ms += in_flight_ms
        counted += in_flight_ms / found.latency.mean_ms if in_flight_ms > 1e-3 else 0.0
    assert spent_ms == pytest.approx(sum(1000 * (end - begin) for begin, end in times), rel=1e-3, abs=0.02)
    assert counted == pytest.approx(len(times), rel=1e-2, abs=0.02)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.001, 3.0)), min_size=1, max_size=200), st.floats(0.05, 0.9))
@example([(0.0, 0.75), (1.0, 1.1059210268088853)], 0.5)
@example([(0.0, 0.5 + 1e-12), (0.0, 0.1), (0.6, 0.1)], 0.5)
def test_the_histogram_has_as_many_requests_as_ended_and_the_longest(
    requests: list[tuple[float, float]], cut_s: float
) -> None:
    found = of_times([(0.0, 0.001), *((begin, begin + length) for begin, length in requests)], cut_s, 1.0)
    assert len(found.latencies_ms) == (found.requests if found.latency.max_ms else 0)
    if len(found.latencies_ms):
        assert found.latencies_ms[-1] == pytest.approx(found.latency.max_ms)
        assert (np.diff(found.latencies_ms) >= 0).all()


@pytest.mark.parametrize(
    ("users", "response_s", "window_s", "needed_s"),
    [
        (1, 1.8, 1.0, 36.0),  # 20 requests, one after the other
        (16, 1.8, 1.0, 9.0),  # 5 response times
        (1, 0.04, 1.0, 0.0),
        (16, 0.21, 1.0, 1.05),
        (64, 0.19, 1.0, 0.0),
    ],
)
def test_how_long_a_window_must_be(users: int, response_s: float, window_s: float, needed_s: float) -> None:
    times = []
    for user in range(users):
        steps = np.arange(0.0, 5.0 + window_s, response_s)
        first = response_s * user / users
        times += [(begin + first, end + first) for begin, end in pairwise(steps.tolist())]
    times.append((0.0, 0.001))
    found = of_times(times, 3.0, 3.0 + window_s)
    assert found.needed_s == pytest.approx(needed_s, rel=0.1)


def test_without_any_answer_the_age_says_how_long_it_must_be() -> None:
    found = of_times([(0.0, 3.0)] * 2, 0.2, 1.2, unfinished=2)
    assert (found.requests, found.throughput) == (0, 0.0)
    assert found.needed_s == pytest.approx(30.0)
