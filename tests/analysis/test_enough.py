"""How many threads are enough: the lowest level that no higher one gives more than."""

from __future__ import annotations

import numpy as np
import pytest

from loadframe.analysis.in_service import enough, more


def measured(law: dict[float, float], *, noise: float, blocks: int, seed: int = 0) -> dict[float, list[float]]:
    draw = np.random.default_rng(seed)
    return {load: [value * float(np.exp(draw.normal(0, noise))) for _ in range(blocks)] for load, value in law.items()}


SATURATES = {1.0: 100.0, 2.0: 190.0, 4.0: 300.0, 8.0: 303.0, 16.0: 299.0}
FALLS = {1.0: 128.0, 2.0: 112.0, 3.0: 106.0, 4.0: 75.0}


def test_a_plateau_is_enough_where_it_begins() -> None:
    found = enough(measured(SATURATES, noise=0.01, blocks=5))
    assert found is not None and (found.load, found.low, found.high) == (4, 4, 4)


def test_a_curve_that_falls_from_its_first_level_on_was_enough_at_once() -> None:
    found = enough(measured(FALLS, noise=0.03, blocks=5))
    assert found is not None and (found.load, found.low, found.high) == (1, 1, 1)


def test_noise_widens_it_and_never_says_more_than_was_measured() -> None:
    found = enough(measured(SATURATES, noise=0.25, blocks=3))
    assert found is not None and found.low <= 2 and found.high == 16


@pytest.mark.parametrize(
    "law", [{1.0: 100.0, 2.0: 200.0, 4.0: 400.0}, {1.0: 100.0}, {1.0: 0.0, 2.0: 0.0}], ids=["grows", "one", "nothing"]
)
def test_nothing_is_told_where_more_was_never_seen_not_to_help(law: dict[float, float]) -> None:
    assert enough(measured(law, noise=0.01, blocks=4)) is None


def test_one_block_of_each_level_tells_nothing() -> None:
    assert enough({1.0: [100.0], 2.0: [90.0]}) is None


def test_the_interval_holds_for_nineteen_of_twenty_measurements() -> None:
    """Of noise that is twice as large at the highest level as at the lowest."""
    told = held = 0
    for seed in range(200):
        draw = np.random.default_rng(seed)
        levels = {
            load: [value * float(np.exp(draw.normal(0, 0.04 * (1 + load / 16)))) for _ in range(4)]
            for load, value in SATURATES.items()
        }
        found = enough(levels)
        told += found is not None
        held += found is not None and found.low <= 4 <= found.high
    assert told >= 180 and held >= 0.95 * told


def test_what_more_of_them_give_is_that_of_the_best_level_over_the_lowest() -> None:
    found = more(measured(SATURATES, noise=0.01, blocks=5))
    assert found is not None and found.load in (4, 8, 16) and found.base == 1
    assert found.low < 3 < found.high and found.low > 2.9
    fallen = more(measured(FALLS, noise=0.01, blocks=5))
    assert fallen is not None and fallen.load == 2 and fallen.high < 1


def test_the_best_of_levels_that_are_alike_is_no_gain() -> None:
    """The largest of seven means lies above the first of them by chance alone; twenty in four hundred may be proven."""
    alike = dict.fromkeys((1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0), 100.0)
    found = [more(measured(alike, noise=0.05, blocks=4, seed=seed)) for seed in range(400)]
    proven = [one for one in found if one is not None and (one.low > 1 or one.high < 1)]
    assert None not in found and len(proven) <= 20


def test_one_level_or_one_block_gives_no_ratio() -> None:
    assert more({1.0: [100.0, 101.0]}) is None
    assert more({1.0: [100.0], 2.0: [90.0]}) is None
    assert more({1.0: [0.0, 0.0], 2.0: [90.0, 91.0], 4.0: [90.0, 91.0]}) is None
