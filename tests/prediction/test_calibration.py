"""Intervals that are conformal on curves: quantiles by group, refusal of small libraries, coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest

import forecast_library
from forecast_library import Curve, Foretold
from loadframe.model import Estimate, Observation, Observations
from loadframe.prediction.library import Bounds
from loadframe.prediction.saturating import estimated


def test_both_ends_at_once_need_nine_curves_each_side_by_itself_thirty_nine() -> None:
    curves = [np.array([float(value)]) for value in range(-1, 38)]
    assert forecast_library.bounds(curves) == Bounds(0, 36)
    assert forecast_library.bounds(curves[:38]) == Bounds(-34, 34)
    assert forecast_library.bounds([np.array([-30.0]), *curves[:8]]) == Bounds(-30, 30)
    assert forecast_library.bounds(curves[:8]) == Bounds(-math.inf, math.inf)
    assert forecast_library.bounds([]) == Bounds(-math.inf, math.inf)


def test_a_curve_with_many_forecasts_counts_once() -> None:
    quiet = [np.zeros(1) for _ in range(38)]
    assert forecast_library.bounds([*quiet, np.full(1000, 9.0)]).high == 0


@pytest.mark.parametrize("count", [19, 45])
def test_intervals_hold_as_often_as_they_say(count: int) -> None:
    """Seeded: curves with a bias and noise of their own; the interval of the others, and a point of one more."""
    random = np.random.default_rng(7)
    held = []
    for _ in range(400):
        curves = [random.standard_t(3) + 0.5 * random.standard_normal(random.integers(3, 40)) for _ in range(count + 1)]
        found = forecast_library.bounds(curves[:count])
        held.append(found.low <= random.choice(curves[count]) <= found.high)
    assert 0.88 <= np.mean(held) <= 0.96


def told(random: np.random.Generator, count: int) -> Foretold:
    """One curve whose forecasts are off the more the farther they reach."""
    doublings = random.uniform(0, 4, count)
    return Foretold(doublings, np.full(count, 0.2), 0.3 * (doublings + 0.3) * random.standard_normal(count))


def test_an_interval_is_as_wide_as_forecasts_that_reach_as_far_were_off() -> None:
    """Seeded: the error is 14 times as large at four doublings as at none; near and far the interval holds."""
    random = np.random.default_rng(5)
    near, far, held = [], [], []
    for _ in range(60):
        scale, bounds = forecast_library.intervals([{str(name): told(random, 12) for name in range(25)}])
        new = told(random, 50)
        inside = np.abs(new.wrong) <= bounds.high * scale.of(new.doublings, new.apart)
        held.append(inside.mean())
        near.append(inside[new.doublings < 1].mean())
        far.append(inside[new.doublings > 3].mean())
    assert 0.88 <= np.mean(held) <= 0.97
    assert min(np.mean(near), np.mean(far)) >= 0.85
    ends = scale.of(np.array([0.0, 4.0]), np.array([0.2, 0.2]))
    assert 2 < ends[1] / ends[0] < 14, "the slope is held back, for curves are few"


def test_a_curve_that_is_foretold_in_two_ways_counts_once() -> None:
    """Of eight curves there is no interval, however many ways there are to foretell them."""
    random = np.random.default_rng(6)
    curves = {str(name): told(random, 6) for name in range(8)}
    assert forecast_library.intervals([curves, curves])[1] == Bounds(-math.inf, math.inf)
    assert math.isfinite(forecast_library.intervals([curves, {"ninth": told(random, 6)}])[1].high)


def test_ends_that_cannot_be_told_are_none() -> None:
    ends = estimated(Bounds(-1, 1), math.log(100), 0.1)
    assert (ends.value, ends.low, ends.high) == pytest.approx((100, 90.48, 110.5), rel=0.001)
    assert estimated(Bounds(-math.inf, math.inf), 0.0, 1.0) == Estimate(1, 0, math.inf)


def curve(throughputs: list[float], used: list[float]) -> Curve:
    loads = [2.0**power for power in range(len(throughputs))]
    rows = tuple(
        Observation(load, value, utilizations={"disk": share})
        for load, value, share in zip(loads, throughputs, used, strict=True)
    )
    return Curve("x", "x", "sqlite", Observations("x", rows, axis="concurrency"), {})


def test_a_curve_is_foretold_from_each_of_its_loads() -> None:
    bent = curve([10, 20, 40, 80, 90, 90], [0.1, 0.2, 0.4, 0.8, 0.9, 0.9])
    made = forecast_library.cases(bent, alone=False)
    assert [len(case.log_x) for case in made] == [3, 2, 1]
    assert made[0].doublings.tolist() == [1, 2, 3]
    assert made[0].peak == (math.log(90), math.log(9))
    assert made[-1].peak is None, "from load 16 on nothing more is reached"
    assert all(case.peak is None for case in forecast_library.cases(bent, alone=True))


def test_a_curve_that_does_not_bend_shows_no_most() -> None:
    straight = curve([10, 20, 40, 80, 160], [0.05, 0.1, 0.2, 0.4, 0.8])
    assert [case.peak for case in forecast_library.cases(straight, alone=False)] == [None, None]
    idle = curve([10, 20, 40, 80], [0.01, 0.01, 0.01, 0.01])
    assert forecast_library.cases(idle, alone=False) == []
    assert len(forecast_library.cases(idle, alone=True)) == 1
