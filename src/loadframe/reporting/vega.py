"""Vega-Lite specifications (https://vega.github.io/vega-lite/docs/spec.html), rendered to SVG. Colours are Okabe and
Ito's: vermilion before, blue after."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean, pstdev
from typing import Any

from markupsafe import Markup

from loadframe.errors import RunError
from loadframe.formats.json_text import write_json
from loadframe.panics import ROOM_BYTES, in_words
from loadframe.reporting import rounding, words

BEFORE, BETWEEN, AFTER, INK, QUIET = "#D55E00", "#8A8A8A", "#0072B2", "#1F2933", "#5B6673"
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
LOG_SCALE = " (log scale)"
MOST_TICKS = 7
LABEL_HEIGHT = 14
CHARACTER_PX = 6.9
"""A character of 12-pixel type, generous: a browser may lack the font that the engine measures."""
SLACK = 1.2
"""Extra pixels per character: a wider font than those of FONT would cut off the last names."""
Row = Mapping[str, Any]
Rows = Sequence[Row]
Channel = dict[str, Any]
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    width: int
    height: int


WIDE, NARROW = Size(640, 300), Size(270, 240)
BOTH, HALF = (WIDE, NARROW), (Size(370, 210),)


@dataclass(frozen=True, slots=True)
class LoadAxis:
    unit: str
    levels: tuple[float, ...]

    def channel(self) -> Channel:
        kind, title = _scaled(is_geometric(self.levels), self.unit)
        return quantity(
            "load",
            title,
            {"type": kind, "zero": False, "nice": False, "padding": 8},
            values=list(self.levels),
            labelOverlap="greedy",
            labelSeparation=4,
            format=PLAIN if max(self.levels) < LONG_LOAD else SI,
            grid=False,
        )


@dataclass(frozen=True, slots=True)
class ValueAxis:
    title: str
    low: float
    high: float
    logarithmic: bool = False

    def channel(self, field: str = "value") -> Channel:
        kind, title = _scaled(self.logarithmic, self.title)
        scale = {"type": kind, "domain": [self.low, self.high], "nice": False}
        marks = log_ticks(self.low, self.high) if self.logarithmic else []
        ticks = {"values": marks, "labelOverlap": "greedy"} if marks else {"tickCount": 5}
        labels = {"format": number_format(self.high)}
        if labels["format"] == SI:  # which would show "0k"
            labels["labelExpr"] = f"datum.value == 0 ? '0' : format(datum.value, '{SI}')"
        return quantity(field, title, scale, **ticks, **labels)

    def height(self, value: float) -> float:
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def _scaled(logarithmic: bool, title: str) -> tuple[str, str]:
    return ("log", f"{title}{LOG_SCALE}") if logarithmic else ("linear", title)


def axis_over(title: str, values: Sequence[float], logarithmic: bool = False, factor: float = 1.5) -> ValueAxis:
    """From 0, or logarithmic with this factor around the values."""
    top = max(values) or 1.0
    low, high = (min(values) / factor, top * factor) if logarithmic else (0.0, top * 1.15)
    return ValueAxis(title, low, high, logarithmic)


def quantity(field: str, title: str, scale: Mapping[str, Any], **axis: Any) -> Channel:
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def text(field: str = "label") -> Channel:
    return {"field": field, "type": "nominal"}


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 and their tenfolds, or powers of ten if more than MOST_TICKS; none if fewer than two are left."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1,)):
        marks = [digit * 10.0**power for power in powers for digit in digits]
        inside = [mark for mark in marks if low <= mark <= high]
        if len(inside) <= MOST_TICKS:
            break
    return inside if len(inside) > 1 else []


class Plot:
    """Later marks lie above."""

    def __init__(
        self, size: Size, x: Channel, y: ValueAxis | None = None, place: Callable[[float], str] = rounding.plain
    ) -> None:
        """y: None for a drawing whose marks name all their channels. place: a position on x, in words."""
        self.size, self.x, self._y, self._place = size, x, y, place
        self._layers: list[Spec] = []
        self._rows: list[list[dict[str, Any]]] = []
        self._ends: list[tuple[float, float, str, str]] = []
        self._lines: list[tuple[str, list[tuple[float, float]]]] = []
        self._names: dict[tuple[str, tuple[float, float]], str] = {}
        self.left, self.right = 4.0, 10.0
        self.description = ""  # where none can be derived from the lines

    @property
    def y(self) -> ValueAxis:
        assert self._y is not None, "a mark that names no channels lies on the axes"
        return self._y

    def add(self, kind: str, rows: Rows, encoding: Mapping[str, Channel], **look: Any) -> None:
        """A mark for each of these rows, or one through all. Equal rows are stored once."""
        data = list(map(dict, rows))
        if data not in self._rows:
            self._rows.append(data)
        named = {"name": f"rows-{self._rows.index(data)}"}
        self._layers.append({"data": named, "mark": {"type": kind, **look}, "encoding": dict(encoding)})

    def draw(self, kind: str, rows: Rows, colour: str, field: str = "value", to: str = "", **look: Any) -> None:
        """A mark on both axes, at this field of the rows, or from it to another."""
        y2 = {"y2": {"field": to}} if to else {}
        if kind == "line":
            self._lines.append((colour, [(row[self.x["field"]], row[field]) for row in rows]))
        self.add(kind, rows, {"x": self.x, "y": self.y.channel(field), **y2}, color=colour, **look)

    def shade(self, low: float, high: float, colour: str, opacity: float) -> None:
        x2 = {"x2": {"field": "load2"}}
        self.add("rect", [{"load": low, "load2": high}], {"x": self.x, **x2}, color=colour, opacity=opacity)

    def rule(self, load: float, colour: str) -> None:
        self.add("rule", [{"load": load}], {"x": self.x}, color=colour, strokeDash=[4, 3], strokeWidth=1.2)

    def write(self, load: float, value: float, label: str, colour: str, **look: Any) -> None:
        row = {self.x["field"]: load, "value": value, "label": label}
        encoding = {"x": self.x, "y": self.y.channel(), "text": text()}
        self.add("text", [row], encoding, color=colour, **look)

    def end(self, label: str, colour: str, row: Row, field: str = "value") -> None:
        """The name of a line, written at its last point where there are several."""
        load, value = row[self.x["field"]], row[field]
        self._names[colour, (load, value)] = label
        self._ends.append((value, load, label, colour))

    def ceiling(self, value: float, label: str, colour: str, left: float) -> None:
        row = {"load": left, "value": value, "label": label}
        self.add("rule", [row], {"y": self.y.channel()}, color=colour, strokeDash=[2, 3])
        self.write(left, value, label, colour, align="left", dx=2, dy=-7)

    def described(self) -> str:
        if self.description or not self._lines:
            return self.description
        sentences = []
        for colour, points in self._lines:
            if not points:
                continue
            names = [f"{name}: " for point in points if (name := self._names.get((colour, point)))]
            name = names[0] if names and len(self._lines) > 1 else ""
            ordered = sorted(points)
            by_value = {"at most ": max(ordered, key=itemgetter(1)), "at least ": min(ordered, key=itemgetter(1))}
            shown = [("", ordered[0])]
            shown += [item for item in by_value.items() if item[1][1] not in (ordered[0][1], ordered[-1][1])]
            shown += [("", last) for last in ordered[1:][-1:]]
            course = [f"{word}{rounding.plain(value)} at {self._place(x)}" for word, (x, value) in shown]
            sentences.append(f"{name}{', '.join(course)}.")
        x, y = (str(axis["title"]).removesuffix(LOG_SCALE) for axis in (self.x, self.y.channel()))
        return " ".join([f"{words.capital(y or 'number')} over {x}.", *sentences])

    def specification(self) -> Spec:
        slack = round(SLACK * max((len(label) for _, _, label, _ in self._ends), default=0))
        ends = sorted(self._ends) if len(self._ends) > 1 else []
        heights = [self.size.height * self.y.height(value) for value, *_ in ends]
        for (value, load, label, colour), height, place in zip(ends, heights, self._apart(heights), strict=True):
            look = {"align": "left", "dx": 8, "dy": round(height - place), "fontWeight": 600, "fontSize": 12.5}
            self.write(load, value, label, colour, **look)
        self._ends = []
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "width": self.size.width,
            "height": self.size.height,
            "background": None,
            "padding": {"left": self.left, "right": self.right + slack, "top": 6, "bottom": 4},
            "config": CONFIG,
            "layer": self._layers,
            "datasets": {f"rows-{number}": rows for number, rows in enumerate(self._rows)},
        }

    def _apart(self, heights: Sequence[float]) -> list[float]:
        """Ascending, each moved up where it touches the one below; then down again from the top."""
        places: list[float] = []
        for height in heights:
            places.append(max(height, places[-1] + LABEL_HEIGHT) if places else height)
        room = float(self.size.height)
        for number in reversed(range(len(places))):
            places[number] = min(places[number], room)
            room = places[number] - LABEL_HEIGHT
        return places


class Canvas(Plot):
    """Without axes. across, down: coordinate ranges; by default pixels from the top left."""

    def __init__(
        self, size: Size, across: tuple[float, float] | None = None, down: tuple[float, float] | None = None
    ) -> None:
        ends = {"x": across or (0, size.width), "y": down or (0, size.height)}
        self.place: dict[str, Channel] = {
            field: {"field": field, "type": "quantitative", "scale": {**FIXED, "domain": list(end)}, "axis": None}
            for field, end in ends.items()
        }
        self.place["y"]["scale"]["reverse"] = True
        super().__init__(size, self.place["x"])

    def label(self, x: float, y: float, label: str, colour: str, **look: object) -> None:
        mark = {"align": "left", "baseline": "top", "fontSize": 12, **look}
        self.add("text", [{"x": x, "y": y, "label": label}], {**self.place, "text": text()}, color=colour, **mark)

    def heading(
        self, left: float, top: float, line_px: int, title: Sequence[str], lines: Sequence[tuple[str, str]]
    ) -> None:
        for number, line in enumerate(title):
            self.label(left, top + line_px * number, line, INK, fontWeight=600)
        for number, (line, colour) in enumerate(lines, start=len(title)):
            self.label(left, top + line_px * number, line, colour)

    def boxes(self, rows: Rows, colour: str, kind: str = "rect", **look: object) -> None:
        self.add(kind, rows, {**self.place, "x2": {"field": "x2"}, "y2": {"field": "y2"}}, color=colour, **look)

    def box(self, left: float, right: float, top: float, bottom: float, colour: str, **look: Any) -> None:
        self.boxes([{"x": left, "x2": right, "y": top, "y2": bottom}], colour, **look)


@dataclass(frozen=True, slots=True)
class Chart:
    """title: the fact it shows. alt: in words. specs: one per size, the widest first. svgs: without the title, which
    the page sets itself."""

    name: str
    title: str
    note: str
    alt: str
    specs: tuple[Spec, ...]
    metric: str = ""
    svgs: tuple[Markup, ...] = ()

    @property
    def spec(self) -> str:
        return write_json({**self.specs[0], "title": self.title})


def charted(
    name: str,
    title: str,
    note: str,
    sizes: Sequence[Size],
    draw: Callable[..., Plot | None],
    *about: Any,
    metric: str = "",
) -> Iterator[Chart]:
    pictures = [plot for size in sizes if (plot := draw(*about, size)) is not None]
    if pictures:
        alt = " ".join(filter(None, (words.sentence(title), pictures[0].described())))
        yield Chart(name, title, note, alt, tuple(picture.specification() for picture in pictures), metric)


SI, PLAIN = "~s", ",.6~g"
LONG_LOAD = 100_000
"""From this load on, an axis has SI prefixes."""
FIXED: Mapping[str, Any] = {"nice": False, "zero": False}
CONFIG: Mapping[str, Any] = {
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": QUIET,
        "titleColor": QUIET,
        "gridColor": "#E4E7EB",
        "domainColor": "#9AA5B1",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "tickColor": "#9AA5B1",
    },
    "text": {"fontSize": 12},
    "title": {"fontSize": 15, "color": INK, "subtitleColor": QUIET, "subtitleFontSize": 13},
}


def number_format(largest: float) -> str:
    """d3's: SI prefixes only where the plain number would be long."""
    return SI if largest >= 10_000 else PLAIN


def is_geometric(levels: Sequence[float]) -> bool:
    """Whether they are spaced more evenly on a logarithmic axis than on a linear one."""
    ordered = sorted(set(levels))
    if len(ordered) < 3 or ordered[0] <= 0:
        return False
    return _unevenness(map(math.log, ordered)) < _unevenness(ordered)


def _unevenness(values: Iterable[float]) -> float:
    gaps = [later - earlier for earlier, later in itertools.pairwise(values)]
    return pstdev(gaps) / fmean(gaps)


def start_engine() -> None:
    """Its first rendering takes most of a second."""
    import vl_convert

    with in_words("The charts of the report cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
        vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})


def render(spec: Mapping[str, Any], name: str, alt: str) -> Markup:
    """An SVG element with unique ids, described by `alt`. The engine escapes its texts."""
    import vl_convert

    with in_words(f"The chart {name} cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
        svg: str = vl_convert.vegalite_to_svg(dict(spec))
    svg = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    return Markup(svg.replace("<svg ", Markup('<svg role="img" aria-label="{}" ').format(alt), 1))
