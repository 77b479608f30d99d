"""A document as one self-contained HTML file, readable without its few lines of script. Text is escaped by `element`,
in SVG by Vega's engine, in JSON by `_figure`."""

import base64
import hashlib
import shlex
from collections.abc import Iterable, Mapping
from importlib import resources
from itertools import groupby

from markupsafe import Markup, escape

from loadframe.model import Change, ChangeRecord
from loadframe.reporting import document as doc
from loadframe.reporting import facts, words
from loadframe.version import __version__

STEPS = "steps.jsonl"
FILES: Mapping[str, tuple[str, ...]] = {
    "percentiles": (STEPS, "latency"),
    "forecast": ("forecast.json", STEPS),
    "ladder": ("verdicts.json", STEPS),
    "gains": ("verdicts.json", STEPS),
    "limits": (STEPS, "limits.parquet"),
    "waterfall": ("ladder.json", STEPS),
    "trials": ("trials.jsonl", STEPS),
    "flame": ("profiles/steps.jsonl", "profiles"),
}
"""Prefix of a figure's name -> files of the run folder."""
TO = "figures"
SCRIPTS = {"figure-files": "figures.js", "settings-copy": "copy.js", "flame-zoom": "flame.js"}
HEADINGS = {"": "h3", "small": "h4"}
Attribute = str | int | float
VOID = frozenset({"meta", "input"})


def own_scripts() -> list[str]:
    return [read(name) for name in SCRIPTS.values()]


def read(name: str) -> str:
    return resources.files("loadframe.reporting").joinpath(name).read_text(encoding="utf-8")


def element(tag: str, attributes: Mapping[str, Attribute], *inside: str | Markup) -> Markup:
    """Text inside is escaped, elements stay. An attribute with the value "" is left out."""
    named = (Markup(' {}="{}"').format(name, value) for name, value in attributes.items() if value != "")
    opened = Markup("<{}{}>").format(tag, Markup("").join(named))
    return opened if tag in VOID else Markup("{}{}</{}>").format(opened, joined(*inside), tag)


def joined(*inside: str | Markup) -> Markup:
    return Markup("").join(map(escape, inside))


def policy(scripts: list[str], styles: list[str]) -> str:
    """A Content-Security-Policy (https://www.w3.org/TR/CSP3/) that allows only the page's own scripts and styles."""
    return (
        f"default-src 'none'; script-src {hashes(scripts)}; style-src {hashes(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def hashes(texts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def render(document: doc.Document) -> str:
    assert document.about is not None, "a page says what was measured"
    page, study, style = _Page(document, document.about), document.about.study, read("page.css")
    body = page.body()
    used = [name for name in SCRIPTS if name != "flame-zoom" or 'class="flames"' in body]
    scripts = [element("script", {"type": "module", "id": name}, Markup(read(SCRIPTS[name]))) for name in used]
    head = element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy(own_scripts(), [style])}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "generator", "content": f"Loadframe {__version__}"}),
        element("title", {}, f"{study.name}: {study.question}"),
        element("style", {}, Markup(style)),
    )
    whole = element("html", {"lang": "en"}, head, element("body", {}, body, *scripts))
    return Markup("<!doctype html>\n") + whole + "\n"


def inline(shown: doc.Words) -> Markup:
    match shown:
        case str():
            return joined(shown)
        case doc.Span():
            return _span(shown)
        case _:
            return Markup("").join(map(inline, shown))


def _span(span: doc.Span) -> Markup:
    attributes = {"title": span.title}
    inside: str | Markup = span.text
    if span.to:
        classed = {"class": span.look} if span.look == "high" else {}
        inside = element("a", {"href": span.to, **classed}, inside)
    match span.look:
        case "code" | "b":
            return element(span.look, attributes, inside)
        case "below":
            return Markup("<br>") + element("span", {"class": "note"}, inside)
        case "" | "high" | "page":
            return element("span", attributes, inside) if span.title else joined(inside)
        case look:
            return element("span", {"class": look, **attributes}, inside)


