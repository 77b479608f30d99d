"""The result of any kind of run as text, in Markdown and as a page, and its charts with their files. A chart without
data is left out, never drawn empty."""

import json
import re
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from loadframe.entry_points import ANSWERS_GROUP, usable
from loadframe.errors import RunError
from loadframe.formats.json_text import write_json
from loadframe.formats.named_files import write_whole
from loadframe.model import Capacity, Investigation, Ladder, RunAnswer, RunQuality
from loadframe.panics import ROOM_BYTES, in_words
from loadframe.reporting import (
    answers,
    capacity_report,
    case_study,
    html,
    ladder_report,
    markdown,
    plots,
    terminal,
    time_spent,
    vega,
)
from loadframe.reporting.document import About, Document, Drawing, Figure
from loadframe.reporting.json_shapes import Json, capacity_json, investigation_json, ladder_json
from loadframe.reporting.vega import Chart
from loadframe.system.files import Folder, Whose


@dataclass(frozen=True, slots=True)
class Form:
    """document: without pictures, made from the answer, and from study, host and run quality of the run folder where
    the record lacks them. shape: as JSON. is_brief: whether a screen of it suffices without --details."""

    document: Callable[[Any, About | None, RunQuality | None], Document]
    charts: Callable[[Any], Iterator[Chart]]
    shape: Callable[[Any], Json]
    line: Callable[[Any], str]
    is_brief: bool = True


def render_page(answer: RunAnswer, about: About | None = None, went: RunQuality | None = None) -> str:
    """With its pictures and the raw data. about, went: see Form.document."""
    charts = page_charts(answer)
    if isinstance(answer, Investigation):
        return html.render(case_study.of(answer, charts))
    document = form_of(answer).document(answer, about, went)
    return html.render(replace(document, figures=tuple(map(Figure, charts.values()))))


def write_page(inv: Investigation, path: Path) -> None:
    """Whole or not at all. RunError."""
    with _writing(f"The report cannot be written to {path}", f"`loadframe report {shlex.quote(inv.run)}`"):
        write_whole(path, render_page(inv).encode())


@contextmanager
def _writing(problem: str, again: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = f"Free some disk space or choose another place, then run {again}."
        raise RunError(f"{problem}: {error.strerror or error}.", remedy=remedy) from error


def render_text(answer: RunAnswer, *, width: int = terminal.WIDTH, details: bool = False) -> str:
    """The answer, then its basis. width: in columns. details: everything, as for capacity searches."""
    form = form_of(answer)
    document = form.document(answer, None, None)
    brief = form.is_brief and not details
    more = f"loadframe report {shlex.quote(answer.run)} --details; the page: {document.report}" if brief else ""
    return terminal.render(document, width, more)


def render_markdown(answer: RunAnswer, *, details: bool = False, about: About | None = None) -> str:
    """For a ticket or a pull request, with what was measured and how to reproduce it. about: see Form.document."""
    form = form_of(answer)
    return markdown.render(form.document(answer, about, None), brief=form.is_brief and not details)


# --- charts, and their files ---


def page_charts(answer: RunAnswer) -> dict[str, Chart]:
    if isinstance(answer, Investigation) and not plots.load_axis(answer).levels:
        return {}
    # Vega's engine is slow to start and runs in parallel to Python: it renders while further charts are drawn.
    with ThreadPoolExecutor(max_workers=1) as engine:
        started = engine.submit(vega.start_engine)
        begun: list[tuple[Chart, list[Future[Markup]]]] = []
        for chart in form_of(answer).charts(answer):
            named = ((spec, f"{chart.name}-{number}") for number, spec in enumerate(chart.specs))
            begun.append((chart, [engine.submit(vega.render, spec, name, chart.alt) for spec, name in named]))
        started.result()
        return {chart.name: replace(chart, svgs=tuple(job.result() for job in jobs)) for chart, jobs in begun}


FORMS: Mapping[type[Any], Form] = {
    Investigation: Form(lambda inv, *_: case_study.of(inv, {}), case_study.charts, investigation_json, answers.answer),
    Ladder: Form(lambda ladder, *_: ladder_report.of(ladder), ladder_report.charts, ladder_json, ladder_report.answer),
    Capacity: Form(capacity_report.of, capacity_report.charts, capacity_json, capacity_report.answer, is_brief=False),
}


def form_of(answer: RunAnswer) -> Form:
    return FORMS.get(type(answer)) or _registered(type(answer))


@cache
def _registered(record: type[Any]) -> Form:
    form: Form = usable(ANSWERS_GROUP, lambda kind: getattr(kind, "record", None) is record)[0].form
    return form


SCALE = 2.0  # pixels of a PNG per CSS pixel
CHARACTER_PX = 8.0
"""An average character of a title's 15-pixel type."""
FLAME_RULES = re.compile(r"^(?:\.flame |\.k-|\.difference ).*$", re.M)


def write_figures(answer: RunAnswer, folder: Path) -> tuple[Path, ...]:
    """Every figure of the page as FOLDER/NAME.svg, .png, and .json for a chart. RunError."""
    again = f"`loadframe report {shlex.quote(answer.run)} --figures FOLDER` again"
    written: list[Path] = []
    with _writing(f"The figures cannot be written to {folder}", again):
        if not folder.is_dir():
            Folder(folder, Whose.NAMED).make()
        for name, data in _files(answer):
            write_whole(folder / name, data)
            written.append(folder / name)
    return tuple(written)


def _files(answer: RunAnswer) -> Iterator[tuple[str, bytes]]:
    import vl_convert

    for chart in page_charts(answer).values():
        name, spec = chart.name, titled(json.loads(chart.spec))
        yield f"{name}.svg", vega.render(spec, name, chart.alt).encode()
        with in_words(f"The chart {name} cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
            yield f"{name}.png", bytes(vl_convert.vegalite_to_png(spec, scale=SCALE))
        yield f"{name}.json", write_json(spec).encode()
    rules = "\n".join(FLAME_RULES.findall(html.read("page.css"))).replace("var(--ink)", "#1f2933")
    style = f'<style>{rules}</style><rect width="100%" height="100%" fill="#fff"/>'
    groups = time_spent.drawings(answer) if isinstance(answer, Investigation) else ()
    for drawn in (block for group in groups for block in group.blocks if isinstance(block, Drawing)):
        name, svg = drawn.name, str(drawn.svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        svg = re.sub(r">", f">{style}", svg, count=1)
        with in_words(f"The figure {name} cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
            yield f"{name}.svg", svg.encode()
            yield f"{name}.png", bytes(vl_convert.svg_to_png(svg, scale=SCALE))


def titled(spec: dict[str, Any]) -> dict[str, Any]:
    lines = textwrap.wrap(str(spec["title"]), max(20, int(spec["width"] / CHARACTER_PX)))
    return {**spec, "title": {"text": lines, "anchor": "start"}, "background": "white"}
