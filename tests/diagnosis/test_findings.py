"""A cause is suspected only on its evidence, and look-alikes are told apart by what must be absent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from bends import STUDY
from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.signatures import SIGNATURES
from loadframe.diagnosis.windows import explains, explains_bend, look
from loadframe.ledger.reading import read_limits
from loadframe.ledger.rules import RULES
from loadframe.metrics import METRICS
from loadframe.model import Finding, Latency, LoadInterval, Step, TargetState
from loadframe.study import parse
from simulated_study import examined

StepMaker = Callable[..., Step]
IDLE = {"system.cpu.utilization": 0.5, "system.cpu.count": 2.0, "system.pressure.io.some": 0.01}


def diagnosed(steps: Sequence[Step], state: TargetState | None = None) -> tuple[Finding, ...]:
    levels = sorted({step.level for step in steps})
    samples = [
        LevelSample(
            level,
            tuple(step.throughput for step in steps if step.level == level),
            tuple(step.latency.p95_ms for step in steps if step.level == level),
        )
        for level in levels
    ]
    curve = fit(samples, axis="active_jobs", treatment="A")
    limits = [one.limit for one in read_limits(steps, state or TargetState(), {})]
    findings, _ = diagnose(look(curve, steps), limits)
    return findings


def farm(
    make_step: StepMaker, ceiling: float, *, churn: float = 2.0, jobs: Sequence[float] = (4, 8, 16, 32, 64)
) -> list[Step]:
    """Five tables per job; once they do not fit, each request opens `churn` tables and takes three times as long."""
    steps = []
    for block in (1, 2, 3):
        for level in jobs:
            full = 5 * level > ceiling
            throughput = (3000 if full else 9000) * (1 + 0.02 * block)
            metrics = {
                **IDLE,
                "mariadb.open_tables": min(5 * level, ceiling),
                "mariadb.table_open_cache": ceiling,
                "mariadb.opened_tables": churn * throughput if full else 1.0,
            }
            steps.append(make_step(level, throughput, metrics, block=block))
    return steps


def test_a_full_table_cache_with_churn_comes_first(make_step: StepMaker) -> None:
    first = diagnosed(farm(make_step, 64))[0]
    assert first.id == "mariadb.table_open_cache"
    assert first.status == "suspected"
    assert {"mariadb.open_tables", "mariadb.opened_tables"} <= {item.metric for item in first.evidence}


def test_a_cache_acts_from_where_requests_pay_not_from_where_it_is_full_of_leftovers(make_step: StepMaker) -> None:
    """Listings leave second copies of tables in the cache: it is full at 8 jobs, and too small from 13 on."""
    steps = []
    for step in farm(make_step, 64, jobs=(4, 8, 12, 14, 32, 64)):
        use = min(64.0, 9 * step.level)
        steps.append(
            make_step(step.level, step.throughput, {**step.metrics, "mariadb.open_tables": use}, block=step.block)
        )
    first = diagnosed(steps)[0]
    assert first.id == "mariadb.table_open_cache"
    assert first.reached_at is not None
    assert (first.reached_at.low, first.reached_at.high) == (pytest.approx(12, rel=0.05), 14)
    assert first.reached_at.low < first.reached_at.load < first.reached_at.high


@pytest.mark.parametrize(("room", "full_above"), [(79, 64), (20, 16)], ids=["far above", "where the fall has ended"])
def test_what_requests_pay_before_a_limit_is_full_is_not_for_it(
    make_step: StepMaker, room: float, full_above: float
) -> None:
    """Tables that are pushed out of the table cache take their definitions with them: these are read again from 16 jobs
    on, and there is room for 79. Seen on a MariaDB, as the cause at 23 jobs of a bend at 11."""
    steps = [
        make_step(
            step.level,
            step.throughput,
            {
                **step.metrics,
                "mariadb.open_table_definitions": min(400 / room * step.level, 400.0),
                "mariadb.table_definition_cache": 400.0,
                "mariadb.opened_table_definitions": 0.3 * step.throughput if step.level > 12.8 else 1.0,
            },
            block=step.block,
        )
        for step in farm(make_step, 64, jobs=(4, 8, 16, 32, 64, 128, 256))
    ]
    first, second = diagnosed(steps)
    assert (first.id, second.id) == ("mariadb.table_open_cache", "mariadb.table_definition_cache")
    assert second.reached_at is not None and second.reached_at.low == full_above
    assert not explains_bend(second)


@pytest.mark.parametrize("leftovers", [0.0, 5.0, 10.0, 15.0])
@pytest.mark.parametrize("jobs", [(4, 8, 16, 32, 64), (4, 8, 12, 24, 48), (5, 11, 23, 51)])
def test_a_limit_acts_somewhere_between_two_levels_whatever_its_use_says(
    make_step: StepMaker, leftovers: float, jobs: tuple[float, ...]
) -> None:
    """Tables of jobs that have ended stay in the cache until their place is needed: it is full at 9.8 jobs, or at 12.8
    without them, and too small from 12.8 on. That no level shows which of both it is makes the interval wide."""
    random = np.random.default_rng(20)
    steps = [
        make_step(
            step.level,
            step.throughput,
            {**step.metrics, "mariadb.open_tables": min(64.0, 5 * step.level + leftovers + random.normal(0, 1))},
            block=step.block,
        )
        for step in farm(make_step, 64, jobs=jobs)
    ]
    first = examined(steps, parse(STUDY)).findings[0]
    assert first.id == "mariadb.table_open_cache" and first.reached_at is not None
    last, pays = max(level for level in jobs if level < 12.8), min(level for level in jobs if level > 12.8)
    assert 0.95 * last <= first.reached_at.low <= 12.8 <= first.reached_at.high == pays


def test_a_limit_that_begins_past_the_bend_did_not_make_it(make_step: StepMaker) -> None:
    """Throughput falls slowly from 11 jobs on, where the table cache is full, and off a cliff at 23 to 25. The
    definitions are full at 45: nearer to the cliff than the cause is, and on the wrong side of it."""
    paid = {16: 0.2, 23: 0.4, 25: 2.0, 32: 2.0, 64: 2.0, 128: 2.0}
    served = {4: 8500.0, 8: 9000.0, 16: 8300.0, 23: 7600.0, 25: 3400.0, 32: 3000.0, 64: 2900.0, 128: 2500.0}
    steps = [
        make_step(
            level,
            throughput * (1 + 0.1 * (block - 2)),
            {
                **IDLE,
                "mariadb.open_tables": min(6.0 * level, 64.0),
                "mariadb.table_open_cache": 64.0,
                "mariadb.opened_tables": throughput * paid.get(level, 0.0),
                "mariadb.open_table_definitions": min(400 / 45 * level, 400.0),
                "mariadb.table_definition_cache": 400.0,
                "mariadb.opened_table_definitions": throughput if level > 45 else 1.0,
            },
            block=block,
        )
        for block in (1, 2, 3)
        for level, throughput in served.items()
    ]
    found = diagnosed(steps)
    assert [one.id for one in found] == ["mariadb.table_open_cache", "mariadb.table_definition_cache"]
    assert [explains_bend(one) for one in found] == [True, False]


@pytest.mark.parametrize(
    ("acts", "least", "most"),
    [
        (LoadInterval(23.5, 23, 24), 1, 1),
        (LoadInterval(10.7, 9, 24), 1, 1),
        (LoadInterval(11, 10, 11.5), 0.5, 0.5),
        (LoadInterval(45, 23, 64), 0.01, 0.2),
        (LoadInterval(45, 26, 64), 0, 0),
    ],
)
def test_what_begins_sooner_explains_a_bend_the_less_the_further_it_is_away_and_what_begins_later_does_not(
    acts: LoadInterval, least: float, most: float
) -> None:
    """At it; maybe at it, maybe long before; at half of its load; rather after it than not; after it."""
    assert least <= explains(acts, LoadInterval(24, 23, 25)) <= most


def test_a_limit_reached_in_two_steps_of_three_is_reached_whatever_the_third_is_like(make_step: StepMaker) -> None:
    """A server that is now in one state and now in another has an average that no step had: 71 of 100 here."""
    steps = []
    for block in (1, 2, 3):
        for level in (16, 32, 64, 128, 256):
            full = level > 64 and block < 3
            throughput = 1000.0 if full else 30.0 * min(level, 64)
            metrics = {
                **IDLE,
                "postgres.connections": 100.0 if full else 0.2 * min(level, 64),
                "postgres.connections_allowed": 100.0,
                "postgres.connections_refused": 400.0 if full else 0.0,
                "workload.errors": 400.0 if full else 0.0,
            }
            steps.append(make_step(level, throughput, metrics, block=block))
    assert [finding.id for finding in diagnosed(steps)][:1] == ["postgres.max_connections"]


@pytest.mark.parametrize(
    "use",
    [
        {4: (10, 12, 9), 8: (9, 10, 24), 16: (30, 13, 13), 32: (33, 30, 29), 64: (0, 7, 0)},
        {4: (4, 4, 7), 8: (14, 17, 11), 16: (16, 0, 16), 32: (18, 25, 0), 64: (0, 33, 33)},
    ],
    ids=["from 32 changes on", "at 64 changes alone"],
)
@pytest.mark.extension("loadframe_ndb")
def test_a_limit_that_refuses_is_reached_where_one_step_saw_it_full(
    make_step: StepMaker, use: dict[int, tuple[float, float, float]]
) -> None:
    """Refused transactions are in flight for moments: of three samples in a window few meet one. Seen on a MySQL
    Cluster that takes 32 operations at once, where every second request failed."""
    steps = [
        make_step(
            level,
            16_000.0 if level <= 8 else 16_000.0 * 8 / level**1.5,
            {
                **IDLE,
                "ndb.operations_open": float(use[level][block]),
                "ndb.most_operations": 32.0,
                "workload.errors": 0.0 if level <= 8 else 300.0,
            },
            block=block + 1,
        )
        for block in range(3)
        for level in use
    ]
    assert [finding.id for finding in diagnosed(steps)][:2] == ["ndb.operations", "workload.failing"]


def test_a_server_that_ran_out_of_files_is_named_by_its_errors(make_step: StepMaker) -> None:
    steps = []
    for block in (1, 2, 3):
        for level in (4, 8, 16, 32, 64):
            failing = 20 * level >= 400
            metrics = {
                **IDLE,
                "mariadb.open_files": min(20.0 * level, 400.0),
                "mariadb.open_files_limit": 400.0,
                "workload.errors": 900.0 if failing else 0.0,
            }
            steps.append(make_step(level, 3000 if failing else 9000, metrics, block=block))
    found = {finding.id: finding for finding in diagnosed(steps)}
    assert "mariadb.open_files_limit" in found
    reached_at = found["mariadb.open_files_limit"].reached_at
    assert reached_at is not None
    assert 16 <= reached_at.load <= 32
    quiet = [make_step(s.level, s.throughput, {**s.metrics, "workload.errors": 0.0}, block=s.block) for s in steps]
    assert "mariadb.open_files_limit" not in {finding.id for finding in diagnosed(quiet)}


def test_refused_connections_are_seen_where_throughput_has_no_bend(make_step: StepMaker) -> None:
    """The CPUs are full from the first level on; past ten connections some more are refused at each level."""
    refused = {4: 0.0, 8: 0.0, 16: 300.0, 32: 1250.0}
    steps = [
        make_step(
            level,
            throughput * (1 + 0.2 * (block - 2)),
            {
                **IDLE,
                "system.cpu.utilization": 0.99,
                "system.pressure.cpu.some": 0.96,
                "mariadb.max_used_connections": min(level + 1.0, 11.0),
                "mariadb.max_connections": 10.0,
                "mariadb.connection_errors_max": refused[level],
            },
            block=block,
        )
        for block in (1, 2, 3)
        for level, throughput in ((4, 15000), (8, 14000), (16, 13500), (32, 12500))
    ]
    first = diagnosed(steps)[0]
    assert first.id == "mariadb.max_connections"
    assert [item.value for item in first.evidence if item.metric == "mariadb.connection_errors_max"] == [1250.0]
    few = [
        make_step(s.level, s.throughput, {**s.metrics, "mariadb.connection_errors_max": 20.0}, block=s.block)
        for s in steps
    ]
    assert "mariadb.max_connections" not in {finding.id for finding in diagnosed(few)}


def test_a_limited_driver_never_blames_the_target(make_step: StepMaker) -> None:
    full, idle = {"driver.saturation": 0.97}, {"target.saturation": 0.4}
    steps = farm(make_step, 64)
    limited = [make_step(s.level, s.throughput, {**s.metrics, **full, **idle}, block=s.block) for s in steps]
    found = diagnosed(limited)
    assert [finding.id for finding in found] == ["driver.limited"]
    assert "mariadb.table_open_cache" in {cleared.id for cleared in found[0].ruled_out}
    busy = [make_step(s.level, s.throughput, {**s.metrics, **full, "target.saturation": 0.95}) for s in steps]
    assert "driver.limited" not in {finding.id for finding in diagnosed(busy)}


def test_cpus_are_full_where_the_target_schedules_its_work_by_itself(make_step: StepMaker) -> None:
    """A Go program with a thread for each CPU: its goroutines wait for one another, and no task waits for a CPU."""
    go = {**IDLE, "system.cpu.utilization": 0.99, "system.cpu.own": 0.96, "system.pressure.cpu.some": 0.1}

    def seen(saturation: float) -> list[str]:
        full = {**go, "target.saturation": saturation, "target.cpu.cores": 2 * saturation}
        half = {**go, "system.cpu.utilization": 0.54, "system.cpu.own": 0.5, "target.saturation": 0.49}
        steps = [make_step(1, 700.0, half, block=block) for block in (1, 2, 3)]
        steps += [make_step(level, 1400.0, full, block=block) for block in (1, 2, 3) for level in (2, 4, 8)]
        return [finding.id for finding in diagnosed(steps)]

    assert seen(0.95) == ["cpu.saturated"]
    assert seen(0.86) == ["cpu.saturated"], "what else runs has a tenth, and nothing is left"
    assert "cpu.saturated" not in seen(0.6), "the driver has the rest"


def test_a_target_that_fills_the_cpus_that_it_may_use_is_limited_by_them(make_step: StepMaker) -> None:
    """Bound to one CPU of two: half of the machine is idle, and still nothing else limits."""

    def seen(used: float, **others: float) -> list[str]:
        metrics = {**IDLE, "system.cpu.utilization": 0.55, "target.cpu.utilization": used, **others}
        steps = [make_step(level, 900.0, metrics, block=block) for block in (1, 2, 3) for level in (1, 2, 4, 8)]
        return [finding.id for finding in diagnosed(steps)]

    assert seen(0.97) == ["cpu.saturated"]
    assert seen(0.6) == []
    assert seen(0.97, **{"target.cage.cpu.throttled_share": 0.4}) == [], "that is its quota"


@pytest.mark.parametrize("more", [0, 200])
def test_what_the_curve_alone_says_does_not_deny_that_the_cpus_are_saturated(
    make_step: StepMaker, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that computes in threads, others beside it: the CPUs are full past the bend, and on the plateau as a
    whole just not so full that nothing else may be judged. more: signatures that further kinds of servers bring."""
    unseen = replace(SIGNATURES[1].present[0], metric="another.counter")
    others = (replace(SIGNATURES[1], id=f"another.cause{number}", present=(unseen,)) for number in range(more))
    monkeypatch.setattr("loadframe.diagnosis.findings.SIGNATURES", (*others, *SIGNATURES))
    steps = []
    for block in (1, 2, 3):
        for level, used in ((1, 0.5), (2, 0.86), (4, 0.94), (8, 0.97), (16, 0.97)):
            throughput, own = (0.99 + 0.005 * block) * min(level, 2) / 0.01, min(used - 0.1, 0.88)
            metrics = {
                **IDLE,
                "system.cpu.utilization": used,
                "system.cpu.own": own,
                "target.cpu.cores": 2 * own - 0.1,
                "target.cpu.run_delay": 0.1,
                "driver.cpu.cores": 0.1,
                "system.pressure.cpu.some": 0.6 if level > 2 else 0.1,
            }
            mean = 1000 * level / throughput
            latency = Latency(mean, mean, mean, mean, mean)
            steps.append(make_step(level, throughput, metrics, block=block, latency=latency))
    found = {one.id: one for one in examined(steps, parse(SERVICE)).findings}
    assert next(iter(found)) == "cpu.saturated"
    assert "service.parallelism" in found
    said = found["service.parallelism"].explanation
    assert "The CPUs are saturated; nothing else that is seen from outside is exhausted" in said
    assert "Nothing that is seen from outside" not in said


