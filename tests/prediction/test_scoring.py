"""Forecasts beside what was measured later."""

from __future__ import annotations

import pytest

from loadframe.model import Estimate, Forecast, ForecastPoint, Observation, Scored
from loadframe.prediction.scoring import calibrate, score


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


def test_calibration_counts_the_intervals_that_held() -> None:
    scores = [Scored(8, 80, 70, 90, 100, False), Scored(8, 110, 90, 120, 100, True), Scored(1, 1, 0, 1, 0, True)]
    found = calibrate(scores)
    assert found is not None
    assert (found.inside, found.count) == (2, 3)
    assert found.median_error == pytest.approx(0.15)
    assert calibrate([]) is None
