"""A step whose warm-up had not ended is repeated with a longer one, as far as the budget goes; else its level is left
out of proofs."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from loadframe.analysis.comparison import without_ratio
from loadframe.analysis.window import common_line, unsettled
from loadframe.bench.budget import Budget
from loadframe.model import TOO_FEW, UNSETTLED, Step, Verdict
from loadframe.model.verdict import NOT_KNOWN, decide

LONGER = 4.0
"""The next warm-up over the unsettled step's length; and the slowest time constant, in windows, that a verdict
allows."""
MOST_TIMES = 2
"""Repetitions of a step: with warm-ups of 5 windows, and of 23. Only the first is ever kept for further steps."""
SLACK = 1.2
"""Steps of one kind differ in length by up to this factor."""
SHARE = 0.1
"""Share of the budget for repeating steps with longer warm-ups."""
WORTH = 1.05
"""A longer warm-up is kept where throughput rose by this factor: a noisy machine has steps that climb by chance."""
REMEMBERED = 2
"""A level where that happened so often keeps its longer warm-up for later single steps."""


@dataclass
class Settling:
    """Warm-ups longer than the study's, by level, the same for all treatments, which are compared; and their cost."""

    spent_s: float = 0.0
    _tried: dict[float, tuple[float, float]] = field(default_factory=dict)
    _helped: Counter[float] = field(default_factory=Counter)
    _warmups_s: dict[float, float] = field(default_factory=dict)
    _own_s: dict[float, float] = field(default_factory=dict)

    def warmup_s(self, level: float) -> float:
        """The least warm-up (s) of the next step; 0: the study's."""
        return self._warmups_s.get(level, 0.0)

    def longer_s(self, step: Step, budget: Budget, again: int) -> float | None:
        """The warm-up with which to repeat a step that was repeated `again` times; None where its own had ended, or too
        little budget is left. What gave more twice is kept for later steps."""
        lasted_s = step.ended_s - step.started_s
        own_s = self._own_s.setdefault(step.level, lasted_s)
        tried_s, before = self._tried.pop(step.level, (0.0, 0.0))
        if UNSETTLED not in step.flags:
            self._helped[step.level] += tried_s > 0 and step.throughput > WORTH * before
            if 0 < tried_s <= SLACK * LONGER * own_s and self._helped[step.level] >= REMEMBERED:
                self._warmups_s[step.level] = tried_s
            return None
        if again >= MOST_TIMES or (longer_s := self._afforded_s(step.level, lasted_s, budget, 1)) is None:
            return None
        self._tried[step.level] = longer_s, before or step.throughput
        return longer_s

    def lengthen(self, step: Step, budget: Budget, blocks: int) -> bool:
        """Lengthen the warm-up of later steps at this level; returns whether `blocks` of them fit."""
        own_s = self._own_s.get(step.level, step.ended_s - step.started_s)
        longer_s = None if self.warmup_s(step.level) else self._afforded_s(step.level, own_s, budget, blocks)
        if longer_s is None:
            return False
        self._warmups_s[step.level] = longer_s
        return True

    def keep(self, level: float, before: float, after: float) -> None:
        """Drop the longer warm-up where throughput is hardly higher after it."""
        if after <= WORTH * before:
            self._warmups_s.pop(level, None)

    def _afforded_s(self, level: float, lasted_s: float, budget: Budget, steps: int) -> float | None:
        """Seconds of a warm-up LONGER times as long as the step, whose cost is then spent; None if this number of such
        steps does not fit."""
        if lasted_s > SLACK * (1 + LONGER) * self._own_s.get(level, lasted_s):
            return None
        cost_s = steps * (LONGER * lasted_s + budget.cost_s([level]))
        if self.spent_s + cost_s > SHARE * budget.total_s or cost_s > budget.left_s():
            return None
        self.spent_s += cost_s
        return LONGER * lasted_s


def refused(steps: Sequence[Step]) -> tuple[float, ...]:
    treatments = {step.treatment for step in steps}
    by_treatment = (unsettled([step for step in steps if step.treatment == treatment]) for treatment in treatments)
    return tuple(sorted({level for levels in by_treatment for level in levels}))


def settled(steps: Sequence[Step]) -> list[Step]:
    """The steps at settled levels; all where there are none."""
    out = {*sparse(steps), *refused(steps)}
    return [step for step in steps if step.level not in out] or list(steps)


def sparse(steps: Sequence[Step]) -> tuple[float, ...]:
    return tuple(sorted({step.level for step in steps if TOO_FEW in step.flags}))


def held(verdict: Verdict, steps: Sequence[Step], before: str, after: str) -> Verdict:
    """A verdict of `after` against `before` on these steps' settled levels, naming those left out. Where none is left,
    its interval includes what either side may still gain or lose."""
    if few := sparse(steps):
        at = f"too few requests or response times in a window at {', '.join(f'{level:g}' for level in few)}"
        steps = [step for step in steps if step.level not in few]
        if not steps:
            return without_ratio(verdict, at)
        verdict = replace(verdict, method=f"{verdict.method}; left out: {at}")
    out = refused(steps)
    if not out:
        return verdict
    where = ", ".join(f"{level:g}" for level in out)
    if not {step.level for step in steps} <= set(out):
        return replace(verdict, method=f"{verdict.method}; left out, as the warm-up there had not ended: {where}")
    ahead = _ahead(steps, after), _ahead(steps, before)
    known, low, high = verdict.has_ratio and not any(map(math.isnan, ahead)), verdict.low, verdict.high
    if known:
        changes = ahead[0], -ahead[1]
        low = max(low * math.exp(sum(min(change, 0.0) for change in changes)), NOT_KNOWN[0])
        high = min(high * math.exp(sum(max(change, 0.0) for change in changes)), NOT_KNOWN[1])
    decision = decide(low, high) if known else "cannot-tell"
    why = "whatever it can still change" if known else "nothing is decided"
    return replace(
        verdict,
        low=low,
        high=high,
        decision="cannot-tell" if decision == "no-proven-difference" else decision,
        method=f"{verdict.method}; at {where} the warm-up had not ended: {why}",
        unsettled_at=out,
    )


def _ahead(steps: Sequence[Step], treatment: str) -> float:
    """By how much, in logarithms, throughput may still change beyond the windows' mean: LONGER times its rise within
    one, for an exponential approach. NaN: not known."""
    line = common_line([step for step in steps if step.treatment == treatment])
    return math.nan if line is None else LONGER * line.rise
