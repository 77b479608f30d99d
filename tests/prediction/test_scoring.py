"""Forecasts beside what was measured later."""

from __future__ import annotations

import pytest

from loadframe.model import (
    Curve,
    CurvePoint,
    Estimate,
    Forecast,
    ForecastCapacity,
    ForecastPoint,
    Observation,
    Observations,
    Peak,
    Reached,
    ResourceForecast,
    Scored,
    Shape,
)
from loadframe.prediction.forecasting import calibrate, came, score


def test_each_load_that_was_forecast_and_measured_is_scored() -> None:
    points = [
        ForecastPoint(load, Estimate(value, value - 10, value + 10), None) for load, value in ((8, 80), (16, 150))
    ]
    found = score(
        Forecast("x", "load", "closed", (1, 2, 4), at=tuple(points)),
        [Observation(8, 85), Observation(8, 86), Observation(8, 400), Observation(16, 100), Observation(32, 1)],
    )
    assert found.scored == (Scored(8, 80, 70, 90, 86, True), Scored(16, 150, 140, 160, 100, False))
    assert score(found, []).scored == ()


def observed(*loads: float) -> Observations:
    """100 requests per second per client until 400; the disk is used with them, the loader half as much."""
    reached = {load: min(100 * load, 400) for load in loads}
    rows = (
        Observation(load, value, utilizations={"disk": value / 400, "loader": value / 800})
        for load, value in reached.items()
    )
    return Observations("x", tuple(rows))


def curve(observations: Observations, shape: Shape) -> Curve:
    best = max(observations.rows, key=lambda row: row.throughput)
    points = tuple(
        CurvePoint(row.load, row.throughput, row.throughput, row.throughput, None) for row in observations.rows
    )
    return Curve("load", "A", points, shape, Peak(best.load, best.throughput), None, None, None, None)


def foretold(load: Estimate) -> Forecast:
    resources = tuple(
        ResourceForecast(name, 0.01, 0.01, 0.01, 1.0, 0.2, Estimate(1, 1, 1), load) for name in ("loader", "disk")
    )
    capacity = ForecastCapacity(Estimate(390, 350, 420), load, "disk")
    return Forecast("x", "load", "closed", (1, 2), capacity=capacity, saturation=resources)


def test_saturation_is_where_the_line_of_the_lowest_load_reaches_the_highest_throughput() -> None:
    measured = observed(1, 2, 8)
    found = came(foretold(Estimate(3.9, 3.5, 4.2)), measured, curve(measured, "plateau")).reached
    assert found == Reached(8, 400, "disk", 1.0, saturated_at=4.0, load_inside=True, throughput_inside=True)
    missed = came(foretold(Estimate(3.5, 3.2, 3.8)), measured, curve(measured, "plateau")).reached
    assert missed is not None
    assert missed.load_inside is False


def test_what_did_not_bend_did_not_saturate() -> None:
    measured = observed(1, 2, 3)
    found = came(foretold(Estimate(3.9, 3.5, 4.2)), measured, curve(measured, "linear")).reached
    assert found is not None
    assert (found.saturated_at, found.load_inside, found.throughput_inside) == (None, None, None)
    used_up = observed(1, 2, 4)
    assert came(foretold(Estimate(3.9, 3.5, 4.2)), used_up, curve(used_up, "linear")).reached == Reached(
        4, 400, "disk", 1.0, saturated_at=4.0, load_inside=True, throughput_inside=True
    )
    refused = Forecast("x", "load", "closed", (1, 2), refused="too little")
    assert came(refused, measured, curve(measured, "linear")) == refused


def test_calibration_counts_the_intervals_that_held() -> None:
    scores = [Scored(8, 80, 70, 90, 100, False), Scored(8, 110, 90, 120, 100, True), Scored(1, 1, 0, 1, 0, True)]
    found = calibrate(scores)
    assert found is not None
    assert (found.inside, found.count) == (2, 3)
    assert found.median_error == pytest.approx(0.15)
    assert calibrate([]) is None
