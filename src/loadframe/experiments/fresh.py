"""A kept gain measured once more, in blocks that decided nothing: those by which it was kept overstate it, near what
can be proved at all by 1.65 to 3 times. How many follow is settled before the first of them."""

import math
from collections.abc import Sequence
from statistics import stdev

from loadframe.analysis import student
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.experiments.proof import orders, take_block
from loadframe.model import Step, Verdict

BLOCKS = 3
"""The fewest: two have one degree of freedom, and their interval says next to nothing."""
USUAL = 0.95
NARROW = 0.25
"""An interval that is a quarter of the change to either side is enough to tell 8 from 5."""
PROVED = 0.5
"""An interval of half the gain to either side leaves out 1 also where chance takes a third of it away."""


def wanted(known: Sequence[Verdict], most: int) -> int:
    """How many blocks, BLOCKS to `most`, should measure a gain of which these verdicts are the factors: as many as make
    the interval narrow against it, going by the noise of their blocks. A proof ends early where that is small by
    chance; so the gain must be proved in blocks as loud as either state showed by itself, too. Where one side served
    nothing, at least as many as showed that."""
    gain = abs(sum(math.log(each.ratio) for each in known))
    noise = max((stdev(map(math.log, each.block_ratios)) for each in known if each.block_ratios), default=0.0)
    loud = max(math.log(each.floor[1]) if each.floor else 0.0 for each in known)
    fewest = max([BLOCKS, *(each.blocks for each in known if not each.has_ratio)])
    for blocks in range(fewest, most):
        each = student.quantile((1 + USUAL) / 2, blocks - 1) / math.sqrt(blocks)
        if each * noise <= NARROW * gain and each * loud <= PROVED * gain:
            return blocks
    return max(fewest, most)


def measure_again(
    book: Bookkeeping,
    before: str,
    after: str,
    levels: Sequence[float],
    blocks: int,
    *,
    round_number: int,
    done: int = 0,
    reserve_s: float = 0.0,
) -> list[Step]:
    """Both treatments in `blocks` further blocks, or in as many as the budget has room for beside a reserve; none where
    that is less than BLOCKS. done: the number of blocks that they have in this round."""
    per_block = [*levels, *levels]
    while blocks >= BLOCKS and not book.budget.affords(blocks * per_block, reserve_s):
        blocks -= 1
    if blocks < BLOCKS:
        return []
    book.progress.phase(f"measuring {book.against(after, before)} again, in fresh blocks", blocks * len(per_block))
    taken: list[Step] = []
    drawn = orders(book.random, (before, after), levels)
    for block, order in zip(range(done + 1, done + blocks + 1), drawn, strict=False):
        if block > done + BLOCKS and not book.budget.affords(per_block, reserve_s):
            break
        taken += take_block(book, order, round_number=round_number, block=block)
    return taken
