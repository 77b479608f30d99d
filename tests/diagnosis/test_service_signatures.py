"""What is seen from outside of any process names its cause, and each look-alike is ruled out by a counter."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis import others
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.mechanism import trace_of
from loadframe.diagnosis.windows import look
from loadframe.ledger.reading import derive, read_limits
from loadframe.model import Finding, RuledOut, Step, TargetState
from loadframe.recording.process_window import PROGRAMS
from loadframe.recording.runtime_metrics import COLLECTORS

StepMaker = Callable[..., Step]
Metrics = Mapping[str, float]
QUIET = {
    "system.cpu.utilization": 0.4,
    "system.cpu.own": 0.3,
    "system.cpu.count": 4.0,
    "system.pressure.io.some": 0.0,
    "workload.errors": 0.0,
    "target.open_files": 40.0,
    "target.open_files.limit": 1024.0,
    "target.cpu.hottest_thread": 0.3,
    "system.network.local_ports.limit": 28232.0,
}
CAUSES: Mapping[str, Metrics] = {
    "net.delayed_ack": {
        "workload.latency_delayed_ack_share": 0.95,
        "workload.latency_delayed_ack_contrast": 40.0,
        "system.network.delayed_acks": 190.0,
    },
    "net.accept_queue": {
        "system.network.listen_overflows": 30.0,
        "target.accept_queue": 3.0,
        "target.accept_queue.limit": 2.0,
        "target.accept_queue.waiting": 0.8,
    },
    "net.ports": {"system.network.local_ports": 28000.0, "workload.errors": 20.0},
    "process.open_files": {
        "target.open_files": 1024.0,
        "target.accept_queue": 9.0,
        "target.accept_queue.limit": 128.0,
        "target.accept_queue.waiting": 9.0,
        "system.network.listen_overflows": 0.0,
    },
    "runtime.garbage_collection": {
        "target.runtime.gc_share": 0.7,
        "target.runtime.heap_live": 48e6,
        "target.runtime.heap_ceiling": 64e6,
    },
    "cpu.hot_thread": {
        "target.cpu.one_at_a_time": 1.0,
        "target.cpu.busiest_process": 1.0,
        "target.cpu.busiest_threads": 7.5,
    },
}
"""What is seen of each cause, of a flat curve of 200 requests a second, beside what is quiet."""
LOOK_ALIKES = [
    ("net.delayed_ack", {"workload.latency_delayed_ack_contrast": 1.1}, "whichever are more"),
    ("net.delayed_ack", {"system.network.delayed_acks": 2.0}, "sent late"),
    ("net.delayed_ack", {"system.cpu.own": 0.95}, "CPU time of the target and the driver"),
    ("net.accept_queue", {"target.accept_queue": 0.0}, "fullest accept queue"),
    ("net.accept_queue", {"target.open_files": 1024.0}, "EMFILE"),
    ("net.ports", {"workload.errors": 0.0}, "requests that failed"),
    ("process.open_files", {"target.open_files": 900.0}, "900 of 1,024"),
    ("process.open_files", {"target.accept_queue.waiting": 0.0}, "requests that failed"),
    ("runtime.garbage_collection", {"target.runtime.heap_ceiling": 512e6}, "of all that the runtime lets it have"),
    ("cpu.hot_thread", {"target.cpu.one_at_a_time": 0.0}, "one lock for all its threads"),
    ("cpu.hot_thread", {"target.cpu.busiest_process": 1.9}, "at most 1.25 cores"),
    ("cpu.hot_thread", {"target.saturation": 0.97}, "CPU time of the target"),
    ("cpu.hot_thread", {"system.cpu.own": 0.97}, "CPU time of the target and the driver"),
]


FLAT = {1: 200.0, 2: 200.0, 4: 200.0, 8: 200.0}
BENT = {1: 70.0, 2: 120.0, 4: 190.0, 8: 235.0, 16: 240.0}


def diagnosed(
    make_step: StepMaker, seen: Metrics, rates: Mapping[int, float] = FLAT, loaded: Metrics | None = None
) -> tuple[tuple[Finding, ...], tuple[RuledOut, ...]]:
    """Of a service that is flat from the first level on, or has other rates. loaded: what else is seen above that."""
    lowest, above = (derive({**QUIET, **seen, **more}, {})[0] for more in ({}, loaded or {}))
    steps = [
        make_step(level, rate + block, lowest if level == min(rates) else above, block=block)
        for block in (1, 2, 3)
        for level, rate in rates.items()
    ]
    samples = [LevelSample(level, (rate, rate + 1, rate + 2), (5.0, 5.0, 5.0)) for level, rate in rates.items()]
    curve = fit(samples, axis="concurrency", treatment="A")
    limits = [one.limit for one in read_limits(steps, TargetState(), {})]
    return diagnose(look(curve, steps), limits)


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_is_named_first_by_what_is_seen_of_it(make_step: StepMaker, cause: str) -> None:
    found, _ = diagnosed(make_step, CAUSES[cause])
    assert found[0].id == cause
    assert found[0].status == "suspected"
    assert all(item.source for item in found[0].evidence)
    assert trace_of(found[0]) is not None, "a change can be seen to move it"


def test_the_quota_of_a_group_of_others_is_named_with_the_limit_in_the_ledger(make_step: StepMaker) -> None:
    quota = {"target.cgroup.cpu.throttled_share": 0.88, "target.cgroup.cpu": 0.5, "target.cgroup.cpu.limit": 0.5}
    found, _ = diagnosed(make_step, quota)
    assert [finding.id for finding in found] == ["cgroup.cpu"]
    assert found[0].evidence[0].metric == "target.cgroup.cpu.throttled_share"


def test_few_long_timeouts_are_failures(make_step: StepMaker) -> None:
    """As of memcached beyond its connections: half a request in a hundred, a third of the clients' time."""
    timeouts = {"workload.errors": 1.2, "workload.failed_time": 0.35}
    found, _ = diagnosed(make_step, {}, BENT, loaded=timeouts)
    assert found[0].id == "workload.failing"
    full = {**timeouts, "target.open_files": 1024.0}
    found, _ = diagnosed(make_step, {"target.open_files": 300.0}, BENT, loaded=full)
    assert found[0].id == "process.open_files"
    trace = trace_of(found[0])
    assert trace is not None
    assert trace.metric == "workload.failed_time"
    quick = {**full, "workload.failed_time": 0.01}
    assert not diagnosed(make_step, {"target.open_files": 300.0}, BENT, loaded=quick)[0]