SERVICE = """
[study]
name = "digest"
question = "?"
[target]
kind = "service"
command = ["digest", "{port}"]
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 2]
"""
FULL = {**IDLE, "system.cpu.utilization": 0.98, "system.cpu.own": 0.97, "system.pressure.cpu.some": 0.9}
BESIDE = {**FULL, "driver.cpu.beside": 0.6, "target.cpus.busy": 0.98, "target.cpus.wait": 0.4}


def test_a_driver_on_the_targets_cpus_comes_before_cpus_that_are_full(make_step: StepMaker) -> None:
    """1.2 of 2 CPUs: what is measured is both together, and the driver's part of it can be moved elsewhere."""

    def seen(**changed: float) -> list[str]:
        metrics = {**BESIDE, **{name.replace("__", "."): value for name, value in changed.items()}}
        steps = [make_step(level, 900.0, metrics, block=block) for block in (1, 2, 3) for level in (1, 2, 4, 8)]
        return [finding.id for finding in diagnosed(steps)]

    assert seen() == ["driver.beside", "cpu.saturated"]
    assert seen(driver__cpu__beside=0.1) == ["cpu.saturated"], "a driver that needs little"
    assert seen(driver__cpu__beside=0.0) == ["cpu.saturated"], "bound to CPUs of its own"
    assert seen(target__cpus__wait=0.02) == ["cpu.saturated"], "a target that could not use more"
    idle = {"target__cpus__busy": 0.7, "system__cpu__utilization": 0.7, "system__cpu__own": 0.7}
    assert seen(**idle) == [], "there are CPUs left"
    quota = seen(**{"target.cage.cpu.throttled_share": 0.9, "target.cage.cpu.utilization": 0.98})
    assert quota == ["cage.cpu_quota", "cpu.saturated"], "what keeps the target waiting is its own quota"


