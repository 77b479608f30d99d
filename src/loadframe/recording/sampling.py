"""Reading procfs, sysfs and cgroup files as cheaply as Python can: they stay open, each tick is one `preadv` per file
straight into the recording's buffer, nothing is parsed.

A file held open also protects from reused pids: after its process is gone it answers ESRCH, never a stranger's numbers.
What is read how often follows from what it costs (docs/recording.md has the figures). This module is imported by the
recorder process and stays light: the standard library and frames.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import TASK

SYSTEM_FILES = (
    "/proc/stat",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/diskstats",
    "/proc/pressure/cpu",
    "/proc/pressure/memory",
    "/proc/pressure/io",
)
SLOW_SYSTEM_FILES = (
    *("/proc/loadavg", "/proc/sys/fs/file-nr"),
    *("/proc/net/dev", "/proc/net/snmp", "/proc/net/netstat", "/proc/net/sockstat"),
)
SLOW_SYSTEM_PATTERNS = (
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq",
    "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count",
)
"""Once per second: what changes slowly, sockets and their queues, and what tells that a CPU changed its speed."""
RECORDER_FILES = ("/proc/self/schedstat",)
SLOW_RECORDER_FILES = ("/proc/self/stat",)
PROCESS_FILES = ("stat", "io")
SLOW_PROCESS_FILES = ("status", "limits")
TASK_FILES = ("stat", "schedstat", "wchan", "status")
CGROUP_FILES = (
    *("cpu.stat", "cpu.pressure", "memory.current", "memory.pressure", "io.stat", "io.pressure", "pids.current"),
    *("cpuacct.usage", "cpuacct.stat", "memory.usage_in_bytes"),
    *("blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"),
)
SLOW_CGROUP_FILES = (
    *("cpu.max", "memory.max", "memory.events", "memory.stat", "pids.max", "pids.events"),
    *("cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes", "memory.failcnt", "memory.max_usage_in_bytes"),
)
"""Of both versions of cgroups: what a folder does not have is left out."""

SECOND_S = 0.95
"""What is read once per second is due again after this time: a bit less, so that ticks of 0.1 s do not make it 1.1."""
MANY_THREADS = 1000
"""Above this, what the kernel adds up over all threads at each reading is read once per second: per 1,000 threads,
/proc/PID/stat takes 43 us, io 20 us, the process's CPU clock 22 us (benchmarks/recorder.py's machine)."""
CENSUS_LEAST_PER_S, CENSUS_MOST_PER_S = 40, 1000
"""Threads whose state is looked at per second, in turn: each once per second up to 1,000 threads, of more 1,000. What
that leaves out costs little: the share of a state among 10,000 threads is known to 1.6 % of them (one standard error)
after a second. A process of up to 4 threads is looked at whole at each tick of 0.1 s."""
WHERE_PER_S = 20
"""Of these, threads that are asked where they sleep: that costs half as much again."""
CPU_TIMES_PER_S = 320
"""Threads whose CPU time is read per second: all at each tick of 0.1 s up to 32, of more these in turn. A short window
must find the hottest thread of a small process; nobody needs that of ten thousand ten times a second."""
STATUSES_PER_S = 10
"""Threads whose context switches are read per second: a thread's status costs as much as its other files together."""
MANY_OPEN_FILES = 512
"""Above this, counting open files by listing them (kernels before 6.2) is done once per second."""
SWITCHES_TAIL_BYTES = 256
"""The context switches are the last lines of a thread's status (newer kernels add one or two short lines)."""
MOST_HELD = 8192
"""Files held open at most: each costs the kernel one to two kilobytes. Beyond, they are opened at each reading."""

_SPARE_DESCRIPTORS = 64
_READ_ONLY = os.O_RDONLY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_GONE = b"gone\n"
_CPU_CLOCK_OF_PROCESS = 2
_NOT_OPENED, _NOT_HELD, _ABSENT = -1, -2, -3
_STAT, _SCHEDSTAT, _WCHAN, _STATUS = range(len(TASK_FILES))

Held = list[tuple[int, int]]
"""Source id and descriptor of each file that is read again and again."""


