"""What a run has measured so far, and how it goes on: steps are taken, repeated and counted here."""

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from loadframe.analysis.disturbance import is_disturbed, least_disturbed
from loadframe.analysis.sequential import ErrorBudget
from loadframe.bench.base import Bench
from loadframe.bench.budget import Budget
from loadframe.bench.loading import duration_s
from loadframe.bench.settling import Settling
from loadframe.model import TOO_FEW, Purpose, Remedy, Step, StepRequest, TargetState
from loadframe.progress import Progress
from loadframe.runs.lines import Told
from loadframe.units import show

ERROR = 0.05
"""Family-wise error rate: chance that any ineffective remedy of an investigation is accepted."""
FEWEST_BLOCKS = 2
"""An interval needs two blocks."""
WASH_SHARE = 0.5
"""Length of the step that is left out after a change of treatment, as a share of the study's window."""
LONGER = 1.25
"""A window that was too short is made this much longer than needed: the next may have fewer requests by chance."""
MOST_LONGER = 3
"""Repetitions of a step with a longer window."""
OVERDRAWN = 2.0
"""At this multiple of the budget no window is made longer, and no step of a sweep begins."""
REPEATED_SHARE = 0.2
"""Most repetitions, as a share of all steps: on an always disturbed machine repeating does not help."""


@dataclass(frozen=True, slots=True)
class Block:
    number: int
    order: tuple[tuple[str, float], ...]


class TakesBlocks(Protocol):
    """Takes blocks on other machines, several at a time, each whole on one."""

    @property
    def at_once(self) -> int: ...
    def __call__(self, blocks: Sequence[Block], *, round_number: int | None, purpose: Purpose) -> list[Step]:
        """The steps, in order. TargetError where the target does not work with a treatment."""


