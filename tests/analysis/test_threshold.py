"""What trials say of a threshold: Bayes' rule on a grid, with the noise unknown."""

from __future__ import annotations

import numpy as np
import pytest

from loadframe.analysis.threshold import LAPSE, Threshold
from loadframe.model import LoadInterval

STEP = 0.0125


def told(*trials: tuple[float, bool], guess: LoadInterval | None = None) -> Threshold:
    threshold = Threshold(50, 5000, step=STEP, guess=guess)
    for load, met in trials:
        threshold.update(load, met)
    return threshold


def width(threshold: Threshold) -> float:
    return float(np.log(threshold.at(0.975) / threshold.at(0.025)))


def test_nothing_is_known_at_first_and_probabilities_rise_with_the_load() -> None:
    threshold = told()
    below = threshold.below([25, 50, 500, 5000, 10_000])
    assert below[0] == pytest.approx(0, abs=0.01)
    assert below[2] == pytest.approx(0.5, abs=0.01)
    assert below[4] == pytest.approx(1, abs=0.01)
    assert all(np.diff(below) > 0)


def test_one_trial_far_away_leaves_the_lapse() -> None:
    """At 500, the middle: half of the weight on either side, so the odds are those of the trial."""
    assert told((500, True)).below([500])[0] == pytest.approx(LAPSE, abs=0.01)
    assert told((500, False)).below([500])[0] == pytest.approx(1 - LAPSE, abs=0.01)


def test_trials_that_contradict_each_other_leave_more_doubt_than_trials_that_agree() -> None:
    agree = told((580, True), (590, True), (600, True), (620, False), (630, False), (640, False))
    contradict = told((580, False), (590, True), (600, True), (620, False), (630, False), (640, True))
    assert 600 < agree.at(0.5) < 620
    assert 560 < contradict.at(0.5) < 660
    assert width(contradict) > 2 * width(agree)


def test_repeating_a_trial_makes_surer() -> None:
    doubts = [float(told(*[(600.0, True)] * n, (630, False)).below([600])[0]) for n in (1, 2, 4, 8)]
    assert doubts == sorted(doubts, reverse=True)
    assert doubts[-1] < doubts[0] / 5


def test_a_trial_tells_most_where_the_doubt_is() -> None:
    threshold = told((400, True), (800, False))
    low, middle, high = threshold.information([100, 565, 4000])
    assert middle > 0.4
    assert max(low, high) < middle / 3


@pytest.mark.parametrize("load", [100.0, 4000.0])
def test_a_guess_counts_until_trials_prove_it_wrong(load: float) -> None:
    guess = LoadInterval(load, load / 1.2, load * 1.2)
    assert told(guess=guess).at(0.5) == pytest.approx(load, rel=0.05)
    meets = load > 600
    trials = [(550.0, True), (650.0, False)] * 3
    assert 540 < told(*trials, guess=guess).at(0.5) < 660, meets


def test_a_guess_outside_of_the_range_is_none() -> None:
    nothing = told().below([500])[0]
    assert told(guess=LoadInterval(1e8, 1e8, 1e8)).below([500])[0] == pytest.approx(nothing)


def test_trials_that_resemble_their_neighbours_count_for_less() -> None:
    """The same outcomes at the same load, in turns and in long stretches."""
    turns, stretches = (Threshold(50, 5000, step=0.0122) for _ in range(2))
    for met in [True, False] * 16:
        turns.update(600, met)
    for met in ([True] * 8 + [False] * 8) * 2:
        stretches.update(600, met)
    assert turns.worth == 1
    assert stretches.worth < 0.5
    assert stretches.below([560])[0] > 2 * turns.below([560])[0]
