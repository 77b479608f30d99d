"""Two capacities on one host, each known to its bounds."""

from __future__ import annotations

import pytest

from loadframe.model import Capacity, CapacityObjective
from loadframe.model.capacity import CapacityEnd
from loadframe.reporting.json_shapes import verdict_json
from loadframe_fleet.trials import against_start


def capacity(load: float | None, low: float | None, high: float | None, end: CapacityEnd = "found") -> Capacity:
    return Capacity(
        axis="rate", axis_unit="", objective=CapacityObjective(), end=end, load=load, low=low, high=high,
        error_probability=0.05, precision=0.05, held_s=1.0, load_seconds=1.0, seconds_above_share=0.0, open_loop=True,
        levels=(), trials=(),
    )  # fmt: skip


QUIET = [capacity(100, 98, 102)] * 3
LOUD = [capacity(100, 98, 102), capacity(130, 128, 132), capacity(110, 108, 112)]


def test_bounds_are_of_both_brackets() -> None:
    found = against_start("more", "one", QUIET, capacity(200, 196, 204)).verdict
    assert found.ratio == 2.0 and found.decision == "better"
    assert found.low == pytest.approx(196 / 102) and found.high == pytest.approx(204 / 98)


def test_what_searches_of_the_same_differ_by_is_allowed_for_on_both_sides() -> None:
    found = against_start("more", "one", LOUD, capacity(140, 138, 142)).verdict
    assert found.decision == "no-proven-difference", "130 was found with the same settings, too"
    assert found.low == pytest.approx(138 / 1.3 / 132) and found.high == pytest.approx(142 * 1.3 / 98)


@pytest.mark.parametrize(
    ("other", "ratio", "decision"),
    [
        (capacity(300, 300, None, "above-range"), 300 / 102, "better"),
        (capacity(None, None, 50, "below-range"), 50 / 98, "worse"),
        (capacity(100, None, None, "undecided"), 1.0, "cannot-tell"),
        (capacity(80, 78, 82), 0.8, "worse"),
    ],
)
def test_an_open_end_proves_what_the_other_end_shows(other: Capacity, ratio: float, decision: str) -> None:
    found = against_start("more", "one", QUIET, other).verdict
    assert (found.ratio, found.decision) == (ratio, decision)
    shown = verdict_json(found)
    assert (shown["low"] is None) == (other.low is None) and (shown["high"] is None) == (other.high is None)
    assert found.has_ratio == (shown["ratio"] is not None) == (other.low is not None or other.high is not None)


def test_nothing_is_held_against_a_search_that_found_nothing() -> None:
    with pytest.raises(ValueError, match="found theirs"):
        against_start("more", "one", [capacity(None, None, 50, "below-range")], capacity(80, 78, 82))
