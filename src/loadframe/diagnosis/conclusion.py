"""What the rounds add up to: the gain, the ladder, what gives next, and the outcome in one word."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from loadframe.analysis import comparison
from loadframe.diagnosis.signatures import DRIVER_LIMITED
from loadframe.metrics import metric as metric_of
from loadframe.model import (
    Finding,
    FindingStatus,
    LadderStep,
    Limit,
    NextLimit,
    Outcome,
    Remedy,
    Round,
    StateSummary,
    Step,
    Trial,
    Verdict,
)
from loadframe.units import show_metric

NO_EFFECT = 1.1
"""A remedy whose interval ends below this did not move the curve: its finding is refuted. One whose ratio stays
below it helps too little to confirm a cause."""
SATURATED = 0.6
"""A share of time (a lock held, a disk busy) bounds the throughput by X <= 1 / D (utilisation law) only near one; below
this, a rise of the throughput says nothing about it."""
MOVED = 0.7
"""A cause has moved when what it costs per request fell below this share."""


def kept_trials(rounds: Sequence[Round]) -> list[Trial]:
    """The trials that were kept, in order."""
    return [trial for one in rounds for trial in one.tried if trial.kept]


def gain(rounds: Sequence[Round], total: Verdict | None = None) -> Verdict | None:
    """The whole gain: `total`, the last state proved against the first, where that was measured; else the product of
    the kept verdicts; None where nothing was kept."""
    kept = kept_trials(rounds)
    if kept and total is not None:
        return total
    return comparison.combine([trial.verdict for trial in kept]) if kept else None


def gain_durability_kept(rounds: Sequence[Round]) -> Verdict | None:
    """The gain of the kept changes before the first one that gives durability up; None where that is all or nothing."""
    kept = kept_trials(rounds)
    free = []
    for trial in kept:
        if trial.remedy.price.durability is not None:
            break
        free.append(trial.verdict)
    return comparison.combine(free) if free and len(free) < len(kept) else None


def ladder(rounds: Sequence[Round]) -> tuple[LadderStep, ...]:
    """Every kept change with its share of the gain."""
    kept = kept_trials(rounds)
    return comparison.shares([(t.remedy.title, t.verdict, t.remedy.price.durability) for t in kept])


def summary(one: Round) -> StateSummary:
    """A round's curve in two numbers."""
    return StateSummary(one.curve.peak, one.curve.knee)


FAILING = 0.01
"""One request in a hundred failing is too many."""
CURED = 0.1
"""A remedy cures failures when a tenth of them or less is left."""


def failed_share(steps: Sequence[Step]) -> float:
    """The share of all requests of these steps that failed."""
    failed, done = sum(step.errors for step in steps), sum(step.requests for step in steps)
    return failed / (failed + done) if failed + done else 0.0


def cures_failures(before: Sequence[Step], after: Sequence[Step]) -> bool:
    """Whether requests that failed before no longer do: worth something even where no more of them are done."""
    share = failed_share(before)
    return share >= FAILING and failed_share(after) <= CURED * share


def judge(
    finding: Finding, remedy: Remedy, verdict: Verdict, before: Sequence[Step], after: Sequence[Step]
) -> FindingStatus:
    """What a trial says about a finding: confirmed where throughput rose, or failures ended, and what the cause costs
    per request fell; refuted where neither the throughput nor anything of value moved; else still suspected."""
    if finding.id not in remedy.addresses:
        return finding.status
    if verdict.decision != "worse" and cures_failures(before, after):
        return "confirmed" if _moved(finding, before, after) else "suspected"
    if verdict.decision == "better":
        return "confirmed" if verdict.ratio >= NO_EFFECT and _moved(finding, before, after) else "suspected"
    return "refuted" if verdict.high < NO_EFFECT else "suspected"


def _moved(finding: Finding, before: Sequence[Step], after: Sequence[Step]) -> bool:
    costs = [item.metric for item in finding.evidence if _is_cost(item.metric)]
    if not costs:
        return True
    metric = costs[0]
    if metric_of(metric).unit == "share" and _mean(metric, before) < SATURATED:
        return False
    one, two = _per_request(metric, before), _per_request(metric, after)
    return one is None or two is None or two < MOVED * one


def _mean(metric: str, steps: Sequence[Step]) -> float:
    values = [step.metrics[metric] for step in steps if metric in step.metrics]
    return fmean(values) if values else 0.0


def _is_cost(metric: str) -> bool:
    unit = metric_of(metric).unit
    return unit in ("1/s", "share") or metric.endswith("_per_request")


def _per_request(metric: str, steps: Sequence[Step]) -> float | None:
    values = [(step.metrics[metric], step.throughput) for step in steps if metric in step.metrics]
    requests = sum(throughput for _, throughput in values)
    if not values or requests <= 0:
        return None
    if metric.endswith("_per_request"):
        return sum(value * throughput for value, throughput in values) / requests
    return sum(value for value, _ in values) / requests


def next_limit(last: Round) -> NextLimit | None:
    """What gives next, going by the last state measured: the cause of its bend; else the limit that the growing load
    exhausts first beyond what was tested (one that was full without a bend did no harm); else what already caps the
    throughput; None where nothing is in sight."""
    bending = [f for f in last.findings if f.status != "refuted" and _acts_at_bend(f, last)]
    if bending:
        first = bending[0]
        load = first.reached_at.load if first.reached_at else None
        return NextLimit(first.id, load, first.title, f"it is there where the last curve bends: {first.explanation}")
    highest = last.curve.points[-1].load
    growing = sorted((limit for limit in last.limits if highest < _load(limit) < float("inf")), key=_load)
    if growing:
        first_limit = growing[0]
        ceiling = show_metric(first_limit.use_metric, first_limit.ceiling)
        because = f"its use grows with {last.curve.axis} and meets the ceiling of {ceiling} there"
        return NextLimit(first_limit.id, _load(first_limit), first_limit.title or first_limit.id, because)
    capping = [finding for finding in last.findings if finding.status != "refuted"]
    if capping:
        one = capping[0]
        return NextLimit(one.id, one.reached_at.load if one.reached_at else None, one.title, one.explanation)
    return None


def _load(limit: Limit) -> float:
    return limit.exhausted_at.load if limit.exhausted_at is not None else float("inf")


def _acts_at_bend(finding: Finding, last: Round) -> bool:
    """Whether a finding explains the bend of the last curve, not only its height."""
    bends = last.curve.knee is not None or last.curve.cliff is not None
    return bends and finding.score > 0.5


def outcome(rounds: Sequence[Round], *, interrupted: bool = False) -> Outcome:
    """The end of the investigation in one word and one sentence."""
    if interrupted:
        return Outcome("interrupted", "The investigation was stopped before its end; this is what was measured.")
    kept = kept_trials(rounds)
    if kept:
        words = " and ".join(trial.remedy.title for trial in kept)
        return Outcome("gained", f"Kept: {words}.")
    last = rounds[-1]
    if last.tried:
        return Outcome("no-proven-gain", "What was tried did not help, or not provably; everything was taken back.")
    if not last.findings:
        return Outcome("no-limit-reached", "No limit was reached within the levels tested; nothing was changed.")
    first = last.findings[0]
    if first.id == DRIVER_LIMITED:
        return Outcome("driver-limited", "The load driver was the bottleneck, not the target; nothing was changed.")
    if first.id == "cpu.saturated":
        return Outcome("cpu-saturated", "The CPUs are saturated with the work asked for; nothing was changed.")
    return Outcome(
        "limit-without-remedy", f"Suspected: {first.title}. No remedy for it was tried; nothing was changed."
    )
