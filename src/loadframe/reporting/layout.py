"""How text is laid out on a screen: columns, and lines that are broken."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """A line for each row. sides: of each column, "<" or ">", where its cells begin or end."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in rows
    ]


def wrapped(text: str, width: int, indent: int = 2, hang: int = 2) -> list[str]:
    """A text in lines of this width, the first one indented, the others by `hang` more; words stay whole."""
    first, others = " " * indent, " " * (indent + hang)
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
