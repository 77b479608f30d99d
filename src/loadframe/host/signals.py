"""Signals that end a command, where what is done must not be cut short."""

import contextlib
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def no_core_dumps() -> None:
    """No image of our memory, which has passwords in it, comes onto a disk by a signal that ends us, nor one of what we
    start. Not PR_SET_DUMPABLE: it would keep a recorder that is not root from reading /proc of the driver. A server
    that wants its dumps may raise the limit again."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@contextmanager
def undisturbed(words: str = "") -> Iterator[None]:
    """Signals that end a command come after this. A mask would not keep them away: the kernel gives a signal to any
    thread that does not block it (polars has some), and then Python's handler runs in the main thread all the same. In
    another thread there is nothing to do: no handler ever runs there. What is ignored stays ignored.

    words: for the user who sends one, at once; "" where it is over in a moment."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def keep(number: int, _frame: object) -> None:
        if words and not came:
            tell(words)
        came.append(number)

    before = {each: handler for each in STOPPING if (handler := signal.getsignal(each)) != signal.SIG_IGN}
    try:
        for each in before:
            signal.signal(each, keep)
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)


def tell(words: str) -> None:
    """A line on stderr from a handler: a stream of Python's may be in the middle of another line."""
    with contextlib.suppress(OSError):  # closed, or full: nothing can be told
        os.write(2, f"{words}\n".encode("ascii", "backslashreplace"))


def ignore(_number: int, _frame: object) -> None:
    """A handler that does nothing. SIG_IGN would be inherited by everything that is started from then on."""
