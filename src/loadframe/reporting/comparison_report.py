"""A comparison as a document, and for continuous integration: GitHub Actions, and JUnit XML."""

import re
from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree

from loadframe.formats import said
from loadframe.model import Answer, Comparison, LevelRatio, Margin, Quantity
from loadframe.reporting import document as doc
from loadframe.reporting import markdown, rounding, terminal, verdict_words, words


def render_comparison(comparison: Comparison) -> str:
    asides = tuple(doc.aside(label, *lines) for label, lines in _parts(comparison))
    answer = verdict_words.comparison_sentence(comparison)
    return terminal.render(doc.Document("Comparison", (answer,), (), asides=asides))


def _parts(comparison: Comparison) -> tuple[tuple[str, Iterable[str]], ...]:
    verdict, sessions = comparison.verdict, comparison.verdict.sessions
    levels = comparison.levels if len(comparison.levels) > 1 else ()
    return (
        ("Levels", (_level(level, comparison) for level in levels)),
        ("Also", map(_quantity, comparison.quantities)),
        ("Allowed", [verdict_words.margin_sentence(comparison.margin)] if comparison.margin else ()),
        ("To tell", [verdict_words.needed_sentence(comparison.needed, sessions)] if comparison.needed else ()),
        ("Sessions", [verdict_words.sessions_sentence(sessions)] if sessions else ()),
        ("Noise", [verdict_words.noise_sentence(verdict)] if verdict.floor else ()),
        ("Method", [words.sentence(verdict.method)]),
        ("Note", comparison.notes),
        ("Run", [comparison.run] if comparison.run else ()),
    )


def _level(row: LevelRatio, comparison: Comparison) -> str:
    before, after = (words.throughput(value, comparison.work_unit) for value in (row.before, row.after))
    load = words.load(row.load, comparison.axis_unit)
    return f"at {load}: {rounding.plain(row.ratio)} times ({before} before, {after} after)"


def _quantity(row: Quantity) -> str:
    if row.verdict is None or row.before is None or row.after is None:
        return f"{row.name}: not judged, {row.because}"
    values = f"{rounding.plain(row.before)} before, {rounding.plain(row.after)} after"
    decided = f"{verdict_words.DECISIONS[row.verdict.decision]}, " if row.verdict.has_ratio else ""
    return f"{row.name}: {decided}{verdict_words.ratio_words(row.verdict)}, {values}"


LEVELS: Mapping[Answer, str] = {"proven-worse": "error", "cannot-tell": "warning", "proven-not-worse": "notice"}
"""Severity. Without a margin nothing fails: worse is a warning."""


def github_annotations(comparisons: Sequence[Comparison]) -> list[str]:
    """A workflow command per verdict:
    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands"""
    commands = []
    for comparison in comparisons:
        level = "warning" if comparison.verdict.decision == "worse" else "notice"
        if comparison.margin is not None:
            level = LEVELS[comparison.margin.answer]
        title = _data(f"Loadframe: {_sides(comparison)}").replace(":", "%3A").replace(",", "%2C")
        commands.append(f"::{level} title={title}::{_data(_sentence(comparison))}")
    return commands


def _sides(comparison: Comparison) -> str:
    return f"{comparison.after} against {comparison.before}"


def github_summary(comparisons: Sequence[Comparison]) -> str:
    rows, details = [], []
    for comparison in comparisons:
        verdict, decision = comparison.verdict, verdict_words.DECISIONS[comparison.verdict.decision]
        interval = verdict_words.confident_interval(verdict) or "none"
        rows.append((_sides(comparison), decision, verdict_words.ratio(verdict), interval, comparison.what))
        facts = doc.Facts([(label, line) for label, lines in _parts(comparison) for line in lines])
        sentence = doc.Prose(verdict_words.comparison_sentence(comparison))
        details.append(doc.Group((sentence, facts), summary=f"{comparison.after}: details"))
    table = doc.Table(("Compared", "Decision", "Times", "Interval", "What"), rows)
    section = doc.section("Loadframe: compare", "compare", (table, *details))
    return markdown.render(doc.Document("Comparisons", (), (section,)))


def _sentence(comparison: Comparison) -> str:
    sentences = [verdict_words.comparison_sentence(comparison)]
    if comparison.margin is not None:
        sentences.append(verdict_words.margin_sentence(comparison.margin))
    if comparison.needed is not None:
        sentences.append(verdict_words.needed_sentence(comparison.needed, comparison.verdict.sessions))
    return " ".join(sentences)


def _data(text: str) -> str:
    return said.words(text, 4000).replace("%", "%25")


NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Not allowed, not even as references (XML 1.0, section 2.2)."""


def junit_xml(comparisons: Sequence[Comparison]) -> bytes:
    """A JUnit document as Ant writes it and Jenkins and GitLab read it, a test for each comparison. Failed: proven
    worse by more than the margin. Skipped: undecided."""
    cases = [_case(comparison) for comparison in comparisons]
    failures, skipped = (sum(case.find(kind) is not None for case in cases) for kind in ("failure", "skipped"))
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "loadframe compare", **counts})
    suite.extend(cases)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _case(comparison: Comparison) -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": "loadframe.compare", "name": _xml(_sides(comparison))})
    text, message = _xml(render_comparison(comparison)), {"message": _xml(_sentence(comparison))}
    match comparison.margin:
        case Margin(answer="proven-worse"):
            ElementTree.SubElement(case, "failure", {**message, "type": "proven-worse"}).text = text
        case Margin(answer="cannot-tell"):
            ElementTree.SubElement(case, "skipped", message)
    ElementTree.SubElement(case, "system-out").text = text
    return case


def _xml(text: str) -> str:
    return NOT_XML.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
