"""Which steps count: those that nothing from outside disturbed, where there are enough of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loadframe.model import DISTURBED, Step

FEWEST_SOUND = 2
"""At a level with so many undisturbed steps the others do not count; with fewer all do, for they are all there is."""


def sound(steps: Sequence[Step]) -> list[Step]:
    """The steps of one treatment that count, in their order."""
    undisturbed = Counter(step.level for step in steps if not DISTURBED.intersection(step.flags))
    return [step for step in steps if not DISTURBED.intersection(step.flags) or undisturbed[step.level] < FEWEST_SOUND]
