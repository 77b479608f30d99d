"""Decisions and statuses in words."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from loadframe.analysis import divergence
from loadframe.analysis.divergence import Reach
from loadframe.diagnosis.growing import GROWTH
from loadframe.diagnosis.windows import explained
from loadframe.model import (
    Answer,
    AnswersCompared,
    Compared,
    Comparison,
    Decision,
    Finding,
    FindingStatus,
    FleetDrivers,
    Investigation,
    LadderStep,
    LevelRatio,
    Margin,
    More,
    Needed,
    Sessions,
    Variant,
    Verdict,
)
from loadframe.model.verdict import NOT_KNOWN
from loadframe.progress import counted
from loadframe.reporting import rounding, words
from loadframe.units import show

Ratio = Verdict | LadderStep | LevelRatio | Reach | More
DECISIONS: Mapping[Decision, str] = {decision: decision.replace("-", " ") for decision in get_args(Decision)}
NO_DIFFERENCE = DECISIONS["no-proven-difference"]
FATES = {True: "kept", False: "reverted", None: ""}
TAKEN_BACK = "proved, and reverted as fresh blocks say the opposite"
MARGINS: Mapping[Answer, str] = {
    "proven-worse": "it is proven to be worse by more than that",
    "proven-not-worse": "it is proven not to be worse by more than that",
    "cannot-tell": "these data do not show whether it is worse by more than that",
}
STATUS: Mapping[FindingStatus, str] = {
    "confirmed": "confirmed: changing it moved the curve, and its own evidence receded",
    "helped": "helped: a change for it moved the curve, but the mechanism was not observed",
    "suspected": "suspected: no change has proved it",
    "refuted": "refuted: changing it did not move the curve",
}
GROWTH_STATUS: Mapping[FindingStatus, str] = {
    "confirmed": "confirmed: after a restart requests were cheap again, and then became dearer",
    "suspected": "suspected: no restart has confirmed it",
}
UNPROVED: Mapping[FindingStatus, str] = {
    "helped": "A change for this cause helped, its mechanism was not observed",
    "suspected": "Suspected, not proved",
}


def status(finding: Finding) -> str:
    own = GROWTH_STATUS if finding.id in GROWTH else {}
    return own.get(finding.status, STATUS[finding.status])


def times_the_throughput(verdict: Verdict, unit: str = "") -> str:
    """Without a unit, without the levels."""
    levels = verdict_levels(verdict, unit) if unit else ""
    return f"{led_ratio(verdict)} times the throughput {levels}".rstrip()


def gain_sentence(verdict: Verdict, unit: str = "") -> str:
    if not verdict.has_ratio:
        return without_ratio(verdict)
    sentence = f"{times_the_throughput(verdict, unit)} ({_interval_words(verdict)})"
    if verdict.unsettled_at:
        at = ", ".join(map(rounding.exact, verdict.unsettled_at))
        if verdict.decision == "cannot-tell":
            return f"nothing is decided, as the warm-up had not ended at {at}: {sentence}"
        sentence += f"; the warm-up had not ended at {at}, and the interval holds what it can still change"
    return sentence if verdict.decision == "better" else f"{DECISIONS[verdict.decision]}: {sentence}"


def without_ratio(verdict: Verdict) -> str:
    return f"{DECISIONS[verdict.decision]}: {verdict.method}"


def apart(verdict: Verdict, where: str) -> str:
    """ "2.1 times at 4 workers (1.8 to 2.5)"."""
    if not verdict.has_ratio:
        return f"{where}, {without_ratio(verdict)}"
    outcome = f"{ratio(verdict)} times" if verdict.decided else DECISIONS[verdict.decision]
    return f"{outcome} {where} ({ratio_interval(verdict)})"


def comparison_sentence(comparison: Comparison) -> str:
    verdict, sides = comparison.verdict, f"{comparison.after} against {comparison.before}"
    if not verdict.has_ratio:
        return f"{sides}: {without_ratio(verdict)}."
    what = f"{comparison.what} {verdict_levels(verdict, comparison.axis_unit)}".strip()
    about = _interval_words(verdict if verdict.block_ratios else replace(verdict, blocks=0))
    return f"{sides}: {DECISIONS[verdict.decision]}. {ratio(verdict)} times the {what} ({about})."


MOST_LOADS = 6


def variant_name(variant: Variant) -> str:
    """Its setting; of more than two the last, which the others are for."""
    names = [change.setting for change in variant.changes]
    return " and ".join(names if len(names) <= 2 else names[-1:]) or "the change"


def variant_head(variant: Variant) -> str:
    return f"But {words.strip(variant.gives_up.partition(';')[0])}:" if variant.gives_up else "Safe:"


def by_load(compared: Compared, unit: str) -> str:
    """ "4x (3.5 to 4.6) at 1 worker, 5x (4.4 to 5.8) at 4"; of more loads the ends and those judged."""
    shown, verdict = list(compared.levels), compared.reported
    if len(shown) > MOST_LOADS:
        about = [compared.at] if isinstance(compared, Variant) else []
        chosen = {shown[0].load, *verdict.levels, *about, shown[-1].load}
        shown = [level for level in shown if level.load in chosen]
    parts = []
    for number, level in enumerate(shown):
        ends = f" ({ratio_interval(level)})" if ratio_interval(level) else ""
        where = rounding.exact(level.load) if number else words.load(level.load, unit)
        parts.append(f"{ratio(level)}x{ends} at {where}")
    from_curves = [rounding.exact(level.load) for level in shown if level.from_curves and verdict.block_ratios]
    source = f"; at {words.and_list(from_curves)} from the curves, not block by block" if from_curves else ""
    return ", ".join(parts) + source


def noise_sentence(verdict: Verdict) -> str:
    if verdict.floor is None:
        return ""
    return f"Equal states differed by {' to '.join(map(rounding.plain, verdict.floor))} times in the same blocks."


def proof_sentence(verdict: Verdict, unit: str) -> str:
    how = "Block by block" if verdict.block_ratios else "From the curves, not block by block"
    where = ", ".join(filter(None, (how, verdict_levels(verdict, unit))))
    no = "" if verdict.decided else f"{DECISIONS[verdict.decision]}, "
    gain = f"{no}{ratio(verdict)} times, {_interval_words(verdict)}" if verdict.has_ratio else without_ratio(verdict)
    return f"{where}: {gain}. {noise_sentence(verdict)}".rstrip()


def block_ratios(verdict: Verdict) -> str:
    ratios = ", ".join(map(rounding.plain, verdict.block_ratios))
    return f"Ratio in each block: {ratios}." if ratios else ""


def margin_sentence(margin: Margin) -> str:
    return f"Worse by {rounding.percent(margin.allowed)} at most: {MARGINS[margin.answer]}."


def sessions_sentence(sessions: Sessions) -> str:
    learnt = f"learnt from {sessions.learnt_from} equal ones"
    source = learnt if sessions.learnt_from else "a prior: no equal ones are known"
    _, low, high = rounding.with_interval(math.sqrt(sessions.low * sessions.high), sessions.low, sessions.high)
    return (
        f"Two sessions of this machine differ by up to {rounding.percent(sessions.share)} ({source}), which is in the "
        f"interval; the values by themselves give {low} to {high} times."
    )


def needed_sentence(needed: Needed, sessions: Sessions | None) -> str:
    if needed.count is not None:
        return f"About {needed.count:,} {needed.what} of each side would tell, if they go on like these."
    if sessions is None:
        return f"No number of such {needed.what} would tell."
    advice = "Measure both sides in turns, in blocks, or each in several sessions."
    return f"No number of {needed.what} would tell: two sessions differ by as much. {advice}"


def ratio(estimate: Ratio) -> str:
    ends = estimate.low, estimate.high
    return "" if ends == NOT_KNOWN else rounding.with_interval(estimate.ratio, *ends)[0]


def headline(verdict: Verdict) -> str:
    return f"{ratio(verdict)}\u00d7" if verdict.has_ratio else DECISIONS[verdict.decision]


def led_ratio(estimate: Ratio) -> str:
    """ "3.1", or "at least 11", the lower end, for a proven gain whose interval is too wide."""
    value, low, _ = rounding.with_interval(estimate.ratio, estimate.low, estimate.high)
    proved = estimate.low > 1 and (not isinstance(estimate, Verdict) or estimate.decision == "better")
    return f"at least {low}" if proved and rounding.is_vague(estimate.low, estimate.high) else value


def led_gain(verdict: Verdict, unit: str) -> str:
    if verdict.decision != "better" or not verdict.has_ratio:
        return ""
    return f"{led_ratio(verdict)}x {verdict_levels(verdict, unit)}".strip()


BEYOND = 1000.0


def ratio_interval(estimate: Ratio) -> str:
    """ "3.8 to 4.4", "less than 0.001 to 30"; "" where none is known."""
    ends = estimate.low, estimate.high
    if ends == NOT_KNOWN or not rounding.has_width(*ends):
        return ""
    _, low, high = rounding.with_interval(estimate.ratio, *ends)
    low = low if estimate.low >= 1 / BEYOND else f"less than {rounding.plain(1 / BEYOND)}"
    high = high if estimate.high <= BEYOND else f"more than {rounding.plain(BEYOND)}"
    return f"{low} to {high}"


MAY_OVERSTATE = "from the deciding blocks, may be overstated"


def fresh_words(decided: Verdict) -> str:
    outcome = f"{ratio(decided)} times ({interval(decided)})" if decided.has_ratio else without_ratio(decided)
    return f"from fresh blocks; the deciding blocks gave {outcome}"


USUAL = 0.95  # the confidence that a note states once for all intervals


def ratio_words(verdict: Verdict | None) -> str:
    """ "3.1 times (2.8 to 3.4)"; "3.1 times (97.5 % interval 2.7 to 3.5)"; "at least 3 times"."""
    if verdict is None:
        return ""
    if not verdict.has_ratio:
        return without_ratio(verdict)
    if NOT_KNOWN[0] == verdict.low:
        return f"at most {rounding.plain(verdict.high)} times"
    if NOT_KNOWN[1] == verdict.high:
        return f"at least {rounding.plain(verdict.low)} times"
    ends = ratio_interval(verdict) if verdict.confidence == USUAL else confident_interval(verdict)
    return f"{ratio(verdict)} times{f' ({ends})' if ends else ''}"


def confidence(estimate: Ratio) -> str:
    return f"{100 * getattr(estimate, 'confidence', USUAL):.4g} %"


def confident_interval(estimate: Ratio) -> str:
    ends = ratio_interval(estimate)
    return f"{confidence(estimate)} interval {ends}" if ends else ""


def interval(estimate: Ratio) -> str:
    return confident_interval(estimate) or "no interval"


def _interval_words(verdict: Verdict) -> str:
    overstated = f"; {MAY_OVERSTATE}" if verdict.may_overstate else ""
    blocks = f", {counted(verdict.blocks, 'block')}" if verdict.blocks else ""
    return f"{interval(verdict)}{blocks}{overstated}"


def verdict_levels(verdict: Verdict, unit: str) -> str:
    """ "at 40 active jobs", "on average over 5 to 320 active jobs"; "" if not known."""
    levels = sorted(verdict.levels)
    loads = [*map(rounding.exact, levels[:-1]), *(words.load(level, unit) for level in levels[-1:])]
    if len(loads) < 2:
        return "".join(f"at {load}" for load in loads)
    return f"on average over {words.and_list(loads) if len(loads) <= 3 else f'{loads[0]} to {loads[-1]}'}"


def answers_sentence(compared: AnswersCompared) -> str:
    if compared.equal is None:
        return f"Not compared with {compared.others}, of {compared.of}: {compared.missing}."
    other = f"{compared.others}, of {compared.of}"
    if compared.equal:
        return f"The same as {other}: {', '.join(f'{same.answer} {same.target:,}' for same in compared.answers)}."
    listed = "; ".join(
        f"{answer.answer}: the target says {answer.target:,}, {compared.others} {answer.other:,}"
        + "".join(f" ({first})" for first in answer.differences[:1])
        for answer in compared.answers
        if not answer.equal
    )
    return f"Other answers than {other}: {listed}."


def reach_of(inv: Investigation) -> Reach | None:
    """The last curve against the first; None where nothing was gained or the last state was not measured."""
    if inv.gain is None or len(inv.rounds) < 2:
        return None
    first, last = inv.rounds[0], inv.rounds[-1]
    reach = divergence.reach(first.curve, last.curve)
    if reach is None:
        return None
    reach = replace(reach, knee=(explained(first).knee, explained(last).knee))
    if reach.before.load != reach.after.load:
        return reach
    row = next((level for level in inv.variants[-1].levels if level.load == reach.after.load), None)
    return reach if row is None else replace(reach, ratio=row.ratio, low=row.low, high=row.high)


def reach_sentences(reach: Reach, unit: str) -> str:
    before, after = (f"{rounding.plain(end.throughput)}/s" for end in (reach.before, reach.after))
    at = [words.load(end.load, unit) for end in (reach.before, reach.after)]
    peaks = f"{before} at {at[0]} before, {after} at {at[1]} after"
    if at[0] == at[1]:
        peaks = f"{before} before, {after} after, both at {at[1]}"
    elif rounding.has_width(reach.low, reach.high) and reach.low <= 1 <= reach.high:
        peaks += f": {NO_DIFFERENCE}, {ratio(reach)} times ({interval(reach)})"
    else:
        peaks += f": {led_ratio(reach)} times, each at its own load ({interval(reach)})"
    first, then = ("" if knee is None else words.about_load(knee, unit) for knee in reach.knee)
    knees = first and f"after the changes, no bend within the tested levels; before, at {first}"
    if then:
        instead = {"": "", then: ", as before"}.get(first, f" instead of at {first}")
        knees = f"after the changes, the curve bends at {then}{instead}"
    return words.paragraph((peaks, knees))


def drivers_sentence(drivers: FleetDrivers) -> str:
    everyone, fewer = f"{len(drivers.drivers)} drivers", counted(len(drivers.fewer), "driver")
    gain = f"{ratio(drivers.verdict)} times ({_interval_words(drivers.verdict)})"
    gain = gain if drivers.verdict.has_ratio else without_ratio(drivers.verdict)
    moved, link = (show(value or 0.0, "bytes/s") for value in (drivers.moved_bytes_per_s, drivers.link_bytes_per_s))
    match drivers.limit:
        case "drivers":
            finding = f"{everyone} give more than {fewer}: {gain}. The drivers limit this curve, so add one"
        case "not proven":
            finding = f"it is not proven whether {everyone} give more than {fewer}: {gain}"
        case "link":
            full = f"The link from the target is full: {moved} came through it, and it carries {link} by itself"
            finding = f"{everyone} give as much as {fewer}: {gain}. {full}"
        case "target":
            finding = f"{everyone} give as much as {fewer}: {gain}. The drivers do not limit this curve"
    return f"At {drivers.level:g}, {finding}."
