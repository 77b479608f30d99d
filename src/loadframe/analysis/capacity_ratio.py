"""Two capacities on one host: how many times more, with bounds that allow for all that is known to err.

A search brackets a capacity: shown to meet at `low`, to miss at `high`. A capacity also differs from one search to the
next, which one bracket does not show; as given it was searched several times, so the bounds of another one are widened
by the factor by which those searches differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadframe.model import Capacity
from loadframe.model.capacity import CapacityBeside
from loadframe.model.verdict import decide


def beside(name: str, host: str, start: Sequence[Capacity], other: Capacity) -> CapacityBeside:
    """Another capacity, against that of these searches with equal settings, which have all been found. ValueError for
    none, or one that was not."""
    loads = [each.load for each in start if each.load]
    lows = [each.low for each in start if each.low]
    highs = [each.high for each in start if each.high]
    if not start or not len(loads) == len(lows) == len(highs) == len(start):
        raise ValueError("a capacity is held against searches that have all found theirs")
    spread = max(loads) / min(loads)
    low = None if other.low is None else other.low / spread / max(highs)
    high = None if other.high is None else other.high * spread / min(lows)
    middle = sorted(loads)[len(loads) // 2]
    ratio = other.load / middle if other.load and other.end in ("found", "undecided") else None
    decision = decide(low or 0.0, math.inf if high is None else high)
    return CapacityBeside(name, host, other.end, other.load, other.low, other.high, ratio, low, high, decision)
