"""Whether two samples were taken in turns, by the times of their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

RARE = 1.64
"""One-sided 5 %: fewer changes from one sample to the other than this many deviations below those of a drawn order
mean that they were not taken in turns."""


def taken_in_turns(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether the order in time of two samples changes from one to the other as often as in a drawn order (the number
    of runs: Wald and Wolfowitz 1940, Annals of Mathematical Statistics 11). Times of both on one clock."""
    order = [side for _, side in sorted([(time, 0) for time in before] + [(time, 1) for time in after])]
    runs = 1 + sum(one != other for one, other in pairwise(order))
    both, product = len(order), 2 * len(before) * len(after)
    expected = product / both + 1
    deviation = math.sqrt(max((expected - 1) * (expected - 2) / (both - 1), 0.0))
    return runs >= expected - RARE * deviation
