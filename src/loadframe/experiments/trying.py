"""One remedy against the state before it: made large enough, proved, measured again if kept, and judged. If a raised
limit is full again at the highest load, a trial would judge the size, not the cause."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from loadframe.bench.bookkeeping import ERROR, FEWEST_BLOCKS, Bookkeeping
from loadframe.diagnosis import judging
from loadframe.diagnosis.findings import is_overrun
from loadframe.diagnosis.operational import OPERATIONAL, served_at_once
from loadframe.diagnosis.remedies import resized, state_after
from loadframe.diagnosis.sizes import SERVED_AT_ONCE
from loadframe.errors import NotRecovered
from loadframe.experiments import fresh
from loadframe.experiments.examination import Examined
from loadframe.experiments.frame import looked_at
from loadframe.experiments.fresh import Unloaded, measure_unloaded
from loadframe.experiments.profiling import receded, with_collector
from loadframe.experiments.proof import Proof, compared, level_ratios, look_around, operation_times, prove, tail_price
from loadframe.experiments.stopping import UNFIT, note_fall
from loadframe.experiments.sweep import curve_of
from loadframe.ledger.reading import read_limits
from loadframe.ledger.rules import rules_for
from loadframe.model import Limit, Remedy, Round, Step, StepRequest, Steps, TargetState, Trial, Verdict, of_treatment
from loadframe.units import show

NO_ERROR = f"the {100 * ERROR:.0f} % of error that all remedies of an investigation share are spent"
FIRST = 1 - ERROR
"""Confidence of the first remedy's interval, whose lower end spends half of the error that all share."""
NOT_MORE = "faster requests may have given the gain: the response time at the lowest load is not known well enough"
FAIL_AGAIN = "in fresh blocks it is not proved again that fewer requests fail"
FURTHER = 4.0
MOST_SIZES = 4
"""After 4^3 times the first estimate, size is not the cause."""


@dataclass(frozen=True, slots=True)
class Applied:
    remedy: Remedy
    treatment: str
    state: TargetState
    full: Limit | None


def apply(book: Bookkeeping, examined: Examined, remedy: Remedy) -> Applied:
    """A raised silent limit is tested by a step at the highest load, and raised further while it is full again. Raises
    one of UNFIT, leaving the state unknown."""
    round_ = examined.round
    silent = {limit.id for limit in round_.limits if limit.thrash_metric and not limit.loud}
    applied: Applied | None = None
    for _ in range(MOST_SIZES):
        state = state_after(round_.state, remedy)
        name, full = book.next_treatment(remedy.title, state, remedy=remedy), None
        try:
            book.bench.use(name)
            if silent.intersection(remedy.addresses):
                step = book.take(StepRequest(name, round_.curve.points[-1].load, round_.number, purpose="sizing"))
                rules = rules_for(book.bench.study.target.limit, [step])
                limits = [series.limit for series in read_limits([step], state, book.bench.use(name), rules)]
                full = next(
                    (limit for limit in limits if limit.id in remedy.addresses and is_overrun(limit, step)), None
                )
        except UNFIT:
            if applied is None:
                raise
            book.bench.recover(applied.treatment)
            break
        applied = Applied(remedy, name, state, full)
        larger = resized(remedy, examined.situation, full.id, FURTHER * full.ceiling) if full is not None else None
        if larger is None or larger.changes == remedy.changes:
            break
        remedy = larger
    assert applied is not None, "the first size is applied, or raises"
    return applied


@dataclass(frozen=True, slots=True)
class Attempt:
    """promising: these blocks prove a gain, or that failures ended; fresh ones (`again`) decide. holds: see
    held_at_the_fall. unloaded: the lowest level, where a remedy is for requests served at once. collecting: garbage
    collector CPUs by treatment, where it is for these."""

    applied: Applied
    trial: Trial
    steps: tuple[Step, ...]
    after: Examined
    promising: bool = False
    holds: bool = False
    again: tuple[Step, ...] = ()
    unloaded: Unloaded = field(default_factory=Unloaded)
    collecting: Mapping[str, float] = field(default_factory=dict)

    @property
    def in_series(self) -> tuple[str, ...]:
        """Causes that limit the state with the remedy and that it does not address, without operational ones."""
        own = OPERATIONAL.union(self.applied.remedy.addresses)
        return tuple(finding.id for finding in self.after.round.findings if finding.id not in own)


