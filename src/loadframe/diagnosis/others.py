"""A target whose CPU others take: whether a cause of its own explains more, and what a proof is worth
(docs/mathematics.md, "Other programs")."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadframe.analysis.disturbance import apart_from_effects
from loadframe.analysis.selection import select
from loadframe.diagnosis.growing import GROWTH
from loadframe.diagnosis.signatures import GC_SAMPLED, PROGRAMS, THROTTLED, is_seen
from loadframe.diagnosis.sizes import SERVED_AT_ONCE
from loadframe.model import OTHERS, Finding, RuledOut, Steps, at_highest

MOST = 0.99
"""Share of the CPUs above which nothing is left to extrapolate from."""
COLLECTING = "runtime.garbage_collection"
LITTLE = 0.1
"""Share of the time of requests in service that does not end the throughput."""
AT_THE_DISK = (
    "memory.swap",
    "memory.mmap_page_faults",
    "disk.saturated",
    "disk.fsync",
    *(f"cage.{name}" for name in THROTTLED),
)
"""Causes whose requests are in uninterruptible sleep."""
SCORE = 0.6
LONGER = 2.0
"""With this many times as many threads in wait for the disk as for a CPU, the disk is most of what they wait for."""


def outweighs(finding: Finding, metrics: Mapping[str, float]) -> bool:
    """Whether a cause of the target's own explains more than others on the CPUs; False if unknown. A cost that has
    grown g times needs 1 / g of the CPU time; of n requests at a time, a taken CPU delays one."""
    cause = finding.id
    own = metrics.get("system.cpu.own")
    if cause == COLLECTING:
        collectors = metrics.get("target.runtime.gc_cpu_share")
        return own is not None and collectors is not None and 1.0 - collectors < own
    if cause in GROWTH:
        grown = _evident(finding, "workload.cost_growth")
        return own is not None and grown is not None and grown * own > 1.0
    if cause in SERVED_AT_ONCE:
        served, taken = _evident(finding, "workload.in_service"), taken_cpus(metrics)
        return served is not None and taken is not None and taken < LITTLE * served
    disk, cpu = metrics.get("target.waits.disk"), metrics.get("target.waits.runnable")
    return cause in AT_THE_DISK and disk is not None and cpu is not None and disk > LONGER * cpu


def _evident(finding: Finding, metric: str) -> float | None:
    return next((evidence.value for evidence in finding.evidence if evidence.metric == metric), None)


def taken_cpus(metrics: Mapping[str, float]) -> float | None:
    """CPUs that the study's threads would have used without others: of foreign use at most as much as they wait for, of
    stolen time their share of what runs. None if unknown."""
    cpus, busy = metrics.get("system.cpu.count"), metrics.get("system.cpu.utilization")
    foreign, steal = metrics.get("system.cpu.foreign"), metrics.get("system.cpu.steal")
    if cpus is None or foreign is None or steal is None:
        return None
    own = metrics.get("system.cpu.own")
    share = 1.0 if own is None or not busy else min(1.0, own / busy)
    return min(cpus * foreign, waiting(metrics)) + cpus * steal * share


def waiting(metrics: Mapping[str, float], parts: Sequence[str] = ("target", "driver")) -> float:
    """Number of the study's threads that wait for a CPU (schedstat), without the time in which the quota had run out
    (sched-bwc: a throttled thread stays runnable); infinite where not measured."""
    waits = [
        metrics[f"{part}.cpu.run_delay"] * (1.0 - (throttled_share(metrics, part) or 0.0))
        for part in parts
        if f"{part}.cpu.run_delay" in metrics
    ]
    return sum(waits) if waits else math.inf


def throttled_share(
    metrics: Mapping[str, float], component: str, groups: Sequence[str] = ("cage", "cgroup")
) -> float | None:
    """Of the periods of its quotas, those in which one ran out. None without any."""
    names = (f"{component}.{group}.cpu.throttled_share" for group in groups)
    return max((metrics[name] for name in names if name in metrics), default=None)


def crowding(steps: Steps, served: float, where: str) -> Finding | None:
    """Others take the CPU, for a known number of requests in service: those that queue for these need no CPU yet, and
    would hide the wait. None where it does not hold or was not measured."""
    wait = "workload.cpu_wait"
    waits = [waiting(step.metrics) for step in steps if "target.cpu.run_delay" in step.metrics]
    if not waits:
        return None
    seen = {wait: fmean(waits) / max(1.0, served)}  # share of their time that those in service wait for a CPU
    for condition in (*PROGRAMS.present, *PROGRAMS.absent):
        values = [step.metrics[condition.metric] for step in steps if condition.metric in step.metrics]
        if condition.metric != wait and values:
            seen[condition.metric] = fmean(values)
    met = {condition.met(seen) for condition in PROGRAMS.present}
    if False in met or any(condition.met(seen) for condition in PROGRAMS.absent):
        return None
    return Finding(
        id=PROGRAMS.id,
        title=PROGRAMS.title,
        reached_at=None,
        evidence=tuple(condition.evidence(seen[condition.metric], where) for condition in PROGRAMS.present),
        score=SCORE,
        explanation=PROGRAMS.explanation,
    )


TAKEN = ("system.cpu.foreign", "system.cpu.steal")


@dataclass(frozen=True, slots=True)
class Cost:
    """The most that others on the CPU can have cost each side of a proof, in logarithms of throughput: 1 / (1 - a) for
    their share a of the CPUs. words: in how many steps."""

    before: float = 0.0
    after: float = 0.0
    words: str = ""


def cost(before: Steps, after: Steps) -> Cost:
    """From counting steps; effects of the target's own work are no cost of others."""
    run = [*before, *after]
    sides = []
    for side in (before, after):
        judged = [step.metrics for step in apart_from_effects(select(side).steps, run)]
        sides.append([sum(row.get(name, 0.0) for name in TAKEN) if is_seen(OTHERS, row) else 0.0 for row in judged])
    shares = [share for side in sides for share in side]
    crowded = sum(map(bool, shares))
    if not crowded:
        return Cost()
    first, second = (fmean(-math.log1p(-min(MOST, share)) for share in side or [0.0]) for side in sides)
    return Cost(first, second, f"others took the CPU in {crowded} of the {len(shares)} steps of its proof that count")


COLLECTOR_METRICS = ("target.runtime.gc_share", "target.runtime.gc_cpu_share", GC_SAMPLED)
FAILING = "workload.failing"
COMPUTES = ("target.cpu.hottest_thread", "target.saturation")
LIMITS = 0.9
"""Used share of a thread, or of its CPUs, from which on a collector takes CPU time from requests."""


def collector(steps: Steps) -> tuple[RuledOut, ...]:
    """It cannot be judged where the target is busy at its highest level, and no metric reports it."""
    here = [step.metrics for step in at_highest(steps)] or [{}]
    used = max(fmean(metrics.get(name, 0.0) for metrics in here) for name in COMPUTES)
    if used < LIMITS or any(name in step.metrics for step in steps for name in COLLECTOR_METRICS):
        return ()
    because = (
        "it cannot be seen from outside: if its runtime collects garbage, expose the time of its collector "
        "(target.metrics: nodejs_gc_duration_seconds, go_cpu_classes_gc_total_cpu_seconds_total, ...), or keep its "
        "symbols and let perf sample it"
    )
    return (RuledOut(COLLECTING, because, judged=False),)


def failures(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, without failing requests where these are those beyond the number served at a time."""
    if findings and findings[0].id in SERVED_AT_ONCE:
        return tuple(finding for finding in findings if finding.id != FAILING)
    return tuple(findings)
