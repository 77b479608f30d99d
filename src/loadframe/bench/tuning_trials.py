"""The trials of a search on a real target: each measured, told to the search, and kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from loadframe.bench import within
from loadframe.bench.beside import START
from loadframe.bench.sizing import UNFIT
from loadframe.bench.sweep import Bookkeeping
from loadframe.model import CapacityObjective, Step, TargetState, TuningTrial
from loadframe.runs.folder import RunFolder
from loadframe.tuning.search import Outcome, Proposal, Search
from loadframe.tuning.space import Point, Space

TRIALS_ROUND = 2
"""The round of the trials' steps; the first one is the curve of the start."""
HOPELESS = 0.7
"""A trial below this share of the best one so far at its first level is not measured at the other one."""


@dataclass
class Trials:
    """The trials of one search. levels: those that every trial is judged at, the highest first. names: points with a
    treatment. reference: throughput of the start at each level. objective: what is asked besides; start_use: how much
    of it the start uses."""

    book: Bookkeeping
    run: RunFolder
    space: Space
    search: Search
    levels: tuple[float, ...]
    state: TargetState
    reference: dict[float, float]
    objective: CapacityObjective | None = None
    start_use: float = 0.0
    done: list[TuningTrial] = field(default_factory=list)
    names: dict[Point, str] = field(default_factory=dict)

    def treatment(self, point: Point) -> str:
        """The treatment of a point, declared once."""
        if point not in self.names:
            changes = self.space.changes(point)
            title = ", ".join(f"{name} = {value}" for name, value in changes.items())
            state = replace(self.state, settings={**self.state.settings, **changes})
            self.names[point] = self.book.next_treatment(title, state)
        return self.names[point]

    def take(self, proposal: Proposal) -> None:
        """A trial, from the proposal to its line in the run folder."""
        number = len(self.done) + 1
        steps: list[Step] = []
        failed = ""
        try:
            for level in self.levels:
                if self._hopeless(steps):
                    break
                name = self.treatment(proposal.point)
                steps.append(self.book.take(round_number=TRIALS_ROUND, block=number, treatment=name, level=level))
        except UNFIT as error:
            failed = error.fact
            self.book.bench.recover(START)
        value = None if failed or any(step.throughput <= 0 for step in steps) else self.value(steps)
        trial = TuningTrial(
            number=number,
            reason=proposal.reason,
            changes=self.space.changes(proposal.point),
            throughput={step.level: step.throughput for step in steps},
            ratio=None if value is None else math.exp(value),
            ended_early=not failed and len(steps) < len(self.levels),
            failed=failed or ("" if value is not None else "no request was served"),
            steps=tuple(step.number for step in steps),
            objective_use=within.used(self.objective, steps),
            missed=within.missed(self.objective, steps),
        )
        self.add(trial)
        self._say(trial)

    def add(self, trial: TuningTrial) -> None:
        """Learn from a trial and keep it; on the disk when this returns."""
        self.search.observe(Outcome(self.space.point(trial.changes), self._worth(trial), missed=bool(trial.missed)))
        self.done.append(trial)
        self.run.append_line("trials.jsonl", "tuning-trial", trial)

    def recall(self, trial: TuningTrial) -> None:
        """A trial of an earlier run; one of settings that are not varied any more says nothing here."""
        known = {each.name: each.values for each in self.space.dimensions}
        if all(name in known and value in known[name] for name, value in trial.changes.items()):
            self.add(trial)

    def value(self, steps: Sequence[Step]) -> float:
        """Log throughput against the start, mean over the levels."""
        return fmean(math.log(step.throughput / self.reference[step.level]) for step in steps)

    def _worth(self, trial: TuningTrial) -> float | None:
        """What the search is told of a trial: its throughput, in logarithms; of one that missed the objective at most
        by how much closer to it than the start it was, so that the search turns back."""
        if trial.ratio is None:
            return None
        value = math.log(trial.ratio)
        if not trial.missed or trial.objective_use is None:
            return value
        return min(value, math.log(max(1.0, self.start_use) / trial.objective_use))

    def _hopeless(self, steps: Sequence[Step]) -> bool:
        """Whether what was measured so far of a trial is far below what the best one gives there, or clearly misses
        the objective."""
        if not steps:
            return False
        if within.missed(self.objective, steps):
            return True
        best = math.exp(max(0.0, self.search.leading_value()))
        return any(step.throughput < HOPELESS * best * self.reference[step.level] for step in steps)

    def _say(self, trial: TuningTrial) -> None:
        told = ", ".join(f"{name} = {value}" for name, value in trial.changes.items()) or "as given"
        came = f"failed: {trial.failed}" if trial.ratio is None else f"{trial.ratio:.2f} of the start"
        came += f", but misses the objective {trial.missed}" if trial.missed else ""
        self.book.progress.say(f"trial {trial.number}: {came} ({told})")
