"""When requests begin: a file that all threads of a driver share as their standard input. Reading moves its one offset,
so each arrival is taken by one thread, in order. It is written once all are ready, through the descriptor opened
earlier: a driver could have replaced it. A record is two float64: an arrival and the end of the step (CLOCK_MONOTONIC,
s); in a replay a third names the request. Last comes one per thread at the end: there it stops."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from loadframe.workloads import step_files

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST_S = 120.0
_instant: ContextVar[Callable[[], float] | None] = ContextVar("instant", default=None)
ARRIVALS = "arrivals"
READY_WITHIN_S = 10.0
POLL_S = 0.005
HEAD_START_S = 0.05


@contextmanager
def when(instant: Callable[[], float]) -> Iterator[None]:
    """Drivers started within call `instant` once all is ready, and begin at its future instant (CLOCK_MONOTONIC, s)."""
    before = _instant.set(instant)
    try:
        yield
    finally:
        _instant.reset(before)


def instant_s(in_a_moment_s: float) -> float:
    """When a driver that is ready now begins (CLOCK_MONOTONIC, s)."""
    instant = _instant.get()
    return time.monotonic() + in_a_moment_s if instant is None else instant()


def longest_s() -> float:
    """The most that may pass between being ready and the instant."""
    return 0.0 if _instant.get() is None else LONGEST_S


def wait() -> None:
    """Return at the instant, for a driver that begins as soon as it is started."""
    time.sleep(max(0.0, instant_s(0.0) - time.monotonic()))


@dataclass(frozen=True, slots=True)
class Schedule:
    """offsets: of arrivals, ascending from 0 (s), shape (requests,); numbers: of the requests in the block, same
    shape."""

    offsets: NDArray[np.float64]
    numbers: NDArray[np.int64]


def await_ready(process: subprocess.Popen[bytes], logs: Sequence[Path]) -> None:
    """Return when every thread has opened its log, or the process has ended."""
    until = time.monotonic() + READY_WITHIN_S
    while not all(log.exists() for log in logs) and process.poll() is None and time.monotonic() < until:
        time.sleep(POLL_S)


def arrival_times(rate: float, duration_s: float) -> NDArray[np.float64]:
    """A Poisson process (s, ascending) conditioned on its count: the offered rate is exact."""
    import numpy as np

    return np.sort(np.random.default_rng().uniform(0.0, duration_s, max(1, round(rate * duration_s))))


def let_begin(
    file: IO[bytes], rate: float | Schedule | None, duration_s: float, threads: int
) -> tuple[NDArray[np.float64] | None, float]:
    """Let requests arrive from now on for duration_s: at a rate, by a schedule, or, in a closed loop (None), one per
    thread. Returns the arrivals (None in a closed loop) and the end (CLOCK_MONOTONIC, s)."""
    import numpy as np

    begin_s = instant_s(HEAD_START_S)
    end_s = begin_s + duration_s
    numbers = None
    if rate is None:
        arrivals = np.full(threads, begin_s)
    elif isinstance(rate, Schedule):
        arrivals, numbers = begin_s + rate.offsets, np.append(rate.numbers, np.zeros(threads, dtype=np.int64))
    else:
        arrivals = begin_s + arrival_times(rate, duration_s)
    times = np.append(arrivals, np.full(threads, end_s))
    columns = [times, np.full(len(times), end_s), *([] if numbers is None else [numbers])]
    step_files.write_whole(file, np.column_stack(columns).astype("<f8").tobytes())
    return None if rate is None else arrivals, end_s
