"""How far a clock is off: the true offset lies within the bound, whatever the messages took."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe_fleet.clocks import Exchange, drift, offset

times = st.floats(0.0001, 2.0)


def exchanged(at_s: float, there_s: float, back_s: float, ahead_s: float, rate: float = 0.0) -> Exchange:
    seen_s = at_s + there_s
    return Exchange(at_s, seen_s * (1 + rate) + ahead_s, seen_s + back_s)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=20), st.floats(-1e5, 1e5))
def test_the_true_offset_is_within_the_bound(ways: list[tuple[float, float]], ahead_s: float) -> None:
    found = offset([exchanged(100.0 + 5 * at, *way, ahead_s) for at, way in enumerate(ways)])
    assert abs(found.offset_s - ahead_s) <= found.uncertainty_s + 1e-9
    assert found.round_trip_s == pytest.approx(min(sum(way) for way in ways), abs=1e-9)


@given(times, times, times, times, st.floats(-0.001, 0.001), st.floats(2.0, 1000.0))
def test_the_true_drift_is_within_its_bounds(
    there_a: float, back_a: float, there_b: float, back_b: float, rate: float, apart_s: float
) -> None:
    first = offset([exchanged(100.0, there_a, back_a, 3.0, rate)])
    last = offset([exchanged(104.0 + apart_s, there_b, back_b, 3.0, rate)])
    found = drift(first, last)
    # the offset is that of the middle of an exchange; within it the clock itself drifts
    slack = abs(rate) * (there_a + back_a + there_b + back_b) / (last.at_s - first.at_s) + 1e-9
    assert found.low - slack <= rate <= found.high + slack


def test_what_is_no_measurement_is_refused() -> None:
    with pytest.raises(ValueError, match="no exchange"):
        offset([])
    with pytest.raises(ValueError, match=r"0\.5 s before it was asked for"):
        offset([Exchange(2.0, 7.0, 1.5)])
    one = offset([Exchange(1.0, 7.0, 1.5)])
    with pytest.raises(ValueError, match="one moment"):
        drift(one, one)
