"""Prove the best settings of a search against the start, else the next best ones; further blocks measure the gain. And
the result of the search, as its record has it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from loadframe.analysis.sequential import ErrorBudget
from loadframe.bench.bookkeeping import FEWEST_BLOCKS
from loadframe.experiments import fresh
from loadframe.experiments.examination import clamped_in
from loadframe.experiments.proof import compared, prove
from loadframe.experiments.side_by_side import START
from loadframe.experiments.stopping import UNFIT
from loadframe.kinds import registry as targets
from loadframe.kinds.config_file import written
from loadframe.kinds.kind import KindOfTarget
from loadframe.model import SettingValue, Step, TargetState, by_block
from loadframe.study import Study
from loadframe_tune.model import SettingWorth, TunedSetting, Tuning, TuningEnd, TuningObjective, TuningProof
from loadframe_tune.search import Dimension, Point
from loadframe_tune.space import may_lose
from loadframe_tune.trials import Trials, objective_sides, objective_use

PROOF_ROUND = 3
"""The round of the first proof's steps; each further proof has the next."""
MOST_PROOFS = 3
ERROR = 0.05
"""Family-wise error of all proofs of a search: deciding where there is no difference."""


@dataclass(frozen=True, slots=True)
class Proof:
    """steps: those of its blocks, the fresh ones last. clamped: settings that the target reduced."""

    point: Point
    reported: TuningProof
    steps: tuple[Step, ...]
    clamped: tuple[str, ...]


def proved(trials: Trials, note: Callable[[Sequence[Proof]], None]) -> list[Proof]:
    """Proofs in turn, each of the most promising point, until one holds, none promises more than the start, or time is
    up: only the last may have held. Failed ones are reported to the search. A point with which the target fails in its
    proof or fresh blocks has a trial that says why. note: called with all proofs on every change. Their family-wise
    error is at most ERROR: each share depends on earlier proofs and time alone, and is spent once looked at."""
    error, tried, proofs = ErrorBudget(ERROR), list[Point](), list[Proof]()
    while not tried or (error.left and _another(trials, len(tried))):  # time for the first one was reserved
        point = trials.search.best(tried)
        if point == trials.space.start:
            break
        try:
            effective = trials.book.bench.use(trials.treatment(point))
        except UNFIT as unfit:
            trials.refuse(point, unfit.fact)
            tried.append(point)
            continue
        _, longest_s = trials.proof_s()
        level = error.level(last=not _another(trials, len(tried) + 1, longest_s))
        number = PROOF_ROUND + len(tried)
        tried.append(point)
        try:
            proof = _prove(trials, point, effective, level, round_number=number)
            if proof.reported.held:
                note([*proofs, proof])
                proof = _measured_again(trials, proof, round_number=number)
        except UNFIT as unfit:
            blocks = by_block(step for step in trials.book.steps if step.round == number)
            if len(blocks) >= FEWEST_BLOCKS:  # enough for an interval, though cut short
                error = error.after(level, decided=False)
            trials.refuse(point, f"in its proof, {unfit.fact}")
            note(proofs)
            continue
        proofs.append(proof)
        note(proofs)
        if proof.reported.held:
            break
        error = error.after(level, decided=proof.reported.verdict.decided)
        _learn(trials, proof)
    return proofs


def _another(trials: Trials, done: int, after_s: float = 0.0) -> bool:
    least, _ = trials.proof_s()
    return done < MOST_PROOFS and trials.book.budget.left_s() - after_s >= least


def _prove(
    trials: Trials, point: Point, effective: Mapping[str, SettingValue], level: float, *, round_number: int
) -> Proof:
    """Intervals are at 1 - level, and decide whether it is better; fresh blocks measure by how much."""
    book, name, levels = trials.book, trials.treatment(point), sorted(trials.levels)
    changes, expected = trials.space.changes(point), trials.search.expected_gain(point)
    ((proved, taken),) = prove(book, [(START, name)], levels, round_number=round_number, confidence=1 - level)
    objective = _objective(trials, name, taken)
    proof = TuningProof(changes, expected, objective, verdict=proved.verdict, levels=proved.levels)
    proof = replace(proof, verdict=replace(proved.verdict, may_overstate=proof.held))
    return Proof(point, proof, tuple(taken), clamped_in(TargetState(changes, {}), effective))


