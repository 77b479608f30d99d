"""A forecast next to what was measured later."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from loadframe.model import Calibration, Curve, Forecast, Observation, Observations, Reached, Scored

USED_UP = 0.95
"""A resource with this use is used up, whether the levels show a bend or not."""


def score(forecast: Forecast, measured: Sequence[Observation]) -> Forecast:
    """The forecast with a score for each load that was forecast and measured, by the median of several windows."""
    scores = []
    for point in forecast.at:
        actual = [row.throughput for row in measured if row.load == point.load]
        if actual:
            value, expected = median(actual), point.throughput
            inside = expected.low <= value <= expected.high
            scores.append(Scored(point.load, expected.value, expected.low, expected.high, value, inside))
    return replace(forecast, scored=tuple(scores))


def came(forecast: Forecast, measured: Observations, curve: Curve) -> Forecast:
    """The forecast with what was reached at all loads; unchanged where it was refused."""
    if forecast.capacity is None:
        return forecast
    lowest = measured.loads[0]
    rise = median(row.throughput for row in measured.rows if row.load == lowest) / lowest
    peak = curve.peak
    at_peak = [row for row in measured.rows if row.load == peak.load]
    used = {
        resource.resource: median(row.utilizations[resource.resource] for row in at_peak)
        for resource in forecast.saturation
        if resource.resource in measured.resources
    }
    most = max(used, key=lambda name: used[name], default="")
    reached = Reached(peak.load, peak.throughput, most, used.get(most, 0.0))
    if curve.shape != "linear" or reached.utilization >= USED_UP:
        at, capacity = peak.throughput / rise, forecast.capacity
        reached = replace(
            reached,
            saturated_at=at,
            load_inside=capacity.load.low <= at <= capacity.load.high,
            throughput_inside=capacity.throughput.low <= peak.throughput <= capacity.throughput.high,
        )
    return replace(forecast, reached=reached)


def calibrate(scores: Iterable[Scored]) -> Calibration | None:
    """How often the interval held; None without any score."""
    all_scores = list(scores)
    if not all_scores:
        return None
    errors = [abs(scored.predicted / scored.actual - 1) for scored in all_scores if scored.actual > 0]
    inside = sum(scored.inside for scored in all_scores)
    return Calibration(inside, len(all_scores), median(errors) if errors else 0.0)
