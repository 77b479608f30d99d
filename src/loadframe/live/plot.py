"""A curve and bars as text, for a terminal: dots of braille, eight to a character."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from rich.text import Text

from loadframe.formats.said import words

COLOURS = ("dark_orange", "deep_sky_blue1", "green3", "orchid", "grey62")
BRAILLE = 0x2800
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Of a cell of braille: by column, then by row."""
LEFT = 9
LOGARITHMIC = 8
"""Levels that are further apart than this factor are drawn on a logarithmic scale, as on the page."""
REACHED, NEAR = 0.97, 0.8

Points = Mapping[str, Sequence[tuple[float, float]]]


def points_of(steps: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """By treatment, each level with the median of its throughputs; steps that do not count are left out."""
    found: dict[str, dict[float, list[float]]] = {}
    for step in steps:
        if step["counts"]:
            found.setdefault(step["treatment"], {}).setdefault(step["level"], []).append(step["throughput"])
    return {name: [(level, median(all_)) for level, all_ in sorted(of.items())] for name, of in found.items()}


def curve(lines: Points, width: int, height: int, *, axis: str) -> Text:
    """Throughput over load in `height` rows of `width` characters; "" in words where nothing was measured yet."""
    known = [point for line in lines.values() for point in line]
    if not known or width < LEFT + 10 or height < 4:
        return Text("The first step is being measured." if not known else "The window is too small for the curve.")
    columns, rows = width - LEFT - 3, height - 2
    top = max(throughput for _, throughput in known) or 1.0
    levels = sorted({level for level, _ in known})
    grid: list[list[tuple[int, str]]] = [[(0, "")] * columns for _ in range(rows)]
    for number, line in enumerate(lines.values()):
        places = [
            (_across(level, levels) * (2 * columns - 1), (1 - value / top) * (4 * rows - 1)) for level, value in line
        ]
        for (x, y), (to_x, to_y) in zip(places, [*places[1:], places[-1]], strict=True):
            _stroke(grid, x, y, to_x, to_y, COLOURS[number % len(COLOURS)])
    text = Text()
    for number, row in enumerate(grid):
        label = f"{top * (1 - number / max(rows - 1, 1)):,.0f}" if number % 3 == 0 else ""
        text.append(f"{label:>{LEFT - 1}} ", style="dim")
        for bits, colour in row:
            text.append(chr(BRAILLE + bits) if bits else " ", style=colour)
        text.append("\n")
    ends = f"{levels[0]:g}".ljust(columns - len(f"{levels[-1]:g}")) + f"{levels[-1]:g}"
    text.append(" " * LEFT + ends + "\n", style="dim")
    text.append(" " * LEFT + words(axis)[:columns].center(columns), style="dim")
    return text


def _across(level: float, levels: Sequence[float]) -> float:
    low, high = levels[0], levels[-1]
    if low == high:
        return 0.5
    if low > 0 and high / low >= LOGARITHMIC:
        return math.log(level / low) / math.log(high / low)
    return (level - low) / (high - low)


def _stroke(grid: list[list[tuple[int, str]]], x: float, y: float, to_x: float, to_y: float, colour: str) -> None:
    count = max(1, int(max(abs(to_x - x), abs(to_y - y))))
    for step in range(count + 1):
        column, row = round(x + (to_x - x) * step / count), round(y + (to_y - y) * step / count)
        bits, _ = grid[row // 4][column // 2]
        grid[row // 4][column // 2] = (bits | DOTS[column % 2][row % 4], colour)


def bars(uses: Mapping[str, Sequence[Any]], titles: Mapping[str, Mapping[str, Any]], width: int, most: int) -> Text:
    """The limits of which most is in use, as bars. uses: by id the share, and use and ceiling in words."""
    text = Text()
    ranked = sorted(uses.items(), key=lambda item: -item[1][0])[:most]
    for name, (share, told, *_) in ranked:
        colour = "red" if share >= REACHED else "dark_orange" if share >= NEAR else "deep_sky_blue1"
        title = words(titles.get(name, {}).get("title", name))
        text.append(f"{title[:1].upper()}{title[1:]}"[: width - 1] + "\n")
        filled = round(min(share, 1.0) * (width - 1))
        text.append("█" * filled, style=colour)
        text.append("░" * (width - 1 - filled) + "\n", style="dim")
        text.append(
            f"{words(told)}{', reached' if share >= REACHED else ''}\n", style=colour if share >= NEAR else "dim"
        )
    return text if ranked else Text("They appear with the first step.")
