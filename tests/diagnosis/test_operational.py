"""What several levels show together: how many requests are served at a time, and what has that size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.operational import Seen, operational
from loadframe.diagnosis.sizes import PARALLELISM, SERIAL
from loadframe.diagnosis.windows import look
from loadframe.experiments.examination import examine
from loadframe.model import OTHERS, Curve, Finding, Knob, Latency, Limit, RuledOut, SettingValue, Step, TargetState

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
    assert "a pool of 4" in found.advice
    assert "[target.setting.NAME]" in found.advice


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
    assert "By chance alone one of the 2 settings would have such a value in 11 % of services." in found.explanation


def test_only_settings_that_the_study_declares_are_compared_with_the_throughput(make_step: StepMaker) -> None:
    """20,000 descriptors, which are not declared, are 333 requests/s, in requests per minute; 336/s were served."""
    steps = pool(make_step, 4, service_s=4 / 336)
    effective = {"RLIMIT_NOFILE": 20000, "rate": 20000}

    def explained(*knobs: Knob) -> str:
        found = examine(
            steps, number=1, treatment="A", state=TargetState({}), effective=effective, curve=curve_of(steps),
            target_kind="service", highest_level=16, knobs=knobs,
        ).round.findings[0]  # fmt: skip
        return f"{found.explanation} {found.evidence}"

    assert "value of a setting" not in explained()
    assert "RLIMIT_NOFILE" not in explained(Knob("rate", low=1, high=1e6))
    assert "the value of a setting (rate = 20000, in requests per minute)" in explained(Knob("rate", low=1, high=1e6))


def test_connections_without_a_setting_say_which_one_to_declare(make_step: StepMaker) -> None:
    found = finding(pool(make_step, 4, metrics={**IDLE, "target.peer.127.0.0.1:5432.connections": 4.0}))
    assert "4 connections to 127.0.0.1:5432." in found.explanation
    assert found.advice.startswith("Declare the setting that gives it this size")


def test_a_number_that_is_no_whole_one_may_be_one_stage_within_a_request(make_step: StepMaker) -> None:
    """Of 22 ms one stage had 2.5 ms alone: said to be 8.8 requests at a time."""
    steps = []
    for step in pool(make_step, 40, service_s=0.022, levels=(1, 4, 16, 32)):
        throughput = (0.96, 1.0, 1.04)[(step.block or 1) - 1] * min(step.level / 0.022, 400.0)
        mean = 1000 * step.level / throughput
        steps.append(replace(step, throughput=throughput, latency=Latency(mean, mean, mean, mean, mean)))
    found = finding(steps)
    assert found.title == "about 8.8 requests are served at a time, or one stage serves one for 2.5 ms"
    assert "a pool of about that size, or one stage that serves one request at a time, for 2.5 ms" in found.explanation
    assert " stage" not in finding(steps, {"desks": 9}).title
    assert " stage" not in finding(pool(make_step, 4)).title


def test_a_parent_in_wait_is_no_candidate(make_step: StepMaker) -> None:
    parent = {**IDLE, "target.waits.other": 1.0, "target.waits.sleeping": 0.96}
    assert finding(pool(make_step, 1, metrics=parent)).title == "one request is served at a time (1 thread sleeps)"
    assert finding(pool(make_step, 1, metrics={**IDLE, "target.waits.other": 1.0})).title == (
        "one request is served at a time"
    )


def test_a_single_thread_that_is_always_seen_in_a_known_wait_is_named_where_no_other_is(make_step: StepMaker) -> None:
    """A request of 100 ms leaves hardly a tick for anything else."""
    slow = {**IDLE, "target.waits.disk": 1.0}
    assert finding(pool(make_step, 1, metrics=slow)).title.endswith("(1 thread waits for the disk)")
    ticker = {**slow, "target.waits.network": 0.95}
    assert finding(pool(make_step, 1, metrics=ticker)).title.endswith("(1 thread waits for the network)")


def test_processes_of_one_thread_each_are_told_once(make_step: StepMaker) -> None:
    workers = {**IDLE, "target.processes.count": 5.0, "target.threads.count": 5.0}
    told = finding(pool(make_step, 4, metrics=workers)).title
    assert told == "4 requests are served at a time (4 processes besides the first one)"
    for processes, said in (
        (4.0, "4 processes; 4 threads besides"),
        (5.0, "4 processes besides the first one; 4 threads"),
    ):
        several = {**workers, "target.processes.count": processes, "target.threads.count": 9.0 - processes}
        assert said in finding(pool(make_step, 4, metrics=several)).title


def test_nothing_has_no_size(make_step: StepMaker) -> None:
    """Where all of a request may lie outside of what limits, the number in service may be anything from 0 on."""
    seen = {**TURNS, "target.waits.network": 0.0, "target.waits.running": 0.98}
    found = finding(pool(make_step, 1, service_s=0.005, metrics=seen))
    assert "0 threads" not in found.title
    assert "1 thread runs" in found.title


def test_no_fewer_than_one_request_is_served_at_a_time(make_step: StepMaker) -> None:
    computes = {**IDLE, "target.cpu.cores": 1.0, "target.cpu.hottest_thread": 0.5, "target.cpu.one_at_a_time": 0.0}
    found = finding(pool(make_step, 1, metrics=computes))
    assert "is 1.0 (1.0 to " in found.explanation, "all of a request is CPU time, which bounds nothing"


def apart(
    make_step: StepMaker, size: int, *, held: Callable[[float, float], float] = lambda serving, clients: serving
) -> list[Step]:
    """Processes with a queue each, which clients join at random (mean value analysis). held: how many threads are not
    idle, from how many requests are in service and how many clients there are."""
    steps = []
    for block, near in enumerate(JITTER, start=1):
        for level in (*LEVELS, 32.0, 64.0):
            serving = size * level / (level + size - 1)
            throughput, mean = near * serving / 0.02, 20 * level / serving / near
            seen = {
                **IDLE,
                "target.processes.count": size,
                "target.threads.count": size + 1.0,
                "target.waits.idle": size + 1.0 - held(serving, level),
            }
            steps.append(make_step(level, throughput, seen, block=block, latency=Latency(mean, mean, mean, mean, mean)))
    return steps


def test_processes_that_have_a_queue_each_are_told_by_their_number(make_step: StepMaker) -> None:
    """As with SO_REUSEPORT: throughput bends slowly, as some are idle while others have several requests."""
    found = finding(apart(make_step, 3))
    assert found.id == PARALLELISM
    assert found.title.startswith("3 requests are served at a time (3 processes")
    assert "a queue of its own" in found.explanation


@pytest.mark.parametrize(
    "held", [lambda serving, clients: clients, lambda serving, clients: 1.0], ids=["locks", "an event loop"]
)
def test_a_curve_that_bends_slowly_is_no_number_where_requests_hold_threads_for_longer(
    make_step: StepMaker, held: Callable[[float, float], float]
) -> None:
    """The law of a lock that each request takes for a third of its time is the same."""
    told = said(apart(make_step, 3, held=held))
    assert isinstance(told, RuledOut)
    assert "where throughput still grows" in told.because


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
        ("target.cgroup.cpu.throttled_share", 0.45),
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


def beside_programs(
    make_step: StepMaker, threads: int, alone: float, beside: float, levels: Sequence[float] = LEVELS
) -> list[Step]:
    """A service whose threads compute, on two CPUs, beside programs: a thread has this share of a CPU at one client,
    and at more."""
    steps = []
    for block, near in enumerate(JITTER, start=1):
        for level in levels:
            share, busy = alone if level == 1 else beside, min(level, threads)
            waiting = busy * (1 - share)
            metrics = {
                "system.cpu.count": 2.0,
                "system.cpu.utilization": 1.0,
                "system.cpu.own": busy * share / 2,
                "system.cpu.foreign": 1 - busy * share / 2,
                "system.cpu.steal": 0.0,
                "target.cpu.cores": busy * share,
                "target.cpu.run_delay": waiting,
                "target.cpu.hottest_thread": share,
                "target.cpu.one_at_a_time": 0.0,
                "target.saturation": busy * share / 2,
                "workload.cpu_wait": waiting / level,
                "workload.cpus_busy": 1.0,
            }
            throughput = near * busy * share / 0.01
            mean = 1000 * level / throughput
            steps.append(
                make_step(level, throughput, metrics, block=block, latency=Latency(mean, mean, mean, mean, mean))
            )
    return steps


@pytest.mark.parametrize(("threads", "alone", "beside"), [(1, 0.7, 0.7), (1, 0.5, 0.5), (2, 1.0, 0.5), (2, 0.7, 0.5)])
@pytest.mark.parametrize("levels", [LEVELS, (*LEVELS, 32.0, 64.0)], ids=["to 16", "to 64"])
def test_one_cpu_that_programs_leave_to_a_service_is_not_one_request_at_a_time(
    make_step: StepMaker, levels: Sequence[float], threads: int, alone: float, beside: float
) -> None:
    """With 64 clients the waits for a CPU are little of all their time, which they spend in the service's queue."""
    steps = beside_programs(make_step, threads, alone, beside, levels)
    curve = curve_of(steps)
    found, ruled_out = diagnose(look(curve, steps), [], operational(Seen(curve, steps, {}, [])))
    assert [each.id for each in found] == [OTHERS]
    assert not ruled_out, "beside others nothing is"
    assert any(each.metric == "workload.cpu_wait" and each.value >= 0.2 for each in found[0].evidence)


