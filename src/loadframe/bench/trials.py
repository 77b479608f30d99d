"""Try remedies one at a time, the most promising first, until one provably helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from loadframe.bench import sizing
from loadframe.bench.examination import Examined
from loadframe.bench.proof import judged_levels, level_ratios, look_around, operation_times, prove
from loadframe.bench.sweep import FEWEST_BLOCKS, Bookkeeping
from loadframe.diagnosis import conclusion
from loadframe.diagnosis.findings import settle
from loadframe.diagnosis.remedies import propose
from loadframe.errors import CageError, StudyError, TargetError
from loadframe.model import Remedy, Round, Step, TargetState, Trial, UntriedRemedy, Verdict

LAYERS = {"server": "target", "application": "target", "process": "process", "host": "host"}
"""The word in `remedies.allow` that permits changes in a layer."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A round after its remedies were tried; kept: the treatment and state to go on from, None where none helped."""

    round: Round
    kept: tuple[str, TargetState] | None


def try_remedies(book: Bookkeeping, examined: Examined, already: set[str]) -> Tried:
    """Prove the remedies for a round's findings in turn. Stops at the first that is kept; those that give durability
    up, touch a layer that the study does not allow, cannot be applied or no longer fit into the budget are listed
    with the reason. `already`: ids of remedies that did not help before; grows."""
    one = examined.round
    tried: list[Trial] = []
    untried: list[UntriedRemedy] = []
    kept: tuple[str, TargetState] | None = None
    findings = one.findings
    for proposed in propose(findings, examined.situation):
        if proposed.id in already:
            continue
        because = _why_not(book, proposed, examined, kept is not None)
        if because is not None:
            untried.append(UntriedRemedy(proposed, because))
            continue
        try:
            remedy, name, state = sizing.apply(book, examined, proposed, one.curve.points[-1].load)
        except (TargetError, CageError, StudyError) as error:
            untried.append(UntriedRemedy(proposed, f"it cannot be applied: {error.fact}"))
            already.add(proposed.id)
            book.bench.use(one.treatment)
            continue
        trial, steps = _trial(book, examined, remedy, name)
        tried.append(trial)
        before = [step for step in steps if step.treatment == one.treatment]
        after = [step for step in steps if step.treatment == name]
        findings = tuple(settle(f, conclusion.judge(f, remedy, trial.verdict, before, after)) for f in findings)
        if trial.kept:
            kept = (name, state)
        else:
            already.add(remedy.id)
    return Tried(replace(one, findings=findings, tried=tuple(tried), untried=tuple(untried)), kept)


def prove_total(book: Bookkeeping, rounds: Sequence[Round], last: str) -> Verdict | None:
    """After several kept remedies: the last state against the first one, in blocks of their own, at the levels of the
    first proof. None after fewer, or where the budget is used up: then the product of the single verdicts has to do."""
    kept = conclusion.kept_trials(rounds)
    if len(kept) < 2:
        return None
    levels = kept[0].verdict.levels
    if not book.budget.affords(2 * FEWEST_BLOCKS * levels):
        return None
    verdict, _, _ = prove(book, rounds[0].treatment, last, levels, round_number=len(rounds))
    return verdict


def _why_not(book: Bookkeeping, remedy: Remedy, examined: Examined, have_one: bool) -> str | None:
    """The reason why a remedy is shown, not tried; None where it may be tried."""
    study = book.bench.study
    if remedy.price.durability is not None and study.remedies.durability == "keep":
        return (
            f"it gives up durability ({remedy.price.durability}); "
            'the study says durability = "keep". With remedies.durability = "relax" it is tried'
        )
    for change in remedy.changes:
        if change.needed and LAYERS[change.layer] not in study.remedies.allow:
            return f"it changes {change.setting} ({change.layer}), which the study's remedies.allow does not name"
    if have_one:
        return "another remedy was kept first; what is left is measured anew in the next round"
    levels = judged_levels(examined.round.curve, examined.bend)
    if not book.budget.affords(2 * FEWEST_BLOCKS * levels, _afterwards_s(book, examined.round, levels, treatments=1)):
        return "the budget was used up; give measure.budget more time"
    return None


def _afterwards_s(book: Bookkeeping, one: Round, judged: Sequence[float], *, treatments: int) -> float:
    """Seconds to keep in hand, so that the state after a kept remedy (and the one before it, for two treatments) can be
    measured at the other levels, and after a second remedy be proved against the first state."""
    total = 2 * FEWEST_BLOCKS * list(judged) if one.number > 1 else []
    return book.budget.cost_s(treatments * FEWEST_BLOCKS * _other_levels(book, one, judged) + total)


def _trial(book: Bookkeeping, examined: Examined, remedy: Remedy, name: str) -> tuple[Trial, list[Step]]:
    one = examined.round
    effective = book.bench.use(name)
    levels = judged_levels(one.curve, examined.bend)
    verdict, ratios, steps = prove(
        book,
        one.treatment,
        name,
        levels,
        round_number=one.number,
        reserve_s=_afterwards_s(book, one, levels, treatments=2),
    )
    before = [step for step in steps if step.treatment == one.treatment]
    after = [step for step in steps if step.treatment == name]
    cures = verdict.decision != "worse" and conclusion.cures_failures(before, after)
    kept = verdict.decision == "better" or cures
    if kept:
        others = _other_levels(book, one, levels)
        around = look_around(book, one.treatment, name, others, round_number=one.number)
        ratios = tuple(sorted((*ratios, *level_ratios(around, one.treatment, name)), key=lambda row: row.load))
    else:
        book.bench.use(one.treatment)
    named = {change.setting for change in remedy.changes}
    price = replace(
        remedy.price,
        memory_before_bytes=_memory(steps, one.treatment),
        memory_after_bytes=_memory(steps, name),
    )
    trial = Trial(
        remedy=replace(remedy, price=price),
        verdict=verdict,
        kept=kept,
        levels=ratios,
        effective={setting: value for setting, value in effective.items() if setting in named},
        treatment_before=one.treatment,
        treatment_after=name,
        note=_cure(conclusion.failed_share(before), conclusion.failed_share(after)) if cures else "",
        operations=operation_times(before, after),
    )
    return trial, steps


def _other_levels(book: Bookkeeping, one: Round, judged: Sequence[float]) -> list[float]:
    """The study's levels and the two ends of the cliff, but for those that were judged already."""
    cliff = one.curve.cliff
    ends = (cliff.from_load, cliff.to_load) if cliff is not None else ()
    return sorted({*book.bench.study.levels, *ends} - set(judged))


def _cure(before: float, after: float) -> str:
    return f"requests that failed fell from {100 * before:.3g} % to {100 * after:.3g} %"


def _memory(steps: Sequence[Step], treatment: str) -> float | None:
    values = [
        step.metrics["target.memory.rss"]
        for step in steps
        if step.treatment == treatment and "target.memory.rss" in step.metrics
    ]
    return fmean(values) if values else None
