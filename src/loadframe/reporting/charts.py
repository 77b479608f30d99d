"""The charts of the case study. Titles state the fact; a chart without its data is left out, never drawn empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from markupsafe import Markup

from loadframe.formats.json_text import write_json
from loadframe.model import Capacity, Investigation, Ladder, Tuning
from loadframe.reporting import (
    capacity_picture,
    facts,
    finding_words,
    gain_bars,
    latencies,
    limit_bars,
    plots,
    quality_words,
    searches,
    stages,
    vega,
    waits,
    waterfalls,
    words,
)
from loadframe.reporting.vega import Plot, Size

Draw = Callable[[Size], Plot | None]

WIDE, NARROW, HALF = Size(640, 300), Size(270, 240), Size(370, 210)
OF_COMPONENTS = {
    "cpu.cores": "CPU",
    "memory.rss": "Memory",
    "io.read_bytes": "Bytes read",
    "io.write_bytes": "Bytes written",
}
FOOTPRINT = {"target.cpu.cores": "CPU of the target", "target.memory.rss": "Memory of the target"}


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture. title: the fact it shows. alt: what it shows, in words, for those who do not see it. spec: the whole
    Vega-Lite specification, with data and title. svg: the same, rendered without its title, which the page sets in its
    own type. narrow_svg: for small screens. metric: the name of the one that it shows, where it is of one."""

    name: str
    title: str
    note: str
    alt: str
    spec: str
    svg: Markup
    narrow_svg: Markup = Markup("")  # noqa: RUF009 - it is a string, and cannot change
    metric: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A chart as drawn, not yet rendered; one specification per size, the widest first."""

    name: str
    title: str
    note: str
    alt: str
    specs: tuple[dict[str, Any], ...]
    metric: str

    def jobs(self) -> list[tuple[dict[str, Any], str, str]]:
        return [(spec, f"{self.name}-{number}", self.alt) for number, spec in enumerate(self.specs)]

    def chart(self, svgs: Sequence[Markup]) -> Chart:
        spec = write_json({**self.specs[0], "title": self.title})
        narrow = svgs[1] if len(svgs) > 1 else Markup("")
        return Chart(self.name, self.title, self.note, self.alt, spec, svgs[0], narrow, self.metric)


def page_charts(inv: Investigation) -> dict[str, Chart]:
    """Every chart that the record has data for, by name: proof, alternatives, side-by-side-N, latency, percentiles,
    blocks, evidence-N, stages, waits, limits, gains, footprint-N, ladder."""
    if not plots.load_axis(inv).levels:
        return {}
    # Vega's engine is slow to start and works beside Python: it renders what is drawn while the rest is being drawn.
    with ThreadPoolExecutor(max_workers=1) as engine:
        started = engine.submit(vega.start_engine)
        rendered = [(draft, [engine.submit(vega.render, *job) for job in draft.jobs()]) for draft in _drafts(inv)]
        started.result()
        return {draft.name: draft.chart([job.result() for job in jobs]) for draft, jobs in rendered}


def _drafts(inv: Investigation) -> Iterator[Draft]:
    dots = "A dot is a step, a ring an outlier; boxes are quartiles, whiskers 1.5 boxes long; medians are joined."
    yield from _draft(
        "proof", plots.proof_title(inv), plots.proof_note(inv), partial(plots.throughput, inv), WIDE, NARROW
    )
    silent = "Longest time in which no request was done, of each step; the line joins the averages."
    if any(facts.silences(one) for one in inv.rounds):
        drawing = partial(plots.metric, inv, "workload.silence_ms")
        yield from _draft("stalls", quality_words.silence_sentence(inv)[:-1], silent, drawing, WIDE, NARROW)
    yield from _draft("latency", plots.latency_title(inv), "", partial(plots.latency, inv), HALF)
    yield from _draft("blocks", "Throughput of every step", dots, partial(plots.boxes, inv), HALF)
    drawing = partial(latencies.percentiles, inv)
    yield from _draft("percentiles", latencies.title(inv), latencies.note(inv), drawing, WIDE, NARROW)
    if len(inv.alternatives) > 1:
        drawing = partial(plots.alternatives_together, inv)
        title = f"{inv.study.target_kind} and its alternatives by load"
        yield from _draft("alternatives", title, "Shaded bands: 95 % intervals.", drawing, WIDE, NARROW)
    for number, one in enumerate(inv.alternatives, start=1):
        drawing = partial(plots.side_by_side, inv, one)
        note = "Shaded bands: 95 % intervals."
        note += " Dashed: where their ratio begins to change, with its interval." if one.divergence is not None else ""
        yield from _draft(f"side-by-side-{number}", plots.side_by_side_title(inv, one), note, drawing, WIDE, NARROW)
    shaded = "Shaded: where the first resource was expected to saturate. Bars: 90 % intervals."
    yield from _draft("forecast", plots.forecast_title(inv), shaded, partial(plots.forecast, inv), WIDE, NARROW)
    yield from _evidence_drafts(inv)
    for name, each in stages.rounds(inv):
        title, drawing = stages.title(each, words.axis_unit(inv)), partial(stages.chart, inv, each)
        yield from _draft(name, title, stages.note(each), drawing, WIDE, NARROW)
    for name, each in waits.rounds(inv):
        title, drawing = waits.title(each, words.axis_unit(inv)), partial(waits.chart, inv, each)
        yield from _draft(name, title, waits.note(each), drawing, WIDE, NARROW)
    yield from _draft(
        "limits", limit_bars.title(inv), limit_bars.note(inv), partial(limit_bars.chart, inv), WIDE, NARROW
    )
    if gain_bars.gains(inv):
        yield from _draft(
            "gains", gain_bars.title(inv), gain_bars.note(inv), partial(gain_bars.chart, inv), WIDE, NARROW
        )
    yield from _footprint_drafts(inv)
    yield from _draft("ladder", "What each change adds", "", partial(waterfalls.ladder, inv), HALF, NARROW)


def _evidence_drafts(inv: Investigation) -> Iterator[Draft]:
    for finding in facts.main_findings(inv)[:1]:
        for number, (name, limit_id) in enumerate(plots.evidence_metrics(inv, finding), start=1):
            title = words.sentence(finding_words.metric_words(name))[:-1]
            drawing = partial(plots.metric, inv, name, limit_id=limit_id)
            yield from _draft(f"evidence-{number}", title, "", drawing, HALF, metric=name)


def _footprint_drafts(inv: Investigation) -> Iterator[Draft]:
    for number, (what, title) in enumerate(OF_COMPONENTS.items(), start=1):
        drawing, over = partial(plots.components, inv, what), f"{title} of each component by load"
        yield from _draft(f"footprint-component-{number}", over, "", drawing, HALF)
    shown = {name for finding in facts.main_findings(inv)[:1] for name, _ in plots.evidence_metrics(inv, finding)}
    for number, (name, title) in enumerate(FOOTPRINT.items(), start=1):
        if name not in shown:
            drawing = partial(plots.metric, inv, name)
            yield from _draft(f"footprint-{number}", f"{title} by load", "", drawing, HALF, metric=name)


def _draft(name: str, title: str, note: str, draw: Draw, *sizes: Size, metric: str = "") -> Iterator[Draft]:
    """The chart in all its sizes; nothing where it has no data."""
    plots_drawn = [drawn for size in sizes if (drawn := draw(size)) is not None]
    if plots_drawn:
        alt = " ".join(part for part in (words.sentence(title), plots_drawn[0].described()) if part)
        yield Draft(name, title, note, alt, tuple(drawn.specification() for drawn in plots_drawn), metric)


def ladder_chart(found: Ladder) -> Chart | None:
    """The waterfall of a ladder; None where nothing of it was measured."""
    note = "Thin lines: 95 % intervals. Grey: measured, and reverted."
    drawing = partial(waterfalls.waterfall, found)
    return _alone(_draft("waterfall", "What each change gives", note, drawing, WIDE, NARROW))


def tuning_chart(found: Tuning) -> Chart | None:
    """The trials of a search, and the proof of the best; None without a trial."""
    drawing = partial(searches.trials, found)
    return _alone(_draft("trials", searches.title(found), searches.note(found), drawing, WIDE, NARROW))


def capacity_chart(found: Capacity) -> Chart | None:
    """The trials of a search for the capacity; None without one."""
    drawing = partial(capacity_picture.chart, found)
    title, note = capacity_picture.title(found), capacity_picture.note(found)
    return _alone(_draft("capacity", title, note, drawing, WIDE, NARROW))


def _alone(drafts: Iterator[Draft]) -> Chart | None:
    return next((draft.chart([vega.render(*job) for job in draft.jobs()]) for draft in drafts), None)
