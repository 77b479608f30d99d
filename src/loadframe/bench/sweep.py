"""One treatment over all levels, in randomised blocks, and closer looks at the place where throughput falls."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import mean
from typing import Required, TypedDict, Unpack

from loadframe.analysis import curve as curves
from loadframe.analysis import search
from loadframe.analysis.sequential import ErrorBudget
from loadframe.analysis.settling import LIKELY, unsettled
from loadframe.analysis.soundness import sound
from loadframe.bench.bench import Bench
from loadframe.bench.budget import Budget
from loadframe.bench.settling import MOST_TIMES, Settling
from loadframe.model import CLIENT_AXES, DISTURBED, WARMING, Curve, Step, TargetState
from loadframe.progress import Progress
from loadframe.study import Study

RESOLUTION = 0.15
"""A cliff is bracketed until the two levels around it are no further apart than this share."""
ERROR = 0.05
"""Of an investigation: that any remedy without effect is proven to help, whatever the number of them."""
FEWEST_BLOCKS = 2
"""Below two blocks there is no interval."""
MOST_STEPS = 0.5
WASH_SHARE = 0.5
"""Of the study's window: the step that is left out after a change of treatment."""
REPEATED_SHARE = 0.2
"""Disturbed steps are repeated while the repetitions are no more than this share of all steps: on a machine that is
always disturbed, repeating everything helps nobody."""
SWEEP_SHARE = 0.4
"""More blocks than the least are measured only while a sweep uses less than this share of what was left."""


class StepAsked(TypedDict, total=False):
    """What Bench.take_step is asked for."""

    round_number: Required[int]
    block: Required[int]
    treatment: Required[str]
    level: Required[float]
    window_s: float | None
    most_waiting: int | None
    warmup_s: float


@dataclass
class Bookkeeping:
    """What a run has measured so far, and how it goes on. random: decides the order within each block. warms: where the
    target had to be started, a step that counts for nothing goes before the one that does. washes: where another
    treatment was measured last, a shorter such step does. error: what is left of the
    error that all remedies of an investigation share."""

    bench: Bench
    budget: Budget
    progress: Progress
    random: random.Random
    steps: list[Step] = field(default_factory=list)
    repeated: int = 0
    settling: Settling = field(default_factory=Settling)
    tries_remedies: bool = True
    warms: bool = False
    washes: bool = False
    error: ErrorBudget = field(default_factory=partial(ErrorBudget, ERROR))

    def take(self, *, round_number: int, block: int, treatment: str, level: float) -> Step:
        """A step; once more where something outside the study disturbed it, and with a longer warm-up where that had
        not ended. The one before stays in the run."""
        started = time.monotonic()
        self._wash_out(round_number, block, treatment, level)
        asked: StepAsked = {
            "round_number": round_number,
            "block": block,
            "treatment": treatment,
            "level": level,
            "warmup_s": self.settling.warmup_s(level),
        }
        step = self._measure(**asked)
        self.budget.note_step(level, time.monotonic() - started)
        often = self.repeated >= REPEATED_SHARE * len(self.steps)
        if DISTURBED.intersection(step.flags) and not often and self.budget.affords([level]):
            self.repeated += 1
            step = self.once(**asked)
        for again in itertools.count():
            warmup_s = self.settling.longer_s(step, self.budget, again)
            if warmup_s is None:
                break
            self.progress.say(f"at {level:g} the warm-up had not ended: again with one of {warmup_s:.3g} s")
            asked["warmup_s"] = warmup_s
            step = self.once(**asked)
        return step

    def _wash_out(self, round_number: int, block: int, treatment: str, level: float) -> None:
        """What a start, or another treatment, leaves behind is over before a step of a block begins. Without `warms`
        only while the budget has room for a whole proof besides: fewer blocks would be worse."""
        asked: StepAsked = {"round_number": round_number, "block": WARMING, "treatment": treatment, "level": level}
        another = block > 0 and self.steps and self.steps[-1].treatment != treatment
        if self.warms and self.bench.begins_anew(treatment):
            self._measure(**asked)
        elif self.washes and another and self._has_room() and self.bench.carries_over(treatment):
            asked["window_s"] = WASH_SHARE * self.bench.study.measure.window
            self._measure(**asked)

    def _has_room(self) -> bool:
        return self.warms or self.budget.left_s() >= self.remedy_s(self.bench.study.measure.blocks.max)

    def once(self, **asked: Unpack[StepAsked]) -> Step:
        """A step, noted in the budget and shown."""
        started = time.monotonic()
        step = self._measure(**asked)
        self.budget.note_step(asked["level"], time.monotonic() - started)
        return step

    def _measure(self, **asked: Unpack[StepAsked]) -> Step:
        step = self.bench.take_step(**asked)
        self.steps.append(step)
        self.progress.step(f"{self.bench.study.load.axis} {asked['level']:g}: {step.throughput:,.0f}/s")
        return step

    def next_treatment(self, title: str, state: TargetState, kind: str | None = None, *, cold_of: str = "") -> str:
        """Declare a state (of a target of that kind, where it is not the study's own) under the next free letter.
        cold_of: see Bench.declare."""
        name = _letters(self.bench.treatments)
        self.bench.declare(name, title, state, kind, cold_of=cold_of)
        return name

    def remedy_s(self, blocks: int) -> float:
        """Seconds to keep in hand for one remedy, where any may be tried: a step to size it, its proof at two levels in
        this number of blocks, and a look at what it leaves."""
        if not self.tries_remedies:
            return 0.0
        levels = list(self.bench.study.levels)
        return self.budget.cost_s(levels[-1:] + 2 * blocks * levels[-2:] + FEWEST_BLOCKS * levels)

    def of(self, treatment: str) -> list[Step]:
        """The steps of a treatment that count, from every round."""
        return [step for step in self.steps if step.treatment == treatment and step.counts]


