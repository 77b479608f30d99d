"""A comparison as a document: the answer, the levels it is made of, how it was reached, and what may spoil it."""

from __future__ import annotations

from collections.abc import Iterable

from loadframe.model import Comparison, Quantity
from loadframe.reporting import document as doc
from loadframe.reporting import rounding, terminal, verdict_words, words


def render_comparison(found: Comparison, *, width: int = terminal.WIDTH) -> str:
    """As text."""
    verdict, sessions = found.verdict, found.verdict.sessions
    levels = [verdict_words.level_ratio(level, found.axis_unit, found.work_unit) for level in found.levels]
    parts: tuple[tuple[str, Iterable[str]], ...] = (
        ("Levels", levels if len(levels) > 1 else ()),
        ("Also", map(_quantity, found.quantities)),
        ("Allowed", [verdict_words.margin_sentence(found.margin)] if found.margin else ()),
        ("To tell", [verdict_words.needed_sentence(found.needed, sessions)] if found.needed else ()),
        ("Sessions", [verdict_words.sessions_sentence(sessions)] if sessions else ()),
        ("Noise", [verdict_words.noise_sentence(verdict)] if verdict.floor else ()),
        ("Method", [words.sentence(verdict.method)]),
        ("Note", found.notes),
        ("Run", [found.run] if found.run else ()),
    )
    asides = tuple(doc.Aside(label, tuple(lines)) for label, lines in parts)
    answer = verdict_words.comparison_sentence(found)
    return terminal.render(doc.Document("Comparison", (answer,), (), asides=asides), width)


def _quantity(row: Quantity) -> str:
    """ "p99: worse, 5.7 times (4.9 to 6.6), 10.6 before, 60 after"."""
    if row.verdict is None or row.before is None or row.after is None:
        return f"{row.name}: not judged, {row.because}"
    values = f"{rounding.plain(row.before)} before, {rounding.plain(row.after)} after"
    decision = verdict_words.DECISIONS[row.verdict.decision]
    return f"{row.name}: {decision}, {verdict_words.ratio_words(row.verdict)}, {values}"
