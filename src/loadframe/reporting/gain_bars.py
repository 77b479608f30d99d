"""The ratio of each change over the noise band (A/A: what equal states differ by), and all changes as a waterfall."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadframe.diagnosis.conclusion import kept_trials
from loadframe.model import Investigation, Ladder, Verdict
from loadframe.reporting import change_words, rounding, vega, verdict_words, words
from loadframe.reporting.vega import AFTER, BETWEEN, CHARACTER_PX, INK, QUIET, Canvas, Plot, Size

NOISE = "#D3DAE1"
LINE_PX, LANE_PX, GAP_PX, FOOT_PX, EDGE_PX = 16, 18, 14, 34, 10
FURTHEST = 10.0
"""An interval is cut at this factor around its ratio: that of two blocks would flatten all others."""
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Gain:
    name: str
    verdict: Verdict
    kept: bool | None

    @property
    def clear(self) -> bool | None:
        """Whether its whole interval lies outside the noise; None where no noise is known."""
        if self.verdict.floor is None:
            return None
        low, high = self.verdict.floor
        return self.verdict.low > high or self.verdict.high < low


def gains(inv: Investigation) -> list[Gain]:
    tried = [
        Gain(words.sentence(trial.remedy.title)[:-1], trial.reported, trial.kept)
        for round_ in inv.rounds
        for trial in round_.tried
    ]
    if inv.gain is not None and len(kept_trials(inv.rounds)) > 1:
        tried.append(Gain("All kept changes together", inv.gain, None))
    return [gain for gain in tried if gain.verdict.has_ratio]


def title(inv: Investigation) -> str:
    tried = [gain for gain in gains(inv) if gain.kept is not None]
    if len(tried) == 1:
        said = {True: "is clear of", False: "is within reach of", None: "beside"}[tried[0].clear]
        at = verdict_words.verdict_levels(tried[0].verdict, inv.study.load_unit)
        return f"The gain {at}, {verdict_words.ratio(tried[0].verdict)} times, {said} the noise of its own blocks"
    clear = sum(gain.clear is True for gain in tried)
    judged = sum(gain.clear is not None for gain in tried)
    if not judged:
        return f"What each of the {len(tried)} changes gives"
    every = "each is" if clear == judged == len(tried) else "1 is" if clear == 1 else f"{clear} are"
    return f"{len(tried)} changes were tried; {every} clear of the noise of its own blocks"


def note(inv: Investigation) -> str:
    meaning = "Dot: the ratio of the throughputs, with its interval. "
    if any(gain.verdict.floor is not None for gain in gains(inv)):
        meaning += "Grey band: noise floor, each state against itself, block against block, in the same blocks. "
    cut = any(_reach(gain.verdict) != (gain.verdict.low, gain.verdict.high) for gain in gains(inv))
    meaning += "An arrow: the interval goes on." if cut else "Dashed: no difference."
    return f"{meaning} {change_words.parts_sentence(inv)}".rstrip()


def _said(gain: Gain) -> str:
    fate = verdict_words.FATES[gain.kept]
    floor = gain.verdict.floor
    noise = f"noise {rounding.plain(floor[0])} to {rounding.plain(floor[1])}" if floor else "noise not known"
    return "; ".join(part for part in (verdict_words.ratio_words(gain.verdict), fate, noise) if part)


def chart(inv: Investigation, size: Size) -> Plot | None:
    drawn = gains(inv)
    if not drawn:
        return None
    across = int(size.width / CHARACTER_PX)
    heads = [(textwrap.wrap(gain.name, across), textwrap.wrap(_said(gain), across)) for gain in drawn]
    height = sum(LINE_PX * (len(first) + len(second)) + LANE_PX + GAP_PX for first, second in heads) + FOOT_PX
    drawing = _Drawing(Size(size.width, height), drawn)
    top = 0.0
    for gain, (name, said) in zip(drawn, heads, strict=True):
        top = drawing.row(top, gain, name, said)
    drawing.scale(top)
    drawing.description = " ".join(f"{gain.name}: {_said(gain)}." for gain in drawn)
    return drawing


def _reach(verdict: Verdict) -> tuple[float, float]:
    return max(verdict.low, verdict.ratio / FURTHEST), min(verdict.high, verdict.ratio * FURTHEST)


class _Drawing(Canvas):
    def __init__(self, size: Size, gains: Sequence[Gain]) -> None:
        super().__init__(size)
        ends = [1.0]
        for gain in gains:
            ends += [*_reach(gain.verdict), *(gain.verdict.floor or ())]
        ends = [end for end in ends if end > 0 and math.isfinite(end)]
        self._low, self._high = math.log(min(ends) / 1.05), math.log(max(ends) * 1.05)
        self._width = size.width - 2 * EDGE_PX

    def _at(self, ratio: float) -> float:
        share = (math.log(ratio) - self._low) / (self._high - self._low)
        return EDGE_PX + self._width * min(max(share, 0.0), 1.0)

    def row(self, top: float, gain: Gain, name: Sequence[str], said: Sequence[str]) -> float:
        self.heading(0, top, LINE_PX, name, [(line, QUIET) for line in said])
        top += LINE_PX * (len(name) + len(said))
        middle, colour = top + LANE_PX / 2, BETWEEN if gain.kept is False else INK if gain.kept is None else AFTER
        if gain.verdict.floor is not None:
            low, high = (self._at(end) for end in gain.verdict.floor)
            self.box(low, max(high, low + 2), top + 1, top + LANE_PX - 1, NOISE)
        no_difference = self._at(1.0)
        self.box(
            no_difference, no_difference, top - 1, top + LANE_PX + 1, INK, kind="rule", strokeDash=[3, 3], strokeWidth=1
        )
        low, high = (self._at(end) for end in _reach(gain.verdict))
        self.box(low, high, middle, middle, colour, kind="rule", strokeWidth=3)
        for end, cut, arrow in ((low, gain.verdict.low, "<"), (high, gain.verdict.high, ">")):
            if cut not in _reach(gain.verdict):
                self.label(end, middle - 7, arrow, colour, align="center", fontWeight=700)
        dot = {"x": self._at(gain.verdict.ratio), "y": middle}
        self.add("point", [dot], self.place, color=colour, filled=True, size=90, opacity=1)
        return top + LANE_PX + GAP_PX

    def scale(self, top: float) -> None:
        shown, previous = [], -math.inf
        for tick in TICKS:
            if self._low <= math.log(tick) <= self._high and self._at(tick) - previous >= 34:
                shown.append(tick)
                previous = self._at(tick)
        self.box(EDGE_PX, EDGE_PX + self._width, top, top, QUIET, kind="rule", strokeWidth=1)
        for tick in shown:
            self.box(self._at(tick), self._at(tick), top, top + 4, QUIET, kind="rule", strokeWidth=1)
            self.label(self._at(tick), top + 6, rounding.plain(tick), QUIET, align="center", fontSize=11)
        self.label(EDGE_PX, top + 20, "times the throughput before (log scale)", QUIET, fontSize=11)


Row = dict[str, Any]
ROOM = 3.0
WIDEST = 10.0


def ladder(inv: Investigation, size: Size) -> Plot | None:
    """The kept changes as a waterfall, logarithmic: equal lengths are equal factors. None for fewer than two."""
    rows: list[Row] = []
    reached = 1.0
    for step in inv.ladder:
        if not (math.isfinite(step.ratio) and step.ratio > 0):
            return None
        share = f", {rounding.percent(step.share)}" if step.share is not None else ""
        label = f"{verdict_words.ratio(step)} times{share}"
        rows.append(
            {"change": step.change, "from": reached, "to": reached * step.ratio, "label": label, "kind": "step"}
        )
        reached *= step.ratio
    if len(rows) < 2:
        return None
    label = f"{verdict_words.ratio(inv.gain) if inv.gain else rounding.plain(reached)} times"
    whole = inv.gain.ratio if inv.gain is not None else reached
    rows.append({"change": "together", "from": 1.0, "to": whole, "label": label, "kind": "total"})
    return _waterfall(rows, size)


def waterfall(ladder: Ladder, size: Size) -> Plot | None:
    """Every measured change, on top of the kept ones before it. Thin lines: 95 % intervals."""
    rows: list[Row] = []
    reached = 1.0
    for rung in ladder.rungs:
        if (verdict := rung.reported) is None or not verdict.has_ratio:
            continue
        kind = "step" if rung.kept else "reverted"
        share = f", {rounding.percent(rung.share)}" if rung.share is not None else ""
        label = (
            f"{verdict_words.ratio(verdict)} times{share}"
            if rung.kept
            else f"{verdict_words.ratio(verdict)} times, reverted"
        )
        rows.append({"change": rung.change, "label": label, "kind": kind, **_beside(verdict, reached)})
        reached *= verdict.ratio if rung.kept else 1.0
    if not rows:
        return None
    if ladder.total is not None and ladder.total.reported.has_ratio:
        label = f"{verdict_words.ratio(ladder.total.reported)} times"
        rows.append({"change": "together", "label": label, "kind": "total", **_beside(ladder.total.reported, 1.0)})
    return _waterfall(rows, size)


def _beside(verdict: Verdict, reached: float) -> Row:
    low, high = max(verdict.low, verdict.ratio / WIDEST), min(verdict.high, verdict.ratio * WIDEST)
    return {"from": reached, "to": reached * verdict.ratio, "low": reached * low, "high": reached * high}


def _waterfall(rows: list[Row], size: Size) -> Plot:
    for row in rows:
        row["right"] = max(row["from"], row["to"], row.get("high", 0.0))
    lowest = min(min(1.0, row["to"], row.get("low", 1.0)) for row in rows)
    highest = max(row["right"] for row in rows)
    scale = {"type": "log", "domain": [lowest, highest * ROOM], "nice": False}
    marks = vega.log_ticks(lowest, highest * ROOM)
    ticks: Row = {"values": marks} if marks else {"tickCount": 5}
    x = vega.quantity(
        "from", "times the throughput before (log scale)", scale, **ticks, format=vega.number_format(highest)
    )
    y = {**vega.text("change"), "title": None, "sort": None}
    y["axis"] = {"labelLimit": 230, "ticks": False, "domain": False}
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
