"""Where a capacity search should look: the load up to which an objective can be expected to hold, from lower loads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from loadframe.model import Estimate, ForecastPoint, LoadInterval, Observations
from loadframe.prediction.forecasting import forecast
from loadframe.prediction.system import Kind

LEAST_FACTOR = 1.15
"""No expectation is narrower than this factor to either side: the load at which an objective is missed is not quite
that of saturation."""

LOADS = 24
"""So many loads are looked at to see where the latency passes its limit."""

FURTHEST = 16.0
"""Nothing is expected beyond this many times the highest load measured: four doublings are no forecast any more."""


def expected(
    observations: Observations, *, latency_p95_ms: float | None = None, kind: Kind | None = None
) -> LoadInterval | None:
    """The load at which the first resource saturates, or the p95 latency passes its limit, whatever comes first, with
    a 90 % interval; None where the observations carry no forecast, or nothing gives within sight. Not below the highest
    load of the observations: they are of trials that met."""
    found = forecast(observations, kind=kind)
    if found.capacity is None:
        return None
    top, first = observations.loads[-1], found.capacity.load
    value, low, high = max(first.value, top), max(first.low, top), max(first.high, top)
    if latency_p95_ms is not None:
        loads = np.geomspace(top, min(max(high, top), FURTHEST * top), LOADS)
        points = forecast(observations, loads.tolist(), kind=kind).at
        value = min(value, _passed(points, latency_p95_ms, lambda p95: p95.value))
        low = min(low, _passed(points, latency_p95_ms, lambda p95: p95.high))
        high = min(high, _passed(points, latency_p95_ms, lambda p95: p95.low))
    if value > FURTHEST * top:
        return None
    return LoadInterval(value, min(low, value / LEAST_FACTOR), min(max(high, value * LEAST_FACTOR), 2 * FURTHEST * top))


def _passed(points: Iterable[ForecastPoint], limit_ms: float, end: Callable[[Estimate], float]) -> float:
    """The first load at which this end of the latency's interval is above the limit; inf where it is at none."""
    slow = (point.load for point in points if point.latency_p95_ms is not None and end(point.latency_p95_ms) > limit_ms)
    return next(slow, math.inf)
