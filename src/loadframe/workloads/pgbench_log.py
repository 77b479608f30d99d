"""pgbench's transaction log (pgbench documentation, "Per-Transaction Logging") as requests of ours.

A line is `client number latency_us script epoch_s epoch_us`, with --rate the lag of the schedule (us) behind it, with
--max-tries > 1 the number of retries behind that. For a transaction that was skipped or has failed there is a word in
place of its latency. Each thread of pgbench writes a file of its own, and its transactions begin in the order of its
schedule.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.workloads import request_log, step_files
from loadframe.workloads.request_log import RECORD, Requests

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SKIPPED = b"skipped"
FAILED, LATE = 1, 2
"""Outcomes: it failed, or was skipped because it was too late to begin."""
LAST_LINES_BYTES = 400


@dataclass(frozen=True)
class Scheduled:
    """In an open loop, of one thread: when its transactions should have begun, in rising order (CLOCK_MONOTONIC, s),
    and how long the last of them waited to be begun (s)."""

    begin_s: NDArray[np.float64]
    last_lag_s: float

    def offered(self, start_s: float, end_s: float, rate: float) -> int:
        """How many should have begun after start_s and not after end_s, at `rate` per second. Those that no client had
        time for are in no log: where the last one waited while others will have arrived, they are counted as many as
        there should be."""
        first, last = self.begin_s.searchsorted([start_s, end_s], side="right")
        seen_s = float(self.begin_s[-1]) if len(self.begin_s) else start_s
        behind = self.last_lag_s * rate >= 1
        unseen = max(end_s - max(seen_s, start_s), 0.0) * rate if behind else 0.0
        return int(last - first) + int(unseen)


def read(paths: Sequence[Path], *, monotonic_s: float, latency_limit_ms: float) -> Requests:
    """All transactions of all threads. monotonic_s: CLOCK_MONOTONIC minus the time of day, at the start.

    Of one that failed pgbench tells no latency: it is the time since the client's one before has ended. One that was
    skipped waited for latency_limit_ms at least.
    """
    records = bytearray()
    for path in paths:
        ended_s: dict[bytes, float] = {}
        for words in _lines(path):
            end_s = int(words[4]) + int(words[5]) / 1e6 + monotonic_s
            if words[2].isdigit():
                latency_ms, outcome = int(words[2]) / 1000, 0
            elif words[2] == SKIPPED:
                latency_ms, outcome = latency_limit_ms, LATE
            else:
                latency_ms, outcome = 1000 * (end_s - ended_s.get(words[0], end_s)), FAILED
            ended_s[words[0]] = end_s
            records += RECORD.pack(end_s, max(latency_ms, 1e-3), 0.0, 0, outcome)
    return request_log.from_bytes(bytes(records))


def schedules(paths: Sequence[Path], *, monotonic_s: float, latency_limit_ms: float) -> list[Scheduled]:
    """The schedule of each thread, from a log with --rate."""
    import numpy as np

    found = []
    for path in paths:
        begun, lag_s = [], 0.0
        for words in _lines(path):
            end_s = int(words[4]) + int(words[5]) / 1e6 + monotonic_s
            if words[2].isdigit():
                begun.append(end_s - int(words[2]) / 1e6)
                lag_s = int(words[6]) / 1e6
            elif words[2] == SKIPPED:
                begun.append(end_s - latency_limit_ms / 1000)
                lag_s = latency_limit_ms / 1000
            else:
                begun.append(end_s)
        found.append(Scheduled(np.sort(np.array(begun, dtype=np.float64)), lag_s))
    return found


def lag_now_s(path: Path) -> float:
    """How long the last transaction in a log that is being written waited to be begun (s); 0 where there is none."""
    if (log := step_files.opened(path)) is None:
        return 0.0
    with log:
        log.seek(max(log.seek(0, os.SEEK_END) - LAST_LINES_BYTES, 0))
        lines = log.read().split(b"\n")[1:-1]  # the first and the last one may be torn
    lags = [int(words[6]) for line in lines if len(words := line.split()) > 6 and words[2].isdigit()]
    return lags[-1] / 1e6 if lags else 0.0


def _lines(path: Path) -> list[list[bytes]]:
    """The words of each whole line; the last one of a pgbench that was killed may be torn."""
    text = step_files.read(path)
    return [line.split() for line in text[: text.rfind(b"\n") + 1].splitlines()]
