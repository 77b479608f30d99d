"""The search for settings on a real target: what may be varied, trial after trial, and the proof of the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, geometric_mean

from loadframe.bench import tuning_writing, within
from loadframe.bench.attached import is_dynamic
from loadframe.bench.beside import START
from loadframe.bench.examination import Examined, cuts
from loadframe.bench.proof import judged_levels, prove
from loadframe.bench.sizing import UNFIT
from loadframe.bench.sweep import FEWEST_BLOCKS, Bookkeeping, measure_block
from loadframe.diagnosis.remedies import propose
from loadframe.errors import RunError, StudyError
from loadframe.model import (
    CLIENT_AXES,
    CapacityObjective,
    SettingValue,
    SettingWorth,
    Step,
    TargetState,
    TunedSetting,
    Tuning,
    TuningEnd,
    TuningTrial,
)
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.study.declaration import TuneRange
from loadframe.targets import registry as targets
from loadframe.targets.settings_file import written
from loadframe.targets.tunable import TUNABLES, Tunable, tunable
from loadframe.tuning.search import Outcome, Proposal, Search
from loadframe.tuning.space import Dimension, Point, Space, dimension, spread

TRIALS_ROUND, PROOF_ROUND = 2, 3
"""The rounds of the steps; the first one is the curve of the start."""
MEMORY_SHARE = 0.8
"""Of the cage's or the machine's memory, what the settings may take together: the rest is for everything else."""
LARGEST_SHARE = 0.5
"""Of it, what a single setting may take: as for a remedy that enlarges one."""
HOPELESS = 0.7
"""A trial below this share of the best one so far at its first level is not measured at the other one."""
PROOF_SHARE = 0.3
"""Of the budget, what is kept for the proof where as many blocks as the study allows would take more."""
USUAL_CONNECTIONS = 151
NORMAL = 1.96
"""Standard deviations of a normal 95 % interval."""


@dataclass(frozen=True, slots=True)
class Varied:
    """What is searched. left_out: settings of the target's table that are not, and why."""

    space: Space
    left_out: Mapping[str, str]


def check(study: Study) -> None:
    """StudyError where there is nothing to vary, or where the study asks for what it does not allow."""
    kind = study.target.kind
    if kind not in TUNABLES or study.target.shards is not None:
        raise StudyError(
            f"nothing is known of a {study.target.form} that could be tuned",
            remedy=f"`tune` works on one server of kind {', '.join(sorted(TUNABLES))}.",
        )
    for name in study.tune.settings:
        _row(study, name)


def vary(study: Study, effective: Mapping[str, SettingValue], memory_bytes: float, first: Sequence[str]) -> Varied:
    """The space: what the study names, or the target's table; settings in `first` come first. effective: what the
    target uses at the start. memory_bytes: of its cage or the machine. StudyError where nothing is left to vary."""
    kind = study.target.kind
    connections = _connections(study, effective)
    named = list(study.tune.settings) or [row.name for row in TUNABLES[kind]]
    names = sorted(named, key=lambda name: first.index(name) if name in first else len(first))
    dimensions: list[Dimension] = []
    left_out: dict[str, str] = {}
    for name in names:
        row = _row(study, name)
        if row.name not in effective:
            left_out[name] = "the target does not say what it uses"
            continue
        if study.target.attach is not None and not is_dynamic(kind, row.name):
            left_out[name] = "it needs a restart, and the server is not ours"
            continue
        values = [*_values(row, memory_bytes), *(row.relaxed if study.remedies.durability == "relax" else ())]
        start = effective[row.name]
        ordered = not isinstance(start, str)
        each = row.unit_bytes * (connections if row.per == "connection" else 1)
        try:
            dimensions.append(dimension(row.name, values, start, ordered=ordered, bytes_each=each))
        except ValueError:
            left_out[name] = "every other value gives durability up" if row.relaxed else "it has one value"
    if not dimensions:
        raise StudyError(
            "no setting is left that could be varied: " + "; ".join(f"{name}: {why}" for name, why in left_out.items()),
            remedy="Name others in tune.settings.",
        )
    return Varied(Space(tuple(dimensions), MEMORY_SHARE * memory_bytes), left_out)


