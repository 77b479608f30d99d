"""What a gain is worth wherever the levels end, in words: peak against peak, capacity, the bend."""

from __future__ import annotations

from loadframe.analysis import reach as reaching
from loadframe.analysis.reach import Reach
from loadframe.model import Investigation, LoadInterval
from loadframe.reporting import rounding, words


def of(inv: Investigation) -> Reach | None:
    """From the first curve to the last one; None where nothing was gained, or the last state was not measured."""
    if inv.gain is None or len(inv.rounds) < 2:
        return None
    return reaching.reach(inv.rounds[0].curve, inv.rounds[-1].curve)


def sentence(found: Reach, unit: str) -> str:
    """ "a peak 1.9 times as high (1.7 to 2.1); it bends at about 64 workers instead of about 16 workers"."""
    growing = ", and it still grows" if found.rising else ""
    capacity = _shift("capacity within the objective", found.capacity, unit)
    parts = [f"{height(found)}{growing}", capacity, knee(found, unit)]
    return "; ".join(part for part in parts if part)


def height(found: Reach) -> str:
    """ "a peak 1.9 times as high (1.7 to 2.1)"; "no proven difference of the peaks: 1.02 times (0.97 to 1.07)"."""
    if not rounding.has_width(found.low, found.high):
        return f"a peak {rounding.plain(found.ratio)} times as high (no interval)"
    ratio, low, high = rounding.with_interval(found.ratio, found.low, found.high)
    if found.low <= 1 <= found.high:
        return f"no proven difference of the peaks, {ratio} times ({low} to {high})"
    return f"a peak {ratio} times as high ({low} to {high})"


def knee(found: Reach, unit: str) -> str:
    """Where the curve bends before and after; "" where it does neither."""
    return _shift("it bends", found.knee, unit, "at ")


def _shift(what: str, ends: tuple[LoadInterval | None, LoadInterval | None], unit: str, at: str = "") -> str:
    before, after = ends
    if before is None and after is None:
        return ""
    if after is None:
        return f"{what} nowhere within the levels instead of {at}{_place(before, unit)}" if at else ""
    instead = f" instead of {at}{_place(before, unit)}" if before is not None else ""
    return f"{what} {at}{_place(after, unit)}{instead}"


def _place(interval: LoadInterval | None, unit: str) -> str:
    return words.about_load(interval, unit) if interval is not None else ""
