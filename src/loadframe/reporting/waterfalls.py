"""What each change gives, as a waterfall on a logarithmic scale: equal lengths are equal factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from loadframe.model import Investigation, Ladder, Verdict
from loadframe.reporting import rounding, vega, verdict_words
from loadframe.reporting.vega import AFTER, BETWEEN, INK, Size

if TYPE_CHECKING:
    from loadframe.reporting.vega import Drawing

Row = dict[str, Any]

WIDEST = 10.0
"""An interval of a ladder's bar is drawn up to this many times the bar: one of two blocks would flatten all others."""


def ladder(inv: Investigation, size: Size) -> Drawing | None:
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
    rows.append({"change": "together", "from": 1.0, "to": reached, "label": label, "kind": "total"})
    return _waterfall(rows, size)


def waterfall(found: Ladder, size: Size) -> Drawing | None:
    """Every change that was measured, on top of the kept ones before it; a change that was reverted is quiet, and the
    next one begins where it began. Thin lines: 95 % intervals. None for none."""
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


def _waterfall(rows: list[Row], size: Size) -> Drawing:
    import altair as alt

    for row in rows:
        row["right"] = max(row["from"], row["to"], row.get("high", 0.0))
    lowest = min(min(1.0, row["to"], row.get("low", 1.0)) for row in rows)
    highest = max(row["right"] for row in rows)
    scale = alt.Scale(type="log", domain=[lowest, highest * 3], nice=False)
    ticks = alt.Axis(tickCount=5, format=vega.number_format(highest))
    x = alt.X("from:Q", title="times the throughput before (log scale)", scale=scale, axis=ticks)
    y = alt.Y("change:N", title=None, sort=None, axis=alt.Axis(labelLimit=230, ticks=False, domain=False))
    kinds = alt.Scale(domain=["step", "total", "reverted"], range=[AFTER, INK, BETWEEN])
    colour = alt.Color("kind:N", legend=None, scale=kinds)
    base = vega.data(rows).encode(y=y)
    layers = [base.mark_bar(height=20).encode(x=x, x2=alt.X2("to:Q"), color=colour)]
    if any("low" in row for row in rows):
        rule = base.mark_rule(color=INK, strokeWidth=1.2).encode(x=alt.X("low:Q", scale=scale), x2=alt.X2("high:Q"))
        layers.append(rule)
    text = base.mark_text(align="left", dx=6, color=INK)
    layers.append(text.encode(x=alt.X("right:Q", scale=scale), text=alt.Text("label:N")))
    return alt.layer(*layers).properties(width=size.width - 80, height=36 * len(rows))
