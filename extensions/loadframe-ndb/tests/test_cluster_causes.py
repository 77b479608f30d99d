"""What gives in a MySQL Cluster is named from its counters, and not where they speak against it or are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.windows import look
from loadframe.ledger.reading import read_limits
from loadframe.model import Finding, Step, TargetState

IDLE = {"system.cpu.utilization": 0.5, "system.cpu.count": 2.0, "system.pressure.io.some": 0.01}
StepMaker = Callable[..., Step]
Metrics = Mapping[str, float]
FLAT_FROM = 4.0
WAITS = {"ndb.sql.wait": 9.0, "ndb.sql.waiting": 8.0, "ndb.sql.shared_by": 8.0, "ndb.sql.pool": 1.0}
"""Eight clients' threads on one connection, and the SQL node's own."""


def diagnosed(of: Sequence[Step]) -> tuple[Finding, ...]:
    samples = []
    for level in sorted({step.level for step in of}):
        there = [step for step in of if step.level == level]
        throughputs, latencies = ([step.throughput for step in there], [step.latency.p95_ms for step in there])
        samples.append(LevelSample(level, tuple(throughputs), tuple(latencies)))
    limits = [one.limit for one in read_limits(of, TargetState(), {})]
    findings, _ = diagnose(look(fit(samples, axis="threads", treatment="A"), of), limits)
    return findings


def steps(make_step: StepMaker, past: Metrics, below: Metrics | None = None) -> list[Step]:
    """Throughput grows up to four threads. past, below: what is counted from there on, and before."""
    found = []
    for block in (1, 2, 3):
        for level in (1.0, 2.0, 4.0, 8.0, 16.0):
            flat = level > FLAT_FROM
            throughput = 1000.0 * min(level, FLAT_FROM) * (1 + 0.01 * block)
            told = past if flat else dict.fromkeys(past, 0.0) if below is None else below
            found.append(make_step(level, throughput, {**IDLE, **told}, block=block))
    return found


def named(make_step: StepMaker, past: Metrics, below: Metrics | None = None) -> list[str]:
    return [one.id for one in diagnosed(steps(make_step, past, below)) if one.id.startswith("ndb.")]


def test_threads_that_wait_on_one_connection_where_nothing_is_full_are_a_suspected_pool(make_step: StepMaker) -> None:
    (found,) = [one for one in diagnosed(steps(make_step, WAITS)) if one.id == "ndb.sql_pool"]
    assert found.status == "suspected"
    assert "is not, until it is tried" in found.explanation


@pytest.mark.parametrize(
    "but",
    [
        {"system.cpu.own": 0.95},
        {"target.cpu.hottest_thread": 0.97},
        {"ndb.lock_wait": 6.0},
        {"ndb.send_overloads": 1.0},
        {"system.disk.busy": 0.95},
        {"ndb.sql.shared_by": 1.0, "ndb.sql.pool": 8.0},
    ],
)
def test_it_is_no_pool_where_something_else_is_full_or_each_connection_has_few(
    make_step: StepMaker, but: Metrics
) -> None:
    assert "ndb.sql_pool" not in named(make_step, {**WAITS, **but})


def test_it_is_no_pool_where_as_many_waited_below_the_bend(make_step: StepMaker) -> None:
    assert "ndb.sql_pool" not in named(make_step, WAITS, WAITS)


def test_without_the_counter_of_waits_nothing_is_said_of_the_pool(make_step: StepMaker) -> None:
    findings = diagnosed(steps(make_step, {"ndb.sql.pool": 1.0, "ndb.sql.statements": 4000.0}))
    assert "ndb.sql_pool" not in {one.id for one in findings}
    assert all(out.id != "ndb.sql_pool" for one in findings for out in one.ruled_out), "not ruled out, either"


@pytest.mark.parametrize(
    ("past", "cause"),
    [
        ({"ndb.ldm_cpu": 0.97}, "ndb.ldm_threads"),
        ({"ndb.tc_cpu": 0.97}, "ndb.tc_threads"),
        ({"ndb.send_overloads": 3.0}, "ndb.send_buffers"),
        ({"ndb.lock_waits": 900.0, "ndb.lock_wait": 6.0}, "ndb.row_locks"),
        ({"ndb.redo_fill": 0.9, "ndb.writes": 4000.0}, "ndb.redo_log"),
        ({"ndb.preemptions": 9000.0, "target.cpu.run_delay": 2.0}, "ndb.threads_share_cpu"),
        ({"ndb.sql.cpu": 0.97}, "ndb.sql_node"),
    ],
)
def test_what_the_counters_show_is_named_and_busy_cpus_are_another_cause(
    make_step: StepMaker, past: Metrics, cause: str
) -> None:
    assert named(make_step, past) == [cause]
    assert named(make_step, dict.fromkeys(past, 0.0)) == []
    busy = {"system.cpu.own": 0.95, "system.cpu.utilization": 0.97, "ndb.ldm_cpu": 0.95}
    if cause != "ndb.send_buffers":
        assert cause not in named(make_step, {**past, **busy})


FULL = {
    "ndb.data_memory": ("ndb.data_memory_used", "ndb.data_memory"),
    "ndb.transaction_size": ("ndb.largest_transaction", "ndb.most_changes"),
    "ndb.operations": ("ndb.operations_open", "ndb.most_operations"),
    "ndb.transactions": ("ndb.transactions_open", "ndb.most_transactions"),
    "ndb.transaction_memory": ("ndb.transaction_memory_used", "ndb.transaction_memory"),
}


@pytest.mark.parametrize("limit", FULL)
def test_what_is_full_is_a_cause_where_requests_fail_and_none_where_they_do_not(
    make_step: StepMaker, limit: str
) -> None:
    """Use is seen once a second, and more transactions than are reserved take other memory: full alone is no cause."""
    use, ceiling = FULL[limit]
    past = {use: 32.0, ceiling: 32.0, "workload.errors": 400.0}
    below = {use: 8.0, ceiling: 32.0, "workload.errors": 0.0}
    assert named(make_step, past, below) == [limit]
    assert named(make_step, {**past, "workload.errors": 0.0}, below) == []
    assert named(make_step, {**past, use: 20.0}, below) == [], "they fail for another reason"
