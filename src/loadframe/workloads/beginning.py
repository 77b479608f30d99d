"""When a driver that is ready begins: in a moment, or, as one of several on many hosts, at their common instant. Light:
worker processes import it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST_S = 120.0
"""The longest wait of a ready driver for the others."""
_told: ContextVar[Callable[[], float] | None] = ContextVar("told", default=None)


@contextmanager
def when(instant: Callable[[], float]) -> Iterator[None]:
    """Drivers started within call `instant` once all is ready, and begin at its future instant (CLOCK_MONOTONIC, s)."""
    before = _told.set(instant)
    try:
        yield
    finally:
        _told.reset(before)


def instant_s(in_a_moment_s: float) -> float:
    """When a driver that is ready now begins (CLOCK_MONOTONIC, s)."""
    instant = _told.get()
    return time.monotonic() + in_a_moment_s if instant is None else instant()


def longest_s() -> float:
    """The most that may pass between being ready and the instant."""
    return 0.0 if _told.get() is None else LONGEST_S


def wait() -> None:
    """For a driver that begins as soon as it is started: return at its instant."""
    if (instant := _told.get()) is not None:
        time.sleep(max(0.0, instant() - time.monotonic()))
