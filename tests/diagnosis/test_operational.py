"""What several levels show together: how many requests are served at a time, and what has that size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.operational import PARALLELISM, SERIAL, Seen, operational
from loadframe.diagnosis.windows import look
from loadframe.model import Curve, Finding, Latency, Limit, RuledOut, SettingValue, Step

StepMaker = Callable[..., Step]
IDLE = {"system.cpu.utilization": 0.3, "target.cpu.cores": 0.1, "driver.cpu.cores": 0.05}
LEVELS = (1.0, 2.0, 4.0, 8.0, 16.0)
JITTER = (0.99, 1.0, 1.01)


def pool(
    make_step: StepMaker,
    size: int,
    *,
    levels: Sequence[float] = LEVELS,
    service_s: float = 0.02,
    metrics: Mapping[str, float] | Callable[[float], Mapping[str, float]] = IDLE,
) -> list[Step]:
    """A closed loop against a pool of so many: N clients are served at once until it is used up."""
    steps = []
    for block, near in enumerate(JITTER, start=1):
        for level in levels:
            throughput = near * min(level, size) / service_s
            mean = 1000 * level / throughput
            seen = metrics(level) if callable(metrics) else metrics
            steps.append(make_step(level, throughput, seen, block=block, latency=Latency(mean, mean, mean, mean, mean)))
    return steps


def curve_of(steps: Sequence[Step], axis: str = "concurrency") -> Curve:
    levels = sorted({step.level for step in steps})
    samples = [
        LevelSample(level, tuple(step.throughput for step in steps if step.level == level), ()) for level in levels
    ]
    return fit(samples, axis=axis, treatment="A")


def said(
    steps: Sequence[Step],
    settings: Mapping[str, SettingValue] | None = None,
    limits: Sequence[Limit] = (),
    axis: str = "concurrency",
) -> Finding | RuledOut | None:
    found = operational(Seen(curve_of(steps, axis), steps, settings or {}, limits))
    return found[0] if found else None


def finding(*about: object, **others: object) -> Finding:
    found = said(*about, **others)  # type: ignore[arg-type]
    assert isinstance(found, Finding), found
    return found


def test_a_pool_of_four_is_told_by_its_size(make_step: StepMaker) -> None:
    found = finding(pool(make_step, 4))
    assert (found.id, found.status) == (PARALLELISM, "suspected")
    assert found.title == "4 requests are served at a time"
    assert found.reached_at is not None
    assert found.reached_at.low <= 4 <= found.reached_at.high
    assert "Nothing that is seen from outside is exhausted" in found.explanation
    assert "a pool of 4" in found.explanation
    assert "[target.setting.NAME]" in found.explanation


def test_everything_of_that_size_is_named(make_step: StepMaker) -> None:
    def seen(level: float) -> dict[str, float]:
        return {
            **IDLE,
            "target.peer.127.0.0.1:5432.connections": 4.0,
            "target.peer.127.0.0.1:6379.connections": 1.0,
            "target.waits.network": min(level, 4.0),
            "target.waits.futex": max(0.0, level - 4.0),
            "target.threads.count": 5.0,
            "target.served.connections": level,
        }

    found = finding(pool(make_step, 4, metrics=seen), {"pool": 4, "cache": "9", "debug": True, "log": "off"})
    for words in (
        "4 connections to 127.0.0.1:5432",
        "4 threads wait for the network",
        "4 threads besides the first one",
    ):
        assert words in found.title
    assert "6379" not in found.title
    assert "and 1 more of that size" in found.title, "the setting"
    named = {evidence.metric for evidence in found.evidence}
    assert "target.peer.127.0.0.1:5432.connections" in named
    assert "target.waits.futex" not in named, "they grow with the load"
    assert "target.served.connections" not in named


def test_a_setting_of_that_size_is_named_and_needs_a_change(make_step: StepMaker) -> None:
    found = finding(pool(make_step, 4), {"pool": 4, "other": 40})
    assert found.title == "4 requests are served at a time (the setting pool is 4)"
    assert "only a change of it shows that" in found.explanation


def test_connections_without_a_setting_say_which_one_to_declare(make_step: StepMaker) -> None:
    found = finding(pool(make_step, 4, metrics={**IDLE, "target.peer.127.0.0.1:5432.connections": 4.0}))
    assert "Declare the setting that sizes the pool of 4 connections to 127.0.0.1:5432" in found.explanation


def test_a_full_limit_of_that_size_is_named(make_step: StepMaker) -> None:
    full = Limit("pool", "server", 4, None, 4, 4, 0, False, "", None, title="the pool")
    assert "the pool is full at 4" in finding(pool(make_step, 4), limits=[full]).title
    assert "the pool" not in finding(pool(make_step, 4), limits=[replace(full, use=2.0)]).title


@pytest.mark.parametrize("levels", [(1.0, 2.0, 4.0, 8.0), (1.0, 2.0, 4.0)])
def test_one_at_a_time_is_serial(make_step: StepMaker, levels: Sequence[float]) -> None:
    found = finding(pool(make_step, 1, levels=levels))
    assert found.id == SERIAL
    assert found.title == "one request is served at a time"
    assert found.reached_at is not None
    assert found.reached_at.load == 1


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("system.cpu.utilization", 0.95),
        ("target.saturation", 0.95),
        ("driver.saturation", 0.95),
        ("target.cage.cpu.throttled_share", 0.6),
        ("workload.errors", 60.0),
        ("system.disk.busy", 0.97),
        ("workload.cpu_wait", 0.3),
        ("target.cpu.hottest_thread", 0.97),
    ],
)
def test_what_ends_throughput_otherwise_rules_it_out(make_step: StepMaker, metric: str, value: float) -> None:
    assert isinstance(finding(pool(make_step, 4)), Finding)
    found = said(pool(make_step, 4, metrics={**IDLE, metric: value}))
    assert isinstance(found, RuledOut)
    assert found.id == PARALLELISM


def test_cpus_that_others_use_end_nothing_where_no_request_waits_for_one(make_step: StepMaker) -> None:
    busy = {**IDLE, "system.cpu.utilization": 1.0, "target.cpu.run_delay": 0.02}
    assert isinstance(said(pool(make_step, 4, metrics=busy)), Finding)
    assert isinstance(said(pool(make_step, 4, metrics={**busy, "workload.cpu_wait": 0.4})), RuledOut)


def test_one_busy_cpu_is_no_lock(make_step: StepMaker) -> None:
    """An interpreter's lock: many threads, none of them hot, one CPU's worth of work."""
    found = said(pool(make_step, 1, metrics={**IDLE, "target.cpu.cores": 0.97, "target.cpu.hottest_thread": 0.3}))
    assert isinstance(found, RuledOut)
    assert found.id == SERIAL


def test_a_lock_with_a_counter_of_its_own_is_not_told_twice(make_step: StepMaker) -> None:
    held = {**IDLE, "workload.lock_held": 0.97}
    told = said(pool(make_step, 1, metrics=held))
    assert isinstance(told, RuledOut)
    assert told.id == SERIAL
    assert "lock" in told.because
    assert finding(pool(make_step, 1, metrics={**IDLE, "workload.lock_held": 0.3})).id == SERIAL


def test_levels_that_begin_above_the_number_say_so(make_step: StepMaker) -> None:
    found = said(pool(make_step, 4, levels=(8, 16, 32)))
    assert isinstance(found, RuledOut)
    assert found.because == "the lowest level, 8, is on the plateau already"


def test_levels_that_begin_above_one_know_the_number_where_two_of_them_wait_for_nothing(make_step: StepMaker) -> None:
    assert finding(pool(make_step, 6, levels=(2, 4, 8, 16))).title == "6 requests are served at a time"
    bounded = finding(pool(make_step, 3, levels=(2, 4, 8, 16)), {"pool": 3})
    assert bounded.title.startswith("at most 3"), bounded.title
    assert "pool" not in bounded.title
    assert "measure from a lower load" in bounded.explanation


def test_a_curve_that_bends_slowly_has_no_number(make_step: StepMaker) -> None:
    """Clients that hinder one another from the first on: X N = N / (1 + 0.3 (N - 1)), flat only by looks."""
    steps = []
    for block, near in enumerate(JITTER, start=1):
        for level in (1.0, 2.0, 4.0, 64.0, 128.0):
            throughput = near * 50 * level / (1 + 0.3 * (level - 1))
            mean = 1000 * level / throughput
            steps.append(make_step(level, throughput, IDLE, block=block, latency=Latency(mean, mean, mean, mean, mean)))
    found = said(steps)
    assert isinstance(found, RuledOut)
    assert "as long at 2 already" in found.because


def test_growing_throughput_and_other_axes_say_nothing(make_step: StepMaker) -> None:
    assert said(pool(make_step, 64)) is None
    assert said(pool(make_step, 4), axis="active_jobs") is None


def test_a_rate_that_is_no_longer_served_tells_the_number_too(make_step: StepMaker) -> None:
    """Open loop: requests wait ever longer past the plateau; at the lowest rates they do not."""
    steps = []
    for block, near in enumerate(JITTER, start=1):
        for level in (25.0, 50.0, 100.0, 190.0, 240.0, 300.0):
            mean = {25.0: 20.0, 50.0: 20.4, 100.0: 21.5, 190.0: 45.0}.get(level, 400.0)
            throughput = near * min(level, 200.0)
            steps.append(make_step(level, throughput, IDLE, block=block, latency=Latency(mean, mean, mean, mean, mean)))
    assert finding(steps, axis="rate").title == "4 requests are served at a time"


def test_it_comes_after_a_cause_with_a_counter_of_its_own(make_step: StepMaker) -> None:
    fsync = {"system.disk.flushes_per_request": 1.0, "system.pressure.io.some": 0.6, "target.cage.writes": 5000.0}
    steps = pool(make_step, 1, metrics={**IDLE, **fsync})
    curve = curve_of(steps)
    found, _ = diagnose(look(curve, steps), [], operational(Seen(curve, steps, {}, [])))
    assert [each.id for each in found] == ["disk.fsync", SERIAL]


def test_what_ruled_it_out_is_told(make_step: StepMaker) -> None:
    steps = pool(make_step, 4, metrics={**IDLE, "system.cpu.utilization": 0.95})
    curve = curve_of(steps)
    _, cleared = diagnose(look(curve, steps), [], operational(Seen(curve, steps, {}, [])))
    assert PARALLELISM in {each.id for each in cleared}


# --- a peer that requests wait for ----------------------------------------------------------------------------------

PEER = "target.peer.127.0.0.1:9000"


def behind(make_step: StepMaker, connections: Callable[[float], float]) -> list[Step]:
    """All of a request's time is at a peer, over so many connections at a level."""

    def metrics(level: float) -> dict[str, float]:
        return {**IDLE, f"{PEER}.connections": connections(level), f"{PEER}.busy": min(level, connections(level))}

    return pool(make_step, 4, metrics=metrics)


