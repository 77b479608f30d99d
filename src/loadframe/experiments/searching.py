"""The capacity search on a real target: each trial is a step in the run folder; disturbed steps are repeated."""

from dataclasses import dataclass, field, replace

from loadframe.analysis import objective as objectives
from loadframe.analysis.capacity import CapacitySearch, Outcome, Proposal, Settings
from loadframe.analysis.disturbance import VOIDING, is_disturbed
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.errors import StudyError, TargetError, WorkloadError
from loadframe.model import (
    OPEN_LOOP_AXES,
    TOO_FEW,
    Capacity,
    CapacityObjective,
    CapacityTrial,
    LoadInterval,
    Step,
    StepRequest,
    Steps,
)
from loadframe.prediction import resources
from loadframe.prediction.forecasting import expected
from loadframe.study import Study

TREATMENT = "A"
ERROR = 0.05
SHORTEST_WINDOW_S = 0.3
USUAL_TRIALS = 25
"""Length of the progress bar, from benchmarks/search.py."""
OF_THE_DRIVER = {
    "driver-limited": "driver.limited: at {} the load driver was the bottleneck, so the capacity may be the driver's.",
    "driver-beside": "driver.beside: at {} the load driver had a quarter or more of the CPUs that the target was short "
    "of, so the capacity is that of both together.",
}


def objective_of(study: Study) -> CapacityObjective:
    within = study.objective.within
    if study.load.axis not in OPEN_LOOP_AXES and not within.asks:
        raise StudyError(
            f"the study {study.study.name} has no objective that a higher {study.load.axis} could miss",
            remedy="Say what still meets it, for example [objective] within = { latency_p95_ms = 50 }.",
        )
    loss_ratio = objectives.LOSS_RATIO if within.loss_ratio is None else within.loss_ratio
    return CapacityObjective(loss_ratio, within.latency_p95_ms, within.latencies_ms, within.error_ratio)


def asked_of_settings(study: Study) -> CapacityObjective | None:
    """What is asked of every level besides throughput; None for nothing."""
    within = study.objective.within
    if not within.asks:
        return None
    return CapacityObjective(within.loss_ratio, within.latency_p95_ms, within.latencies_ms, within.error_ratio)


def settings_of(study: Study, *, hold_s: float = 0.0, guess: LoadInterval | None = None) -> Settings:
    """StudyError where the study's lowest and highest level are the same."""
    low, high = study.levels[0], study.levels[-1]
    if low == high:
        raise StudyError(
            f"load.levels are {low:g} alone; a capacity is searched between two levels",
            remedy="For example levels = { from = 50, to = 5000, count = 2 }.",
        )
    return Settings(
        low=low,
        high=high,
        precision=study.measure.precision,
        error=ERROR,
        trial_s=study.measure.window,
        hold_s=hold_s,
        guess=guess,
    )


