"""States against each other, in interleaved blocks, until the verdict is in."""

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from statistics import fmean, variance

from loadframe.analysis import comparison, student
from loadframe.analysis.comparison import verdict_at_end
from loadframe.analysis.disturbance import widened
from loadframe.analysis.selection import one_of_each_block
from loadframe.analysis.sequential import Plan
from loadframe.analysis.window import FEWEST_REQUESTS
from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Block, Bookkeeping
from loadframe.bench.settling import held, settled
from loadframe.model import (
    Compared,
    Curve,
    Decision,
    LevelRatio,
    OperationTimes,
    Purpose,
    Step,
    StepRequest,
    Steps,
    Verdict,
    by_block,
    by_level,
    of_treatment,
)
from loadframe.progress import counted
from loadframe.units import show

MOST_LEVELS = 2
MIRRORED = 2
Samples = dict[float, list[float]]
"""Throughputs by level, in the order of their blocks."""
Proof = tuple[Compared, list[Step]]
Judge = Callable[..., Verdict]


def judged_levels(curve: Curve, bend: float | None) -> tuple[float, ...]:
    """The levels for a remedy, settled ones if there are any: past the bend (else of all) the highest and the one in
    the middle of the logarithms."""
    levels = [point.load for point in curve.points if point.settled] or [point.load for point in curve.points]
    past = [level for level in levels if bend is None or level > bend] or levels[-1:]
    if len(past) <= MOST_LEVELS:
        return tuple(past)
    middle = math.sqrt(past[0] * past[-1])
    return (min(past[:-1], key=lambda level: abs(math.log(level / middle))), past[-1])


def prove(
    book: Bookkeeping,
    pairs: Sequence[tuple[str, str]],
    levels: Sequence[float],
    *,
    round_number: int | None = None,
    firm_reserve_s: float = 0.0,
    confidence: float = 0.95,
    enough: Callable[[Verdict], bool] = attrgetter("decided"),
) -> list[Proof]:
    """All pairs alternate in the same blocks. A pair takes no further steps when its verdict is `enough`; all end after
    the study's most blocks, or when the budget is used up, but not before two blocks."""
    blocks = book.bench.study.measure.blocks
    treatments = list(dict.fromkeys(name for pair in pairs for name in pair))
    per_block = list(levels) * len(treatments)
    what = " and ".join(book.against(after, before) for before, after in pairs)
    book.progress.phase(f"proving {what} at {counted(len(levels), 'level')}", len(per_block) * blocks.min)
    # Looks that the budget has no room for would only widen the intervals of the others.
    left_s, block_s = book.budget.left_s(), book.budget.cost_s(per_block)
    room = max(min(blocks.min, int(left_s / block_s)), int((left_s - firm_reserve_s) / block_s))
    last = max(FEWEST_BLOCKS, min(blocks.max, room))
    plan = Plan(min(blocks.min, last), last)
    judge = partial(comparison.verdict, plan=plan, confidence=confidence)
    taken: list[Step] = []
    proved: dict[tuple[str, str], Compared] = {}
    waiting = list(pairs)
    for group in in_groups(book, plan.last, orders(book.random, [treatments], levels)):
        asked = {name for pair in waiting for name in pair}
        group = [Block(block.number, tuple(entry for entry in block.order if entry[0] in asked)) for block in group]
        # Before the first planned look nothing may depend on what is seen: it would be one more look.
        early = group[0].number <= plan.first
        kept_s = 0.0 if early else firm_reserve_s
        if proved and not book.budget.affords([level for block in group for _, level in block.order], kept_s):
            break
        taken += book.take_blocks(group, round_number=round_number, purpose="proof")
        if group[-1].number < FEWEST_BLOCKS:
            continue
        proved |= {pair: compared(_of_pair(taken, pair), *pair, judge) for pair in waiting}
        if group[-1].number >= plan.first:
            waiting = [pair for pair in waiting if not enough(proved[pair].verdict)]
        if not waiting:
            break
    assert proved, "a study has at least two blocks"
    return [(proved[pair], _of_pair(taken, pair)) for pair in pairs]


def in_groups(book: Bookkeeping, last: int, drawn: Iterator[list[tuple[str, float]]]) -> Iterator[list[Block]]:
    blocks = (Block(number, tuple(order)) for number, order in zip(range(1, last + 1), drawn, strict=False))
    while group := list(itertools.islice(blocks, book.blocks_at_once)):
        yield group


def _of_pair(steps: Steps, pair: tuple[str, str]) -> list[Step]:
    last = max((step.block or 0 for step in of_treatment(steps, pair[1])), default=0)
    return [step for step in steps if step.treatment in pair and (step.block or 0) <= last]


def compared(steps: Steps, before: str, after: str, judge: Judge = verdict_at_end) -> Compared:
    verdict = verdict_on(steps, before, after, judge)
    return Compared(verdict=verdict, levels=level_ratios(steps, before, after, judge))