def test_timeouts_are_no_cause_beside_what_makes_them(make_step: StepMaker) -> None:
    busy = {"system.cpu.utilization": 0.99, "target.saturation": 0.97, "system.pressure.cpu.some": 0.9}
    found, _ = diagnosed(make_step, {}, BENT, loaded={**busy, "workload.errors": 1.2, "workload.failed_time": 0.35})
    assert [finding.id for finding in found] == ["cpu.saturated"]


def test_a_delayed_acknowledgement_is_seen_where_no_request_waits_for_another(make_step: StepMaker) -> None:
    """Behind a pool of four connections that wait for it, a request at 16 clients takes four times 40 ms."""
    queued = {"workload.latency_delayed_ack_share": 0.2}
    found, _ = diagnosed(make_step, CAUSES["net.delayed_ack"], loaded=queued)
    assert found[0].id == "net.delayed_ack"
    assert found[0].evidence[0].window == "at one level, at 1"
    quick = {**CAUSES["net.delayed_ack"], **queued}
    assert "net.delayed_ack" not in [one.id for one in diagnosed(make_step, quick)[0]]


@pytest.mark.parametrize(("cause", "other", "because"), LOOK_ALIKES)
def test_each_look_alike_is_ruled_out_by_a_counter(
    make_step: StepMaker, cause: str, other: Metrics, because: str
) -> None:
    found, cleared = diagnosed(make_step, {**CAUSES[cause], **other})
    assert cause not in {finding.id for finding in found}
    assert any(because in one.because for one in cleared if one.id == cause), [
        one for one in cleared if one.id == cause
    ]


@pytest.mark.parametrize(
    "seen",
    [CAUSES["cpu.hot_thread"], {"target.cpu.hottest_thread": 0.95}],
    ids=["one lock for all threads", "one thread"],
)
def test_other_programs_on_the_other_cpus_do_not_rule_out_a_hot_thread(make_step: StepMaker, seen: Metrics) -> None:
    """As seen of Node on two CPUs, with a compiler on the other one: the thread itself hardly waits."""
    busy = {"system.cpu.utilization": 1.0, "system.cpu.foreign": 0.5, "system.cpu.own": 0.49, "target.saturation": 0.48}
    found, _ = diagnosed(make_step, {**seen, **busy, "system.cpu.count": 2.0, "workload.cpu_wait": 0.08})
    assert found[0].id == "cpu.hot_thread"


def test_a_thread_that_is_nearly_full_is_suspected_where_nothing_else_is(make_step: StepMaker) -> None:
    """As seen of an event loop that computes: all clients wait for 8 ms together, and then for each other."""
    found, _ = diagnosed(make_step, {"target.cpu.hottest_thread": 0.8}, BENT)
    assert [(one.id, one.status) for one in found] == [("cpu.hot_thread", "suspected")]
    assert "busy most of the time" in found[0].title
    found, _ = diagnosed(make_step, {"target.cpu.hottest_thread": 0.8, **CAUSES["net.accept_queue"]}, BENT)
    assert "cpu.hot_thread" not in [one.id for one in found], "what is used up says more than what nearly is"
    found, _ = diagnosed(make_step, {"target.cpu.hottest_thread": 0.6}, BENT)
    assert not found
    found, _ = diagnosed(make_step, {"target.cpu.hottest_thread": 0.8, "system.cpu.own": 0.95}, BENT)
    assert "cpu.hot_thread" not in [one.id for one in found]


REFUSED = {"target.open_files": 36.0, "target.open_files.limit": 40.0, "workload.errors": 60.0}


