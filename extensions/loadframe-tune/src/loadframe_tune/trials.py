"""The trials of a search on a real target, all compared with the start: a median of blocks of which most agree, as a
stall in few of its steps would make every trial look fast. It is measured again when a trial looks too good."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from statistics import geometric_mean, median

from loadframe.analysis import objective as objectives
from loadframe.analysis.selection import select
from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.errors import RunError
from loadframe.experiments import fresh
from loadframe.experiments.settings_search import TRIALS_ROUND, Proposed
from loadframe.experiments.settings_search import Start as AnyStart
from loadframe.experiments.side_by_side import START
from loadframe.experiments.stopping import UNFIT
from loadframe.experiments.sweep import check_enough, measure_block
from loadframe.model import (
    OPEN_LOOP_AXES,
    CapacityObjective,
    Curve,
    SettingValue,
    Step,
    StepRequest,
    TargetState,
    by_block,
)
from loadframe.progress import counted
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import Schema
from loadframe_tune.model import ObjectiveLevel, ObjectiveSide, TuningObjective, TuningTrial
from loadframe_tune.search import Outcome, Point, Proposal, Search, Space

START_ROUND = 1
ALIKE = 1.5
"""Throughputs agree within this factor of their median; a stalled one does not."""
MOST_BLOCKS = 5
"""Blocks at a level at which the first ones do not agree: the median then tolerates two stalls."""
BLOCKS_AGAIN = 3


def measure_start(book: Bookkeeping) -> None:
    """Measure it at the study's levels; in more blocks where the first ones disagree. TooFewRequests."""
    levels = list(book.bench.study.levels)
    book.progress.phase(f"measuring {counted(len(levels), 'level')} as given", len(levels) * FEWEST_BLOCKS)
    for block in range(1, FEWEST_BLOCKS + 1):
        measure_block(book, START, levels, block, round_number=START_ROUND)
    for block in range(FEWEST_BLOCKS + 1, MOST_BLOCKS + 1):
        steps = select(book.of(START)).steps
        by_level = {level: [step.throughput for step in steps if step.level == level] for level in levels}
        doubtful = [level for level, throughputs in by_level.items() if not _agree(throughputs)]
        if not doubtful or not book.budget.affords(doubtful):
            break
        book.progress.phase(f"as given: {len(doubtful)} levels again, because their blocks do not agree", len(doubtful))
        measure_block(book, START, doubtful, block, round_number=START_ROUND)
    check_enough(book.steps, START)


class Start(AnyStart):
    """The start as measured on this machine, where it can be measured again."""

    def blocks(self) -> list[float]:
        """The same of each of its own blocks: the noise; without stalled ones, unless all disagree with the median."""
        blocks = by_block(step for step in self.steps if step.throughput > 0).values()
        agreeing = [steps for steps in blocks if self.agrees(steps)]
        return [self.value(steps) for steps in agreeing or blocks]

    def agrees(self, steps: Sequence[Step]) -> bool:
        """About the same throughput at every level."""
        return all(_alike(step.throughput, self.reference[step.level]) for step in steps)

    def again(self, book: Bookkeeping) -> "Start":
        """Where another block disagrees with those before, only new blocks count: trials are compared with what is
        measured close to them."""
        book.progress.say("a trial looks too good: measuring the start again")
        fresh = self._block(book)
        if self.agrees(fresh):
            return replace(self, steps=(*self.steps, *fresh))
        for _ in range(BLOCKS_AGAIN - 1):
            fresh += self._block(book)
        return Start.of(fresh, tuple(self.reference))

    def _block(self, book: Bookkeeping) -> list[Step]:
        block = 1 + max(by_block(book.of(START)))
        measure_block(book, START, tuple(self.reference), block, round_number=START_ROUND)
        mine = by_block(book.of(START))[block]
        return list({step.level: step for step in mine}.values())  # the repetition of a disturbed step


def _agree(throughputs: Sequence[float]) -> bool:
    middle = median(throughputs or [0.0])  # 0 for a level for which the budget had no time
    return 2 * sum(_alike(throughput, middle) for throughput in throughputs) > len(throughputs)


def _alike(rate: float, other: float) -> bool:
    return rate <= ALIKE * other and other <= ALIKE * rate


# --- an objective in addition to throughput ---


def loads_within(curve: Curve, start: Sequence[Step], objective: CapacityObjective) -> Curve:
    """The levels on which settings are judged: below the first that misses the objective, or the lowest. In an open
    loop that first one, too: below it all that is offered is served already."""
    levels = [point.load for point in curve.points]
    met = list(takewhile(lambda level: side(objective, start, level).met, levels))
    count = len(met) + 1 if curve.axis in OPEN_LOOP_AXES else max(len(met), 1)
    return replace(curve, points=curve.points[:count])


def objective_use(objective: CapacityObjective | None, steps: Sequence[Step]) -> float | None:
    """None without an objective, or steps."""
    if objective is None or not steps:
        return None
    return max(_use(objective, steps, level) for level in {step.level for step in steps})


