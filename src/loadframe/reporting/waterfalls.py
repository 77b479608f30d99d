"""What each change gives, as a waterfall on a logarithmic scale: equal lengths are equal factors."""

from __future__ import annotations

import math
from typing import Any

from loadframe.model import Investigation, Ladder, Verdict
from loadframe.reporting import rounding, vega, verdict_words
from loadframe.reporting.vega import AFTER, BETWEEN, INK, Plot, Size

Row = dict[str, Any]

ROOM = 3.0
"""Times the longest bar: room for its label; what the label needs more is left at the right."""
CHARACTER_PX = 6.9
"""Of 12-pixel type, taken wide: a browser may lack the font that the engine measures."""
WIDEST = 10.0
"""An interval of a ladder's bar is drawn up to this many times the bar: one of two blocks would flatten all others."""


def ladder(inv: Investigation, size: Size) -> Plot | None:
    """The kept changes as a waterfall on a logarithmic scale, where equal lengths are equal factors; None for one."""
    rows: list[Row] = []
    reached = 1.0
    for step in inv.ladder:
        if not (math.isfinite(step.ratio) and step.ratio > 0):
            return None
        label = f"{verdict_words.ratio(step)} times, {rounding.percent(step.share)}"
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


def waterfall(found: Ladder, size: Size) -> Plot | None:
    """Every change that was measured, on top of the kept ones before it; after one that was reverted the next begins
    where it began. Thin lines: 95 % intervals."""
    rows: list[Row] = []
    reached = 1.0
    for rung in found.rungs:
        if (verdict := rung.verdict) is None:
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
    if found.total is not None:
        label = f"{verdict_words.ratio(found.total)} times"
        rows.append({"change": "together", "label": label, "kind": "total", **_beside(found.total, 1.0)})
    return _waterfall(rows, size)


def _beside(verdict: Verdict, reached: float) -> Row:
    """Where a bar begins and ends, and its interval: one that reaches further than WIDEST either way is cut there."""
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
    plot.told = " ".join(f"{row['change']}: {row['label']}." for row in rows)
    plot.add("bar", rows, {"x": x, "x2": {"field": "to"}, "y": y, "color": colour}, height=20)
    if any("low" in row for row in rows):
        low = {"field": "low", "type": "quantitative", "scale": scale}
        plot.add("rule", rows, {"x": low, "x2": {"field": "high"}, "y": y}, color=INK, strokeWidth=1.2)
    right = {"field": "right", "type": "quantitative", "scale": scale}
    plot.add("text", rows, {"x": right, "y": y, "text": vega.text()}, align="left", dx=6, color=INK)
    return plot
