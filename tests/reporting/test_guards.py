"""What a reader must not meet on a page: a label that is cut off, a line twice, an id where a name belongs, a picture
that says nothing to those who do not see it, an address outside, a page too heavy to send."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from loadframe.model import Investigation

MOST_BYTES = 3_000_000
NARROWEST_PX_PER_EM = 0.5
"""A character is at least so wide on average, in shares of its size: a text too long by this is cut for sure."""
SLACK_PX = 6.0
MOVED = re.compile(r"translate\(([-\d.]+)[, ]+([-\d.]+)\)")
NOT_SAID = re.compile(
    r'<(script|style|svg|table)\b.*?</\1>|<details class="source".*?</details>|<p class="legend.*?</p>', re.S
)
SAID = re.compile(r"<(p|li|dd|h1|h2|h3|figcaption)\b[^>]*>(.*?)</\1>", re.S)
SVG = re.compile(r"<svg\b.*?</svg>", re.S)


@dataclass(frozen=True)
class Label:
    text: str
    left: float
    right: float
    width: float


def labels(svg: str) -> Iterator[Label]:
    """Every horizontal text of a picture, where it begins and ends, and how wide the picture is."""
    root = ElementTree.fromstring(svg)
    width = float(root.get("viewBox", "0 0 0 0").split()[2])
    pending: list[tuple[ElementTree.Element, float]] = [(root, 0.0)]
    while pending:
        element, x = pending.pop()
        transform = element.get("transform", "")
        if "rotate(-90)" in transform:
            continue
        if (moved := MOVED.search(transform)) is not None:
            x += float(moved[1])
        said = "".join(element.itertext()).strip()
        if element.tag.endswith("text") and said:
            size = float(re.sub(r"[^\d.]", "", element.get("font-size", "11px")) or 11)
            long = NARROWEST_PX_PER_EM * size * len(said)
            start = x + float(element.get("x", 0))
            left = start - long * {"middle": 0.5, "end": 1.0}.get(element.get("text-anchor", "start"), 0.0)
            yield Label(said, left, left + long, width)
        pending += [(child, x) for child in element]


def test_no_label_is_cut_off(page: str) -> None:
    for svg in SVG.findall(page):
        for label in labels(svg):
            assert label.left >= -SLACK_PX, f"begins outside: {label}"
            assert label.right <= label.width + SLACK_PX, f"ends outside: {label}"
            assert "\u2026" not in label.text, f"shortened: {label}"


def test_a_cut_label_would_be_seen() -> None:
    short = '<svg viewBox="0 0 100 20"><g transform="translate(-20,0)"><text x="0">commit to a log</text></g></svg>'
    (label,) = labels(short)
    assert label.left < -SLACK_PX


def test_no_line_is_there_twice(page: str) -> None:
    """Of cells of tables the same number may be there twice; a sentence may not."""
    shown = NOT_SAID.sub("", page)
    told = [" ".join(re.sub(r"<[^>]+>", " ", found[2]).split()) for found in SAID.finditer(shown)]
    assert len(told) > 5
    assert not [text for text, count in Counter(told).items() if count > 1 and len(text) > 25]


def test_every_picture_says_in_words_what_it_shows(page: str) -> None:
    for svg in SVG.findall(page):
        head = svg[: svg.index(">")]
        (said,) = re.findall(r'aria-label="([^"]*)"', head)
        assert 'role="img"' in head
        assert len(said) > 25 and re.search(r"\d", said), f"says nothing: {said!r}"


def test_a_figure_has_its_data_its_picture_and_its_command(page: str) -> None:
    for figure in re.findall(r"<figure\b.*?</figure>", page, flags=re.S):
        assert "Data, picture, command" in figure
        assert "loadframe report" in figure and "--figures" in figure
        assert 'class="save"' in figure


def test_no_address_outside_is_named(page: str) -> None:
    bare = re.sub(r'"\$schema":\s*"[^"]*"|xmlns(:\w+)?="[^"]*"', "", page)
    assert not re.findall(r"""(?:src|href|url\(|fetch\(|import )\W{0,3}https?:""", bare)
    assert "http://www.w3.org/2000/svg" in bare, "the name space that scripts use, which is fetched by nothing"


def test_the_page_can_be_sent(page: str) -> None:
    assert len(page.encode()) < MOST_BYTES


def test_raw_bytes_are_not_told(page: str) -> None:
    shown = re.sub(r"<script.*?</script>|<style.*?</style>|<pre.*?</pre>|<[^>]+>", " ", page, flags=re.S)
    assert not re.findall(r"\b\d{8,}\b", shown)


def test_no_id_stands_where_a_name_belongs(investigation: Investigation, page: str) -> None:
    rounds = investigation.rounds
    ids = {item.id for one in rounds for finding in one.findings for item in finding.ruled_out}
    ids |= {limit.id for one in rounds for limit in one.limits if limit.title}
    ids |= {piece.metric for one in rounds for finding in one.findings for piece in finding.evidence}
    shown = re.sub(r'<p class="note id">.*?</p>', "", NOT_SAID.sub("", page), flags=re.S)
    assert not [one for one in ids if f"<code>{one}</code>" in shown]
