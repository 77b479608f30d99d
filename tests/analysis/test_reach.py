"""What a change is worth wherever the levels end."""

from __future__ import annotations

import pytest

from loadframe.analysis.curve import LevelSample, fit
from loadframe.analysis.divergence import reach
from loadframe.model import Curve

LEVELS = (16, 64, 256, 1024, 4096)


def curve(throughputs: list[float], last: int = len(LEVELS), *, blocks: int = 3) -> Curve:
    """Blocks of 1 % noise around these throughputs at the first levels."""
    near = (0.99, 1.0, 1.01)[:blocks]
    levels = zip(LEVELS[:last], throughputs, strict=False)
    samples = [LevelSample(level, tuple(value * each for each in near), ()) for level, value in levels]
    return fit(samples, axis="clients", treatment="A")


@pytest.mark.parametrize("last", [3, 4, 5])
def test_a_collapse_that_is_gone_does_not_grow_with_the_levels(last: int) -> None:
    found = reach(curve([500, 1000, 600, 200, 20], last), curve([500, 1000, 1000, 990, 980], last))
    assert found is not None
    assert found.ratio == pytest.approx(1.0)
    assert found.low < 1 < found.high


def test_a_higher_peak_has_an_interval_and_the_bend_moves() -> None:
    found = reach(curve([500, 1000, 1000, 1000, 1000]), curve([500, 1500, 3000, 3000, 3000]))
    assert found is not None
    assert 1 < found.low < 3 < found.high < 3.3
    before, after = found.knee
    assert before is not None and after is not None and after.load > before.load


def test_single_blocks_have_a_ratio_without_an_interval_and_nothing_done_has_none() -> None:
    found = reach(curve([500, 1000, 1000], 3, blocks=1), curve([500, 2000, 2000], 3, blocks=1))
    assert found is not None
    assert (found.ratio, found.low, found.high) == pytest.approx((2.0, 2.0, 2.0))
    assert reach(curve([0, 0, 0], 3), curve([500, 2000, 2000], 3)) is None


def test_a_peak_below_the_highest_level_does_not_still_grow() -> None:
    """Too noisy for a bend: 9,900, 37,000, 38,300 and 34,900/s at 1 to 8 connections were said to grow still."""

    def noisy(values: list[float]) -> Curve:
        samples = [LevelSample(2.0**n, (0.7 * value, value, 1.4 * value), ()) for n, value in enumerate(values)]
        return fit(samples, axis="clients", treatment="A")

    before = noisy([22, 44, 88, 176])
    for values, grows in (([9_900, 37_000, 38_300, 34_900], False), ([9_900, 19_000, 38_300, 77_000], True)):
        after = noisy(values)
        found = reach(before, after)
        assert found is not None
        assert found.rising is grows
        assert any("still grows" in warning for warning in after.warnings) is grows
