"""The search on made-up surfaces: it gets there, keeps to what is allowed, and is not fooled by noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import fmean

import pytest

from loadframe_tune.search import STARTS, Outcome, Point, Search, Space, dimension

NOISE = 0.03
SPACE = Space(
    (
        dimension("pool", [1, 2, 4, 8, 16, 32], 1, ordered=True, bytes_each=1),
        dimension("threads", [1, 2, 4, 8, 16], 4, ordered=True),
        dimension("method", ["a", "b", "c"], "a", ordered=False),
        dimension("idle", [0, 1, 2], 0, ordered=True),
    )
)
Truth = Callable[[Point], float]


def hill(point: Point) -> float:
    """More of the first is better, of the second a middle, of the third one word; the last one does nothing."""
    pool, threads, method, _ = point
    return 0.12 * pool - 0.1 * (threads - 1) ** 2 + (0.0, -0.5, 0.25)[method] + 0.1


def flat(point: Point) -> float:
    """Nothing helps."""
    return -0.05 * abs(point[1] - SPACE.start[1])


def run(search: Search, truth: Truth, trials: int, *, seed: int = 1, noise: float = NOISE) -> None:
    chance = random.Random(seed)
    for _ in range(trials):
        point = search.propose().point
        search.observe(Outcome(point, truth(point) + chance.gauss(0, noise)))


@pytest.mark.parametrize("seed", range(3))
def test_most_of_the_gain_is_found_in_few_trials(seed: int) -> None:
    """270 points; a tenth of them would be 27 trials."""
    search = Search(SPACE, seed=seed)
    run(search, hill, 27, seed=seed)
    best = search.best()
    assert hill(best) >= 0.8 * hill((5, 1, 2, 0))
    assert search.expected_gain(best) == pytest.approx(math.exp(hill(best) - hill(SPACE.start)), rel=0.25)


def test_the_start_comes_first_then_what_the_diagnosis_asks_for() -> None:
    search = Search(SPACE, tries=[{"method": "c"}, {"pool": 8}, {"unknown": 3}], seed=0)
    run(search, hill, STARTS + 2, noise=0)
    assert [outcome.point for outcome in search.outcomes] == [SPACE.start] * STARTS + [(0, 2, 2, 0), (3, 2, 0, 0)]


def test_where_nothing_is_untried_what_is_known_less_is_measured_again() -> None:
    """Three trials of the start, one of the other word, which came out a little lower: that may have been bad luck."""
    two = Space((dimension("method", ["a", "b"], "a", ordered=False),))
    search = Search(two, seed=0)
    for point, value in ((two.start, 0.1), (two.start, 0.0), (two.start, 0.05), ((1,), 0.0)):
        search.observe(Outcome(point, value))
    again = search.propose()
    assert (again.reason, again.point) == ("again", (1,))


def test_one_lucky_trial_is_not_taken_at_its_word() -> None:
    """A gain of 40 % in one of eight noisy trials of things that do nothing: after shrinkage much less is expected."""
    search = Search(SPACE, seed=0)
    for point in [SPACE.start, SPACE.start, (1, 2, 0, 0), (0, 2, 1, 0), (0, 1, 0, 0), (2, 2, 0, 0), (0, 2, 2, 0)]:
        search.observe(Outcome(point, 0.15 if sum(point) % 2 else -0.15))
    search.observe(Outcome((0, 2, 0, 1), math.log(1.4)))
    assert search.expected_gain((0, 2, 0, 1)) < 1.25


@pytest.mark.long
def test_where_nothing_helps_little_is_promised() -> None:
    promised = []
    for seed in range(4):
        search = Search(SPACE, seed=seed)
        run(search, flat, 20, seed=seed)
        promised.append(search.expected_gain(search.best()))
    assert fmean(promised) < 1.05


def test_what_does_nothing_is_left_as_it_was() -> None:
    """A point that was tried with a change that does nothing is recommended without it."""
    search = Search(SPACE, seed=0)
    for idle in (0, 1, 2):
        for pool in (0, 5):
            for _ in range(2):
                search.observe(Outcome((pool, 2, 0, idle), hill((pool, 2, 0, idle))))
    assert search.best() == (5, 2, 0, 0)


def test_what_failed_in_a_proof_is_passed_over_with_all_that_is_as_good_as_that() -> None:
    search = Search(SPACE, seed=0)
    for point in ((0, 2, 0, 0), (5, 2, 0, 0), (5, 2, 0, 1), (0, 1, 0, 0), (0, 1, 0, 1)):
        for _ in range(3):
            search.observe(Outcome(point, hill(point)))
    assert search.best() == (5, 2, 0, 0)
    assert search.best([(5, 2, 0, 0)]) == (0, 1, 0, 0), "neither itself, nor with a change that does nothing"
    assert search.best([(5, 2, 0, 0), (0, 1, 0, 0)]) == SPACE.start


def test_the_blocks_of_a_failed_proof_change_what_is_thought_of_all_points() -> None:
    """Two lucky trials of the third word, alone and with more pool; with more pool it gave nothing in eight blocks."""
    search = Search(SPACE, seed=0)
    for point, value in (((0, 2, 0, 0), 0.0), ((0, 2, 2, 0), 0.3), ((3, 2, 2, 0), 0.35)):
        search.observe(Outcome(point, value))
    best, before = search.best(), search.expected_gain((0, 2, 2, 0))
    assert best[2] == 2
    for _ in range(8):
        search.observe(Outcome(SPACE.start, 0.0))
        search.observe(Outcome(best, 0.0))
    assert math.log(search.expected_gain((0, 2, 2, 0))) < 0.7 * math.log(before)


def test_nothing_is_proposed_that_does_not_fit_into_memory() -> None:
    tight = Space(SPACE.dimensions, memory_bytes=8)
    search = Search(tight, tries=[{"pool": 32}], seed=0)
    run(search, hill, 25)
    pools = {tight.dimensions[0].values[outcome.point[0]] for outcome in search.outcomes}
    assert pools <= {1, 2, 4, 8} and 8 in pools
    assert tight.dimensions[0].values[search.best()[0]] == 8


def test_what_the_target_refused_is_neither_tried_again_nor_recommended() -> None:
    search = Search(SPACE, seed=0)
    chance = random.Random(0)
    for _ in range(25):
        point = search.propose().point
        refused = point[2] == 2
        search.observe(Outcome(point, None if refused else hill(point) + chance.gauss(0, NOISE)))
    refusals = [outcome.point for outcome in search.outcomes if outcome.value is None]
    assert len(refusals) == len(set(refusals))
    assert search.best()[2] != 2


def test_where_all_else_was_refused_the_start_is_measured_on() -> None:
    only = Space((dimension("method", ["a", "b"], "a", ordered=False),))
    search = Search(only, seed=0)
    for point, value in ((only.start, 0.0), (only.start, 0.02), ((1,), None)):
        search.observe(Outcome(point, value))
    assert search.propose().point == search.best() == only.start


def test_the_same_seed_and_outcomes_give_the_same_proposals() -> None:
    wide = Space(tuple(dimension(f"s{number}", list(range(7)), 0, ordered=True) for number in range(8)))
    one, two, other = Search(wide, seed=5), Search(wide, seed=5), Search(wide, seed=6)
    for search in (one, two, other):
        run(search, lambda point: 0.02 * sum(point), 8)
    assert [each.point for each in one.outcomes] == [each.point for each in two.outcomes]
    assert [each.point for each in one.outcomes] != [each.point for each in other.outcomes]


def test_a_drifting_machine_is_not_taken_for_a_gain() -> None:
    """The machine gets faster by a third while points are tried that do nothing: less is expected than was seen."""
    search = Search(SPACE, seed=0)
    chance = random.Random(0)
    for trial in range(24):
        point = search.propose().point
        search.observe(Outcome(point, 0.012 * trial + chance.gauss(0, 0.01)))
    seen = max(outcome.value for outcome in search.outcomes if outcome.value is not None)
    assert math.log(search.expected_gain(search.best())) < 0.85 * seen


def test_what_missed_what_is_asked_is_not_recommended() -> None:
    """The third word would be best; a point that was unlucky once in two trials stays in the race."""
    search = Search(SPACE, seed=3)
    chance = random.Random(3)
    for _ in range(30):
        point = search.propose().point
        breaks = point[2] == 2
        value = -0.4 if breaks else hill(point)
        search.observe(Outcome(point, value + chance.gauss(0, NOISE), missed=breaks))
    best = search.best()
    assert best[2] == 0 and hill(best) > hill(SPACE.start)
    unlucky = Search(SPACE)
    unlucky.observe(Outcome(SPACE.start, 0.0))
    for missed in (False, True):
        unlucky.observe(Outcome((5, 2, 0, 0), 0.6, missed=missed))
    assert unlucky.best() == (5, 2, 0, 0)
    unlucky.observe(Outcome((5, 2, 0, 0), 0.6, missed=True))
    assert unlucky.best() == SPACE.start


def test_the_start_is_recommended_where_everything_misses() -> None:
    search = Search(SPACE)
    for point, value in ((SPACE.start, 0.0), ((5, 2, 0, 0), 0.6)):
        search.observe(Outcome(point, value, missed=True))
    assert search.best() == SPACE.start


def test_what_a_setting_is_worth_is_told_of_the_best_and_of_what_stays() -> None:
    search = Search(SPACE, seed=1)
    run(search, hill, 40)
    best = search.best()
    worth = search.worth(best)
    for place, (value, gain, spread) in enumerate(worth):
        plain = (*best[:place], SPACE.dimensions[place].start, *best[place + 1 :])
        with_it = (*best[:place], value, *best[place + 1 :])
        assert value != SPACE.dimensions[place].start
        assert value == best[place] or best[place] == SPACE.dimensions[place].start
        assert gain == pytest.approx(hill(with_it) - hill(plain), abs=max(0.1, 3 * spread))
        assert spread > 0
    assert worth[0][1] > 3 * worth[0][2], "the pool's worth is known"