class _Page:
    def __init__(self, document: doc.Document, about: doc.About) -> None:
        self._document, self._about = document, about
        self._anchors = {section.anchor for section in document.shown}

    def body(self) -> Markup:
        document, study = self._document, self._about.study
        about = f"{document.kind} \u00b7 {study.name} \u00b7 {words.target_name(study)}"
        kicker, question = element("p", {"class": "kicker"}, about), element("h1", {}, study.question)
        answer = element("p", {"class": "answer"}, Markup("<br>").join(document.answer))
        header = element("header", {}, kicker, question, answer)
        story = doc.Section("The story", "story", (doc.Prose(study.story),) if study.story else ())
        sections = [self.section(section) for section in (story, *document.shown) if section.blocks]
        charts = "Each chart carries its Vega-Lite specification in this file."
        run = element("code", {}, self._about.run)
        host = f" \u00b7 {self._about.host.hostname}. {charts}"
        footer = element("footer", {}, f"Loadframe {__version__} \u00b7 run ", run, host)
        return element("main", {}, header, self._first(), self._contents(), *sections, footer)

    def _first(self) -> Markup:
        document = self._document
        pictures = [self.block(figure) for figure in document.figures]
        if not pictures and document.empty:
            pictures = [element("p", {"class": "prose"}, document.empty)]
        shown = element("div", {"class": "pictures"}, *pictures)
        asides = element("aside", {}, *map(self._aside, document.asides_for("page")))
        return element("section", {"class": "first", "aria-label": "Proof and next step"}, shown, asides)

    def _aside(self, aside: doc.Aside) -> Markup:
        classed = {"class": f"number {aside.look}".rstrip()}
        lines = list(map(inline, aside.lines))
        if aside.look.startswith("gain"):
            about = element("span", {}, Markup("<br>").join(lines))
            return element("div", classed, element("b", {}, inline(aside.heading)), about)
        first, *others = lines
        shown = [element("p", {}, first), *(element("p", {"class": "why"}, line) for line in others)]
        link = element("p", {"class": "copy"}, element("a", {"href": "#settings"}, "The settings to copy"))
        copied = link if aside.look == "next" and "settings" in self._anchors else ""
        return element("div", classed, element("h2", {}, inline(aside.heading)), *shown) + copied

    def _contents(self) -> Markup:
        places = {section.anchor: section.place for section in self._document.shown if section.place}
        listed = (element("li", {}, element("a", {"href": f"#{anchor}"}, place)) for anchor, place in places.items())
        return element("nav", {"class": "contents", "aria-label": "On this page"}, element("ul", {}, *listed))

    def section(self, section: doc.Section) -> Markup:
        heading = element("h2", {}, section.heading) if section.heading else ""
        return element("section", {"id": section.anchor}, heading, *map(self.block, section.blocks)) + "\n"

    def block(self, block: doc.Block) -> Markup:
        match block:
            case doc.Prose(shown, look):
                return element("p", {"class": look}, inline(shown))
            case doc.Items(items):
                return element("ul", {}, *(element("li", {}, inline(item)) for item in items))
            case doc.Table():
                return _table(block)
            case doc.Facts(rows, look):
                pairs = ((element("dt", {}, inline(name)), element("dd", {}, inline(fact))) for name, fact in rows)
                return element("dl", {"class": look}, *(element("div", {}, *pair) for pair in pairs))
            case doc.Settings(settings):
                return element("pre", {"class": "settings"}, "\n".join(settings))
            case doc.Diff(changes):
                return _diff(changes)
            case doc.Commands(commands):
                lines = (joined(f"{line}   ", _quiet(f"# {what}")) for line, what in commands)
                return element("pre", {}, Markup("\n").join(lines))
            case doc.Drawing():
                picture, note = (
                    element("div", {"class": "scroll"}, block.svg),
                    element("p", {"class": "note"}, block.note),
                )
                inside = element("figcaption", {}, block.caption), block.legend, picture, note, self._source(block.name)
                return element("figure", {"class": "flames", "id": block.anchor}, *inside)
            case doc.Group():
                return self._group(block)
            case doc.Figure():
                return self._figure(block)

    def _group(self, group: doc.Group) -> Markup:
        if group.only == "text":
            return Markup("")
        inside = map(self.block, group.blocks)
        if group.summary:
            opened = {"open": "open"} if group.look == "open" else {}
            return element("details", opened, element("summary", {}, group.summary), *inside)
        if group.heading and group.look in HEADINGS:
            return joined(element(HEADINGS[group.look], {}, inline(group.heading)), *inside)
        if group.heading:
            return element("article", {"class": group.look}, element("h3", {}, inline(group.heading)), *inside)
        return element("div", {"class": group.look}, *inside)

    def _figure(self, figure: doc.Figure) -> Markup:
        chart = figure.chart
        drawn = chart.svgs
        if len(drawn) > 1:
            looks = zip(("wide", "narrow"), drawn, strict=True)
            drawn = tuple(element("div", {"class": look}, svg) for look, svg in looks)
        # nothing in it can end its element
        data = Markup(chart.spec.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
        spec = {"type": "application/json", "class": "vega-lite", "id": f"spec-{chart.name}"}
        return element(
            "figure",
            {"class": f"chart {figure.look}".rstrip(), "id": f"chart-{chart.name}"},
            element("figcaption", {}, chart.title),
            *drawn,
            *map(self.block, figure.inside),
            element("p", {"class": "note"}, chart.note) if chart.note else "",
            self._source(chart.name, chart.metric),
            element("script", spec, data),
        )

    def _source(self, name: str, metric: str = "") -> Markup:
        sources = next((files for start, files in FILES.items() if name.startswith(start)), (STEPS,))
        places = [element("a", {"href": "#data"}, "the table of all steps") + " and "] * ("data" in self._anchors)
        files = [element("a", {"href": file}, file) for file in sources if "." in file]
        files += [element("code", {}, f"{folder}/") for folder in sources if "." not in folder]
        drawn = ("Drawn from ", *places, Markup(", ").join(files), " in the run folder")
        which = joined("; metric ", element("code", {}, metric)) if metric else ""
        saved = element("span", {"class": "save", "data-name": name}, "")
        command = f"loadframe report {shlex.quote(self._about.run)} --figures {TO}"
        again = joined("Draw it again: ", element("code", {}, command))
        return element(
            "details",
            {"class": "source"},
            element("summary", {}, "Data, picture, command"),
            element("p", {}, *drawn, which, ". ", saved),
            element("p", {}, again, " (", element("code", {}, f"{TO}/{name}.svg"), ")."),
        )


def _table(table: doc.Table) -> Markup:
    looks = table.look.split()
    stacked, figures = "stack" in looks, "figures" in looks
    heads, attributes = [], []
    for column in table.columns:
        name, label = "name" if figures and column.side == "<" else "", column.label or column.head
        heads.append(element("th", {"class": name} if name else {"title": column.title}, column.head))
        attributes.append({"class": name, "data-label": label if stacked else ""})
    lines = []
    for row in table.lines:
        cells = (element("td", named, inline(cell)) for named, cell in zip(attributes, row.cells, strict=True))
        lines.append(element("tr", {"class": row.look, "id": row.anchor}, *cells))
    head = element("thead", {}, element("tr", {}, *heads))
    whole = element("table", {"class": table.look}, head, element("tbody", {}, *lines))
    return element("div", {"class": "scroll", "id": table.anchor}, whole) if figures else whole


def _quiet(text: str) -> Markup:
    return element("span", {"class": "quiet"}, text)


def _diff(changes: Iterable[Change | ChangeRecord]) -> Markup:
    lines: list[Markup] = []
    for layer, layered in groupby(sorted(changes, key=lambda change: change.layer), key=lambda change: change.layer):
        lines.append(_quiet(f"# {layer}"))
        for change in layered:
            if change.before is not None:
                lines.append(element("del", {}, f"- {change.setting} = {facts.shown(change.before)}"))
            after = element("ins", {}, f"+ {change.setting} = {facts.shown(change.after)}")
            effective = change.read_back if isinstance(change, ChangeRecord) else None
            if effective is not None and not facts.same_value(effective, change.after):
                after += "   " + _quiet(f"# in effect: {facts.shown(effective)}")
            lines.append(after)
    return element("pre", {"class": "diff"}, Markup("\n").join(lines))
