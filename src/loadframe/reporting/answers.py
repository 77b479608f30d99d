"""The answer and the next step of an investigation: the first lines that a reader sees, honest for every outcome."""

from __future__ import annotations

import math

from loadframe.diagnosis import conclusion
from loadframe.diagnosis.growing import GROWTH
from loadframe.diagnosis.operational import OPERATIONAL, UNKNOWN_KINDS
from loadframe.diagnosis.plateau import is_flat
from loadframe.model import (
    DRIVER_BESIDE,
    OTHERS,
    Change,
    Finding,
    Investigation,
    LoadInterval,
    NextLimit,
    Round,
    Verdict,
)
from loadframe.reporting import change_words, facts, reaching, rounding, verdict_words, words


def answer(inv: Investigation) -> str:
    """The investigation in one to three sentences, honest for every kind of outcome."""
    disturbed = facts.disturbed_steps(inv)
    if inv.gain is not None or disturbed <= inv.quality.steps / 2:
        return _answer(inv)
    caution = (
        f"{disturbed} of {inv.quality.steps} steps were disturbed from outside: repeat the run on a quieter machine."
    )
    return f"{_answer(inv)} {caution}"


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
    if verdict_words.is_vague(gain) and gain.low < found.low:  # what is proved is less than the curves show
        gives = words.sentence(f"{change_words.kept(inv)} gives {at_loads}")
        return f"{gives} {words.sentence(f'Each state at its best: {reaching.sentence(found, unit)}')}"
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
    return f"Throughput gives way at {words.about_load(reached, unit)}"


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
    begun = f"Interrupted after {inv.quality.steps} steps; {taken}."
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


def next_heading(inv: Investigation) -> str:
    """What `next_step` tells: the next limit, or something to do."""
    told = inv.next_limit is not None and next_step(inv) == _next_limit(inv, inv.next_limit)
    return "Next limit" if told else "Next"


def next_step(inv: Investigation) -> str:
    """The next limit and its load; where nothing is known of that, what to do next; and where the curve alone says what
    limits, what would confirm it."""
    for first in (_to_confirm(inv), _not_tried(inv)):
        if first is not None:
            return first
    if inv.outcome.kind == "stopped-answering":
        return (
            "See the service's own log at that time; restart it, and measure again with lower levels, or with this one "
            "alone, to see whether it stops there again."
        )
    if inv.outcome.kind == "cpu-saturated" and (inv.next_limit is None or inv.next_limit.id == _first_id(inv)):
        return "More CPUs, or less CPU time per request, would move it; no change of a setting was tried."
    if inv.next_limit:
        return _next_limit(inv, inv.next_limit)
    match inv.outcome.kind:
        case "interrupted":
            return f"Run it again to finish it; the finished steps are kept in {inv.run}."
        case "driver-limited" if inv.drivers is not None:
            return "Add a driver to the fleet; then the target can be loaded further."
        case "link-full":
            return "Give the target a faster link, or let its answers be smaller; then it can be loaded further."
        case "driver-limited":
            return (
                "Give the driver more CPUs (cage.driver.cpus) or more threads; then the target can be loaded further."
            )
        case "no-limit-reached":
            highest = f" above {words.load(max(inv.study.levels), words.axis_unit(inv))}" if inv.study.levels else ""
            return f"Test higher loads: add levels{highest}."
        case "limit-not-seen" if _begins_flat(inv):
            lowest = words.load(inv.rounds[-1].curve.points[0].load, words.axis_unit(inv))
            return (
                f"Measure from a load of 1: the lowest level, {lowest}, is on the plateau already, so that the curve "
                "does not show how many requests are served at once."
            )
        case "limit-not-seen" if inv.study.target_kind not in UNKNOWN_KINDS:
            return (
                "None of the limits that Loadframe knows of this server explains it: measure more levels around the "
                "bend, and see the profiles of the report."
            )
        case "limit-not-seen":
            return (
                "Expose what the target counts of its own queues and pools (target.metrics), or declare the setting "
                "that may limit it as [target.setting.NAME]; then a change can confirm it."
            )
        case "limit-without-remedy" | "no-proven-gain" if _first_id(inv) in GROWTH:
            return _growth_next(facts.main_findings(inv)[0])
        case "limit-without-remedy" if _first_id(inv) == DRIVER_BESIDE:
            return (
                "Give the driver CPUs of its own (cage.cpus and cage.driver.cpus), or another machine; then the curve "
                "is the target's."
            )
        case "limit-without-remedy":
            return "See which remedies were not tried, and why."
        case _:
            return "No further limit showed within the levels that were tested."


