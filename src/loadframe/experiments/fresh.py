"""A kept gain measured again, in blocks that decided nothing: the deciding ones overstate it by 1.65 to 3 times near
the smallest provable gain. And the response times at the lowest level (diagnosis/mechanism.py)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from loadframe.analysis import student
from loadframe.analysis.selection import select
from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.diagnosis.mechanism import AT_ONCE, CONFIDENCE
from loadframe.experiments.proof import interleaved
from loadframe.model import Step, Steps, Verdict, by_block, of_treatment

BLOCKS = 3
"""The fewest: the interval of two, with one degree of freedom, says next to nothing."""
USUAL = 0.95
NARROW = 0.25
"""Half-width as a share of the change; a quarter is enough to distinguish 8 from 5."""
PROVED = 0.5
"""Half-width as a share of the gain; half leaves out 1 even where chance takes a third of the gain away."""


def wanted(known: Sequence[Verdict], most: int) -> int:
    """The number of blocks, BLOCKS to `most`, for the product of these verdicts: enough to narrow the interval at their
    noise, and to prove the gain in blocks as noisy as either state alone. Where one side served nothing, at least as
    many as showed that."""
    gain = abs(sum(math.log(verdict.ratio) for verdict in known))
    noise = max((stdev(map(math.log, verdict.block_ratios)) for verdict in known if verdict.block_ratios), default=0.0)
    loud = max(math.log(verdict.floor[1]) if verdict.floor else 0.0 for verdict in known)
    fewest = max([BLOCKS, *(verdict.blocks for verdict in known if not verdict.has_ratio)])
    for blocks in range(fewest, most):
        width = student.quantile((1 + USUAL) / 2, blocks - 1) / math.sqrt(blocks)
        if width * noise <= NARROW * gain and width * loud <= PROVED * gain:
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
    """Measure both in up to `blocks` further blocks, as the budget allows besides a reserve; none if fewer than BLOCKS.
    done: blocks that both have in this round."""
    per_block = [*levels, *levels]
    while blocks >= BLOCKS and not book.budget.affords(blocks * per_block, reserve_s):
        blocks -= 1
    if blocks < BLOCKS:
        return []
    book.progress.phase(f"measuring {book.against(after, before)} again, in fresh blocks", blocks * len(per_block))
    numbers = range(done + 1, done + blocks + 1)
    return interleaved(book, (before, after), levels, numbers, BLOCKS, reserve_s, round_number=round_number)


@dataclass(frozen=True, slots=True)
class Unloaded:
    """responses_s: mean response time (s) by treatment. longer, half: the logarithm of after / before, and half of its
    one-sided interval; infinite for one block."""

    steps: tuple[Step, ...] = ()
    responses_s: Mapping[str, float] = field(default_factory=dict)
    longer: float = 0.0
    half: float = math.inf

    def shows_more(self, gain: Verdict) -> bool:
        """Whether the number of requests in service, gain times change of the response time, rose beyond the error of
        both: else requests may only have become faster."""
        known = math.hypot(math.log(gain.ratio / gain.low), self.half) if gain.low > 0 else math.inf
        return math.log(gain.ratio) + self.longer - known > math.log(AT_ONCE)


def measure_unloaded(book: Bookkeeping, before: str, after: str, *, round_number: int) -> Unloaded:
    """Measure both at the lowest level, in the study's fewest blocks, or two. The steps count for the curves."""
    level = book.bench.study.levels[0]
    wanted = max(FEWEST_BLOCKS, book.bench.study.measure.blocks.min)
    blocks = wanted if book.budget.affords(2 * wanted * [level]) else FEWEST_BLOCKS
    book.progress.phase(f"{book.against(after, before)} at {level:g}, where no request waits for another", 2 * blocks)
    numbers = range(1, blocks + 1)
    taken = interleaved(book, (before, after), [level], numbers, blocks, round_number=round_number, purpose="curve")
    return of_steps(taken, before, after)


def of_steps(taken: Steps, before: str, after: str) -> Unloaded:
    timed = [step for step in taken if step.latency.mean_ms > 0]
    counted = {name: select(of_treatment(timed, name)).steps for name in (before, after)}
    sides = {name: [step.latency.mean_ms / 1000 for step in steps] for name, steps in counted.items()}
    if not all(sides.values()):
        return Unloaded(tuple(taken))
    responses_s = {name: fmean(times_s) for name, times_s in sides.items()}
    longer = math.log(responses_s[after] / responses_s[before])
    pairs = []
    for block in by_block([*counted[before], *counted[after]]).values():
        first, second = ([step.latency.mean_ms for step in of_treatment(block, name)] for name in (before, after))
        pairs += [math.log(fmean(second) / fmean(first))] if first and second else []
    if len(pairs) >= FEWEST_BLOCKS:
        half = float(student.quantile(CONFIDENCE, len(pairs) - 1)) * stdev(pairs) / math.sqrt(len(pairs))
    else:
        logs = [[math.log(time_s) for time_s in side] for side in sides.values()]
        freedom = sum(map(len, logs)) - len(logs)
        half = math.inf
        if freedom > 0:
            squares = sum((value - fmean(side)) ** 2 for side in logs for value in side)
            variance = squares / freedom * sum(1 / len(side) for side in logs)
            half = float(student.quantile(CONFIDENCE, freedom)) * math.sqrt(variance)
    return Unloaded(tuple(taken), responses_s, longer, half)
