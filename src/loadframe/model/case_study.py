"""What a run says: the record behind every verb, page and export."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from loadframe.errors import UsageError
from loadframe.model.curve import Curve, LoadInterval
from loadframe.model.finding import Trial, Variant
from loadframe.model.investigation import Investigation, Round, RunQuality, StudySummary
from loadframe.model.limit import Limit, NextLimit
from loadframe.model.step import Step
from loadframe.model.verdict import Compared, LevelRatio, Verdict


class RunAnswer(Protocol):
    """An Investigation, or a record of another kind (experiments/answer_kinds.py)."""

    @property
    def run(self) -> str:
        """Path of the run folder."""

    @property
    def reported(self) -> LevelRatio | Verdict | None:
        """The gain of what it recommends, against the first state; None if nothing is kept."""


@dataclass(frozen=True, slots=True)
class State:
    """The target with a set of settings. treatment: its letter. steps: those that count; left_out: why others do not,
    by number. first: the limit or cause that acts first (in the last state of an investigation: next); first_from:
    interval of its load."""

    treatment: str
    title: str
    curve: Curve
    steps: tuple[Step, ...]
    left_out: Mapping[int, str] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    first: NextLimit | None = None
    first_from: LoadInterval | None = None


@dataclass(frozen=True, slots=True)
class CaseStudy:
    """A run. name: of its folder. started_at: ISO 8601, or "". ended: False for one that was stopped, killed, or still
    goes on. states: by treatment, those with steps that count. rounds: of an investigation, else of its first state.
    answer: what the run was made for."""

    name: str
    study: StudySummary
    started_at: str
    ended: bool
    steps: tuple[Step, ...]
    states: Mapping[str, State]
    rounds: tuple[Round, ...]
    quality: RunQuality
    answer: RunAnswer | None

    @property
    def gain(self) -> LevelRatio | Verdict | None:
        return None if self.answer is None else self.answer.reported

    def compared(self, before: str, after: str) -> Compared | None:
        if not isinstance(self.answer, Investigation):
            return None
        tried = [trial for round_ in self.rounds for trial in round_.tried]
        pairs: list[Variant | Trial] = [*self.answer.variants, *tried]
        return next((pair for pair in pairs if (pair.treatment_before, pair.treatment_after) == (before, after)), None)

    @property
    def next_limit(self) -> NextLimit | None:
        return self.answer.next_limit if isinstance(self.answer, Investigation) else None

    def state(self, treatment: str) -> State:
        if treatment not in self.states:
            raise UsageError(
                f"run {self.name} has no finished step of treatment {treatment!r}",
                remedy=f"It has: {', '.join(self.states)}. Choose with --treatment.",
            )
        return self.states[treatment]