def _row(study: Study, name: str) -> Tunable:
    """How far a setting may be varied: as the study says, else as the table does."""
    kind, asked = study.target.kind, study.tune.settings
    canonical = name.strip().lower().replace("-", "_")
    row, spec = tunable(kind, canonical), targets.setting(kind, canonical)
    given = asked[name] if isinstance(asked, dict) else []
    if spec is None:
        raise StudyError(
            f"tune.settings: {kind} has no setting {name!r} that is known well enough to vary it",
            remedy=f"Known: {', '.join(each.name for each in TUNABLES[kind])}.",
        )
    if not given:
        if row is None:
            raise StudyError(
                f"tune.settings.{name}: it is not known how far it may be varied",
                remedy=f"Give its values, for instance {name} = [{spec.default!r}, ...], or {{ from = .., to = .. }}.",
            )
        return row
    ends = [given.low, given.high] if isinstance(given, TuneRange) else given
    checked = [targets.check_settings(kind, {canonical: value})[canonical] for value in ends]
    losing = [value for value in checked if _may_lose(kind, canonical, value)]
    if losing and study.remedies.durability == "keep":
        raise StudyError(
            f"tune.settings.{name}: {losing[0]!r} may give up durability ({spec.gives_up})",
            remedy='Leave it out, or set remedies.durability = "relax".',
        )
    unit, per = (row.unit_bytes, row.per) if row is not None else (0.0, "server")
    if not isinstance(given, TuneRange):
        return Tunable(canonical, tuple(checked), unit_bytes=unit, per=per)
    low, high = (value for value in checked)
    if isinstance(low, str) or isinstance(high, str) or not low < high:
        raise StudyError(
            f"tune.settings.{name}: {given.low!r} to {given.high!r} is no range", remedy="Give numbers that rise."
        )
    return Tunable(canonical, spread(low, high, whole=spec.kind != "number"), unit_bytes=unit, per=per)


def _may_lose(kind: str, name: str, value: SettingValue) -> bool:
    """Whether durability may be given up with a value: with every one that is not known to keep it."""
    row, spec = tunable(kind, name), targets.setting(kind, name)
    assert spec is not None, "only settings of the catalogue are varied"
    safe = (spec.default, *(row.values if row is not None else ()))
    return spec.gives_up is not None and value not in safe


def _values(row: Tunable, memory_bytes: float) -> tuple[SettingValue, ...]:
    if row.values:
        return row.values
    high = LARGEST_SHARE * memory_bytes if row.high is None else row.high
    return spread(row.low, max(high, row.low))


def _connections(study: Study, effective: Mapping[str, SettingValue]) -> float:
    if study.load.axis in CLIENT_AXES:
        return study.levels[-1]
    return float(effective.get("max_connections", USUAL_CONNECTIONS))


# --- the search -------------------------------------------------------------------------------------------------------


@dataclass
class _Tuner:
    """One search. levels: those that every trial is judged at, the highest first. names: points with a treatment.
    reference: throughput of the start at each level. objective: what is asked besides; start_use: how much of it the
    start uses."""

    book: Bookkeeping
    run: RunFolder
    space: Space
    search: Search
    levels: tuple[float, ...]
    state: TargetState
    reference: dict[float, float]
    objective: CapacityObjective | None = None
    start_use: float = 0.0
    trials: list[TuningTrial] = field(default_factory=list)
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
        number = len(self.trials) + 1
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
        self.trials.append(trial)
        self.run.append_line("trials.jsonl", "tuning-trial", trial)

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


def tune(
    book: Bookkeeping,
    run: RunFolder,
    examined: Examined,
    *,
    trials: int,
    memory_bytes: float,
    earlier: Sequence[TuningTrial] = (),
) -> Tuning:
    """Search from the state that the study declares, as far as trials and budget go, and prove the best. examined: its
    first curve, from which the search learns what is worth trying first. earlier: trials of a run to go on from."""
    study, one = book.bench.study, examined.round
    remedies = [
        {change.setting: change.after for change in remedy.changes if change.layer == "server" and change.needed}
        for remedy in propose(one.findings, examined.situation)
        if remedy.price.durability is None or study.remedies.durability == "relax"
    ]
    first = list(dict.fromkeys(name for remedy in remedies for name in remedy))
    varied = vary(study, one.effective, memory_bytes, first)
    asked, start = within.asked(study), book.of(START)
    curve = one.curve if asked is None else within.loads_within(one.curve, start, asked)
    levels = tuple(reversed(judged_levels(curve, examined.bend)))
    search = Search(varied.space, tries=[each for each in remedies if each], seed=book.random.randrange(2**32))
    tuner = _Tuner(
        book,
        run,
        varied.space,
        search,
        levels,
        one.state,
        reference={level: _level(start, level) for level in levels},
        objective=asked,
        start_use=within.used(asked, [step for step in start if step.level in levels]) or 0.0,
        names={varied.space.start: START},
    )
    for value in _starts(tuner):
        search.observe(Outcome(varied.space.start, value))
    for trial in earlier:
        _recall(tuner, trial)
    findings = tuple(finding.title for finding in one.findings)
    tuning_writing.save(run, _found(tuner, varied, findings, best=varied.space.start, end="stopped"))
    _search(tuner, trials)
    return _conclude(tuner, varied, findings)


def measure_start(book: Bookkeeping) -> None:
    """The start at the study's levels, in the fewest blocks."""
    levels = book.bench.study.levels
    book.progress.phase(f"measuring {len(levels)} levels as given", len(levels) * FEWEST_BLOCKS)
    for block in range(1, FEWEST_BLOCKS + 1):
        measure_block(book, START, levels, block, round_number=1)


