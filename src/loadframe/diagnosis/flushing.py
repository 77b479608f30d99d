"""Requests of which several share a flush of the disk: too few flushes for each request to wait for one, and those in
service wait for them most of the time all the same.

Little's law on what is in service: of n at a time, d threads are in a flush on average, which is d / n of the time of
each. A lock or a pool that is held meanwhile is full for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from loadframe.analysis.in_service import InService
from loadframe.knowledge.signature import DISK_IDLE, Condition
from loadframe.model import Evidence, Finding, LoadInterval, Step

FLUSHES = "disk.fsync"
MOST_OF_THE_TIME = 0.5
"""Of a request's time in service, in the disk: without it twice as many would be served."""
SCORE = 0.55
"""It says what the number in service waits for: before that number."""
IN_DISK = "target.waits.disk"
FLUSHED = Condition(
    "system.disk.flushes_per_request", ">=", 0.02, "one cache flush for at most fifty requests, our choice"
)
WRITTEN = Condition(
    "target.io.write_bytes", ">=", 1.0, "/proc/PID/io: its processes write what is flushed", per_request=True
)
READS = Condition(
    "target.io.read_bytes", ">=", 512.0, "/proc/PID/io: its processes read from the disk", per_request=True
)


def waits_for_flushes(served: InService, flat: Sequence[Step], reached_at: LoadInterval | None) -> Finding | None:
    """That the requests in service wait for flushes most of the time, from the steps of the plateau; None where they do
    not, where reads may be what they wait for, or where it was not measured."""
    in_disk, flushed, written = (_mean(flat, one) for one in (IN_DISK, FLUSHED.metric, WRITTEN.metric))
    reads, working = _mean(flat, READS.metric), _mean(flat, DISK_IDLE.metric)
    if in_disk is None or flushed is None or written is None or reads is None:
        return None
    per_s = fmean(step.throughput for step in flat)
    if (
        in_disk < MOST_OF_THE_TIME * served.value
        or not FLUSHED.holds(flushed)
        or not WRITTEN.holds(written / per_s)
        or READS.holds(reads / per_s)
        or (working is not None and DISK_IDLE.holds(working))
    ):
        return None
    levels = sorted({step.level for step in flat})
    where = f"on the plateau, at {levels[0]:g} to {levels[-1]:g}"
    share = min(1.0, in_disk / served.value)
    return Finding(
        id=FLUSHES,
        status="suspected",
        title=f"requests wait for flushes of the disk {100 * share:.0f} % of their time in service",
        reached_at=reached_at,
        evidence=(
            Evidence(FLUSHED.metric, flushed, ">=", FLUSHED.threshold, where, FLUSHED.source),
            Evidence(
                IN_DISK, in_disk, ">=", MOST_OF_THE_TIME * served.value, where, "of those in service (Little's law)"
            ),
        ),
        ruled_out=(),
        score=SCORE,
        explanation="Several requests share a flush, and those in service wait for it: all others wait for these. "
        "Fewer flushes, or none within what a request holds meanwhile, would let more be served.",
    )


def _mean(steps: Sequence[Step], metric: str) -> float | None:
    values = [step.metrics[metric] for step in steps if metric in step.metrics]
    return fmean(values) if values and len(values) == len(steps) else None
