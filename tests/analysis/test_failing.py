"""Whether failures ended, or their blocks say so by chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from loadframe.diagnosis.judging import by_chance
from loadframe.model import Step, Verdict

ALPHA = 0.025
SERIES = 2000
VERDICT = Verdict(1.0, 0.9, 1.1, "no-proven-difference", 3, "", confidence=1 - 2 * ALPHA)
Draw = Callable[[random.Random], int]
MakeStep = Callable[..., Step]
Rarer = Callable[[Sequence[int], Sequence[int], int], bool]


@pytest.fixture
def rarer(make_step: MakeStep) -> Rarer:
    """Whether requests fail more rarely after: failures before and after, by block, of this many requests."""

    def proved(before: Sequence[int], after: Sequence[int], asked: int) -> bool:
        sides = (
            [make_step(1.0, block=i, requests=asked - failed, errors=failed) for i, failed in enumerate(side)]
            for side in (before, after)
        )
        return not by_chance(VERDICT, *sides)

    return proved


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
def test_equal_rates_are_rarely_called_different(draw: Draw, blocks: int, rarer: Rarer) -> None:
    chance, wrong = random.Random(1), 0
    for _ in range(SERIES):
        before, after = ([min(100, draw(chance)) for _ in range(blocks)] for _ in range(2))
        wrong += rarer(before, after, 100)
    assert wrong <= 2 * ALPHA * SERIES


@pytest.mark.parametrize("failed", [(12, 9, 15), (3, 4, 3), (5, 60, 20)])
def test_failures_that_end_are_seen(failed: tuple[int, ...], rarer: Rarer) -> None:
    none = [0] * len(failed)
    assert rarer(failed, none, 500)
    assert not rarer(none, failed, 500)


def test_two_or_three_failures_less_are_chance_however_alike_the_blocks_are(rarer: Rarer) -> None:
    assert not rarer([1] * 3, [0] * 3, 50)


def test_one_block_proves_nothing(rarer: Rarer) -> None:
    assert not rarer([100], [0], 500)
