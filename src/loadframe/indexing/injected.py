"""Change records that are made up at a given rate from a seed, over the entries of a tree that stays as it is.

They load every stage of the pipeline as real ones do: each entry is looked up in the file system and written to the
database again. What a record says did not happen, so the database stays equal to the tree. Where the kernel permits
neither fanotify nor inotify, and where a rate is asked for that no program on this machine makes.
"""

from __future__ import annotations

import random
import select
import time
from collections.abc import Callable, Sequence

from loadframe.errors import MachineError
from loadframe.indexing.entries import Change
from loadframe.indexing.readers import Reader, Records

SHARES = {"create": 0.4, "close_write": 0.3, "setattr": 0.2, "unlink": 0.1}
"""Of the records. A rename would be a walk through what it names."""
RECORDS_AT_ONCE = 10_000
"""The most records of one reading: one that has fallen behind catches up in several."""


class Injected(Reader):
    """They name no files, and are not kept."""

    name = "injected"

    def __init__(
        self,
        paths: Sequence[bytes],
        rate_per_s: float,
        *,
        seed: int = 0,
        first: int = 1,
        count: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """paths: of entries that are there. count: of records after which no more come. MachineError where there are no
        paths, or no rate."""
        if not paths or rate_per_s <= 0:
            raise MachineError(
                f"Records cannot be injected over {len(paths)} entries at {rate_per_s:g}/s",
                remedy="Give a tree with entries, and a change_rate above 0.",
            )
        self._paths, self._rate, self._first, self._count = paths, rate_per_s, first, count
        self._rng = random.Random(seed)
        self._clock, self._wall = clock, wall
        self._made = 0
        self._start: float | None = None
        self._start_wall = 0.0

    def read(self, timeout_s: float) -> Records:
        """The first reading begins. The time of a record is that at which it was due: a reader that is late
        sees its lag."""
        until = self._clock() + timeout_s
        if self._start is None:
            self._start, self._start_wall = self._clock(), self._wall()
        while not (due := self._due()) and (now := self._clock()) < until and self._made != self._count:
            next_s = self._start + (self._made + 1) / self._rate
            select.select([], [], [], max(0.0, min(until, next_s) - now))
        changes = []
        for _ in range(min(due, RECORDS_AT_ONCE)):
            self._made += 1
            kind = self._rng.choices(tuple(SHARES), tuple(SHARES.values()))[0]
            time_s = self._start_wall + self._made / self._rate
            changes.append(
                Change(kind, self._rng.choice(self._paths), number=self._first + self._made - 1, time_s=time_s)
            )
        return Records(changes, drained=due <= RECORDS_AT_ONCE)

    @property
    def waiting(self) -> int:
        """Those that are due and were not read."""
        return self._due()

    def _due(self) -> int:
        if self._start is None:
            return 0
        so_far = int((self._clock() - self._start) * self._rate)
        return (so_far if self._count is None else min(so_far, self._count)) - self._made
