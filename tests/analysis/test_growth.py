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
        assert (found.by, found.told_apart) == (by, True)


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


def test_impossible_steps_are_refused() -> None:
    levels, costs, served, times = sweep()
    with pytest.raises(ValueError, match="positive cost"):
        growth(levels, [0.0, *costs[1:]], served, times)
    with pytest.raises(ValueError, match="each step needs"):
        growth(levels, costs[1:], served, times)
