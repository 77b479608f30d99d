"""Whether a proof tells of the target where others took the CPU meanwhile.

Both sides of a proof have the same neighbours, so the gain is proved; but of which cause it cured the target is not: it
may only need less of what the neighbours leave. What confirms or refutes a cause is then held against a quiet control:
the steps of the same proof in which no other process took the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from loadframe.analysis import student
from loadframe.diagnosis.signatures import is_crowded
from loadframe.model import Step

FEWEST_QUIET = 2
"""Quiet steps of each side at each level: one alone has no spread."""
CONFIDENCE = 0.95


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