def test_a_driver_beside_its_target_leaves_a_cause_that_explains_the_bend_first(make_step: StepMaker) -> None:
    """Both sides of a proof have the same driver beside them, so what else gives way can be proved."""
    steps = [make_step(s.level, s.throughput, {**s.metrics, **BESIDE}, block=s.block) for s in farm(make_step, 64)]
    assert [finding.id for finding in diagnosed(steps)][:2] == ["mariadb.table_open_cache", "driver.beside"]


def test_what_to_do_about_a_driver_beside_its_target_is_said(make_step: StepMaker) -> None:
    steps = [make_step(level, 900.0, BESIDE, block=block) for block in (1, 2, 3) for level in (1, 2, 4, 8)]
    first = diagnosed(steps)[0]
    assert "cage.driver.cpus" in first.explanation
    assert ("driver.cpu.beside", 0.6) in [(one.metric, pytest.approx(one.value)) for one in first.evidence]


def test_a_full_cache_that_costs_nothing_is_ruled_out_by_its_counter(make_step: StepMaker) -> None:
    steps = farm(make_step, 64, churn=0.001)
    findings = diagnosed([*steps])
    assert "mariadb.table_open_cache" not in {finding.id for finding in findings}


def test_a_cache_that_is_not_full_is_ruled_out(make_step: StepMaker) -> None:
    steps = []
    for step in farm(make_step, 64):
        metrics = {**step.metrics, "mariadb.table_open_cache": 4000.0, "system.disk.flushes_per_request": 3.0}
        steps.append(
            make_step(step.level, step.throughput, {**metrics, "system.pressure.io.some": 0.9}, block=step.block)
        )
    findings = diagnosed(steps)
    assert [finding.id for finding in findings] == ["disk.fsync"]
    assert "mariadb.table_open_cache" in {cleared.id for cleared in findings[0].ruled_out}


