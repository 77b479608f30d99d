"""Limits in series. Lifting one of two that are full at nearly the same load shows nothing: each would be refuted. So
the state with a remedy that did not help is diagnosed, what is there as well is lifted with it, and where both help,
each is reverted alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from loadframe.bench.bookkeeping import FEWEST_BLOCKS, Bookkeeping
from loadframe.diagnosis import judging
from loadframe.diagnosis.remedies import joined, propose, state_after
from loadframe.experiments import sizing
from loadframe.experiments.examination import Examined
from loadframe.experiments.proof import judged_levels
from loadframe.experiments.trying import (
    NO_ERROR,
    Attempt,
    afterwards_s,
    attempt,
    beside,
    judged,
    measured_again,
    prove_remedy,
)
from loadframe.model import Control, Remedy, Round, UntriedRemedy, Verdict

MOST_IN_SERIES = 3
"""Limits that are lifted together at most."""
TOGETHER = "several changes were made at once"

WhyNot = Callable[[Remedy], str | None]
Note = Callable[[Round], None]


def lift_together(
    book: Bookkeeping, examined: Examined, one: Round, fruitless: Sequence[Attempt], why_not: WhyNot, note: Note
) -> tuple[Round, Attempt | None]:
    """The round after remedies were tried together of which none had helped alone, and what is kept of that.

    why_not: the reason why a remedy may not be tried; None where it may."""
    levels, done = judged_levels(one.curve, examined.bend), set[frozenset[str]]()
    for first in fruitless:
        chain, last = [first.applied.remedy], first
        while len(chain) < MOST_IN_SERIES and (behind := _behind(chain, last, why_not, done)) is not None:
            known = {finding.id for finding in one.findings}  # others showed only behind another limit
            more = (f for f in last.after.round.findings if f.id in behind.addresses and f.id not in known)
            one = replace(one, findings=(*one.findings, *more))
            chain.append(behind)
            done.add(frozenset(each.id for each in chain))
            together = joined(chain)
            because = why_not(together)
            if because is None:
                try:
                    applied = sizing.apply(book, examined, together, one.curve.points[-1].load)
                except sizing.UNFIT as error:
                    because = f"the target does not work with it: {error.fact}"
                    book.bench.recover(one.treatment)
            if because is not None:
                one = replace(one, untried=(*one.untried, UntriedRemedy(together, because)))
                break
            last = attempt(book, examined, applied, levels)
            before, one = one, judged(one, last, TOGETHER)
            note(one)
            if last.promising:
                alone_s = book.budget.cost_s(2 * FEWEST_BLOCKS * len(chain) * list(levels))
                last = measured_again(book, one, last, levels, reserve_s=alone_s)
                one = judged(before, last, TOGETHER)
                note(one)
            if last.trial.kept:
                one = replace(one, tried=(*one.tried[:-1], beside(book, one, last, levels)))
                note(one)
                one = _taken_back(book, one, last, chain, levels)
                return _without_idle(book, examined, one, last, chain, levels, why_not)
            book.bench.use(one.treatment)
    return one, None


def _behind(chain: Sequence[Remedy], last: Attempt, why_not: WhyNot, done: set[frozenset[str]]) -> Remedy | None:
    """The first remedy for what is there with those of the chain, that may be tried with them and was not yet."""
    lifted = {cause for each in chain for cause in each.addresses}
    there = [finding for finding in last.after.round.findings if finding.id not in lifted]
    names = {each.id for each in chain}
    for remedy in propose(there, last.after.situation):
        if remedy.id not in names and names | {remedy.id} not in done and why_not(remedy) is None:
            return remedy
    return None


def _taken_back(
    book: Bookkeeping, one: Round, kept: Attempt, chain: Sequence[Remedy], levels: Sequence[float]
) -> Round:
    """The round after each of several changes was reverted alone, as far as the budget goes. The whole against the
    same without one change is a proof of that change by itself: it may confirm its cause, and refute it."""
    whole, findings, controls = kept.applied.treatment, one.findings, list[Control]()
    for remedy in chain:
        others = [each for each in chain if each is not remedy]
        affords = book.budget.affords(2 * FEWEST_BLOCKS * list(levels), afterwards_s(book, one, levels, treatments=1))
        if not affords or not book.error.left:
            what = "too little of the budget was left" if book.error.left else NO_ERROR
            because = f"its gain alone was not measured: {what}"
            controls.append(Control("without", remedy.title, None, None, because))
            continue
        without = book.next_treatment(
            f"without: {remedy.title}", state_after(one.state, others[0] if len(others) == 1 else joined(others))
        )
        try:
            proved, steps = prove_remedy(book, without, whole, levels, round_number=one.number)
        except sizing.UNFIT as error:
            book.bench.recover(whole)
            controls.append(Control("without", remedy.title, None, None, f"left out: {error.fact}"))
            continue
        verdict = proved.verdict
        before = [step for step in steps if step.treatment == without]
        after = [step for step in steps if step.treatment == whole]
        doubt = "" if verdict.clears_noise else judging.IN_NOISE
        findings = judging.judge(findings, remedy, verdict, before, after, doubt=doubt)
        controls.append(_worth(remedy, verdict))
    trial = replace(one.tried[-1], controls=tuple(controls))
    return replace(one, tried=(*one.tried[:-1], trial), findings=findings)


def _without_idle(
    book: Bookkeeping,
    examined: Examined,
    one: Round,
    kept: Attempt,
    chain: Sequence[Remedy],
    levels: Sequence[float],
    why_not: WhyNot,
) -> tuple[Round, Attempt]:
    """The round and what is kept of several changes once those that are known to add nothing are left out, and the rest
    is proved by itself; as before where it is not."""
    idle = {control.title for control in one.tried[-1].controls if control.holds is False}
    needed = [remedy for remedy in chain if remedy.title not in idle]
    if not idle or not needed:
        return one, kept
    remedy = needed[0] if len(needed) == 1 else joined(needed)
    if why_not(remedy) is not None:
        return one, kept
    alone = attempt(book, examined, sizing.apply(book, examined, remedy, one.curve.points[-1].load), levels)
    alone = measured_again(book, one, alone, levels)
    if not alone.trial.kept:
        return one, kept
    whole = replace(one.tried[-1], kept=False, note=f"what is needed of it is kept by itself: {remedy.title}")
    trial = beside(book, one, alone, levels)
    return replace(one, tried=(*one.tried[:-1], whole, trial)), alone


def _worth(remedy: Remedy, verdict: Verdict) -> Control:
    if verdict.decision == "better":
        return Control("without", remedy.title, verdict, True, "the other changes alone give less")
    if judging.without_effect(verdict):
        return Control(
            "without", remedy.title, verdict, False, "the other changes alone give as much: it may be omitted"
        )
    return Control("without", remedy.title, verdict, None, "what it adds to the others is not proved")
