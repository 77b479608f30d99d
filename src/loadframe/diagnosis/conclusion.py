"""What the rounds add up to: the gain, the ladder, the next limit, and the outcome in one word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from loadframe.analysis import comparison
from loadframe.diagnosis.bend import bend_of, explains_bend
from loadframe.diagnosis.growing import GROWTH
from loadframe.diagnosis.operational import OPERATIONAL
from loadframe.diagnosis.pipelines import is_queue
from loadframe.diagnosis.plateau import is_flat
from loadframe.diagnosis.signatures import DRIVER_LIMITED
from loadframe.model import (
    DRIVER_BESIDE,
    OTHERS,
    Curve,
    Finding,
    LadderStep,
    Limit,
    NextLimit,
    Outcome,
    Round,
    StateSummary,
    Stop,
    Trial,
    Verdict,
)
from loadframe.model.fleet_step import FleetDrivers
from loadframe.units import show, show_metric


def kept_trials(rounds: Sequence[Round]) -> list[Trial]:
    """The trials that were kept, in order."""
    return [trial for one in rounds for trial in one.tried if trial.kept]


def gain(rounds: Sequence[Round], total: Verdict | None = None) -> Verdict | None:
    """The whole gain: `total`, the last state proved against the first, where that was measured; else the product of
    what is told of the kept ones; None where nothing was kept."""
    kept = kept_trials(rounds)
    if kept and total is not None:
        return total
    return comparison.combine([trial.told for trial in kept]) if kept else None


def gain_durability_kept(rounds: Sequence[Round]) -> Verdict | None:
    """The gain of the kept changes before the first one that gives up durability; None where that is all or nothing."""
    kept = kept_trials(rounds)
    free = []
    for trial in kept:
        if trial.remedy.price.durability is not None:
            break
        free.append(trial.told)
    return comparison.combine(free) if free and len(free) < len(kept) else None


def ladder(rounds: Sequence[Round]) -> tuple[LadderStep, ...]:
    """Every kept change with its share of the gain."""
    kept = kept_trials(rounds)
    return comparison.shares([(t.remedy.title, t.told, t.remedy.price.durability) for t in kept])


def summary(one: Round) -> StateSummary:
    """A round's curve in two numbers, and the limit that explains its bend."""
    return StateSummary(one.curve.peak, one.curve.knee, bend_of(one))


def next_limit(last: Round) -> NextLimit | None:
    """What gives next, going by the last state measured: the cause of its bend; where its throughput does not grow at
    all, what caps it; else a limit that is full where the curve bends; else the limit that the growing load exhausts
    first beyond what was tested (one that was full without a bend did no harm); else what already caps the throughput;
    None where nothing is in sight."""
    of_load = [f for f in last.findings if f.status != "refuted" and f.id not in GROWTH]
    bending = [finding for finding in of_load if _acts_at_bend(finding, last)]
    if bending:
        first = bending[0]
        load = first.reached_at.load if first.reached_at else None
        return NextLimit(first.id, load, first.title, f"it is there where the last curve bends: {first.explanation}")
    if of_load and is_flat(last.curve):
        one = of_load[0]
        because = f"throughput is about the same at every level: more load only waits longer. {one.explanation}".strip()
        return NextLimit(one.id, one.reached_at.load if one.reached_at else None, one.title, because)
    full = [limit for limit in last.limits if not is_queue(limit.id) and _full_at_bend(limit, last.curve)]
    if full:
        there = min(full, key=_load)
        ceiling = show_metric(there.use_metric, there.ceiling)
        because = (
            f"its use is at the ceiling of {ceiling} where the last curve bends; no change has proved that it limits"
        )
        return NextLimit(there.id, _load(there), there.title or there.id, because)
    highest = last.curve.points[-1].load
    beyond = (limit for limit in last.limits if highest < _load(limit) < float("inf"))
    growing = sorted((limit for limit in beyond if not is_queue(limit.id)), key=_load)
    if growing:
        first_limit = growing[0]
        ceiling = show_metric(first_limit.use_metric, first_limit.ceiling)
        because = f"its use grows with the load and reaches the ceiling of {ceiling} there"
        return NextLimit(first_limit.id, _load(first_limit), first_limit.title or first_limit.id, because)
    if of_load:
        one = of_load[0]
        return NextLimit(one.id, one.reached_at.load if one.reached_at else None, one.title, one.explanation)
    return None


def _load(limit: Limit) -> float:
    return limit.exhausted_at.load if limit.exhausted_at is not None else float("inf")


def _full_at_bend(limit: Limit, curve: Curve) -> bool:
    """Whether a limit was full within what was tested, at a load at which the curve may bend."""
    at, highest = limit.exhausted_at, curve.points[-1].load
    ends = [(curve.knee.low, curve.knee.high)] if curve.knee is not None else []
    ends += [(curve.cliff.from_load, curve.cliff.to_load)] if curve.cliff is not None else []
    return at is not None and at.high <= highest and any(at.low <= high and low <= at.high for low, high in ends)


