"""What cannot be told of a service from outside, said where it would matter."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from loadframe.diagnosis.service_signatures import GC_SAMPLED
from loadframe.model import RuledOut, Step

COLLECTING = "runtime.garbage_collection"
TOLD_BY = ("target.runtime.gc_share", "target.runtime.gc_cpu_share", GC_SAMPLED)
COMPUTES = ("target.cpu.hottest_thread", "target.saturation")
LIMITS = 0.9
"""Of a thread, or of the CPUs that it may use: what a collector takes of that, requests do not have."""


def collector(steps: Sequence[Step]) -> tuple[RuledOut, ...]:
    """That a collector of garbage cannot be judged, where the target computes all the time at its highest level and
    nothing tells what part of that a collector takes."""
    highest = max((step.level for step in steps), default=0.0)
    here = [step.metrics for step in steps if step.level == highest]
    used = max((fmean(metrics.get(name, 0.0) for metrics in here) for name in COMPUTES), default=0.0) if here else 0.0
    if used < LIMITS or any(name in step.metrics for step in steps for name in TOLD_BY):
        return ()
    because = (
        "not seen from outside: if its runtime collects garbage, expose the time of its collector (target.metrics: "
        "nodejs_gc_duration_seconds, go_cpu_classes_gc_total_cpu_seconds_total, ...), or keep its symbols and let perf "
        "sample it"
    )
    return (RuledOut(COLLECTING, because),)