def test_a_thread_that_waits_a_little_for_the_cpus_of_others_computes_all_the_time_too(make_step: StepMaker) -> None:
    told = said(beside_programs(make_step, 1, 0.82, 0.82))
    assert isinstance(told, RuledOut)
    assert told.id == SERIAL
    assert "waits for a CPU that others use" in told.because


@pytest.mark.parametrize("steal", [0.05, 0.3])
def test_two_threads_that_share_what_the_hypervisor_leaves_take_no_turns(make_step: StepMaker, steal: float) -> None:
    around = {"system.cpu.count": 2.0, "system.cpu.foreign": 0.0, "system.cpu.steal": steal, "system.cpu.own": 0.5}
    told = said(pool(make_step, 1, metrics={**TURNS, **around, "system.cpu.utilization": 0.6}))
    assert isinstance(told, RuledOut if steal == 0.3 else Finding)


def test_one_busy_cpu_is_no_lock(make_step: StepMaker) -> None:
    """An interpreter's lock: many threads, none of them hot, one CPU's worth of work."""
    found = said(pool(make_step, 1, metrics={**IDLE, "target.cpu.cores": 0.97, "target.cpu.hottest_thread": 0.3}))
    assert isinstance(found, RuledOut)
    assert found.id == SERIAL


TURNS = {**IDLE, "target.cpu.cores": 0.98, "target.cpu.hottest_thread": 0.57, "target.cpu.one_at_a_time": 0.0}
"""A Go service with one mutex around what it computes, as recorded: its goroutines wander over four threads."""