def _growth_next(growing: Finding) -> str:
    """What to do about a cost that grows: a restart was measured, or it was not."""
    still = "What load it takes can be measured once its cost stands still."
    if growing.status == "confirmed":
        return f"Find what the service keeps until it is restarted. {still}"
    if growing.mechanism is None or growing.mechanism.after is None:
        return f"Restart the service and see whether requests are cheap again; then find what it keeps. {still}"
    if growing.mechanism.receded:
        return f"Find what the service keeps until it is restarted. A longer measure.budget may confirm it. {still}"
    return (
        "A restart did not show that the service itself keeps it: look for what outlives a restart, such as a file, a "
        f"table or the data of another server. {still}"
    )


def _to_confirm(inv: Investigation) -> str | None:
    """What a finding that the curve alone shows needs to be confirmed; None for others."""
    found = facts.main_findings(inv)
    if not found or found[0].id not in OPERATIONAL or found[0].id in GROWTH or found[0].status != "suspected":
        return None
    if inv.outcome.kind == "no-proven-gain":
        changed = ", ".join(dict.fromkeys(change.setting for one in inv.rounds for change in _tried(one)))
        further = _could_confirm(inv, found[0]) or (
            "Declare further settings as [target.setting.NAME], or expose what the service counts of its queues and "
            "pools (target.metrics)."
        )
        return f"{words.sentence(found[0].explanation)} Changing {changed} has no proven gain. {further}"
    return words.sentence(found[0].explanation) if inv.outcome.kind == "limit-without-remedy" else None


def _not_tried(inv: Investigation) -> str | None:
    """Where a cause is suspected, is there from the lowest level on, and no remedy for it was tried: which ones could
    be, and why they were not; None elsewhere."""
    found = facts.main_findings(inv)
    reached = found[0].reached_at if found else None
    if inv.outcome.kind != "limit-without-remedy" or reached is None or not inv.rounds:
        return None
    if reached.load > inv.rounds[0].curve.points[0].load:
        return None
    return _could_confirm(inv, found[0])


def _could_confirm(inv: Investigation, finding: Finding) -> str | None:
    """Which remedies for it were not tried, and why; None where none is left."""
    could = [one for one in change_words.untried(inv) if finding.id in one.remedy.addresses]
    if not could:
        return None
    titles = words.and_list(list(dict.fromkeys(one.remedy.title for one in could)))
    was = "was" if len(could) == 1 else "were"
    return f"{titles} may confirm it, and {was} not tried: {words.strip(could[0].because)}."


def _tried(one: Round) -> list[Change]:
    return [change for trial in one.tried for change in trial.remedy.changes if change.needed]


def _begins_flat(inv: Investigation) -> bool:
    """Whether the lowest level of the last state is above 1 and has all the throughput that there is."""
    curve = inv.rounds[-1].curve
    return curve.points[0].load > 1 and is_flat(curve)


def _first_id(inv: Investigation) -> str:
    findings = facts.main_findings(inv)
    return findings[0].id if findings else ""


def _next_limit(inv: Investigation, limit: NextLimit) -> str:
    """ "The server runs out of open files, at about 420 active jobs. ..."; rounded as the ledger does. One within the
    levels is there already, and one that no change has proved is called so."""
    title = f"The limit {limit.id} is reached" if limit.title == limit.id else words.strip(words.sentence(limit.title))
    because = f" {words.sentence(limit.because)}" if limit.because else ""
    if limit.load is None:
        return f"{title}, beyond the tested levels.{because}"
    interval = _listed_interval(inv, limit) or LoadInterval(limit.load, limit.load, limit.load)
    wide, unit = rounding.has_width(interval.low, interval.high), words.axis_unit(inv)
    highest = inv.rounds[-1].curve.points[-1].load if inv.rounds else 0.0
    if limit.load > highest and not wide:
        return f"{title}, beyond the tested levels.{because}"
    if limit.load > highest:
        return f"{title}, at about {words.load_interval(interval, unit)}.{because}{_far(limit.load, highest)}"
    where = words.about_load(interval, unit) if wide else f"about {words.load(words.forecast(limit.load), unit)}"
    status = {finding.id: finding.status for finding in inv.rounds[-1].findings}.get(limit.id, "")
    unproved = " (suspected, not proved)" if status == "suspected" else ""
    return f"{title}{unproved}, from {where} on.{because}"


FAR = 1.5
"""Times the highest load that was tested: from there on a straight line is the larger assumption."""


def _far(load: float, highest: float) -> str:
    """What a load far beyond those that were tested rests on."""
    if not highest or load < FAR * highest:
        return ""
    times = f"{rounding.fixed(load / highest, 1)} times the highest load that was tested"
    return f" That is {times}, and holds if its use goes on growing in a straight line."


def _listed_interval(inv: Investigation, limit: NextLimit) -> LoadInterval | None:
    """The interval with which the last round's ledger or findings give this very load."""
    if not inv.rounds:
        return None
    last = inv.rounds[-1]
    listed = [each.exhausted_at for each in last.limits if each.id == limit.id]
    listed += [finding.reached_at for finding in last.findings if finding.id == limit.id]
    return next((interval for interval in listed if interval and interval.load == limit.load), None)
