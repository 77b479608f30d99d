"""A document in GitHub's Markdown (https://github.github.com/gfm/). Text of a server, a study or a file stays text: no
link, no element, no mention."""

import re
from collections.abc import Iterable, Iterator

from loadframe.reporting import change_words
from loadframe.reporting import document as doc

MARKUP = re.compile(r"[\\`*<>&|\[\]~$@#]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=\bwww)\.", re.I)
"""Markup anywhere in a line. An underscore within a word is none; "@" and "#" would be mentions, "://" and "www."
links."""
BEGINS = re.compile(r"^(?= ?[-+](?:\s|$|-))|(?:^ ?\d{1,9})(?=[.)](?:\s|$))")
"""Markup at the beginning of a line: an item, a rule."""
NOT_BROKEN = "&#8203;"


def render(document: doc.Document, *, brief: bool = False) -> str:
    """brief: only the sections for a reader elsewhere."""
    about = document.about
    head = [f"## {text(about.study.question)}", f"{document.kind} of {text(about.study.name)}."] if about else []
    asides: list[str] = []
    for aside in document.asides_for(""):
        heading, lines = f"- **{inline(aside.heading)}:**", [inline(line).strip() for line in aside.lines]
        asides += [f"{heading} {lines[0]}"] if len(lines) == 1 else [heading, *(f"  - {line}" for line in lines)]
    parts = [*head, *map(text, document.answer), "\n".join(asides)]
    for section in document.shown:
        wanted = section.anchor in doc.AWAY or not (brief or section.only == "page")
        if wanted and (inside := [*blocks(section.blocks)]):
            parts += [f"### {text(section.heading)}", *inside]
    page = f"Charts and the table of every step are on the page, {_code(document.report)}." if document.report else ""
    return "\n\n".join(filter(None, (*parts, page))) + "\n"


def blocks(shown: Iterable[doc.Block]) -> Iterator[str]:
    for block in shown:
        match block:
            case doc.Prose(words, look) if not look.startswith("note"):
                yield inline(words).strip()
            case doc.Items(items):
                yield "\n".join(f"- {inline(item)}" for item in items)
            case doc.Table():
                yield from _table(block)
            case doc.Facts(rows):
                yield "\n".join(f"- **{inline(name)}:** {inline(content)}" for name, content in rows)
            case doc.Settings(lines):
                yield _fenced(lines)
            case doc.Diff(changes):
                yield "\n".join(f"- {text(change_words.change(change))}" for change in changes)
            case doc.Commands(lines):
                yield _fenced(f"{command}   # {what}" for command, what in lines)
            case doc.Group(only="page"):
                continue
            case doc.Group(inside, summary=summary) if summary:
                yield from (f"<details><summary>{text(summary)}</summary>", *blocks(inside), "</details>")
            case doc.Group(inside):
                yield from (f"#### {inline(block.heading)}" * bool(block.heading), *blocks(inside))


def _table(table: doc.Table) -> Iterator[str]:
    columns, rows = table.in_text()
    lines = [
        [text(column.head) for column in columns],
        ["---:" if column.side == ">" else "---" for column in columns],
        *(map(inline, cells) for cells in rows),
    ]
    yield "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    if left := len(table.rows) - len(rows):
        yield f"And {left} more, on the page."


def inline(shown: doc.Words) -> str:
    match shown:
        case doc.Span(look="code"):
            return _code(shown.text)
        case str() | doc.Span():
            return text(doc.plain(shown))
        case _:
            return "".join(map(inline, shown))


def text(raw: str) -> str:
    # GitHub finds "@" and "#" after it has decoded references, so a zero-width space breaks the name.
    line = MARKUP.sub(
        lambda match: f"{match[0]}{NOT_BROKEN}" if match[0] in "@#" else f"&#{ord(match[0])};", re.sub(r"\s+", " ", raw)
    )
    return BEGINS.sub(rf"\g<0>{NOT_BROKEN}", line)


def _code(raw: str) -> str:
    return f"`{raw}`" if re.fullmatch(r"[^\s`|\\]([^`|\\\r\n]*[^\s`|\\])?", raw) else f"<code>{text(raw)}</code>"


def _fenced(lines: Iterable[str]) -> str:
    inside = "\n".join(lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", inside)), default=0))
    return f"{fence}\n{inside}\n{fence}"
