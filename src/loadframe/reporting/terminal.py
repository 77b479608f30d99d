"""A document as plain text without colours; the caller may add them."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from loadframe.reporting import change_words
from loadframe.reporting import document as doc

WIDTH = 100
SCREEN = 25


def render(document: doc.Document, width: int = WIDTH, more: str = "") -> str:
    """The answer, the asides, and the sections. more: a line that says where the sections are; with it, only what fits
    on a screen."""
    first = [line for text in document.answer for line in wrapped(text, width, 0, 0)]
    asides = [_aside(aside, width) for aside in document.asides_for("screen" if more else "text")]
    if more:
        last = wrapped(f"More: {more}", width, 0, 2)
        room = SCREEN - len(first) - 1 - len(last)
        fitting: list[str] = []
        for aside in asides:
            fitting += aside if len(fitting) + len(aside) <= room else []
        parts = [first, [*fitting, *last]]
    else:
        parts = [first, [line for aside in asides for line in aside]]
        parts += [
            [f"{section.heading}:", *blocks(section.blocks, width)]
            for section in document.shown
            if section.only != "page" and next(blocks(section.blocks, width), None)
        ]
        parts += [[f"Report: {document.report}"]] if document.report else []
    return "\n\n".join("\n".join(part) for part in parts if part).replace("\u00a0", " ")


def _aside(aside: doc.Aside, width: int) -> list[str]:
    heading, lines = doc.plain(aside.heading), list(map(doc.plain, aside.lines))
    if len(lines) == 1:
        return wrapped(f"{heading}: {lines[0]}", width, 0, 2)
    return [*wrapped(f"{heading}:", width, 0, 2), *(piece for line in lines for piece in wrapped(line, width))]


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
            case doc.Commands(lines):
                yield from (f"    {command}" for command, _ in lines)
            case doc.Group() if block.only != "page":
                heading = doc.plain(block.heading) or block.summary
                yield from wrapped(heading, width, 2, 0)
                yield from blocks(block.blocks, width)
            case doc.Figure(inside=inside):
                yield from blocks(inside, width)


def _table(table: doc.Table, width: int) -> Iterator[str]:
    """A line for each row, or items where the lines would be wider than the screen."""
    kept = [number for number, column in enumerate(table.columns) if column.only != "page"]
    heads = [table.columns[number].label or table.columns[number].head for number in kept]
    rows = [[doc.plain(row.cells[number]) for number in kept] for row in table.lines]
    shown = rows[: table.most or None]
    lines = _columns([heads, *shown], "".join(table.columns[number].side for number in kept))
    if max(map(len, lines)) <= width - 2:
        yield from (f"  {line}" for line in lines)
    else:
        for first, *others in shown:
            names = (head if head[1:2].isupper() else head[:1].lower() + head[1:] for head in heads[1:])
            cells = (f"{name}: {cell}" if name else cell for name, cell in zip(names, others, strict=True) if cell)
            yield from wrapped(f"- {first}: {'; '.join(cells)}", width)
    if len(rows) > len(shown):
        yield f"  and {len(rows) - len(shown)} more, on the page"


def _columns(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in rows
    ]


def wrapped(text: str, width: int, indent: int = 2, hang: int = 2) -> list[str]:
    """Lines of this width, the first one indented, the others by `hang` more; words stay whole."""
    first, others = " " * indent, " " * (indent + hang)
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
