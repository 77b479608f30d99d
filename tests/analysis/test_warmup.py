"""The warm-up is cut where it ends, noise is not taken for one, and a series that never settles is called that."""

from __future__ import annotations

import numpy as np
import pytest

from loadframe.analysis.warmup import detect, mser

BIN_S = 0.05


def noise(count: int, seed: int, share: float = 0.05, correlation: float = 0.0) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = np.zeros(count)
    for i, shock in enumerate(random.normal(0, share * np.sqrt(1 - correlation**2), count)):
        values[i] = (correlation * values[i - 1] if i else 0.0) + shock
    return values


@pytest.mark.parametrize("seed", range(10))
def test_a_step_up_is_cut_where_it_happens(seed: int) -> None:
    series = np.where(np.arange(200) < 40, 600.0, 1000.0) * (1 + noise(200, seed))
    found = detect(series, BIN_S, floor_s=0.2)
    assert found.settled
    # A batch of five may keep one slow bin.
    assert 39 * BIN_S - 1e-9 <= found.warmup_s <= 55 * BIN_S


@pytest.mark.parametrize("seed", range(10))
def test_an_exponential_approach_is_cut_once_it_is_nearly_there(seed: int) -> None:
    series = 1000 * (1 - np.exp(-np.arange(200) / 12)) * (1 + noise(200, seed))
    found = detect(series, BIN_S, floor_s=0.0)
    assert found.settled
    # Between 1.5 and 6 time constants: what is left is then below a quarter at its start and mostly noise.
    assert 15 * BIN_S <= found.warmup_s <= 75 * BIN_S


@pytest.mark.parametrize(("share", "correlation"), [(0.05, 0.0), (0.2, 0.0), (0.1, 0.6), (0.1, 0.8)])
def test_flat_noise_is_settled_at_the_floor(share: float, correlation: float) -> None:
    found = [detect(1000 * (1 + noise(120, seed, share, correlation)), BIN_S, floor_s=0.5) for seed in range(200)]
    # Near the floor: two batches at most. The strongest memory looks like a late change of level now and then.
    enough = 185 if correlation == 0.8 else 190
    assert sum(each.settled and each.warmup_s <= 0.5 + 10 * BIN_S for each in found) >= enough


def test_the_floor_is_kept_where_the_warm_up_is_shorter() -> None:
    series = np.where(np.arange(200) < 5, 100.0, 1000.0)
    assert detect(series, BIN_S, floor_s=1.0).warmup_s == 1.0


def test_a_series_that_still_climbs_is_not_settled_and_cut_at_half() -> None:
    found = detect(np.linspace(100, 1000, 200), BIN_S, floor_s=0.2)
    assert not found.settled
    assert found.warmup_s == pytest.approx(100 * BIN_S)


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("at", [105, 120, 135, 150])
def test_a_level_that_changes_after_the_middle_is_not_settled(at: int, share: float) -> None:
    """A buffer that is full at last, a stranger that stays: what is left is no steady state."""
    for sign in (-1, 1):
        found = [
            detect(
                np.where(np.arange(200) < at, 1000.0, 1000 * (1 + sign * share)) * (1 + noise(200, seed)),
                BIN_S,
                floor_s=0.5,
            )
            for seed in range(20)
        ]
        assert sum(not each.settled for each in found) >= 19


@pytest.mark.parametrize("bins", [0, 1, 29])
def test_too_short_a_series_is_not_settled(bins: int) -> None:
    found = detect(np.full(bins, 1000.0), BIN_S, floor_s=0.0)
    assert (found.warmup_s, found.settled) == (0.0, False)
    assert detect(np.full(30, 1000.0), BIN_S, floor_s=0.0).settled


def test_one_stall_in_a_settled_series_is_not_a_warm_up() -> None:
    series = 1000 * (1 + noise(200, 3))
    series[110:115] = 0.0
    found = detect(series, BIN_S, floor_s=0.5)
    assert (found.warmup_s, found.settled) == (0.5, True)


def test_zero_throughput_is_settled_at_the_floor() -> None:
    assert detect(np.zeros(100), BIN_S, floor_s=0.5).settled


def test_mser_is_the_sum_of_squares_over_the_squared_count() -> None:
    values = np.array([5.0, 1.0, 3.0, 2.0])
    expected = [((values[d:] - values[d:].mean()) ** 2).sum() / (4 - d) ** 2 for d in range(4)]
    assert mser(values) == pytest.approx(expected)
