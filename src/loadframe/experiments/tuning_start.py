"""What the target of a search serves as given, which every trial is held against: a median of blocks of which most
agree, measured once more when a trial looks too good. A stall in few steps would make every trial look many times as
fast."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from loadframe.analysis.selection import select
from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.errors import RunError
from loadframe.experiments.side_by_side import START
from loadframe.experiments.sweep import check_enough, measure_block
from loadframe.model import Step, by_block
from loadframe.progress import counted

START_ROUND = 1
"""The round of its steps."""
ALIKE = 1.5
"""Throughputs agree within this factor of their median; what a stall leaves does not."""
MOST_BLOCKS = 5
"""The number of blocks at a level at which the first ones do not agree: the median bears two stalls then."""
BLOCKS_ANEW = 3
"""Blocks of a start that is measured again."""


def measure_start(book: Bookkeeping) -> None:
    """The start at the study's levels, in the fewest blocks; more of them where these do not agree. TooFewRequests
    where no window decides anything."""
    levels = list(book.bench.study.levels)
    book.progress.phase(f"measuring {counted(len(levels), 'level')} as given", len(levels) * FEWEST_BLOCKS)
    for block in range(1, FEWEST_BLOCKS + 1):
        measure_block(book, START, levels, block, round_number=START_ROUND)
    for block in range(FEWEST_BLOCKS + 1, MOST_BLOCKS + 1):
        steps = select(book.of(START)).steps
        doubtful = [level for level in levels if not _agree(_throughputs(steps, level))]
        if not doubtful or not book.budget.affords(doubtful):
            break
        book.progress.phase(f"as given: {len(doubtful)} levels again, because their blocks do not agree", len(doubtful))
        measure_block(book, START, doubtful, block, round_number=START_ROUND)
    check_enough(book.steps, START)


@dataclass(frozen=True, slots=True)
class Start:
    """What the start serves at the judged levels. steps: of all its blocks that count. reference: the median of its
    throughputs (1/s) at each level."""

    steps: tuple[Step, ...]
    reference: Mapping[float, float]

    @classmethod
    def of(cls, steps: Sequence[Step], levels: Sequence[float]) -> "Start":
        """From the steps at these levels. RunError where at one of them most blocks serve nothing."""
        reference = {level: median(_throughputs(steps, level)) for level in levels}
        for level, throughput in reference.items():
            if throughput <= 0:
                raise RunError(
                    f"as given, no request is served at {level:g}", remedy="Lower the load, or mend the settings."
                )
        return cls(tuple(step for step in steps if step.level in reference), reference)

    def value(self, steps: Sequence[Step]) -> float:
        """Log throughput of steps against the start's, mean over their levels."""
        return fmean(math.log(step.throughput / self.reference[step.level]) for step in steps)

    def blocks(self) -> list[float]:
        """What each of its blocks says of itself: the noise that there is. Those that a stall has spoilt are left out,
        unless no block agrees with the median."""
        blocks = by_block(step for step in self.steps if step.throughput > 0).values()
        agreeing = [steps for steps in blocks if self.agrees(steps)]
        return [self.value(steps) for steps in agreeing or blocks]

    def agrees(self, steps: Sequence[Step]) -> bool:
        """Whether other steps of the start show about the same at every level."""
        return all(_alike(step.throughput, self.reference[step.level]) for step in steps)

    def again(self, book: Bookkeeping) -> "Start":
        """The start after another block of it. Where that does not agree with those before, it is measured again: what
        is measured beside the trials is what they are held against."""
        book.progress.say("a trial looks too good: measuring the start again")
        fresh = self._block(book)
        if self.agrees(fresh):
            return replace(self, steps=(*self.steps, *fresh))
        for _ in range(BLOCKS_ANEW - 1):
            fresh += self._block(book)
        return Start.of(fresh, tuple(self.reference))

    def _block(self, book: Bookkeeping) -> list[Step]:
        block = 1 + max(by_block(book.of(START)))
        measure_block(book, START, tuple(self.reference), block, round_number=START_ROUND)
        mine = by_block(book.of(START))[block]
        return list({step.level: step for step in mine}.values())  # of one that was disturbed its repetition


def _throughputs(steps: Sequence[Step], level: float) -> list[float]:
    return [step.throughput for step in steps if step.level == level]


def _agree(throughputs: Sequence[float]) -> bool:
    middle = median(throughputs or [0.0])  # of a level for which the budget had no time
    return 2 * sum(_alike(each, middle) for each in throughputs) > len(throughputs)


def _alike(one: float, other: float) -> bool:
    return one <= ALIKE * other and other <= ALIKE * one
