"""From evidence to findings: limits that were reached, and signatures that hold, suspected until a remedy helps."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from loadframe.diagnosis import others, waiting_limits
from loadframe.diagnosis.operational import NOTHING, NOTHING_ELSE
from loadframe.diagnosis.signatures import DRIVER_LIMITED, SATURATED, SIGNATURES
from loadframe.diagnosis.sizes import SERVED_AT_ONCE
from loadframe.diagnosis.windows import Window, Windows, explains
from loadframe.knowledge.families import modules
from loadframe.knowledge.signature import Condition, Signature
from loadframe.metrics import metric as metric_of
from loadframe.model import OTHERS, REACHED, Evidence, Finding, Limit, LoadInterval, Reading, RuledOut, Step
from loadframe.units import show_metric

EVENTS = ("1/s", "")
THRASH_PER_REQUEST = 0.05
"""A silent limit explains a loss if at least one request in twenty pays for it."""
FAILURES_PER_REQUEST = 0.01
"""A loud limit explains a loss if one request in a hundred fails: refusals may be slow, and thus few."""
THRASH_RISES = 3.0
"""A limit must also cost requests at least three times as much as below the bend."""
EVERY_OTHER_REQUEST = 0.5
"""... or, at every level alike, one in two: that explains no bend, but may be what each request takes."""
Judge = Callable[[Signature, Windows], Finding | RuledOut | None]


class Causes(Protocol):
    """The causes of a family of metrics (knowledge.families.Family.causes)."""

    def findings(self, windows: Windows) -> Sequence[Finding | RuledOut]: ...

    def behind(
        self, findings: Sequence[Finding], windows: Windows, signatures: Sequence[Signature], judge: Judge
    ) -> list[Finding]:
        """The findings, and what one of the family's is caused by. judge: whether a signature holds in windows."""

    def now(self, metrics: Mapping[str, float], readings: Sequence[Reading]) -> Sequence[str]:
        """Sentences on what limits at this moment."""


def causes() -> list[Causes]:
    return modules("causes")


def diagnose(
    windows: Windows, limits: Sequence[Limit], several: Sequence[Finding | RuledOut] = ()
) -> tuple[tuple[Finding, ...], tuple[RuledOut, ...]]:
    """Suspected causes, the best explained first, and what was ruled out. Where others take the CPU, that comes first
    except for what is known to cost more (others.py), and nothing is ruled out: a target with many threads leaves
    others less at high loads. several: what several levels show together (operational.py)."""
    results: list[Finding | RuledOut | None] = [finding for family in causes() for finding in family.findings(windows)]
    results += [*several, *(_limit_finding(limit, windows) for limit in limits)]
    for signature in SIGNATURES:
        suspected = any(isinstance(result, Finding) for result in results)
        if signature.failing_others and (suspected or windows.bend is None):
            continue
        result = _signature_finding(signature, windows)
        if signature.id == OTHERS and not isinstance(result, Finding):
            whole = _signature_finding(signature, windows, windows.whole)
            result = whole if isinstance(whole, Finding) else result
        results.append(result)
    findings = [result for result in results if isinstance(result, Finding)]
    refusing = {limit.id for limit in limits if limit.loud}
    findings = waiting_limits.behind([_deeper(finding, findings, refusing) for finding in findings])
    for family in causes():
        findings = family.behind(findings, windows, SIGNATURES, _signature_finding)
    best: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda finding: -finding.score):
        best.setdefault(finding.id, finding)  # a cause may have several signatures
    findings = list(best.values())
    if SATURATED in best:  # CPUs are busier past the bend than on the whole plateau
        findings = [
            replace(finding, explanation=finding.explanation.replace(NOTHING, NOTHING_ELSE))
            if finding.id in SERVED_AT_ONCE
            else finding
            for finding in findings
        ]
    cleared = [result for result in results if isinstance(result, RuledOut) and result.id not in best]
    if DRIVER_LIMITED in best:
        why = "it cannot be judged while the driver is the bottleneck"
        cleared += [RuledOut(finding.id, why, judged=False) for finding in findings if finding.id != DRIVER_LIMITED]
        findings = [best[DRIVER_LIMITED]]
    elif OTHERS in best:
        there = windows.place.metrics
        findings.sort(key=lambda finding: 0 if others.outweighs(finding, there) else 1 if finding.id == OTHERS else 2)
        cleared = []  # low use rules nothing out where the target hardly gets a CPU
    return tuple(replace(finding, ruled_out=tuple(cleared)) for finding in findings), tuple(cleared)


DEEPER = 0.001


