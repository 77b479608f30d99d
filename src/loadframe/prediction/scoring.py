"""A forecast beside what was measured later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from loadframe.model import Calibration, Forecast, Observation, Scored


def score(forecast: Forecast, measured: Sequence[Observation]) -> Forecast:
    """The forecast with a score for each load that was forecast and measured; several windows at a load count as their
    median."""
    found = []
    for point in forecast.at:
        actual = [row.throughput for row in measured if row.load == point.load]
        if actual:
            value, expected = median(actual), point.throughput
            inside = expected.low <= value <= expected.high
            found.append(Scored(point.load, expected.value, expected.low, expected.high, value, inside))
    return replace(forecast, scored=tuple(found))


def calibrate(scores: Iterable[Scored]) -> Calibration | None:
    """How often the interval held; None without any score."""
    all_scores = list(scores)
    if not all_scores:
        return None
    errors = [abs(one.predicted / one.actual - 1) for one in all_scores if one.actual > 0]
    inside = sum(one.inside for one in all_scores)
    return Calibration(inside, len(all_scores), median(errors) if errors else 0.0)