QUEUE = {
    **IDLE,
    "system.disk.flushes_per_request": 4.0,
    "system.pressure.io.some": 0.8,
    "workload.lock_held": 0.95,
    "workload.lock_waiting": 2.0,
}


def queue(make_step: StepMaker, **changed: float) -> list[Step]:
    """The same throughput with one worker and with eight."""
    metrics = {**QUEUE, **{name.replace("__", "."): value for name, value in changed.items()}}
    return [
        make_step(level, 400 * (1 + 0.03 * block), metrics, block=block)
        for block in (1, 2, 3)
        for level in (1, 2, 4, 8)
    ]


def test_commits_that_wait_for_the_disk_are_the_deeper_cause_of_the_held_lock(make_step: StepMaker) -> None:
    assert [finding.id for finding in diagnosed(queue(make_step))] == ["disk.fsync", "lock.writer"]


def test_a_cause_acts_from_the_first_level_at_which_it_is_seen(make_step: StepMaker) -> None:
    steps = []
    for step in queue(make_step):
        waiting = 0.02 if step.level == 1 else step.level - 1
        metrics = {**step.metrics, "workload.lock_waiting": waiting}
        steps.append(make_step(step.level, step.throughput, metrics, block=step.block))
    found = {finding.id: finding.reached_at for finding in diagnosed(steps)}
    disk, lock = found["disk.fsync"], found["lock.writer"]
    assert disk is not None
    assert lock is not None
    assert (disk.load, lock.load, lock.low) == (1, 2, 1)