def test_threads_that_take_turns_on_one_cpu_are_serial(make_step: StepMaker) -> None:
    found = finding(pool(make_step, 1, metrics=TURNS))
    assert found.id == SERIAL
    assert "a lock guards what they compute" in found.explanation
    shown = {evidence.metric: evidence.comparison for evidence in found.evidence}
    assert shown["target.cpu.cores"] == ">="
    assert shown["target.cpu.hottest_thread"] == "<"


@pytest.mark.parametrize(
    "other",
    [
        {"target.cpu.one_at_a_time": 1.0},
        {"target.cpu.hottest_thread": 0.95},
        {"target.saturation": 0.98},
        {"target.cage.cpu.throttled_share": 0.6},
        {"workload.cpu_wait": 0.4},
    ],
    ids=["an interpreter's lock", "one thread", "one CPU is all it has", "a quota", "others take the CPUs"],
)
def test_one_cpu_that_something_else_explains_is_no_lock(make_step: StepMaker, other: Mapping[str, float]) -> None:
    assert isinstance(said(pool(make_step, 1, metrics={**TURNS, **other})), RuledOut)


def test_threads_that_wait_for_a_lock_are_not_said_to_compute(make_step: StepMaker) -> None:
    found = finding(pool(make_step, 1, metrics={**TURNS, "target.cpu.cores": 0.1}))
    assert "compute" not in found.explanation


