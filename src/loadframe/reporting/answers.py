"""The answer and the next step of an investigation: the first lines that a reader sees, honest for every outcome."""

from __future__ import annotations

import math

from loadframe.diagnosis import conclusion
from loadframe.diagnosis.growing import GROWTH
from loadframe.model import (
    OTHERS,
    Finding,
    Investigation,
    LoadInterval,
    Verdict,
)
from loadframe.progress import counted
from loadframe.reporting import alternatives, change_words, facts, reaching, rounding, verdict_words, words


def answer(inv: Investigation) -> str:
    """The investigation in one to three sentences, honest for every kind of outcome."""
    disturbed = facts.disturbed_steps(inv)
    found = _with_comparison(inv, _answer(inv))
    if inv.gain is not None or disturbed <= inv.quality.steps / 2:
        return found
    caution = (
        f"{disturbed} of {inv.quality.steps} steps were disturbed from outside: repeat the run on a quieter machine."
    )
    return f"{found} {caution}"


def _with_comparison(inv: Investigation, found: str) -> str:
    """First the comparison with the study's alternatives; behind what is found, where that is of the whole run, and
    says what a comparison is worth."""
    compared = alternatives.lead(inv)
    if compared and inv.outcome.kind in ("driver-limited", "link-full", "stopped-answering", "interrupted"):
        return f"{found} {compared}"
    return f"{compared} Of {inv.study.target_kind}: {found}" if compared else found


def _answer(inv: Investigation) -> str:
    match inv.outcome.kind:
        case "gained" if inv.gain:
            return f"{_lead(inv)}. {_gain(inv, inv.gain)}{conclusion.for_no_cause(facts.kept_trials(inv))}"
        case "gained":
            return words.sentence(inv.outcome.text)
        case "cpu-saturated":
            return f"The CPU is the limit{_where_it_bends(inv)}; {_untouched(inv)}."
        case "driver-limited":
            drivers = "The load driver is" if inv.drivers is None else f"The {len(inv.drivers.drivers)} drivers are"
            return f"{drivers} the bottleneck{_where_it_bends(inv)}; this run says nothing about the target."
        case "link-full":
            return f"The link from the target is full{_where_it_bends(inv)}; no more is said about the target."
        case "no-limit-reached":
            return f"No limit was reached{_highest(inv)}; {_untouched(inv)}."
        case "limit-not-seen":
            declared = f"; {_fruitless(inv)}" if any(round_.tried for round_ in inv.rounds) else ""
            return f"{_not_seen(inv)}{declared}; {_untouched(inv)}."
        case "limit-without-remedy":
            return f"{_lead(inv)}. No remedy for it could be tried, and {_untouched(inv)}."
        case "no-proven-gain":
            return f"{_lead(inv)}. {words.sentence(f'{_fruitless(inv)}, and {_untouched(inv)}')}"
        case "stopped-answering":
            return _stopped_answering(inv)
        case "interrupted":
            return _interrupted(inv)


def _gain(inv: Investigation, gain: Verdict) -> str:
    """First what holds wherever the levels end, then the ratio at the loads at which it was proved, and why the two are
    far apart, where they are."""
    unit, found = words.axis_unit(inv), reaching.of(inv)
    at_loads = verdict_words.gain_sentence(gain, unit)
    if found is None:
        return words.sentence(f"{change_words.kept(inv)} gives {at_loads}")
    vague = verdict_words.is_vague(gain) and gain.low < found.low  # what is proved is less than the curves show
    if vague or (gain.decision == "better" and not reaching.proven(found)):
        gives = words.sentence(f"{change_words.kept(inv)} gives {at_loads}")
        best = words.sentence(f"Each state at its best: {reaching.sentence(found, unit)}")
        why = "" if vague else words.sentence(reaching.difference(inv, found, gain))
        return " ".join(part for part in (gives, best, why) if part)
    gives = words.sentence(f"{change_words.kept(inv)} gives {reaching.sentence(found, unit)}")
    how = "Proved at equal loads, block by block" if gain.decision == "better" else "At equal loads, block by block"
    proved = words.sentence(f"{how}: {at_loads}")
    return " ".join(part for part in (gives, proved, words.sentence(reaching.difference(inv, found, gain))) if part)


def _lead(inv: Investigation) -> str:
    findings = facts.main_findings(inv)
    if not findings and not inv.rounds:
        return "No cause was found"
    if not findings:
        return f"Throughput {words.curve_phrase(inv.rounds[0].curve, words.axis_unit(inv))}"
    first = findings[0]
    start = _start(inv, first)
    if first.id == OTHERS:
        return "Work outside the study took the CPU during the measurement, so the target's own limit was not judged"
    if first.id in GROWTH:
        proved = "A restart confirms it" if first.status == "confirmed" else "Suspected (not proved)"
        return f"What is measured changes while it is measured. {proved}: {words.strip(first.title)}"
    if first.status == "suspected":
        return f"{start}. The suspected cause (not proved): {words.strip(first.title)}"
    if first.status == "helped":
        return (
            f"{start}. A change for this cause helped, but its mechanism was not observed: {words.strip(first.title)}"
        )
    confirmed = (finding for finding in findings if finding.status == "confirmed")
    titles = "; then: ".join(words.strip(finding.title) for finding in confirmed)
    return f"{start}: {titles}"


