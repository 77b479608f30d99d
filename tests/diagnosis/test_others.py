"""Where others take the CPU that comes first, nothing is ruled out by what little happens, and nothing is confirmed or
refuted but against quiet steps. The numbers are those of the demo's queue beside a compiler, Linux 6.18, two CPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.diagnosis.findings import diagnose
from loadframe.diagnosis.judging import judge
from loadframe.diagnosis.others import Cost, cost, outweighs
from loadframe.diagnosis.signatures import is_seen
from loadframe.diagnosis.windows import look
from loadframe.experiments.proof import verdict_on
from loadframe.model import OTHERS, Evidence, Finding, Price, Remedy, RuledOut, Step

StepMaker = Callable[..., Step]
FLUSHES = "system.disk.flushes_per_request"
CROWDED = {
    "system.cpu.utilization": 1.0,
    "system.cpu.foreign": 0.979,
    "system.cpu.own": 0.02,
    "system.cpu.count": 2.0,
    "workload.cpu_wait": 0.929,
    "workload.lock_waiting": 1.0,
    "workload.lock_held": 0.997,
    "system.pressure.io.some": 0.0204,
    "system.pressure.cpu.some": 0.93,
    "target.cage.writes": 750.0,
    FLUSHES: 3.99,
}
QUIET = {
    **CROWDED,
    "system.cpu.utilization": 0.46,
    "system.cpu.foreign": 0.18,
    "system.cpu.own": 0.18,
    "workload.cpu_wait": 0.0454,
    "system.pressure.io.some": 0.489,
    "target.cage.writes": 15_000.0,
}


def diagnosed(
    make_step: StepMaker, metrics: Mapping[str, float], foreign: Mapping[int, float] | None = None
) -> tuple[list[str], tuple[RuledOut, ...]]:
    """foreign: of the CPUs, by level; then the throughput rises with the load, else it is the same at each."""
    steps, samples = [], []
    for level in (1, 2, 4):
        here = metrics if foreign is None else {**metrics, "system.cpu.foreign": foreign[level]}
        served = [(100.0 + block) * (1 if foreign is None else level) for block in (1, 2, 3)]
        steps += [make_step(level, value, here, block=block) for block, value in enumerate(served, 1)]
        samples.append(LevelSample(float(level), tuple(served), (2.0, 2.0, 2.0)))
    findings, ruled_out = diagnose(look(fit(samples, axis="concurrency", treatment="A"), steps), ())
    return [finding.id for finding in findings], ruled_out


def test_others_come_first_and_what_hardly_runs_rules_nothing_out(make_step: StepMaker) -> None:
    found, ruled_out = diagnosed(make_step, CROWDED)
    assert found[0] == OTHERS
    assert "lock.writer" in found
    assert ruled_out == ()


def test_others_come_first_too_where_a_target_of_many_threads_leaves_them_little_at_its_peak(
    make_step: StepMaker,
) -> None:
    """Two strangers beside MariaDB, seen on two CPUs: 0.51, 0.41 and 0.19 of them at 1, 2 and 4 threads."""
    found, ruled_out = diagnosed(make_step, CROWDED, {1: 0.51, 2: 0.41, 4: 0.19})
    assert found[0] == OTHERS
    assert ruled_out == ()


def test_a_neighbour_at_one_level_alone_is_not_the_curve(make_step: StepMaker) -> None:
    assert OTHERS not in diagnosed(make_step, CROWDED, {1: 0.51, 2: 0.02, 4: 0.02})[0]


def test_in_quiet_the_disk_comes_first(make_step: StepMaker) -> None:
    found, ruled_out = diagnosed(make_step, QUIET)
    assert found[:2] == ["disk.fsync", "lock.writer"]
    assert OTHERS in {one.id for one in ruled_out}


@pytest.mark.parametrize(
    ("metrics", "crowded"),
    [
        (CROWDED, True),
        (QUIET, False),
        ({**QUIET, "system.cpu.foreign": 0.555, "workload.cpu_wait": 0.087}, False),
        ({**CROWDED, "system.cpu.foreign": 0.01}, False),
        ({**CROWDED, "target.saturation": 0.5, "workload.cpus_busy": 1.0}, True),
        ({**CROWDED, "target.saturation": 0.97}, False),
        ({**CROWDED, "workload.cpus_busy": 0.7}, False),
        ({**QUIET, "system.cpu.steal": 0.3}, True),
        ({"system.cpu.foreign": 0.6}, True),
        ({"workload.cpu_wait": 0.6}, False),
        ({}, False),
    ],
    ids=[
        "beside a compiler",
        "quiet",
        "neighbours that leave a CPU free",
        "its own threads wait for one another",
        "beside a compiler, and both figures of the CPUs say so",
        "it has all that its quota lets it have",
        "the CPUs are free for a third of the time",
        "the hypervisor gives the CPU away",
        "the waits of threads are not known",
        "the neighbours are not known",
        "nothing is known",
    ],
)
def test_neighbours_count_where_threads_wait_for_the_cpus_that_they_have(
    metrics: Mapping[str, float], crowded: bool
) -> None:
    assert is_seen(OTHERS, metrics) is crowded


QUOTA = {
    "system.cpu.utilization": 0.62,
    "system.cpu.foreign": 0.46,
    "system.cpu.own": 0.16,
    "system.cpu.count": 2.0,
    "workload.cpu_wait": 0.6,
    "target.cpu.cores": 0.3,
    "target.saturation": 1.0,
    "target.cage.cpu": 0.3,
    "target.cage.cpu.limit": 0.3,
    "target.cage.cpu.utilization": 1.0,
    "target.cage.cpu.throttled_share": 1.0,
}
"""A service in Go that may have 30 % of a CPU, beside other programs. What its threads wait is as it was counted before
the periods were left out in which its quota ran out."""


def test_a_quota_that_is_used_up_comes_before_others_who_leave_it_all_of_that(make_step: StepMaker) -> None:
    found, ruled_out = diagnosed(make_step, QUOTA)
    assert found[0] == "cage.cpu_quota"
    assert OTHERS not in found
    assert any("CPU time of the target" in one.because for one in ruled_out if one.id == OTHERS)


def test_others_come_first_where_they_leave_a_quota_unused(make_step: StepMaker) -> None:
    starved = {
        **QUOTA,
        "system.cpu.utilization": 1.0,
        "target.cpu.cores": 0.12,
        "target.saturation": 0.4,
        "target.cage.cpu": 0.12,
        "target.cage.cpu.utilization": 0.4,
        "target.cage.cpu.throttled_share": 0.1,
        "workload.cpus_busy": 1.0,
    }
    found, _ = diagnosed(make_step, starved)
    assert found[0] == OTHERS
    assert "cage.cpu_quota" not in found


COLLECTING = {
    "system.cpu.utilization": 0.99,
    "system.cpu.foreign": 0.43,
    "system.cpu.own": 0.54,
    "workload.cpu_wait": 0.72,
    "workload.cpus_busy": 0.99,
    "target.saturation": 0.53,
    "target.runtime.gc_share": 0.44,
    "target.runtime.gc_cpu_share": 0.63,
    "target.runtime.heap_live_share": 0.8,
}
"""A JVM with a small heap beside other programs on two CPUs. It had 12 times the throughput with a larger one."""


@pytest.mark.parametrize(
    ("seen", "first"),
    [
        ({}, "runtime.garbage_collection"),
        ({"target.runtime.gc_cpu_share": 0.4}, OTHERS),
        ({"system.cpu.own": 0.2, "system.cpu.foreign": 0.75}, OTHERS),
    ],
    ids=["it collects", "the collector has less than the others", "the others have nearly all"],
)
def test_a_collector_that_costs_more_than_the_others_can_comes_before_them(
    make_step: StepMaker, seen: Mapping[str, float], first: str
) -> None:
    found, ruled_out = diagnosed(make_step, {**COLLECTING, **seen})
    assert found[0] == first
    assert {OTHERS, "runtime.garbage_collection"} <= set(found)
    assert ruled_out == ()


@pytest.mark.parametrize("seen", [{}, {"system.cpu.steal": 0.3}], ids=["other programs", "other guests"])
def test_what_is_said_of_others_agrees_with_a_cause_that_comes_before_them(
    make_step: StepMaker, seen: Mapping[str, float]
) -> None:
    steps = [make_step(level, 100.0, {**COLLECTING, **seen}, block=block) for level in (1, 2, 4) for block in (1, 2)]
    samples = [LevelSample(level, (100.0, 100.0), ()) for level in (1.0, 2.0, 4.0)]
    findings, _ = diagnose(look(fit(samples, axis="concurrency", treatment="A"), steps), ())
    said = next(one.explanation for one in findings if one.id == OTHERS)
    assert "no other cause" not in said
    assert "only where it costs more than they take" in said


@pytest.mark.parametrize(("disk", "first"), [(1.6, "disk.fsync"), (0.18, OTHERS)])
def test_a_disk_that_is_waited_for_longer_than_the_cpus_comes_before_the_others(
    make_step: StepMaker, disk: float, first: str
) -> None:
    waits = {"target.waits.disk": disk, "target.waits.runnable": 0.57, "system.pressure.io.some": 0.4}
    found, _ = diagnosed(make_step, {**CROWDED, **waits, "workload.cpu_wait": 0.25})
    assert found[0] == first
    assert {OTHERS, "disk.fsync"} <= set(found)


SLEEPS = {"system.cpu.steal": 0.14, "system.cpu.utilization": 0.5, "system.cpu.own": 0.1}
"""Beside a service that computes for a fifth of a CPU, the hypervisor takes more than that."""


def suspected(cause: str, metric: str, value: float) -> Finding:
    return Finding(cause, "", None, (Evidence(metric, value, ">=", 0.0, "on the plateau"),), 0.6)


@pytest.mark.parametrize(
    ("finding", "seen", "expected"),
    [
        # a service that sleeps, six at a time, while the hypervisor takes 0.28 of a CPU of two
        (suspected("service.parallelism", "workload.in_service", 6.9), {"system.cpu.steal": 0.14}, True),
        (suspected("service.parallelism", "workload.in_service", 2.0), {"system.cpu.steal": 0.14}, False),
        (suspected("service.parallelism", "workload.in_service", 6.9), {}, False),
        (suspected("service.serial", "workload.in_service", 1.0), {"system.cpu.steal": 0.14}, False),
        # what runs is mostly not the study's, so most of what is stolen is not either
        (suspected("service.serial", "workload.in_service", 1.0), SLEEPS, True),
        (suspected("service.serial", "workload.in_service", 1.0), {**SLEEPS, "system.cpu.own": 0.4}, False),
        # half of the CPUs are the study's: with all of them a request would take half as long, and it takes 4.8 times
        (suspected("growth.requests", "workload.cost_growth", 4.8), {"system.cpu.own": 0.5}, True),
        (suspected("growth.time", "workload.cost_growth", 1.9), {"system.cpu.own": 0.5}, False),
        (suspected("growth.time", "workload.cost_growth", 4.8), {}, False),
    ],
)
def test_others_that_take_less_than_a_cause_costs_come_behind_it(
    finding: Finding, seen: Mapping[str, float], expected: bool
) -> None:
    around = {"system.cpu.count": 2.0, "system.cpu.foreign": 0.0} if seen else {}
    assert outweighs(finding, {**around, **seen}) is expected


# --- proofs ---


def side(
    make_step: StepMaker, throughputs: Sequence[float], flushes: float, around: Sequence[Mapping[str, float]], name: str
) -> list[Step]:
    """A step for each of these surroundings, each in a block of its own."""
    return [
        make_step(
            4, served, {**each, FLUSHES: flushes}, block=block, treatment=name,
            flags=("stranger",) if is_seen(OTHERS, each) else (),
        )
        for block, (served, each) in enumerate(zip(throughputs, around, strict=True), start=1)
    ]  # fmt: skip


def judged(
    make_step: StepMaker,
    around: Sequence[Mapping[str, float]],
    factor: float = 8.0,
    quiet_factor: float | None = None,
) -> Finding:
    """Of a remedy with which flushes fall from 4 to 1, proved in these blocks."""
    cause = Finding("disk.fsync", "", None, (Evidence(FLUSHES, 4.0, ">=", 0.5, "past the bend"),), 0.6)
    served = [100.0 + block % 3 for block in range(len(around))]
    quiet = factor if quiet_factor is None else quiet_factor
    before = side(make_step, served, 4.0, around, "A")
    gained = [each * (factor if is_seen(OTHERS, where) else quiet) for each, where in zip(served, around, strict=True)]
    after = side(make_step, gained, 1.0, around, "B")
    verdict = verdict_on([*before, *after], "A", "B")
    (finding,) = judge([cause], Remedy("wal", "wal", ("disk.fsync",), (), Price()), verdict, before, after)
    return finding


HALF = {**CROWDED, "system.cpu.foreign": 0.5, "system.cpu.own": 0.5}
"""Others have half of the CPUs: without them the throughput would be twice as high at most."""


def test_in_quiet_the_cause_is_confirmed(make_step: StepMaker) -> None:
    assert judged(make_step, [QUIET] * 3).status == "confirmed"


def test_a_gain_that_others_can_account_for_confirms_nothing_and_the_reason_is_said(make_step: StepMaker) -> None:
    finding = judged(make_step, [HALF] * 4, factor=1.8)
    assert finding.status == "helped"
    assert finding.mechanism is not None
    assert "others took the CPU in 8 of the 8 steps of its proof that count" in finding.mechanism.because
    assert "may have cost up to 2 times: as much as it gained" in finding.mechanism.because


def test_others_veto_no_gain_that_is_many_times_what_they_can_have_cost(make_step: StepMaker) -> None:
    assert judged(make_step, [HALF] * 4).status == "confirmed"
    assert judged(make_step, [CROWDED] * 4).status == "helped", "they have nearly all of the CPUs: 48 times"


def test_quiet_steps_confirm_it_where_there_are_enough(make_step: StepMaker) -> None:
    assert judged(make_step, [HALF, QUIET, HALF, QUIET], factor=2.5).status == "confirmed"


def test_a_gain_that_is_gone_in_quiet_confirms_nothing(make_step: StepMaker) -> None:
    assert judged(make_step, [CROWDED, QUIET, CROWDED, QUIET], quiet_factor=1.02).status == "suspected"


def test_what_had_no_effect_beside_others_is_not_refuted(make_step: StepMaker) -> None:
    assert judged(make_step, [QUIET] * 3, factor=1.0).status == "refuted"
    assert judged(make_step, [CROWDED] * 3, factor=1.0).status == "suspected"


def test_a_proof_without_neighbours_costs_nothing(make_step: StepMaker) -> None:
    quiet = side(make_step, [100.0], 4.0, [QUIET], "A")
    assert cost(quiet, quiet) == Cost()
