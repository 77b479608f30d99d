"""What a step will cost is known from those at the nearest level."""

from __future__ import annotations

import pytest

from loadframe.bench.budget import FIRST_GUESS, Budget


def test_costs_follow_the_level() -> None:
    now = [0.0]
    budget = Budget(100.0, 2.0, clock=lambda: now[0])
    assert budget.cost_s([5, 10]) == pytest.approx(2 * FIRST_GUESS * 2.0)
    for seconds in (9.0, 1.0, 1.2):  # the first one prepared the level
        budget.note_step(10, seconds)
    budget.note_step(2500, 60.0)
    assert budget.cost_s([10, 12]) == pytest.approx(2.4)
    assert budget.cost_s([2500, 400]) == pytest.approx(120.0)
    assert budget.affords([2500], reserve_s=40.0)
    assert not budget.affords([2500, 10], reserve_s=40.0)
    now[0] = 45.0
    assert not budget.affords([2500])


def test_what_is_left_is_told_from_the_budget_and_the_steps_so_far() -> None:
    now = [0.0]
    budget = Budget(300.0, 1.0, clock=lambda: now[0])
    assert budget.left_words(10) == "about 16 s, 5 min left of the budget"
    for level, seconds in ((1, 2.0), (2, 4.0), (4, 30.0)):
        budget.note_step(level, seconds)
    now[0] = 220.0
    assert budget.left_words(10) == "about 40 s, 80 s left of the budget"
    assert budget.left_words(0) == "80 s left of the budget"
    assert budget.left_words(60) == "at most the 80 s left of the budget", "it ends then"
    now[0] = 301.0
    assert budget.left_words(60) == "the budget is used up"
    assert budget.left_words(0) == "", "what goes on all the same has a budget of its own"