def test_flushes_of_others_are_not_the_targets(make_step: StepMaker) -> None:
    idle = queue(make_step, **{"target.cage.writes": 2.0})
    assert [finding.id for finding in diagnosed(idle)] == ["lock.writer"]
    busy = queue(make_step, **{"target.cage.writes": 1500.0})
    assert [finding.id for finding in diagnosed(busy)] == ["disk.fsync", "lock.writer"]


def test_commits_that_wait_while_the_disk_is_idle_wait_for_the_cage_and_not_for_the_disk(make_step: StepMaker) -> None:
    """PostgreSQL under two write limits, seen: 72 commits/s, a flush of 0.07 ms for each, and the limits 85 % used."""
    throttled = {"target.cage.writes": 800.0, "target.cage.writes.utilization": 0.85, "system.pressure.io.some": 0.64}
    idle = diagnosed(queue(make_step, **{**throttled, "system.disk.working": 0.01}))
    assert [finding.id for finding in idle] == ["cage.writes", "lock.writer"]
    assert "anything to do" in {one.id: one.because for one in idle[0].ruled_out}["disk.fsync"]
    busy = diagnosed(queue(make_step, **{**throttled, "system.disk.working": 0.7}))
    assert [finding.id for finding in busy] == ["disk.fsync", "lock.writer"]


def test_what_a_disk_does_must_have_been_measured_to_say_that_it_is_idle(make_step: StepMaker) -> None:
    unknown = diagnosed(queue(make_step, **{"target.cage.writes": 800.0, "target.cage.writes.utilization": 0.85}))
    assert [finding.id for finding in unknown] == ["disk.fsync", "lock.writer"]


def test_without_flushes_the_lock_alone_is_left(make_step: StepMaker) -> None:
    found = diagnosed(queue(make_step, **{"system.disk.flushes_per_request": 0.01}))
    assert [finding.id for finding in found] == ["lock.writer"]
    cleared = {one.id: one.because for one in found[0].ruled_out}
    assert "cache flushes" in cleared["disk.fsync"]
    assert "0.01" in cleared["disk.fsync"]


def test_busy_cpus_are_no_lock_and_no_disk(make_step: StepMaker) -> None:
    found = diagnosed(
        queue(make_step, **{"system.cpu.utilization": 0.97, "system.cpu.own": 0.95, "system.pressure.cpu.some": 0.9})
    )
    assert [finding.id for finding in found] == ["cpu.saturated"]
    assert {"disk.fsync", "lock.writer"} <= {one.id for one in found[0].ruled_out}


