"""A bounded queue between two stages: whoever is faster waits for the other."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Queue(Generic[T]):
    """First in, first out, for several threads at once. most: how many may wait."""

    def __init__(self, most: int) -> None:
        self._items: deque[T] = deque()
        self._most = most
        self._closed = False
        lock = threading.Lock()
        self._filled, self._emptied = threading.Condition(lock), threading.Condition(lock)

    def put(self, item: T) -> bool:
        """Wait until there is room. False where the queue is closed, and the item is left out."""
        with self._emptied:
            while len(self._items) >= self._most and not self._closed:
                self._emptied.wait()
            if self._closed:
                return False
            self._items.append(item)
            self._filled.notify()
            return True

    def get(self) -> T | None:
        """Wait for the next one; None where the queue is closed and empty."""
        with self._filled:
            while not self._items and not self._closed:
                self._filled.wait()
            if not self._items:
                return None
            self._emptied.notify()
            return self._items.popleft()

    def full(self) -> bool:
        """Whether `put` would wait."""
        return len(self._items) >= self._most and not self._closed

    def empty(self) -> bool:
        """Whether `get` would wait."""
        return not self._items and not self._closed

    def close(self, *, drop: bool = False) -> None:
        """Nothing more comes. drop: what waits is left out. Idempotent."""
        with self._filled:
            self._closed = True
            if drop:
                self._items.clear()
            self._filled.notify_all()
            self._emptied.notify_all()
