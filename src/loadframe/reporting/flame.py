"""Flame graphs as SVG: the width of a box is its share of the samples, its row the depth of the call (Gregg, The Flame
Graph, CACM 59(6), 2016). Two colourings, chosen by the page: by the class of work, and by the change of CPU time per
request against another profile, where that is beyond chance."""

from __future__ import annotations

import math

from markupsafe import Markup

from loadframe.model import FlameFrame, Profile
from loadframe.progress import counted
from loadframe.reporting import rounding
from loadframe.reporting.markup import element

WIDTH = 1200
ROW = 18
CHARACTER = 6.7
"""Width of a character of the 11-pixel monospace face, in pixels."""
PADDING = 4
FEWEST = 5
"""Fewer characters of a name tell nothing."""
SHADES = (1.25, 2.0)
"""Changes below the first ratio are the palest shade, from the second on the strongest."""


def svg(profile: Profile, *, label: str) -> Markup:
    """One flame graph, WIDTH units wide; empty where there is nothing to draw. label: its name for screen readers."""
    if not profile.flame:
        return Markup("")
    depth = max(frame.depth for frame in profile.flame) + 2
    height = depth * ROW
    whole = f"all of {counted(profile.samples, 'sample')}"
    boxes = [box(whole, whole, "", 0.0, float(WIDTH), height - ROW)]
    boxes += [_frame(frame, height - (frame.depth + 2) * ROW) for frame in profile.flame]
    about = {"class": "flame", "viewBox": f"0 0 {WIDTH} {height}", "role": "img", "aria-label": label}
    return element("svg", about, *boxes)


def _frame(frame: FlameFrame, y: int) -> Markup:
    name = frame.name.removesuffix("_[k]")
    said = f"{name}{' (kernel)' if name != frame.name else ''}: {rounding.percent(frame.width)} of the samples"
    if frame.change is not None:
        said += f", {rounding.plain(frame.change)} times the CPU time per request"
    classes = " ".join(part for part in (f"k-{frame.class_id}" if frame.class_id else "", shade(frame.change)) if part)
    return box(name, said, classes, frame.start * WIDTH, frame.width * WIDTH, y)


def box(name: str, said: str, classes: str, x: float, width: float, y: int) -> Markup:
    text = fitted(name, width)
    written = element("text", {"x": f"{x + PADDING:.1f}", "y": y + ROW - 5}, text) if text else Markup("")
    rect = element("rect", {"x": f"{x:.2f}", "y": y, "width": f"{max(width, 0.01):.2f}", "height": ROW - 1})
    return element("g", {"class": classes, "data-name": name}, element("title", {}, said), rect, written)


def fitted(name: str, width: float) -> str:
    """As much of a name as fits into a box; nothing where only a few characters do."""
    room = int((width - 2 * PADDING) / CHARACTER)
    if room < FEWEST:
        return ""
    return name if len(name) <= room else name[: room - 2] + ".."


def shade(change: float | None) -> str:
    """The mark for a change: up or down, 1 (slight) to 3 (strong); nothing for none."""
    if change is None or change <= 0:
        return ""
    size = abs(math.log(change))
    strength = 1 + sum(size >= math.log(step) for step in SHADES)
    return f"{'up' if change > 1 else 'down'}{strength}"
