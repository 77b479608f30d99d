"""A curve as a document."""

import math
from collections.abc import Iterator, Sequence

from loadframe.diagnosis.windows import bend_of, explained
from loadframe.metrics import is_known
from loadframe.metrics import metric as metric_of
from loadframe.model import WORK, AnswersCompared, Curve, CurvePoint, Investigation, Round, RunQuality
from loadframe.reporting import document as doc
from loadframe.reporting import facts, rounding, terminal, verdict_words, words
from loadframe.units import show_metric

STEP_COLUMNS = {
    "step": "step",
    "level": "{unit}",
    "block": "block",
    "throughput": "{work}/s",
    "latency_p95_ms": "p95 in ms",
    "latency_p999_ms": "p99.9 in ms",
    "errors": "errors",
}
P999 = "latency_p999_ms"
COUNTED = frozenset({"step", "level", "block", "errors"})


def address(round_: Round, level: float | None = None) -> str:
    """The anchor of a round's steps, or of those at a level; "" where they are not shown."""
    at = "" if level is None else f"-{_anchor(level)}"
    return f"#data-{round_.number}{at}" if round_.footprint else ""


def _anchor(level: float) -> str:
    return f"{level:g}".replace(".", "_").replace("+", "")


def blocks(inv: Investigation) -> Iterator[doc.Block]:
    labels = [facts.label_of(inv, round_) or f"round {round_.number}" for round_ in inv.rounds]
    titles = [label if " = " in label else words.capital(label) for label in labels]
    shown = [(round_, str(round_.number), title) for round_, title in zip(inv.rounds, titles, strict=True)]
    shown += [
        (alternative.round, f"side-by-side-{number}", f"{alternative.name}: {alternative.round.treatment}")
        for number, alternative in enumerate(inv.alternatives, start=1)
    ]
    shown = [(round_, anchor, title) for round_, anchor, title in shown if round_.footprint]
    for round_, anchor, title in shown:
        table = _steps_table(inv, round_, anchor)
        yield doc.Group((table,), summary=f"{title}, {len(table.rows)} steps")
    if shown:
        note = "Metrics that are zero in every step are omitted here; the run folder has them all: "
        yield doc.Prose((note, doc.file("steps.jsonl"), ", ", doc.file("metrics.parquet"), "."), "note")


def _steps_table(inv: Investigation, round_: Round, anchor: str) -> doc.Table:
    metrics = facts.footprint_metrics(round_.footprint)
    rows = sorted(round_.footprint, key=lambda row: (row.get("level", 0.0), row.get("block", 0.0)))
    own = [name for name in STEP_COLUMNS if name != P999 or any(P999 in row for row in rows)]
    units = {"work": inv.study.work_unit, "unit": inv.study.load_unit}
    heads = [doc.Column(STEP_COLUMNS[name].format(**units), side=">") for name in own]
    heads += [doc.Column(name, side=">", title=metric_of(name).what if is_known(name) else "") for name in metrics]
    anchored: set[float] = set()
    lines = []
    for row in rows:
        level, cells = row.get("level", 0.0), []
        for name in own:
            value, form = row.get(name, math.nan), rounding.exact if name in COUNTED else rounding.plain
            cells.append(form(value) if math.isfinite(value) else "")
        cells += [show_metric(name, row[name]) if name in row else "" for name in metrics]
        lines.append(doc.Row(tuple(cells), anchor="" if level in anchored else f"data-{anchor}-{_anchor(level)}"))
        anchored.add(level)
    return doc.Table(tuple(heads), lines, "figures raw", anchor=f"data-{anchor}")


BAR_WIDTH = 30


def render_curve(
    curve: Curve,
    *,
    unit: str = "",
    quality: RunQuality | None = None,
    work: str = WORK,
    answers: Sequence[AnswersCompared] = (),
    more: Sequence[doc.Section] = (),
) -> str:
    """unit: of the load axis, default its name. answers: the target's, compared with other programs'. more: further
    sections of its run."""
    unit = unit or curve.axis.replace("_", " ")
    sections = (
        levels(curve, unit, work),
        doc.listed("Its answers", map(verdict_words.answers_sentence, answers)),
        doc.listed("Mind", map(words.sentence, curve.warnings)),
        doc.quality(quality, ()),
        *more,
    )
    return terminal.render(doc.Document("Curve", sentences(curve, unit, work), sections))


def sentences(curve: Curve, unit: str, work: str = WORK) -> tuple[str, ...]:
    return (f"Throughput {words.curve_phrase(curve, unit)}.", *words.curve_facts(curve, unit, work=work))


def levels(curve: Curve, unit: str, work: str = WORK, *, response: bool = False) -> doc.Section:
    """response: response times (1 / throughput) instead of throughputs."""
    points = sorted(curve.points, key=lambda point: point.load)
    if response:
        points = [point for point in points if point.throughput > 0]
    measured = [point.throughput if math.isfinite(point.throughput) else 0.0 for point in points]
    heights = [1 / height if response and height else height for height in measured]
    top = max(heights, default=0.0) or 1.0
    rows = []
    for point, height in zip(points, heights, strict=True):
        load = rounding.exact(point.load) if float(point.load).is_integer() else rounding.plain(point.load)
        bar = "#" * max(0, round(BAR_WIDTH * height / top))
        rows.append((load, _value(point, work, response), words.milliseconds(point.latency_p95_ms), bar))
    p95 = doc.Column("p95" if any(latency for _, _, latency, _ in rows) else "", side=">")
    heads = (doc.Column(unit, side=">"), "response time" if response else "throughput", p95, "")
    return doc.section("Every level", "levels", [doc.Table(heads, rows)])


def _value(point: CurvePoint, work: str, response: bool) -> str:
    if not math.isfinite(point.throughput):
        return "not measured"
    if not response:
        return words.point_throughput(point, work)
    ends = [1000 / end if end > 0 else math.inf for end in (point.throughput_high, point.throughput_low)]
    value, low, high = rounding.with_interval(1000 / point.throughput, *ends)
    return f"{value} ms ({low} to {high})"


def of_round(inv: Investigation, round_: Round) -> doc.Group:
    unit, work, curve = inv.study.load_unit, inv.study.work_unit, round_.curve
    first, after = round_ is inv.rounds[0], round_ is inv.rounds[-1] and inv.after is not None
    state = "Before" if first else "After" if after else f"Between, {facts.label_of(inv, round_)}"
    rows: list[doc.Cells] = []
    for point in curve.points:
        load, ends = rounding.exact(point.load), (point.throughput_low, point.throughput_high)
        interval = " to ".join(map(rounding.plain, ends)) if rounding.has_width(*ends) else ""
        values = rounding.plain(point.throughput), interval, words.milliseconds(point.latency_p95_ms)
        rows.append((doc.Span(load, to=address(round_, point.load)), *values, str(point.steps or "")))
    heads = (words.capital(unit), f"{words.capital(work)} per second", "95 % interval", "p95 latency", "Steps")
    remarks = words.curve_facts(curve, unit, bend_of(round_), work, facts.limit_of_bend(inv, bend_of(round_)))
    blocks = (
        doc.Table(doc.numbers(*heads), rows, "figures"),
        doc.Prose(words.paragraph((*remarks, *curve.warnings))),
        doc.Prose((f"Treatment {round_.treatment} in ", doc.file("steps.jsonl"), "."), "note"),
    )
    summary = f"{state}: throughput {words.curve_phrase(explained(round_), unit)}"
    return doc.Group(blocks, "open" if first else "", summary=summary)
