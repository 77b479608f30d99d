"""Whether a change log is followed: a lag that does not grow, told from one that does and from one that is unclear."""

from __future__ import annotations

import numpy as np
import pytest

from loadframe_watch.growth.lag import Following, by_rates, followed, following


def lags(
    slope: float, *, noise: float = 20.0, count: int = 60, seed: int = 1, alike: float = 0.0
) -> tuple[list[float], list[float]]:
    """Readings each 50 ms of a lag of 500 changes that grows by slope/s."""
    random = np.random.default_rng(seed)
    times = np.arange(count) * 0.05
    away = random.normal(0, noise, count)
    for i in range(1, count):
        away[i] = alike * away[i - 1] + np.sqrt(1 - alike**2) * away[i]
    return times.tolist(), (500 + slope * times + away).tolist()


def test_a_lag_that_stays_is_followed_however_large_it_is() -> None:
    found = following(*lags(0.0), offered=5000.0)
    assert found.verdict == "followed"
    assert found.low < 0 < found.high


def test_a_lag_that_grows_is_behind_and_tells_what_is_applied() -> None:
    found = following(*lags(1500.0), offered=5000.0)
    assert found.verdict == "behind"
    assert found.applied == pytest.approx(3500, rel=0.02)


def test_a_lag_that_may_or_may_not_grow_is_not_proven() -> None:
    assert following(*lags(30.0, noise=400.0), offered=1000.0).verdict == "not proven"
    assert following([0.0, 1.0], [5.0, 5.0], offered=1000.0).verdict == "not proven"


def test_neighbours_that_resemble_one_another_are_no_proof() -> None:
    said = [following(*lags(0.0, noise=300.0, alike=0.9, seed=seed), offered=2000.0).verdict for seed in range(60)]
    assert said.count("behind") <= 9


def step(offered: float, verdict: str, slope: float = 0.0) -> Following:
    return Following(offered, slope, slope - 10, slope + 10, verdict)  # type: ignore[arg-type]


def test_the_highest_rate_lies_between_the_last_followed_and_the_first_behind() -> None:
    steps = [step(1000, "followed"), step(2000, "followed"), step(4000, "behind", 1000), step(8000, "behind", 5100)]
    found = followed(steps)
    assert (found.up_to, found.behind_from) == (2000, 4000)
    assert found.rate is not None
    assert found.rate.low <= 2900 <= found.rate.load <= 3000 <= found.rate.high


def test_one_step_of_a_rate_that_is_not_followed_ends_what_is_proved() -> None:
    found = followed([step(1000, "followed"), step(2000, "not proven"), step(2000, "followed"), step(4000, "followed")])
    assert (found.up_to, found.behind_from, found.rate) == (1000, None, None)


def test_a_lag_that_only_swings_is_followed_and_one_that_drifts_is_not() -> None:
    """Slices that make up for one another: their mean is within 4 % and no nearer, the lag never leaves 150 changes."""
    swings = [4000 + each for each in (150, -150, 140, -145, 150, -140, 145, -150, 150, -150, 140, -140)]
    assert by_rates([float(each) for each in swings], 4000.0).verdict == "followed"
    random = np.random.default_rng(4)
    said = [by_rates((950 + random.normal(0, 100, 12)).tolist(), 1000.0).verdict for _ in range(200)]
    assert said.count("followed") <= 10


def test_rates_of_slices_tell_the_same() -> None:
    random = np.random.default_rng(3)
    assert by_rates((5000 + random.normal(0, 20, 8)).tolist(), 5000.0).verdict == "followed"
    behind = by_rates((3500 + random.normal(0, 100, 8)).tolist(), 5000.0)
    assert behind.verdict == "behind"
    assert behind.applied == pytest.approx(3500, rel=0.05)
    assert by_rates((4900 + random.normal(0, 600, 8)).tolist(), 5000.0).verdict == "not proven"
    assert by_rates([5000.0, 5000.0], 5000.0).verdict == "not proven"