def _letters(count: int) -> str:
    """A, B, ... Z, AA, AB, ..."""
    first, second = divmod(count, 26)
    return (chr(64 + first) if first else "") + chr(65 + second)


def curve_of(steps: Sequence[Step], study: Study, treatment: str) -> Curve:
    """The curve of one treatment among these steps, from those that count (analysis/soundness.py)."""
    mine = [step for step in steps if step.treatment == treatment and step.counts]
    counting = sound(mine)
    samples = [
        curves.LevelSample(
            load=level,
            throughputs=tuple(step.throughput for step in counting if step.level == level),
            latencies_p95_ms=tuple(step.latency.p95_ms for step in counting if step.level == level),
        )
        for level in sorted({step.level for step in counting})
    ]
    fitted = curves.fit(
        samples,
        axis=study.load.axis,
        treatment=treatment,
        within_latency_p95_ms=study.objective.within.latency_p95_ms,
        scalability=study.load.axis in CLIENT_AXES,
    )
    loops = {step.closed_loop for step in mine}
    climbing = unsettled(counting)
    return replace(
        fitted,
        points=tuple(replace(point, settled=point.load not in climbing) for point in fitted.points),
        warnings=(*fitted.warnings, *_driver_warnings(mine), *_unsettled_warning(climbing)),
        closed_loop=loops.pop() if len(loops) == 1 else None,
    )


def _driver_warnings(steps: Sequence[Step]) -> list[str]:
    """In words, at which levels most steps show the driver's limit instead of the target's, or both together; [] where
    none does."""
    said = {
        "driver-limited": "driver.limited: at {} the load driver was the bottleneck, so the curve is not the target's "
        "there",
        "driver-beside": "driver.beside: at {} the load driver had a quarter or more of the CPUs that the target was "
        "short of; with CPUs of its own for the driver (cage.driver.cpus) the target would do more",
    }
    levels = sorted({step.level for step in steps})
    found = []
    for flag, words in said.items():
        often = [one for one in levels if mean(flag in step.flags for step in steps if step.level == one) > MOST_STEPS]
        if often:
            found.append(words.format(", ".join(f"{level:g}" for level in often)))
    return found


def _unsettled_warning(levels: Sequence[float]) -> list[str]:
    if not levels:
        return []
    where = ", ".join(f"{level:g}" for level in levels)
    return [
        f"not-settled: at {where} the warm-up had not ended, so the throughput there is higher than these numbers, and "
        "nothing is proved there; give measure.warmup, measure.window or measure.budget more time"
    ]


