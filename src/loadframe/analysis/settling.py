"""At which levels the warm-up had not ended: one step may hide in its noise what all steps of a level show together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loadframe.analysis.warmup import CLIMBS, straight
from loadframe.analysis.window import BATCHES
from loadframe.model import UNSETTLED, Step

MOST_UNSETTLED = 0.5
"""A level of which more steps than this share carry the flag has not settled."""


LIKELY = 0.95
"""Enough to look again, not to say it."""


def unsettled(steps: Sequence[Step], probability: float = CLIMBS) -> tuple[float, ...]:
    """The levels, rising, at which most steps of one treatment had not settled, or their throughput climbs within their
    windows, taken together (one straight line through the slices of all of them)."""
    return tuple(
        level
        for level in sorted({step.level for step in steps})
        if _flagged([step for step in steps if step.level == level]) or climbs(steps, level, probability)
    )


def _flagged(steps: Sequence[Step]) -> bool:
    return sum(UNSETTLED in step.flags for step in steps) > MOST_UNSETTLED * len(steps)


def climbs(steps: Sequence[Step], level: float, probability: float) -> bool:
    """Whether throughput climbs within the windows of a level's steps. Not known, so False, of steps of which nothing
    was cut off: how a cache fills, or a work's beginning, belongs to what they measure."""
    shares = [
        np.array(step.batches) / step.throughput
        for step in steps
        if step.level == level
        and step.window_start_s > step.started_s
        and len(step.batches) == BATCHES
        and step.throughput > 0
    ]
    return bool(shares) and straight(np.stack(shares)).rises(probability)