@dataclass
class _Finder:
    book: Bookkeeping
    objective: CapacityObjective
    search: CapacitySearch
    trials: list[CapacityTrial] = field(default_factory=list)
    met: list[Step] = field(default_factory=list)
    expected: LoadInterval | None = None

    @property
    def open_loop(self) -> bool:
        return self.book.bench.study.load.axis in OPEN_LOOP_AXES

    def run(self) -> None:
        while (trial := self.search.propose()) is not None:
            if not self.book.budget.affords([trial.load]):
                break
            done = self._try(trial)
            self.trials.append(done)
            how = f"met ({done.throughput:,.0f}/s)" if done.met else done.missed
            note = f"; {done.note}" if done.note else ""
            unit = self.book.bench.axis_unit
            self.book.progress.say(f"{done.load:g} {unit}, {done.seconds:.2g} s: {how}{note}")
            if done.met and not done.counted and not trial.recovery:
                break  # the budget has no window that is long enough
            if done.counted or trial.recovery:
                self.search.observe(Outcome(done.met, done.seconds, done.throughput))
            if done.counted and done.met:
                self._expect()

    def _expect(self) -> None:
        """Only once: a server that takes less for a request the busier it is would be followed in small steps."""
        if (self.search.settings.guess or self.expected) is not None or any(not trial.met for trial in self.trials):
            return
        study = self.book.bench.study
        observed = resources.observe(self.met, name=study.study.name, axis=study.load.axis)
        capacity = expected(observed, latency_p95_ms=self.objective.latency_p95_ms)
        if capacity is not None:
            self.expected = capacity
            self.search.expect(capacity)
            unit = self.book.bench.axis_unit
            self.book.progress.say(
                f"forecast from here: {capacity.load:.3g} {unit} ({capacity.low:.3g} to {capacity.high:.3g})"
            )

    def _try(self, proposal: Proposal) -> CapacityTrial:
        if proposal.restart:
            self.book.progress.say("the target did not recover: starting it again")
            self.book.bench.recover(TREATMENT)
        try:
            step = self._step(proposal)
        except (TargetError, WorkloadError) as error:
            if not self.book.steps:
                raise
            failed = f"the target failed: {error.fact}"
            self.book.progress.say(f"at {proposal.load:g} {failed}")
            self.book.bench.recover(TREATMENT)
            return CapacityTrial(
                step=0,
                load=proposal.load,
                seconds=proposal.seconds,
                missed=failed,
                throughput=0.0,
                offered=None,
                latency_p95_ms=0.0,
                ended_early=True,
                counted=not proposal.recovery,
            )
        trial = self._trial(step, proposal)
        if TOO_FEW in step.flags and trial.counted and trial.met:  # one that misses with so few is overloaded
            return replace(trial, counted=False, note="too few requests or response times in it to decide anything")
        if trial.met and trial.counted:
            self.met.append(step)
        if trial.met or proposal.recovery or not is_disturbed(step, self.book.steps):
            return trial
        # A disturbance only makes a target slower: a trial that meets despite one does meet. What every trial at a load
        # has is no disturbance, so the next one counts unless it has more still.
        self.book.repeated += 1
        flags = ", ".join(sorted(VOIDING.intersection(step.flags)))
        return replace(trial, counted=False, note=f"the machine was disturbed ({flags}): made again")

    def _step(self, proposal: Proposal) -> Step:
        waiting = objectives.most_waiting(proposal.load, proposal.seconds) if self.open_loop else None
        return self.book.once(
            StepRequest(
                TREATMENT,
                proposal.load,
                1,
                len(self.trials) + 1,
                window_s=max(min(proposal.seconds, self.book.budget.left_s()), SHORTEST_WINDOW_S),
                most_waiting=waiting,
                purpose="trial",
            )
        )

    def _trial(self, step: Step, proposal: Proposal) -> CapacityTrial:
        return CapacityTrial(
            step=step.number,
            load=step.level,
            seconds=step.ended_s - step.started_s,
            missed=objectives.missed(self.objective, step),
            throughput=step.throughput,
            offered=step.metrics.get("workload.offered"),
            latency_p95_ms=step.latency.p95_ms,
            ended_early="ended-early" in step.flags,
            counted=not proposal.recovery,
            note="to see the target recover" if proposal.recovery else "",
        )


def find(book: Bookkeeping, settings: Settings, objective: CapacityObjective) -> Capacity:
    study = book.bench.study
    finder = _Finder(book, objective, CapacitySearch(settings))
    book.progress.phase(f"searching {study.load.axis} {settings.low:g} to {settings.high:g}", USUAL_TRIALS)
    finder.run()
    search, trials = finder.search, finder.trials
    load = None if search.end == "below-range" else search.estimate
    total = sum(trial.seconds for trial in trials)
    above = sum(trial.seconds for trial in trials if load is None or trial.load > load)
    return Capacity(
        axis=study.load.axis,
        axis_unit=book.bench.axis_unit,
        objective=objective,
        end=search.end,
        load=load,
        low=search.low,
        high=search.high,
        error_probability=search.error_probability,
        precision=settings.precision,
        held_s=search.held_s,
        load_seconds=total,
        seconds_above_share=above / total if total else 0.0,
        open_loop=finder.open_loop,
        expected=settings.guess or finder.expected,
        levels=tuple(search.known()),
        trials=tuple(trials),
        warnings=tuple(_warnings(search, book.steps)),
    )


def _warnings(search: CapacitySearch, steps: Steps) -> list[str]:
    warnings = []
    if search.propose() is not None:
        warnings.append("The budget ended before the search did: give measure.budget more time.")
    decisive = {load for load in (search.low, search.high) if load is not None}
    for flag, words in OF_THE_DRIVER.items():
        levels = sorted({step.level for step in steps if flag in step.flags and step.level in decisive})
        if levels:
            warnings.append(words.format(", ".join(f"{level:g}" for level in levels)))
    return warnings
