"""Processes that are stopped: they are there, and do nothing until they are continued."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

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
