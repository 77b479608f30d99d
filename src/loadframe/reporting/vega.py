"""The grammar that all charts share: axes, labels, look, and the rendering to SVG without a browser or a network.

Colours are Okabe and Ito's, which people with any colour vision tell apart: vermilion before, blue after.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from markupsafe import Markup

from loadframe.errors import RunError
from loadframe.json_text import write_json
from loadframe.panics import ROOM_BYTES, in_words

if TYPE_CHECKING:
    import altair as alt

    Drawing = alt.LayerChart | alt.FacetChart

BEFORE, BETWEEN, AFTER, INK, QUIET = "#D55E00", "#8A8A8A", "#0072B2", "#1F2933", "#5B6673"
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
LABELS_TOUCH_BELOW = 0.07
"""Share of the height below which two labels at the ends of lines would overlap."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of the plot inside the axes, in CSS pixels."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class LoadAxis:
    """The load in the user's units; its ticks are the levels themselves."""

    unit: str
    levels: tuple[float, ...]

    @property
    def logarithmic(self) -> bool:
        return is_geometric(self.levels)

    def channel(self) -> alt.X:
        import altair as alt

        ticks = alt.Axis(
            values=list(self.levels), labelOverlap="greedy", format=number_format(max(self.levels)), grid=False
        )
        title = self.unit + (" (log scale)" if self.logarithmic else "")
        scale = alt.Scale(type="log" if self.logarithmic else "linear", zero=False, nice=False, padding=8)
        return alt.X("load:Q", title=title, scale=scale, axis=ticks)


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """What is measured, from low to high."""

    title: str
    low: float
    high: float
    logarithmic: bool = False

    def channel(self, field: str = "value") -> alt.Y:
        import altair as alt

        title = self.title + (" (log scale)" if self.logarithmic else "")
        scale = alt.Scale(type="log" if self.logarithmic else "linear", domain=[self.low, self.high], nice=False)
        return alt.Y(
            f"{field}:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5, format=number_format(self.high))
        )

    def height(self, value: float) -> float:
        """Where a value stands between the bottom (0) and the top (1)."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class PercentileAxis:
    """Percentiles, logarithmic in what lies above them: 90, 99 and 99.9 are as far apart (HdrHistogram's plots). The
    field is how many requests there are for each one above. most: its largest value."""

    FIELD: ClassVar[str] = "one_in"
    most: float

    def channel(self) -> alt.X:
        import altair as alt

        decades = max(math.ceil(math.log10(max(self.most, 2.0))), 1)
        shown = alt.Axis(
            values=[2, *(10**power for power in range(1, decades + 1))],
            labelExpr="format(100 - 100 / datum.value, '.12~g')",
            labelOverlap="greedy",
            grid=True,
        )
        scale = alt.Scale(type="log", domain=[1, max(self.most, 2.0)], nice=False)
        return alt.X(f"{self.FIELD}:Q", title="percentile of the requests (log scale)", scale=scale, axis=shown)


@dataclass(frozen=True, slots=True)
class End:
    """The last point of a line, where its name is written."""

    label: str
    colour: str
    load: float
    value: float


def number_format(largest: float) -> str:
    """d3's format for an axis: SI prefixes only where the plain number would be long."""
    return "~s" if largest >= 10_000 else ",.6~g"


def is_geometric(levels: Sequence[float]) -> bool:
    """Whether the levels are spread more evenly on a logarithmic axis than on a linear one."""
    ordered = sorted(set(levels))
    if len(ordered) < 3 or ordered[0] <= 0:
        return False
    return _unevenness([math.log(level) for level in ordered]) < _unevenness(ordered)


def _unevenness(values: list[float]) -> float:
    gaps = [later - earlier for earlier, later in itertools.pairwise(values)]
    mean = sum(gaps) / len(gaps)
    return math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) / mean


def data(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """A chart of these rows, which become part of its specification.

    They travel as one string until `specification` unpacks them: Altair copies its data deeply at every call, which
    took longer than all the drawing.
    """
    import altair as alt

    return alt.Chart(alt.InlineData(values=write_json([dict(row) for row in rows])))


def shade(low: float, high: float, x: alt.X, colour: str, opacity: float) -> alt.Chart:
    """A band over all heights between two loads."""
    import altair as alt

    marks: alt.Chart = data([{"load": low, "load2": high}]).mark_rect(color=colour, opacity=opacity)
    return marks.encode(x=x, x2=alt.X2("load2:Q"))


def end_labels(ends: Sequence[End], x: alt.X, axis: ValueAxis, field: str = "load") -> list[alt.Chart]:
    """The name of each line at its right end, moved apart where two would touch; none where there is one line. field:
    what x shows."""
    import altair as alt

    if len(ends) < 2:
        return []
    layers, previous, shift = [], -math.inf, 0
    for end in sorted(ends, key=lambda end: end.value):
        height = axis.height(end.value)
        shift = shift - 12 if height - previous < LABELS_TOUCH_BELOW else 0
        previous = height
        row = {field: end.load, "value": end.value, "label": end.label}
        mark = data([row]).mark_text(align="left", dx=8, dy=shift, color=end.colour, fontWeight=600, fontSize=12.5)
        layers.append(mark.encode(x=x, y=axis.channel(), text=alt.Text("label:N")))
    return layers


def ceiling(value: float, label: str, colour: str, x: alt.X, y: alt.Y, left: float) -> list[alt.Chart]:
    """A dotted line that use cannot cross, named at its left end."""
    import altair as alt

    base = data([{"load": left, "value": value, "label": label}]).encode(y=y)
    text = base.mark_text(align="left", dx=2, dy=-7, color=colour).encode(x=x, text=alt.Text("label:N"))
    return [base.mark_rule(color=colour, strokeDash=[2, 3]), text]


def specification(drawn: Drawing, background: str | None = None) -> dict[str, Any]:
    """The Vega-Lite specification with the look that all charts share."""
    spec: dict[str, Any] = drawn.to_dict(validate=False)
    spec["datasets"] = {name: json.loads(rows) for name, rows in spec["datasets"].items()}
    spec["background"] = background
    spec["padding"] = {"left": 4, "right": 10, "top": 6, "bottom": 4}
    ink = {"labelColor": QUIET, "titleColor": QUIET, "gridColor": "#E4E7EB", "domainColor": "#9AA5B1"}
    sizes = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8}
    spec["config"] = {
        "font": FONT,
        "view": {"stroke": None},
        "axis": {**ink, **sizes, "tickColor": "#9AA5B1"},
        "text": {"fontSize": 12},
        "title": {"fontSize": 15, "color": INK, "subtitleColor": QUIET, "subtitleFontSize": 13},
    }
    return spec


def start_engine() -> None:
    """Make Vega's engine ready; its first rendering takes most of a second."""
    import vl_convert

    with in_words("The charts of the report cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
        vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})


def render(spec: Mapping[str, Any], name: str, title: str) -> Markup:
    """A specification as an SVG element for a page that holds several: described, and with ids of its own. The engine
    escapes what the specification's texts say."""
    import vl_convert

    with in_words(f"The chart {name} cannot be drawn", RunError, ValueError, room_bytes=ROOM_BYTES):
        svg: str = vl_convert.vegalite_to_svg(dict(spec))
    svg = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    return Markup(svg.replace("<svg ", Markup('<svg role="img" aria-label="{}" ').format(title), 1))
