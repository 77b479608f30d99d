"""The same facts as the page, as plain text for the end of a command. No colours: the caller may add them."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Sequence

from loadframe.model import (
    WORK,
    AnswersCompared,
    Comparison,
    Curve,
    Investigation,
    Quantity,
    RuledOut,
    RunQuality,
    Trial,
    Variant,
    Verdict,
)
from loadframe.reporting import (
    alternatives,
    answers,
    change_words,
    compared_answers,
    facts,
    finding_words,
    forecasts,
    latencies,
    names,
    profiles,
    quality_words,
    reaching,
    rounding,
    stages,
    verdict_words,
    words,
)
from loadframe.reporting.fleet_report import drivers_sentence, fleet_limits_sentences
from loadframe.reporting.layout import columns
from loadframe.reporting.next_step import next_step

LABEL_WIDTH = 11
MOST_LINES = 25
MOST_EVIDENCE = 5
BAR_WIDTH = 40

Part = tuple[str, list[str]]
"""A label and the lines next to it."""


def render_text(inv: Investigation, *, width: int = 100, details: bool = False) -> str:
    """The investigation on a screen: the answer first, then what it rests on, in MOST_LINES; details: all of it. width:
    columns at which lines are broken."""
    first = [textwrap.fill(line, width) for line in (*answers.lines(inv), answers.next_line(inv)) if line]
    lines = [line for part in first for line in part.splitlines()]
    lines.append("")
    if details:
        return "\n".join([*lines, *_laid_out(_details(inv), width)])
    more: Part = ("More", [f"loadframe report {shlex.quote(inv.run)} --details; the page: {inv.report}"])
    room = MOST_LINES - len(lines) - len(_part(*more, width))
    for label, items in _brief(inv):
        part = _part(label, [item for item in items if item], width)
        if len(part) <= room:
            lines += part
            room -= len(part)
    return "\n".join([*lines, *_part(*more, width)])


def _brief(inv: Investigation) -> list[Part]:
    """What the answer rests on, the most important first: what has no room on a screen is left to the details."""
    unit, work = words.axis_unit(inv), words.work_unit(inv)
    findings = facts.main_findings(inv)[:1]
    return [
        *_gains(inv),
        *(_states(inv)[:1] if reaching.of(inv) is None else []),
        ("To copy", _to_copy(inv)),
        ("Proof", [verdict_words.proof_sentence(inv.gain, unit)] if inv.gain else []),
        *(("Versus", alternatives.sentences(inv, one)[:2]) for one in inv.alternatives),
        ("Drivers", [drivers_sentence(inv.drivers)] if inv.drivers is not None else []),
        ("Evidence", [finding_words.evidence_value(each) for one in findings for each in one.evidence[:3]]),
        ("Forecast", forecasts.outcome(inv.forecast, unit, work)[:1] if inv.forecast else []),
        ("Quality", [words.sentence(each) for each in quality_words.sentences(inv.quality)[:3]]),
    ]


def _gains(inv: Investigation) -> list[Part]:
    """What each variant gives at each load, and peak against peak."""
    unit, reach = words.axis_unit(inv), reaching.of(inv)
    by_load = [f"{verdict_words.variant_name(one)}: {verdict_words.by_load(one, unit)}" for one in inv.variants]
    return [("Gain", by_load), ("Peak", [words.sentence(reaching.height(reach, unit))] if reach is not None else [])]


def _to_copy(inv: Investigation) -> list[str]:
    """The settings of each variant, the one that gives nothing up first."""
    blocks = [one for one in inv.variants if one.to_copy]
    if len(blocks) < 2:
        return [line for one in blocks for line in one.to_copy]
    return [line for one in blocks for line in (_head(one), *one.to_copy)]


def _head(variant: Variant) -> str:
    return f"But {words.strip(variant.gives_up.partition(';')[0])}:" if variant.gives_up else "Safe:"


def _details(inv: Investigation) -> list[Part]:
    return [
        ("Asked", [inv.study.question]),
        *_gains(inv),
        *_states(inv),
        (
            "Forecast",
            forecasts.outcome(inv.forecast, words.axis_unit(inv), words.work_unit(inv)) if inv.forecast else [],
        ),
        *(("Versus", alternatives.sentences(inv, one)) for one in inv.alternatives),
        ("Drivers", [drivers_sentence(inv.drivers)] if inv.drivers is not None else []),
        ("Hosts", fleet_limits_sentences(inv.fleet_limits)),
        ("Restart", alternatives.warm_restart_sentences(inv)),
        ("Stalls", [quality_words.silence_sentence(inv)]),
        *_findings(inv),
        *_changes(inv),
        *_ladder(inv),
        ("Stages", stages.sentences(inv)),
        ("Answers", compared_answers.sentences(inv.answers)),
        ("Time", profiles.summary(inv)),
        ("Next", [next_step(inv).text]),
        ("To copy", _to_copy(inv)),
        *_trust(inv),
        ("Report", [inv.report]),
    ]


def _laid_out(parts: Sequence[Part], width: int) -> list[str]:
    return [line for label, items in parts for line in _part(label, [item for item in items if item], width)]


def _part(label: str, items: list[str], width: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        head = f"{label if not lines else '':<{LABEL_WIDTH}}"
        hang = " " * (LABEL_WIDTH + (2 if item.startswith("- ") else 0))
        lines += textwrap.wrap(
            item, width, initial_indent=head, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
        )
    return lines


def _states(inv: Investigation) -> list[Part]:
    unit, work = words.axis_unit(inv), words.work_unit(inv)
    parts: list[Part] = [
        (label, [words.state_sentence(state, unit, work, facts.bending_limit(inv, state), facts.curve_of(inv, state))])
        for label, state in (("Before", inv.before), ("After", inv.after))
        if state is not None
    ]
    told = [change_words.deciding_sentence(trial) for trial in facts.kept_trials(inv)]
    if len(told) == 1 and told[0]:
        parts.append(("Proof", [words.sentence(f"the gain is {told[0]}")]))
    if inv.gain:
        parts.append(("Proof", [verdict_words.proof_sentence(inv.gain, unit)]))
    return parts


def _findings(inv: Investigation) -> list[Part]:
    parts, room = list[Part](), MOST_EVIDENCE
    for finding in facts.main_findings(inv)[:3]:
        unit = words.axis_unit(inv)
        evidence = [f"- {finding_words.evidence_sentence(piece, unit)}" for piece in finding.evidence[:room]]
        evidence += [
            f"- {said}"
            for said in (finding_words.mechanism_sentence(finding),)
            if said and not finding_words.tells_mechanism(finding)
        ]
        room = max(2, room - len(evidence))
        label = "Helped" if finding.status == "helped" else "Then" if parts else "Cause"
        parts.append((label, [finding_words.sentence(inv, finding), *evidence]))
    beside = [item for _, items in facts.findings_and_ruled_out(inv)[:1] for item in items]
    alone = facts.ruled_out_alone(inv)
    out = [*_ruled_out(inv, beside)[:4], *_ruled_out(inv, alone)[:6]]
    refuted = facts.refuted_findings(inv)[:2]
    out += [f"- {names.inside(inv, one.id)}: {finding_words.STATUS['refuted']}" for one in refuted]
    suspected = [finding_words.sentence(inv, finding) for finding in facts.suspected_findings(inv)[:3]]
    open_ = _ruled_out(inv, [*beside, *alone], judged=False)[:4]
    return [*parts, ("Suspected", suspected), ("Ruled out", out), ("Not judged", open_)]


def _ruled_out(inv: Investigation, items: Sequence[RuledOut], *, judged: bool = True) -> list[str]:
    """judged: those that are not it, or those of which that cannot be told."""
    return [f"- {names.inside(inv, item.id)}: {words.strip(item.because)}" for item in items if item.judged is judged]


def _noise(verdict: Verdict) -> str:
    return verdict_words.floor_sentence(verdict).removeprefix("Noise floor: ")


def _first(items: Sequence[str], most: int = 3) -> list[str]:
    """The first of them, and how many more there are."""
    more = len(items) - most
    return [*items[:most], *([f"- and {more} more, in the report"] if more > 0 else [])]


def _changes(inv: Investigation) -> list[Part]:
    kept = facts.kept_trials(inv)
    changes = [
        f"- {change.layer}: {change_words.change(change)}" + (f" - {words.strip(change.why)}" if change.why else "")
        for trial in kept
        for change in facts.needed_changes(trial.remedy)
    ]
    changes += [words.sentence(trial.note) for trial in kept if trial.note]
    changes += [f"- {change_words.control_sentence(control)}" for trial in kept for control in trial.controls]
    taken_back = [
        f"- {trial.remedy.title}: {change_words.trial_sentence(trial)}"
        for round_ in inv.rounds
        for trial in round_.tried
        if not trial.kept
    ]
    untried = [f"- {each.remedy.title}: {words.strip(each.because)}" for each in change_words.untried(inv)]
    clamped = [words.sentence(one) for round_ in inv.rounds for one in round_.clamped]
    unit = words.axis_unit(inv)
    prices = [(trial, line) for trial in kept for line in change_words.price_sentences(trial.remedy.price)]
    requests = [(trial, line) for trial in kept if (line := change_words.operations_sentence(trial, unit))]
    return [
        ("Changed", changes),
        ("Requests", _by_change(requests, len(kept))),
        ("Slower", [said] if (said := latencies.slower(inv)) else []),
        ("Clamped", _first(list(dict.fromkeys(clamped)))),
        ("Cost", _by_change(prices, len(kept))),
        ("Reverted", _first(taken_back)),
        ("Not tried", _first(untried)),
    ]


def _by_change(told: Sequence[tuple[Trial, str]], kept: int) -> list[str]:
    """Sentences about kept changes; where there are several each begins with its change."""
    return list(
        dict.fromkeys(words.sentence(f"{trial.remedy.title}: {line}" if kept > 1 else line) for trial, line in told)
    )


def _ladder(inv: Investigation) -> list[Part]:
    steps = (
        [f"- {step.change}: {verdict_words.ladder_step(step)}" for step in inv.ladder] if len(inv.ladder) > 1 else []
    )
    durability = [words.sentence(text) for text in change_words.durability_sentences(inv)]
    return [("Ladder", steps), ("Durability", durability)]


def _trust(inv: Investigation) -> list[Part]:
    sentences = [words.sentence(text) for text in (*quality_words.sentences(inv.quality), *inv.warnings)]
    return [("Quality", [" ".join(sentences)]), ("Took", [rounding.seconds(inv.seconds)])]


def render_comparison(comparison: Comparison, *, width: int = 100) -> str:
    """A verdict: the answer first, then the levels it is made of, how it was reached, and what may spoil it."""
    sessions = comparison.verdict.sessions
    ratios = [verdict_words.level_ratio(each, comparison.axis_unit, comparison.work_unit) for each in comparison.levels]
    parts: list[Part] = [
        ("Levels", [f"- {each}" for each in ratios] if len(ratios) > 1 else []),
        ("Also", [f"- {_quantity(each)}" for each in comparison.quantities]),
        ("Allowed", [verdict_words.margin_sentence(comparison.margin)] if comparison.margin else []),
        ("To tell", [verdict_words.needed_sentence(comparison.needed, sessions)] if comparison.needed else []),
        ("Sessions", [verdict_words.sessions_sentence(sessions)] if sessions else []),
        ("Noise", [_noise(comparison.verdict)] if comparison.verdict.floor else []),
        ("Method", [words.sentence(comparison.verdict.method)]),
        ("Note", list(comparison.notes)),
        ("Run", [comparison.run] if comparison.run else []),
    ]
    lines = [textwrap.fill(verdict_words.comparison_sentence(comparison), width)]
    for label, items in parts:
        lines += _part(label, items, width)
    return "\n".join(lines)


def _quantity(row: Quantity) -> str:
    """ "p99: worse, 5.7 times (4.9 to 6.6), 10.6 before, 60 after"."""
    if row.verdict is None or row.before is None or row.after is None:
        return f"{row.name}: not judged, {row.because}"
    values = f"{rounding.plain(row.before)} before, {rounding.plain(row.after)} after"
    decision = verdict_words.DECISIONS[row.verdict.decision]
    return f"{row.name}: {decision}, {verdict_words.ratio_words(row.verdict)}, {values}"


def render_curve(
    curve: Curve,
    *,
    unit: str = "",
    quality: RunQuality | None = None,
    work: str = WORK,
    answers: Sequence[AnswersCompared] = (),
) -> str:
    """A curve as a table with a bar per level: load, throughput with its interval, p95 latency; then its shape, and how
    its run went. unit: what the load axis counts; the axis' own name where it is left out. work: what throughput
    counts. answers: of its target, beside programs that tell the same."""
    unit = unit or curve.axis.replace("_", " ")
    points = sorted(curve.points, key=lambda point: point.load)
    top = max((point.throughput for point in points if math.isfinite(point.throughput)), default=0.0) or 1.0
    rows = [
        (
            rounding.plain(point.load) if not float(point.load).is_integer() else rounding.exact(point.load),
            words.point_throughput(point, work) if math.isfinite(point.throughput) else "not measured",
            words.milliseconds(point.latency_p95_ms),
            "#" * max(0, round(BAR_WIDTH * point.throughput / top)) if math.isfinite(point.throughput) else "",
        )
        for point in points
    ]
    head = (unit, "throughput", "p95" if any(row[2] for row in rows) else "", "")
    lines = columns([head, *rows], "><><")
    facts_ = [f"Throughput {words.curve_phrase(curve, unit)}.", *words.curve_facts(curve, unit, work=work)]
    trust = quality_words.sentences(quality) if quality is not None else []
    said = [*facts_, *compared_answers.sentences(answers)]
    return "\n".join([*lines, "", *said, *(words.sentence(each) for each in (*curve.warnings, *trust))])
