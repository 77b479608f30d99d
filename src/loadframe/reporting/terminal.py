"""A document as plain text without colours."""

import math
import textwrap
from collections.abc import Iterable, Iterator

from loadframe.reporting import change_words
from loadframe.reporting import document as doc

WIDTH = 100
SCREEN = 25


def render(document: doc.Document, width: int = WIDTH, more: str = "") -> str:
    """more: says where the sections are; with it, only what fits on a screen."""
    first = [line for text in document.answer for line in wrapped(text, width, 0, 0)]
    last = wrapped(f"More: {more}", width, 0, 2) if more else []
    room = SCREEN - len(first) - 1 - len(last) if more else math.inf
    second: list[str] = []
    for aside in document.asides_for("screen" if more else "text"):
        heading, texts = f"{doc.plain(aside.heading)}:", list(map(doc.plain, aside.lines))
        lines = wrapped(heading, width, 0, 2) + [line for text in texts for line in wrapped(text, width)]
        if len(texts) == 1:
            lines = wrapped(f"{heading} {texts[0]}", width, 0, 2)
        second += lines if len(second) + len(lines) <= room else []
    parts = [first, [*second, *last]]
    if not more:
        parts += [
            [f"{section.heading}:", *inside]
            for section in document.shown
            if section.only != "page" and (inside := [*blocks(section.blocks, width)])
        ]
        parts += [[f"Report: {document.report}"]] if document.report else []
    return "\n\n".join("\n".join(part) for part in parts if part).replace("\u00a0", " ")


def blocks(shown: Iterable[doc.Block], width: int) -> Iterator[str]:
    for block in shown:
        match block:
            case doc.Prose(text, look) if not look.startswith("note"):
                yield from wrapped(doc.plain(text), width, 2, 0)
            case doc.Items(items):
                for item in items:
                    yield from wrapped(f"- {doc.plain(item)}", width)
            case doc.Table():
                yield from _table(block, width)
            case doc.Facts(rows):
                for name, text in rows:
                    yield from wrapped(f"- {doc.plain(name)}: {doc.plain(text)}", width)
            case doc.Settings(lines):
                yield from (f"    {line}" for line in lines)
            case doc.Diff(changes):
                for change in changes:
                    yield from wrapped(f"- {change_words.change(change)}", width)
            case doc.Group() if block.only != "page":
                yield from wrapped(doc.plain(block.heading) or block.summary, width, 2, 0)
                yield from blocks(block.blocks, width)


def _table(table: doc.Table, width: int) -> Iterator[str]:
    """Items where the lines would be wider than the screen."""
    columns, cells_of = table.in_text()
    heads = [column.label or column.head for column in columns]
    rows = [list(map(doc.plain, cells)) for cells in cells_of]
    widths = [max(map(len, cells)) for cells in zip(heads, *rows, strict=True)]
    form = "  ".join(f"{{:{column.side}{widest}}}" for column, widest in zip(columns, widths, strict=True))
    lines = [form.format(*cells).rstrip() for cells in (heads, *rows)]
    if max(map(len, lines)) <= width - 2:
        yield from (f"  {line}" for line in lines)
    else:
        for first, *others in rows:
            names = (head if head[1:2].isupper() else head[:1].lower() + head[1:] for head in heads[1:])
            cells = (f"{name}: {cell}" if name else cell for name, cell in zip(names, others, strict=True) if cell)
            yield from wrapped(f"- {first}: {'; '.join(cells)}", width)
    if left := len(table.rows) - len(rows):
        yield f"  and {left} more, on the page"


def wrapped(text: str, width: int, indent: int = 2, hang: int = 2) -> list[str]:
    """The first line is indented, the others by `hang` more; words stay whole."""
    first, others = " " * indent, " " * (indent + hang)
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
