"""The picture of a search for the capacity: every trial with its latency, and between which levels the answer is."""

from __future__ import annotations

import math

from loadframe.model import Capacity, CapacityTrial
from loadframe.reporting import words
from loadframe.reporting.vega import AFTER, BEFORE, INK, LoadAxis, Plot, Size, ValueAxis

LOGARITHMIC = 8.0
"""Latencies that are further apart than this factor are drawn on a logarithmic scale."""


def unit(found: Capacity) -> str:
    """Of the load."""
    return found.axis_unit or found.axis.replace("_", " ")


def title(found: Capacity) -> str:
    """What the picture shows, as a fact."""
    met, missed = (sum(trial.met is wanted for trial in _drawn(found)) for wanted in (True, False))
    return f"{met} trial{'' if met == 1 else 's'} met the objective, {missed} missed it"


def note(found: Capacity) -> str:
    """How to read it."""
    between = "" if None in (found.low, found.high) else " Shaded: between the level shown to meet and that to miss."
    return f"A dot is a trial: blue met the objective, orange missed it.{between}"


def chart(found: Capacity, size: Size) -> Plot | None:
    """The p95 latency of each trial over its load, with the latency that is asked for; None where there is no trial."""
    drawn = _drawn(found)
    if not drawn:
        return None
    limit = found.objective.latency_p95_ms
    values = [trial.latency_p95_ms for trial in drawn] + ([limit] if limit is not None else [])
    logarithmic = max(values) > LOGARITHMIC * min(values)
    low, high = (min(values) / 1.3, max(values) * 1.3) if logarithmic else (0.0, max(values) * 1.15)
    levels = tuple(sorted({trial.load for trial in drawn}))
    axis = ValueAxis("p95 latency in ms", low, high, logarithmic)
    plot = Plot(size, LoadAxis(unit(found), levels).channel(), axis)
    if found.low is not None and found.high is not None:
        plot.shade(found.low, found.high, AFTER, 0.12)
    for met, colour in ((True, AFTER), (False, BEFORE)):
        of = [{"load": one.load, "value": one.latency_p95_ms} for one in drawn if one.met is met]
        if of:
            plot.draw("point", of, colour, filled=True, size=52, opacity=0.75)
    if limit is not None:
        plot.ceiling(limit, f"objective: {limit:g} ms", INK, levels[0])
    said = [(one.load, f"{words.milliseconds(one.latency_p95_ms)} {'met' if one.met else 'missed'}") for one in drawn]
    by_level = [
        f"{words.load(level, unit(found))}: {', '.join(text for load, text in said if load == level)}"
        for level in levels
    ]
    plot.told = f"p95 latency of each trial. {'. '.join(by_level)}."
    return plot


def _drawn(found: Capacity) -> list[CapacityTrial]:
    return [one for one in found.trials if one.counted and 0 < one.latency_p95_ms < math.inf]
