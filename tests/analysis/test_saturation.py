"""The load at which a limit runs out: found, bracketed or refused."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import t as student

from loadframe.analysis.saturation import demand_at, over_load

LOADS = np.repeat([5.0, 10, 20, 40, 80], 3)


def test_tables_per_job_run_out_where_the_cache_is_full() -> None:
    uses = np.minimum(5 * LOADS, 64)
    found = over_load(LOADS, uses, 64)
    assert found is not None
    assert found.load == pytest.approx(12.8)
    assert 10 <= found.low <= 12.8 <= found.high <= 20


def test_a_ceiling_not_reached_yet_is_predicted_with_an_interval() -> None:
    random = np.random.default_rng(5)
    inside = 0
    for _ in range(200):
        found = over_load(LOADS, 30 + 5 * LOADS + random.normal(0, 10, len(LOADS)), 2000)
        assert found is not None
        inside += found.low <= (2000 - 30) / 5 <= found.high
    assert inside >= 180


def test_the_ends_are_those_of_fieller() -> None:
    uses = 30 + 5 * LOADS + np.random.default_rng(8).normal(0, 10, len(LOADS))
    found = over_load(LOADS, uses, 700)
    assert found is not None
    slope, intercept = np.polyfit(LOADS, uses, 1)
    error = math.sqrt(((uses - intercept - slope * LOADS) ** 2).sum() / (len(LOADS) - 2))
    distance = (LOADS - LOADS.mean()) @ (LOADS - LOADS.mean())
    for end in (found.low, found.high):
        spread = math.sqrt(1 / len(LOADS) + (end - LOADS.mean()) ** 2 / distance)
        assert abs(intercept + slope * end - 700) == pytest.approx(student.ppf(0.975, len(LOADS) - 2) * error * spread)


def test_two_exact_points_give_a_wide_interval() -> None:
    found = over_load(np.array([10.0, 20.0]), np.array([50.0, 100.0]), 400)
    assert found is not None
    assert found.load == pytest.approx(80)
    assert found.low >= 20
    assert found.high - found.low > 0.2 * found.load


def test_a_use_that_does_not_grow_never_runs_out() -> None:
    random = np.random.default_rng(6)
    flat = [over_load(LOADS, 100 + random.normal(0, 5, len(LOADS)), 1000) for _ in range(200)]
    assert sum(found is None for found in flat) >= 190
    assert over_load(LOADS, 100 + 0.01 * LOADS, 1000) is None
    assert over_load(LOADS, 500 - LOADS, 1000) is None
    assert over_load(np.array([5.0]), np.array([10.0]), 1000) is None


@pytest.mark.parametrize("flat", [(0.95, 0.95), (0.95, 0.95, 0.97, 0.96), (0.95, 1.0, 1.02)])
def test_a_use_that_something_else_holds_up_is_full_nowhere(flat: tuple[float, ...]) -> None:
    """Seen: 0.5 cores with one worker, 0.95 with 2 and with 4, of 2: "CPUs, at about 22 workers (extrapolated)"."""
    uses = np.repeat([0.25, 0.5, *flat], 3)
    loads = np.repeat([0.5 * 2**at for at in range(2 + len(flat))], 3)
    assert over_load(loads, uses, 4.0) is None
    assert over_load(loads, uses + np.random.default_rng(3).normal(0, 0.01, len(uses)), 4.0) is None


def test_levels_at_which_the_use_was_held_up_move_no_load() -> None:
    loads, uses = np.array([1.0, 2, 4, 8, 16, 32]), np.array([10.0, 20, 40, 78, 79, 100])
    found = over_load(loads, uses, 100)
    assert found is not None and found.how == "measured"
    assert (found.low, found.high) == (16, 32)


LOCK = (np.array([1.0, 1, 1, 2, 2, 2, 4, 4, 4]), np.array([0.78, 0.8, 0.81, 0.83, 0.84, 0.89, 0.92, 0.93, 0.96]))
"""Measured: one writer lock. Throughput was 40,000/s at 1, 2 and 4 workers."""


def test_where_throughput_is_flat_the_lowest_load_and_the_ceiling_say_where_it_is_used_up() -> None:
    """Seen: a line through the plateau, "the writer lock at 5.8 workers", of one that is why throughput is flat."""
    found = over_load(*LOCK, 1.0, flat_from=1.0)
    assert found is not None and (found.how, found.method) == ("measured", "proportion")
    assert found.low == pytest.approx(1 / 0.8) and found.high == 4


def test_a_rate_far_below_its_ceiling_where_throughput_is_flat_is_used_up_nowhere() -> None:
    loads, uses = LOCK
    assert over_load(loads, uses, 1.3) is not None
    assert over_load(loads, uses, 1.3, flat_from=1.0) is None


def test_levels_before_the_plateau_have_the_line() -> None:
    loads, uses = np.array([1.0, 2, 4, 8, 16, 32]), np.array([0.11, 0.2, 0.4, 0.81, 0.93, 0.94])
    found = over_load(loads, uses, 1.0, flat_from=16.0)
    assert found is not None and (found.how, found.method) == ("measured", "line")
    assert found.load == pytest.approx(10, abs=0.3) and (found.low >= 8, found.high <= 16) == (True, True)


def test_what_goes_on_growing_is_not_held_up() -> None:
    assert over_load(LOADS, 50 + 0.5 * LOADS, 120) is not None
    assert over_load(np.array([1.0, 2, 4, 8]), np.array([10.0, 19, 35, 60]), 100) is not None


def test_measured_is_told_from_extrapolated() -> None:
    measured, beyond = over_load(LOADS, np.minimum(5 * LOADS, 64), 64), over_load(LOADS, 5 * LOADS, 500)
    assert measured is not None and (measured.how, measured.method) == ("measured", "line")
    assert beyond is not None and (beyond.how, beyond.method) == ("extrapolated", "line")


def test_beside_a_server_no_numpy_is_loaded() -> None:
    """The lasting process of a watch looks for leaks with it."""
    code = "import sys, loadframe.analysis.saturation; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_with_one_level_below_the_ceiling_the_answer_is_the_bracket() -> None:
    found = over_load(np.array([5.0, 20.0, 40.0]), np.array([25.0, 64.0, 64.0]), 64)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(12.8), 20)  # in proportion: 25 / 5 x 12.8 = 64
    assert found.load == pytest.approx(16)


def test_a_ceiling_reached_everywhere_was_reached_at_the_lowest_load() -> None:
    found = over_load(LOADS, np.full(len(LOADS), 64.0), 64)
    assert found is not None
    assert (found.low, found.load, found.high) == (5, 5, 5)


FLATTENING = (np.array([10.0, 20.0, 30.0, 40.0]), np.array([0.3, 0.6, 0.9, 0.95]))
"""Their line is 1 at 38.9, and 0.95 was seen at 40."""


def test_a_line_that_what_was_seen_refutes_leaves_the_bracket() -> None:
    loads, uses = (np.append(each, last) for each, last in zip(FLATTENING, (60.0, 1.0), strict=True))
    found = over_load(np.repeat(loads, 50), np.repeat(uses, 50), 1.0)
    assert found is not None and (found.low, found.high) == (40, 60) and 40 < found.load < 60


def test_a_line_that_is_full_below_the_highest_load_is_no_answer() -> None:
    loads, uses = (np.repeat(each, 50) for each in FLATTENING)
    assert over_load(loads, uses, 1.0) is None


def test_a_load_beyond_what_matters_is_no_answer() -> None:
    assert over_load(LOADS, 5 * LOADS, 4000, furthest=500) is None
    assert over_load(LOADS, 5 * LOADS, 2000, furthest=500) is not None


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
        over_load(LOADS, LOADS, 0)
    with pytest.raises(ValueError, match="one use per load"):
        demand_at(LOADS, LOADS[:3], 10, 1)


@example([(1.0, 0.0), (2.0, 1.8679900892590345e-213)], 1.0)
@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.floats(0, 1e9)), max_size=12), st.floats(1, 1e9))
def test_every_answer_is_finite_and_ordered(points: list[tuple[float, float]], ceiling: float) -> None:
    loads, uses = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    found = over_load(loads, uses, ceiling)
    if found is not None:
        assert np.isfinite([found.low, found.load, found.high]).all()
        assert found.low <= found.load <= found.high
