"""How long a process was kept waiting for a CPU or a disk: one that says nothing meanwhile has not stopped.

Told from what every kernel has (proc_pid_stat(5)): a thread that is runnable, or waits for a disk, at the moment of a
look, and the CPU time that the process had since the last one. One that uses a whole CPU waits for nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

WAITING = frozenset("RD")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class KeptWaiting:
    """Of one process since `begin`. Look at it now and then: what is between two looks is told by the second."""

    def __init__(self, pid: int, root: Path = Path("/"), now_s: Callable[[], float] = time.monotonic) -> None:
        """root: for recorded trees."""
        self._folder = root / f"proc/{pid}"
        self._now_s = now_s
        self.begin()

    def begin(self) -> None:
        """Nothing was waited for until now."""
        self.seconds = 0.0
        self._at_s, self._used_s = self._now_s(), self._cpu_s()

    def look(self) -> None:
        """Add what it was kept waiting for since the last look."""
        now_s, used_s = self._now_s(), self._cpu_s()
        if self._states() & WAITING:
            self.seconds += max(0.0, now_s - self._at_s - (used_s - self._used_s))
        self._at_s, self._used_s = now_s, used_s

    def _states(self) -> set[str]:
        return {fields[0] for task in self._folder.glob("task/[0-9]*") if (fields := _fields(task))}

    def _cpu_s(self) -> float:
        """Of all its threads (fields 14 and 15)."""
        fields = _fields(self._folder)
        return (int(fields[11]) + int(fields[12])) * TICK_S if fields else 0.0


def _fields(folder: Path) -> list[str]:
    """Of its stat from the third one on; none where it has ended."""
    try:
        text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()