def verdict_on(steps: Steps, before: str, after: str, judge: Judge = verdict_at_end) -> Verdict:
    kept = settled(steps)
    verdict = judge(throughputs(kept, before), throughputs(kept, after), grain=grains(kept, before, after))
    return _known(verdict, steps, before, after, judge)


def verdicts_at_each_level(steps: Steps, before: str, after: str, *, error: float) -> tuple[Verdict, ...]:
    """All hold at once with a probability of 1 - error."""
    return tuple(
        _known(verdict, [step for step in steps if step.level in verdict.levels], before, after)
        for verdict in comparison.at_each_level(throughputs(steps, before), throughputs(steps, after), error=error)
    )


def _known(verdict: Verdict, steps: Steps, before: str, after: str, judge: Judge = verdict_at_end) -> Verdict:
    """Widened by what disturbances may have cost; nothing is decided where too little happened."""
    verdict = held(widened(verdict, settled(steps), before, after), steps, before, after)
    return _one_served(verdict, steps, before, after, judge) or verdict


def _one_served(verdict: Verdict, steps: Steps, before: str, after: str, judge: Judge) -> Verdict | None:
    """A verdict without a ratio, where at a level all requests of one side failed in all blocks, and the other side
    served in all. None where that may be chance (of equal states with a share p of failing blocks, n blocks of L levels
    show it with a probability of 2 L (p (1 - p))^n, at most 2 L / 4^n), or another level shows the opposite."""
    levels, rest, reasons = by_level(steps), list[Step](), dict[str, Decision]()
    for level, mine in levels.items():
        first, second = of_treatment(mine, before), of_treatment(mine, after)
        blocks = min(len(first), len(second))
        sentence = f"nothing was served in {blocks} of {blocks} blocks at {level:g}"
        known = 2 * len(levels) * 4.0**-blocks <= 1 - verdict.confidence
        if known and _failed(second) and _served(first):
            reasons[f"{sentence}; before: {_mean(first)}"] = "worse"
        elif known and _failed(first) and _served(second):
            reasons[f"before, {sentence}; after: {_mean(second)}"] = "better"
        elif blocks:
            rest += [*first, *second]
    if not reasons:
        return None
    decisions = {*reasons.values(), *([verdict_on(rest, before, after, judge).decision] if rest else [])}
    decisions -= {"no-proven-difference", "cannot-tell"}
    return comparison.without_ratio(verdict, "; ".join(reasons), decisions.pop()) if len(decisions) == 1 else None


def _failed(steps: Steps) -> bool:
    return all(step.requests == 0 and step.errors >= FEWEST_REQUESTS for step in steps)


def _served(steps: Steps) -> bool:
    return all(step.requests >= FEWEST_REQUESTS for step in steps)


def _mean(steps: Steps) -> str:
    return show(fmean(step.throughput for step in steps), "1/s")


def look_around(
    book: Bookkeeping,
    before: str,
    after: str,
    levels: Sequence[float],
    *,
    round_number: int,
    reserve_s: float = 0.0,
    next_s: float = 0.0,
) -> list[Step]:
    """Measure both at further levels, so that the knees are compared in the same minutes: in the study's fewest blocks,
    in two, or not at all, as the budget allows."""
    per_block = [*levels, *levels]
    if not levels or not book.budget.affords(FEWEST_BLOCKS * per_block, reserve_s):
        return []
    blocks = book.bench.study.measure.blocks.min
    book.progress.phase(
        f"{book.against(after, before)} at the {counted(len(levels), 'remaining level')}", len(per_block) * blocks
    )
    return interleaved(
        book,
        (before, after),
        levels,
        range(1, blocks + 1),
        FEWEST_BLOCKS,
        reserve_s + next_s,
        round_number=round_number,
        purpose="curve",
    )


def interleaved(
    book: Bookkeeping,
    treatments: Sequence[str],
    levels: Sequence[float],
    blocks: range,
    surely: int,
    reserve_s: float = 0.0,
    *,
    round_number: int,
    purpose: Purpose = "proof",
) -> list[Step]:
    """The first `surely` blocks are measured in any case, others as the budget allows."""
    taken: list[Step] = []
    for block, order in zip(blocks, orders(book.random, [treatments], levels), strict=False):
        if block >= blocks.start + surely and not book.budget.affords([level for _, level in order], reserve_s):
            break
        taken += take_block(book, order, round_number=round_number, block=block, purpose=purpose)
    return taken


