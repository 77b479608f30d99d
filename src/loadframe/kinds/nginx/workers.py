"""What nginx's workers do, from /proc: CPU time, open files, and whether they wait for a disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LONGEST_LOOK_S = 5.0
"""What was seen a longer time ago says nothing about the time since."""


class Looks:
    """Adds up what workers do from look to look. root: for recorded trees. clock: CLOCK_MONOTONIC, in seconds."""

    def __init__(self, root: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._clock = root, clock
        self._at_s: float | None = None
        self._blocked_s = 0.0

    def read(self, workers: Sequence[int]) -> dict[str, float]:
        """worker_cpu, worker_blocked: seconds of a worker, the average of all; worker_open_files: of the one that has
        most. Nothing where there are none."""
        found = [one for pid in workers if (one := self._stat(pid)) is not None]
        if not found:
            return {}
        now_s = self._clock()
        since_s = 0.0 if self._at_s is None else now_s - self._at_s
        self._at_s = now_s
        if since_s <= LONGEST_LOOK_S:
            self._blocked_s += since_s * sum(state == "D" for state, _ in found) / len(found)
        return {
            "worker_cpu": sum(cpu_s for _, cpu_s in found) / len(found),
            "worker_blocked": self._blocked_s,
            "worker_open_files": float(max(map(self._open_files, workers))),
        }

    def _open_files(self, pid: int) -> int:
        """Its open files; none where it has ended."""
        try:
            return len(os.listdir(self._root / str(pid) / "fd"))  # noqa: PTH208 - thousands of paths would be made
        except OSError:
            return 0

    def _stat(self, pid: int) -> tuple[str, float] | None:
        """State and CPU time in seconds (proc_pid_stat(5): fields 3, 14, 15); None where it has ended."""
        try:
            fields = (
                (self._root / str(pid) / "stat")
                .read_text(encoding="utf-8", errors="replace")
                .rpartition(")")[2]
                .split()
            )
        except OSError:
            return None
        return fields[0], (int(fields[11]) + int(fields[12])) / TICKS_PER_S