def _use(objective: CapacityObjective, steps: Sequence[Step], level: float) -> float:
    return median(objectives.use(objective, step) for step in steps if step.level == level)


def side(objective: CapacityObjective, steps: Sequence[Step], level: float) -> ObjectiveSide:
    mine = [step for step in steps if step.level == level]
    return ObjectiveSide(
        latency_p95_ms=median([step.latency.p95_ms for step in mine if step.latency_known] or [0.0]),
        lost_share=median(map(objectives.lost_share, mine)),
        met=_use(objective, mine, level) <= 1,
    )


def objective_sides(
    objective: CapacityObjective | None, levels: Sequence[float], before: Sequence[Step], after: Sequence[Step]
) -> TuningObjective | None:
    """after: steps of a proof, perhaps none."""
    if objective is None:
        return None
    sides = (
        ObjectiveLevel(level, side(objective, before, level), side(objective, after, level) if after else None)
        for level in sorted(levels)
    )
    return TuningObjective(objective, tuple(sides))


# --- the trials ---

HOPELESS = 0.7
"""A trial below this share of the best one so far at its first level is not measured at the other one."""
TOO_GOOD = 2.0
"""The start is measured again before the first trial with this many times its throughput is believed."""
PROOF_SHARE = 0.3
"""Share of the budget kept for the first proof and its fresh blocks, where the study's most blocks would take more."""
TRIALS, TRIAL = "trials.jsonl", Schema("tuning-trial")