FLUSHES = {
    **IDLE,
    "target.waits.disk": 0.7,
    "system.disk.flushes_per_request": 0.1,
    "system.disk.working": 0.7,
    "target.io.write_bytes": 20_000.0,
    "target.io.read_bytes": 0.0,
}
"""One request at a time, of which each tenth flushes the disk."""


def test_requests_that_share_a_flush_wait_for_it_where_most_of_their_time_is_in_the_disk(
    make_step: StepMaker,
) -> None:
    found = finding(pool(make_step, 1, metrics=FLUSHES))
    assert (found.id, found.status) == ("disk.fsync", "suspected")
    assert "70 % of their time in service" in found.title
    assert found.evidence[0].metric == "system.disk.flushes_per_request"


@pytest.mark.parametrize(
    ("size", "other"),
    [
        (1, {"target.waits.disk": 0.2}),
        (4, {"target.waits.disk": 0.7}),
        (1, {"system.disk.flushes_per_request": 0.001}),
        (1, {"target.io.read_bytes": 500_000.0}),
        (1, {"target.io.write_bytes": 0.0}),
        (1, {"system.disk.working": 0.05}),
    ],
    ids=["seldom", "four at a time", "hardly a flush", "it reads", "others flush", "an idle disk"],
)
def test_flushes_that_do_not_bind_are_no_cause(make_step: StepMaker, size: int, other: Mapping[str, float]) -> None:
    found = finding(pool(make_step, size, metrics={**FLUSHES, **other}))
    assert found.id == (SERIAL if size == 1 else PARALLELISM)


def test_a_lock_with_a_counter_of_its_own_is_not_told_twice(make_step: StepMaker) -> None:
    held = {**IDLE, "workload.lock_held": 0.97}
    told = said(pool(make_step, 1, metrics=held))
    assert isinstance(told, RuledOut)
    assert told.id == SERIAL
    assert told.because == "a lock does that, and is judged as a cause of its own: it was held 97 % of the time"
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


# --- a peer that requests wait for ---

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
    assert first.advice == "Measure 127.0.0.1:9000 as a target of its own, or ask it less."
    assert found[1].id == PARALLELISM


def partly(steps: list[Step], looked: Callable[[int], bool]) -> list[Step]:
    """The same where the connections were looked at only in the windows of some steps."""
    return [
        step
        if looked(place)
        else replace(step, metrics={name: value for name, value in step.metrics.items() if not name.startswith(PEER)})
        for place, step in enumerate(steps)
    ]


def blocks(make_step: StepMaker, connections: Callable[[float], float], count: int = 4) -> list[Step]:
    """As many steps of each level and block, one after another."""
    return [step for step in behind(make_step, connections) for _ in range(count)]


def test_steps_that_were_looked_at_speak_for_those_that_were_not(make_step: StepMaker) -> None:
    looked = partly(blocks(make_step, lambda level: 64.0), lambda place: place % 2 == 0)
    assert finding(looked).id == "peer.slow"
    seldom = partly(blocks(make_step, lambda level: 64.0), lambda place: place % 4 == 0)
    assert finding(seldom).id == PARALLELISM


def test_a_pool_of_connections_is_named_by_the_steps_that_were_looked_at(make_step: StepMaker) -> None:
    looked = partly(blocks(make_step, lambda level: 4.0), lambda place: place % 2 == 0)
    assert "4 connections to 127.0.0.1:9000" in finding(looked).title
    seldom = partly(blocks(make_step, lambda level: 4.0), lambda place: place % 4 == 0)
    assert "9000" not in finding(seldom).title


SOCKET = "target.peer.unix:/run/app.sock"


