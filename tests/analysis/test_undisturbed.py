"""Disturbed steps do not count where there are enough others, and are all there is where there are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loadframe.analysis.undisturbed import undisturbed


@dataclass(frozen=True)
class Taken:
    level: float
    flags: tuple[str, ...] = ()
    window_start_s: float = 0.2
    started_s: float = 0.0
    window_end_s: float = 1.2


def test_at_each_level_by_itself() -> None:
    steps: list[Any] = [
        *(Taken(1), Taken(1, ("steal",)), Taken(1, ("errors",))),
        *(Taken(2), Taken(2, ("stranger",)), Taken(2, ("steal", "not-settled"))),
        *(Taken(4, ("clock-step",)), Taken(4, ("frequency",))),
    ]
    assert undisturbed(steps) == [steps[0], *steps[2:5], *steps[6:]]
    assert undisturbed([]) == []


def test_steps_whose_warm_up_had_not_ended_do_not_count_where_others_have_settled() -> None:
    """They are too low, and blocks do not make that up."""
    steps: list[Any] = [
        *(Taken(1, ("not-settled",)), Taken(1), Taken(1, ("not-settled",)), Taken(1)),
        *(Taken(2, ("not-settled",)), Taken(2, ("not-settled",)), Taken(2)),
    ]
    assert undisturbed(steps) == [steps[1], *steps[3:]]


def test_where_longer_warm_ups_were_given_the_steps_with_them_count() -> None:
    """A step whose noise hides that it climbs is as low as one that shows it."""
    long = Taken(1, window_start_s=2.4, window_end_s=3.4)
    steps: list[Any] = [Taken(1), long, Taken(1), long, Taken(2), Taken(2, window_start_s=2.4, window_end_s=3.4)]
    assert undisturbed(steps) == [long, long, *steps[4:]]