def _search(tuner: _Tuner, most: int) -> None:
    book = tuner.book
    left = max(0, most - len(tuner.trials))
    book.progress.phase(f"up to {left} trials of {len(tuner.space.dimensions)} settings", left * len(tuner.levels))
    while len(tuner.trials) < most and book.budget.affords(tuner.levels, _proof_s(book, tuner.levels)):
        tuner.take(tuner.search.propose())


def _proof_s(book: Bookkeeping, levels: Sequence[float]) -> float:
    """Seconds to keep for the proof."""
    blocks = book.bench.study.measure.blocks
    least, most = (book.budget.cost_s(2 * count * list(levels)) for count in (blocks.min, blocks.max))
    return max(least, min(most, PROOF_SHARE * book.budget.total_s))


def _starts(tuner: _Tuner) -> list[float]:
    """What each block of the start says of itself: the noise that there is."""
    steps = [step for step in tuner.book.of(START) if step.level in tuner.levels and step.throughput > 0]
    blocks = sorted({step.block for step in steps})
    return [tuner.value([step for step in steps if step.block == block]) for block in blocks]


def _level(steps: Sequence[Step], level: float) -> float:
    mine = [step.throughput for step in steps if step.level == level and step.throughput > 0]
    if not mine:
        raise RunError(f"as given, no request is served at {level:g}", remedy="Lower the load, or mend the settings.")
    return geometric_mean(mine)


def _recall(tuner: _Tuner, trial: TuningTrial) -> None:
    """A trial of an earlier run; one of settings that are not varied any more says nothing here."""
    known = {each.name: each.values for each in tuner.space.dimensions}
    if any(name not in known or value not in known[name] for name, value in trial.changes.items()):
        return
    tuner.add(trial)


def _conclude(tuner: _Tuner, varied: Varied, findings: tuple[str, ...]) -> Tuning:
    """The best of the trials, proved in fresh blocks where it is not the start."""
    book, space = tuner.book, tuner.space
    study, best = book.bench.study, tuner.search.best()
    if best == space.start:
        return _found(tuner, varied, findings, best=best, end="nothing-better")
    name = tuner.treatment(best)
    effective = book.bench.use(name)
    verdict, ratios, taken = prove(book, START, name, sorted(tuner.levels), round_number=PROOF_ROUND)
    found = _found(tuner, varied, findings, best=best, end="no-proven-gain", proof=taken)
    found = replace(
        found,
        verdict=verdict,
        levels=ratios,
        warnings=cuts(study.target.kind, TargetState(space.changes(best), {}), effective),
    )
    if verdict.decision != "better" or not (found.objective is None or found.objective.met):
        return found
    file_name, text = written(study.target.kind, space.changes(best))
    return replace(found, end="gained", file_name=file_name, file_text=text)


def _found(
    tuner: _Tuner, varied: Varied, findings: tuple[str, ...], *, best: Point, end: TuningEnd, proof: Sequence[Step] = ()
) -> Tuning:
    """What the search found, without a verdict. proof: the fresh blocks."""
    book, study = tuner.book, tuner.book.bench.study
    before = [step for step in proof or book.of(START) if step.treatment == START]
    after = [step for step in proof if step.treatment != START]
    worth = tuner.search.worth(best)
    return Tuning(
        end=end,
        axis=study.load.axis,
        axis_unit=book.bench.axis_unit,
        target_kind=study.target.kind,
        settings=tuple(
            replace(_setting(study, each, place), worth=None if end == "stopped" else _worth(each, *told))
            for each, place, told in zip(tuner.space.dimensions, best, worth, strict=True)
        ),
        trials=tuple(tuner.trials),
        expected=tuner.search.expected_gain(best),
        verdict=None,
        levels=(),
        left_out=varied.left_out,
        file_name="",
        file_text="",
        findings=findings,
        objective=within.shown(tuner.objective, tuner.levels, before, after),
    )


def _worth(each: Dimension, place: int, gain: float, spread: float) -> SettingWorth:
    low, high = (math.exp(gain + sign * NORMAL * spread) for sign in (-1, 1))
    return SettingWorth(each.values[place], math.exp(gain), low, high)


def _setting(study: Study, each: Dimension, place: int) -> TunedSetting:
    spec = targets.setting(study.target.kind, each.name)
    assert spec is not None, "only settings of the catalogue are varied"
    after = each.values[place]
    loses = place != each.start and _may_lose(study.target.kind, each.name, after)
    return TunedSetting(
        name=each.name,
        before=each.values[each.start],
        values=each.values,
        after=after,
        restart=study.target.attach is None and (not spec.dynamic or spec.sized_at_start),
        gives_up=spec.gives_up if loses else None,
    )
