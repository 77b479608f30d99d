"""Time: what is left of the budget, and what the next thing will cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST_GUESS = 1.6
"""Before the first step is taken: a step costs this many of its windows."""


@dataclass
class Budget:
    """Seconds for the whole command. clock: injected by tests."""

    total_s: float
    window_s: float
    clock: Callable[[], float] = time.monotonic
    _started_s: float = field(init=False)
    _steps: int = field(default=0, init=False)
    _stepping_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._started_s = self.clock()

    def spent_s(self) -> float:
        """Since the command began."""
        return self.clock() - self._started_s

    def left_s(self) -> float:
        """Until the budget is used up; negative afterwards."""
        return self.total_s - self.spent_s()

    def note_step(self, seconds: float) -> None:
        """A step, with all that belongs to it, took this long."""
        self._steps += 1
        self._stepping_s += seconds

    def cost_s(self, steps: int) -> float:
        """What this many further steps will take, going by those so far."""
        each = self._stepping_s / self._steps if self._steps else FIRST_GUESS * self.window_s
        return steps * each

    def affords(self, steps: int, reserve_steps: int = 0) -> bool:
        """Whether this many steps fit into what is left, with a reserve."""
        return self.cost_s(steps + reserve_steps) <= self.left_s()
