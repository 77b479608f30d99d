"""The sentences that text and page share, so that the two can never disagree.

Every claim is worded by its standing: only a confirmed finding is stated, a suspected one is called so. Numbers carry
the digits that their interval supports (rounding.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from loadframe.metrics import METRICS
from loadframe.model import (
    FLAGS,
    Answer,
    Change,
    Comparison,
    Conduct,
    Control,
    Curve,
    CurvePoint,
    Decision,
    Evidence,
    Finding,
    Investigation,
    LadderStep,
    LevelRatio,
    Limit,
    LoadInterval,
    Margin,
    Price,
    SettingValue,
    StandingChange,
    StateSummary,
    StudySummary,
    Trial,
    UntriedRemedy,
    Verdict,
)
from loadframe.reporting import facts, rounding
from loadframe.units import show, show_metric

COMPARISONS = {
    ">": "more than",
    ">=": "at least",
    "<": "less than",
    "<=": "at most",
    "==": "exactly",
    "!=": "other than",
    "~": "about",
}

STATUS = {
    "confirmed": "confirmed: changing it moved the curve, and its own evidence receded",
    "helped": "helped: a change for it moved the curve, and that this was the mechanism was not seen",
    "suspected": "suspected: no change has proved it",
    "refuted": "refuted: changing it did not move the curve",
}


def target(inv: Investigation) -> str:
    """ "mariadb 10.11.14"; servers that name themselves in their version are not named twice."""
    return target_name(inv.study)


def target_name(study: StudySummary) -> str:
    """The same from a study."""
    kind, version = study.target_kind, study.target_version
    return version if kind.lower() in version.lower() else f"{kind} {version}".strip()


# --- loads and throughput -------------------------------------------------------------------------------------------


def axis_unit(inv: Investigation) -> str:
    """What the load axis counts, in the user's words."""
    return study_unit(inv.study)


def study_unit(study: StudySummary) -> str:
    """The same from a study."""
    return study.axis_unit or study.axis.replace("_", " ")


def load(value: float, unit: str) -> str:
    """ "12 active jobs"; "1 worker"."""
    text = rounding.exact(value) if float(value).is_integer() else rounding.plain(value)
    singular = unit[:-1] if value == 1 and unit.endswith("s") and not unit.endswith(("ss", "/s")) else unit
    return f"{text} {singular}"


def load_interval(interval: LoadInterval, unit: str) -> str:
    """ "13 active jobs (12 to 14)", or the value alone where there is no interval."""
    if not rounding.has_width(interval.low, interval.high):
        return load(interval.load, unit)
    value, low, high = rounding.with_interval(interval.load, interval.low, interval.high)
    return f"{value} {unit} ({low} to {high})"


def about_load(interval: LoadInterval, unit: str) -> str:
    """ "about 13 active jobs": the same value, for the middle of a sentence."""
    if not rounding.has_width(interval.low, interval.high):
        return load(interval.load, unit)
    value, _, _ = rounding.with_interval(interval.load, interval.low, interval.high)
    if "." in value:
        value = rounding.plain(forecast(float(value.replace(",", ""))))
    return f"about {value} {unit}"


def forecast(value: float) -> float:
    """A load that was worked out deserves three digits, not more, however narrow its interval."""
    return float(rounding.plain(value).replace(",", "")) if math.isfinite(value) else value


def throughput(value: float) -> str:
    return f"{rounding.plain(value)} requests/s"


def point_throughput(point: CurvePoint) -> str:
    """ "1,230 requests/s (1,190 to 1,270)"."""
    if not rounding.has_width(point.throughput_low, point.throughput_high):
        return throughput(point.throughput)
    value, low, high = rounding.with_interval(point.throughput, point.throughput_low, point.throughput_high)
    return f"{value} requests/s ({low} to {high})"


