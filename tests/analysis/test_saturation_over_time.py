"""When a limit runs out by the clock: leaks are seen with their date, and what only wanders is left alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.analysis import series
from loadframe.analysis.saturation import FEWEST_BATCHES, FORESIGHT, over_time, residuals

TIMES = np.arange(60.0) * 10


def wandering(rng: np.random.Generator, kept: float, deviation: float) -> np.ndarray:
    series = np.zeros(len(TIMES))
    for at, news in enumerate(rng.normal(0, deviation, len(TIMES))):
        series[at] = kept * series[at - 1] + news if at else news
    return series


def batches(uses: np.ndarray) -> Sequence[series.Row]:
    rows = list(zip(TIMES.tolist(), uses.tolist(), strict=True))
    return series.independent(rows, residuals, fitted=2, fewest=FEWEST_BATCHES)


def test_a_steady_leak_has_a_date() -> None:
    found = over_time(TIMES, 100 + 0.5 * TIMES, 1000.0)
    assert found is not None
    assert found.load == pytest.approx(1800 - TIMES[-1])
    assert found.low <= found.load <= found.high


@pytest.mark.parametrize(("kept", "least"), [(0.0, 0.9), (0.5, 0.85), (0.8, 0.75)])
def test_the_interval_holds_where_readings_are_alike(kept: float, least: float) -> None:
    rng = np.random.default_rng(7)
    true = (100 - 20) / 0.05 - TIMES[-1]
    found = [over_time(TIMES, 20 + 0.05 * TIMES + wandering(rng, kept, 2), 100.0) for _ in range(80)]
    said = [one for one in found if one is not None]
    assert len(said) > 30
    assert np.mean([one.low <= true <= one.high for one in said]) >= least


@pytest.mark.parametrize(("kept", "deviation", "most"), [(0.0, 10, 0.05), (0.8, 5, 0.1), (1.0, 1, 0.15)])
def test_what_only_wanders_runs_out_seldom(kept: float, deviation: float, most: float) -> None:
    rng = np.random.default_rng(3)
    found = [over_time(TIMES, 50 + wandering(rng, kept, deviation), 100.0) for _ in range(100)]
    assert np.mean([one is not None for one in found]) <= most


def test_what_falls_or_stays_does_not_run_out() -> None:
    assert over_time(TIMES, 500 - 0.1 * TIMES, 1000.0) is None
    assert over_time(TIMES, np.full(60, 500.0), 1000.0) is None


def test_at_the_ceiling_it_is_now() -> None:
    found = over_time(TIMES, np.minimum(1000.0, 5 * TIMES), 1000.0)
    assert found is not None
    assert (found.load, found.low, found.high) == (0, 0, 0)


def test_a_ceiling_touched_and_left_again_has_no_date() -> None:
    uses = np.minimum(1000.0, 5 * TIMES)
    uses[-10:] = 300
    assert over_time(TIMES, uses, 1000.0) is None


def test_too_few_readings_and_too_far_ahead_say_nothing() -> None:
    assert over_time(TIMES[:4], 100 + TIMES[:4], 1000.0) is None
    slope = 900 / (FORESIGHT + 2) / TIMES[-1]
    assert over_time(TIMES, 100 + slope * TIMES, 1000.0) is None


def test_white_readings_stay_as_they_are_and_alike_ones_are_averaged() -> None:
    rng = np.random.default_rng(5)
    alternating = 50 + np.where(np.arange(60) % 2, 1.0, -1.0)
    assert len(batches(alternating)) == 60
    assert len(batches(50 + wandering(rng, 0.95, 1))) < 20


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="one use per load"):
        over_time(TIMES, TIMES[:-1], 10.0)
    with pytest.raises(ValueError, match="ceiling"):
        over_time(TIMES, TIMES * 0 - 1, -1.0 - 1e-9)


@given(st.lists(st.floats(0, 1e12), max_size=70), st.floats(1e-3, 1e12))
def test_never_a_crash_and_never_the_past(uses: list[float], ceiling: float) -> None:
    found = over_time(np.arange(float(len(uses))), np.array(uses), ceiling)
    if found is not None:
        assert 0 <= found.low <= found.load <= found.high
        assert len(uses) >= FEWEST_BATCHES or uses[-1] >= 0.97 * ceiling
