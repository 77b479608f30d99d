"""Try remedies one at a time, the most promising first, until one provably helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from loadframe.bench.examination import Examined
from loadframe.bench.proof import MOST_LEVELS, judged_levels, operation_times, prove
from loadframe.bench.sweep import FEWEST_BLOCKS, Bookkeeping
from loadframe.diagnosis import conclusion
from loadframe.diagnosis.findings import settle
from loadframe.diagnosis.remedies import propose, state_after
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
    for remedy in propose(findings, examined.situation):
        if remedy.id in already:
            continue
        because = _why_not(book, remedy, examined, kept is not None)
        if because is not None:
            untried.append(UntriedRemedy(remedy, because))
            continue
        state = state_after(one.state, remedy)
        name = book.next_treatment(remedy.title, state)
        try:
            book.bench.use(name)
        except (TargetError, CageError, StudyError) as error:
            untried.append(UntriedRemedy(remedy, f"it cannot be applied: {error.fact}"))
            already.add(remedy.id)
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
    if not book.budget.affords(2 * len(levels) * FEWEST_BLOCKS):
        return None
    verdict, _, _ = prove(book, rounds[0].treatment, last, levels, round_number=len(rounds), reserve_steps=0)
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
    levels = len(judged_levels(examined.round.curve, examined.bend))
    if not book.budget.affords(2 * levels * FEWEST_BLOCKS, _sweep_reserve(book)):
        return "the budget was used up; give measure.budget more time"
    return None


def _sweep_reserve(book: Bookkeeping) -> int:
    """Steps to keep in hand, so that the state after a kept remedy can be measured, and proved against the first."""
    study = book.bench.study
    return len(study.levels) * FEWEST_BLOCKS + 2 * MOST_LEVELS * FEWEST_BLOCKS


def _trial(book: Bookkeeping, examined: Examined, remedy: Remedy, name: str) -> tuple[Trial, list[Step]]:
    one = examined.round
    effective = book.bench.use(name)
    verdict, ratios, steps = prove(
        book,
        one.treatment,
        name,
        judged_levels(one.curve, examined.bend),
        round_number=one.number,
        reserve_steps=_sweep_reserve(book),
    )
    before = [step for step in steps if step.treatment == one.treatment]
    after = [step for step in steps if step.treatment == name]
    cures = verdict.decision != "worse" and conclusion.cures_failures(before, after)
    kept = verdict.decision == "better" or cures
    if not kept:
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


def _cure(before: float, after: float) -> str:
    return f"requests that failed fell from {100 * before:.3g} % to {100 * after:.3g} %"


def _memory(steps: Sequence[Step], treatment: str) -> float | None:
    values = [
        step.metrics["target.memory.rss"]
        for step in steps
        if step.treatment == treatment and "target.memory.rss" in step.metrics
    ]
    return fmean(values) if values else None
