"""When the recorder looks at sockets: for a bounded share of one CPU, and once in each window of a step, whose length
it knows from the mark at the step's begin: what is counted at one moment belongs to the load of that moment. Light, as
part of the recorder process."""

import math
from collections import deque

EVERY_S = 0.5
CPU_SHARE = 0.0015
"""Of one CPU, at most, over the time until the next look: with thousands of connections looks are farther apart."""
LONGEST_S = 5.0
LOADED_SHARE = 0.01
"""The same over the window of a step that would otherwise have no look; a look that costs more is not made."""
LOOKS = (2, 1)
"""Per window: two if they cost no more than LOADED_SHARE, else one."""
REMEMBERED = 3
"""Looks whose median cost is used: one that was interrupted, or found new processes, costs more."""
_ROUNDING = 1e-6


class LookSchedule:
    """Times are CLOCK_MONOTONIC. interval_s: of the recorder's ticks, the only times of looks. every_s: of cheap
    looks."""

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
        """A look began at now_s and took spent_s of CPU time."""
        if self._looked_s == -math.inf:
            self._spent_s.clear()
        self._spent_s.append(spent_s)
        self._looked_s = now_s
        self._due_s = now_s + (self._in_step_s() or self._usual_s()) - self._interval_s / 2

    def begin_step(self, at_s: float, warmup_s: float, window_s: float) -> None:
        """A step began. Its window, window_s long, begins after the warm-up at the earliest, which gets no look."""
        self._window_s = window_s
        if (apart_s := self._in_step_s()) is not None:
            self._due_s = at_s + warmup_s + min(apart_s, window_s / 2)

    def end_step(self) -> None:
        self._window_s = 0.0
        self._due_s = self._looked_s + self._usual_s() - self._interval_s / 2

    def _cost_s(self) -> float:
        return sorted(self._spent_s)[len(self._spent_s) // 2]

    def _usual_s(self) -> float:
        return min(LONGEST_S, max(self._every_s, self._cost_s() / CPU_SHARE))

    def _in_step_s(self) -> float | None:
        """How far apart looks in a step must be, in whole intervals; None outside a step, or if that would cost too
        much."""
        for looks in LOOKS if self._window_s > 0 else ():
            intervals = math.ceil(self._window_s / looks / self._interval_s - _ROUNDING) - 1
            apart_s = self._interval_s * max(1, intervals)
            if looks * self._cost_s() <= LOADED_SHARE * self._window_s:
                return min(apart_s, self._usual_s())
        return None