class Descriptors:
    """How many files may be held open; beyond that they are opened and closed at each reading."""

    def __init__(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = min(hard, MOST_HELD) if hard != resource.RLIM_INFINITY else MOST_HELD
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        self.free = allowed - _SPARE_DESCRIPTORS

    def hold(self, path: str, directory: int | None = None) -> int | None:
        """An open descriptor to keep, or None when there are enough already. OSError if the file will not open."""
        if self.free <= 0:
            return None
        descriptor = os.open(path, _READ_ONLY, dir_fd=directory)
        self.free -= 1
        return descriptor

    def release(self, descriptor: int) -> None:
        os.close(descriptor)
        self.free += 1


def _read_all(writer: FrameWriter, held: Held) -> None:
    """An entry of each file that answers; the others are absent (/proc/pressure where it is switched off)."""
    read = writer.read
    for source, descriptor in held:
        try:
            read(source, descriptor)
        except OSError:
            continue


class SystemFiles:
    """The files of the whole machine and of the recorder itself; those that the kernel does not have are left out."""

    def __init__(self, root: Path, writer: FrameWriter) -> None:
        self._writer = writer
        self._root = root
        self._held = self._open("system", SYSTEM_FILES) + self._open("recorder", RECORDER_FILES)
        patterns = [path for pattern in SLOW_SYSTEM_PATTERNS for path in sorted(root.glob(pattern))]
        self._slow = self._open("system", SLOW_SYSTEM_FILES) + self._open("recorder", SLOW_RECORDER_FILES)
        self._slow += self._open("system", [f"/{path.relative_to(root)}" for path in patterns])
        self._next_second_s = 0.0

    def _open(self, component: str, paths: Sequence[str]) -> Held:
        held = []
        for path in paths:
            descriptor = _open_if_there(f"{str(self._root).rstrip('/')}{path}")
            if descriptor is not None:
                held.append((self._writer.source(f"{component}:{path}"), descriptor))
        return held

    def sample(self, now_s: float) -> None:
        _read_all(self._writer, self._held)
        if now_s >= self._next_second_s:
            self._next_second_s = now_s + SECOND_S
            _read_all(self._writer, self._slow)


def _open_if_there(path: str) -> int | None:
    try:
        return os.open(path, _READ_ONLY)
    except OSError:
        return None


class CgroupFiles:
    """The cgroup of a component: one folder with version 2, one for each controller with version 1."""

    def __init__(
        self, root: Path, component: str, folders: Sequence[str], writer: FrameWriter, descriptors: Descriptors
    ) -> None:
        self._writer = writer
        self._descriptors = descriptors
        self._names: list[str] = []
        self._next_second_s = 0.0
        self._held = self._open(root, component, folders, CGROUP_FILES)
        self._slow = self._open(root, component, folders, SLOW_CGROUP_FILES)

    def _open(self, root: Path, component: str, folders: Sequence[str], names: Sequence[str]) -> Held:
        held: Held = []
        for path in (f"{folder.rstrip('/')}/{name}" for folder in folders for name in names):
            source = f"{component}:cgroup:{path}"
            if source in self._names:  # cpu and cpuacct may be one folder under two names
                continue
            try:
                descriptor = self._descriptors.hold(f"{str(root).rstrip('/')}{path}")
            except OSError:
                continue
            if descriptor is not None:
                self._names.append(source)
                held.append((self._writer.source(source), descriptor))
        return held

    def sample(self, now_s: float) -> None:
        """Once the cgroup is removed its files answer ENODEV: absent from then on."""
        _read_all(self._writer, self._held)
        if now_s >= self._next_second_s:
            self._next_second_s = now_s + SECOND_S
            _read_all(self._writer, self._slow)

    def close(self) -> None:
        for _, descriptor in (*self._held, *self._slow):
            self._descriptors.release(descriptor)
        for name in self._names:
            self._writer.retire(name)


def size_counts_open_files(root: Path) -> bool:
    """Whether the size of /proc/PID/fd is the number of open files (Linux 6.2 and later)."""
    path = root / "proc/self/fd"
    descriptor = _open_if_there(str(path))
    if descriptor is None:
        return False
    try:
        return os.stat(path).st_size == len(os.listdir(descriptor)) > 0  # noqa: PTH116, PTH208 - held open, not by path
    finally:
        os.close(descriptor)


class ProcessFiles:
    """One followed process: its files, its threads, the number of its open files. OSError if it does not exist."""

    def __init__(
        self,
        root: Path,
        component: str,
        pid: int,
        writer: FrameWriter,
        descriptors: Descriptors,
        *,
        size_counts: bool,
        interval_s: float,
    ) -> None:
        self._writer = writer
        self._descriptors = descriptors
        self._size_counts = size_counts
        self._next_second_s = 0.0
        self._many_open_files = False
        # Of a tree laid out elsewhere only the files are to be had, not the clocks of its processes.
        self._clock = (~pid << 3) | _CPU_CLOCK_OF_PROCESS if root == Path("/") else None
        self._directory = os.open(root / f"proc/{pid}", _FOLDER)
        try:
            tasks_directory = os.open("task", _FOLDER, dir_fd=self._directory)
        except OSError:
            os.close(self._directory)
            raise
        prefix = f"{component}:{pid}"
        paths = {name: f"{prefix}:/proc/{pid}/{name}" for name in (*PROCESS_FILES, *SLOW_PROCESS_FILES)}
        words = {name: f"{prefix}:{name}" for name in ("fd", "cpu", "gone")}
        self._names = [*paths.values(), *words.values()]
        self._sources = {name: writer.source(text) for name, text in (paths | words).items()}
        self._threads = Threads(prefix, tasks_directory, writer, descriptors, interval_s, live=self._clock is not None)
        self._stat = self._hold(PROCESS_FILES[:1])
        self._held = self._hold(PROCESS_FILES[1:])
        self._slow = self._hold(SLOW_PROCESS_FILES)

    def _hold(self, names: Sequence[str]) -> Held:
        held: Held = []
        for name in names:
            try:
                descriptor = self._descriptors.hold(name, self._directory)
            except OSError:  # no permission for io, or no such file in this kernel: the entry is absent
                continue
            if descriptor is not None:
                held.append((self._sources[name], descriptor))
        return held

    def sample(self, now_s: float) -> bool:
        """Append this tick's entries; False (and an entry that says so) once the process is gone."""
        second = now_s >= self._next_second_s
        if second:
            self._next_second_s = now_s + SECOND_S
        due = second or self._threads.count <= MANY_THREADS
        try:
            if due:
                self._sample_cpu()
                for source, descriptor in self._stat:
                    self._writer.read(source, descriptor)
        except OSError:  # ESRCH, and EINVAL of the clock
            self._writer.put(self._sources["gone"], _GONE)
            return False
        if due:
            _read_all(self._writer, self._held)
        if second:
            _read_all(self._writer, self._slow)
        self._sample_open_files(second)
        self._threads.sample(second)
        return True

    def _sample_cpu(self) -> None:
        """CPU time of all its threads, also of those that ended, in nanoseconds."""
        if self._clock is not None:
            self._writer.put(self._sources["cpu"], b"%d\n" % time.clock_gettime_ns(self._clock))

    def _sample_open_files(self, second: bool) -> None:
        if self._many_open_files and not second:
            return
        try:
            if self._size_counts:
                count = os.stat("fd", dir_fd=self._directory).st_size
            else:
                count = _entries_of("fd", self._directory)
                self._many_open_files = count > MANY_OPEN_FILES
        except OSError:  # no permission, or gone
            return
        self._writer.put(self._sources["fd"], b"%d\n" % count)

    def close(self) -> None:
        self._threads.close()
        for _, descriptor in (*self._stat, *self._held, *self._slow):
            self._descriptors.release(descriptor)
        os.close(self._directory)
        for name in self._names:
            self._writer.retire(name)


def _entries_of(path: str, directory: int) -> int:
    descriptor = os.open(path, _READ_ONLY, dir_fd=directory)
    try:
        with os.scandir(descriptor) as listing:
            return sum(1 for _ in listing)
    finally:
        os.close(descriptor)


class Threads:
    """The threads of a process: a census of their states in turn, their CPU time, their context switches.

    live: /proc itself, where the number of links of a task folder tells the number of threads for a tenth of a
    microsecond each; listing them costs a hundred times that.
    """

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
        self.count = 0
        self._lost = False
        self._order: list[_ThreadFiles] = []
        self._census, self._cpu_times, self._statuses = Turn(), Turn(), Turn()
        self._interval_s = interval_s
        self._least, self._where, self._times, self._switches = (
            max(1, round(per_s * interval_s))
            for per_s in (CENSUS_LEAST_PER_S, WHERE_PER_S, CPU_TIMES_PER_S, STATUSES_PER_S)
        )
        names = {name: f"{prefix}:{name}" for name in ("threads", "tasks", "task-schedstat", "task-status")}
        self._names = list(names.values())
        self._sources = {name: writer.source(text) for name, text in names.items()}

    def sample(self, second: bool) -> None:
        """Append this tick's entries."""
        try:
            self._notice_changes(second)
        except OSError:  # gone in this very moment; the next tick says so
            return
        self._writer.put(self._sources["threads"], b"%d\n" % self.count)
        everybody = len(self._order)
        wanted = min(everybody, CENSUS_MOST_PER_S) * self._interval_s
        census = self._census.of(self._order, max(self._least, round(wanted)))
        self._begin_rows("tasks")
        self._rows(census[: self._where], _STAT, _WCHAN)
        self._rows(census[self._where :], _STAT)
        self._writer.end_entry()
        self._begin_rows("task-schedstat")
        self._rows(self._cpu_times.of(self._order, self._times), _SCHEDSTAT)
        self._writer.end_entry()
        self._sample_statuses()

    def _notice_changes(self, second: bool) -> None:
        """List the threads again where one went or their number changed; of many, once per second at most."""
        count = os.fstat(self._directory).st_nlink - 2 if self._live else -1
        changed = self._lost or count != self.count
        self.count = count if self._live else self.count
        if changed and (second or len(self._order) <= self._times):
            self._list()

    def _list(self) -> None:
        listed = [int(name) for name in os.listdir(self._directory)]  # noqa: PTH208 - a held directory
        known = {files.thread: files for files in self._order}
        for thread in known.keys() - set(listed):
            known[thread].close(self._descriptors)
        self._order = [known.get(thread) or _ThreadFiles(thread) for thread in listed]
        self._lost = False
        self.count = len(listed)

    def _begin_rows(self, name: str) -> None:
        self._writer.begin_entry(self._sources[name])

    def _rows(self, chosen: Sequence[_ThreadFiles], *wanted: int) -> None:
        """A row of each thread with the texts of these of its files."""
        writer, directory, descriptors = self._writer, self._directory, self._descriptors
        for files in chosen:
            head = writer.reserve_row()
            lengths = [0, 0, 0]
            try:
                for index in wanted:
                    held = files.held[index]
                    lengths[index] = (
                        writer.pull(held) if held >= 0 else files.pull(index, writer, directory, descriptors)
                    )
            except OSError:  # the thread ended
                writer.end = head
                self._lost = True
                continue
            TASK.pack_into(writer.buffer, head, files.thread, *lengths)

    def _sample_statuses(self) -> None:
        writer = self._writer
        writer.begin_entry(self._sources["task-status"])
        for files in self._statuses.of(self._order, self._switches):
            head = writer.reserve_row()
            try:
                length = files.pull(_STATUS, writer, self._directory, self._descriptors)
            except OSError:  # this thread ended in this very moment
                writer.end = head
                continue
            TASK.pack_into(writer.buffer, head, files.thread, writer.keep_tail(length, SWITCHES_TAIL_BYTES), 0, 0)
        writer.end_entry()

    def close(self) -> None:
        for files in self._order:
            files.close(self._descriptors)
        os.close(self._directory)
        for name in self._names:
            self._writer.retire(name)


class Turn:
    """Takes so many of a list at each call, around and around."""

    def __init__(self) -> None:
        self._next = 0

    def of(self, everybody: Sequence[_ThreadFiles], size: int) -> Sequence[_ThreadFiles]:
        """All where they are no more than `size`; else the next ones, fewer where the list ends."""
        if size >= len(everybody):
            return everybody
        begin = self._next if self._next < len(everybody) else 0
        self._next = begin + size
        return everybody[begin : begin + size]


class _ThreadFiles:
    """The files of one thread: opened when first read, held open while descriptors last."""

    __slots__ = ("held", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.held = [_NOT_OPENED] * len(TASK_FILES)

    def pull(self, index: int, writer: FrameWriter, directory: int, descriptors: Descriptors) -> int:
        """Append a file's text to the row, and hold the file if that can be; its length, 0 for one that the kernel does
        not have. OSError once the thread is gone."""
        descriptor = self.held[index]
        if descriptor >= 0:
            return writer.pull(descriptor)
        if descriptor == _ABSENT:
            return 0
        path = f"{self.thread}/{TASK_FILES[index]}"
        if descriptor == _NOT_OPENED:
            try:
                held = descriptors.hold(path, directory)
            except OSError:
                if index == 0:
                    raise
                self.held[index] = _ABSENT
                return 0
            self.held[index] = _NOT_HELD if held is None else held
            if held is not None:
                return writer.pull(held)
        descriptor = os.open(path, _READ_ONLY, dir_fd=directory)
        try:
            return writer.pull(descriptor)
        finally:
            os.close(descriptor)

    def close(self, descriptors: Descriptors) -> None:
        for descriptor in self.held:
            if descriptor >= 0:
                descriptors.release(descriptor)
