"""The stages of a pipeline: for each stage and level a bar of its workers' time, and the queue before it."""

from loadframe.analysis.in_service import WORTH
from loadframe.model import Investigation, More
from loadframe.model.verdict import decide
from loadframe.reporting import facts, plots, rounding, verdict_words, words
from loadframe.reporting.vega import INK, QUIET, Canvas, Plot, Size
from loadframe_pipelines.families import STAGES
from loadframe_pipelines.stages import Stage, percent, stages_in

BUSY, BLOCKED, IDLE, QUEUE = "#0072B2", "#D55E00", "#DCE6EE", "#E69F00"
LEGEND = (("at work", BUSY), ("blocked", BLOCKED), ("idle", IDLE), ("queue before it, of its room", QUEUE))
ROW_PX, HEAD_PX = 46, 58
BAR, GAP = 0.74, 0.14
NAME_PX = 128
MOST_LEVELS = {True: 6, False: 3}
TERSE_BELOW = 400
MOST_STAGES = 12
LONGEST_NAME = 15
SAID_FROM = 0.35
FIELDS = ("busy", "blocked", "idle", "waiting", "room", "workers", "at_work", "ms_per_entry", "entries")


def rounds(inv: Investigation) -> list[tuple[str, facts.Series]]:
    return plots.seen(inv, "stages", _levels)


def title(series: facts.Series, unit: str) -> str:
    levels = _levels(series)
    load, where = plots.highest(series, levels, unit)
    cells = {name: cell for name, cell in levels[load].items() if cell.busy is not None}
    if not cells:
        return f"{where}, the stages of the pipeline and their queues"
    name = max(cells, key=lambda name: cells[name].busy or 0.0)
    return f"{where}, the workers of {name} are at work for {percent(cells[name].busy)} of the time"


def note(series: facts.Series) -> str:
    meaning = (
        "Each bar is the time of all workers of a stage; before it the queue, with the number of operations in it."
    )
    levels = _levels(series)
    most = max(len(cells) for cells in levels.values())
    return meaning + (f" The first {MOST_STAGES} of {most} stages are shown." if most > MOST_STAGES else "")


def chart(inv: Investigation, series: facts.Series, size: Size) -> Plot | None:
    levels = _levels(series)
    shown, most = sorted(levels), MOST_LEVELS[size.width >= TERSE_BELOW]
    if len(shown) > most:
        shown = [shown[round(number * (len(shown) - 1) / (most - 1))] for number in range(most)]
    names = list(dict.fromkeys(name for cells in levels.values() for name in cells))[:MOST_STAGES]
    if not names:
        return None
    drawing = _Drawing(Size(size.width, HEAD_PX + ROW_PX * len(names)), len(shown), len(names))
    for column, level in enumerate(shown):
        drawing.head(column, words.load(level, inv.study.load_unit) if len(shown) < 2 else rounding.plain(level))
        for row, name in enumerate(names):
            if name in levels[level]:
                drawing.cell(column, row, levels[level][name])
    for row, name in enumerate(names):
        drawing.name(row, name)
    drawing.legend(inv.study.load_unit)
    return drawing


def table(inv: Investigation) -> list[dict[str, object]]:
    return [
        {"state": state.role, "level": level, "stage": name, **{field: getattr(cell, field) for field in FIELDS}}
        for _, state in rounds(inv)
        for level, cells in sorted(_levels(state).items())
        for name, cell in cells.items()
    ]


def summary(inv: Investigation) -> str:
    curve = facts.curve_of_workers(inv)
    if curve is None or not rounds(inv):
        return ""
    unit = inv.study.load_unit
    if curve.enough is None:
        last = words.load(max(point.load for point in curve.points), unit)
        return f"It was not seen that more {unit} stop helping, up to {last}.{_gives(curve.more, unit)}"
    at = curve.enough
    where = words.load(at.load, unit)
    if at.low != at.high:
        where += f" ({rounding.plain(at.low)} to {rounding.plain(at.high)})"
    said = f"More {unit} stopped helping at {where}: no higher level gave {100 * WORTH:.0f} % more."
    return said + _gives(curve.more, unit)


def _gives(more: More | None, unit: str) -> str:
    if more is None:
        return ""
    decision = decide(more.low, more.high)
    proven = "" if decision == "better" else f": {verdict_words.DECISIONS[decision]}"
    best, base, ratio = words.load(more.load, unit), rounding.plain(more.base), verdict_words.ratio(more)
    return f" {best} give {ratio} times what {base} gives ({verdict_words.interval(more)}){proven}."


