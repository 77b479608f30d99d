"""Where two curves part, and that they do not where only noise tells them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from loadframe.analysis.divergence import divergence

LEVELS = (128.0, 256.0, 384.0, 512.0, 768.0, 1024.0, 1536.0, 2048.0)
Curves = tuple[dict[float, list[float]], dict[float, list[float]]]


def curves(
    ratio: Callable[[float], float],
    *,
    noise: float = 0.04,
    blocks: int = 4,
    seed: int = 1,
    levels: Sequence[float] = LEVELS,
) -> Curves:
    """Throughputs that fall beyond 700 on both sides, with ups and downs of the machine that both see; the second is
    `ratio` times the first."""
    random = np.random.default_rng(seed)
    before, after = {}, {}
    for level in levels:
        common = 900 * min(1, 700 / level) * np.exp(0.1 * random.standard_normal(blocks))
        before[level] = list(common * np.exp(noise * random.standard_normal(blocks)))
        after[level] = list(common * ratio(level) * np.exp(noise * random.standard_normal(blocks)))
    return before, after


def parted_at_512(level: float) -> float:
    return 1.2 * max(1.0, (level / 512) ** 0.8)


def test_the_load_at_which_the_ratio_begins_to_change_is_found() -> None:
    held = []
    for seed in range(10):
        found = divergence(*curves(parted_at_512, seed=seed))
        assert found is not None
        assert 512 / 1.3 <= found.load <= 512 * 1.3
        held.append(found.low <= 512 <= found.high)
    assert sum(held) >= 8


def test_both_ways_round_are_one() -> None:
    before, after = curves(parted_at_512)
    assert divergence(before, after) == divergence(after, before)


def test_curves_that_are_apart_everywhere_part_nowhere() -> None:
    """Seeded count: of 20 pairs that differ by a factor alone."""
    parted = [divergence(*curves(lambda level: 2.5, seed=seed)) for seed in range(20)]
    assert sum(one is not None for one in parted) <= 1


@pytest.mark.parametrize("jump", [110.0, 380.0])
def test_a_jump_between_the_first_two_or_the_last_two_of_four_levels_is_found(jump: float) -> None:
    """One level differs from the three others: three blocks tell that by its size, not by its place alone."""
    few = (96.0, 192.0, 320.0, 448.0)
    held = []
    for seed in range(10):
        found = divergence(*curves(lambda level: 1.0 if level < jump else 2.0, blocks=3, seed=seed, levels=few))
        held.append(found is not None and found.low <= jump <= found.high)
    assert sum(held) >= 8


def test_what_cannot_be_told_is_not() -> None:
    before, after = curves(parted_at_512)
    two = {level: before[level] for level in LEVELS[:2]}
    assert divergence(two, after) is None
    assert divergence(*curves(parted_at_512, blocks=2)) is None
    dead = {level: [0.0] * 4 for level in LEVELS[2:]}
    assert divergence({**before, **dead}, after) is None


def test_a_sudden_change_between_far_levels_is_told_as_wide_as_they_are() -> None:
    """Nothing was measured between 256 and 512: wherever in between the jump is, the interval has it."""
    wide = [level for level in LEVELS if level != 384]
    held = []
    for seed in range(10):
        before, after = curves(lambda level: 1.0 if level < 300 else 2.2 * (level / 300) ** 0.5, seed=seed)
        found = divergence({level: before[level] for level in wide}, after)
        assert found is not None
        held.append(found.low <= 300 <= found.high)
        assert 256 / 1.3 <= found.low <= found.load <= found.high <= 512
    assert sum(held) >= 8