def milliseconds(value: float | None) -> str:
    """ "12.5 ms"; from ten seconds on in seconds; empty where it is not known."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{rounding.plain(value)} ms" if value < 10_000 else rounding.seconds(value / 1000)


def peak(state: StateSummary, unit: str) -> str:
    return f"{throughput(state.peak.throughput)} at {load(state.peak.load, unit)}"


def knee(state: StateSummary, unit: str) -> str:
    return load_interval(state.knee, unit) if state.knee else "no bend within the levels"


def state_sentence(state: StateSummary, unit: str) -> str:
    """Peak and knee of one state of the target."""
    bend = f"bends at {load_interval(state.knee, unit)}" if state.knee else "does not bend within the levels"
    return f"peak {peak(state, unit)}; {bend}"


def curve_phrase(curve: Curve, unit: str) -> str:
    """What a curve does, to follow the word "throughput"."""
    last = max((point.load for point in curve.points), default=curve.peak.load)
    bend = about_load(curve.knee, unit) if curve.knee else load(curve.peak.load, unit)
    match curve.shape:
        case "cliff" if curve.cliff:
            kept = rounding.percent(curve.cliff.throughput_kept)
            ends = f"{rounding.plain(curve.cliff.from_load)} and {load(curve.cliff.to_load, unit)}"
            return f"falls to {kept} between {ends}"
        case "decline" | "cliff":
            return f"falls after {bend}"
        case "plateau" if curve.knee is None:
            return "does not grow with the load"
        case "plateau":
            return f"levels off at {bend}"
        case "linear":
            return f"still grows at {load(last, unit)}"


CLOSED_LOOP = "A closed loop: while a request waits, its client asks nothing else, and no latency tells of that."
OPEN_LOOP = "An open loop: requests were offered at a rate, and latencies count from when each should have begun."


def curve_facts(curve: Curve, unit: str) -> list[str]:
    """Peak, knee, capacity, scalability law and loop of a curve, a sentence each; only what is known."""
    at_peak = next((point for point in curve.points if point.load == curve.peak.load), None)
    height = throughput(curve.peak.throughput) if at_peak is None else point_throughput(at_peak)
    lines = [f"Peak: {height} at {load(curve.peak.load, unit)}."]
    if curve.knee:
        lines.append(f"Knee: {load_interval(curve.knee, unit)}.")
    if curve.capacity:
        lines.append(f"Capacity within the objective: {load_interval(curve.capacity, unit)}.")
    if curve.usl and curve.usl.peak_load is not None and math.isfinite(curve.usl.peak_load):
        lines.append(f"Scalability law: peak expected at {load(forecast(curve.usl.peak_load), unit)}.")
    if curve.closed_loop is not None:
        lines.append(CLOSED_LOOP if curve.closed_loop else OPEN_LOOP)
    return lines


# --- verdicts -------------------------------------------------------------------------------------------------------


def gain_sentence(verdict: Verdict, unit: str = "") -> str:
    """ "4.1 times the throughput (95 % interval 3.8 to 4.4, 5 blocks)"; with a unit also the levels it holds for:
    "4.1 times the throughput at 20, 40 and 80 active jobs (95 % ...)"."""
    levels = verdict_levels(verdict, unit) if unit else ""
    where = f" {levels}" if levels else ""
    sentence = f"{ratio(verdict)} times the throughput{where} ({_interval_words(verdict)})"
    if verdict.decision == "no-proven-difference":
        return f"no proven difference: {sentence}"
    return f"worse: {sentence}" if verdict.decision == "worse" else sentence


DECISIONS: Mapping[Decision, str] = {
    "better": "better",
    "worse": "worse",
    "no-proven-difference": "no proven difference",
}
MARGINS: Mapping[Answer, str] = {
    "proven-worse": "it is proven to be worse by more than that",
    "proven-not-worse": "it is proven not to be worse by more than that",
    "cannot-tell": "whether it is worse by more than that cannot be told from these data; measure more",
}


def comparison_sentence(comparison: Comparison) -> str:
    """ "wal against as given: better. 4.1 times the throughput (95 % interval 3.8 to 4.4, 5 blocks)."."""
    verdict = comparison.verdict
    blocks = f"{verdict.blocks} block{'' if verdict.blocks == 1 else 's'}" if verdict.block_ratios else ""
    interval = confident_interval(verdict) or "no interval"
    what = f"{comparison.what} {verdict_levels(verdict, comparison.axis_unit)}".strip()
    return (
        f"{comparison.after} against {comparison.before}: {DECISIONS[verdict.decision]}. "
        f"{ratio(verdict)} times the {what} ({', '.join(part for part in (interval, blocks) if part)})."
    )


def floor_sentence(verdict: Verdict) -> str:
    """ "Noise floor: equal servers showed 0.97 to 1.04 times in these blocks."."""
    if verdict.floor is None:
        return ""
    low, high = (rounding.plain(end) for end in verdict.floor)
    return f"Noise floor: each state against itself, block against block: {low} to {high} times."


def margin_sentence(margin: Margin) -> str:
    """What is known of the loss that was allowed."""
    return f"Worse by {rounding.percent(margin.allowed)} at most: {MARGINS[margin.answer]}."


def level_ratio(row: LevelRatio, unit: str) -> str:
    """ "at 4 clients: 2.1 times (1,200/s before, 2,520/s after)"."""
    before, after = throughput(row.before), throughput(row.after)
    return f"at {load(row.load, unit)}: {rounding.plain(row.ratio)} times ({before} before, {after} after)"


def ratio(verdict: Verdict | LadderStep) -> str:
    return rounding.with_interval(verdict.ratio, verdict.low, verdict.high)[0]


BEYOND = 1000.0
"""What a ratio's interval reaches beyond this many times either way says no more than that hardly anything is known."""


