"""Time: what is left of the budget, and what steps will cost; and a run's progress events."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from loadframe.progress import FollowsRun, Progress
from loadframe.runs.folder import RunFolder
from loadframe.runs.lines import Told

FIRST_GUESS = 1.6
"""Before the first step: a step costs this many of its windows."""


@dataclass
class Budget:
    """Seconds for the whole command."""

    total_s: float
    window_s: float
    clock: Callable[[], float] = time.monotonic
    _started_s: float = field(init=False)
    _costs: dict[float, list[float]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._started_s = self.clock()

    def spent_s(self) -> float:
        return self.clock() - self._started_s

    def left_s(self) -> float:
        return self.total_s - self.spent_s()

    def note_step(self, level: float, seconds: float) -> None:
        self._costs.setdefault(level, []).append(seconds)

    def cost_s(self, levels: Sequence[float]) -> float:
        """Seconds for further steps at these levels, each at the median of those at the nearest level so far."""
        if not self._costs:
            return self.guessed_s(len(levels))
        return sum(
            median(self._costs[min(self._costs, key=lambda known: abs(math.log(known / level)))]) for level in levels
        )

    def left_words(self, steps: int) -> str:
        """Like "about 40 s, 2 min left of the budget", for these steps at the median so far and for all that comes.
        steps: 0 where unknown. Empty where nothing is left of the budget either."""
        left_s = self.left_s()
        if left_s <= 0:
            return "the budget is used up" if steps else ""
        known = [seconds for noted in self._costs.values() for seconds in noted]
        takes_s = steps * median(known) if known else self.guessed_s(steps)
        left = f"{_about(left_s)} left of the budget"
        if takes_s > left_s:
            return f"at most the {left}"
        return f"about {_about(takes_s)}, {left}" if steps else left

    def guessed_s(self, steps: int) -> float:
        return steps * FIRST_GUESS * self.window_s

    def affords(self, levels: Sequence[float], reserve_s: float = 0.0) -> bool:
        return self.cost_s(levels) + reserve_s <= self.left_s()


def _about(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


class TellsRun:
    """Progress that is also written to the run, with the budget left; the bookkeeping writes the steps."""

    def __init__(self, run: RunFolder, to: Progress, budget: Budget) -> None:
        self._run = run
        self._to = to
        self._budget = budget
        if isinstance(to, FollowsRun):
            to.follow(run.path)

    def phase(self, words: str, steps: int) -> None:
        words = "; ".join(part for part in (words, self._budget.left_words(steps)) if part)
        self._run.tell(Told("phase", words, steps))
        self._to.phase(words, steps)

    def step(self, words: str) -> None:
        self._to.step(words)

    def say(self, words: str) -> None:
        self._run.tell(Told("say", words))
        self._to.say(words)
