"""A forecast next to what was measured later."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from loadframe.model import Calibration, Curve, Forecast, Observation, Observations, Reached, Scored

USED_UP = 0.95
"""A resource with this use is used up, whether the levels show a bend or not."""


def score(forecast: Forecast, measured: Sequence[Observation]) -> Forecast:
    """The forecast with a score for each load that was forecast and measured, by the median of several windows."""
    found = []
    for point in forecast.at:
        actual = [row.throughput for row in measured if row.load == point.load]
        if actual:
            value, expected = median(actual), point.throughput
            inside = expected.low <= value <= expected.high
            found.append(Scored(point.load, expected.value, expected.low, expected.high, value, inside))
    return replace(forecast, scored=tuple(found))


def came(forecast: Forecast, measured: Observations, curve: Curve) -> Forecast:
    """The forecast with what was reached at all loads; unchanged where it was refused."""
    if forecast.capacity is None:
        return forecast
    lowest = measured.loads[0]
    rise = median(row.throughput for row in measured.rows if row.load == lowest) / lowest
    peak = curve.peak
    at_peak = [row for row in measured.rows if row.load == peak.load]
    used = {
        one.resource: median(row.utilizations[one.resource] for row in at_peak)
        for one in forecast.saturation
        if one.resource in measured.resources
    }
    most = max(used, key=lambda name: used[name], default="")
    found = Reached(peak.load, peak.throughput, most, used.get(most, 0.0))
    if curve.shape != "linear" or found.utilization >= USED_UP:
        at, capacity = peak.throughput / rise, forecast.capacity
        found = replace(
            found,
            saturated_at=at,
            load_inside=capacity.load.low <= at <= capacity.load.high,
            throughput_inside=capacity.throughput.low <= peak.throughput <= capacity.throughput.high,
        )
    return replace(forecast, reached=found)


def calibrate(scores: Iterable[Scored]) -> Calibration | None:
    """How often the interval held; None without any score."""
    all_scores = list(scores)
    if not all_scores:
        return None
    errors = [abs(one.predicted / one.actual - 1) for one in all_scores if one.actual > 0]
    inside = sum(one.inside for one in all_scores)
    return Calibration(inside, len(all_scores), median(errors) if errors else 0.0)
