"""Why a gain that was proved is not kept, in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from loadframe.diagnosis.judging import IN_FRESH_NOISE, NOT_AGAIN, why_not_again
from loadframe.model import Step, Verdict

LOUD = "5 of their 6 steps were disturbed, which says nothing of it"


def fresh(decision: str, ratio: float = 1.5) -> Verdict:
    return Verdict(ratio, 0.9, 2.5, decision, 3, "t", floor=(0.7, 1.4))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdict", "disturbed", "why"),
    [
        (fresh("better"), 5, ""),
        (fresh("better", 1.3), 5, IN_FRESH_NOISE),
        (fresh("no-proven-difference"), 0, NOT_AGAIN),
        (fresh("no-proven-difference"), 1, NOT_AGAIN),
        (fresh("no-proven-difference"), 5, f"{NOT_AGAIN}: {LOUD}"),
        (fresh("worse"), 5, NOT_AGAIN),  # proved in spite of it
    ],
)
def test_blocks_that_were_disturbed_are_told_as_such(
    make_step: Callable[..., Step], verdict: Verdict, disturbed: int, why: str
) -> None:
    steps = [make_step(8, 100.0, flags=("stranger",) if number < disturbed else ()) for number in range(6)]
    assert why_not_again(verdict, steps) == why