def _deeper(finding: Finding, findings: Sequence[Finding], refusing: Collection[str]) -> Finding:
    """A signature comes before the limits that it explains, and a limit that refuses before requests that fail."""
    explained = {limit for signature in SIGNATURES if signature.id == finding.id for limit in signature.explains}
    explained |= {others.FAILING} if finding.id in refusing else set()
    scores = [other.score + DEEPER for other in findings if other.id in explained]
    return replace(finding, score=max([finding.score, *scores]))


LOUD = "Requests beyond this limit fail."
SILENT = "Reaching this limit gives no error: every request is still answered, but work is repeated."


def _limit_finding(limit: Limit, windows: Windows) -> Finding | RuledOut | None:
    """None for shares and times, which signatures judge."""
    if limit.waits:
        at = limit.exhausted_at or _bend_interval(windows)
        return waiting_limits.finding(limit, windows, _bend_interval(windows), _limit_score(at, windows))
    if not limit.thrash_metric or metric_of(limit.thrash_metric).unit not in EVENTS:
        return None
    use = max(window.use_of(limit) for window in windows.levels if window.levels[0] in windows.past.levels)
    if use == -math.inf:
        return None
    if use < REACHED * limit.ceiling:
        used, ceiling = (show_metric(limit.use_metric, value) for value in (use, limit.ceiling))
        return RuledOut(limit.id, f"{metric_of(limit.use_metric).alone}: {used} of {ceiling}")
    harm = _harm(limit, windows)
    if isinstance(harm, str):
        return RuledOut(limit.id, harm, judged=limit.thrash_metric in _place(limit, windows).metrics)
    reached = Evidence(
        limit.use_metric, use, ">=", REACHED * limit.ceiling, windows.past.words, "the ceiling: " + limit.source
    )
    alike = windows.bend is not None and not _rises(limit, windows)
    reached_at = _acts_from(limit, windows) or limit.exhausted_at or (None if alike else _bend_interval(windows))
    return Finding(
        id=limit.id,
        title=f"{limit.title or limit.id} is full at {show_metric(limit.use_metric, limit.ceiling)}",
        reached_at=reached_at,
        evidence=(reached, *harm),
        score=NOT_THE_BEND if alike else _limit_score(reached_at, windows),
        explanation=(LOUD if limit.loud else SILENT) + (" It costs about as much at every level." if alike else ""),
    )


def _harm(limit: Limit, windows: Windows) -> tuple[Evidence, ...] | str:
    metric, place = limit.thrash_metric, _place(limit, windows)
    there = place.get(metric)
    if there is None:
        return f"{metric_of(metric).alone} was not measured"
    least = _least_cost(limit)
    per_request = _cost_per_request(limit, place) or 0.0
    below = _cost_per_request(limit, windows.below) or 0.0
    if per_request < least:
        return f"it is full, but only {show_metric(metric, there)} {metric_of(metric).alone}"
    rises = _rises(limit, windows)
    if windows.bend is not None and not rises and min(per_request, below) < EVERY_OTHER_REQUEST:
        return f"it is full, but its cost does not rise at the bend ({metric_of(metric).alone})"
    source = "requests beyond it fail" if limit.loud else "a silent limit shows only in its cost"
    evidence = [Evidence(metric, there, ">=", least * place.metrics["throughput"], place.words, source)]
    if windows.bend is not None and windows.below.get(metric) is not None:
        before = windows.below.metrics[metric]
        if not rises:
            alike = EVERY_OTHER_REQUEST * windows.below.metrics["throughput"]
            return (*evidence, Evidence(metric, before, ">=", alike, windows.below.words, "it is paid at every level"))
        threshold = per_request / THRASH_RISES * windows.below.metrics["throughput"]
        evidence.append(Evidence(metric, before, "<", threshold, windows.below.words, "it rises at the bend"))
    return tuple(evidence)


def _rises(limit: Limit, windows: Windows) -> bool:
    past, below = (_cost_per_request(limit, window) or 0.0 for window in (windows.past, windows.below))
    return past >= THRASH_RISES * below


def _place(limit: Limit, windows: Windows) -> Window:
    reached = [window for window in windows.levels if window.fills(limit)]
    if windows.bend is not None or not reached:
        return windows.past
    return max(reached, key=lambda window: _cost_per_request(limit, window) or 0.0)


def _least_cost(limit: Limit) -> float:
    return FAILURES_PER_REQUEST if limit.loud else THRASH_PER_REQUEST


def is_overrun(limit: Limit, step: Step) -> bool:
    use, cost = step.metrics.get(limit.use_metric), step.metrics.get(limit.thrash_metric)
    if use is None or cost is None or use < REACHED * limit.ceiling:
        return False
    return cost >= _least_cost(limit) * step.throughput