def _measured_again(trials: Trials, proof: Proof, *, round_number: int) -> Proof:
    """What fresh blocks prove worse, or to miss the objective, has not held."""
    book, name, known = trials.book, trials.treatment(proof.point), proof.reported.verdict
    blocks = fresh.wanted([known], book.bench.study.measure.blocks.max)
    steps = fresh.measure_again(
        book, START, name, sorted(trials.levels), blocks, round_number=round_number, done=known.blocks
    )
    if not steps:
        return proof
    again, objective = compared(steps, START, name), _objective(trials, name, steps)
    reported = replace(proof.reported, fresh=again.verdict, levels=again.levels, objective=objective)
    return replace(proof, reported=reported, steps=(*proof.steps, *steps))


def _objective(trials: Trials, name: str, steps: Sequence[Step]) -> TuningObjective | None:
    before, after = ([step for step in steps if step.treatment == treatment] for treatment in (START, name))
    return objective_sides(trials.objective, trials.levels, before, after)


def _learn(trials: Trials, proof: Proof) -> None:
    objective = proof.reported.objective
    missed = objective is not None and not objective.met
    use = objective_use(trials.objective, [step for step in proof.steps if step.treatment != START])
    for block in by_block(proof.steps).values():
        start = [step for step in block if step.treatment == START]
        if all(step.throughput > 0 for step in start):
            trials.observe(trials.space.start, start)
        trials.observe(proof.point, [step for step in block if step.treatment != START], missed=missed, use=use)


# --- the result ---

NORMAL = 1.96
"""Standard deviations of a normal 95 % interval."""


def answer(
    trials: Trials, left_out: Mapping[str, str], findings: tuple[str, ...], proofs: Sequence[Proof], ended: bool = False
) -> Tuning:
    """The result, from what the search has measured at the time of the call. left_out, findings: as in Tuning. proofs:
    of which only the last may have held; the first one was that of the best settings. ended: none follows."""
    study, best = trials.book.bench.study, trials.space.start
    expected = trials.search.expected_gain(best)
    objective = objective_sides(trials.objective, trials.levels, trials.start.steps, ())
    failed, chosen = list(proofs), None
    end: TuningEnd = "nothing-better" if ended else "stopped"
    if proofs and proofs[-1].reported.held:
        chosen, end = failed.pop(), "gained"
    elif proofs and ended:
        chosen, end = proofs[0], "no-proven-gain"
    if chosen is not None:
        best, expected, objective = chosen.point, chosen.reported.expected, chosen.reported.objective
    settings = [_setting(study, *dimension) for dimension in zip(trials.space.dimensions, best, strict=True)]
    if end != "stopped":
        worths = zip(settings, trials.space.dimensions, trials.search.worth(best), strict=True)
        settings = [replace(setting, worth=_worth(dimension, *worth)) for setting, dimension, worth in worths]
    tuning = Tuning(
        end=end,
        axis=study.load.axis,
        axis_unit=trials.book.bench.axis_unit,
        target_kind=study.target.kind,
        settings=tuple(settings),
        trials=tuple(trials.done),
        expected=expected,
        left_out=left_out,
        file_name="",
        file_text="",
        findings=findings,
        proof=chosen.reported if chosen else None,
        failed_proofs=tuple(attempted.reported for attempted in failed),
        objective=objective,
        warnings=(*trials.notes, *(chosen.clamped if chosen else ())),
    )
    return with_file(tuning, targets.of_study(study))


def with_file(tuning: Tuning, row: KindOfTarget | None) -> Tuning:
    """The result with its proven settings as a file for that kind, computed here and never taken from a record; empty
    where the kind is not available (None). StudyError for settings that no such target has."""
    if tuning.end != "gained" or row is None:
        return replace(tuning, file_name="", file_text="")
    changed = {setting.name: setting.after for setting in tuning.settings if setting.after != setting.before}
    row.check_settings(changed)
    name, text = written(row, changed)
    return replace(tuning, file_name=name, file_text=text)


def _worth(dimension: Dimension, place: int, gain: float, spread: float) -> SettingWorth:
    low, high = (math.exp(gain + sign * NORMAL * spread) for sign in (-1, 1))
    return SettingWorth(dimension.values[place], math.exp(gain), low, high)


def _setting(study: Study, dimension: Dimension, place: int) -> TunedSetting:
    row = targets.of_study(study)
    spec = row.setting(dimension.name)
    assert spec is not None, "only settings of the catalogue are varied"
    after = dimension.values[place]
    loses = place != dimension.start and may_lose(row, dimension.name, after)
    return TunedSetting(
        name=dimension.name,
        before=dimension.values[dimension.start],
        values=dimension.values,
        after=after,
        restart=not spec.dynamic or (spec.sized_at_start and not study.target.is_running),
        gives_up=spec.gives_up if loses else None,
    )
