"""Rules of one line on the same measurements as `investigate`: what a diagnosis must beat to be worth its code.

busy        CPUs that are used up are the cause, else none is named
a pool      the same; otherwise, where throughput is flat, it is a pool (service.parallelism)
first knob  the same; otherwise, where throughput is flat, raise the first declared setting
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


RULES: dict[str, Callable[[Any, Curve, Sequence[Step]], bool]] = {
    "busy": busy,
    "a pool": a_pool,
    "first knob": first_knob,
}


def scored(planted: Any, curve: Curve, steps: Sequence[Step]) -> dict[str, bool]:
    """Which of them are right. steps: of the run; only those of the curve count."""
    of_curve = [step for step in steps if step.purpose == "curve" and step.treatment == curve.treatment]
    return {name: rule(planted, curve, of_curve) for name, rule in RULES.items()}
