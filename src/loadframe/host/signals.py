"""Holding back signals that end a command; and which processes a signal has stopped."""

import contextlib
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar, cast

from loadframe.system.kernel import process_stat

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Function = TypeVar("Function", bound=Callable[..., Any])
_WHOLE: set[CodeType] = set()


def no_core_dumps() -> None:
    """Keep our memory, which has passwords in it, and that of our children from being dumped to a disk. Not
    PR_SET_DUMPABLE: it would keep a recorder that is not root from reading /proc of the driver."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def whole(function: Function) -> Function:
    """A decorator: the function's lines, and what they call, are not cut short; of the generator of a context manager
    those that enter and leave the block, not the block."""
    _WHOLE.add(cast(FunctionType, function).__code__)
    return function


def cuts_short(frame: FrameType | None) -> bool:
    """Whether an exception that a handler raises in this frame, the innermost, would leave something done by half: what
    is `whole`, or a context manager whose block contextlib has just begun to leave, which it then never does."""
    if frame is not None and frame.f_code.co_filename == contextmanager.__code__.co_filename:
        return True
    while frame is not None and frame.f_code not in _WHOLE:
        frame = frame.f_back
    return frame is not None


@whole
def _take(handlers: Mapping[signal.Signals, Any]) -> None:
    for stopping, handler in handlers.items():
        signal.signal(stopping, handler)


@contextmanager
def undisturbed(words: str = "") -> Iterator[None]:
    """Delays signals that end a command until after this block. A mask would not do: the kernel gives a signal to any
    thread that does not block it (polars has some), and Python's handler runs in the main thread all the same. In
    another thread nothing is done: handlers never run there. What is ignored stays ignored. words: shown at once to the
    user who sends a signal."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def keep(number: int, _frame: object) -> None:
        if words and not came:
            tell(words)
        came.append(number)

    before = {stopping: handler for stopping in STOPPING if (handler := signal.getsignal(stopping)) != signal.SIG_IGN}
    try:
        _take(dict.fromkeys(before, keep))
        yield
    finally:
        _take(before)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)


def tell(words: str) -> None:
    """From a handler: a stream of Python's may be in the middle of another line."""
    with contextlib.suppress(OSError):  # closed, or full
        os.write(2, f"{words}\n".encode("ascii", "backslashreplace"))


def ignore(_number: int, _frame: object) -> None:
    """SIG_IGN would be inherited by everything that is started from then on."""


LONG_S, LOOK_EVERY_S = 1.0, 0.02
STOPPED = "T"
"""State of a process that a signal has stopped (proc_pid_stat(5)). Not "t": a traced process is stopped for a moment at
each system call. A frozen control group does not show."""


def suspended(pids: Iterable[int], root: Path = Path("/")) -> tuple[int, ...]:
    """Those that SIGSTOP or SIGTSTP has stopped. root: for recorded trees."""
    stopped = []
    for pid in pids:
        with suppress(OSError):  # it has ended, or is out of our sight
            stat = process_stat(pid, root / "proc")
            stopped += [pid] if stat is not None and stat[1][0] == STOPPED else []
    return tuple(stopped)


def stopped_by_signal(pids: Iterable[int], sleep: Callable[[float], None] = time.sleep) -> str:
    """Which of these stay stopped for LONG_S, in words or "". A limiter that stops repeatedly (cpulimit) only slows."""
    stopped = suspended(pids)
    for _ in range(round(LONG_S / LOOK_EVERY_S)):
        if not stopped:
            break
        sleep(LOOK_EVERY_S)
        stopped = suspended(stopped)
    if not stopped:
        return ""
    several = f"{len(stopped)} processes ({stopped[0]}, ...) are"
    return f"{f'process {stopped[0]} is' if len(stopped) == 1 else several} stopped by a signal (SIGSTOP)"
