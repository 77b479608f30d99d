"""Which steps count: those whose warm-up had ended and that nothing disturbed, where there are enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from loadframe.analysis.disturbance import disturbed, least_disturbed
from loadframe.model import TOO_FEW, UNSETTLED, Step

FEWEST_SETTLED = 2
"""The number of settled steps at a level from which on the others do not count; with fewer all do, for they are all
there is. The same before that with those that were given a longer warm-up."""


def undisturbed(steps: Sequence[Step]) -> list[Step]:
    """The steps of any states that count, in their order. What follows the state and the load disturbs none of them
    (disturbance.py)."""
    free = Counter((step.treatment, step.level) for step in steps if UNSETTLED not in step.flags)
    settled = [
        step for step in steps if UNSETTLED not in step.flags or free[step.treatment, step.level] < FEWEST_SETTLED
    ]
    long = Counter((step.treatment, step.level) for step in settled if _lengthened(step))
    settled = [step for step in settled if _lengthened(step) or long[step.treatment, step.level] < FEWEST_SETTLED]
    out = {id(step) for step in disturbed(settled)}
    return [step for step in settled if id(step) not in out]


def one_of_each_block(steps: Iterable[Step]) -> list[Step]:
    """Of the steps that one block has of a state at a load the one that counts: one in which enough was done, whose
    warm-up had ended, with the longest one, and the last of those that are as quiet as the quietest."""
    taken: dict[tuple[str, float, object], list[Step]] = {}
    for step in steps:
        if step.block is not None:
            taken.setdefault((step.treatment, step.level, (step.purpose, step.round, step.block)), []).append(step)
    return [least_disturbed(_settled(each)) for each in taken.values()]


def _settled(steps: list[Step]) -> list[Step]:
    """Those with the longest warm-up of those in which enough was done and whose warm-up had ended; where none is that,
    all of them."""
    for flag in (TOO_FEW, UNSETTLED):
        steps = [step for step in steps if flag not in step.flags] or steps
    return [step for step in steps if _lengthened(step)] or steps


def _lengthened(step: Step) -> bool:
    """Whether its warm-up is longer than its window: none is cut so long by itself."""
    return step.window_start_s - step.started_s > step.window_end_s - step.window_start_s