def test_a_peer_that_slows_down_is_what_requests_wait_for(make_step: StepMaker) -> None:
    """Sixty-four connections to a peer that serves four at a time: they all wait there."""
    steps = behind(make_step, lambda level: 64.0)
    found = operational(Seen(curve_of(steps), steps, {"sockets": 64}, []))
    first = found[0]
    assert isinstance(first, Finding)
    assert first.id == "peer.slow"
    assert "127.0.0.1:9000" in first.title
    assert "serves 4 at a time" in first.explanation
    assert "80.0 ms" in first.explanation
    assert found[1].id == PARALLELISM


def test_a_pool_of_connections_that_limits_is_no_slow_peer(make_step: StepMaker) -> None:
    """Four connections, all busy: the time at the peer is the same however many wait for one of them."""
    found = finding(behind(make_step, lambda level: 4.0), {"pool": 4})
    assert found.id == PARALLELISM
    assert "4 connections to 127.0.0.1:9000" in found.title


def test_idle_connections_of_that_size_are_not_named(make_step: StepMaker) -> None:
    metrics = {**IDLE, f"{PEER}.connections": 4.0, f"{PEER}.busy": 0.5}
    assert "9000" not in finding(pool(make_step, 4, metrics=metrics)).title


def test_a_peer_of_which_little_is_waited_for_is_not_slow(make_step: StepMaker) -> None:
    def metrics(level: float) -> dict[str, float]:
        return {**IDLE, f"{PEER}.connections": 64.0, f"{PEER}.busy": 0.1 * level}

    assert finding(pool(make_step, 4, metrics=metrics)).id == PARALLELISM


# --- requests that are refused --------------------------------------------------------------------------------------


def test_requests_beyond_the_number_in_service_that_fail_at_once_come_first(make_step: StepMaker) -> None:
    steps = []
    for step in pool(make_step, 4):
        beyond = max(0.0, step.level - 4)
        metrics = {**IDLE, "workload.errors": 150 * beyond}
        steps.append(replace(step, metrics=metrics, latency=Latency(20.0, 20.0, 20.0, 20.0, 20.0)))
    curve = curve_of(steps)
    found, _ = diagnose(look(curve, steps), [], operational(Seen(curve, steps, {}, [])))
    assert found[0].id == PARALLELISM
    assert found[0].title == "4 requests are served at a time, and those beyond fail"