def test_files_that_are_opened_several_at_a_time_fail_before_the_last_one(make_step: StepMaker) -> None:
    """As seen of a service that opens four for each request and answers 503: 36 of 40 were seen open."""
    found, _ = diagnosed(make_step, REFUSED)
    assert [one.id for one in found][:1] == ["process.open_files"]
    trace = trace_of(found[0])
    assert trace is not None and trace.metric == "workload.errors", "they end with the cause"
    for other in ({"workload.errors": 0.0}, {"target.open_files": 30.0}):
        found, _ = diagnosed(make_step, {**REFUSED, **other})
        assert "process.open_files" not in [one.id for one in found]


def test_files_that_are_as_many_at_low_loads_are_not_why_requests_fail(make_step: StepMaker) -> None:
    found, cleared = diagnosed(make_step, REFUSED, BENT)
    assert "process.open_files" not in [one.id for one in found]
    assert any("already" in one.because for one in cleared if one.id == "process.open_files")


def test_a_quiet_service_has_none_of_them(make_step: StepMaker) -> None:
    found, _ = diagnosed(make_step, {})
    assert not {finding.id for finding in found} & CAUSES.keys()


def test_what_was_not_measured_names_no_cause(make_step: StepMaker) -> None:
    """Each of these metrics alone is not enough where another one tells it from its look-alikes."""
    for cause in ("net.delayed_ack", "net.accept_queue", "process.open_files", "cpu.hot_thread"):
        first = dict([next(iter(CAUSES[cause].items()))])
        found, _ = diagnosed(make_step, first)
        assert cause not in {finding.id for finding in found}


def test_a_full_queue_explains_the_limit_that_it_is(make_step: StepMaker) -> None:
    found, _ = diagnosed(make_step, CAUSES["net.accept_queue"])
    assert [finding.id for finding in found if "accept" in finding.id] == ["net.accept_queue"]


SAMPLED = {
    "target.runtime.gc_sampled_share": 0.8,
    "target.runtime.gc_sampled_cores": 1.5,
    "target.cpu.hottest_thread": 0.97,
}


def test_a_collector_that_a_profile_shows_comes_before_the_thread_that_it_fills(make_step: StepMaker) -> None:
    found, _ = diagnosed(make_step, SAMPLED)
    assert [finding.id for finding in found][:2] == ["runtime.garbage_collection", "cpu.hot_thread"]
    trace = trace_of(found[0])
    assert trace is not None
    assert trace.metric == "target.runtime.gc_sampled_cores", "for each request: its share of the CPUs may stay"


@pytest.mark.parametrize(
    "other",
    [
        {"target.runtime.gc_sampled_share": 0.1},
        {"target.runtime.gc_sampled_share": 0.31},  # a Node.js service whose one thread computes
        {"target.runtime.gc_sampled_cores": 0.05},  # of a program that is idle
        {"target.runtime.gc_share": 0.01},  # its own counters contradict
    ],
)
def test_a_collector_that_takes_little_is_no_cause(make_step: StepMaker, other: Metrics) -> None:
    found, _ = diagnosed(make_step, {**SAMPLED, **other})
    assert "runtime.garbage_collection" not in {finding.id for finding in found}


BUSY = {"target.cpu.hottest_thread": 0.97}


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (BUSY, False),
        ({"target.saturation": 0.95}, False),
        ({"target.cpu.hottest_thread": 0.4}, True),  # whatever it collects, that is no limit
        (BUSY | {"target.runtime.gc_share": 0.02}, True),
        (BUSY | {"target.runtime.gc_sampled_share": 0.1}, True),
        ({}, True),
    ],
)
def test_a_collector_that_would_matter_and_is_not_seen_is_said(make_step: StepMaker, seen: Metrics, told: bool) -> None:
    steps = [make_step(level, 200.0, {**seen, "target.cpu.cores": 1.0} if level == 8 else {}) for level in (1, 8)]
    said = others.collector(steps)
    assert not any(one.judged for one in said)
    assert [one.id for one in said] == ([] if told else ["runtime.garbage_collection"])
    assert all("cannot be seen from outside: if its runtime" in one.because for one in said)
    assert others.collector([]) == ()


@pytest.mark.parametrize(
    "program", ["/usr/bin/python3.11", "/opt/python", "/usr/bin/ruby3.1", "/usr/bin/pypy3 (deleted)"]
)
def test_interpreters_with_one_lock_are_known_by_their_names(program: str) -> None:
    assert PROGRAMS.fullmatch(program)


@pytest.mark.parametrize("program", ["/usr/bin/python3.13t", "/usr/bin/node", "/usr/bin/java", "/x/pythonic", "", "/"])
def test_other_programs_are_none_of_these(program: str) -> None:
    assert not PROGRAMS.fullmatch(program)


def test_threads_of_collectors_are_known_by_their_names() -> None:
    assert all(
        map(COLLECTORS.fullmatch, ("GC Thread#0", "G1 Main Marker", "VM Thread", "ZWorkerYoung#0", "Shenandoah GC T"))
    )
    assert not any(map(COLLECTORS.fullmatch, ("java", "C2 CompilerThre", "node", "V8Worker", "G1", "")))
