"""Whether failures ended, or their blocks say so by chance."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from loadframe.diagnosis.judging import Asked, rarer

ALPHA = 0.025
SERIES = 2000
Draw = Callable[[random.Random], int]


def few(chance: random.Random) -> int:
    """One in a hundred of 100 requests, each for itself."""
    return sum(chance.random() < 0.01 for _ in range(100))


def bursts(chance: random.Random) -> int:
    """A stall in one block of four: a third of the requests."""
    return 33 if chance.random() < 0.25 else 0


def ragged(chance: random.Random) -> int:
    """Some always, ten times as many now and then."""
    return round(5 * chance.lognormvariate(0, 1.2))


@pytest.mark.parametrize("draw", [few, bursts, ragged])
@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_equal_rates_are_rarely_called_different(draw: Draw, blocks: int) -> None:
    chance, wrong = random.Random(1), 0
    for _ in range(SERIES):
        before, after = ([Asked(100, min(100, draw(chance))) for _ in range(blocks)] for _ in range(2))
        wrong += rarer(before, after, ALPHA)
    assert wrong <= 2 * ALPHA * SERIES


@pytest.mark.parametrize("failed", [(12, 9, 15), (3, 4, 3), (5, 60, 20)])
def test_failures_that_end_are_seen(failed: tuple[int, ...]) -> None:
    assert rarer([Asked(500, each) for each in failed], [Asked(500, 0)] * len(failed), ALPHA)
    assert not rarer([Asked(500, 0)] * len(failed), [Asked(500, each) for each in failed], ALPHA)


def test_two_or_three_failures_less_are_chance_however_alike_the_blocks_are() -> None:
    assert not rarer([Asked(50, 1)] * 3, [Asked(50, 0)] * 3, ALPHA)


def test_one_block_proves_nothing() -> None:
    assert not rarer([Asked(500, 100)], [Asked(500, 0)], ALPHA)
