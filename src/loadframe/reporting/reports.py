"""The result of any kind of run as a document, rendered as text, in Markdown and as a page."""

import shlex
from dataclasses import replace
from pathlib import Path

from loadframe.errors import RunError
from loadframe.formats.named_files import write_whole
from loadframe.model import Capacity, Investigation, Ladder, RunAnswer, RunQuality, Tuning
from loadframe.reporting import (
    capacity_report,
    case_study,
    charts,
    html,
    ladder_report,
    markdown,
    terminal,
    tuning_report,
)
from loadframe.reporting.document import About, Document, Figure


def of(answer: RunAnswer, about: About | None = None, went: RunQuality | None = None) -> Document:
    """Without pictures. about, went: of a capacity search, whose record has none."""
    match answer:
        case Investigation():
            return case_study.of(answer, {})
        case Ladder():
            return ladder_report.of(answer)
        case Tuning():
            return tuning_report.of(answer)
        case Capacity():
            return capacity_report.of(answer, about, went)


def render_page(answer: RunAnswer, about: About | None = None, went: RunQuality | None = None) -> str:
    """The page as one string of HTML, with its pictures and the raw data. about, went: see `of`."""
    drawn = charts.page_charts(answer)
    if isinstance(answer, Investigation):
        return html.render(case_study.of(answer, drawn))
    return html.render(replace(of(answer, about, went), figures=tuple(map(Figure, drawn.values()))))


def write_page(inv: Investigation, path: Path) -> None:
    """Write the case study to `path`, whole or not at all. RunError where that fails."""
    try:
        write_whole(path, render_page(inv).encode())
    except OSError as error:
        raise RunError(
            f"The report cannot be written to {path}: {error.strerror or error}.",
            remedy=f"Free some disk space or choose another place, then run `loadframe report {shlex.quote(inv.run)}`.",
        ) from error


def render_text(answer: RunAnswer, *, width: int = terminal.WIDTH, details: bool = False) -> str:
    """For a screen of this many columns: the answer, then its basis; details: everything, as for capacity searches."""
    document, brief = of(answer), not isinstance(answer, Capacity) and not details
    more = f"loadframe report {shlex.quote(answer.run)} --details; the page: {document.report}" if brief else ""
    return terminal.render(document, width, more)


def render_markdown(answer: RunAnswer, *, details: bool = False, about: About | None = None) -> str:
    """For a ticket or a pull request, with what was measured and how to reproduce it. about: see `of`."""
    return markdown.render(of(answer, about), brief=not isinstance(answer, Capacity) and not details)
