"""What all threads of some processes are doing, which a CPU profile cannot see:
/proc/PID/task/*/{stat,stack,wchan,syscall}, proc(5). `stack` needs CAP_SYS_ADMIN and `syscall` the right to trace;
without them the innermost kernel function (`wchan`) has to do."""

import os
import platform
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from loadframe.errors import RecordingError
from loadframe.recording.held_files import opened
from loadframe.recording.procfs import parse_process_stat
from loadframe.recording.profiles.perf import KERNEL_SUFFIX, Sample, function_name
from loadframe.recording.wait_classes import CALLS

LOOK_S = 0.02
CPU_SHARE = 0.05
"""Of one CPU, at most, over the time until the next look."""
FUTEX = {machine: number for machine, calls in CALLS.items() for number, call in calls.items() if call.name == "futex"}
FUTEX_COMMAND = 0x7F
FUTEX_WAIT = 0
"""linux/futex.h. glibc waits for a mutex with FUTEX_WAIT (nptl/lowlevellock.c), as do InnoDB's own locks
(storage/innobase/sync/srw0srw.cc), for a condition with FUTEX_WAIT_BITSET (nptl/futex-internal.c)."""
RUNNING = "[running or runnable]"
STATES = {"S": "[sleeping]", "D": "[uninterruptible]", "T": "[stopped]", "t": "[traced]", "I": "[idle]"}
_STACK_LINE = re.compile(rb"\[<[0-9a-fx]+>\] ([^\s+]+)")


def look(root: Path, pid: int, now_s: float, *, futex: int | None = None) -> list[Sample]:
    """A sample per thread; none if the process is gone. root: for recorded trees."""
    tasks = root / f"proc/{pid}/task"
    try:
        threads = os.listdir(tasks)  # noqa: PTH208 - names alone, many times a second
    except OSError:  # it ended
        return []
    samples = []
    for thread in threads:
        frames = _frames(f"{tasks}/{thread}", futex)
        if frames is not None and thread.isdigit():
            samples.append(Sample(now_s, pid, int(thread), frames[0], frames))
    return samples


def _frames(task: str, futex: int | None) -> tuple[str, ...] | None:
    try:
        stat = parse_process_stat(_read(f"{task}/stat"))
    except RecordingError:
        return None
    if stat.state in "ZX":
        return None
    name = stat.command or "?"
    if stat.state == "R":
        return (name, RUNNING)
    frames = parse_stack(_read(f"{task}/stack"))
    if not frames and (wchan := _read(f"{task}/wchan").decode("ascii", "replace").strip()) not in ("", "0"):
        frames = (f"{function_name(wchan)}{KERNEL_SUFFIX}",)
    if any("futex_wait" in frame or "futex_do_wait" in frame for frame in frames):
        frames = (*frames, futex_kind(_read(f"{task}/syscall"), futex))
    return (name, STATES.get(stat.state, f"[{stat.state}]"), *frames)


def parse_stack(data: bytes) -> tuple[str, ...]:
    """From the outermost on; empty for any other text."""
    names = [name.decode("ascii", "replace") for name in reversed(_STACK_LINE.findall(data))]
    return tuple(f"{function_name(name)}{KERNEL_SUFFIX}" for name in names)


def futex_kind(data: bytes, futex: int | None) -> str:
    """From /proc/PID/syscall: a lock, or another thread's signal."""
    fields = data.split()
    with suppress(IndexError, ValueError):
        if int(fields[0]) == futex:
            waits_for_lock = int(fields[2], 16) & FUTEX_COMMAND == FUTEX_WAIT
            return "[futex: lock]" if waits_for_lock else "[futex: condition]"
    return "[futex]"


def _read(path: str) -> bytes:
    with suppress(OSError), opened(path) as descriptor:
        return os.read(descriptor, 16384)
    return b""  # forbidden, perhaps only at the reading, or it has just ended


class ThreadSampler:
    """pids: called at each look."""

    def __init__(self, pids: Callable[[], Sequence[int]]) -> None:
        self._pids = pids
        self._futex = FUTEX.get(platform.machine())
        self._samples: list[Sample] = []
        self._looks: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="thread-sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def between(self, start_s: float, end_s: float) -> tuple[list[Sample], int]:
        samples = [sample for sample in self._samples if start_s <= sample.time_s <= end_s]
        return samples, sum(start_s <= at_s <= end_s for at_s in self._looks)

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            at_s, cpu_s = time.monotonic(), time.thread_time()
            for pid in self._pids():
                self._samples += look(Path("/"), pid, at_s, futex=self._futex)
            self._looks.append(at_s)
            pause_s = max(LOOK_S, (time.thread_time() - cpu_s) / CPU_SHARE)