def ratio_interval(verdict: Verdict | LadderStep) -> str:
    """ "3.8 to 4.4", "less than 0.001 to 30"; empty where no interval is known."""
    if not rounding.has_width(verdict.low, verdict.high):
        return ""
    _, low, high = rounding.with_interval(verdict.ratio, verdict.low, verdict.high)
    low = low if verdict.low >= 1 / BEYOND else f"less than {rounding.plain(1 / BEYOND)}"
    high = high if verdict.high <= BEYOND else f"more than {rounding.plain(BEYOND)}"
    return f"{low} to {high}"


USUAL = 0.95
"""The confidence that is said once for all where there is a note."""


def ratio_words(verdict: Verdict) -> str:
    """ "3.1 times (2.8 to 3.4)"; with another confidence than USUAL "3.1 times (97.5 % interval 2.7 to 3.5)"."""
    interval = ratio_interval(verdict) if verdict.confidence == USUAL else confident_interval(verdict)
    return f"{ratio(verdict)} times{f' ({interval})' if interval else ''}"


def confidence(verdict: Verdict) -> str:
    """ "95 %", "97.5 %"."""
    return f"{100 * verdict.confidence:.4g} %"


def confident_interval(verdict: Verdict) -> str:
    """ "95 % interval 3.8 to 4.4"; empty where no interval is known."""
    interval = ratio_interval(verdict)
    return f"{confidence(verdict)} interval {interval}" if interval else ""


def _interval_words(verdict: Verdict) -> str:
    blocks = f"{verdict.blocks} block{'' if verdict.blocks == 1 else 's'}"
    return f"{confident_interval(verdict) or 'no interval'}, {blocks}"


def verdict_levels(verdict: Verdict, unit: str) -> str:
    """ "at 20, 40 and 80 active jobs", "at 5 to 320 active jobs"; empty where the levels are not known."""
    levels = sorted(verdict.levels)
    if not levels:
        return ""
    last = load(levels[-1], unit)
    if len(levels) > 3:
        return f"at {rounding.exact(levels[0])} to {last}"
    return f"at {and_list([*(rounding.exact(level) for level in levels[:-1]), last])}"


def ladder_step(step: LadderStep) -> str:
    """ "6.1 times (5.8 to 6.4), 47 % of the gain"."""
    interval = ratio_interval(step)
    share = rounding.percent(step.share)
    if step.share_low is not None and step.share_high is not None:
        share += f" ({rounding.percent(step.share_low)} to {rounding.percent(step.share_high)})"
    return f"{ratio(step)} times{f' ({interval})' if interval else ''}, {share} of the gain"


# --- findings -------------------------------------------------------------------------------------------------------


def metric_words(metric: str) -> str:
    """What a metric is, in plain words; an unregistered name is at least spelled out."""
    if metric not in METRICS:
        return metric.replace(".", " ").replace("_", " ")
    what = METRICS[metric].what
    if what.startswith("of these "):
        # The registry lists such a metric below its whole ("threads of the target"); alone it needs to name it.
        whole = METRICS.get(f"{metric.rpartition('.')[0]}.count")
        return f"{whole.what if whole else 'those'} {what.removeprefix('of these ')}"
    return f"share {what}" if what.startswith("of the ") else what


def evidence_threshold(evidence: Evidence) -> str:
    """ "more than 10/s"; empty where nothing was to be compared."""
    if not math.isfinite(evidence.threshold):
        return ""
    words = COMPARISONS.get(evidence.comparison.strip(), evidence.comparison.strip())
    return f"{words} {show_metric(evidence.metric, evidence.threshold)}".strip()


