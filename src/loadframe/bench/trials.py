"""Try remedies one at a time, the most promising first, until one provably helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from loadframe.bench import sizing
from loadframe.bench.examination import Examined
from loadframe.bench.proof import judged_levels, level_ratios, look_around, operation_times, prove
from loadframe.bench.sizing import Applied
from loadframe.bench.sweep import FEWEST_BLOCKS, Bookkeeping
from loadframe.diagnosis import conclusion
from loadframe.diagnosis.findings import settle
from loadframe.diagnosis.remedies import propose
from loadframe.model import Finding, Limit, Remedy, Round, Step, TargetState, Trial, UntriedRemedy, Verdict

LAYERS = {"server": "target", "application": "target", "process": "process", "host": "host"}
"""The word in `remedies.allow` that permits changes in a layer."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A round after its remedies were tried; kept: the treatment and state to go on from, None where none helped."""

    round: Round
    kept: tuple[str, TargetState] | None


TOTAL_BLOCKS = 3
"""Two blocks have one degree of freedom: their interval says less of the whole gain than its proved parts do."""


def try_remedies(
    book: Bookkeeping, examined: Examined, already: set[str], note: Callable[[Round], None] = lambda one: None
) -> Tried:
    """Prove the remedies for a round's findings in turn. Stops at the first that is kept; those that give durability
    up, touch a layer that the study does not allow, cannot be applied or no longer fit into the budget are listed
    with the reason. `already`: ids of remedies that did not help before; grows. note: told of the round after each
    trial, so that nothing proved is lost."""
    one = examined.round
    kept: tuple[str, TargetState] | None = None
    for proposed in propose(one.findings, examined.situation):
        if proposed.id in already:
            continue
        because = _why_not(book, proposed, examined, kept is not None)
        if because is not None:
            one = _shown(one, proposed, because)
            continue
        try:
            applied = sizing.apply(book, examined, proposed, one.curve.points[-1].load)
        except sizing.UNFIT as error:
            one = _shown(one, proposed, f"the target cannot work with it: {error.fact}")
            already.add(proposed.id)
            book.bench.recover(one.treatment)
            continue
        levels = judged_levels(one.curve, examined.bend)
        trial, steps = _trial(book, one, applied, levels)
        one = replace(one, tried=(*one.tried, trial), findings=_judged(one.findings, applied, trial, steps))
        note(one)
        if trial.kept:
            kept = (applied.treatment, applied.state)
            one = replace(one, tried=(*one.tried[:-1], _beside(book, one, trial, levels)))
        else:
            already.add(proposed.id)
            book.bench.use(one.treatment)
    note(one)
    return Tried(one, kept)


def _shown(one: Round, remedy: Remedy, because: str) -> Round:
    return replace(one, untried=(*one.untried, UntriedRemedy(remedy, because)))


def _judged(findings: Sequence[Finding], applied: Applied, trial: Trial, steps: Sequence[Step]) -> tuple[Finding, ...]:
    """The findings after a trial. One whose limit was full again all the same is not refuted by it."""
    before = [step for step in steps if step.treatment == trial.treatment_before]
    after = [step for step in steps if step.treatment == trial.treatment_after]
    settled = []
    for finding in findings:
        status = conclusion.judge(finding, applied.remedy, trial.verdict, before, after)
        if status == "refuted" and applied.full is not None and applied.full.id == finding.id:
            status = finding.status
        settled.append(settle(finding, status))
    return tuple(settled)


def prove_total(book: Bookkeeping, rounds: Sequence[Round], last: str) -> Verdict | None:
    """After several kept remedies: the last state against the first one, in blocks of their own, at the levels of the
    first proof. None after fewer, or where the budget is used up: then the product of the single verdicts has to do."""
    kept = conclusion.kept_trials(rounds)
    if len(kept) < 2:
        return None
    levels = kept[0].verdict.levels
    if not book.budget.affords(2 * TOTAL_BLOCKS * levels):
        return None
    verdict, _, _ = prove(book, rounds[0].treatment, last, levels, round_number=len(rounds))
    return verdict if verdict.blocks >= TOTAL_BLOCKS else None


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
    proof = [examined.round.curve.points[-1].load, *(2 * FEWEST_BLOCKS * levels)]  # a step to size it, and two blocks
    if not book.budget.affords(proof, _afterwards_s(book, examined.round, levels, treatments=1)):
        return "too little of the budget is left to prove it; give measure.budget more time"
    return None


def _afterwards_s(book: Bookkeeping, one: Round, judged: Sequence[float], *, treatments: int) -> float:
    """Seconds to keep in hand, so that the state after a kept remedy (and the one before it, for two treatments) can be
    measured at the other levels, and after a second remedy be proved against the first state."""
    total = 2 * TOTAL_BLOCKS * list(judged) if one.number > 1 else []
    return book.budget.cost_s(treatments * FEWEST_BLOCKS * _other_levels(book, one, judged) + total)


def _trial(book: Bookkeeping, one: Round, applied: Applied, levels: Sequence[float]) -> tuple[Trial, list[Step]]:
    """A remedy's proof, and its steps."""
    remedy, name = applied.remedy, applied.treatment
    effective = book.bench.use(name)
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
    named = {change.setting for change in remedy.changes}
    price = replace(
        remedy.price,
        memory_before_bytes=_memory(steps, one.treatment),
        memory_after_bytes=_memory(steps, name),
    )
    trial = Trial(
        remedy=replace(remedy, price=price),
        verdict=verdict,
        kept=verdict.decision == "better" or cures,
        levels=ratios,
        effective={setting: value for setting, value in effective.items() if setting in named},
        treatment_before=one.treatment,
        treatment_after=name,
        note=_cure(conclusion.failed_share(before), conclusion.failed_share(after)) if cures else _full(applied.full),
        operations=operation_times(before, after),
    )
    return trial, steps


def _beside(book: Bookkeeping, one: Round, trial: Trial, judged: Sequence[float]) -> Trial:
    """A kept trial with the ratios at the other levels too."""
    before, after = trial.treatment_before, trial.treatment_after
    around = look_around(book, before, after, _other_levels(book, one, judged), round_number=one.number)
    ratios = (*trial.levels, *level_ratios(around, before, after))
    return replace(trial, levels=tuple(sorted(ratios, key=lambda row: row.load)))


def _other_levels(book: Bookkeeping, one: Round, judged: Sequence[float]) -> list[float]:
    """The study's levels and the two ends of the cliff, but for those that were judged already."""
    cliff = one.curve.cliff
    ends = (cliff.from_load, cliff.to_load) if cliff is not None else ()
    return sorted({*book.bench.study.levels, *ends} - set(judged))


def _cure(before: float, after: float) -> str:
    return f"requests that failed fell from {100 * before:.3g} % to {100 * after:.3g} %"


def _full(limit: Limit | None) -> str:
    if limit is None:
        return ""
    return f"{limit.title or limit.id} is full again at {limit.ceiling:,.6g}, and no more could be given to it"


def _memory(steps: Sequence[Step], treatment: str) -> float | None:
    values = [
        step.metrics["target.memory.rss"]
        for step in steps
        if step.treatment == treatment and "target.memory.rss" in step.metrics
    ]
    return fmean(values) if values else None
