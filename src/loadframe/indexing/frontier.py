"""The directories that are still to be listed: a stack that the scan threads of one process share, and what it gives to
other processes that have none.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from loadframe.indexing.board import Board

WAIT_S = 0.0005
"""How long a thread waits for a directory before it looks again whether another process has given one."""


class Directory(NamedTuple):
    """path: relative to the root. above: device and inode of each directory above it, as one number: a directory that
    is its own ancestor is a loop."""

    path: bytes
    above: tuple[int, ...]


class Frontier:
    """Last in, first out: few directories wait, and children come after their parent, whose path is open. For several
    threads at once. What is given away is what came first: the largest part of the tree."""

    def __init__(self, received: Callable[[], Sequence[Directory]]) -> None:
        """received: directories that another process gave, if there are any."""
        self._received = received
        self._stack: deque[Directory] = deque()
        self._changed = threading.Condition()
        self._busy = 0
        self._closed = False

    def push(self, directories: Sequence[Directory]) -> None:
        """More to list."""
        if directories:
            with self._changed:
                self._stack.extend(directories)
                self._changed.notify(len(directories))

    def begin(self, root: Directory, asks_nothing: Callable[[], None]) -> None:
        """The first directory of a scan. At once with the word that none is asked for: a thread that asked in between
        would have the scan taken for one that has listed everything."""
        with self._changed:
            asks_nothing()
            self._stack.append(root)
            self._changed.notify()

    def take(self) -> Directory | None:
        """The next one, to be told `done`; None where there was none for WAIT_S, or the frontier is closed."""
        with self._changed:
            if not self._stack and not self._closed:
                self._changed.wait_for(self._ready, WAIT_S)
            if self._closed or not self._stack:
                return None
            self._busy += 1
            return self._stack.pop()

    def _ready(self) -> bool:
        if not self._stack and not self._busy:
            self._stack.extend(self._received())
        return bool(self._stack) or self._closed

    def done(self) -> None:
        """A directory that was taken is listed, and what is beneath it is pushed."""
        with self._changed:
            self._busy -= 1

    def spare(self) -> list[Directory]:
        """Half of them, for another process: those that came first."""
        with self._changed:
            return [self._stack.popleft() for _ in range(len(self._stack) // 2)]

    def hand_over(self, board: Board, below: Sequence[Directory]) -> None:
        """More to list, here or by processes that ask."""
        self.push(below)
        if (asking := board.asks()) is not None and (some := self.spare()):
            given = board.give(asking, some)
            self.push(some[given:])

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Whoever takes gets nothing any more. Idempotent."""
        with self._changed:
            self._closed = True
            self._stack.clear()
            self._changed.notify_all()
