"""Looks that are planned err together no more often than promised, and cost less than looks that are not."""

from __future__ import annotations

import numpy as np
import pytest

from loadframe.analysis.comparison import verdict
from loadframe.analysis.sequential import ErrorBudget, Plan, planned_level


def test_levels_grow_with_the_blocks_and_stay_below_the_whole() -> None:
    levels = [planned_level(Plan(3, 10), block, 0.05) for block in range(3, 11)]
    assert levels == sorted(levels)
    assert 0 < levels[0] < levels[-1] < 0.05
    assert sum(levels) > 0.05, "looks are not independent: their levels may add up to more than the whole"


def test_who_is_stopped_before_the_first_look_looks_once() -> None:
    assert planned_level(Plan(3, 5), 2, 0.05) == 0.05


def test_after_the_last_look_the_last_counts() -> None:
    assert planned_level(Plan(3, 5), 9, 0.05) == planned_level(Plan(3, 5), 5, 0.05)


def test_a_single_look_spends_nearly_everything() -> None:
    assert 0.038 < planned_level(Plan(6, 6), 6, 0.05) < 0.045


@pytest.mark.parametrize(("first", "last"), [(1, 5), (0, 0), (6, 5)])
def test_a_plan_that_cannot_be_is_refused(first: int, last: int) -> None:
    with pytest.raises(ValueError, match="plan"):
        Plan(first, last)


def test_every_look_of_a_plan_holds_the_truth_at_once() -> None:
    random = np.random.default_rng(5)
    plan, missed = Plan(3, 8), 0
    for _ in range(300):
        ratios = list(100 * 1.1 * np.exp(random.normal(0, 0.05, 8)))
        looks = [verdict({1.0: [100.0] * blocks}, {1.0: ratios[:blocks]}, plan=plan) for blocks in range(plan.first, 9)]
        missed += any(not look.low <= 1.1 <= look.high for look in looks)
    assert missed <= 0.05 * 300 + 2 * (0.05 * 0.95 * 300) ** 0.5


@pytest.mark.parametrize("truths", [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0.5, 0.5, 0)])
def test_tests_in_turn_err_together_no_more_often_than_one(truths: tuple[float, ...]) -> None:
    """truths: the chance that a test is of a real difference, which is always found. Without a budget three tests of
    nothing err in 14 % of the cases."""
    random = np.random.default_rng(7)
    series, erred, unguarded = 20_000, 0, 0
    for _ in range(series):
        budget, wrong, wrong_without = ErrorBudget(0.05), False, False
        for place, truth in enumerate(truths):
            real, p = random.random() < truth, random.random()
            level = budget.level(last=place == len(truths) - 1)
            wrong |= not real and p < level
            wrong_without |= not real and p < 0.05
            budget = budget.after(level, decided=real or p < level)
        erred += wrong
        unguarded += wrong_without
    assert erred <= 0.05 * series + 2 * (0.05 * 0.95 * series) ** 0.5
    assert unguarded > 0.04 * series


def test_what_is_decided_costs_nothing_and_what_is_not_its_level() -> None:
    budget = ErrorBudget(0.05)
    assert budget.level(last=True) == 0.05 and budget.level(last=False) == 0.025
    assert budget.after(0.025, decided=True) == budget
    assert budget.after(0.025, decided=False).level(last=False) == 0.0125
    assert budget.after(0.05, decided=False).left == 0
