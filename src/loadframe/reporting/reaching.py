"""What a gain is worth wherever the levels end, in words: peak against peak, and the bend."""

from __future__ import annotations

from dataclasses import replace

from loadframe.analysis import divergence as reaching
from loadframe.analysis.divergence import Reach
from loadframe.diagnosis.windows import bend_of
from loadframe.model import Investigation, LoadInterval, Round
from loadframe.reporting import rounding, verdict_words, words


def of(inv: Investigation) -> Reach | None:
    """From the first curve to the last one; None where nothing was gained, or the last state was not measured."""
    if inv.gain is None or len(inv.rounds) < 2:
        return None
    first, last = inv.rounds[0], inv.rounds[-1]
    found = reaching.reach(first.curve, last.curve)
    return None if found is None else replace(found, knee=(bend(first), bend(last)))


def bend(one: Round) -> LoadInterval | None:
    """Where a state bends: at the load of the limit that explains it, where one does."""
    explained = bend_of(one)
    return one.curve.knee if explained is None else explained.load


def height(found: Reach, unit: str) -> str:
    """Of the peak: "1.9 times as high (95 % interval 1.7 to 2.1; 430/s at 1 worker before, 817/s at 2 workers
    after)"."""
    told = f"({verdict_words.interval(found)}; {_peaks(found, unit)})"
    if rounding.has_width(found.low, found.high) and found.low <= 1 <= found.high:
        return f"{verdict_words.NO_DIFFERENCE} of the peaks, {verdict_words.ratio(found)} times {told}"
    return f"{verdict_words.led_ratio(found)} times as high {told}"


def _peaks(found: Reach, unit: str) -> str:
    before, after = (f"{rounding.plain(end.throughput)}/s" for end in (found.before, found.after))
    if found.before.load == found.after.load:
        return f"{before} before, {after} after, at {words.load(found.after.load, unit)}"
    at = [words.load(end.load, unit) for end in (found.before, found.after)]
    return f"{before} at {at[0]} before, {after} at {at[1]} after"


def knee(found: Reach, unit: str) -> str:
    """Where the curve bends before and after; "" where it does neither."""
    before, after = found.knee
    if before is None and after is None:
        return ""
    if after is None:
        return f"it bends nowhere within the tested levels; before, at {_place(before, unit)}"
    instead = f" instead of at {_place(before, unit)}" if before is not None else ""
    return f"it bends at {_place(after, unit)}{instead}"


def _place(interval: LoadInterval | None, unit: str) -> str:
    return words.about_load(interval, unit) if interval is not None else ""