def evidence_sentence(evidence: Evidence) -> str:
    """One piece of evidence in a line: what, how much, what would have been suspicious, when."""
    notes = [evidence_threshold(evidence) and f"threshold: {evidence_threshold(evidence)}", evidence.window]
    note = "; ".join(note for note in notes if note)
    value = show_metric(evidence.metric, evidence.value)
    return f"{metric_words(evidence.metric)}: {value}{f' ({note})' if note else ''}"


def mechanism_sentence(finding: Finding) -> str:
    """What became of the cause's own evidence with the change for it; empty where there was none that helped."""
    if finding.mechanism is None:
        return ""
    moved = "its mechanism moved" if finding.status == "confirmed" else "its mechanism"
    return f"{moved}: {finding.mechanism.because}"


def finding_sentence(finding: Finding, unit: str) -> str:
    """A finding's title with its standing and the load at which it begins."""
    start = f", from {load_interval(finding.reached_at, unit)} on" if finding.reached_at else ""
    return f"{strip(finding.title)}{start} ({STATUS[finding.status]})"


# --- changes --------------------------------------------------------------------------------------------------------


def change_words(change: facts.NetChange | Change) -> str:
    """ "table_open_cache from 64 to 2000", with what the target made of it where that differs."""
    origin = "" if change.before is None else f" from {_setting(change.setting, change.before)}"
    effective = change.effective if isinstance(change, facts.NetChange) else None
    cut = effective is not None and not facts.same_value(effective, change.after)
    note = f" (the target uses {_setting(change.setting, effective)})" if cut else ""
    return f"{change.setting}{origin} to {_setting(change.setting, change.after)}{note}"


def _setting(name: str, value: SettingValue | None) -> str:
    """As a configuration spells it; the memory of a cage, which no configuration holds, in words."""
    of_memory = name.endswith("memory.max") and isinstance(value, int | float)
    return show(float(value), "bytes") if of_memory and value is not None else facts.shown(value)


def changes_words(inv: Investigation) -> str:
    """The kept changes as the subject of a sentence; the names alone where there are more than two."""
    changes = facts.net_changes(inv)
    if not changes:
        return "the change"
    if len(changes) <= 2:
        return "setting " + " and ".join(change_words(change) for change in changes)
    return (
        "setting "
        + and_list([change_words(change) for change in changes[-1:]])
        + (f" (and, for that, {and_list([change.setting for change in changes[:-1]])})")
    )


def price_sentences(price: Price) -> list[str]:
    """What a remedy costs: memory and durability; nothing where nothing was measured or given up."""
    sentences = []
    before, after = price.memory_before_bytes, price.memory_after_bytes
    if before is not None and after is not None and math.isfinite(before) and math.isfinite(after):
        more = after - before
        change = f" ({show(abs(more), 'bytes')} {'more' if more > 0 else 'less'})" if more else ""
        shown_before, shown_after = show(before, "bytes"), show(after, "bytes")
        sentences.append(f"memory of the target under load: {shown_before} before, {shown_after} after{change}")
    if price.durability:
        sentences.append(f"durability given up: {strip(price.durability)}")
    if price.note:
        sentences.append(strip(price.note))
    return sentences


def trial_sentence(trial: Trial) -> str:
    """What became of a remedy that was tried."""
    return f"{'kept' if trial.kept else 'taken back'}: {gain_sentence(trial.verdict)}"


CONTROLS = {"sham": "control", "dose": "dose", "without": "worth"}


def control_sentence(control: Control) -> str:
    """What a kept remedy was held against besides the state before it, in a line."""
    measured = f"{gain_sentence(control.verdict)}; " if control.verdict and control.kind == "without" else ""
    return f"{CONTROLS[control.kind]} ({control.title}): {measured}{control.because}"


def operations_sentence(trial: Trial, unit: str) -> str:
    """ "At 500 jobs: submit 9.1 ms before, 9 ms after; list 41 s before, 12 s after"; the highest level only."""
    if not trial.operations:
        return ""
    highest = max(each.load for each in trial.operations)
    told = [
        f"{each.name} {milliseconds(each.before_ms)} before, {milliseconds(each.after_ms)} after"
        for each in trial.operations
        if each.load == highest
    ]
    return f"at {load(highest, unit)}: {'; '.join(told)}"


