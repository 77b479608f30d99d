"""Looks at data while they come in that together err as often as one test (docs/mathematics.md, "Looking again")."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import student

PATHS = 40_000
"""Simulated series of blocks; the level is exact to about a tenth of a per cent (of 5 %)."""
NEIGHBOURS = 0.125
"""Correlation of a block with the block of reverse order (experiments/proof.py): r (1 - r) / 2 for an AR(1) series with
correlation r, at most 1/8. Without it such noise errs in 6.1 % instead of 5 %."""
HALVINGS = 20
CHUNK = 4_000


@dataclass(frozen=True, slots=True)
class Plan:
    """A look after each block from `first` (at least 2) to `last`."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if not 2 <= self.first <= self.last:
            raise ValueError(f"a plan from block {self.first} to {self.last} is none; the first look needs two blocks")


def planned_level(plan: Plan, block: int, alpha: float) -> float:
    """Of the look after `block` blocks; before the first the whole alpha: stopping there (the budget ended) is the only
    look. It grows with the blocks: alpha_n = c n / last, c by seeded simulation, as Pocock (1977, Biometrika 64(2)) for
    levels that do not grow."""
    if block < plan.first:
        return alpha
    return _scale(plan, alpha) * min(block, plan.last) / plan.last


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """Error that successive tests on fresh data may still make together (docs/mathematics.md, "Several proofs"): only a
    test that does not decide spends its level."""

    left: float

    def level(self, *, last: bool) -> float:
        return self.left if last else self.left / 2

    def after(self, level: float, *, decided: bool) -> "ErrorBudget":
        return self if decided else ErrorBudget(self.left - level)


@lru_cache(maxsize=64)
def _scale(plan: Plan, alpha: float) -> float:
    statistics = _statistics(plan)
    blocks = np.arange(plan.first, plan.last + 1)
    low, high = 0.0, alpha * plan.last / plan.first
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        critical = student.quantile(1 - middle * blocks / plan.last / 2, blocks - 1)
        errs = (statistics > critical).any(axis=1).mean()
        low, high = (middle, high) if errs <= alpha else (low, middle)
    return low


def _statistics(plan: Plan) -> NDArray[np.float32]:
    """Absolute t at every look of every path, (PATHS, looks)."""
    random = np.random.default_rng(0)
    count = np.arange(1, plan.last + 1)
    looks = slice(plan.first - 1, plan.last)
    parts = []
    for _ in range(PATHS // CHUNK):
        values = random.standard_normal((CHUNK, plan.last))
        second = values[:, 1::2]
        second[:] = NEIGHBOURS * values[:, 0 : 2 * second.shape[1] : 2] + math.sqrt(1 - NEIGHBOURS**2) * second
        mean = values.cumsum(axis=1)[:, looks] / count[looks]
        squares = (values**2).cumsum(axis=1)[:, looks] - count[looks] * mean**2
        parts.append(np.abs(mean) / np.sqrt(squares / (count[looks] - 1) / count[looks]))
    return np.concatenate(parts).astype(np.float32)