def test_a_stranger_on_the_cpu_is_not_blamed_on_the_target(make_step: StepMaker) -> None:
    busy = {"system.cpu.utilization": 0.97, "system.cpu.foreign": 0.6, "system.cpu.own": 0.3}
    assert [finding.id for finding in diagnosed(queue(make_step, **busy))] == [
        "cpu.others",
        "disk.fsync",
        "lock.writer",
    ]


QUOTA = {"target.cage.cpu.utilization": 0.93, "target.cage.cpu.throttled_share": 0.9}


def test_a_cage_that_is_used_up_comes_before_what_waits_behind_it(make_step: StepMaker) -> None:
    assert diagnosed(queue(make_step, **QUOTA))[0].id == "cage.cpu_quota"
    rarely = {**QUOTA, "target.cage.cpu.throttled_share": 0.1}
    assert diagnosed(queue(make_step, **rarely))[0].id != "cage.cpu_quota", "used, but hardly ever used up"
    assert diagnosed(queue(make_step, **{"target.cage.writes.utilization": 0.97}))[0].id == "cage.writes"


def test_a_mapped_file_beyond_memory_says_more_than_that_memory_is_full(make_step: StepMaker) -> None:
    """Two caches have filled their cage; only one of them waits for each page."""
    loads = ((64, 600.0, 0.0), (128, 600.0, 0.0), (256, 590.0, 100.0), (512, 300.0, 40_000.0), (768, 280.0, 45_000.0))

    def beyond(faults: float) -> list[str]:
        steps = []
        for level, throughput, again in loads:
            metrics = {
                **IDLE,
                "target.cage.memory.usage": 256 << 20,
                "target.cage.memory.limit": 256 << 20,
                "target.cage.memory.refaults": again,
                "target.paging.major_faults": faults if again > 1000 else 0.0,
            }
            steps += [make_step(level, throughput, metrics, block=block) for block in (1, 2, 3)]
        return [finding.id for finding in diagnosed(steps)]

    assert beyond(45_000) == ["memory.mmap_page_faults", "cage.memory"]
    assert beyond(10) == ["cage.memory"], "files that are sent are fetched many pages at a time"


@pytest.mark.extension("loadframe_bulk")
def test_the_component_whose_cage_is_used_up_is_named(make_step: StepMaker) -> None:
    quota = {name.replace("target.", "loader."): value for name, value in QUOTA.items()}
    assert diagnosed(queue(make_step, **quota))[0].id == "cage.loader.cpu_quota"
    reading = {"driver.cage.read_bytes.utilization": 0.99}
    found = diagnosed(queue(make_step, **reading))[0]
    assert (found.id, "cage of the driver" in found.title) == ("cage.driver.read_bytes", True)


def test_a_cage_with_room_is_no_cause(make_step: StepMaker) -> None:
    idle = {**IDLE, "target.cage.cpu.utilization": 0.4, "target.cage.cpu.throttled_share": 0.0}
    idle |= {"target.cage.writes.utilization": 0.3}
    memory = {"target.cage.memory.usage": 60.0, "target.cage.memory.limit": 64.0}
    steps = [make_step(level, 100.0, {**idle, **memory}, block=block) for block in (1, 2, 3) for level in (1, 2, 4)]
    assert diagnosed(steps) == ()


def test_a_full_memory_cage_is_a_cause_only_if_pages_are_missed(make_step: StepMaker) -> None:
    """A page cache fills whatever it is given: being full says nothing."""

    def caged(refaults: float) -> tuple[Finding, ...]:
        memory = {"target.cage.memory.usage": 64.0, "target.cage.memory.limit": 64.0}
        metrics = {**IDLE, **memory, "target.cage.memory.refaults": refaults}
        return diagnosed([make_step(level, 100.0, metrics, block=block) for block in (1, 2, 3) for level in (1, 2, 4)])

    assert [finding.id for finding in caged(80.0)] == ["cage.memory"]
    assert caged(1.0) == ()


def test_a_cage_that_every_request_pays_for_at_every_level_stays_suspected_beside_a_bend(make_step: StepMaker) -> None:
    """It explains no bend, and a request that reads a page again each time would still be faster with more memory."""

    def caged(per_request: float) -> tuple[Finding, ...]:
        steps = []
        for level, throughput in ((1, 100.0), (2, 200.0), (4, 300.0), (8, 300.0), (16, 300.0)):
            metrics = {
                **IDLE,
                "target.cage.memory.usage": 64.0,
                "target.cage.memory.limit": 64.0,
                "target.cage.memory.refaults": per_request * throughput,
            }
            steps += [make_step(level, throughput, metrics, block=block) for block in (1, 2, 3)]
        return diagnosed(steps)

    (finding,) = caged(1.5)
    assert (finding.id, finding.score, finding.reached_at) == ("cage.memory", 0.3, None)
    assert finding.explanation.endswith("It costs about as much at every level.")
    assert finding.evidence[-1].source == "it is paid at every level"
    assert caged(0.2) == (), "one request in five, as often where nothing bends"


