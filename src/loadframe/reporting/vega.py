"""Vega-Lite specifications (https://vega.github.io/vega-lite/docs/spec.html) in the style of all charts, and their
rendering to SVG. Colours are Okabe and Ito's: vermilion before, blue after."""

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from markupsafe import Markup

from loadframe.errors import RunError
from loadframe.formats.json_text import write_json
from loadframe.panics import ROOM_BYTES, in_words
from loadframe.reporting import rounding

BEFORE, BETWEEN, AFTER, INK, QUIET = "#D55E00", "#8A8A8A", "#0072B2", "#1F2933", "#5B6673"
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
MOST_TICKS = 7
LABEL_HEIGHT = 14
CHARACTER_PX = 6.9
"""Width of a character of 12-pixel type, a generous estimate: a browser may lack the font that the engine measures."""
SLACK = 1.2
"""Extra pixels per character: a browser without the fonts of FONT takes a wider one, which would cut off the last
names."""
Row = Mapping[str, Any]
Rows = Sequence[Row]
Channel = dict[str, Any]
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class LoadAxis:
    unit: str
    levels: tuple[float, ...]

    def channel(self) -> Channel:
        logarithmic = is_geometric(self.levels)
        return quantity(
            "load",
            self.unit + (" (log scale)" if logarithmic else ""),
            {"type": "log" if logarithmic else "linear", "zero": False, "nice": False, "padding": 8},
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
        title = self.title + (" (log scale)" if self.logarithmic else "")
        scale = {"type": "log" if self.logarithmic else "linear", "domain": [self.low, self.high], "nice": False}
        ticks: dict[str, Any] = {"tickCount": 5}
        if self.logarithmic and (marks := log_ticks(self.low, self.high)):
            ticks = {"values": marks, "labelOverlap": "greedy"}
        return quantity(field, title, scale, **ticks, **number_labels(self.high))

    def height(self, value: float) -> float:
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


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
    """A drawing over a pair of axes, built up mark by mark: later marks lie above."""

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
        self.description = ""
        """Description in sentences, where none can be derived from the lines."""

    @property
    def y(self) -> ValueAxis:
        assert self._y is not None, "a mark that names no channels lies on the axes"
        return self._y

    def add(self, kind: str, rows: Rows, encoding: Mapping[str, Channel], **look: Any) -> None:
        """A mark for each of these rows, or one through all. Equal rows are stored once."""
        data = [dict(row) for row in rows]
        if data not in self._rows:
            self._rows.append(data)
        named = f"rows-{self._rows.index(data)}"
        self._layers.append({"data": {"name": named}, "mark": {"type": kind, **look}, "encoding": dict(encoding)})

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
        """The name of a line, written at its last point where there are several lines."""
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
        for colour, points in ((colour, points) for colour, points in self._lines if points):
            name = next((name for point in points if (name := self._names.get((colour, point)))), "")
            sentences.append(f"{f'{name}: ' if name and len(self._lines) > 1 else ''}{self._course(points)}.")
        x, y = (str(axis["title"]).removesuffix(" (log scale)") for axis in (self.x, self.y.channel()))
        return " ".join([f"{(y or 'number')[:1].upper()}{(y or 'number')[1:]} over {x}.", *sentences])

    def _course(self, points: list[tuple[float, float]]) -> str:
        ordered = sorted(points)
        ends, values = (ordered[0], ordered[-1]), [value for _, value in ordered]
        by_value = {"at most": max(ordered, key=itemgetter(1)), "at least": min(ordered, key=itemgetter(1))}
        inner = [
            f"{word} {self._point(point)}"
            for word, point in by_value.items()
            if point[1] not in (ends[0][1], ends[1][1]) and max(values) > min(values)
        ]
        parts = [self._point(ends[0]), *inner, *([self._point(ends[1])] if len(ordered) > 1 else [])]
        return ", ".join(parts)

    def _point(self, point: tuple[float, float]) -> str:
        return f"{rounding.plain(point[1])} at {self._place(point[0])}"

    def specification(self) -> Spec:
        slack = round(SLACK * max((len(label) for _, _, label, _ in self._ends), default=0))
        self._write_ends()
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

    def _write_ends(self) -> None:
        """Names at the right ends of the lines, moved apart where two would touch; none for a single line."""
        ends = sorted(self._ends) if len(self._ends) > 1 else []
        heights = [self.size.height * self.y.height(value) for value, *_ in ends]
        for (value, load, label, colour), height, place in zip(ends, heights, self._apart(heights), strict=True):
            shift = round(height - place)
            self.write(load, value, label, colour, align="left", dx=8, dy=shift, fontWeight=600, fontSize=12.5)
        self._ends = []

    def _apart(self, heights: Sequence[float]) -> list[float]:
        """The ascending heights, each moved up where it touches the one below; then down again from the top."""
        places: list[float] = []
        for height in heights:
            places.append(max(height, places[-1] + LABEL_HEIGHT) if places else height)
        room = float(self.size.height)
        for number in reversed(range(len(places))):
            places[number] = min(places[number], room)
            room = places[number] - LABEL_HEIGHT
        return places


class Canvas(Plot):
    """A drawing without axes. across, down: coordinate ranges; by default pixels from the top left."""

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
        self, left: float, top: float, line_px: int, title: Sequence[str], said: Sequence[tuple[str, str]]
    ) -> None:
        for number, line in enumerate(title):
            self.label(left, top + line_px * number, line, INK, fontWeight=600)
        for number, (line, colour) in enumerate(said, start=len(title)):
            self.label(left, top + line_px * number, line, colour)

    def boxes(self, rows: Rows, colour: str, kind: str = "rect", **look: object) -> None:
        self.add(kind, rows, {**self.place, "x2": {"field": "x2"}, "y2": {"field": "y2"}}, color=colour, **look)

    def box(self, left: float, right: float, top: float, bottom: float, colour: str, **look: Any) -> None:
        self.boxes([{"x": left, "x2": right, "y": top, "y2": bottom}], colour, **look)


