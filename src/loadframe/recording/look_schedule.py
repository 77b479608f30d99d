"""When the recorder looks at sockets: for a bounded share of one CPU, and so that each window of a step has a look.

What is counted at one moment belongs to the load of that moment. A recorder that knows how long the windows of a step
are looks at the target within each of them; it is told by the mark at the beginning of a step.

This module is imported by the recorder process and stays light: the standard library alone.
"""

import math
from collections import deque

EVERY_S = 0.5
CPU_SHARE = 0.0015
"""Of one CPU, at most, over the time until the next look: with thousands of connections these are farther apart."""
LONGEST_S = 5.0
LOADED_SHARE = 0.01
"""The same over the window of a step, which would else have no look; where one costs more than that it has none."""
LOOKS = (2, 1)
"""Of a window, at least: two where they cost no more than that, else one."""
REMEMBERED = 3
"""Looks of which the middle one's cost is taken: one that was interrupted, or found new processes, costs more."""
_ROUNDING = 1e-6


class LookSchedule:
    """Times are CLOCK_MONOTONIC. interval_s: between the recorder's ticks, at which alone it looks. every_s: between
    two looks that cost next to nothing."""

    def __init__(self, interval_s: float = 0.1, every_s: float = EVERY_S) -> None:
        self._interval_s = interval_s
        self._every_s = every_s
        self._spent_s: deque[float] = deque((0.0,), REMEMBERED)
        self._window_s = 0.0
        self._looked_s = -math.inf
        self._due_s = -math.inf

    def is_due(self, now_s: float) -> bool:
        return now_s >= self._due_s

    def looked(self, now_s: float, spent_s: float) -> None:
        """A look began now and took so much CPU time."""
        if self._looked_s == -math.inf:
            self._spent_s.clear()
        self._spent_s.append(spent_s)
        self._looked_s = now_s
        self._due_s = now_s + (self._in_step_s() or self._usual_s()) - self._interval_s / 2

    def begin_step(self, at_s: float, warmup_s: float, window_s: float) -> None:
        """A step began, whose window is window_s long and begins after its warm-up at the earliest: none of the looks
        is spent on that."""
        self._window_s = window_s
        if (apart_s := self._in_step_s()) is not None:
            self._due_s = at_s + warmup_s + min(apart_s, window_s / 2)

    def end_step(self) -> None:
        """No window is measured now."""
        self._window_s = 0.0
        self._due_s = self._looked_s + self._usual_s() - self._interval_s / 2

    def _cost_s(self) -> float:
        return sorted(self._spent_s)[len(self._spent_s) // 2]

    def _usual_s(self) -> float:
        return min(LONGEST_S, max(self._every_s, self._cost_s() / CPU_SHARE))

    def _in_step_s(self) -> float | None:
        """How far apart looks are so that any window of the step has one; None where there is no step, or that would
        cost too much. Whole intervals, less than the window: the looks are at ticks."""
        for looks in LOOKS if self._window_s > 0 else ():
            intervals = math.ceil(self._window_s / looks / self._interval_s - _ROUNDING) - 1
            apart_s = self._interval_s * max(1, intervals)
            if looks * self._cost_s() <= LOADED_SHARE * self._window_s:
                return min(apart_s, self._usual_s())
        return None
