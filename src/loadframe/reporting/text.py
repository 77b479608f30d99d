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
    RunQuality,
)
from loadframe.reporting import (
    alternatives,
    answers,
    case_study,
    compared_answers,
    facts,
    finding_words,
    forecasts,
    quality_words,
    reaching,
    rounding,
    terminal,
    verdict_words,
    words,
)
from loadframe.reporting.fleet_report import drivers_sentence
from loadframe.reporting.layout import columns

LABEL_WIDTH = 11
MOST_LINES = 25
BAR_WIDTH = 40

Part = tuple[str, list[str]]
"""A label and the lines next to it."""


def render_text(inv: Investigation, *, width: int = 100, details: bool = False) -> str:
    """The investigation on a screen: the answer first, then what it rests on, in MOST_LINES; details: all of it. width:
    columns at which lines are broken."""
    if details:
        return terminal.render(case_study.of(inv), width)
    first = [textwrap.fill(line, width) for line in (*answers.lines(inv), answers.next_line(inv)) if line]
    lines = [line for part in first for line in part.splitlines()]
    lines.append("")
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
        ("Before", _before(inv)),
        ("To copy", _to_copy(inv)),
        ("Its log", [] if inv.stop is None else list(inv.stop.log)),
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
    return [line for one in blocks for line in (verdict_words.variant_head(one), *one.to_copy)]


def _part(label: str, items: list[str], width: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        head = f"{label if not lines else '':<{LABEL_WIDTH}}"
        hang = " " * (LABEL_WIDTH + (2 if item.startswith("- ") else 0))
        lines += textwrap.wrap(
            item, width, initial_indent=head, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
        )
    return lines


def _before(inv: Investigation) -> list[str]:
    """The state as given."""
    unit, state = words.axis_unit(inv), inv.before
    if state is None or reaching.of(inv) is not None:
        return []
    limit, curve = facts.bending_limit(inv, state), facts.curve_of(inv, state)
    return [words.state_sentence(state, unit, words.work_unit(inv), limit, curve)]


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
        ("Noise", [verdict_words.noise_sentence(comparison.verdict)] if comparison.verdict.floor else []),
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
