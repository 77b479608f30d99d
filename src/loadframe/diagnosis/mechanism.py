"""Whether a cause's own evidence receded with a change by as much as its model predicts: a gain proves that a change
helped, not why. Each cause has a trace, a metric and what must become of it; the forms: docs/mathematics.md, "Whether a
mechanism moved". A metric that is missing on either side has not receded."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from loadframe.analysis import student
from loadframe.diagnosis.signatures import GC_SAMPLED, GC_SAMPLED_CORES, THROTTLED
from loadframe.diagnosis.sizes import IN_SERVICE, SERVED_AT_ONCE
from loadframe.knowledge.families import family_of
from loadframe.knowledge.kinds import tables
from loadframe.knowledge.signature import Trace, trace_rows
from loadframe.metrics import IN_FRONT
from loadframe.metrics import metric as metric_of
from loadframe.metrics.exposed import OF
from loadframe.model import REACHED, Finding, Mechanism, Steps, by_block
from loadframe.units import show_metric

MOVED = 0.7
"""A cause has moved when at most this share of its evidence is left."""
CURED = 0.1
"""Failures are cured when at most this share is left."""
AT_ONCE = 1.05
"""Factor by which a response time at the lowest load may differ between two states by itself."""
MOSTLY = 0.9
"""Power of a gain by two factors that one of them must have to be its cause; our choice."""
ONE_MORE = 0.5
"""More than half of one more at a time is not noise; our choice."""
PASSES = 1.05
"""Factor over the former limit that what passes a raised one must exceed: more than bursts and slack."""
HALF = 0.5
"""Power of a gain by two factors that exceeds the other's."""
RISING = ("passes", "at once", "spread")
"""Forms whose trace rises as the cause is removed."""
CONFIDENCE = 0.95
FEWEST_BLOCKS = 2


def _cage(component: str, layer: str) -> dict[str, Trace]:
    cage = f"{component}.cage"
    rates = {"cpu_quota": "cpu", **{name: name for name in THROTTLED}}
    return {
        f"{layer}.{limit}": Trace(f"{cage}.{use}", "passes", ceiling=f"{cage}.{use}.limit")
        for limit, use in rates.items()
    }


TRACES: Mapping[str, Trace] = {
    **_cage("target", "cage"),
    **{limit: trace for name in IN_FRONT for limit, trace in _cage(name, f"cage.{name}").items()},
    **{cause: Trace(IN_SERVICE, "at once") for cause in SERVED_AT_ONCE},
    **trace_rows(Path(__file__).with_name("signatures.toml")),
    **{cause: trace for traces in tables("signatures", "TRACES", dict).values() for cause, trace in traces.items()},
}
"""Traces by finding; kinds of servers add theirs. Else the first evidence that counts events."""
TRACES_BY_EVIDENCE: Mapping[str, Trace] = {
    "target.accept_queue.waiting": Trace("target.accept_queue.waiting", "waiting"),
    "target.runtime.gc_share": Trace("target.runtime.gc_share", "share"),
    "target.runtime.gc_cpu_share": Trace("target.runtime.gc_cpu_share", "share"),
    "workload.failed_time": Trace("workload.failed_time", "share"),
    # With a larger heap a collector takes less per request, and perhaps as much of the CPUs.
    GC_SAMPLED: Trace(GC_SAMPLED_CORES),
}


def trace_of(finding: Finding) -> Trace | None:
    if finding.id in TRACES:
        return TRACES[finding.id]
    if (family := family_of(finding.id)) is not None:
        return family.trace(finding.id)
    counted = [item.metric for item in finding.evidence if item.comparison in (">=", ">")]
    if carried := [TRACES_BY_EVIDENCE[name] for name in counted if name in TRACES_BY_EVIDENCE]:
        return carried[0]
    if finding.evidence and finding.evidence[0].metric.startswith(OF) and finding.id.startswith(OF):
        full = finding.evidence[0]  # as waiting_limits.py makes it
        return Trace(full.metric, "passes", most=full.threshold / REACHED)
    return next((Trace(name) for name in counted if metric_of(name).unit == "1/s" or _is_per_request(name)), None)


def _is_per_request(metric: str) -> bool:
    return metric.endswith("_per_request")


@dataclass(frozen=True, slots=True)
class Moved:
    """order: the first block from which on the evidence had receded, and its remaining share: the lower moved first and
    most."""

    mechanism: Mechanism
    order: tuple[int, float]


@dataclass(frozen=True, slots=True)
class _Side:
    """of: requests in progress ("waiting"), the ceiling ("passes"), or NaN."""

    value: float
    of: float = math.nan


