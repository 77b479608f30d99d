"""The load at which a limit runs out: found, bracketed or refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import t as student

from loadframe.analysis.exhaustion import demand_at, exhausted_at

LOADS = np.repeat([5.0, 10, 20, 40, 80], 3)


def test_tables_per_job_run_out_where_the_cache_is_full() -> None:
    uses = np.minimum(5 * LOADS, 64)
    found = exhausted_at(LOADS, uses, 64)
    assert found is not None
    assert found.load == pytest.approx(12.8)
    assert 10 <= found.low <= 12.8 <= found.high <= 20


def test_a_ceiling_not_reached_yet_is_predicted_with_an_interval() -> None:
    random = np.random.default_rng(5)
    inside = 0
    for _ in range(200):
        found = exhausted_at(LOADS, 30 + 5 * LOADS + random.normal(0, 10, len(LOADS)), 2000)
        assert found is not None
        inside += found.low <= (2000 - 30) / 5 <= found.high
    assert inside >= 180


def test_the_ends_are_those_of_fieller() -> None:
    uses = 30 + 5 * LOADS + np.random.default_rng(8).normal(0, 10, len(LOADS))
    found = exhausted_at(LOADS, uses, 700)
    assert found is not None
    slope, intercept = np.polyfit(LOADS, uses, 1)
    error = math.sqrt(((uses - intercept - slope * LOADS) ** 2).sum() / (len(LOADS) - 2))
    distance = (LOADS - LOADS.mean()) @ (LOADS - LOADS.mean())
    for end in (found.low, found.high):
        spread = math.sqrt(1 / len(LOADS) + (end - LOADS.mean()) ** 2 / distance)
        assert abs(intercept + slope * end - 700) == pytest.approx(student.ppf(0.975, len(LOADS) - 2) * error * spread)


def test_two_exact_points_give_a_wide_interval() -> None:
    found = exhausted_at(np.array([10.0, 20.0]), np.array([50.0, 100.0]), 400)
    assert found is not None
    assert found.load == pytest.approx(80)
    assert found.low >= 20
    assert found.high - found.low > 0.2 * found.load


def test_a_use_that_does_not_grow_never_runs_out() -> None:
    random = np.random.default_rng(6)
    flat = [exhausted_at(LOADS, 100 + random.normal(0, 5, len(LOADS)), 1000) for _ in range(200)]
    assert sum(found is None for found in flat) >= 190
    assert exhausted_at(LOADS, 100 + 0.01 * LOADS, 1000) is None
    assert exhausted_at(LOADS, 500 - LOADS, 1000) is None
    assert exhausted_at(np.array([5.0]), np.array([10.0]), 1000) is None


def test_with_one_level_below_the_ceiling_the_answer_is_the_bracket() -> None:
    found = exhausted_at(np.array([5.0, 20.0, 40.0]), np.array([25.0, 64.0, 64.0]), 64)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(12.8), 20)  # in proportion: 25 / 5 x 12.8 = 64
    assert found.load == pytest.approx(16)


def test_a_ceiling_reached_everywhere_was_reached_at_the_lowest_load() -> None:
    found = exhausted_at(LOADS, np.full(len(LOADS), 64.0), 64)
    assert found is not None
    assert (found.low, found.load, found.high) == (5, 5, 5)


FLATTENING = (np.array([10.0, 20.0, 30.0, 40.0]), np.array([0.3, 0.6, 0.9, 0.95]))
"""Their line is 1 at 38.9, and 0.95 was seen at 40."""


def test_a_line_that_what_was_seen_refutes_leaves_the_bracket() -> None:
    loads, uses = (np.append(each, last) for each, last in zip(FLATTENING, (60.0, 1.0), strict=True))
    found = exhausted_at(np.repeat(loads, 50), np.repeat(uses, 50), 1.0)
    assert found is not None and (found.low, found.high) == (40, 60) and 40 < found.load < 60


def test_a_line_that_is_full_below_the_highest_load_is_no_answer() -> None:
    loads, uses = (np.repeat(each, 50) for each in FLATTENING)
    assert exhausted_at(loads, uses, 1.0) is None


def test_a_load_beyond_what_matters_is_no_answer() -> None:
    assert exhausted_at(LOADS, 5 * LOADS, 4000, highest_load=500) is None
    assert exhausted_at(LOADS, 5 * LOADS, 2000, highest_load=500) is not None


def test_demand_goes_on_beyond_the_ceiling() -> None:
    uses = np.minimum(5 * LOADS, 64)
    assert demand_at(LOADS, uses, 64, 80) == pytest.approx(400)
    assert demand_at(LOADS, np.full(len(LOADS), 64.0), 64, 80) is None


def test_a_flat_use_is_not_extrapolated_along_noise() -> None:
    random = np.random.default_rng(7)
    wanted = demand_at(LOADS, 100 + random.normal(0, 5, len(LOADS)), 1000, 8000)
    assert wanted == pytest.approx(100, abs=5)


def test_a_ceiling_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="ceiling"):
        exhausted_at(LOADS, LOADS, 0)
    with pytest.raises(ValueError, match="one use per load"):
        demand_at(LOADS, LOADS[:3], 10, 1)


@example([(1.0, 0.0), (2.0, 1.8679900892590345e-213)], 1.0)
@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0, 1e9)), max_size=12), st.floats(1, 1e9))
def test_every_answer_is_finite_and_ordered(points: list[tuple[float, float]], ceiling: float) -> None:
    loads, uses = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    found = exhausted_at(loads, uses, ceiling)
    if found is not None:
        assert np.isfinite([found.low, found.load, found.high]).all()
        assert found.low <= found.load <= found.high