def test_pages_that_are_read_again_and_again_are_a_buffer_pool_too_small(make_step: StepMaker) -> None:
    def pool(reads: float, **more: float) -> list[str]:
        metrics = {**IDLE, "mariadb.pool_reads": reads, "mariadb.redo_fill": 0.1, "mariadb.pages_flushed": 0.0, **more}
        steps = [make_step(level, 100.0, metrics, block=block) for block in (1, 2, 3) for level in (1, 2, 4)]
        return [finding.id for finding in diagnosed(steps)]

    assert pool(90.0) == ["mariadb.buffer_pool"]
    assert pool(5.0) == []
    assert pool(5.0, **{"mariadb.redo_fill": 0.9, "mariadb.pages_flushed": 60.0}) == ["mariadb.redo_log"]
    assert pool(5.0, **{"mariadb.redo_fill": 0.9}) == [], "a log may be full without anybody waiting for it"


def test_a_log_that_fills_and_is_flushed_again_and_again_is_full_where_half_of_the_steps_saw_it_so(
    make_step: StepMaker,
) -> None:
    """Seen: a MySQL with a log of 8 MiB, which swings between 56 and 84 % and is read twice a second."""

    def named(*fills: float) -> list[str]:
        metrics = {**IDLE, "mysql.pages_flushed": 6000.0}
        steps = [
            make_step(level, 4500.0, {**metrics, "mysql.redo_fill": fill}, block=block)
            for block, fill in enumerate(fills)
            for level in (1, 4, 16)
        ]
        return [finding.id for finding in diagnosed(steps)]

    assert named(0.82, 0.83, 0.83, 0.59, 0.58, 0.64) == ["mysql.redo_log"]
    assert named(0.83, 0.58, 0.59, 0.58, 0.64, 0.61) == [], "one step in six does not say so"


def test_threads_of_mysql_that_wait_for_metadata_locks_are_told(make_step: StepMaker) -> None:
    def waiting(seconds: float, **more: float) -> list[str]:
        metrics = {**IDLE, "mysql.metadata_lock_wait": seconds, "mysql.row_lock_waits": 0.0, **more}
        steps = [make_step(level, 100.0, metrics, block=block) for block in (1, 2, 3) for level in (1, 4, 16)]
        return [finding.id for finding in diagnosed(steps)]

    assert waiting(3.0) == ["lock.metadata"]
    assert waiting(0.1) == []
    assert waiting(3.0, **{"system.cpu.own": 0.95}) == []
    assert waiting(0.0, **{"mysql.row_lock_waits": 20.0}) == ["lock.row"]


def test_connections_of_postgres_that_wait_for_locks_are_row_locks(make_step: StepMaker) -> None:
    def waiting(average: float, **more: float) -> list[str]:
        metrics = {**IDLE, "postgres.waiting_lock": average, "postgres.lock_waiters": 3.0, **more}
        steps = [make_step(level, 100.0, metrics, block=block) for block in (1, 2, 3) for level in (1, 4, 16)]
        return [finding.id for finding in diagnosed(steps)]

    assert waiting(6.0) == ["lock.row"]
    assert waiting(0.1) == []
    assert waiting(6.0, **{"system.cpu.own": 0.95}) == []


@pytest.mark.parametrize("kind", ["mariadb", "mysql", "postgres"])
def test_statements_that_read_whole_tables_are_why_the_cpus_are_busy(kind: str, make_step: StepMaker) -> None:
    def reading(rows: float, throughput: float = 100.0, busy: float = 0.97) -> list[str]:
        cpus = {"system.cpu.utilization": busy, "system.pressure.cpu.some": 0.6, "target.saturation": busy}
        metrics = {**IDLE, **cpus, f"{kind}.rows_scanned": rows}
        steps = [make_step(level, throughput, metrics, block=block) for block in (1, 2, 3) for level in (1, 4, 16)]
        return [finding.id for finding in diagnosed(steps)]

    assert reading(1e7)[0] == "rows.scanned"
    assert "rows.scanned" not in reading(6e3, throughput=1.0), "what reads the status tables reads rows, too"
    assert "rows.scanned" not in reading(1e6, throughput=5000.0), "small tables are read whole"
    assert reading(1e7, busy=0.5) == []


def test_that_postgres_compiles_costly_statements_is_tried_after_the_cpus(make_step: StepMaker) -> None:
    def costly(throughput: float, **more: float) -> list[str]:
        cpus = {"system.cpu.utilization": 0.97, "system.pressure.cpu.some": 0.6, "target.saturation": 0.97}
        metrics = {**IDLE, **cpus, "target.cpu.cores": 1.9, **more}
        steps = [make_step(level, throughput, metrics, block=block) for block in (1, 2, 3) for level in (1, 4, 16)]
        return [finding.id for finding in diagnosed(steps)]

    assert costly(14.0, **{"postgres.jit": 1.0}) == ["cpu.saturated", "postgres.jit"]
    assert costly(500.0, **{"postgres.jit": 1.0}) == ["cpu.saturated"], "4 ms of CPU: nothing was compiled"
    assert costly(14.0, **{"postgres.jit": 0.0}) == ["cpu.saturated"]
    assert costly(14.0) == ["cpu.saturated"], "another server"


