"""Which threads of a followed process are read at a tick, and what of them."""

import os
from collections.abc import Iterable, Sequence

from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import TASK
from loadframe.recording.held_files import READ_ONLY, Descriptors, used_up
from loadframe.recording.wait_classes import CALLS, MOST_POLLED, MOST_SELECTED, POLL_CALLS, POLLED_BYTES, SELECT_CALLS

TASK_FILES = ("stat", "schedstat", "wchan", "status", "syscall")
SOURCES = ("threads", "tasks", "task-schedstat", "task-status", "task-syscall")
CENSUS_LEAST_PER_S, CENSUS_MOST_PER_S = 120, 1000
"""Threads whose state is read per second, in turn: each once per second up to 1,000, of more 1,000: after a second the
share of a state among 10,000 threads is known to 1.6 % of them (one standard error). Up to 12 threads are all read at
each tick of 0.1 s."""
WHERE_PER_S = 20
"""Of these, threads whose kernel function is read: it says less than the system call, but needs no right to trace."""
SYSCALLS_PER_S = 120
"""Of these, threads whose system call is read, at two thirds of the cost of the state. If calls are not reported, so
many kernel functions are read."""
CPU_TIMES_PER_S = 320
"""Threads whose CPU time is read per second: all at each tick of 0.1 s up to 32, of more these in turn. A short window
must find the hottest thread of a small process."""
STATUSES_PER_S = 10
"""Threads whose context switches are read: a status costs as much as a thread's other files together."""
SWITCHES_TAIL_BYTES = 256
"""They are in the last lines of a thread's status (newer kernels add one or two short ones)."""

_NOT_OPENED, _NOT_HELD, _ABSENT = -1, -2, -3
_STAT, _SCHEDSTAT, _WCHAN, _STATUS, _SYSCALL = range(len(TASK_FILES))


