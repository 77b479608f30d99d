"""A run in a terminal while it is measured: python -m loadframe_live.terminal RUN OPEN READY. A process of its own, so
that a fault of it cannot end the measuring process, which holds the other end of the pipe OPEN: the view ends when that
is closed, also by SIGKILL. A byte is written to READY once the view is there."""

import asyncio
import math
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Footer, RichLog, Static

from loadframe.formats.said import words
from loadframe.progress import counted
from loadframe.runs.folder import RunFolder
from loadframe_live.view import RunView

COLOURS = ("dark_orange", "deep_sky_blue1", "green3", "orchid", "grey62")
BRAILLE = 0x2800
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Dots of a braille cell: by column, then by row."""
LEFT = 9
LOGARITHMIC = 8
"""Levels further apart than this factor are drawn on a logarithmic scale, as on the page."""
NEAR = 0.8

Points = Mapping[str, Sequence[tuple[float, float]]]


def points_of(steps: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """By treatment each level with the median of its throughputs, of steps that count."""
    throughputs: dict[str, dict[float, list[float]]] = {}
    for step in steps:
        if step["counts"]:
            throughputs.setdefault(step["treatment"], {}).setdefault(step["level"], []).append(step["throughput"])
    return {name: [(level, median(all_)) for level, all_ in sorted(of.items())] for name, of in throughputs.items()}


def curve(lines: Points, width: int, height: int, *, axis: str) -> Text:
    """Throughput over load; a sentence where there is none yet, or no room."""
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
    """The limits with the highest use. uses: by id the share, use and ceiling in words, and if reached."""
    text = Text()
    for name, (share, use, reached) in sorted(uses.items(), key=lambda item: -item[1][0])[:most]:
        colour = "red" if reached else "dark_orange" if share >= NEAR else "deep_sky_blue1"
        title = words(titles.get(name, {}).get("title", name))
        text.append(f"{title[:1].upper()}{title[1:]}"[: width - 1] + "\n")
        filled = round(min(share, 1.0) * (width - 1))
        text.append("█" * filled, style=colour)
        text.append("░" * (width - 1 - filled) + "\n", style="dim")
        text.append(f"{words(use)}{', reached' if reached else ''}\n", style=colour if share >= NEAR else "dim")
    return text or Text("They appear with the first step.")


LOOK_S = 0.5
READY = b"."
LOG_FROM_ROWS = 20
"""In a lower terminal the curve and the limits take the room of the log."""


class Drawn(Static):
    def on_resize(self) -> None:
        if isinstance(self.app, LiveView):
            self.app.paint()


class LiveView(App[None]):
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: auto; padding: 0 1; }
    #middle { height: 1fr; }
    #curve { width: 3fr; height: 100%; padding: 1 1; }
    #limits { width: 2fr; height: 100%; padding: 1 1; }
    #log { height: 8; border-top: solid $surface-lighten-2; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Leave this view; the run goes on"),
        Binding("ctrl+c", "stop", "Stop the run", priority=True),
    ]

    def __init__(self, view: RunView, stop: Callable[[], None]) -> None:
        super().__init__()
        self._view = view
        self._stop = stop
        self._logged = 0

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        with Horizontal(id="middle"):
            yield Drawn(id="curve")
            yield Drawn(id="limits")
        yield RichLog(id="log", wrap=True)
        yield Footer()

    def on_mount(self) -> None:
        self.call_after_refresh(self.look)
        self.set_interval(LOOK_S, self.look)

    def on_resize(self) -> None:
        self.query_one("#log").display = self.size.height >= LOG_FROM_ROWS

    def action_stop(self) -> None:
        self._stop()  # the view ends with the run

    def look(self) -> None:
        if self._view.refresh():
            self.paint()

    def paint(self) -> None:
        view, heading = self._view, self._view.heading
        if not heading:
            return
        self.query_one("#head", Static).update(_head(view))
        place = self.query_one("#curve", Static)
        axis = heading["unit"] or heading["axis"]
        place.update(curve(points_of(view.steps), place.size.width, place.size.height, axis=axis))
        counting = [step for step in view.steps if step["counts"]]
        room = self.query_one("#limits", Static)
        uses = counting[-1]["uses"] if counting else {}
        room.update(bars(uses, view.limits, room.size.width, max(1, room.size.height // 3)))
        log = self.query_one("#log", RichLog)
        new = min(view.lines_read - self._logged, len(view.lines))  # the first of very many are not kept
        for line in view.lines[len(view.lines) - new :]:
            style = "bold" if line["event"] == "phase" else ""
            log.write(Text(f"{_clock(line['at'])}  {words(line['words'])}", style=style))
        self._logged = view.lines_read


def _head(view: RunView) -> Text:
    heading, now = view.heading, view.now
    text = Text(words(heading["question"]), style="bold")
    if now is not None:
        level, unit = f"{now['level']:g}", words(heading["unit"])
        at = f"{level} {unit}" if unit else f"{words(heading['axis']).replace('_', ' ')} {level}"
        state = words(heading["treatments"].get(now["treatment"], now["treatment"]), 40)
        text.append(f"\nMeasuring at {at}, {state}")
    text.append(f"\n{counted(len(view.steps), 'step')}", style="dim")
    if view.recorder is not None:
        text.append(f", the recorder uses {100 * view.recorder['cpu_share']:.2g} % of one CPU", style="dim")
    text.append(f", {words(heading['work'])} per second over the load:", style="dim")
    for number, name in enumerate(points_of(view.steps)):
        title = words(heading["treatments"].get(name, ""), 40)
        text.append(f"  ━ {name} {title}", style=COLOURS[number % len(COLOURS)])
    return text


def _clock(at: str) -> str:
    try:
        return datetime.fromisoformat(at).astimezone().strftime("%H:%M:%S")
    except (ValueError, OverflowError):
        return words(at, 8)


async def _show(app: LiveView, open_end: int, ready: int) -> None:
    asyncio.get_running_loop().add_reader(open_end, app.exit)
    asyncio.get_running_loop().call_soon(os.write, ready, READY)
    await app.run_async()


def main(arguments: list[str]) -> int:
    run, (open_end, ready) = Path(arguments[0]), map(int, arguments[1:])
    measuring = os.getppid()

    def stop() -> None:
        if os.getppid() == measuring:
            os.kill(measuring, signal.SIGINT)

    asyncio.run(_show(LiveView(RunView(RunFolder.open(run), "0/run"), stop), open_end, ready))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
