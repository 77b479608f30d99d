"""Signals that end a command, where what is done must not be cut short; and processes that one has stopped: they are
there, and do nothing until they are continued."""

import contextlib
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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


LONG_S, LOOK_EVERY_S = 1.0, 0.02
STOPPED = "T"
"""By a signal (proc_pid_stat(5)). Not "t": a process that is traced is stopped at each system call for a moment. A
frozen control group is not told so."""


def suspended(pids: Iterable[int], root: Path = Path("/")) -> tuple[int, ...]:
    """Those of these processes that a signal (SIGSTOP, SIGTSTP) has stopped. root: for recorded trees."""
    stopped = []
    for pid in pids:
        with suppress(OSError):  # it has ended, or is out of our sight
            text = (root / f"proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            stopped += [pid] if text.rpartition(")")[2].split()[0] == STOPPED else []
    return tuple(stopped)


def told(pids: Iterable[int], sleep: Callable[[float], None] = time.sleep) -> str:
    """Which of these stay stopped for LONG_S, in words, to go on after a colon or semicolon; "" where none does. What
    limits the CPU time of a process by stopping it again and again (cpulimit) only slows it."""
    stopped = suspended(pids)
    for _ in range(round(LONG_S / LOOK_EVERY_S)):
        if not stopped:
            break
        sleep(LOOK_EVERY_S)
        stopped = suspended(stopped)
    if not stopped:
        return ""
    one = f"process {stopped[0]}" if len(stopped) == 1 else f"{len(stopped)} processes ({stopped[0]}, ...)"
    return f"{one} {'is' if len(stopped) == 1 else 'are'} stopped by a signal (SIGSTOP)"