def _acts_from(limit: Limit, windows: Windows) -> LoadInterval | None:
    """Between the last level at which few requests pay for a full limit and the first from which on all do
    (docs/mathematics.md, "A bend that a limit explains"): where it fills if between these, else their geometric mean.
    None where all levels pay or none does."""
    costs = {window.levels[0]: _cost_per_request(limit, window) for window in windows.levels}
    full = {window.levels[0] for window in windows.levels if window.fills(limit)}
    paid = {level: cost if level in full else 0.0 for level, cost in costs.items() if cost is not None}
    if len(paid) < len(costs):
        return None
    least, most = _least_cost(limit), max(paid.values())
    spared = [level for level, cost in paid.items() if cost < least]
    if not spared or spared[-1] == max(paid):
        return None
    last, high = spared[-1], min(level for level in paid if level > spared[-1])
    low, ledger = last * (1 - least / most) if last in full else last, limit.exhausted_at
    if ledger is None or not last <= ledger.load <= high:
        return LoadInterval(math.sqrt(last * high), low, high)
    return LoadInterval(ledger.load, min(max(low, ledger.low), ledger.load), high)


def _cost_per_request(limit: Limit, window: Window) -> float | None:
    cost = window.get(limit.thrash_metric)
    return None if cost is None else cost / max(window.metrics["throughput"], 1e-9)


NOT_THE_BEND = 0.3
"""Score of a cost at every level, or one that begins past the bend."""


def _limit_score(acts: LoadInterval | None, windows: Windows) -> float:
    # Both ends are levels: what is not full yet at the level at which the fall has ended begins after it.
    if (
        acts is not None
        and windows.bend_ranges
        and all(acts.low >= bend.high < acts.load for bend in windows.bend_ranges)
    ):
        return NOT_THE_BEND
    if windows.bend is None or acts is None:
        return 0.6
    return 0.7 + 0.3 * max(explains(acts, bend) for bend in windows.bend_ranges)


def _signature_finding(
    signature: Signature, windows: Windows, window: Window | None = None
) -> Finding | RuledOut | None:
    window = window or (windows.levels[0] if signature.unloaded else windows.place)
    measured = [(condition, window.judged(condition)) for condition in signature.present]
    pairs = [(condition, value) for condition, value in measured if value is not None]
    if measured[0][1] is None or (signature.whole and len(pairs) < len(measured)):
        return None
    for condition, value in pairs:
        if not condition.holds(value):
            wanted = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}[condition.comparison]
            threshold = f"{wanted} {_show(condition, condition.threshold)}"
            return RuledOut(signature.id, f"{_name(condition)}: {_show(condition, value)} (threshold: {threshold})")
    if signature.rises and windows.bend is not None:
        condition, below = pairs[0][0], windows.below.judged(pairs[0][0])
        if below is not None and condition.holds(below):
            why = f"{_name(condition)}: {_show(condition, below)} {windows.below.words} already"
            return RuledOut(signature.id, why)
    absent = []  # what was looked for and not seen separates this cause from its look-alikes
    for condition in signature.absent:
        seen = window.judged(condition)
        if seen is not None and condition.holds(seen):
            because = f"{_name(condition)}: {_show(condition, seen)} ({condition.source})"
            return RuledOut(signature.id, because)
        if seen is not None and not condition.per_request:
            absent.append(condition.evidence(seen, window.words, absent=True))
    below = windows.below.judged(signature.present[0])
    there = below is not None and signature.present[0].holds(below)
    unexplained = windows.falls and there and not signature.explains_falling
    return Finding(
        id=signature.id,
        title=signature.title,
        reached_at=_first_level(signature, windows),
        evidence=(*(_evidence(condition, value, window) for condition, value in pairs), *absent),
        score=signature.rank.score - (0.3 if unexplained else 0.0),
        explanation=signature.explanation,
    )


def _first_level(signature: Signature, windows: Windows) -> LoadInterval | None:
    levels = [window.levels[0] for window in windows.levels]
    for before, window in zip(levels[:1] + levels, windows.levels, strict=False):
        values = [(condition, window.judged(condition)) for condition in signature.present]
        if all(value is None or condition.holds(value) for condition, value in values):
            return LoadInterval(window.levels[0], before, window.levels[0])
    return None


def _bend_interval(windows: Windows) -> LoadInterval | None:
    if windows.bend is None:
        return None
    return LoadInterval(windows.bend, windows.below.levels[-1], windows.past.levels[0])


def _evidence(condition: Condition, value: float, window: Window) -> Evidence:
    if not condition.per_request:
        return condition.evidence(value, window.words)
    rate, threshold = (number * window.metrics["throughput"] for number in (value, condition.threshold))
    return replace(condition.evidence(rate, window.words), threshold=threshold)


def _name(condition: Condition) -> str:
    return metric_of(condition.metric).alone + (", per request" if condition.per_request else "")


def _show(condition: Condition, value: float) -> str:
    return f"{value:.3g}" if condition.per_request else show_metric(condition.metric, value)