def attempt(book: Bookkeeping, examined: Examined, applied: Applied) -> Attempt:
    """Prove a remedy. Without fresh blocks it is kept where failures ended, or it clears noise."""
    round_, remedy, name = examined.round, applied.remedy, applied.treatment
    effective = book.bench.use(name)
    proved, steps = prove_remedy(book, round_.treatment, name, examined.levels, round_number=round_.number)
    verdict = proved.verdict
    before, after = of_treatment(steps, round_.treatment), of_treatment(steps, name)
    better = verdict.decision == "better"
    fell = verdict.decision != "worse" and judging.cures_failures(before, after)
    cures = fell and not judging.by_chance(verdict, before, after)
    named = {change.setting for change in remedy.changes}
    note = ""
    if fell:
        first, second = (100 * judging.failed_share(side) for side in (before, after))
        note = f"requests that failed fell from {first:.3g} % to {f'{second:.3g} %' if second else 'none'}"
        note += "" if cures else ", which may be chance: too few requests failed, or too unevenly"
    elif (limit := applied.full) is not None:
        note = f"{limit.title or limit.id} is full again at {limit.ceiling:,.6g}, and could not be raised further"
    price = replace(
        remedy.price,
        memory_before_bytes=_memory(before),
        memory_after_bytes=_memory(after),
        slower_tail=tail_price(before, after),
    )
    trial = Trial(
        remedy=replace(remedy, price=price),
        verdict=replace(verdict, may_overstate=better),
        kept=cures or (better and verdict.clears_noise),
        levels=proved.levels,
        effective={setting: value for setting, value in effective.items() if setting in named},
        treatment_before=round_.treatment,
        treatment_after=name,
        note=note,
        operations=operation_times(before, after),
        deciding=tuple(step.number for step in steps),
    )
    curve = curve_of(book.steps, book.bench.study, name)
    seen = looked_at(book, round_.number, name, applied.state, effective, curve, book.of(name) or after)
    return Attempt(applied, trial, tuple(steps), seen, promising=better or cures)


def held_at_the_fall(book: Bookkeeping, round_: Round, applied: Applied) -> str:
    """A sentence that the target serves the load at which it failed, and fails again without the remedy; else "". There
    is no ratio: without the remedy nothing is served."""
    before, after, level = round_.treatment, applied.treatment, book.fell_at(round_.treatment)
    if math.isinf(level) or not book.budget.affords([level, level]):
        return ""
    try:
        step = book.take(StepRequest(after, level, round_.number, purpose="sizing"))
        book.bench.use(before)
    except NotRecovered as error:
        note_fall(book, error, went_on=True)
        book.bench.recover(before)
        return ""
    if not step.counts or step.errors:
        return ""
    try:
        book.take(StepRequest(before, level, round_.number, purpose="sizing"))
        book.bench.use(after)
    except NotRecovered as error:
        note_fall(book, error, went_on=True)
        book.bench.recover(after)
        return f"at {level:g} the target falls again without it, and serves {show(step.throughput, '1/s')} with it"
    return ""


def prove_remedy(book: Bookkeeping, before: str, after: str, levels: Sequence[float], *, round_number: int) -> Proof:
    """At half of the error left for all remedies, or all of it where the budget has no room for another proof. It is
    the error of one end of the interval, which is never narrower than FIRST. What is not proven better, or is cut
    short, has spent it."""
    error = book.error
    with_another = (book.bench.study.measure.blocks.min + FEWEST_BLOCKS) * 2 * list(levels)
    level = error.level(last=not book.budget.affords(with_another))
    book.error = error.after(level, decided=False)
    confidence = max(FIRST, 1 - 2 * level)
    (proof,) = prove(book, [(before, after)], levels, round_number=round_number, confidence=confidence, enough=known)
    book.error = error.after(level, decided=proof[0].verdict.decision == "better")
    return proof


def measured_again(book: Bookkeeping, examined: Examined, tried: Attempt, *, reserve_s: float = 0.0) -> Attempt:
    """Measure the remedy in fresh blocks, as far as the budget allows besides a reserve; if kept, also with
    measurements that identify its cause. What is not kept has spent its error."""
    if not tried.promising:
        return tried
    trial, round_ = tried.trial, examined.round
    before, after = trial.treatment_before, trial.treatment_after
    better = trial.verdict.decision == "better"
    most = book.bench.study.measure.blocks.max
    steps = fresh.measure_again(
        book,
        before,
        after,
        examined.levels,
        fresh.wanted([trial.verdict], most) if better else max(fresh.BLOCKS, trial.verdict.blocks),
        round_number=round_.number,
        done=trial.verdict.blocks,
        reserve_s=reserve_s + afterwards_s(book, examined) if trial.kept else 0.0,
    )
    if steps:
        tried = replace(tried, trial=_judged_again(trial, steps), again=tuple(steps))
    elif not trial.kept:
        tried = replace(tried, trial=replace(trial, note=judging.IN_NOISE))
    if not tried.trial.kept:
        book.error = book.error.after((1 - trial.verdict.confidence) / 2, decided=False)
        return tried
    aimed_at = [finding for finding in round_.findings if finding.id in tried.applied.remedy.addresses]
    at_once = any(finding.id in SERVED_AT_ONCE for finding in aimed_at)
    return replace(
        tried,
        unloaded=measure_unloaded(book, before, after, round_number=round_.number) if at_once else Unloaded(),
        collecting=receded(book, aimed_at, before, after),
    )


