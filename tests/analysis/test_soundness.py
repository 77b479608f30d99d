"""Disturbed steps do not count where there are enough others, and are all there is where there are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loadframe.analysis.soundness import sound


@dataclass(frozen=True)
class Taken:
    level: float
    flags: tuple[str, ...] = ()


def test_at_each_level_by_itself() -> None:
    steps: list[Any] = [
        *(Taken(1), Taken(1, ("steal",)), Taken(1, ("errors",))),
        *(Taken(2), Taken(2, ("stranger",)), Taken(2, ("steal", "not-settled"))),
        *(Taken(4, ("clock-step",)), Taken(4, ("frequency",))),
    ]
    assert sound(steps) == [steps[0], *steps[2:]]
    assert sound([]) == []