def over_a_unix_socket(level: float) -> dict[str, float]:
    """A thread for each request, which waits for an answer; the kernel tells nothing of the connections."""
    return {**IDLE, f"{SOCKET}.connections": level, f"{SOCKET}.inside": 0.0, f"{SOCKET}.waiting": 0.95 * level}


def test_threads_that_wait_for_a_unix_socket_tell_of_a_slow_peer(make_step: StepMaker) -> None:
    found = finding(pool(make_step, 4, metrics=over_a_unix_socket))
    assert found.id == "peer.slow"
    assert "unix:/run/app.sock" in found.title
    assert found.evidence[1].metric == f"{SOCKET}.waiting"
    assert "threads that wait for it" in found.evidence[0].source


def test_a_socket_of_its_own_workers_is_no_other_peer(make_step: StepMaker) -> None:
    def metrics(level: float) -> dict[str, float]:
        return {**over_a_unix_socket(level), f"{SOCKET}.inside": 1.0}

    found = finding(pool(make_step, 4, metrics=metrics), {"workers": 4})
    assert found.id == PARALLELISM
    assert "does not tell" not in found.explanation


def test_a_unix_socket_of_which_nothing_is_told_is_said_not_to_be_seen(make_step: StepMaker) -> None:
    """One thread that serves all by events waits for none of them."""

    def metrics(level: float) -> dict[str, float]:
        return {**IDLE, f"{SOCKET}.connections": level, f"{SOCKET}.inside": 0.0}

    found = finding(pool(make_step, 4, metrics=metrics))
    assert found.id == PARALLELISM
    assert "connections to unix:/run/app.sock, and the kernel does not tell" in found.explanation
    assert "does not tell" not in finding(pool(make_step, 4)).explanation


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


# --- requests that are refused ---


def test_requests_beyond_the_number_in_service_that_fail_at_once_come_first(make_step: StepMaker) -> None:
    steps = []
    for step in pool(make_step, 4):
        beyond = max(0.0, step.level - 4)
        metrics = {**IDLE, "workload.errors": 150 * beyond, "workload.failed_time": beyond / step.level}
        steps.append(replace(step, metrics=metrics, latency=Latency(20.0, 20.0, 20.0, 20.0, 20.0)))
    curve = curve_of(steps)
    found, _ = diagnose(look(curve, steps), [], operational(Seen(curve, steps, {}, [])))
    assert found[0].id == PARALLELISM
    assert found[0].title == "4 requests are served at a time, and those beyond fail"


@pytest.mark.parametrize(
    ("kind", "own", "title"),
    [
        ("service", {}, "requests fail, and why is not seen from outside"),
        ("ndb", {"ndb.writes": 100.0}, "requests fail, and why is not seen from outside"),
        ("sqlite", {"sqlite.database_bytes": 4096.0}, "requests give up waiting for a lock"),
    ],
)
def test_only_requests_that_fail_at_an_sqlite_gave_up_on_a_lock(
    make_step: StepMaker, kind: str, own: dict[str, float], title: str
) -> None:
    served = {1: 100.0, 2: 180.0, 4: 160.0, 8: 90.0, 16: 40.0}
    steps = [
        make_step(level, served[level], IDLE | own | {"workload.errors": 100.0 * (level > 2)}, block=block)
        for block in (1, 2, 3)
        for level in served
    ]
    assert [one for one in titles(steps, kind) if one.startswith("requests ")] == [title]


def test_requests_that_fail_beyond_those_in_service_are_no_second_cause(make_step: StepMaker) -> None:
    steps = [
        replace(
            step,
            metrics={**IDLE, "workload.errors": 150 * max(0.0, step.level - 4)},
            latency=Latency(20.0, 20.0, 20.0, 20.0, 20.0),
        )
        for step in pool(make_step, 4)
    ]
    assert titles(steps, "service") == ["4 requests are served at a time, and those beyond fail"]


def titles(steps: Sequence[Step], kind: str) -> list[str]:
    examined = examine(
        steps,
        number=1,
        treatment="A",
        state=TargetState(),
        effective={},
        curve=curve_of(steps),
        target_kind=kind,
        highest_level=16,
    )
    return [finding.title for finding in examined.round.findings]