def moved(finding: Finding, before: Steps, after: Steps, gain: float, *, cured: bool = False) -> Moved:
    """In a proof with at least this gain. cured: failures ended."""
    trace = trace_of(finding)
    if trace is None:
        return _unseen("", False, "nothing of this cause is counted for each request")
    earlier, later = (
        {block: _side(trace, taken) for block, taken in by_block(steps).items()} for steps in (before, after)
    )
    per_request = trace.form == "events"
    for when, side in (("before", earlier), ("after", later)):
        if not side or None in side.values():
            what = _what(trace.metric, per_request)
            return _unseen(trace.metric, per_request, f"{what} was not measured {when} the change")
    blocks = sorted(earlier.keys() & later.keys())
    pairs = [(first, second) for block in blocks if (first := earlier[block]) and (second := later[block])]
    bounds = [_bound(trace, first, max(1.0, gain), cured) for first, _ in pairs]
    return _judged(trace, pairs, bounds)


def _judged(trace: Trace, pairs: Sequence[tuple[_Side, _Side]], bounds: Sequence[float]) -> Moved:
    rises = trace.form in RISING
    excess = [
        (bound - second.value if rises else second.value - bound)
        for (_, second), bound in zip(pairs, bounds, strict=True)
    ]
    before, after = (fmean(side.value for side in sides) for sides in zip(*pairs, strict=True))
    wanted = fmean(bounds)
    receded = before > 0 and len(excess) >= FEWEST_BLOCKS and all(map(math.isfinite, excess))
    if receded:
        half = float(student.quantile(CONFIDENCE, len(excess) - 1)) * stdev(excess) / math.sqrt(len(excess))
        receded = fmean(excess) + half < 0
    late = max((place for place, value in enumerate(excess) if value >= 0), default=-1)
    mechanism = Mechanism(
        metric=trace.metric,
        before=before,
        after=after,
        wanted=wanted if math.isfinite(wanted) else None,
        per_request=trace.form == "events",
        receded=receded,
        because=_because(trace, before, after, wanted, receded),
        rises=rises,
    )
    more, less = (after, before) if rises else (before, after)
    return Moved(mechanism, (late + 1, less / more if more > 0 else 1.0))


def _unseen(metric: str, per_request: bool, because: str) -> Moved:
    return Moved(Mechanism(metric, None, None, None, per_request, False, because), (0, 1.0))


def _side(trace: Trace, steps: Steps) -> _Side | None:
    values = [step.metrics.get(trace.metric) for step in steps]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if trace.form == "events":
        requests = sum(step.throughput for step in steps)
        rates = [
            value * step.throughput if _is_per_request(trace.metric) else value
            for value, step in zip(known, steps, strict=True)
        ]
        return _Side(sum(rates) / requests) if requests > 0 else None
    if trace.most is not None:
        return _Side(fmean(known), trace.most)
    of = {"waiting": "workload.concurrency", "passes": trace.ceiling}.get(trace.form, "")
    return _Side(fmean(known), fmean(step.metrics.get(of, math.nan) for step in steps))


def _bound(trace: Trace, before: _Side, gain: float, cured: bool) -> float:
    """Infinite where the former ceiling is not known."""
    if trace.form == "passes":
        return math.inf if math.isnan(before.of) else PASSES * max(before.value, before.of)
    if trace.form == "spread":
        return before.value * max(PASSES, math.pow(gain, HALF))
    if trace.form == "at once":
        return max(before.value * max(AT_ONCE, min(gain / AT_ONCE, math.pow(gain, MOSTLY))), before.value + ONE_MORE)
    if trace.form == "events":
        priced = 1 / gain if trace.price else 1.0
        return (CURED if cured else min(MOVED, priced)) * before.value
    if trace.form == "waiting" and not math.isnan(before.of):
        return min(MOVED * before.value, before.of - gain * max(0.0, before.of - before.value))
    return MOVED * before.value


def _because(trace: Trace, before: float, after: float, wanted: float, receded: bool) -> str:
    per_request = trace.form == "events"
    what = _what(trace.metric, per_request)
    shown = [
        f"{max(0.0, value):.3g}" if per_request else show_metric(trace.metric, max(0.0, value))
        for value in (before, after, wanted)
    ]
    if trace.form == "passes" and not math.isfinite(wanted):
        return f"{what}: {shown[0]} before, {shown[1]} after; its threshold is not known"
    asked = f"this cause predicts {'at least' if trace.form in RISING else 'at most'} {shown[2]}"
    reached = after > wanted if trace.form in RISING else after < wanted
    sure = "" if receded or not reached else ", which the blocks do not show reliably"
    return f"{what}: {shown[0]} before, {shown[1]} after the change; {asked}{sure}"


def _what(metric: str, per_request: bool) -> str:
    what = metric_of(metric).alone
    return f"{what}, per request" if per_request and not _is_per_request(metric) else what
