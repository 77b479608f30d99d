"""The next probe halves the bracket of a cliff until it is narrow enough."""

from __future__ import annotations

import pytest

from loadframe.analysis.curve import RESOLUTION, LevelSample, fit, next_probe
from loadframe.model import Curve


def measured(levels: list[float], edge: float, kept: float = 0.4) -> Curve:
    return fit(
        [LevelSample(level, tuple((100.0 if level <= edge else 100 * kept) * f for f in (0.99, 1, 1.01)), ())
         for level in levels],
        axis="active_jobs", treatment="before",
    )  # fmt: skip


@pytest.mark.parametrize("edge", [500.0, 1280.0, 1300.0, 1900.0, 7700.0])
def test_bisection_closes_in_on_the_edge(edge: float) -> None:
    levels = [500.0, 1000, 2000, 4000, 8000, 16000]
    for _ in range(10):
        probe = next_probe(measured(levels, edge))
        if probe is None:
            break
        levels.append(probe)
    cliff = measured(levels, edge).cliff
    assert cliff is not None
    assert cliff.from_load <= edge < cliff.to_load <= cliff.from_load * (1 + RESOLUTION)
    assert len(levels) <= 6 + 4


def test_whole_levels_stop_when_no_integer_is_left() -> None:
    assert next_probe(measured([1, 2, 4], 1.5)) is None
    assert next_probe(measured([1, 3, 6], 2.0)) == 2.0
    assert next_probe(measured([5, 10, 20], 12.0)) == 14.0


def test_without_a_fall_there_is_nothing_to_bracket() -> None:
    assert next_probe(measured([5, 10, 20, 40], 99)) is None


def test_a_large_drop_of_a_decline_is_bisected_a_small_one_is_not() -> None:
    curve = measured([5, 10, 20, 40, 80], 12, kept=0.7)
    assert curve.shape == "decline"
    assert next_probe(curve) == 14.0
    smaller = measured([5, 10, 20, 40, 80], 12, kept=0.8)
    assert smaller.shape == "decline"
    assert next_probe(smaller) is None