def _start(inv: Investigation, finding: Finding) -> str:
    """Where it gives way; a finding that acts from the first level on has no bend to speak of."""
    unit, reached = words.axis_unit(inv), finding.reached_at
    if reached is None:
        return "Throughput is limited"
    lowest = min((point.load for point in inv.rounds[0].curve.points), default=-math.inf)
    if reached.load <= lowest and 1 < lowest < max(inv.study.levels, default=lowest):
        ends = f"{rounding.exact(lowest)} to {words.load(max(inv.study.levels), unit)}"
        return f"Throughput is limited at all levels, {ends}"
    curve = inv.rounds[0].curve
    if reached.load <= lowest and curve.shape == "linear" and curve.peak.load >= max(one.load for one in curve.points):
        return f"Throughput grows up to {words.load(curve.peak.load, unit)}, but is held back at every load"
    if reached.load <= lowest:
        return f"Throughput is limited from {words.load(reached.load, unit)} on"
    if curve.knee is None and curve.cliff is None:
        return f"From {words.about_load(reached, unit)} on, something runs out"
    return f"Throughput gives way at {_place(inv, reached, unit)}"


def _place(inv: Investigation, reached: LoadInterval, unit: str) -> str:
    """One load, that of the bend, which stands next to it, where the cause's own evidence agrees with it; else both."""
    own, bend = words.about_load(reached, unit), reaching.bend(inv.rounds[0])
    if bend is None:
        return own
    at = words.about_load(bend, unit)
    if at == own or (reached.low <= bend.high and bend.low <= reached.high):
        return at
    return f"{own} by what is measured of its cause; the curve bends at {at}"


def _where_it_bends(inv: Investigation) -> str:
    state = inv.after or inv.before
    if state is None:
        return ""
    place = state.bend.load if state.bend else state.knee
    bend = f" from {words.about_load(place, words.axis_unit(inv))} on" if place else ""
    return f"{bend}: throughput peaks at {words.peak(state, words.axis_unit(inv), words.work_unit(inv))}"


def _highest(inv: Investigation) -> str:
    state, unit = inv.after or inv.before, words.axis_unit(inv)
    if not inv.study.levels or state is None:
        return ""
    peak = words.peak(state, unit, words.work_unit(inv))
    return f" up to {words.load(max(inv.study.levels), unit)}: throughput peaks at {peak}"


def _not_seen(inv: Investigation) -> str:
    """ "Throughput levels off at about 4 connections, at 196 requests/s, and nothing that ... is exhausted there"."""
    curve, unit = inv.rounds[-1].curve, words.axis_unit(inv)
    peak = words.throughput(curve.peak.throughput, words.work_unit(inv))
    return (
        f"Throughput {words.curve_phrase(curve, unit)} (peak {peak}), and nothing that is seen from outside is "
        "exhausted there"
    )


def _untouched(inv: Investigation) -> str:
    kept = len(facts.net_changes(inv))
    if not kept:
        return "no change was kept"
    return f"{kept} changed setting{'s are' if kept > 1 else ' is'} kept"


def _fruitless(inv: Investigation) -> str:
    tried = sum(len(round_.tried) for round_ in inv.rounds)
    if tried == 1:
        return "the one remedy tried shows no proven gain"
    return f"none of the {tried} remedies tried shows a proven gain" if tried else "no remedy was tried"


def _stopped_answering(inv: Investigation) -> str:
    """What was seen, then what was found before; that the load broke it is not proved."""
    known = _gain(inv, inv.gain) if inv.gain else ""
    before = known or f"{_lead(inv)}. {words.sentence(_untouched(inv))}"
    return f"{stop_sentence(inv)} Until then: {before}"


def stop_sentence(inv: Investigation) -> str:
    """After which step the target refused, how, and for how long; "" where it did not."""
    stop = inv.stop
    if stop is None:
        return ""
    state = f" in another state ({words.strip(stop.state)})" if stop.state else ""
    level, waited = words.load(stop.level, words.axis_unit(inv)), rounding.seconds(stop.waited_s)
    how = f"answered {stop.path} with status {stop.status}" if stop.status else f"took no connection ({stop.why})"
    return (
        f"The service stopped answering after the step at {level}{state}: without any other load it {how} for {waited}"
        ", then the run was ended. That is what was seen, and no proved cause."
    )


_STANDING = {"confirmed": "had been confirmed", "helped": "was suspected and a change for it had helped, not confirmed"}


def _interrupted(inv: Investigation) -> str:
    taken = "not every change could be reverted" if inv.quality.not_reverted else "every change was reverted"
    begun = f"Interrupted after {counted(inv.quality.steps, 'step')}; {taken}."
    findings = facts.main_findings(inv)
    proved = (
        f" Until then one gain was proved: {verdict_words.gain_sentence(inv.gain, words.axis_unit(inv))}."
        if inv.gain
        else ""
    )
    if not findings:
        return f"{begun}{proved}" if proved else f"{begun} No cause had been named by then."
    standing = _STANDING.get(findings[0].status, "was suspected, not proved")
    return f"{begun}{proved} By then this {standing}: {words.strip(findings[0].title)}."
