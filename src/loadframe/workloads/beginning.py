"""When a driver that is ready begins: in a moment, or, where it is one of several on many hosts, at the instant that
all of them are told. Light: worker processes import it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LONGEST_S = 120.0
"""Who is ready waits no longer for the others."""
_told: ContextVar[Callable[[], float] | None] = ContextVar("told", default=None)


@contextmanager
def when(told: Callable[[], float]) -> Iterator[None]:
    """Drivers that are started within begin when it says so: it is called once all is ready, may wait, and answers the
    instant (CLOCK_MONOTONIC, s), which is still to come."""
    before = _told.set(told)
    try:
        yield
    finally:
        _told.reset(before)


def instant_s(in_a_moment_s: float) -> float:
    """When a driver begins that is ready now (CLOCK_MONOTONIC, s)."""
    told = _told.get()
    return time.monotonic() + in_a_moment_s if told is None else told()


def longest_s() -> float:
    """The most that may pass between being ready and the instant."""
    return 0.0 if _told.get() is None else LONGEST_S


def wait() -> None:
    """Of a driver that begins as soon as it is started: return when it is to be."""
    if (told := _told.get()) is not None:
        time.sleep(max(0.0, told() - time.monotonic()))
