"""The activity of the stages of one thread, reported in lines of statistics (docs/pipelines.md).

A thread that passes an entry through several stages works in one of them at a time: those before it are blocked
meanwhile, those behind it idle. So the time at each place is enough. Numbers are words of a buffer, which processes may
share; each turn is written by one of them. Only the standard library is used: a loader process is started for each
file.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

EVERY_S = 0.25
LONGEST_FILE = 4 << 20
"""Bytes after which a file of lines begins again."""
WORD = 8
AT, SINCE_S, SECONDS = range(3)
"""Words of a turn: its place now, since when, and the seconds at each place; then operations and entries by stage."""
EXTRA_PLACES = 3


@dataclass(frozen=True, slots=True)
class Chain:
    """Stages of one thread. first: the place of its first stage in the whole pipeline."""

    stages: tuple[str, ...]
    first: int = 0

    @property
    def waiting(self) -> int:
        """The place of a thread that has no entry."""
        return len(self.stages)

    @property
    def handing_on(self) -> int:
        """The place of a thread that waits for what is behind its last stage."""
        return len(self.stages) + 1

    @property
    def away(self) -> int:
        """The place of a thread that does not exist: of no stage."""
        return len(self.stages) + 2

    @property
    def words(self) -> int:
        return SECONDS + len(self.stages) + EXTRA_PLACES + 2 * len(self.stages)


class Turn:
    def __init__(self, chain: Chain, words: memoryview[float]) -> None:
        """words: as many as the chain says; zeros, or those of the thread before it."""
        self.chain, self._words = chain, words
        self._done = SECONDS + len(chain.stages) + EXTRA_PLACES

    def to(self, place: int, since_s: float | None = None) -> None:
        """Since then (CLOCK_MONOTONIC; None: now) it is at this place: a stage's number, or a place of the chain."""
        words, now_s = self._words, time.monotonic() if since_s is None else since_s
        spent_s = max(0.0, now_s - words[SINCE_S])
        words[SINCE_S] = now_s
        words[SECONDS + int(words[AT])] += spent_s
        words[AT] = place

    def begin(self, place: int, since_s: float | None = None) -> None:
        """A thread takes this turn; the time before counts for no stage."""
        self._words[AT] = self.chain.away
        self.to(place, since_s)

    def count(self, stage: int, entries: int) -> None:
        self._words[self._done + 2 * stage] += 1
        self._words[self._done + 2 * stage + 1] += entries

    def seconds(self, now_s: float) -> list[float]:
        """Seconds by place, up to now_s."""
        words = self._words
        spent = list(words[SECONDS : self._done])
        spent[int(words[AT])] += max(0.0, now_s - words[SINCE_S])
        return spent

    def counted(self) -> list[float]:
        """The operations and the entries of each stage, in turns."""
        return list(self._words[self._done :])


CLIENT = Chain(("READ", "PARSE"))
LOADER = Chain(("OPEN", "SPLIT", "WRITE", "COMMIT"), first=2)
"""Stages of a client of the bulk loader: a block from the source and the disk, its rows. Of a loading process:
connections and a transaction on each shard, the shard of each row, rows to the shards, the commit on all."""
READ, PARSE = range(2)
OPEN, SPLIT, WRITE, COMMIT = range(4)


def own_turn(chain: Chain) -> Turn:
    return Turn(chain, memoryview(bytearray(WORD * chain.words)).cast("d"))


def lines(chain: Chain, turns: Sequence[Turn], process: int) -> Iterator[str]:
    """One for each stage, summed over all turns."""
    now_s = time.monotonic()
    spent = [sum(part) for part in zip(*(turn.seconds(now_s) for turn in turns), strict=True)]
    spent = spent or [0.0] * (len(chain.stages) + EXTRA_PLACES)
    counted = [turn.counted() for turn in turns]
    before = 0.0
    for number, stage in enumerate(chain.stages):
        busy_s = spent[number]
        line = {
            "stage": stage,
            "time": now_s,
            "order": chain.first + number,
            "process": process,
            "done": sum(count[2 * number] for count in counted),
            "entries": sum(count[2 * number + 1] for count in counted),
            "busy_s": busy_s,
            "idle_s": before + spent[chain.waiting],
            "blocked_s": sum(spent[number + 1 : len(chain.stages)]) + spent[chain.handing_on],
        }
        before += busy_s
        yield json.dumps(line) + "\n"


def write_regularly(path: str, made: Callable[[], Iterator[str]], every_s: float = EVERY_S) -> Callable[[], None]:
    """Append lines to a file by an alarm of this process, as a process that forks must not have threads. Call the
    returned function to stop, with lines a last time: no alarm may come when an interpreter ends. A full disk costs
    lines, not the work. OSError where the file cannot be opened."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def write() -> None:
        with suppress(OSError):
            if os.fstat(descriptor).st_size > LONGEST_FILE:
                os.ftruncate(descriptor, 0)
            os.write(descriptor, "".join(made()).encode())

    signal.signal(signal.SIGALRM, lambda *_: write())
    signal.setitimer(signal.ITIMER_REAL, every_s, every_s)

    def end() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        write()

    return end
