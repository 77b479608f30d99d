"""What the threads and processes of a pipeline share: directories still to be listed, bounded queues between stages,
and a file of float64 that all processes have in memory. Each number has one writer, so none needs a lock; a directory
that one process gives to another is written under one."""

from __future__ import annotations

import fcntl
import marshal
import mmap
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from loadframe_index.beneath import lasts

WAIT_S = 0.0005
"""How long a thread waits for a directory until it looks again for one from another process."""


class Directory(NamedTuple):
    """path: relative to the root. above: device and inode, as one number, of each directory above it, to find loops."""

    path: bytes
    above: tuple[int, ...]


class Frontier:
    """Directories still to be listed, last in, first out: few wait, and children come after their parent, whose path is
    open. The oldest, which have the largest parts of the tree, are given away. Thread-safe."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._stack: deque[Directory] = deque()
        self._changed = threading.Condition()
        self._busy = 0
        self.closed = False

    def push(self, directories: Sequence[Directory]) -> None:
        if directories:
            with self._changed:
                self._stack.extend(directories)
                self._changed.notify(len(directories))

    def begin(self, root: Directory) -> None:
        """Withdraws all requests at once: otherwise a scan could look complete."""
        with self._changed:
            self._board.asks_nothing()
            self._stack.append(root)
            self._changed.notify()

    def take(self) -> Directory | None:
        """`done` must follow. None where there was none for WAIT_S, or the frontier is closed."""
        with self._changed:
            if not self._stack and not self.closed:
                self._changed.wait_for(self._ready, WAIT_S)
            if self.closed or not self._stack:
                return None
            self._busy += 1
            return self._stack.pop()

    def _ready(self) -> bool:
        if not self._stack and not self._busy:
            self._stack.extend(self._board.received())
        return bool(self._stack) or self.closed

    def done(self) -> None:
        with self._changed:
            self._busy -= 1

    def spare(self) -> list[Directory]:
        """Half of them, the oldest, for another process."""
        with self._changed:
            return [self._stack.popleft() for _ in range(len(self._stack) // 2)]

    def hand_over(self, below: Sequence[Directory]) -> None:
        """More to list, here or by processes that ask."""
        self.push(below)
        if (asking := self._board.asks()) is not None and (some := self.spare()):
            self.push(some[self._board.give(asking, some) :])

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._stack.clear()
            self._changed.notify_all()


IDLE, BUSY, BLOCKED = 0, 1, 2
STATE, SINCE_S, IDLE_S, BUSY_S, BLOCKED_S, TAKEN, DONE, ENTRIES, GIVEN, FOUND, HELD, SERVER_S, ASKED_S = range(13)
"""Words of a worker. taken, done: operations begun and ended. entries: in those that ended. given: operations handed to
the next stage. found: directories that a scan thread found. held: entries in a batch that is not full yet. server:
seconds in calls to the database. asked: since when the current call lasts, or 0."""
SCAN, GET_INFO_DB, GET_INFO_FS, DB_APPLY = range(4)
STAGES = ("SCAN", "GET_INFO_DB", "GET_INFO_FS", "DB_APPLY")
WORKER = 16
STOP, SCANS, OFFSET_NS = range(3)
"""Words of the whole: whether it ends; how many scans have begun; the clock of looks minus CLOCK_MONOTONIC."""
ASKED, SENT = range(2)
"""Words of a process. asked: NO, YES or GIVEN_SOME: whether it needs, or was given, directories. sent: how many it
gave."""
NO, YES, GIVEN_SOME = 0, 1, 2
COUNTED = ("vanished", "unreadable", "failed", "loops", "elsewhere", "unchanged", "changed", "new")
"""Further counts of a process, from COUNTS on. failed: of the unreadable, for another reason than rights."""
COUNTS = 4
HEAD = 16
LETTER_BYTES = 1 << 16
"""Bytes for directories that are given at once: their paths, and those above them. A longer one stays where it is."""
WORD = 8


@dataclass(frozen=True, slots=True)
class Shape:
    """workers: of each stage in a process, in the order of the stages."""

    processes: int
    workers: tuple[int, ...]

    @property
    def process_words(self) -> int:
        return HEAD + WORKER * sum(self.workers)

    @property
    def bytes(self) -> int:
        return WORD * (HEAD + self.processes * self.process_words) + self.processes * LETTER_BYTES


class Board:
    """The file, in memory. process: our number."""

    def __init__(self, path: Path, shape: Shape, process: int) -> None:
        self.shape, self.process = shape, process
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._map = mmap.mmap(self._file, shape.bytes)
        self._letters = WORD * (HEAD + shape.processes * shape.process_words)
        self._view = memoryview(self._map)
        self.words = self._view[: self._letters].cast("d")
        self._giving, self._counting = threading.Lock(), threading.Lock()

    def close(self) -> None:
        """Workers must not write after it."""
        if self._file >= 0:
            self.words.release()
            self._view.release()
            self._map.close()
            os.close(self._file)
        self._file = -1

    def of_process(self, process: int) -> int:
        """Where the words of a process begin."""
        return HEAD + process * self.shape.process_words

    def of_worker(self, process: int, stage: int, number: int) -> int:
        return self.of_process(process) + HEAD + WORKER * (sum(self.shape.workers[:stage]) + number)

    def workers(self, stage: int, process: int | None = None) -> Iterator[int]:
        """Where the words of each worker begin, in one process or in all."""
        for chosen in range(self.shape.processes) if process is None else (process,):
            for number in range(self.shape.workers[stage]):
                yield self.of_worker(chosen, stage, number)

    def sum(self, stage: int, word: int, process: int | None = None) -> float:
        return sum(self.words[at + word] for at in self.workers(stage, process))

    def each(self, word: int) -> list[float]:
        return [self.words[self.of_process(process) + word] for process in range(self.shape.processes)]

    def count(self, what: str, more: int = 1) -> None:
        """what: of COUNTED."""
        with self._counting:
            self.words[self.of_process(self.process) + COUNTS + COUNTED.index(what)] += more

    def count_passed(self, error: OSError) -> None:
        """MachineError where the reason is ours."""
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            self.count("vanished")
            return
        self.count("failed", not lasts(error))
        self.count("unreadable")

    def counted(self) -> dict[str, int]:
        return {what: int(sum(self.each(COUNTS + number))) for number, what in enumerate(COUNTED)}

    def asks(self) -> int | None:
        """Number of another process that has no directory."""
        if self.shape.processes == 1:
            return None
        for process, asked in enumerate(self.each(ASKED)):
            if asked == YES and process != self.process:
                return process
        return None

    def give(self, process: int, directories: Sequence[Directory]) -> int:
        """Give as many as fit into the process's letter, or half as many, and so on; their number, 0 where it was given
        some meanwhile."""
        given = [tuple(directory) for directory in directories]
        while len(letter := marshal.dumps(given)) > LETTER_BYTES:
            given = given[: len(given) // 2]
        with self._giving:
            fcntl.lockf(self._file, fcntl.LOCK_EX, 1, process)
            try:
                at = self.of_process(process) + ASKED
                if not given or self.words[at] != YES:
                    return 0
                begin = self._letters + process * LETTER_BYTES
                self._map[begin : begin + len(letter)] = letter
                self.words[self.of_process(self.process) + SENT] += 1
                self.words[at] = GIVEN_SOME
                return len(given)
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, process)

    def received(self) -> list[Directory]:
        """The directories that another process gave; asks for some where there are none."""
        own = self.of_process(self.process)
        if self.words[own + ASKED] == NO:
            self.words[own + ASKED] = YES
        if self.words[own + ASKED] != GIVEN_SOME:
            return []
        begin = self._letters + self.process * LETTER_BYTES
        letter = self._map[begin : begin + LETTER_BYTES]
        self.words[own + ASKED] = NO
        return [Directory(*given) for given in marshal.loads(letter)]

    def asks_nothing(self) -> None:
        self.words[self.of_process(self.process) + ASKED] = NO

    def all_listed(self) -> bool:
        """Whether no process has a directory to list: all ask, and none was given one during this check."""
        sent = sum(self.each(SENT))
        return all(asked == YES for asked in self.each(ASKED)) and sum(self.each(SENT)) == sent


class Meter:
    """The words of a worker, which begin at `at`."""

    def __init__(self, board: Board, at: int) -> None:
        self.board, self.at, self._words = board, at, board.words
        self._words[at + SINCE_S] = time.monotonic()

    def turn(self, state: int) -> float:
        """Returns the time (CLOCK_MONOTONIC, s)."""
        words, at, now = self._words, self.at, time.monotonic()
        words[at + IDLE_S + int(words[at + STATE])] += now - words[at + SINCE_S]
        words[at + SINCE_S], words[at + STATE] = now, state
        return now

    @contextmanager
    def in_server(self) -> Iterator[None]:
        words, at, begun_s = self._words, self.at, time.monotonic()
        words[at + ASKED_S] = begun_s
        try:
            yield
        finally:
            words[at + ASKED_S] = 0.0
            words[at + SERVER_S] += time.monotonic() - begun_s

    @property
    def state(self) -> int:
        return int(self._words[self.at + STATE])

    def add(self, word: int, more: float = 1.0) -> None:
        self._words[self.at + word] += more

    def set(self, word: int, value: float) -> None:
        self._words[self.at + word] = value


T = TypeVar("T")


class Queue(Generic[T]):
    """For several threads at once. most: how many may wait."""

    def __init__(self, most: int) -> None:
        self._items: deque[T] = deque()
        self._most = most
        self._closed = False
        lock = threading.Lock()
        self._filled, self._emptied = threading.Condition(lock), threading.Condition(lock)

    def put(self, item: T) -> bool:
        """Waits until there is room. False where the queue is closed, and the item is dropped."""
        with self._emptied:
            while len(self._items) >= self._most and not self._closed:
                self._emptied.wait()
            if self._closed:
                return False
            self._items.append(item)
            self._filled.notify()
            return True

    def get(self) -> T | None:
        """None where the queue is closed and empty."""
        with self._filled:
            while not self._items and not self._closed:
                self._filled.wait()
            if not self._items:
                return None
            self._emptied.notify()
            return self._items.popleft()

    def empty(self) -> bool:
        return not self._items and not self._closed

    def close(self, *, drop: bool = False) -> None:
        """Accept no more. drop: also drop what waits. Idempotent."""
        with self._filled:
            self._closed = True
            if drop:
                self._items.clear()
            self._filled.notify_all()
            self._emptied.notify_all()