def _judged_again(trial: Trial, steps: Steps) -> Trial:
    before, after = trial.treatment_before, trial.treatment_after
    again = compared(steps, before, after)
    verdict, sides = again.verdict, (of_treatment(steps, before), of_treatment(steps, after))
    ended = verdict.decision != "worse" and judging.cures_failures(*sides)
    cures = ended and not judging.by_chance(verdict, *sides)
    better = trial.verdict.decision == "better"
    why_not = "" if cures else judging.why_not_again(verdict, steps) if better else FAIL_AGAIN
    return replace(
        trial,
        remedy=replace(trial.remedy, price=replace(trial.remedy.price, slower_tail=tail_price(*sides))),
        fresh=verdict,
        levels=again.levels,
        kept=not why_not,
        note=why_not or trial.note,
        operations=operation_times(*sides),
    )


def judged(examined: Examined, tried: Attempt, doubt: str = "") -> Examined:
    """With this trial, judged by fresh blocks if there are any. Causes stay as they were where these contradict the
    deciding blocks, or the gain may be noise; nothing is refuted where the raised limit was full again, or another
    limit is in series. doubt: why the trial confirms nothing."""
    trial, round_ = tried.trial, examined.round
    whole = (*round_.tried, trial)
    if tried.promising and not trial.kept and trial.reported.decision != "worse":
        return examined.but(tried=whole)
    steps = served_at_once(tried.again or tried.steps, tried.unloaded.responses_s)
    steps = with_collector(steps, tried.collecting)
    before, after = of_treatment(steps, trial.treatment_before), of_treatment(steps, trial.treatment_after)
    findings = judging.judge(
        round_.findings,
        trial.remedy,
        trial.reported,
        before,
        after,
        refutes=tried.applied.full is None and not tried.in_series and not tried.holds,
        doubt=doubt,
    )
    if not tried.unloaded.shows_more(trial.reported):  # the trial alone confirms none about the number served at once
        findings = tuple(
            judging.only_helped(after, NOT_MORE)
            if after.id in SERVED_AT_ONCE and after.status == "confirmed" != before.status
            else after
            for before, after in zip(round_.findings, findings, strict=True)
        )
    return examined.but(tried=whole, findings=findings)


def with_other_levels(book: Bookkeeping, examined: Examined, tried: Attempt, *, reserve_s: float = 0.0) -> Examined:
    """Add ratios at other levels to the remedy kept last, as the budget allows besides a reserve."""
    *earlier, trial = examined.round.tried
    before, after, number = trial.treatment_before, trial.treatment_after, examined.round.number
    unloaded = [step for step in tried.unloaded.steps if step.level not in examined.levels]
    done = {step.level for step in unloaded}
    others = [level for level in _other_levels(book, examined) if level not in done]
    next_s = book.remedy_s(FEWEST_BLOCKS)
    further = look_around(book, before, after, others, round_number=number, reserve_s=reserve_s, next_s=next_s)
    ratios = (*trial.levels, *level_ratios([*unloaded, *further], before, after))
    trial = replace(trial, levels=tuple(sorted(ratios, key=lambda row: row.load)))
    return examined.but(tried=(*earlier, trial))


def afterwards_s(book: Bookkeeping, examined: Examined) -> float:
    """Seconds to reserve for the other levels after a kept remedy, and after a second one for the proof against the
    first state."""
    total = 2 * fresh.BLOCKS * list(examined.levels) if examined.round.number > 1 else []
    return book.budget.cost_s(FEWEST_BLOCKS * _other_levels(book, examined) + total)


def known(verdict: Verdict) -> bool:
    """Whether it is known to help, or not to; fresh blocks measure by how much."""
    return verdict.decided or judging.without_effect(verdict)


def _other_levels(book: Bookkeeping, examined: Examined) -> list[float]:
    round_, cliff = examined.round, examined.round.curve.cliff
    ends = (cliff.from_load, cliff.to_load) if cliff is not None else ()
    levels = book.levels(round_.treatment, *(trial.treatment_after for trial in round_.tried[-1:]))
    return sorted({*levels, *ends} - set(examined.levels))


def _memory(steps: Steps) -> float | None:
    values = [step.metrics["target.memory.rss"] for step in steps if "target.memory.rss" in step.metrics]
    return fmean(values) if values else None