@dataclass
class Bookkeeping:
    """What a run has measured so far. random: decides the order within each block. warms: precede a step by an
    uncounted one where the target had to be started. washes: by a shorter one after another treatment. error: left of
    what all remedies of an investigation share. elsewhere: takes whole blocks in place of the bench. fallen: by state,
    the lowest load at which the target failed. titles: of states."""

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
    elsewhere: TakesBlocks | None = None
    fallen: dict[str, float] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    _windows_s: dict[float, float] = field(default_factory=dict)

    def fell_at(self, *treatments: str) -> float:
        return min((self.fallen.get(name, math.inf) for name in treatments), default=math.inf)

    def levels(self, *treatments: str) -> list[float]:
        fell, levels = self.fell_at(*treatments), self.bench.study.levels
        return [level for level in levels if level < fell] or [
            level for level in (fell // 4, fell // 2) if 1 <= level < fell
        ]

    @property
    def blocks_at_once(self) -> int:
        return 1 if self.elsewhere is None else self.elsewhere.at_once

    def take_blocks(self, blocks: Sequence[Block], *, round_number: int | None, purpose: Purpose) -> list[Step]:
        """The budget notes each step at an equal share of their time."""
        if self.elsewhere is None:
            return [
                self.take(StepRequest(name, level, round_number, block.number, purpose=purpose))
                for block in blocks
                for name, level in block.order
            ]
        started = self.budget.clock()
        steps = self.elsewhere(blocks, round_number=round_number, purpose=purpose)
        asked = [level for block in blocks for _, level in block.order]
        for level in asked:
            self.budget.note_step(level, (self.budget.clock() - started) / len(asked))
        return steps

    def take(self, request: StepRequest) -> Step:
        """Take a step: repeated once if disturbed (the less disturbed one counts), and with a longer warm-up if that
        had not ended."""
        level, started = request.level, self.budget.clock()
        self._wash_out(request.treatment, level, sizing=request.purpose == "sizing")
        request = replace(request, warmup_s=self.settling.warmup_s(level))
        step = self.once(request, self.budget.clock() - started)
        often = self.repeated >= REPEATED_SHARE * len(self.steps)
        if is_disturbed(step, self.steps) and not often and self.budget.affords([level]):
            self.repeated += 1
            step = least_disturbed([step, self.once(request)])
        for again in itertools.count():
            warmup_s = self.settling.longer_s(step, self.budget, again)
            if warmup_s is None:
                break
            self.progress.say(
                f"at {level:g}, the warm-up had not ended: measuring again with a warm-up of {warmup_s:.3g} s"
            )
            step = self.once(replace(request, warmup_s=warmup_s))
        return step

    def _wash_out(self, treatment: str, level: float, *, sizing: bool) -> None:
        """Without `warms` it is done only while the budget has room for a whole proof: fewer blocks would be worse."""
        another = not sizing and self.steps and self.steps[-1].treatment != treatment
        request, measure = StepRequest(treatment, level, purpose="warming"), self.bench.study.measure
        has_room = self.warms or self.budget.left_s() >= self.remedy_s(measure.blocks.max)
        if self.warms and self.bench.starts_fresh(treatment):
            self._measure(request)
        elif self.washes and another and has_room and self.bench.carries_over(treatment):
            self._measure(replace(request, window_s=WASH_SHARE * measure.window))

    def once(self, request: StepRequest, washed_s: float = 0.0) -> Step:
        """Repeats a step with a longer window if too little happened in it, as far as the budget goes: the earlier one
        does not count, and later steps at the level have the same window. washed_s: time before it."""
        level = request.level
        for again in itertools.count(1):
            if level in self._windows_s:
                request = replace(request, window_s=max(request.window_s or 0.0, self._windows_s[level]))
            started = self.budget.clock()
            step = self._measure(request)
            longer_s = LONGER * step.needed_s
            if (
                TOO_FEW not in step.flags
                or again > MOST_LONGER
                or self.budget.spent_s() + longer_s > OVERDRAWN * self.budget.total_s
            ):
                self.budget.note_step(level, washed_s + self.budget.clock() - started)
                return step
            self._windows_s[level] = longer_s
            self.progress.say(
                f"at {level:g}, the window had fewer than 20 requests or 5 response times: measuring again with one "
                f"of {show(longer_s, 's')}"
            )
        raise AssertionError

    def _measure(self, request: StepRequest) -> Step:
        seconds = duration_s(self.bench.study.measure, request.window_s, request.warmup_s)
        self.bench.run.tell(Told("step", "", 0, request.treatment, request.level, seconds, request.purpose))
        step = self.bench.take_step(request)
        self.steps.append(step)
        self.progress.step(f"{self.bench.study.load.axis} {request.level:g}: {step.throughput:,.0f}/s")
        return step

    def next_treatment(
        self,
        title: str,
        state: TargetState,
        kind: str | None = None,
        *,
        cold_of: str = "",
        remedy: Remedy | None = None,
    ) -> str:
        """Declare a state under the next free letter, as Bench.declare."""
        first, second = divmod(self.bench.treatments, 26)
        name = (chr(64 + first) if first else "") + chr(65 + second)
        self.bench.declare(name, title, state, kind, cold_of=cold_of, remedy=remedy)
        self.titles[name] = title
        return name

    def against(self, after: str, before: str) -> str:
        return f'"{self.called(after)}" against "{self.called(before)}"'

    def called(self, treatment: str) -> str:
        return self.titles.get(treatment, treatment)

    def remedy_s(self, blocks: int) -> float:
        """Seconds for sizing, a proof at two levels in this number of blocks, and a look at the result."""
        if not self.tries_remedies:
            return 0.0
        levels = list(self.bench.study.levels)
        return self.budget.cost_s(levels[-1:] + 2 * blocks * levels[-2:] + FEWEST_BLOCKS * levels)

    def of(self, treatment: str) -> list[Step]:
        """The steps of a treatment that count."""
        return [step for step in self.steps if step.treatment == treatment and step.counts]
