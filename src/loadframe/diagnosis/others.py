"""What is known of a target where others take the CPU: whether a cause of its own explains more, and whether a proof
tells of it.

A cause of its own comes before the others where what it costs is known and is more than they can have cost.

Both sides of a proof have the same neighbours, so the gain is proved; but of which cause it cured the target is not: it
may only need less of what the neighbours leave. What confirms or refutes a cause is then held against a quiet control:
the steps of the same proof in which no other process took the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from loadframe.analysis import student
from loadframe.diagnosis.signatures import is_crowded
from loadframe.model import Step

FEWEST_QUIET = 2
"""Quiet steps of each side at each level: one alone has no spread."""
CONFIDENCE = 0.95
COLLECTING = "runtime.garbage_collection"
AT_THE_DISK = frozenset(
    {
        *("memory.swap", "memory.mmap_page_faults", "disk.saturated", "disk.fsync"),
        *("cage.read_bytes", "cage.write_bytes", "cage.reads", "cage.writes"),
    }
)
"""Causes whose requests are in uninterruptible sleep."""
LONGER = 2.0
"""Times as many threads that wait for the disk as for a CPU: then the disk is most of what they wait for."""


def outweighs(cause: str, metrics: Mapping[str, float]) -> bool:
    """Whether a cause of the target itself explains more of its throughput than what others take of the CPUs.

    Without the others the study had 1 / u times the CPU time at most, with its share u of all CPUs (utilisation law:
    X = U / D); without a collector of a share c of the target's CPU time it needs 1 - c of it. False where that is not
    known."""
    if cause == COLLECTING:
        own, collectors = metrics.get("system.cpu.own"), metrics.get("target.runtime.gc_cpu_share")
        return own is not None and collectors is not None and 1.0 - collectors < own
    disk, cpu = metrics.get("target.waits.disk"), metrics.get("target.waits.runnable")
    return cause in AT_THE_DISK and disk is not None and cpu is not None and disk > LONGER * cpu


def uncontrolled(before: Sequence[Step], after: Sequence[Step], least: float) -> str:
    """Why a proof with these two sides confirms nothing; "" where it may: where no other process took the CPU, or where
    enough undisturbed steps show that the throughput rises `least` times at each level (0: whatever it does)."""
    crowded = sum(is_crowded(step.metrics) for step in (*before, *after))
    if not crowded:
        return ""
    said = f"others took the CPU in {crowded} of the {len(before) + len(after)} steps of its proof"
    quiet = [
        [
            [step.throughput for step in side if step.level == level and not is_crowded(step.metrics)]
            for side in (before, after)
        ]
        for level in sorted({step.level for step in (*before, *after)})
    ]
    if any(len(side) < FEWEST_QUIET for sides in quiet for side in sides):
        return f"{said}, and too few undisturbed steps are left to compare with"
    if least > 0 and not all(_rises(one, two, least) for one, two in quiet):
        return f"{said}, and in the undisturbed steps the throughput does not rise by as much at every level"
    return ""


def _rises(before: Sequence[float], after: Sequence[float], least: float) -> bool:
    """Whether the ratio is at least that, by Student's t on the logarithms with one spread for both, one-sided."""
    if min(*before, *after) <= 0:
        return False
    one, two = ([math.log(value) for value in side] for side in (before, after))
    freedom = len(one) + len(two) - 2
    pooled = ((len(one) - 1) * variance(one) + (len(two) - 1) * variance(two)) / freedom
    error = math.sqrt(pooled * (1 / len(one) + 1 / len(two)))
    return fmean(two) - fmean(one) - float(student.quantile(CONFIDENCE, freedom)) * error >= math.log(least)
