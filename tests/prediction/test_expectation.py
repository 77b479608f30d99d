"""Where a capacity search should look, from trials far below."""

from __future__ import annotations

import math

import numpy as np
import pytest

from loadframe.model import Observation, Observations
from loadframe.prediction.forecasting import FURTHEST, LEAST_FACTOR, expected

CAPACITY = 3000.0


def below(*loads: float, noise: float = 0.02) -> Observations:
    """M/M/1 at these rates: the time of a request is exponential, with a mean of 1 / (capacity - load)."""
    random = np.random.default_rng(5)
    rows = []
    for load in loads:
        mean_ms = 1000 / (CAPACITY - load)
        error = float(np.exp(noise * random.standard_normal()))
        rows.append(Observation(load, load, -math.log(0.05) * mean_ms, mean_ms, {"cpu": load / CAPACITY * error}))
    return Observations("simulated", tuple(rows), axis="rate")


def test_the_load_of_saturation_is_expected() -> None:
    found = expected(below(100, 400, 1200))
    assert found is not None
    assert found.low < CAPACITY < found.high
    assert found.load == pytest.approx(CAPACITY, rel=0.1)
    assert found.high / found.load >= LEAST_FACTOR <= found.load / found.low


def test_a_latency_is_met_less_far() -> None:
    """p95 is 1 ms without load, 2.5 ms at 60 % of the capacity, 10 ms at 90 %."""
    tight, loose = (expected(below(100, 400, 1200), latency_p95_ms=limit) for limit in (2.5, 10.0))
    free = expected(below(100, 400, 1200))
    assert tight is not None and loose is not None and free is not None
    assert tight.load < loose.load <= free.load
    assert tight.low < 0.6 * CAPACITY < tight.high
    assert loose.low < 0.9 * CAPACITY < loose.high


def test_a_limit_that_nothing_reaches_changes_nothing() -> None:
    assert expected(below(100, 400, 1200), latency_p95_ms=1e9) == expected(below(100, 400, 1200))


def test_what_carries_no_forecast_gives_no_expectation() -> None:
    assert expected(below(100, 400)) is None
    assert expected(below(10, 40, 100)) is None, "3 % of a CPU"
    assert expected(Observations("x", tuple(Observation(n, n) for n in (1.0, 2.0, 4.0)), axis="rate")) is None


def test_nothing_is_expected_further_than_anybody_can_see() -> None:
    found = expected(below(20, 80, 160))
    assert found is None or found.load <= FURTHEST * 160
