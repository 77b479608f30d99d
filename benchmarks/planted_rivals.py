"""Rules of one line on the same measurements as `investigate`: what a diagnosis must beat to be worth its code.

busy        CPUs that are used up are the cause, else none is named
a pool      the same; otherwise, where throughput is flat, it is a pool (service.parallelism)
first knob  the same; otherwise, where throughput is flat, raise the first declared setting

These are for services and MySQL Clusters. Of a MariaDB or MySQL there are others, on what the server
counts at the highest level:

the pool    where the CPUs are not used up, the buffer pool is too small: what advice on these servers begins with
the tuner   the first of MySQLTuner's thresholds that is broken; that of the redo log is ours, after its advice
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan
from statistics import median
from typing import Any

from loadframe.model import Curve, Step

BUSY = 0.9
"""Share of the machine's CPUs."""
FLAT = 1.25
"""Times the throughput, from the last but one level to the last, which is twice as high."""
SATURATED, PARALLELISM = "cpu.saturated", "service.parallelism"


def is_busy(curve: Curve, steps: Sequence[Step]) -> bool:
    """Whether the machine's CPUs are used up at the highest level, by what the study runs: not by others."""
    at_most = [step.metrics for step in steps if step.level == curve.points[-1].load]
    shares = [each.get("system.cpu.utilization", 0.0) - each.get("system.cpu.foreign", 0.0) for each in at_most]
    return bool(shares) and median(shares) >= BUSY


def is_flat(curve: Curve) -> bool:
    """Whether the highest level gives little more than the one before it."""
    before, last = curve.points[-2:]
    return last.throughput < FLAT * before.throughput


def busy(planted: Any, curve: Curve, steps: Sequence[Step]) -> bool:
    """See above; whether that is right."""
    return SATURATED in planted.first if is_busy(curve, steps) else not planted.first


def a_pool(planted: Any, curve: Curve, steps: Sequence[Step]) -> bool:
    """See above; whether that is right."""
    if is_busy(curve, steps) or not is_flat(curve):
        return busy(planted, curve, steps)
    return PARALLELISM in planted.first


def first_knob(planted: Any, curve: Curve, steps: Sequence[Step]) -> bool:
    """See above; whether it names a setting that lifts the cause. Where none does, nothing may be raised."""
    declared = list(planted.study.target.setting)
    if is_busy(curve, steps) or not is_flat(curve) or not declared:
        return busy(planted, curve, steps)
    return declared[0] in planted.settings


RIVALLED = ("service", "ndb", "ndb-sql")
"""Kinds for the first three rules."""
FAMILY = ("mariadb", "mysql")
USED, HITS, EFFICIENCY, OF_POOL = 0.85, 0.20, 0.90, 0.20
"""MySQLTuner's: connections used at once, hits of the table cache, pages found in the buffer pool. The last, redo log
to pool, is ours: a lower end of its advice, which was not looked up."""


def the_pool(planted: Any, curve: Curve, steps: Sequence[Step]) -> bool:
    """See above; whether that is right."""
    if is_busy(curve, steps):
        return SATURATED in planted.first
    return f"{planted.study.target.kind}.buffer_pool" in planted.first


def the_tuner(planted: Any, curve: Curve, steps: Sequence[Step]) -> bool:
    """See above; whether that is right. Where no threshold is broken, nothing may be planted."""
    kind = planted.study.target.kind
    named = tuned(metrics_at(curve.points[-1].load, steps), kind)
    return named in planted.first if named else not planted.first


def metrics_at(level: float, steps: Sequence[Step]) -> dict[str, float]:
    """The median of each metric over the steps of a level that have it."""
    each = [step.metrics for step in steps if step.level == level]
    return {name: median(one[name] for one in each if name in one) for name in {name for one in each for name in one}}


def tuned(metrics: Mapping[str, float], kind: str) -> str:
    """The id of the finding that MySQLTuner's first broken threshold is about; none without one. What was not measured
    breaks none."""

    def of(name: str) -> float:
        return metrics.get(f"{kind}.{name}", nan)

    looked_up = of("table_cache_hits") + of("table_cache_misses")
    broken = {
        "max_connections": of("max_used_connections") > USED * of("max_connections"),
        "table_open_cache": of("table_cache_hits") < HITS * looked_up,
        "buffer_pool": of("pool_miss_share") > 1 - EFFICIENCY,
        "redo_log": of("checkpoint_max_age") < OF_POOL * of("pool_pages") * of("pool_page_bytes"),
    }
    return next((f"{kind}.{name}" for name, true in broken.items() if true), "")


Rule = Callable[[Any, Curve, Sequence[Step]], bool]
RULES: dict[str, Rule] = {"busy": busy, "a pool": a_pool, "first knob": first_knob}
RULES_OF_FAMILY: dict[str, Rule] = {"busy": busy, "the pool": the_pool, "the tuner": the_tuner}


def rules_of(kind: str) -> dict[str, Rule]:
    """Those for a kind of target; none for most."""
    return RULES if kind in RIVALLED else RULES_OF_FAMILY if kind in FAMILY else {}


def scored(planted: Any, curve: Curve, steps: Sequence[Step]) -> dict[str, bool]:
    """Which of them are right. steps: of the run; only those of the curve count."""
    of_curve = [step for step in steps if step.purpose == "curve" and step.treatment == curve.treatment]
    return {name: rule(planted, curve, of_curve) for name, rule in rules_of(planted.study.target.kind).items()}
