"""What a change is worth: at each load; and without choosing one, peak against peak, capacity, and the bend.

The ratio at a load depends on which load: past a collapse it grows without bound with the levels that were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadframe.analysis.comparison import exp_in_range
from loadframe.model import Curve, CurvePoint, LoadGain, LoadInterval, Peak


@dataclass(frozen=True, slots=True)
class Reach:
    """ratio: the peak after over the one before, with its interval (95 %). rising: whether throughput still grows at
    the highest level measured after the change, so that the peak is higher still. knee, capacity: before and after;
    None where a curve has none."""

    ratio: float
    low: float
    high: float
    before: Peak
    after: Peak
    rising: bool
    knee: tuple[LoadInterval | None, LoadInterval | None]
    capacity: tuple[LoadInterval | None, LoadInterval | None]

    @property
    def higher(self) -> bool:
        """Whether the peak is proven to be higher: single blocks prove nothing."""
        return self.high > self.low > 1


def reach(before: Curve, after: Curve) -> Reach | None:
    """From the curves of both states; None where nothing was done in either. The interval combines those of the points
    at the peaks, in quadrature of logarithms; a point of one block has none and gives none."""
    one, two = _at_peak(before), _at_peak(after)
    if min(one.throughput, two.throughput) <= 0:
        return None
    ratio, low, high = _ratio(one, two)
    return Reach(
        ratio=ratio,
        low=low,
        high=high,
        before=before.peak,
        after=after.peak,
        rising=after.shape == "linear" and after.peak.load == after.points[-1].load,
        knee=(before.knee, after.knee),
        capacity=(before.capacity, after.capacity),
    )


def at_loads(before: Curve, after: Curve) -> tuple[LoadGain, ...]:
    """The gain at each load of both curves at which both did something, rising; intervals as those of `reach`."""
    points = {point.load: point for point in after.points if point.throughput > 0}
    pairs = [(one, points[one.load]) for one in before.points if one.throughput > 0 and one.load in points]
    return tuple(
        LoadGain(one.load, one.throughput, two.throughput, *_ratio(one, two))
        for one, two in sorted(pairs, key=lambda pair: pair[0].load)
    )


def _ratio(one: CurvePoint, two: CurvePoint) -> tuple[float, float, float]:
    centre = math.log(two.throughput / one.throughput)
    down = math.hypot(_log(two.throughput, two.throughput_low), _log(one.throughput_high, one.throughput))
    up = math.hypot(_log(two.throughput_high, two.throughput), _log(one.throughput, one.throughput_low))
    return exp_in_range(centre), exp_in_range(centre - down), exp_in_range(centre + up)


def _at_peak(curve: Curve) -> CurvePoint:
    return next(point for point in curve.points if point.load == curve.peak.load)


def _log(more: float, less: float) -> float:
    return math.log(more / less) if less > 0 and math.isfinite(more) else math.inf
