"""A report as one record, which terminal.py, html.py and markdown.py render."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from markupsafe import Markup

from loadframe.model import Change, ChangeRecord, Host, RunQuality, StudySummary
from loadframe.reporting import quality_words, rounding, words
from loadframe.reporting.vega import Chart
from loadframe.units import show

AWAY = frozenset({"settings", "environment", "reproduce"})
"""For a reader who is not at the machine."""
Only = Literal["", "page", "text", "screen"]
"""Where a part is shown: everywhere, on a page, in a text, or on the screen, the short form without sections."""


@dataclass(frozen=True, slots=True)
class Span:
    """look: code, note, below (a note on its own line), quiet, b, high, page (a link that a text omits), or "tag NAME"
    of a status. to: an anchor, or a file of the run folder. title: the tooltip."""

    text: str
    look: str = ""
    to: str = ""
    title: str = ""


Words = str | Span | tuple["str | Span", ...]
Cells = tuple[Words, ...]


def file(name: str) -> Span:
    return Span(name, to=name)


def plain(shown: Words) -> str:
    match shown:
        case str():
            return shown
        case Span():
            tagged = f"({shown.text})" if shown.look.startswith("tag ") else shown.text
            return {"below": f"; {shown.text}", "page": ""}.get(shown.look, tagged)
        case _:
            return "".join(map(plain, shown))


def numbers(*heads: str) -> "tuple[Column, ...]":
    return tuple(Column(head, side=">") for head in heads)


def code_list(names: Sequence[str]) -> tuple[str | Span, ...]:
    return tuple(piece for name in names for piece in (", ", Span(name, "code")))[1:]


@dataclass(frozen=True, slots=True)
class Prose:
    """look: prose, price, or note (which a text leaves out)."""

    words: Words
    look: str = "prose"


@dataclass(frozen=True, slots=True)
class Items:
    items: Sequence[Words]


@dataclass(frozen=True, slots=True)
class Column:
    """label: the head on a small screen and in a text. title: the tooltip."""

    head: str
    label: str = ""
    side: Literal["<", ">"] = "<"
    only: Only = ""
    title: str = ""


Heads = tuple[Column | str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    cells: Cells
    look: str = ""
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """look: stack (a block for each row on a small screen), figures. most: rows that a text shows; 0: all."""

    heads: Heads
    rows: Sequence[Row | Cells]
    look: str = "stack"
    most: int = 0
    anchor: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(head) if isinstance(head, str) else head for head in self.heads)

    @property
    def lines(self) -> tuple[Row, ...]:
        return tuple(row if isinstance(row, Row) else Row(row) for row in self.rows)

    def in_text(self) -> tuple[list[Column], list[list[Words]]]:
        kept = [number for number, column in enumerate(self.columns) if column.only != "page"]
        rows = [[row.cells[number] for number in kept] for row in self.lines[: self.most or None]]
        return [self.columns[number] for number in kept], rows


@dataclass(frozen=True, slots=True)
class Facts:
    rows: Sequence[tuple[Words, Words]]
    look: str = "facts"


@dataclass(frozen=True, slots=True)
class Figure:
    chart: Chart
    look: str = ""
    inside: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    changes: tuple[Change | ChangeRecord, ...]


@dataclass(frozen=True, slots=True)
class Commands:
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture that is no chart. anchor: "" for none."""

    name: str
    caption: str
    legend: Markup
    svg: Markup
    note: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """heading: a plain one with the look "" or "small", else an article's. summary: the group is folded under it."""

    blocks: "Sequence[Block]"
    look: str = ""
    heading: Words = ""
    summary: str = ""
    only: Only = ""


Block = Prose | Items | Table | Facts | Figure | Settings | Diff | Commands | Drawing | Group


@dataclass(frozen=True, slots=True)
class Aside:
    """An item of the first screen, hidden without lines. look: gain (the heading is a large number), next, before,
    after."""

    heading: Words
    lines: Cells
    look: str = ""
    only: Only = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Hidden without blocks. place: its name in the contents."""

    heading: str
    anchor: str
    blocks: tuple[Block, ...]
    place: str = ""
    only: Only = ""


@dataclass(frozen=True, slots=True)
class About:
    run: str
    study: StudySummary
    host: Host


@dataclass(frozen=True, slots=True)
class Document:
    """kind: the kicker of the report. empty: shown where there is no picture. report: path of the page or of the run.
    about: None where only a text is wanted."""

    kind: str
    answer: tuple[str, ...]
    sections: tuple[Section, ...]
    about: About | None = None
    figures: tuple[Figure, ...] = ()
    empty: str = ""
    asides: tuple[Aside, ...] = ()
    report: str = ""

    def asides_for(self, place: Only) -> tuple[Aside, ...]:
        return tuple(aside for aside in self.asides if aside.lines and aside.only in ("", place))

    @property
    def shown(self) -> tuple[Section, ...]:
        return tuple(section for section in self.sections if section.blocks)


def aside(heading: Words, *lines: Words, look: str = "", only: Only = "") -> Aside:
    return Aside(heading, tuple(line for line in lines if line), look, only)


def section(heading: str, anchor: str, blocks: Iterable[Block], place: str = "", only: Only = "") -> Section:
    return Section(heading, anchor, tuple(_filled(blocks)), place, only)


def _filled(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        shown = replace(block, blocks=tuple(_filled(block.blocks))) if isinstance(block, Group) else block
        match shown:
            case Group(()) | Items(()) | Facts(()) | Settings(()) | Diff(()) | Table(rows=()):
                continue
        yield shown


def listed(heading: str, items: Iterable[Words], anchor: str = "") -> Section:
    return section(heading, anchor, [Items([*items])])


def environment(about: About | None, *more: tuple[Words, Words]) -> Section:
    if about is None:
        return Section("", "environment", ())
    study, host = about.study, about.host
    levels = words.and_list([rounding.exact(level) for level in study.levels])
    virtual = f", {host.virtualisation}" if host.virtualisation else ""
    rows: tuple[tuple[Words, Words], ...] = (
        ("Target", words.target_name(study)),
        ("Workload", f"{study.workload_kind}, {f'at {levels}' if levels else 'over'} {study.load_unit}"),
        *[("Objective", study.objective)] * bool(study.objective),
        ("Machine", f"{host.cpus} CPUs ({host.cpu_model}), {show(host.memory_bytes, 'bytes')}{virtual}"),
        ("Kernel", host.kernel),
        *((f"Cage: {name}", value) for name, value in study.cage.items()),
        *((words.capital(name), value) for name, value in host.facts.items()),
        *more,
    )
    return section("What was measured", "environment", [Facts(rows)], "What was measured", "page")


def quality(run_quality: RunQuality | None, warnings: Sequence[str]) -> Section:
    sentences = (*(() if run_quality is None else quality_words.sentences(run_quality)), *warnings)
    return section("Run quality", "quality", [Items([*map(words.sentence, sentences)])], "Run quality")


def brief_quality(run_quality: RunQuality | None) -> Aside:
    sentences = () if run_quality is None else quality_words.sentences(run_quality)[:3]
    return aside("Quality", *map(words.sentence, sentences), only="screen")


def reproduce(run: str, *lines: tuple[str, str]) -> Section:
    """{run} and {study} become the run folder and its study."""
    places = {"run": shlex.quote(run), "study": shlex.quote(f"{run}/study.toml")}
    again = ("loadframe report {run}", "this page again, from the record")
    commands = tuple((command.format(**places), what) for command, what in (*lines, again))
    return section("Reproduce", "reproduce", [Commands(commands)], "Reproduce", "page")
