"""Which steps count: those whose warm-up had ended and that nothing from outside disturbed, where there are enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loadframe.model import DISTURBED, UNSETTLED, Step

FEWEST_UNDISTURBED = 2
"""The number of undisturbed steps at a level from which on the others do not count; with fewer all do, for they are all
there is. The same before that with steps whose warm-up had ended, and with those that were given a longer one."""


def undisturbed(steps: Sequence[Step]) -> list[Step]:
    """The steps of one treatment that count, in their order."""
    settled = _without(steps, frozenset({UNSETTLED}))
    long = Counter(step.level for step in settled if _lengthened(step))
    settled = [step for step in settled if _lengthened(step) or long[step.level] < FEWEST_UNDISTURBED]
    return _without(settled, DISTURBED)


def _lengthened(step: Step) -> bool:
    """Whether its warm-up is longer than its window: none is cut so long by itself."""
    return step.window_start_s - step.started_s > step.window_end_s - step.window_start_s


def _without(steps: Sequence[Step], flags: frozenset[str]) -> list[Step]:
    free = Counter(step.level for step in steps if not flags.intersection(step.flags))
    return [step for step in steps if not flags.intersection(step.flags) or free[step.level] < FEWEST_UNDISTURBED]
