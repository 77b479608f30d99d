"""What cannot be told of a service from outside, said where it would matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from loadframe.diagnosis.signatures import GC_SAMPLED
from loadframe.model import Finding, RuledOut, Step

COLLECTING = "runtime.garbage_collection"
TOLD_BY = ("target.runtime.gc_share", "target.runtime.gc_cpu_share", GC_SAMPLED)
FAILING = "lock.busy_errors"
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
        "it cannot be seen from outside: if its runtime collects garbage, expose the time of its collector "
        "(target.metrics: nodejs_gc_duration_seconds, go_cpu_classes_gc_total_cpu_seconds_total, ...), or keep its "
        "symbols and let perf sample it"
    )
    return (RuledOut(COLLECTING, because, judged=False),)


def failures(findings: Sequence[Finding], served: Sequence[str]) -> tuple[Finding, ...]:
    """The same findings of a service, in which that requests fail speaks of no lock: only a server whose locks are
    known fails for those. It is no second cause beside one of `served`, whose requests beyond a number fail."""
    if findings and findings[0].id in served:
        return tuple(finding for finding in findings if finding.id != FAILING)
    return tuple(
        replace(
            finding,
            title="requests fail, and why is not seen from outside",
            explanation="The service answers that it failed; its log and its answers say why.",
        )
        if finding.id == FAILING
        else finding
        for finding in findings
    )
