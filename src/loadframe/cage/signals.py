"""Signals that end a command, where what is done must not be cut short."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that end a command come after this. A mask would not keep them away: the kernel gives a signal to any
    thread that does not block it (polars has some), and then Python's handler runs in the main thread all the same. In
    another thread there is nothing to do: no handler ever runs there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {each: signal.getsignal(each) for each in STOPPING}
    try:
        for each in STOPPING:
            signal.signal(each, lambda number, _frame: came.append(number))
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)


def ignore(_number: int, _frame: object) -> None:
    """A handler that does nothing. SIG_IGN would be inherited by everything that is started from then on."""