def untried(inv: Investigation) -> list[UntriedRemedy]:
    """The remedies that were shown and not tried, each once; those that a later round tried after all are left out."""
    tried = {trial.remedy.id for round_ in inv.rounds for trial in round_.tried}
    shown = {each.remedy.id: each for round_ in inv.rounds for each in round_.untried if each.remedy.id not in tried}
    return list(shown.values())


def durability_sentences(inv: Investigation) -> list[str]:
    """With durability kept and relaxed, side by side; nothing where the kept changes give up none."""
    given_up = facts.gives_up(inv)
    if not given_up and inv.gain_durability_kept is None:
        return []
    sentences = []
    if inv.gain_durability_kept:
        sentences.append(f"with durability kept: {gain_sentence(inv.gain_durability_kept)}")
    if inv.gain and given_up:
        price = "; ".join(strip(text) for text in given_up)
        sentences.append(f"with durability relaxed: {gain_sentence(inv.gain)} - gives up: {price}")
    return sentences


# --- limits and conduct ---------------------------------------------------------------------------------------------


def limit_number(value: float | None, limit: Limit) -> str:
    """A limit's ceiling, use or headroom in its own unit; empty where it is unknown or unlimited."""
    if value is None or not math.isfinite(value):
        return ""
    return show(value, limit.unit)


def conduct_sentences(conduct: Conduct) -> list[str]:
    """How the run went: what still stands, steps, counters not to be believed, flags in plain words, what the recorder
    cost."""
    again = f", {conduct.repeated} of them run again" if conduct.repeated else ""
    sentences = [*standing_sentences(conduct.standing), f"{conduct.steps} steps were measured{again}"]
    sentences += [
        f"a counter is blind in {one.steps} of {conduct.steps} steps, rules nothing out and confirms nothing: "
        f"{one.because}"
        for one in conduct.blind
    ]
    sentences += [
        f"{count} of {conduct.steps} steps: {FLAGS.get(flag, flag)}" for flag, count in conduct.flags.items() if count
    ]
    if not any(conduct.flags.values()):
        sentences.append("no step carries a flag")
    cost = f"{rounding.percent(conduct.recorder_cpu_share)} of one CPU and {show(conduct.recorder_rss_bytes, 'bytes')}"
    ticks = f"{conduct.late_ticks:,} of its {conduct.ticks:,} ticks came late"
    if conduct.ticks and math.isfinite(conduct.recorder_cpu_share):
        sentences.append(f"Loadframe's own recorder used {cost}; {ticks}")
    return sentences


def standing_sentences(standing: Sequence[StandingChange]) -> list[str]:
    """What could not be put back when the run ended, and what to do."""
    return [
        f"{each.setting} of {each.of} {strip(each.because)}; `loadframe changes revert` tries again"
        for each in standing
    ]


def silence_sentence(inv: Investigation) -> str:
    """Where, and for how long, nobody was answered; of all that was measured the worst. Empty where nowhere."""
    rounds = [(inv.study.target_kind, one) for one in inv.rounds]
    rounds += [(one.name, one.round) for one in inv.alternatives]
    found = [(name, silence) for name, round_ in rounds for silence in facts.silences(round_)]
    if not found:
        return ""
    name, worst = max(found, key=lambda one: one[1].silence_ms)
    still = "; the machine itself stood still" if worst.stalled_ms >= facts.SILENT_MS else ""
    loads = {silence.load for _, silence in found}
    often = f", at {len(loads)} loads in all" if len(loads) > 1 else ""
    at, longest = load(worst.load, axis_unit(inv)), milliseconds(worst.silence_ms)
    return f"Nobody was answered for up to {longest} ({name}, at {at}{often}){still}."


# --- grammar --------------------------------------------------------------------------------------------------------


def strip(text: str) -> str:
    """Without the full stop at the end, for use inside a sentence."""
    return text.strip().rstrip(".").rstrip()


def sentence(text: str) -> str:
    """With a capital and a full stop. Names (table_open_cache, sqlite.wal_bytes) keep their spelling."""
    bare = strip(text)
    if not bare:
        return ""
    first = bare.split()[0].rstrip(",:;")
    return f"{bare[:1].upper()}{bare[1:]}." if first.replace("-", "").replace("'", "").isalpha() else f"{bare}."


def and_list(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""