def _acts_at_bend(finding: Finding, last: Round) -> bool:
    """Whether a finding explains the bend of the last curve, not only its height."""
    bends = last.curve.knee is not None or last.curve.cliff is not None
    return bends and explains_bend(finding)


def outcome(
    rounds: Sequence[Round],
    *,
    interrupted: bool = False,
    stop: Stop | None = None,
    drivers: FleetDrivers | None = None,
) -> Outcome:
    """The end of the investigation in one word and one sentence. stop: where the target did not recover from a step.
    drivers: all hosts that drove beside fewer."""
    if stop is not None:
        axis = rounds[-1].curve.axis.replace("_", " ")
        return Outcome(
            "stopped-answering",
            f"After the step at {axis} {stop.level:g} the target refused what it was asked, and did not recover; this "
            "is what was measured before.",
        )
    if interrupted:
        return Outcome("interrupted", "The investigation was stopped before its end; this is what was measured.")
    if drivers is not None and drivers.limit == "drivers":
        return Outcome("driver-limited", "The drivers were the bottleneck, not the target; nothing was changed.")
    if drivers is not None and drivers.limit == "link":
        return Outcome("link-full", "The link from the target was full; nothing of the target was changed.")
    kept = kept_trials(rounds)
    if kept:
        words = " and ".join(trial.remedy.title for trial in kept)
        return Outcome("gained", f"Kept: {words}.{for_no_cause(kept)}")
    last = rounds[-1]
    if last.tried and not last.findings:
        seen = _nothing_found(last)
        declared = "; no setting that the study declares has a proven gain, and all were put back."
        return replace(seen, text=seen.text.removesuffix(UNCHANGED) + declared)
    if last.tried:
        return Outcome("no-proven-gain", "No change that was tried has a proven gain; all were reverted.")
    if not last.findings:
        return _nothing_found(last)
    first = last.findings[0]
    if first.id == DRIVER_LIMITED:
        return Outcome("driver-limited", "The load driver was the bottleneck, not the target; nothing was changed.")
    if first.id in (OTHERS, DRIVER_BESIDE):
        return Outcome("limit-without-remedy", f"{_sentence(first.title)}; nothing was changed.")
    if first.id in OPERATIONAL:
        return Outcome("limit-without-remedy", f"{_sentence(first.title)}; no change that could confirm why was tried.")
    if first.id == "cpu.saturated":
        return Outcome("cpu-saturated", "The CPUs are saturated with the work asked for; nothing was changed.")
    return Outcome(
        "limit-without-remedy", f"Suspected: {first.title}. No remedy for it was tried; nothing was changed."
    )


def for_no_cause(kept: Sequence[Trial]) -> str:
    """That the kept changes were tried for no cause, as a sentence behind others; "" where one was for one."""
    if not kept or any(trial.remedy.addresses for trial in kept):
        return ""
    if len(kept) == 1:
        return " It was tried because the study declares it; its gain names no cause."
    return " They were tried because the study declares them; their gains name no cause."


UNCHANGED = "; nothing was changed."


NEAR = 0.85
"""Of a ceiling: a limit that is used so far is named where nothing is exhausted, our choice."""


def _nothing_found(last: Round) -> Outcome:
    """No limit was reached only where throughput still grows: where it does not, something ends it, seen or not."""
    if (why := stops_growing(last.curve)) is None:
        return Outcome("no-limit-reached", f"No limit was reached within the levels tested{UNCHANGED}")
    near = [one for one in last.limits if NEAR * one.ceiling <= one.use < one.ceiling]
    nearest = ""
    if near:
        one = max(near, key=lambda each: each.use / each.ceiling)
        nearest = f"; nearest to that: {one.title or one.id}, {show(one.use / one.ceiling, 'share')} in use"
    return Outcome("limit-not-seen", f"{why}, and nothing that is seen from outside is exhausted{nearest}{UNCHANGED}")


LITTLE = 0.15
"""Of the exponent of a throughput that is proportional to the load, our choice: 1.4 times at ten times the load."""


def stops_growing(curve: Curve) -> str | None:
    """How throughput ends, in words; None where it grows up to the highest level, or one level is all there is."""
    if curve.cliff is not None:
        return f"Throughput falls between {curve.axis} {curve.cliff.from_load:g} and {curve.cliff.to_load:g}"
    if curve.knee is not None:
        return f"Throughput stops growing at {curve.axis} {curve.knee.load:.3g}"
    if is_flat(curve):
        return f"Throughput does not grow from the lowest level, {curve.axis} {curve.points[0].load:g}, on"
    low, high = curve.points[0], curve.points[-1]
    if curve.shape == "plateau" and high.load > low.load and high.throughput < low.throughput * _little(curve):
        times, loads = high.throughput / low.throughput, high.load / low.load
        return f"Throughput hardly grows: it is {times:.3g} times as high at {loads:.3g} times the {curve.axis}"
    return None


def _little(curve: Curve) -> float:
    """The times that throughput would grow over these levels at LITTLE of the growth of the load."""
    return math.pow(curve.points[-1].load / curve.points[0].load, LITTLE)


def _sentence(title: str) -> str:
    return title[0].upper() + title[1:]
