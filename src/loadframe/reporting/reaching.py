"""What a gain is worth wherever the levels end, in words: peak against peak, capacity, the bend; and how that goes
together with the ratio that was proved at some loads."""

from __future__ import annotations

from dataclasses import replace

from loadframe.analysis import reach as reaching
from loadframe.analysis.reach import Reach
from loadframe.diagnosis.bend import bend_of
from loadframe.model import Curve, Investigation, LoadInterval, Round, Verdict
from loadframe.reporting import rounding, words

APART = 1.5
"""From this factor on two ratios of one change read like a contradiction."""


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


def sentence(found: Reach, unit: str) -> str:
    """ "a peak 1.9 times as high (...); it bends at about 64 workers instead of about 16 workers"."""
    growing = ", and it still grows" if found.rising else ""
    capacity = _shift("capacity within the objective", found.capacity, unit)
    parts = [f"{height(found, unit)}{growing}", capacity, knee(found, unit)]
    return "; ".join(part for part in parts if part)


def height(found: Reach, unit: str) -> str:
    """ "a peak 1.9 times as high (95 % interval 1.7 to 2.1; 430/s at 1 worker before, 817/s at 2 workers after)"; "no
    proven difference of the peaks, 1.02 times (95 % interval 0.97 to 1.07; ...)"."""
    told = f"({_bare(found)}; {_peaks(found, unit)})"
    if not rounding.has_width(found.low, found.high):
        return f"a peak {rounding.plain(found.ratio)} times as high {told}"
    ratio = rounding.with_interval(found.ratio, found.low, found.high)[0]
    if found.low <= 1 <= found.high:
        return f"no proven difference of the peaks, {ratio} times {told}"
    return f"a peak {led_ratio(found)} times as high {told}"


def led_ratio(found: Reach) -> str:
    """The ratio of the peaks; "at least 88", the lower end, where the interval is too wide for one."""
    if not rounding.has_width(found.low, found.high):
        return rounding.plain(found.ratio)
    ratio, low, _ = rounding.with_interval(found.ratio, found.low, found.high)
    return f"at least {low}" if found.low > 1 and rounding.is_vague(found.low, found.high) else ratio


def proven(found: Reach) -> bool:
    """Whether the two peaks differ beyond their intervals; a ratio without an interval is taken as it is."""
    return not rounding.has_width(found.low, found.high) or not found.low <= 1 <= found.high


def interval(found: Reach) -> str:
    """ "95 % interval 1.7 to 2.1"; "no proven difference: 95 % interval 0.97 to 1.07"."""
    return _bare(found) if proven(found) else f"no proven difference: {_bare(found)}"


def _bare(found: Reach) -> str:
    if not rounding.has_width(found.low, found.high):
        return "no interval"
    _, low, high = rounding.with_interval(found.ratio, found.low, found.high)
    return f"95 % interval {low} to {high}"


def _peaks(found: Reach, unit: str) -> str:
    before, after = (f"{rounding.plain(end.throughput)}/s" for end in (found.before, found.after))
    if found.before.load == found.after.load:
        return f"{before} before, {after} after, at {words.load(found.after.load, unit)}"
    at = [words.load(end.load, unit) for end in (found.before, found.after)]
    return f"{before} at {at[0]} before, {after} at {at[1]} after"


def difference(inv: Investigation, found: Reach, gain: Verdict) -> str:
    """Why the ratio of the peaks and the proof's are far apart: at which of the proof's loads the curves are. "" where
    they are not, or the curves have none of these loads."""
    if 1 / APART < gain.ratio / found.ratio < APART:
        return ""
    before, after = (_by_load(one.curve) for one in (inv.rounds[0], inv.rounds[-1]))
    loads = [load for load in sorted(gain.levels) if before.get(load, 0.0) > 0 and after.get(load, 0.0) > 0]
    if not loads:
        return ""
    ratios = {load: after[load] / before[load] for load in loads}
    far = (max if gain.ratio > found.ratio else min)(loads, key=lambda load: ratios[load])
    went = f"from {rounding.plain(before[far])}/s to {rounding.plain(after[far])}/s"
    at = words.load(far, words.axis_unit(inv))
    return f"the ratios compare different loads: a peak is a state's best; at {at} throughput went {went}"


def _by_load(curve: Curve) -> dict[float, float]:
    return {point.load: point.throughput for point in curve.points}


def knee(found: Reach, unit: str) -> str:
    """Where the curve bends before and after; "" where it does neither."""
    return _shift("it bends", found.knee, unit, "at ")


def _shift(what: str, ends: tuple[LoadInterval | None, LoadInterval | None], unit: str, at: str = "") -> str:
    before, after = ends
    if before is None and after is None:
        return ""
    if after is None:
        return f"{what} nowhere within the tested levels; before, {at}{_place(before, unit)}" if at else ""
    instead = f" instead of {at}{_place(before, unit)}" if before is not None else ""
    return f"{what} {at}{_place(after, unit)}{instead}"


def _place(interval: LoadInterval | None, unit: str) -> str:
    return words.about_load(interval, unit) if interval is not None else ""