def orders(
    chance: random.Random, groups: Sequence[Sequence[str]], levels: Sequence[float]
) -> Iterator[list[tuple[str, float]]]:
    """The order of (treatment, level) in each block, without end, drawn at random, a group's treatments next to each
    other; the third block reverses the first. So each of two treatments comes first at least once in three blocks, and
    a drift shows as noise. Reversing every second block called 44 % of equal servers different, by noise with a period
    of two blocks."""
    drawn: list[list[tuple[str, float]]] = []
    while True:
        if len(drawn) == MIRRORED:
            order = drawn[0][::-1]
        else:
            order = [
                (treatment, level)
                for group in chance.sample(list(groups), len(groups))
                for treatment in chance.sample(list(group), len(group))
                for level in chance.sample(list(levels), len(levels))
            ]
        drawn.append(order)
        yield order


def take_block(
    book: Bookkeeping,
    order: Sequence[tuple[str, float]],
    *,
    block: int,
    round_number: int | None = None,
    purpose: Purpose = "proof",
) -> list[Step]:
    return [
        book.take(StepRequest(treatment, level, round_number, block, purpose=purpose)) for treatment, level in order
    ]


def throughputs(steps: Steps, treatment: str) -> Samples:
    chosen = (step for block in by_block(of_treatment(steps, treatment)).values() for step in block)
    return {level: [step.throughput for step in taken] for level, taken in by_level(chosen).items()}


def grains(steps: Steps, before: str, after: str) -> comparison.Grains:
    first, second = (
        {level: max(map(grain_of, taken)) for level, taken in by_level(of_treatment(steps, name)).items()}
        for name in (before, after)
    )
    return {level: (grain, second[level]) for level, grain in first.items() if level in second}


def grain_of(step: Step) -> float:
    """Relative resolution of a throughput: a window's count may be off by the requests in progress."""
    return min(1.0, max(1.0, step.throughput * step.latency.mean_ms / 1000) / max(step.requests, 1))


def level_ratios(steps: Steps, before: str, after: str, judge: Judge = verdict_at_end) -> tuple[LevelRatio, ...]:
    ratios = []
    for level, mine in by_level(settled(steps)).items():
        served = [throughputs(mine, name).get(level, []) for name in (before, after)]
        if not all(served):
            continue
        verdict = verdict_on(mine, before, after, judge)
        if verdict.has_ratio and verdict.decision != "cannot-tell":
            sides = comparison.logarithms([side[: verdict.blocks] for side in served])
            first, second = (comparison.exp_in_range(float(side.mean())) for side in sides)
            ratios.append(LevelRatio(level, first, second, verdict.ratio, verdict.low, verdict.high))
    return tuple(ratios)


def in_blocks(steps: Steps, before: str, after: str, *, above: int = 0) -> list[Step]:
    """The counting steps of the last proof between two states, after block `above`; each proof begins with block 1."""
    proofs: list[list[Step]] = [[]]
    for step in steps:
        if step.purpose == "proof" and step.treatment in (before, after):
            if proofs[-1] and (step.block or 0) < (proofs[-1][-1].block or 0):
                proofs.append([])
            proofs[-1].append(step)
    both = [proof for proof in proofs if {before, after} == {step.treatment for step in proof}]
    return one_of_each_block(step for proof in both[-1:] for step in proof if (step.block or 0) > above)


def operation_times(before: Steps, after: Steps) -> tuple[OperationTimes, ...]:
    first, second = _mean_times(before), _mean_times(after)
    return tuple(OperationTimes(*key, first[key], second[key]) for key in first if key in second)


def _mean_times(steps: Steps) -> dict[tuple[float, str], float]:
    sums, counts = defaultdict[tuple[float, str], float](float), Counter[tuple[float, str]]()
    for step in sorted(steps, key=lambda step: step.level):
        for operation in step.operations:
            sums[step.level, operation.name] += operation.mean_ms * operation.requests
            counts[step.level, operation.name] += operation.requests
    return {key: total / counts[key] for key, total in sums.items() if counts[key]}


LONGER = 1.2
"""Least factor of a p99 that is worth a line."""
FOR_A_TAIL = 100
"""Requests of a step, so that its p99 does not rest on a single one."""


def tail_price(before: Steps, after: Steps) -> str:
    """A sentence if p99 is longer at the highest common level (Welch's t on logarithms, 95 %); else ""."""
    sides = by_level(before), by_level(after)
    highest = max(sides[0].keys() & sides[1].keys(), default=0.0)
    first, second = (
        [
            math.log(step.latency.p99_ms)
            for step in side.get(highest, ())
            if step.requests >= FOR_A_TAIL and step.latency.p99_ms > 0
        ]
        for side in sides
    )
    if min(len(first), len(second)) < FEWEST_BLOCKS:
        return ""
    error = math.sqrt(variance(first) / len(first) + variance(second) / len(second))
    longer = fmean(second) - fmean(first)
    least = longer - float(student.quantile(0.975, min(len(first), len(second)) - 1)) * error
    if least <= 0 or longer < math.log(LONGER):
        return ""
    was, is_ = (show(math.exp(fmean(side)), "ms") for side in (first, second))
    return f"the slowest requests wait longer: p99 at level {highest:g} {was} before, {is_} after"