def sweep(book: Bookkeeping, treatment: str, *, round_number: int) -> Curve:
    """Measure the levels of the study for a treatment, as far as that is not done yet, and fit its curve.

    At least two blocks, at least as many as the study's least while the budget allows it, more until every level's
    interval is narrow enough. Then the cliff, if there is one, is bracketed by bisection. All but the first two
    blocks leave enough time to prove a remedy.
    """
    study = book.bench.study
    levels = list(study.levels)
    blocks = study.measure.blocks
    done = min(_blocks_at(book.of(treatment), level) for level in levels)
    if done < blocks.min:
        book.progress.phase(f"measuring {len(levels)} levels ({treatment})", len(levels) * (blocks.min - done))
    started_left = book.budget.left_s()
    for block in range(done + 1, blocks.max + 1):
        if block > FEWEST_BLOCKS and not book.budget.affords(levels, book.remedy_s(FEWEST_BLOCKS)):
            break
        spent = started_left - book.budget.left_s()
        if block > blocks.min and (
            spent + book.budget.cost_s(levels) > SWEEP_SHARE * started_left
            or not book.budget.affords(levels, book.remedy_s(blocks.max))
            or _precise(_curve(book, treatment), study.measure.precision)
        ):
            break
        measure_block(book, treatment, levels, block, round_number=round_number)
    _settle(book, treatment, round_number)
    return _bisect(book, treatment, round_number, _curve(book, treatment))


def _settle(book: Bookkeeping, treatment: str, round_number: int) -> None:
    """Measure levels whose warm-up had not ended again, with a longer one: what all blocks of a level show together, no
    single step needs to show. Not where the study names the warm-up: then it is only told."""
    for _ in range(MOST_TIMES if book.bench.study.measure.warmup is None else 0):
        last = {step.level: step for step in book.of(treatment)}
        counting = sound(book.of(treatment))
        slow = [
            level
            for level in unsettled(counting, LIKELY)
            if book.settling.lengthen(last[level], book.budget, FEWEST_BLOCKS)
        ]
        if not slow:
            break
        book.progress.phase(f"longer warm-ups at {len(slow)} levels ({treatment})", FEWEST_BLOCKS * len(slow))
        for level in slow:
            longer = [
                book.take(round_number=round_number, block=block, treatment=treatment, level=level)
                for block in range(1, FEWEST_BLOCKS + 1)
            ]
            before = [step.throughput for step in counting if step.level == level]
            book.settling.keep(level, mean(before), mean(step.throughput for step in longer))


def measure_block(book: Bookkeeping, treatment: str, levels: Sequence[float], block: int, *, round_number: int) -> None:
    """A step at each of these levels that this block does not have yet, in random order."""
    done = {step.level for step in book.of(treatment) if step.block == block}
    for level in book.random.sample(list(levels), len(levels)):
        if level not in done:
            book.take(round_number=round_number, block=block, treatment=treatment, level=level)


def _bisect(book: Bookkeeping, treatment: str, round_number: int, curve: Curve) -> Curve:
    least, most = book.bench.study.measure.blocks.min, book.bench.study.measure.blocks.max
    while (probe := search.next_probe(curve, integer=True, resolution=RESOLUTION)) is not None:
        if probe in {step.level for step in book.of(treatment)}:
            break
        if not book.budget.affords([probe] * least, book.remedy_s(most)):
            break
        book.progress.phase(f"looking closer: {book.bench.study.load.axis} {probe:g}", least)
        for block in range(1, least + 1):
            book.take(round_number=round_number, block=block, treatment=treatment, level=probe)
        curve = _curve(book, treatment)
    return curve


def _blocks_at(steps: Sequence[Step], level: float) -> int:
    """In how many blocks a level was measured; a step to size a remedy is none (block 0), nor is a repetition."""
    return len({step.block for step in steps if step.level == level and step.block > 0})


def _curve(book: Bookkeeping, treatment: str) -> Curve:
    return curve_of(book.steps, book.bench.study, treatment)


def _precise(curve: Curve, precision: float) -> bool:
    """Whether every level's interval is narrow enough."""
    return all(
        point.throughput > 0 and (point.throughput_high - point.throughput_low) / 2 <= precision * point.throughput
        for point in curve.points
    )
