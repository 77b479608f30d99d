"""Try remedies one at a time, the most promising first, until one provably helps. Of two limits that saturate at nearly
the same load each would be refuted alone: what limits the state with a fruitless remedy is lifted in addition, and
where both help together, each is reverted alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.diagnosis import conclusion, judging
from loadframe.diagnosis.remedies import joined, propose, proposed_for, state_after
from loadframe.diagnosis.remedies.declared import ways_back
from loadframe.errors import NotRecovered
from loadframe.experiments import fresh
from loadframe.experiments.controls import controlled, less_s
from loadframe.experiments.examination import Examined
from loadframe.experiments.stopping import UNFIT, fell_in
from loadframe.experiments.trying import (
    NO_ERROR,
    Attempt,
    afterwards_s,
    apply,
    attempt,
    held_at_the_fall,
    judged,
    measured_again,
    prove_remedy,
    with_other_levels,
)
from loadframe.model import KEPT_FIRST, Control, Remedy, Round, StepRequest, TargetState, UntriedRemedy, of_treatment

LAYERS = {"server": "target", "application": "target", "process": "process", "host": "host"}
WhyNot = Callable[[Remedy], str | None]
Note = Callable[[Round], None]


@dataclass(frozen=True, slots=True)
class Tried:
    """kept: the treatment and state to go on from; None where no remedy helped."""

    round: Round
    kept: tuple[str, TargetState] | None


def try_remedies(book: Bookkeeping, examined: Examined, already: set[str], note: Note = lambda latest: None) -> Tried:
    """Prove remedies until one is kept; others are listed with the reason. already: ids of remedies that did not help.
    note: called after each trial."""
    why_not = partial(_why_not, book, examined)
    kept: Attempt | None = None
    fruitless: list[Attempt] = []
    untried = [remedy for remedy in proposed_for(examined.round, examined.situation) if remedy.id not in already]
    for proposed in promising_first(book, examined, untried, why_not):
        because = why_not(proposed) if kept is None else KEPT_FIRST
        if because is not None:
            examined = _untried(examined, proposed, because)
            continue
        examined, tried = _try(book, examined, proposed, note)
        if tried is not None and tried.trial.kept:
            kept = tried
            examined = with_other_levels(book, examined, tried, reserve_s=less_s(book, examined))
            continue
        already.add(proposed.id)
        if tried is not None:
            fruitless.append(tried)
            book.bench.use(examined.round.treatment)
    if kept is None:
        examined, kept = _lift_together(book, examined, fruitless, why_not, note)
    if kept is not None:
        note(examined.round)
        examined = controlled(book, examined)
        already.difference_update(attempted.applied.remedy.id for attempted in fruitless)
        already.update(ways_back(kept.applied.remedy))
    note(examined.round)
    return Tried(examined.round, None if kept is None else (kept.applied.treatment, kept.applied.state))


def _try(
    book: Bookkeeping, before: Examined, remedy: Remedy, note: Note, doubt: str = "", several: int = 0
) -> tuple[Examined, Attempt | None]:
    """None where the target does not work with it. several: changes of which each is proved alone afterwards."""
    treatment = before.round.treatment
    try:
        applied = apply(book, before, remedy)
        held = "" if several else held_at_the_fall(book, before.round, applied)
        tried = attempt(book, before, applied)
    except UNFIT as error:
        if isinstance(error, NotRecovered) and fell_in(book, error)[0] == treatment:
            raise
        book.bench.recover(treatment)
        return _untried(before, remedy, f"the target does not work with it: {error.fact}"), None
    examined = judged(before, tried, doubt)
    note(examined.round)
    if tried.promising:
        alone_s = book.budget.cost_s(2 * FEWEST_BLOCKS * several * list(before.levels))
        tried = measured_again(book, examined, tried, reserve_s=alone_s)
        examined = judged(before, tried, doubt)
        note(examined.round)
    if held and not tried.trial.kept and tried.trial.reported.decision != "worse":
        tried = replace(tried, trial=replace(tried.trial, kept=True, note=held), holds=True)
        examined = judged(before, tried, doubt)
    return examined, tried


def _untried(examined: Examined, remedy: Remedy, because: str) -> Examined:
    return examined.but(untried=(*examined.round.untried, UntriedRemedy(remedy, because)))


def prove_total(book: Bookkeeping, rounds: Sequence[Round], last: str) -> None:
    """After several kept remedies, prove the last state against the first, in a number of blocks that is fixed
    before."""
    kept = conclusion.kept_trials(rounds)
    if len(kept) > 1:
        blocks = fresh.wanted([trial.reported for trial in kept], book.bench.study.measure.blocks.max)
        fresh.measure_again(book, rounds[0].treatment, last, kept[0].verdict.levels, blocks, round_number=len(rounds))


def _why_not(book: Bookkeeping, examined: Examined, remedy: Remedy) -> str | None:
    study = book.bench.study
    if (given_up := remedy.price.durability) is not None and study.remedies.durability == "keep":
        return (
            f'it gives up durability ({given_up}); the study says durability = "keep". With remedies.durability = '
            '"relax" it is tried'
        )
    for change in remedy.changes:
        if change.needed and LAYERS[change.layer] not in study.remedies.allow:
            return f"it changes {change.setting} ({change.layer}), which the study's remedies.allow does not name"
    if not book.error.left:
        return NO_ERROR
    proof = [examined.round.curve.points[-1].load, *(2 * FEWEST_BLOCKS * examined.levels)]  # sizing and two blocks
    if not book.budget.affords(proof, afterwards_s(book, examined)):
        return "too little of the budget is left to prove it; give measure.budget more time"
    return None


SHOWS = 1.2
"""Ratio of a single step: more than steps of one state differ by on a quiet machine."""


def promising_first(
    book: Bookkeeping, examined: Examined, remedies: Sequence[Remedy], why_not: WhyNot
) -> tuple[Remedy, ...]:
    """The remedies in another order: of the guessed ones for the first cause the first that shows a gain in a single
    step at the highest level comes first, as a proof costs ten times as much. The target is in the round's state on
    return."""
    round_, levels = examined.round, examined.levels
    guessed = [remedy for remedy in remedies if remedy.guessed and remedy.addresses == remedies[0].addresses]
    may = [remedy for remedy in guessed if why_not(remedy) is None]
    before = next((point.throughput for point in round_.curve.points if point.load == levels[-1]), 0.0)
    if not remedies or not remedies[0].guessed or len(may) < 2 or before <= 0:
        return tuple(remedies)
    first: list[Remedy] = []
    proof_s = book.budget.cost_s(2 * FEWEST_BLOCKS * list(levels))
    book.progress.phase(f"a look at up to {len(may)} remedies", len(may))
    for remedy in may:
        if not book.budget.affords([levels[-1]], proof_s):
            break
        name = book.next_treatment(remedy.title, state_after(round_.state, remedy), remedy=remedy)
        try:
            book.bench.use(name)
            step = book.take(StepRequest(name, levels[-1], round_.number, purpose="sizing"))
        except UNFIT:
            book.bench.recover(round_.treatment)
            continue
        if step.throughput >= SHOWS * before:
            first = [remedy]
            break
    book.bench.use(round_.treatment)
    return (*first, *(remedy for remedy in remedies if remedy not in first))


MOST_IN_SERIES = 3
TOGETHER = "several changes were made at once"
ALONE = {
    True: "the other changes alone give less",
    False: "the other changes alone give as much: it may be omitted",
    None: "what it adds to the others is not proved",
}
"""What the other changes show, by whether the reverted one is needed."""


def _lift_together(
    book: Bookkeeping, examined: Examined, fruitless: Sequence[Attempt], why_not: WhyNot, note: Note
) -> tuple[Examined, Attempt | None]:
    done = set[frozenset[str]]()
    for first in fruitless:
        chain, last = [first.applied.remedy], first
        while len(chain) < MOST_IN_SERIES and (behind := _behind(chain, last, why_not, done)) is not None:
            known = examined.round.findings
            ids = {finding.id for finding in known}  # others showed only behind another limit
            more = (f for f in last.after.round.findings if f.id in behind.addresses and f.id not in ids)
            examined = examined.but(findings=(*known, *more))
            chain.append(behind)
            done.add(frozenset(remedy.id for remedy in chain))
            together = joined(chain)
            because = why_not(together)
            if because is not None:
                examined = _untried(examined, together, because)
                break
            examined, tried = _try(book, examined, together, note, TOGETHER, len(chain))
            if tried is None:
                break
            last = tried
            if last.trial.kept:
                examined = with_other_levels(book, examined, last)
                note(examined.round)
                examined = _each_alone(book, examined, chain)
                return _without_idle(book, examined, last, chain, why_not)
            book.bench.use(examined.round.treatment)
    return examined, None


def _behind(chain: Sequence[Remedy], last: Attempt, why_not: WhyNot, done: set[frozenset[str]]) -> Remedy | None:
    lifted = {cause for remedy in chain for cause in remedy.addresses}
    there = [finding for finding in last.after.round.findings if finding.id not in lifted]
    names = {remedy.id for remedy in chain}
    for remedy in propose(there, last.after.situation):
        if remedy.id not in names and names | {remedy.id} not in done and why_not(remedy) is None:
            return remedy
    return None


def _each_alone(book: Bookkeeping, examined: Examined, chain: Sequence[Remedy]) -> Examined:
    """As far as the budget goes: all changes against all without one is a proof of that one."""
    round_, levels, controls = examined.round, examined.levels, list[Control]()
    trial, findings = round_.tried[-1], round_.findings
    whole = trial.treatment_after
    for remedy in chain:
        others = [other for other in chain if other is not remedy]
        affords = book.budget.affords(2 * FEWEST_BLOCKS * list(levels), afterwards_s(book, examined))
        if not affords or not book.error.left:
            what = "too little of the budget was left" if book.error.left else NO_ERROR
            because = f"its gain alone was not measured: {what}"
            controls.append(Control("without", remedy.title, None, None, because))
            continue
        without = book.next_treatment(
            f"without: {remedy.title}", state_after(round_.state, others[0] if len(others) == 1 else joined(others))
        )
        try:
            proved, steps = prove_remedy(book, without, whole, levels, round_number=round_.number)
        except UNFIT as error:
            book.bench.recover(whole)
            controls.append(Control("without", remedy.title, None, None, f"left out: {error.fact}"))
            continue
        verdict = proved.verdict
        before, after = of_treatment(steps, without), of_treatment(steps, whole)
        doubt = "" if verdict.clears_noise else judging.IN_NOISE
        findings = judging.judge(findings, remedy, verdict, before, after, doubt=doubt)
        needed = True if verdict.decision == "better" else False if judging.without_effect(verdict) else None
        controls.append(Control("without", remedy.title, verdict, needed, ALONE[needed]))
    return examined.but(tried=(*round_.tried[:-1], replace(trial, controls=tuple(controls))), findings=findings)


def _without_idle(
    book: Bookkeeping, examined: Examined, kept: Attempt, chain: Sequence[Remedy], why_not: WhyNot
) -> tuple[Examined, Attempt]:
    *earlier, whole = examined.round.tried
    idle = {control.title for control in whole.controls if control.holds is False}
    needed = [remedy for remedy in chain if remedy.title not in idle]
    if not idle or not needed:
        return examined, kept
    remedy = needed[0] if len(needed) == 1 else joined(needed)
    if why_not(remedy) is not None:
        return examined, kept
    alone = measured_again(book, examined, attempt(book, examined, apply(book, examined, remedy)))
    if not alone.trial.kept:
        return examined, kept
    whole = replace(whole, kept=False, note=f"what is needed of it is kept by itself: {remedy.title}")
    examined = examined.but(tried=(*earlier, whole, alone.trial))
    return with_other_levels(book, examined, alone), alone
