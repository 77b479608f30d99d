"""What a trial shows of the causes that its remedy addresses (docs/mathematics.md, "Whether a mechanism moved"): a gain
confirms one only where its own evidence receded, too (mechanism.py), and one change confirms one cause."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist, fmean, stdev

from loadframe.analysis import student
from loadframe.analysis.disturbance import is_disturbed
from loadframe.diagnosis.mechanism import CURED, Moved, moved
from loadframe.diagnosis.operational import OPERATIONAL, confirmed_title
from loadframe.diagnosis.others import Cost, cost
from loadframe.diagnosis.sizes import SERVED_AT_ONCE, is_another, other_reading
from loadframe.diagnosis.waiting_limits import is_the_same_limit
from loadframe.knowledge.families import in_series
from loadframe.model import Finding, Mechanism, Remedy, Steps, Verdict, by_block

NO_EFFECT = 1.1
"""A remedy whose interval ends below this refutes its finding; one whose ratio is below it confirms no cause."""
FAILING = 0.01
"""Share of failing requests that is too many."""


def failed_share(steps: Steps) -> float:
    failed, done = sum(step.errors for step in steps), sum(step.requests for step in steps)
    return failed / (failed + done) if failed + done else 0.0


def cures_failures(before: Steps, after: Steps) -> bool:
    """Whether failures ended: a benefit even without more throughput."""
    share = failed_share(before)
    return share >= FAILING and failed_share(after) <= CURED * share


def without_effect(verdict: Verdict) -> bool:
    """Whether it surely raises throughput by less than a tenth."""
    return verdict.high < NO_EFFECT


HALF = 0.5
"""Added to counts, so that zero has a logarithm (Haldane 1956, Annals of Human Genetics 20)."""
FEWEST_BLOCKS = 2


def by_chance(verdict: Verdict, before: Steps, after: Steps) -> bool:
    """Whether it is not proved, at the verdict's level, that requests fail more rarely after; block i on both sides
    (docs/mathematics.md, "One error")."""
    sides = [[_failures(block) for block in by_block(side).values()] for side in (before, after)]
    pairs, alpha = list(zip(*sides, strict=False)), (1 - verdict.confidence) / 2
    if len(pairs) < FEWEST_BLOCKS:
        return True
    ratios = [second - first for (_, first), (_, second) in pairs]
    counting = fmean(1 / (first + HALF) + 1 / (second + HALF) for (first, _), (second, _) in pairs)
    scatter = float(student.quantile(1 - alpha, len(pairs) - 1)) * stdev(ratios)
    chance = NormalDist().inv_cdf(1 - alpha) * math.sqrt(counting)
    return bool(fmean(ratios) + max(scatter, chance) / math.sqrt(len(pairs)) >= 0)


def _failures(steps: Steps) -> tuple[int, float]:
    failed, done = sum(step.errors for step in steps), sum(step.requests for step in steps)
    return failed, math.log((failed + HALF) / (failed + done + 2 * HALF))


def judge(
    findings: Sequence[Finding],
    remedy: Remedy,
    verdict: Verdict,
    before: Steps,
    after: Steps,
    *,
    refutes: bool = True,
    doubt: str = "",
) -> tuple[Finding, ...]:
    """Of several causes the one whose evidence receded first and most is confirmed. The number served at once is
    refuted by no single setting of that size, a stage not by workers that wait for the next one, and nothing by a
    guessed remedy. refutes: False if something else may limit. doubt: why nothing is confirmed."""
    aimed_at = [finding for finding in findings if finding.id in remedy.addresses]
    ended = verdict.decision != "worse" and cures_failures(before, after)
    cured = ended and not by_chance(verdict, before, after)
    if ended and not cured and verdict.decision != "better":
        return tuple(findings)
    if not cured and verdict.decision != "better":
        most = verdict.high * math.exp(cost(before, after).after)
        refuted = refutes and not remedy.guessed and most < NO_EFFECT
        wrong = [
            finding.id
            for finding in aimed_at
            if refuted and finding.id not in OPERATIONAL and not in_series(finding.id)
        ]
        return tuple(replace(finding, status="refuted") if finding.id in wrong else finding for finding in findings)
    seen = {finding.id: moved(finding, before, after, verdict.low, cured=cured) for finding in aimed_at}
    other = {finding.id: is_another(finding, remedy, before) for finding in aimed_at}
    receded = [finding for finding in aimed_at if seen[finding.id].mechanism.receded and not other[finding.id]]
    first = min(receded, key=lambda finding: seen[finding.id].order, default=None)
    why_not = doubt or _in_doubt(cost(before, after), verdict, cured=cured)
    if not cured and verdict.ratio < NO_EFFECT:
        why_not = "the gain is too small to confirm a cause"
    raised = {change.setting for change in remedy.changes}
    settled = {
        finding.id: _settled(
            finding, seen[finding.id], first, why_not or other[finding.id], other_reading(finding, remedy, before)
        )
        for finding in aimed_at
    }
    for id_, finding in settled.items():
        if finding.status == "confirmed" and id_ in SERVED_AT_ONCE:
            settled[id_] = replace(finding, title=confirmed_title(finding.title, raised))
    return tuple(settled[finding.id] if finding in aimed_at else finding for finding in findings)


def _in_doubt(others: Cost, verdict: Verdict, *, cured: bool) -> str:
    if not others.words:
        return ""
    if cured:
        return f"{others.words}, and requests may have failed for that"
    least = verdict.low * math.exp(-others.before)
    most = f"up to {math.exp(others.before):.2g} times"
    return "" if least >= NO_EFFECT else f"{others.words}, which may have cost {most}: as much as it gained"


def _settled(finding: Finding, seen: Moved, first: Finding | None, why_not: str, open_: str) -> Finding:
    """first: its evidence receded first and most. open_: what the change leaves open."""
    one_is_behind = first is not None and (first.behind == finding.id or finding.behind == first.id)
    twice = one_is_behind or (first is not None and is_the_same_limit(first, finding))
    same = first is finding or (twice and seen.mechanism.receded)
    if same and not why_not:
        return replace(finding, status="confirmed", mechanism=_with_reason(seen.mechanism, open_))
    if finding.status == "confirmed":
        return finding
    if not why_not and first is not None and seen.mechanism.receded:
        why_not = f"the same change confirms {first.id}, whose evidence moved first or more"
    return only_helped(replace(finding, mechanism=seen.mechanism), why_not)


def _with_reason(mechanism: Mechanism | None, more: str) -> Mechanism | None:
    return replace(mechanism, because=f"{mechanism.because}; {more}") if mechanism is not None and more else mechanism


def only_helped(finding: Finding, because: str = "") -> Finding:
    return replace(finding, status="helped", mechanism=_with_reason(finding.mechanism, because))


NOT_AGAIN = "fresh blocks did not prove the gain again"
IN_FRESH_NOISE = "the gain in fresh blocks is no larger than what equal states showed there"
IN_NOISE = "its interval reaches into what equal states showed in the same blocks, and no time was left for fresh ones"
OFTEN = 0.25


def why_not_again(fresh: Verdict, steps: Steps) -> str:
    """ "" where fresh blocks confirm the gain. Deciding blocks stop where they look good: fresh ones must prove it, and
    it exceed what each state shows against itself (`Verdict.floor`)."""
    if fresh.decision == "better":
        return "" if fresh.exceeds_noise else IN_FRESH_NOISE
    disturbed = sum(is_disturbed(step, steps) for step in steps)
    if fresh.decision != "worse" and disturbed >= OFTEN * len(steps):
        return f"{NOT_AGAIN}: {disturbed} of their {len(steps)} steps were disturbed, which says nothing of it"
    return NOT_AGAIN
