"""What a row of benchmarks/sceptic.py is: a claim with its goal, and the figure that was reached."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """What a row reached; doubt: what chance explains beyond the goal. rival: its figure, in words."""

    value: float
    doubt: float = 0.0
    rival: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A claim of a section of the issue. most: the goal is at most that, else at least."""

    name: str
    section: int
    claim: str
    goal: float
    unit: str
    most: bool
    measure: Callable[[int], Figure]

    def met(self, figure: Figure) -> bool:
        """Whether the goal is met, but for chance."""
        if self.most:
            return figure.value <= self.goal + figure.doubt
        return figure.value >= self.goal - figure.doubt


ROWS: list[Row] = []


def row(
    name: str, claim: str, *, section: int, goal: float, unit: str = "%", most: bool = True
) -> Callable[[Callable[[int], Figure]], Callable[[int], Figure]]:
    """Add a function as a row."""

    def add(measure: Callable[[int], Figure]) -> Callable[[int], Figure]:
        ROWS.append(Row(name, section, claim, goal, unit, most, measure))
        return measure

    return add


def rate(wrong: int, of: int, goal: float = 5.0, rival: str = "") -> Figure:
    """A share in per cent, with the doubt that `of` series leave around the goal."""
    share = goal / 100
    return Figure(100 * wrong / of, 196 * math.sqrt(share * (1 - share) / of), rival)
