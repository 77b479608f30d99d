"""Samples of unknown origin: a difference is called one only where neither chance nor memory nor drift explains it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.analysis.comparison import margin
from loadframe.analysis.quantity import TooFewError
from loadframe.analysis.samples import PRIOR, Between, apart, learnt, needed, paired, unpaired
from loadframe.analysis.series import MOST_BATCHES, batched, means
from loadframe.model import Verdict


def noisy(count: int, seed: int, level: float = 100.0, share: float = 0.02) -> list[float]:
    return list(level * np.exp(np.random.default_rng(seed).normal(0, share, count)))


@pytest.mark.parametrize("count", [40, 60, 1000])
@pytest.mark.parametrize(("factor", "decision"), [(1.1, "better"), (1 / 1.1, "worse")])
def test_a_tenth_is_found_in_white_noise(count: int, factor: float, decision: str) -> None:
    found = unpaired(noisy(count, 1), noisy(count, 2, 100 * factor))
    assert found.decision == decision
    assert found.low <= factor <= found.high


@pytest.mark.parametrize("count", [5, 10, 30])
def test_few_values_have_the_interval_of_the_values(count: int) -> None:
    found = unpaired(noisy(count, 1, share=0.005), noisy(count, 2, 80, share=0.005))
    assert found.decision == "worse"
    assert 0.7 < found.low < 0.8 < found.high < 0.9
    six = unpaired(noisy(6, 3, 50, share=0.01), noisy(6, 4, 325, share=0.01))
    assert 6 < six.low < 6.5 < six.high < 7


@pytest.mark.parametrize("judge", [paired, unpaired])
def test_a_tenth_at_half_a_per_cent_of_noise_is_always_found_in_five_values(judge: Callable[..., Verdict]) -> None:
    for seed in range(200):
        sides = noisy(5, 2 * seed, share=0.005), noisy(5, 2 * seed + 1, 90, share=0.005)
        assert judge(*sides).decision == "worse"


def test_sessions_differ_by_more_than_their_values_show() -> None:
    """Two sides that were measured apart: what sessions differ by is in the interval, and stands beside it."""
    found = unpaired(noisy(1000, 1), noisy(1000, 2, 103))
    assert found.decision == "no-proven-difference"
    assert found.sessions is not None
    assert (found.sessions.share, found.sessions.learnt_from) == (pytest.approx(0.05), 0)
    assert 1.02 < found.sessions.low < 1.03 < found.sessions.high < 1.04
    assert needed(found, "values").count is None, "no number of values makes the sessions differ less"
    assert paired(noisy(20, 1), noisy(20, 2)).sessions is None


@pytest.mark.parametrize(("spread", "decision"), [(0.0, "better"), (0.1, "no-proven-difference")])
def test_what_sessions_differ_by_is_learnt_from_equal_ones(spread: float, decision: str) -> None:
    levels = 100 * np.exp(np.random.default_rng(31).normal(0, spread, 20))
    between = learnt([noisy(50, seed, level) for seed, level in enumerate(levels, start=50)])
    assert between.learnt_from == 20
    assert unpaired(noisy(200, 1), noisy(200, 2, 104), between=between).decision == decision
    few = learnt([noisy(50, seed, level) for seed, level in enumerate(levels[:4], start=50)])
    assert few.added >= PRIOR.added, "four sessions may be alike by chance"


@pytest.mark.parametrize("sessions", [3, 5, 9])
def test_few_sessions_that_differ_by_less_than_the_prior_leave_it_as_it_is(sessions: int) -> None:
    levels = 100 * np.exp(np.linspace(-0.006, 0.006, sessions))
    between = learnt([noisy(200, seed, level, share=0.001) for seed, level in enumerate(levels)])
    assert (between.added, between.learnt_from) == (PRIOR.added, sessions)


@pytest.mark.long
@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_equal_sessions_are_not_called_different_more_often_than_promised(memory: float) -> None:
    """Five values of AR(1) noise do not show it; the sessions before them do."""
    random, wrong = np.random.default_rng(32), 0
    for _ in range(100):
        noise = random.normal(0, 0.1, (22, 5))
        for i in range(1, 5):
            noise[:, i] = memory * noise[:, i - 1] + math.sqrt(1 - memory**2) * noise[:, i]
        sides = [list(np.exp(values)) for values in noise]
        wrong += unpaired(*sides[:2], between=learnt(sides[2:])).decision != "no-proven-difference"
    assert wrong <= 0.05 * 100 + 2 * math.sqrt(0.05 * 0.95 * 100)


@pytest.mark.parametrize("sessions", [10, 20, 30])
def test_what_few_sessions_show_holds_for_the_next_two(sessions: int) -> None:
    """Sessions that differ by far more than their values scatter: ten of them show their 95 % only roughly."""
    random = np.random.default_rng(33)
    one, two = np.triu_indices(sessions, 1)
    levels = random.normal(0, 1, (4000, sessions))
    differences = levels[:, two] - levels[:, one]
    width = apart(differences, np.zeros_like(differences), sessions).reach(0.0, 1)
    following = random.normal(0, math.sqrt(2), (4000, 20))
    assert (np.abs(following) > width[:, None]).mean() <= 0.054


def test_sides_like_the_equal_sessions_are_judged_by_what_those_differ_by() -> None:
    """Of thirty sessions that is known better than the values of two show it; of others it is not known."""
    between = Between(0.03, 0.05, seen=0.06, learnt_from=30, values=50, sides=(1, 1))
    assert between.reach(0.055, 50) == 0.05
    assert between.reach(0.055, 49) == math.hypot(0.055, 0.03), "fewer values"
    assert between.reach(0.065, 50) == math.hypot(0.065, 0.03), "values that scatter more"
    assert replace(between, sides=(4, 4)).reach(0.055, 50) == 0.025


def test_what_whole_sessions_differ_by_is_used_where_it_is_clearly_narrower() -> None:
    """Values of AR(1) noise that is as long as half a session do not show by how much their means differ."""
    random = np.random.default_rng(36)
    alike, slow = random.normal(0, 0.1, (2, 30, 50))
    for i in range(1, 50):
        slow[:, i] = 0.9 * slow[:, i - 1] + math.sqrt(1 - 0.9**2) * slow[:, i]
    drifts = np.linspace(0, 1, 50) * random.normal(0, 1, (30, 1))
    assert learnt([list(np.exp(values)) for values in slow]).whole < 0.2
    assert learnt([list(np.exp(values)) for values in alike + drifts]).whole == math.inf, "the values show it"


@pytest.mark.parametrize("count", [20, 25, 30])
def test_the_median_of_some_values_has_a_finite_interval(count: int) -> None:
    for seed in range(100):
        found = unpaired(noisy(count, 2 * seed), noisy(count, 2 * seed + 1), by="p50")
        assert 0.9 < found.low <= found.high < 1.1


def test_how_many_values_would_tell() -> None:
    """If they go on like these: the same again, and again."""
    ten = [100 * math.exp(away) for away in (-0.1, 0.1, 0.05, -0.05, 0.12, -0.12, 0.02, -0.02, 0.08, -0.08)]
    less = [0.93 * value for value in ten]
    found = unpaired(ten, less)
    assert found.decision == "no-proven-difference"
    count = needed(found, "values").count
    assert count is not None and 10 < count <= 40
    assert unpaired(ten * 4, less * 4).decision == "worse"
    blocks = paired(noisy(5, 1, share=0.08), noisy(5, 2, 97, share=0.08))
    assert blocks.decision == "no-proven-difference"
    assert (needed(blocks, "blocks").count or 0) > 5


@pytest.mark.parametrize("by", ["mean", "p50", "p99", "max"])
def test_equal_heavy_tails_are_rarely_called_different(by: str) -> None:
    random = np.random.default_rng(21)
    wrong = 0
    for _ in range(300):
        sides = random.lognormal(1, 1, (2, 1500))
        wrong += unpaired(list(sides[0]), list(sides[1]), by=by).decision != "no-proven-difference"
    assert wrong <= 0.05 * 300 + 2 * math.sqrt(0.05 * 0.95 * 300)


@pytest.mark.parametrize("by", ["mean", "p50", "p99"])
def test_a_quantity_has_its_own_ratio_inside_its_interval(by: str) -> None:
    random = np.random.default_rng(22)
    held = 0
    for _ in range(100):
        before, after = random.lognormal(1, 0.7, (2, 2000))
        found = unpaired(list(before), list(1.3 * after), by=by)
        held += found.low <= 1.3 <= found.high
    assert held >= 90


def test_a_quantile_needs_values_beyond_it() -> None:
    with pytest.raises(TooFewError, match="1000 of each side"):
        unpaired(noisy(400, 1), noisy(400, 2), by="p99")


@pytest.mark.parametrize("count", [5, 10])
def test_blocks_whose_sides_have_nothing_in_common_find_as_much_as_unpaired_values(count: int) -> None:
    random = np.random.default_rng(23)
    found = wrong = 0
    for _ in range(400):
        one, two = 100 * np.exp(random.normal(0, 0.02, (2, count)))
        found += paired(list(one), list(1.05 * two)).decision == "better"
        wrong += paired(list(one), list(two)).decision != "no-proven-difference"
    assert found >= (0.65 if count == 5 else 0.9) * 400
    assert wrong <= 0.05 * 400 + 2 * math.sqrt(0.05 * 0.95 * 400)


def test_equal_samples_are_not_different() -> None:
    found = unpaired(noisy(40, 3), noisy(40, 4))
    assert found.decision == "no-proven-difference"
    assert found.low < 1 < found.high


def test_memory_of_neighbours_widens_the_interval() -> None:
    random = np.random.default_rng(6)
    white = random.normal(0, 0.02, (2, 60))
    remembering = white.copy()
    for i in range(1, 60):
        remembering[:, i] = 0.9 * remembering[:, i - 1] + math.sqrt(1 - 0.81) * white[:, i]
    narrow, wide = (unpaired(*(100 * np.exp(each)).tolist()).sessions for each in (white, remembering))
    assert narrow is not None and wide is not None
    assert math.log(wide.high / wide.low) > 2 * math.log(narrow.high / narrow.low)


def test_a_drift_that_goes_on_from_one_sample_into_the_other_is_no_difference() -> None:
    series = np.array(noisy(80, 7)) * np.exp(0.004 * np.arange(80))
    assert unpaired(series[:40].tolist(), series[40:].tolist()).decision == "no-proven-difference"


def test_a_drift_shared_in_blocks_cancels() -> None:
    drift = np.exp(0.05 * np.arange(16))
    before, after = np.array(noisy(16, 8)) * drift, np.array(noisy(16, 9, 120)) * drift
    assert paired(before.tolist(), after.tolist()).decision == "better"
    assert unpaired(before.tolist(), after.tolist()).decision == "no-proven-difference"


def test_one_side_always_first_under_drift_proves_nothing() -> None:
    times = np.arange(40)
    series = np.array(noisy(40, 10, share=0.002)) * np.exp(0.02 * times)
    assert paired(series[::2].tolist(), series[1::2].tolist()).decision == "no-proven-difference"


def test_single_outliers_do_not_hide_a_change_in_a_long_sample() -> None:
    before, after = noisy(200, 11), noisy(200, 12, 105)
    before[::37] = [50.0] * len(before[::37])
    assert unpaired(before, after).decision == "better"


@pytest.mark.parametrize("judge", [unpaired, paired])
def test_samples_without_scatter_prove_nothing(judge: Callable[..., Verdict]) -> None:
    """100.49 and 100.51, rounded."""
    found = judge([100.0] * 5, [101.0] * 5)
    assert (found.decision, (found.sessions or found).low) == ("no-proven-difference", 1.0)
    assert found.high > found.ratio == pytest.approx(1.01)
    assert margin(found, 0.005, lower_is_better=True) == "cannot-tell"
    assert judge([100.0] * 5, [100.0] * 5).decision == "no-proven-difference"


@pytest.mark.parametrize("judge", [unpaired, paired])
def test_samples_without_scatter_are_known_to_their_last_digit(judge: Callable[..., Verdict]) -> None:
    """Seen: ten times 100 against ten times 80, "no proven difference", as if the values were known to 20 only."""
    found = judge([100.0] * 10, [80.0] * 10)
    alone = found.sessions or found
    assert (found.decision, found.ratio) == ("worse", pytest.approx(0.8))
    assert (alone.low, alone.high) == (pytest.approx(79.5 / 100.5), pytest.approx(80.5 / 99.5))
    assert judge([0.5] * 5, [0.6] * 5).decision == "no-proven-difference"
    assert judge([0.50001] * 5, [0.60001] * 5).decision == "better"


def test_two_sides_of_zeros_are_said_to_be_that() -> None:
    """Seen: "one side did nothing" of both."""
    assert unpaired([0.0] * 5, [0.0] * 5).method == "neither side did anything"
    assert unpaired([0.0] * 5, [1.0, 2.0, 3.0]).method == "one side did nothing"


@pytest.mark.parametrize("count", [3, 5])
def test_rounding_makes_no_difference_of_noise(count: int) -> None:
    """Whole numbers in steps of three standard errors, with memory: without what rounding adds, a tenth errs."""
    random = np.random.default_rng(17)
    errs = 0
    for _ in range(400):
        sides = []
        for _ in (1, 2):
            noise = random.normal(0, 1, count)
            for i in range(1, count):
                noise[i] = 0.8 * noise[i - 1] + 0.6 * noise[i]
            sides.append(list(np.round(100.5 + noise / 3)))
        errs += unpaired(*sides).decision != "no-proven-difference"
    assert errs <= 0.05 * 400 + 2 * (0.05 * 0.95 * 400) ** 0.5


def test_values_far_beyond_one_another_have_a_ratio_without_a_traceback() -> None:
    found = paired([1e-308, 2e-308, 1.5e-308], [1e308, 1.2e308, 1.1e308])
    assert all(np.isfinite(found.block_ratios))


@pytest.mark.parametrize("judged", [unpaired, paired])
@pytest.mark.parametrize("zeros", [10, 20])
def test_of_zeros_it_cannot_be_told(zeros: int, judged: Callable[..., Verdict]) -> None:
    found = judged(noisy(20, 13), [*[0.0] * zeros, *noisy(20 - zeros, 14)])
    assert (found.ratio, found.decision) == (1, "cannot-tell")
    assert needed(found, "values", edge=0.9).count is None, "no number of them would tell"


@pytest.mark.parametrize(
    ("before", "after"), [([1.0, 2.0], [1.0, 2.0, 3.0]), ([1, 2, math.nan], [1, 2, 3]), ([1, -2, 3], [1, 2, 3])]
)
def test_what_cannot_be_compared_is_refused(before: list[float], after: list[float]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unpaired(before, after)


def test_pairs_need_both_sides() -> None:
    with pytest.raises(ValueError, match="both sides"):
        paired([1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])


positive = st.floats(min_value=1e-100, max_value=1e100, allow_nan=False)


@given(st.lists(positive, min_size=3, max_size=30), st.lists(positive, min_size=3, max_size=30))
def test_swapping_the_samples_gives_the_reciprocal(before: list[float], after: list[float]) -> None:
    forth, back = unpaired(before, after), unpaired(after, before)
    assert math.log(forth.ratio) == pytest.approx(-math.log(back.ratio), abs=1e-6)
    assert forth.low <= forth.ratio * (1 + 1e-9)
    assert forth.high >= forth.ratio * (1 - 1e-9)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=200))
def test_batches_keep_short_samples_and_cut_long_ones(values: list[float]) -> None:
    batches = batched(np.array(values))
    assert len(batches) == min(len(values), MOST_BATCHES)
    assert min(values) <= batches.min() <= batches.max() <= max(values)


def test_the_variance_of_a_mean_is_right_where_the_memory_is_known() -> None:
    """10,000 batches of AR(1) noise: the estimate must be near the true variance of the mean."""
    random, r, length = np.random.default_rng(14), 0.5, 2000
    values = np.zeros((40, length))
    for i in range(1, length):
        values[:, i] = r * values[:, i - 1] + math.sqrt(1 - r * r) * random.normal(size=40)
    (found,) = means(values)
    truth = (1 + r) / (1 - r) / length
    assert 0.9 * truth < float(np.median(found.variance)) < 1.25 * truth