@dataclass(frozen=True, slots=True)
class Chart:
    """title: the fact it shows. alt: a description in words. specs: Vega-Lite, one per size, the widest first. svgs:
    without the title, which the page sets itself."""

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


SI, PLAIN = "~s", ",.6~g"
LONG_LOAD = 100_000
"""From this load on an axis has SI prefixes."""
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


def number_labels(largest: float) -> dict[str, Any]:
    written = number_format(largest)
    if written != SI:
        return {"format": written}
    return {"format": written, "labelExpr": f"datum.value == 0 ? '0' : format(datum.value, '{SI}')"}


def number_format(largest: float) -> str:
    """d3's format for an axis: SI prefixes only where the plain number would be long."""
    return SI if largest >= 10_000 else PLAIN


def is_geometric(levels: Sequence[float]) -> bool:
    """Whether the levels are spaced more evenly on a logarithmic axis than on a linear one."""
    ordered = sorted(set(levels))
    if len(ordered) < 3 or ordered[0] <= 0:
        return False
    return _unevenness([math.log(level) for level in ordered]) < _unevenness(ordered)


def _unevenness(values: list[float]) -> float:
    gaps = [later - earlier for earlier, later in itertools.pairwise(values)]
    mean = sum(gaps) / len(gaps)
    return math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) / mean


def start_engine() -> None:
    """Start Vega's engine now: its first rendering takes most of a second."""
    import vl_convert

    with in_words("The charts of the report cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
        vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})


def render(spec: Mapping[str, Any], name: str, alt: str) -> Markup:
    """A specification as an SVG element with unique ids, described by `alt`. The engine escapes its texts."""
    import vl_convert

    with in_words(f"The chart {name} cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
        svg: str = vl_convert.vegalite_to_svg(dict(spec))
    svg = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    return Markup(svg.replace("<svg ", Markup('<svg role="img" aria-label="{}" ').format(alt), 1))
