"""What came of a run, whatever it was made for, as a document, and that as text and in Markdown."""

import shlex

from loadframe.model import Capacity, Investigation, Ladder, RunAnswer, Tuning
from loadframe.reporting import capacity_report, case_study, ladder_report, markdown, terminal, tuning_report
from loadframe.reporting.document import About, Document


def of(found: RunAnswer, about: About | None = None) -> Document:
    """Without pictures. about: of a search for a capacity, whose record has none."""
    match found:
        case Investigation():
            return case_study.of(found)
        case Ladder():
            return ladder_report.of(found)
        case Tuning():
            return tuning_report.of(found)
        case Capacity():
            return capacity_report.of(found, about)


def render_text(found: RunAnswer, *, width: int = terminal.WIDTH, details: bool = False) -> str:
    """On a screen of this many columns: the answer first, then what it rests on; details: all of it, which a search
    for a capacity always shows."""
    document, brief = of(found), not isinstance(found, Capacity) and not details
    more = f"loadframe report {shlex.quote(found.run)} --details; the page: {document.report}" if brief else ""
    return terminal.render(document, width, more)


def render_markdown(found: RunAnswer, *, details: bool = False, about: About | None = None) -> str:
    """For a ticket or a pull request: the same, and what was measured and how to do it again. about: see `of`."""
    return markdown.render(of(found, about), brief=not isinstance(found, Capacity) and not details)