class Threads:
    """A census of states in turn, CPU time, context switches. live: /proc itself, where the link count of a task folder
    gives the number of threads for a hundredth of the cost of listing them."""

    def __init__(
        self,
        prefix: str,
        directory: int,
        writer: FrameWriter,
        descriptors: Descriptors,
        interval_s: float,
        *,
        live: bool,
    ) -> None:
        self._writer = writer
        self._descriptors = descriptors
        self._directory = directory
        self._live = live
        self._calls_denied = self._lost = False
        self._memory = _NOT_OPENED
        self.count = 0
        self._order: list[_ThreadFiles] = []
        self._census, self._cpu_times, self._statuses = Turn(), Turn(), Turn()
        self._interval_s = interval_s
        self._least, self._where, self._times, self._switches, self._asked = (
            max(1, round(per_s * interval_s))
            for per_s in (CENSUS_LEAST_PER_S, WHERE_PER_S, CPU_TIMES_PER_S, STATUSES_PER_S, SYSCALLS_PER_S)
        )
        self._prefix = prefix
        self._sources = {name: writer.source(f"{prefix}:{name}") for name in SOURCES}

    def sample(self, second: bool) -> None:
        try:
            self._notice_changes(second)
        except OSError:  # gone at this very moment; the next tick records it
            return
        self.put_count()
        wanted = min(len(self._order), CENSUS_MOST_PER_S) * self._interval_s
        census = self._census.of(self._order, max(self._least, round(wanted)))
        # A different start at each round, or some would never be read.
        where = self._asked if self._calls_denied else self._where
        first = self._census.rounds * where % max(1, len(census))
        around = [*census[first:], *census[:first]]
        self._rows("tasks", (around[:where], (_STAT, _WCHAN)), (around[where:], (_STAT,)))
        if not self._calls_denied:
            self._sample_calls(around[: self._asked])
        self._rows("task-schedstat", (self._cpu_times.of(self._order, self._times), (_SCHEDSTAT,)))
        self._rows("task-status", (self._statuses.of(self._order, self._switches), (_STATUS,)))

    def put_count(self) -> None:
        self._writer.put(self._sources["threads"], b"%d\n" % self.count)

    def _notice_changes(self, second: bool) -> None:
        """Of many threads, once per second at most."""
        count = os.fstat(self._directory).st_nlink - 2 if self._live else -1
        changed = self._lost or count != self.count
        self.count = count if self._live else self.count
        if not changed or not (second or len(self._order) <= self._times):
            return
        listed = [int(name) for name in os.listdir(self._directory)]  # noqa: PTH208 - a held directory
        known = {files.thread: files for files in self._order}
        self._release(known[thread] for thread in known.keys() - set(listed))
        self._order = [known.get(thread) or _ThreadFiles(thread) for thread in listed]
        self._lost = False
        self.count = len(listed)

    def _rows(self, source: str, *groups: "tuple[Sequence[_ThreadFiles], Sequence[int]]") -> None:
        writer = self._writer
        writer.begin_entry(self._sources[source])
        for files, wanted in ((files, wanted) for chosen, wanted in groups for files in chosen):
            head = writer.reserve_row()
            lengths = [0, 0, 0]
            try:
                for index in wanted:
                    held, place = files.held[index], 0 if index == _STATUS else index  # alone in its row
                    lengths[place] = writer.pull(held) if held >= 0 else self._pull(files, index)
            except OSError as error:  # the thread ended
                writer.end = head
                self._lost = self._lost or not used_up(error)
                continue
            if _STATUS in wanted:
                begin = head + TASK.size
                tail = bytes(writer.buffer[max(begin, writer.end - SWITCHES_TAIL_BYTES) : writer.end])
                writer.end = begin
                lengths[0] = writer.append(tail)
            TASK.pack_into(writer.buffer, head, files.thread, *lengths)
        writer.end_entry()

    def _pull(self, files: "_ThreadFiles", index: int) -> int:
        """Returns the length, 0 if the kernel lacks the file. OSError once the thread is gone."""
        descriptor = files.held[index]
        if descriptor >= 0:
            return self._writer.pull(descriptor)
        if descriptor == _ABSENT:
            return 0
        path = f"{files.thread}/{TASK_FILES[index]}"
        if descriptor == _NOT_OPENED:
            try:
                held = self._descriptors.hold(path, self._directory)
            except OSError:
                if index == _STAT:
                    raise
                files.held[index] = _ABSENT
                return 0
            files.held[index] = _NOT_HELD if held is None else held
            return self._pull(files, index)
        descriptor = os.open(path, READ_ONLY, dir_fd=self._directory)
        try:
            return self._writer.pull(descriptor)
        finally:
            os.close(descriptor)

    def _sample_calls(self, chosen: "Sequence[_ThreadFiles]") -> None:
        """A row of each thread that is not running: its system call, and the descriptors if it polls."""
        writer, readable = self._writer, False
        writer.begin_entry(self._sources["task-syscall"])
        for files in chosen:
            head = writer.reserve_row()
            try:
                length = self._pull(files, _SYSCALL)
            except (PermissionError, ProcessLookupError, FileNotFoundError):  # forbidden, or the thread ended
                length = 0
            readable = readable or length > 0
            if length == 0:
                writer.end = head
                continue
            polled = self._polled(bytes(writer.buffer[writer.end - length : writer.end]))
            TASK.pack_into(writer.buffer, head, files.thread, length, writer.append(polled), 0)
        writer.end_entry()
        self._calls_denied = bool(chosen) and not readable

    def _polled(self, text: bytes) -> bytes:
        """From the process's memory; empty for another call, or if forbidden."""
        span = polled_span(text)
        if span is None or self._memory == _ABSENT:
            return b""
        try:
            if self._memory == _NOT_OPENED:
                self._memory = os.open("../mem", READ_ONLY, dir_fd=self._directory)
            return os.pread(self._memory, span[1], span[0])
        except OSError:
            self._memory = _ABSENT if self._memory == _NOT_OPENED else self._memory
            return b""

    def _release(self, threads: "Iterable[_ThreadFiles]") -> None:
        for descriptor in (descriptor for files in threads for descriptor in files.held if descriptor >= 0):
            self._descriptors.release(descriptor)

    def close(self) -> None:
        self._release(self._order)
        if self._memory >= 0:
            os.close(self._memory)
        os.close(self._directory)
        for name in SOURCES:
            self._writer.retire(f"{self._prefix}:{name}")


_POLLS, _SELECTS = (
    {str(number).encode() for number, call in CALLS.get(os.uname().machine, {}).items() if call.name in names}
    for names in (POLL_CALLS, SELECT_CALLS)
)


def polled_span(text: bytes) -> tuple[int, int] | None:
    """Offset and length in memory of the descriptors of poll(2) or select(2). text: of /proc/PID/syscall. None for
    another call, and for more descriptors than a thread that waits for an answer has."""
    number, _, rest = text.partition(b" ")
    if number not in _POLLS and number not in _SELECTS:
        return None
    try:
        first, second = (int(word, 16) for word in rest.split()[:2])
    except ValueError:
        return None
    if number in _POLLS:
        return (first, second * POLLED_BYTES) if 0 < second <= MOST_POLLED else None
    return (second, (first + 63) // 64 * 8) if second and 0 < first <= MOST_SELECTED else None


class Turn:
    """rounds: how often it began again."""

    def __init__(self) -> None:
        self._next = 0
        self.rounds = 0

    def of(self, threads: "Sequence[_ThreadFiles]", size: int) -> "Sequence[_ThreadFiles]":
        """All if they are at most `size`; else the next ones, fewer at the end of the list."""
        begin = self._next if size < len(threads) and self._next < len(threads) else 0
        self.rounds += begin == 0
        self._next = begin + size
        return threads[begin : begin + size]


class _ThreadFiles:
    __slots__ = ("held", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.held = [_NOT_OPENED] * len(TASK_FILES)
