"""A cost that grows with requests or time is told from one that only scatters or drifts."""

from __future__ import annotations

import numpy as np
import pytest

from loadframe.analysis.growth import Growth, growth

LEVELS = (1.0, 2.0, 4.0)


def sweep(
    *, per_request: float = 0.0, per_second: float = 0.0, noise: float = 0.02, drift: float = 0.0, seed: int = 1
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Three blocks of the levels in random order, 1.6 s each, one request of 4 ms served at a time. drift: of the
    logarithm, over all steps."""
    random = np.random.default_rng(seed)
    order = [float(level) for _ in range(3) for level in random.permutation(LEVELS)]
    done, rows = 0.0, []
    for index, level in enumerate(order):
        begun = 1.6 * index
        cost = 0.004 * (1 + per_request * done + per_second * begun)
        cost *= float(np.exp(random.normal(0, noise) + drift * index / len(order)))
        rows.append((level, level * cost, done + 0.8 / cost, begun + 0.8))
        done += 1.6 / cost
    levels, costs, served, times = (list(each) for each in zip(*rows, strict=True))
    return levels, costs, served, times


def test_a_cost_that_grows_with_the_requests_served_is_found() -> None:
    found = growth(*sweep(per_request=1e-3))
    assert isinstance(found, Growth)
    assert found.times > 1.8


@pytest.mark.parametrize("per_second", [0.1, 0.3])
def test_a_cost_that_grows_with_time_is_found(per_second: float) -> None:
    found = growth(*sweep(per_second=per_second))
    assert found is not None
    assert found.times == pytest.approx((1 + per_second * 13.6) / (1 + per_second * 0.8), rel=0.25)


def test_requests_and_time_are_told_apart_where_levels_serve_differently() -> None:
    """In parallel: four clients are served four times as often, so requests run ahead of time."""
    random = np.random.default_rng(3)
    order = [float(level) for _ in range(6) for level in random.permutation(LEVELS)]
    for by in ("requests", "time"):
        done, rows = 0.0, []
        for index, level in enumerate(order):
            cost = 0.004 * (1 + (5e-4 * done if by == "requests" else 0.1 * 1.6 * index))
            rows.append((level, cost * float(np.exp(random.normal(0, 0.01))), done + level * 0.8 / cost, 1.6 * index))
            done += level * 1.6 / cost
        levels, costs, served, times = (list(each) for each in zip(*rows, strict=True))
        found = growth(levels, costs, served, times)
        assert found is not None
        assert (found.by, found.distinct) == (by, True)


RECORDED = (
    (4, 5.81, 274, 0.4), (1, 5.9, 514, 1.3), (8, 15.41, 764, 2.1), (2, 6.53, 1016, 2.9),
    (16, 41.2, 1253, 3.8), (8, 23.1, 1491, 4.6), (1, 7.43, 1632, 5.5), (2, 7.56, 1771, 6.3),
    (16, 53.3, 1954, 7.1), (4, 15.21, 2132, 8.0), (16, 63.51, 2298, 8.8), (1, 8.07, 2410, 9.7),
    (8, 29.73, 2548, 10.5), (4, 17.03, 2708, 11.3), (2, 8.96, 2855, 12.2), (4, 18.65, 2997, 13.1),
    (1, 7.63, 3103, 13.9), (8, 34.21, 3228, 14.7), (2, 9.54, 3370, 15.5), (16, 70.69, 3516, 16.4),
    (2, 12.13, 3641, 17.2), (8, 43.58, 3769, 18.1), (1, 10.62, 3844, 18.9), (4, 25.23, 3931, 19.7),
    (16, 82.75, 4045, 20.6), (16, 91.7, 4160, 41.5), (8, 52.57, 4263, 42.3), (2, 15.14, 4363, 43.2),
    (4, 29.07, 4443, 44.0), (1, 11.89, 4508, 44.9),
)  # fmt: skip
"""A service in Python whose requests each search what all before them have left, besides 5 ms that do not grow; with a
pause of 20 s. Level, response time (ms), requests served before, seconds."""


def test_requests_of_which_another_share_grows_at_each_level_are_not_said_to_follow_time() -> None:
    levels, costs, served, times = (list(map(float, each)) for each in zip(*RECORDED, strict=True))
    found = growth(levels, costs, served, times)
    assert found is not None
    assert found.by == "requests"
    assert found.times > 3


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("by", ["requests", "time"])
def test_after_a_pause_it_does_not_matter_how_a_cost_bends(by: str, power: float) -> None:
    random = np.random.default_rng(5)
    order = [float(level) for _ in range(4) for level in random.permutation(LEVELS)]
    done, now, rows = 0.0, 0.0, []
    for index, level in enumerate(order):
        now += 14.4 if index == 9 else 0.0  # no request meanwhile
        grown = (done / 3000 if by == "requests" else now / 14.4) ** power
        cost = (0.002 + 0.004 * level * (1 + 3 * grown)) * float(np.exp(random.normal(0, 0.03)))
        rows.append((level, cost, done + level * 0.8 / cost, now + 0.8))
        done, now = done + level * 1.6 / cost, now + 1.6
    levels, costs, served, times = (list(each) for each in zip(*rows, strict=True))
    found = growth(levels, costs, served, times)
    assert found is not None
    assert found.by == by or not found.distinct


@pytest.mark.parametrize("seed", range(20))
def test_noise_and_drift_are_no_growth(seed: int) -> None:
    assert growth(*sweep(noise=0.1, seed=seed)) is None
    assert growth(*sweep(noise=0.02, drift=0.15, seed=seed)) is None


def test_a_warm_cache_makes_requests_cheaper_which_is_no_growth() -> None:
    assert growth(*sweep(drift=-1.0)) is None


def test_few_steps_say_nothing() -> None:
    levels, costs, served, times = sweep(per_request=1e-3)
    assert growth(levels[:6], costs[:6], served[:6], times[:6]) is None
    assert growth([1.0] * 9, costs, served, times) is None, "one level"