def test_a_server_that_says_what_it_waits_for_is_believed_once(make_step: StepMaker) -> None:
    """Where others use the machine, time waited for I/O is hidden from it; both witnesses together are one finding."""

    def commits(**metrics: float) -> list[str]:
        seen = {
            **IDLE,
            "system.disk.flushes_per_request": 0.6,
            "postgres.waiting_wal": 2.0,
            "target.cage.writes": 300.0,
        }
        seen |= {name.replace("__", "."): value for name, value in metrics.items()}
        steps = [make_step(level, 100.0, seen, block=block) for block in (1, 2, 3) for level in (1, 2, 4)]
        findings = diagnosed(steps)
        assert not {one.id for one in findings} & {one.id for found in findings for one in found.ruled_out}
        return [finding.id for finding in findings]

    assert commits() == ["disk.fsync"]
    assert commits(system__pressure__io__some=0.8) == ["disk.fsync"]
    assert commits(system__pressure__io__some=0.8, workload__lock_waiting=2.0, workload__lock_held=0.9) == [
        "disk.fsync", "lock.writer",
    ]  # fmt: skip
    assert commits(postgres__waiting_wal=0.1) == []


def test_checkpoints_that_come_often_are_a_log_too_small(make_step: StepMaker) -> None:
    def checkpoints(requested: float, pages: float) -> list[str]:
        metrics = {**IDLE, "postgres.checkpoints_requested": requested, "postgres.wal_pages": pages}
        steps = [make_step(level, 100.0, metrics, block=block) for block in (1, 2, 3) for level in (1, 2, 4)]
        return [finding.id for finding in diagnosed(steps)]

    assert checkpoints(0.5, 60.0) == ["postgres.checkpoints"]
    assert checkpoints(0.01, 60.0) == [], "one in a hundred seconds is what it is meant to be"
    assert checkpoints(0.5, 2.0) == [], "often, and nobody pays for it"


@pytest.mark.parametrize(("due", "found"), [(4.0, ["postgres.checkpoints"]), (1.7, [])])
def test_a_slow_disk_makes_checkpoints_few_and_the_log_long(make_step: StepMaker, due: float, found: list[str]) -> None:
    """Seen: 32 MiB of log on a disk of 25 MB/s, four times as long as it should be, and a checkpoint in 11 s: too few
    to be named."""
    metrics = {
        **IDLE,
        "postgres.checkpoint_due": due,
        "postgres.checkpoints_requested": 0.09,
        "postgres.wal_pages": 60.0,
    }
    steps = [make_step(level, 100.0, metrics, block=block) for block in (1, 2, 3) for level in (1, 2, 4)]
    assert [finding.id for finding in diagnosed(steps)] == found


def test_refused_connections_of_postgres_are_named(make_step: StepMaker) -> None:
    steps = []
    for block in (1, 2, 3):
        for level in (4, 8, 16, 32):
            refused = level > 10
            metrics = {
                **IDLE,
                "postgres.connections": min(level + 1.0, 10.0),
                "postgres.connections_allowed": 10.0,
                "postgres.connections_refused": 900.0 if refused else 0.0,
                "workload.errors": 900.0 if refused else 0.0,
            }
            steps.append(make_step(level, 3000 if refused else 900 * level, metrics, block=block))
    assert diagnosed(steps)[0].id == "postgres.max_connections"


def test_an_idle_machine_gives_no_finding(make_step: StepMaker) -> None:
    steps = [make_step(level, 100 * level, IDLE, block=block) for block in (1, 2, 3) for level in (1, 2, 4)]
    assert diagnosed(steps) == ()


def test_every_metric_of_the_rules_is_registered() -> None:
    used = {condition.metric for one in SIGNATURES for condition in (*one.present, *one.absent)}
    for rule in RULES:
        used |= {name for name in (rule.use, rule.ceiling, rule.thrash, rule.errors) if name and name != "one"}
    assert used <= set(METRICS)


def test_chains_name_limits_that_exist() -> None:
    known = {rule.id for rule in RULES}
    for rule in RULES:
        assert set(rule.chain) <= known


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.id)
def test_every_threshold_names_its_source(signature: object) -> None:
    for condition in (*signature.present, *signature.absent):  # type: ignore[attr-defined]
        assert condition.source


def test_the_evidence_is_what_was_measured(make_step: StepMaker) -> None:
    steps = queue(make_step)
    first = diagnosed(steps)[0]
    flushes = next(item for item in first.evidence if item.metric == "system.disk.flushes_per_request")
    assert flushes.value == pytest.approx(fmean(step.metrics[flushes.metric] for step in steps))
    assert flushes.threshold <= flushes.value
