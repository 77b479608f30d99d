"""Verdicts: identical systems are called different as rarely as promised, real gains are found in few blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.analysis.comparison import at_each_level, combine, margin, shares, verdict, verdict_at_end
from loadframe.analysis.ladder import contrast
from loadframe.analysis.sequential import Plan
from loadframe.model import Verdict
from loadframe.runs.formats import LARGEST


def paired(
    random: np.random.Generator, blocks: int, factor: float, noise: float, levels: tuple[float, ...] = (1.0, 2.0, 4.0)
) -> tuple[dict[float, list[float]], dict[float, list[float]]]:
    """Throughputs with noise of their own, and drift that both treatments share in a block."""
    drift = np.exp(random.normal(0, 0.2, blocks))
    before = {level: list(100 * level * drift * np.exp(random.normal(0, noise, blocks))) for level in levels}
    after = {level: list(100 * level * factor * drift * np.exp(random.normal(0, noise, blocks))) for level in levels}
    return before, after


def test_identical_systems_are_rarely_called_different() -> None:
    random = np.random.default_rng(1)
    wrong = sum(verdict_at_end(*paired(random, 5, 1.0, 0.1)).decision != "no-proven-difference" for _ in range(400))
    assert wrong <= 0.05 * 400 + 2 * math.sqrt(0.05 * 0.95 * 400)


@pytest.mark.parametrize(("factor", "decision"), [(1.3, "better"), (1 / 1.3, "worse")])
def test_a_factor_of_1_3_is_found_in_six_blocks_that_differ_by_as_much(factor: float, decision: str) -> None:
    random = np.random.default_rng(3)
    found = [verdict_at_end(*paired(random, 6, factor, 0.05)) for _ in range(100)]
    assert sum(each.decision == decision for each in found) >= 95
    assert sum(each.low <= factor <= each.high for each in found) >= 90


def test_blocks_without_scatter_prove_nothing() -> None:
    """24 requests in each window of one side, 25 of the other: what is between them was rounded away."""
    found = verdict_at_end({1: [24] * 3}, {1: [25] * 3})
    assert (found.decision, found.low) == ("no-proven-difference", 1.0)
    assert found.high > 25 / 24


@pytest.mark.parametrize("requests", [24, 50])
def test_two_blocks_of_counted_requests_err_as_rarely_as_promised(requests: int) -> None:
    random = np.random.default_rng(7)
    sides = np.round(requests * np.exp(random.normal(0, 0.04, (600, 2, 2)))) / 0.3
    wrong = sum(
        verdict_at_end({1.0: list(one)}, {1.0: list(two)}).decision != "no-proven-difference" for one, two in sides
    )
    assert wrong <= 0.05 * 600 + 2 * math.sqrt(0.05 * 0.95 * 600)


def test_one_block_proves_nothing_and_shows_what_was_seen() -> None:
    found = verdict_at_end({1.0: [100], 2.0: [100]}, {1.0: [200], 2.0: [400]})
    assert found.decision == "cannot-tell"
    assert [found.low, found.high] == pytest.approx([2, 4])
    assert found.ratio == pytest.approx(math.sqrt(8))


def test_only_common_levels_and_complete_blocks_count() -> None:
    found = verdict_at_end({1.0: [10, 10, 10], 2.0: [10, 10], 9.0: [1]}, {1.0: [20, 20, 20], 2.0: [20, 20, 20]})
    assert (found.levels, found.blocks) == ((1.0, 2.0), 2)


def test_a_block_that_failed_makes_no_ratio() -> None:
    """Seen: "better, 45 times", of 0, 0, 0, 100, 100 against five times 100: what a zero counted as decided."""
    found = verdict_at_end({1.0: [100, 101, 99]}, {1.0: [0, 100, 101]})
    assert (found.has_ratio, found.decision) == (False, "cannot-tell")
    assert found.method == "1 of 6 values are zero, and of zeros no ratio is made"


@pytest.mark.parametrize(
    ("before", "after"), [([0, 0, 0], [100, 101, 99]), ([100, 101, 99], [0, 0, 0]), ([0, 0], [0, 0])]
)
def test_there_is_no_ratio_from_zeros_alone(before: list[float], after: list[float]) -> None:
    """Of a side that did nothing it cannot be told: it is neither a gain of a hundred times, nor no loss."""
    at_one = at_each_level({1.0: before, 2.0: [1, 2, 3]}, {1.0: after, 2.0: [2, 3, 4]})[0]
    kept = {(): {1.0: before}, ("wal",): {1.0: after}}
    for found in (verdict_at_end({1.0: before}, {1.0: after}), at_one, contrast(kept, [("wal",)], [()])):
        assert (found.decision, found.ratio) == ("cannot-tell", 1)
        assert found.low < 1e-9 and found.high > 1e9 and not found.block_ratios
        assert margin(found, 0.5) == margin(found, 0.5, lower_is_better=True) == "cannot-tell"


@pytest.mark.parametrize(
    ("before", "after"), [({1.0: [1]}, {2.0: [1]}), ({1.0: []}, {1.0: [1]}), ({1.0: [-1]}, {1.0: [1]}), ({}, {})]
)
def test_what_cannot_be_compared_is_refused(before: dict[float, list[float]], after: dict[float, list[float]]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        verdict_at_end(before, after)


positive = st.floats(min_value=1e-300, max_value=1e300, allow_nan=False)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=6))
def test_swapping_the_treatments_gives_the_reciprocal(pairs: list[tuple[float, float]]) -> None:
    before, after = {1.0: [pair[0] for pair in pairs]}, {1.0: [pair[1] for pair in pairs]}
    forth, back = verdict_at_end(before, after), verdict_at_end(after, before)
    for one, other in [(forth.ratio, back.ratio), (forth.low, back.high), (forth.high, back.low)]:
        assert math.isfinite(one)
        assert math.log(one) == pytest.approx(-math.log(other), abs=1e-6)
    opposite = {"better": "worse", "worse": "better"}.get(forth.decision, forth.decision)
    assert back.decision == opposite


def test_an_interval_is_never_wider_than_what_can_be_read_again() -> None:
    found = verdict_at_end({1.0: [1, 1e6]}, {1.0: [1e6, 1]}, confidence=0.999)
    assert 1 / LARGEST < found.low < found.high < LARGEST


def proven(ratio: float, low: float, high: float, levels: tuple[float, ...] = (1.0,)) -> Verdict:
    return Verdict(ratio, low, high, "better", 4, "test", (), levels)


def test_the_whole_gain_is_the_product_with_quadrature_of_intervals() -> None:
    whole = combine([proven(2, 1.8, 2.2), proven(3, 2.5, 3.6)])
    assert whole.ratio == pytest.approx(6)
    assert math.log(6 / whole.low) == pytest.approx(math.hypot(math.log(2 / 1.8), math.log(3 / 2.5)))
    assert whole.decision == "better"
    assert "different levels" not in whole.method
    assert "different levels" in combine([proven(2, 1, 3), proven(2, 1, 3, (2.0,))]).method


def test_a_single_verdict_is_the_whole_gain() -> None:
    only = proven(2, 1.8, 2.2)
    assert combine([only]) is only


def test_shares_add_up() -> None:
    gains = [proven(8, 7, 9), proven(2, 1.8, 2.2)]
    assert shares(combine(gains), gains) == pytest.approx([0.75, 0.25])
    undone = [proven(2, 1.5, 3), proven(0.5, 0.4, 0.6)]
    assert shares(combine(undone), undone) == ()


LOUD = {96.0: 0.05, 192.0: 0.05, 320.0: 0.2, 448.0: 0.2}
"""Noise of a level in memory and beyond it."""


def noisy(random: np.random.Generator, blocks: int, factor: float = 1.0) -> tuple[dict[float, list[float]], ...]:
    """Two treatments of which the second serves `factor` times as much, noisier at some levels than at others."""
    return tuple(
        {
            level: list(100 * each * np.exp(random.normal(0, noise / math.sqrt(2), blocks)))
            for level, noise in LOUD.items()
        }
        for each in (1.0, factor)
    )


@pytest.mark.parametrize("blocks", [2, 3, 4])
def test_all_levels_hold_at_once_though_some_are_louder_than_others(blocks: int) -> None:
    random = np.random.default_rng(5)
    found = [at_each_level(*noisy(random, blocks)) for _ in range(400)]
    wrong = sum(any(one.decision != "no-proven-difference" for one in levels) for levels in found)
    assert wrong <= 0.05 * 400 + 2 * math.sqrt(0.05 * 0.95 * 400)


def test_three_blocks_prove_at_a_level_what_is_plain_there() -> None:
    random = np.random.default_rng(6)
    found = [at_each_level(*noisy(random, 3, 3.0)) for _ in range(100)]
    assert sum(levels[-1].low > 1.5 for levels in found) >= 60


def test_a_level_that_is_quiet_by_chance_borrows_the_noise_of_the_others() -> None:
    before = {1.0: [100.0, 110.0, 90.0], 2.0: [100.0, 100.0, 100.0]}
    after = {1.0: [100.0, 90.0, 110.0], 2.0: [101.0, 101.0, 101.0]}
    quiet = at_each_level(before, after)[1]
    assert quiet.decision == "no-proven-difference"
    assert quiet.low < 0.9


def test_one_level_is_judged_as_by_itself_and_blocks_as_those_that_are_complete() -> None:
    before, after = {1.0: [100.0, 110.0, 90.0, 100.0]}, {1.0: [200.0, 230.0, 170.0]}
    (one,) = at_each_level(before, after)
    assert (one.ratio, one.low, one.high) == tuple(
        getattr(verdict_at_end({1.0: [100.0, 110.0, 90.0]}, after), name) for name in ("ratio", "low", "high")
    )
    assert [each.blocks for each in at_each_level({**before, 2.0: [1.0] * 3}, {**after, 2.0: [1.0] * 3})] == [3, 3]


def test_one_block_proves_nothing_at_any_level() -> None:
    found = at_each_level({1.0: [100.0], 2.0: [100.0]}, {1.0: [200.0], 2.0: [400.0]})
    assert [(one.ratio, one.decision) for one in found] == [
        (pytest.approx(2), "cannot-tell"),
        (pytest.approx(4), "cannot-tell"),
    ]


@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_who_looks_once_at_the_end_errs_as_often_as_promised_and_has_the_narrower_interval(blocks: int) -> None:
    random = np.random.default_rng(7)
    pairs = [paired(random, blocks, 1.0, 0.1, (1.0,)) for _ in range(400)]
    found = [verdict_at_end(*pair) for pair in pairs]
    wrong = sum(one.decision != "no-proven-difference" for one in found)
    assert wrong <= 0.05 * 400 + 2 * math.sqrt(0.05 * 0.95 * 400)
    sooner = verdict(*pairs[0], plan=Plan(2, 6))
    assert found[0].high / found[0].low < sooner.high / sooner.low
    assert "one look, at the end" in found[0].method


def test_the_noise_floor_is_that_of_each_side_against_itself() -> None:
    random = np.random.default_rng(31)
    held = 0
    for _ in range(200):
        found = verdict_at_end(*paired(random, 6, 3.0, 0.05))
        assert found.floor is not None
        held += found.floor[0] <= 1 <= found.floor[1]
    assert held >= 180
    assert verdict_at_end({1.0: [10.0]}, {1.0: [20.0]}).floor is None


def test_blocks_without_scatter_prove_what_their_counts_are_fine_enough_for() -> None:
    """Every request takes exactly 20 ms: each block counts the same; 196 requests are known to a few."""
    known = {1.0: (4 / 196, 26 / 1274)}
    found = verdict_at_end({1.0: [196.0] * 3}, {1.0: [1274.0] * 3}, grain=known)
    assert found.decision == "better"
    assert 6.3 < found.low < found.ratio < found.high < 6.7
    assert found.floor is None, "equal counts say nothing of the noise"
    assert verdict_at_end({1.0: [196.0] * 3}, {1.0: [200.0] * 3}, grain=known).decision == "no-proven-difference"
    assert verdict_at_end({1.0: [196.0] * 3}, {1.0: [1274.0] * 3}).decision == "no-proven-difference", (
        "how fine is not known"
    )


def test_a_coarse_count_never_widens_what_the_values_show() -> None:
    noisy = {1.0: [100.0, 101.0, 99.5, 100.4]}, {1.0: [150.0, 151.0, 149.0, 150.6]}
    assert verdict_at_end(*noisy, grain={1.0: (0.5, 0.5)}).low == verdict_at_end(*noisy).low