def sentences(inv: Investigation) -> list[str]:
    states = rounds(inv)
    if not states:
        return []
    levels = _levels(states[0][1])
    load = max(levels)
    lines = [f"- {name}: {_said(cell)}" for name, cell in list(levels[load].items())[:MOST_STAGES]]
    return [summary(inv), f"At {words.load(load, inv.study.load_unit)}, of the time of their workers:", *lines]


def _said(cell: Stage) -> str:
    parts = [
        f"{percent(share)} {what}"
        for share, what in ((cell.busy, "at work"), (cell.blocked, "blocked"), (cell.idle, "idle"))
        if share is not None
    ]
    if not parts and cell.at_work is not None:
        parts = [f"{rounding.plain(cell.at_work)} workers at work"]
    queue = "" if cell.room is None else f" ({percent(cell.room)} of its room)"
    parts += [] if cell.waiting is None else [f"{rounding.plain(cell.waiting)} waiting before it{queue}"]
    parts += [] if cell.ms_per_entry is None else [f"{rounding.plain(cell.ms_per_entry)} ms per entry"]
    return ", ".join(parts) or "nothing of its workers is known"


class _Drawing(Canvas):
    def __init__(self, size: Size, columns: int, rows: int) -> None:
        self._left, self._head = -NAME_PX / (size.width - NAME_PX) * columns, HEAD_PX / ROW_PX
        super().__init__(size, (self._left, float(columns)), (-self._head, float(rows)))
        self._wide, self._columns = size.width >= TERSE_BELOW, columns

    def head(self, column: int, label: str) -> None:
        self._write(column + GAP + BAR / 2, -0.22, label, INK, align="center")

    def name(self, row: int, name: str) -> None:
        short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        self._write(self._left, row + 0.5, short, INK, fontWeight=600)

    def cell(self, column: int, row: int, cell: Stage) -> None:
        left, top, bottom = column + GAP, row + 0.14, row + 0.7
        at = left
        parts = ((cell.busy, BUSY, "white"), (cell.blocked, BLOCKED, "white"), (cell.idle, IDLE, INK))
        for share, colour, ink in parts:
            if not share:
                continue
            right = min(left + BAR, at + share * BAR)
            self.box(at, right, top, bottom, colour)
            if share >= SAID_FROM:
                said = percent(share) if self._wide and self._columns <= MOST_LEVELS[True] else f"{100 * share:.0f}"
                self._write((at + right) / 2, (top + bottom) / 2, said, ink, align="center", fontSize=11)
            at = right
        if cell.busy is None and cell.at_work is not None:
            self._write(left, (top + bottom) / 2, f"{rounding.plain(cell.at_work)} at work", INK)
        self._queue(column, top, bottom, cell)

    def _queue(self, column: int, top: float, bottom: float, cell: Stage) -> None:
        if cell.waiting is None:
            return
        left, right = column + 0.03, column + GAP - 0.03
        if cell.room is not None:
            self.box(left, right, top, bottom, "#F3F4F6")
            self.box(left, right, bottom - min(1.0, cell.room) * (bottom - top), bottom, QUEUE)
        if cell.waiting >= 0.5:
            waiting = f"{rounding.exact(round(cell.waiting))}{' waiting' if self._wide else ''}"
            self._write(left, bottom + 0.14, waiting, QUIET, fontSize=10)

    def legend(self, unit: str) -> None:
        at = self._left
        step = (self._columns - self._left) / (6.4 if self._wide else 2.05)
        for number, (label, colour) in enumerate(LEGEND):
            line = 0.0 if self._wide else 0.26 * (number // 2)
            left = at + step * (1.25 * number if self._wide else number % 2)
            top = -self._head + 0.02 + line
            self.box(left, left + step * 0.09, top, top + 0.18, colour)
            shown = label if self._wide else label.partition(",")[0]
            self._write(left + step * 0.13, top + 0.1, shown, QUIET, fontSize=11)
        self._write(self._left, -0.22, f"{unit}:", QUIET, fontSize=11)

    def _write(self, x: float, y: float, label: str, colour: str, **look: object) -> None:
        self.label(x, y, label, colour, baseline="middle", **look)


def _levels(series: facts.Series) -> dict[float, dict[str, Stage]]:
    by_level: dict[float, dict[str, Stage]] = {}
    for level, rows in facts.by_level(series.round).items():
        means = facts.means(row for row in rows if any(name.startswith(STAGES) for name in row))
        if cells := {stage.name: stage for stage in stages_in(means)}:
            by_level[level] = cells
    return by_level
