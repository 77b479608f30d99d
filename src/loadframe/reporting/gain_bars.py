"""The ratio of each change over the noise band (A/A: what equal states differ by), and changes as a waterfall."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadframe.diagnosis.conclusion import kept_trials
from loadframe.model import Investigation, Ladder, LadderStep, Verdict
from loadframe.reporting import change_words, rounding, vega, verdict_words, words
from loadframe.reporting.vega import AFTER, BETWEEN, CHARACTER_PX, INK, QUIET, Canvas, Plot, Size

NOISE = "#D3DAE1"
LINE_PX, LANE_PX, GAP_PX, FOOT_PX, EDGE_PX = 16, 18, 14, 34, 10
FURTHEST = 10.0
"""An interval is cut at this factor around its ratio: that of two blocks would flatten all others."""
ROOM = 3.0
Row = dict[str, Any]
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Gain:
    name: str
    verdict: Verdict
    kept: bool | None

    @property
    def clear(self) -> bool | None:
        """Whether its whole interval lies outside the noise; None where none is known."""
        if self.verdict.floor is None:
            return None
        low, high = self.verdict.floor
        return self.verdict.low > high or self.verdict.high < low


def gains(inv: Investigation) -> list[Gain]:
    tried = [
        Gain(words.heading(trial.remedy.title), trial.reported, trial.kept)
        for round_ in inv.rounds
        for trial in round_.tried
    ]
    if inv.gain is not None and len(kept_trials(inv.rounds)) > 1:
        tried.append(Gain("All kept changes together", inv.gain, None))
    return [gain for gain in tried if gain.verdict.has_ratio]


def title(inv: Investigation) -> str:
    tried = [gain for gain in gains(inv) if gain.kept is not None]
    if len(tried) == 1:
        verdict, clear = tried[0].verdict, tried[0].clear
        is_clear = {True: "is clear of", False: "is within reach of", None: "against"}[clear]
        at = verdict_words.verdict_levels(verdict, inv.study.load_unit)
        return f"The gain {at}, {verdict_words.ratio(verdict)} times, {is_clear} the noise of its own blocks"
    if all(gain.clear is None for gain in tried):
        return f"What each of the {len(tried)} changes gives"
    count = sum(gain.clear is True for gain in tried)
    these = "each is" if count == len(tried) else "1 is" if count == 1 else f"{count} are"
    return f"{len(tried)} changes were tried; {these} clear of the noise of its own blocks"


def note(inv: Investigation) -> str:
    verdicts = [gain.verdict for gain in gains(inv)]
    meaning = "Dot: the ratio of the throughputs, with its interval. "
    if any(verdict.floor is not None for verdict in verdicts):
        meaning += "Grey band: noise floor, each state against itself, block against block, in the same blocks. "
    cut = any(_reach(verdict) != (verdict.low, verdict.high) for verdict in verdicts)
    meaning += "An arrow: the interval goes on." if cut else "Dashed: no difference."
    return f"{meaning} {change_words.parts_sentence(inv)}".rstrip()


def _gain_words(gain: Gain, unit: str) -> str:
    floor = gain.verdict.floor
    ratio = f"{verdict_words.ratio_words(gain.verdict)} {verdict_words.verdict_levels(gain.verdict, unit)}".rstrip()
    noise = f"noise {' to '.join(map(rounding.plain, floor))}" if floor else "noise not known"
    return "; ".join(filter(None, (ratio, verdict_words.FATES[gain.kept], noise)))


def chart(inv: Investigation, size: Size) -> Plot | None:
    drawn = gains(inv)
    if not drawn:
        return None
    across = int(size.width / CHARACTER_PX)
    said = [_gain_words(gain, inv.study.load_unit) for gain in drawn]
    names = [textwrap.wrap(gain.name, across) for gain in drawn]
    heads = list(zip(names, (textwrap.wrap(sentence, across) for sentence in said), strict=True))
    height = sum(LINE_PX * (len(name) + len(lines)) + LANE_PX + GAP_PX for name, lines in heads) + FOOT_PX
    drawing = _Drawing(Size(size.width, height), drawn)
    top = 0.0
    for gain, (name, lines) in zip(drawn, heads, strict=True):
        top = drawing.row(top, gain, name, lines)
    drawing.scale(top)
    drawing.description = " ".join(f"{gain.name}: {sentence}." for gain, sentence in zip(drawn, said, strict=True))
    return drawing


def _reach(verdict: Verdict) -> tuple[float, float]:
    return max(verdict.low, verdict.ratio / FURTHEST), min(verdict.high, verdict.ratio * FURTHEST)


class _Drawing(Canvas):
    def __init__(self, size: Size, gains: Sequence[Gain]) -> None:
        super().__init__(size)
        ends = [end for gain in gains for end in (*_reach(gain.verdict), *(gain.verdict.floor or ()))]
        ends = [1.0, *(end for end in ends if 0 < end < math.inf)]
        self._low, self._high = math.log(min(ends) / 1.05), math.log(max(ends) * 1.05)
        self._width = size.width - 2 * EDGE_PX

    def _at(self, ratio: float) -> float:
        share = (math.log(ratio) - self._low) / (self._high - self._low)
        return EDGE_PX + self._width * min(max(share, 0.0), 1.0)

    def _line(self, ends: tuple[float, float, float, float], colour: str, width: int = 1, **look: Any) -> None:
        self.box(*ends, colour, kind="rule", **look, strokeWidth=width)

    def row(self, top: float, gain: Gain, name: Sequence[str], lines: Sequence[str]) -> float:
        self.heading(0, top, LINE_PX, name, [(line, QUIET) for line in lines])
        top += LINE_PX * (len(name) + len(lines))
        middle, colour = top + LANE_PX / 2, BETWEEN if gain.kept is False else INK if gain.kept is None else AFTER
        if gain.verdict.floor is not None:
            low, high = (self._at(end) for end in gain.verdict.floor)
            self.box(low, max(high, low + 2), top + 1, top + LANE_PX - 1, NOISE)
        self._line((self._at(1.0), self._at(1.0), top - 1, top + LANE_PX + 1), INK, strokeDash=[3, 3])
        low, high = (self._at(end) for end in _reach(gain.verdict))
        self._line((low, high, middle, middle), colour, 3)
        for end, cut, arrow in ((low, gain.verdict.low, "<"), (high, gain.verdict.high, ">")):
            if cut not in _reach(gain.verdict):
                self.label(end, middle - 7, arrow, colour, align="center", fontWeight=700)
        dot = {"x": self._at(gain.verdict.ratio), "y": middle}
        self.add("point", [dot], self.place, color=colour, filled=True, size=90, opacity=1)
        return top + LANE_PX + GAP_PX

    def scale(self, top: float) -> None:
        self._line((EDGE_PX, EDGE_PX + self._width, top, top), QUIET)
        previous = -math.inf
        for tick in TICKS:
            place = self._at(tick)
            if self._low <= math.log(tick) <= self._high and place - previous >= 34:
                self._line((place, place, top, top + 4), QUIET)
                self.label(place, top + 6, rounding.plain(tick), QUIET, align="center", fontSize=11)
                previous = place
        self.label(EDGE_PX, top + 20, "times the throughput before (log scale)", QUIET, fontSize=11)


def ladder(inv: Investigation, size: Size) -> Plot | None:
    """A logarithmic waterfall: equal lengths are equal factors. None for fewer than two."""
    rows: list[Row] = []
    reached = 1.0
    for step in inv.ladder:
        if not (math.isfinite(step.ratio) and step.ratio > 0):
            return None
        ends = {"from": reached, "to": reached * step.ratio}
        rows.append({"change": step.change, **ends, "label": _step_words(step, step.share), "kind": "step"})
        reached *= step.ratio
    if len(rows) < 2:
        return None
    label = f"{verdict_words.ratio(inv.gain) if inv.gain else rounding.plain(reached)} times"
    whole = inv.gain.ratio if inv.gain is not None else reached
    rows.append({"change": "together", "from": 1.0, "to": whole, "label": label, "kind": "total"})
    return _waterfall(rows, size)


def _step_words(step: Verdict | LadderStep, share: float | None) -> str:
    return ", ".join(filter(None, (f"{verdict_words.ratio(step)} times", rounding.percent(share))))


def waterfall(ladder: Ladder, size: Size) -> Plot | None:
    """Every measured change, on top of the kept ones before it."""
    rows: list[Row] = []
    reached = 1.0
    for rung in ladder.rungs:
        if (verdict := rung.reported) is None or not verdict.has_ratio:
            continue
        kind, reverted = ("step", "") if rung.kept else ("reverted", ", reverted")
        label = f"{_step_words(verdict, rung.share if rung.kept else None)}{reverted}"
        rows.append({"change": rung.change, "label": label, "kind": kind, **_bar(verdict, reached)})
        reached *= verdict.ratio if rung.kept else 1.0
    if not rows:
        return None
    if ladder.total is not None and (total := ladder.total.reported).has_ratio:
        rows.append({"change": "together", "label": _step_words(total, None), "kind": "total", **_bar(total, 1.0)})
    return _waterfall(rows, size)


def _bar(verdict: Verdict, reached: float) -> Row:
    low, high = _reach(verdict)
    return {"from": reached, "to": reached * verdict.ratio, "low": reached * low, "high": reached * high}


def _waterfall(rows: list[Row], size: Size) -> Plot:
    for row in rows:
        row["right"] = max(row["from"], row["to"], row.get("high", 0.0))
    lowest = min(min(1.0, row["to"], row.get("low", 1.0)) for row in rows)
    highest = max(row["right"] for row in rows)
    scale = {"type": "log", "domain": [lowest, highest * ROOM], "nice": False}
    marks = vega.log_ticks(lowest, highest * ROOM)
    ticks: Row = {"values": marks} if marks else {"tickCount": 5}
    ticks["format"] = vega.number_format(highest)
    x = vega.quantity("from", "times the throughput before (log scale)", scale, **ticks)
    axis = {"labelLimit": 230, "ticks": False, "domain": False}
    y = {**vega.text("change"), "title": None, "sort": None, "axis": axis}
    kinds = {"domain": ["step", "total", "reverted"], "range": [AFTER, INK, BETWEEN]}
    colour = {**vega.text("kind"), "legend": None, "scale": kinds}
    plot = Plot(Size(size.width - 80, 36 * len(rows)), x)
    plot.left += vega.SLACK * max(len(row["change"]) for row in rows)
    room = plot.size.width * math.log(ROOM) / math.log(highest * ROOM / lowest)
    plot.right += max(0.0, max(CHARACTER_PX * len(row["label"]) for row in rows if row["right"] == highest) - room)
    plot.description = " ".join(f"{row['change']}: {row['label']}." for row in rows)
    plot.add("bar", rows, {"x": x, "x2": {"field": "to"}, "y": y, "color": colour}, height=20)
    if any("low" in row for row in rows):
        low = {"field": "low", "type": "quantitative", "scale": scale}
        plot.add("rule", rows, {"x": low, "x2": {"field": "high"}, "y": y}, color=INK, strokeWidth=1.2)
    right = {"field": "right", "type": "quantitative", "scale": scale}
    plot.add("text", rows, {"x": right, "y": y, "text": vega.text()}, align="left", dx=6, color=INK)
    return plot