@dataclass
class Trials:
    """levels: at which trials are judged, the highest first. objective: besides throughput. names: treatments of
    points. recalled: the last trial of an earlier run. sure: the start was measured again. notes: for the reader."""

    book: Bookkeeping
    run: RunFolder
    space: Space
    search: Search
    levels: tuple[float, ...]
    state: TargetState
    start: Start
    objective: CapacityObjective | None = None
    recalled: int = 0
    sure: bool = False
    done: list[TuningTrial] = field(default_factory=list)
    names: dict[Point, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def treatment(self, point: Point) -> str:
        if point not in self.names:
            changes = self.space.changes(point)
            self.names[point] = self.book.next_treatment(named(changes), self._with(changes))
        return self.names[point]

    def _with(self, changes: Mapping[str, SettingValue]) -> TargetState:
        return replace(self.state, settings={**self.state.settings, **changes})

    def begin(self, earlier: Sequence[TuningTrial]) -> None:
        """Learn the start's blocks, then an earlier run's trials, except those of values that are no longer varied."""
        known = {dimension.name: dimension.values for dimension in self.space.dimensions}
        self._observe_start()
        for trial in earlier:
            if all(name in known and value in known[name] for name, value in trial.changes.items()):
                self._keep(trial)
        self.recalled = self.next_number - 1

    def kept_s(self) -> float:
        """Seconds for the first proof and the fewest fresh blocks after it."""
        least, most = self.proof_s()
        again = self.book.budget.cost_s(2 * fresh.BLOCKS * self.levels)
        return max(least, min(most + again, PROOF_SHARE * self.book.budget.total_s))

    def proof_s(self) -> tuple[float, float]:
        """Seconds of the shortest and the longest proof, without fresh blocks."""
        blocks, cost_s = self.book.bench.study.measure.blocks, self.book.budget.cost_s
        return cost_s(2 * blocks.min * self.levels), cost_s(2 * blocks.max * self.levels)

    def take_here(self, most: int) -> None:
        """Take trials as far as the budget goes."""
        book, left = self.book, self.left(most)
        book.progress.phase(f"up to {left} trials of {self.varied} settings", left * len(self.levels))
        while len(self.done) < most and book.budget.affords(self.levels, self.kept_s()):
            self.take(self.search.propose())

    @property
    def varied(self) -> int:
        return len(self.space.dimensions)

    def left(self, most: int) -> int:
        return max(0, most - len(self.done))

    def left_s(self) -> float:
        return self.book.budget.left_s() - self.kept_s()

    def proposed(self, pending: Sequence[Proposed] = ()) -> Proposed:
        proposal = self.search.propose([other.proposal.point for other in pending])
        changes = self.space.changes(proposal.point)
        return Proposed(named(changes), changes, self._with(changes), proposal)

    def ended(
        self, number: int, proposed: Proposed, steps: Sequence[Step], failed: str, start: AnyStart, host: str
    ) -> None:
        self._add(self._judged(number, proposed.proposal, steps, failed, start, host))

    def take(self, proposal: Proposal) -> None:
        number, floors = self.next_number, self.floors(self.start)
        steps: list[Step] = []
        failed = ""
        try:
            for level in self.levels:
                slow = any(step.throughput < floors[step.level] for step in steps)
                if steps and (slow or objectives.clearly_missed(self.objective, steps)):
                    break
                name = self.treatment(proposal.point)
                steps.append(self.book.take(StepRequest(name, level, TRIALS_ROUND, number, purpose="trial")))
        except UNFIT as error:
            failed = error.fact
            self.book.bench.recover(START)
        trial = self._judged(number, proposal, steps, failed, self.start)
        self._add(replace(trial, steps=tuple(step.number for step in steps)))
        # the start may have been measured too slow
        too_good = trial.ratio is not None and self.start.value(steps) > math.log(TOO_GOOD)
        if too_good and not self.sure and self.book.budget.affords(BLOCKS_AGAIN * self.levels, self.kept_s()):
            self._look_at_start_again()

    def _judged(
        self, number: int, proposal: Proposal, steps: Sequence[Step], failed: str, start: AnyStart, host: str = ""
    ) -> TuningTrial:
        """The trial of these steps, against a start that `host` has served. failed: why it did not work, else ""."""
        served = not failed and bool(steps) and all(step.throughput > 0 for step in steps)
        value = start.value(steps) if served else None
        return TuningTrial(
            number=number,
            reason=proposal.reason,
            changes=self.space.changes(proposal.point),
            throughput={step.level: step.throughput for step in steps},
            ratio=None if value is None else math.exp(value),
            ended_early=not failed and len(steps) < len(self.levels),
            failed=failed or ("" if value is not None else "no request was served"),
            objective_use=objective_use(self.objective, steps),
            missed=objectives.clearly_missed(self.objective, steps),
            host=host,
        )

    def floors(self, start: AnyStart) -> dict[float, float]:
        """Throughput (1/s) by level below which a trial against that start is hopeless."""
        best = max(1.0, self.search.expected_gain())
        return {level: HOPELESS * best * start.reference[level] for level in self.levels}

    @property
    def next_number(self) -> int:
        return 1 + max((trial.number for trial in self.done), default=0)

    def _add(self, trial: TuningTrial) -> None:
        self._keep(trial)
        where = f" on {trial.host}" if trial.host else ""
        outcome = f"failed: {trial.failed}" if trial.ratio is None else f"{trial.ratio:.2f} of the start"
        outcome += f", but misses the objective {trial.missed}" if trial.missed else ""
        self.book.progress.say(f"trial {trial.number}{where}: {outcome} ({named(trial.changes) or 'as given'})")

    def _keep(self, trial: TuningTrial) -> None:
        """Learn from a trial and record it, on the disk when this returns; of two lines for one trial the later one
        counts."""
        self._learn(trial)
        self.run.append_line(TRIALS, TRIAL, trial)

    def refuse(self, point: Point, why: str) -> None:
        """Record that the target refuses a point, outside of its trial, before anything else can fail."""
        trial = TuningTrial(self.next_number, "again", self.space.changes(point), {}, None, failed=why)
        self._add(trial)
        self.notes.append(f"The most promising settings then, {named(trial.changes)}, failed: {why.rstrip('.')}.")
        self.book.bench.recover(START)

    def observe(self, point: Point, steps: Sequence[Step], *, missed: bool = False, use: float | None = None) -> None:
        """Learn from steps of a point that are no trial. missed: the objective; use: the share of it that they used."""
        served = all(step.throughput > 0 for step in steps)
        self._observe(point, self.start.value(steps) if served else None, missed=missed, use=use)

    def _learn(self, trial: TuningTrial) -> None:
        value = None if trial.ratio is None else math.log(trial.ratio)
        self._observe(self.space.point(trial.changes), value, missed=bool(trial.missed), use=trial.objective_use)
        self.done.append(trial)

    def _observe(self, point: Point, value: float | None, *, missed: bool, use: float | None) -> None:
        """What missed the objective gains no more than it is closer to it than the start: the search turns back."""
        if value is not None and missed and use is not None:
            start_use = objective_use(self.objective, self.start.steps) or 0.0
            value = min(value, math.log(max(1.0, start_use) / use))
        self.search.observe(Outcome(point, value, missed=missed))

    def _look_at_start_again(self) -> None:
        """Compare the trials so far with the start measured again, or if that fails with the old one."""
        before, self.sure = self.start.reference, True
        try:
            self.start = self.start.again(self.book)
        except (RunError, *UNFIT) as error:
            self.notes.append(f"The start could not be measured again: {error.fact.rstrip('.')}.")
            self.book.bench.recover(START)
            return
        self.search.forget()
        self._observe_start()
        now, done, self.done = self.start.reference, self.done, []
        for trial in done:
            if trial.number <= self.recalled or now == before:
                self._learn(trial)
                continue
            if trial.ratio is not None:
                ratios = [throughput / now[level] for level, throughput in trial.throughput.items()]
                trial = replace(trial, ratio=geometric_mean(ratios))
            self._keep(trial)

    def _observe_start(self) -> None:
        for value in self.start.blocks():
            self.search.observe(Outcome(self.space.start, value))


def named(changes: Mapping[str, SettingValue]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in changes.items())


def trials_in(run: RunFolder) -> list[TuningTrial]:
    """The trials so far, continued runs' first; of two lines for one trial the later one."""
    return list({trial.number: trial for trial in run.records(TRIALS, TRIAL, TuningTrial)}.values())
