"""Reading procfs, sysfs and cgroup files as cheaply as Python can: they stay open, each tick is one `preadv` per file
straight into the recording's buffer, nothing is parsed.

A file held open also protects from reused pids: after its process is gone it answers ESRCH, never a stranger's numbers.
What is read how often follows from what it costs (docs/recording.md has the figures). This module is imported by the
recorder process and stays light: the standard library and frames.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.held_files import READ_ONLY, Descriptors, Held, open_if_there, read_all
from loadframe.recording.thread_sampling import Threads

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
    *("/proc/loadavg", "/proc/sys/fs/file-nr", "/proc/interrupts"),
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
CGROUP_FILES = (
    *("cpu.stat", "cpu.pressure", "memory.current", "memory.pressure", "io.stat", "io.pressure", "pids.current"),
    *("cpuacct.usage", "cpuacct.stat", "memory.usage_in_bytes"),
    *("blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"),
)
SLOW_CGROUP_FILES = (
    *("cpu.max", "memory.max", "memory.peak", "memory.events", "memory.stat", "io.max", "pids.max", "pids.events"),
    *("cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes", "memory.failcnt", "memory.max_usage_in_bytes"),
    "memory.oom_control",
    *(f"blkio.throttle.{name}_device" for name in ("read_bps", "write_bps", "read_iops", "write_iops")),
)
"""Of both versions of cgroups: what a folder does not have is left out."""

SECOND_S = 0.95
"""What is read once per second is due again after this time: a bit less, so that ticks of 0.1 s do not make it 1.1."""
MANY_THREADS = 1000
"""Above this, what the kernel adds up over all threads at each reading is read once per second: per 1,000 threads,
/proc/PID/stat takes 43 us, io 20 us, the process's CPU clock 22 us (benchmarks/recorder.py's machine)."""
MANY_OPEN_FILES = 512
"""Above this, counting open files by listing them (kernels before 6.2) is done once per second."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_GONE = b"gone\n"
_CPU_CLOCK_OF_PROCESS = 2


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
            descriptor = open_if_there(f"{str(self._root).rstrip('/')}{path}")
            if descriptor is not None:
                held.append((self._writer.source(f"{component}:{path}"), descriptor))
        return held

    def sample(self, now_s: float) -> None:
        read_all(self._writer, self._held)
        if now_s >= self._next_second_s:
            self._next_second_s = now_s + SECOND_S
            read_all(self._writer, self._slow)

    def close(self) -> None:
        for _, descriptor in (*self._held, *self._slow):
            os.close(descriptor)


class CgroupFiles:
    """The cgroup of a component: one folder with version 2, one for each controller with version 1. OSError where no
    descriptors are left."""

    def __init__(self, root: Path, component: str, folders: Sequence[str], writer: FrameWriter) -> None:
        self._writer = writer
        self._names: list[str] = []
        self._next_second_s = 0.0
        self._held: Held = []
        self._slow: Held = []
        try:
            self._open(self._held, root, component, folders, CGROUP_FILES)
            self._open(self._slow, root, component, folders, SLOW_CGROUP_FILES)
        except OSError:
            self.close()
            raise

    def _open(self, held: Held, root: Path, component: str, folders: Sequence[str], names: Sequence[str]) -> None:
        for path in (f"{folder.rstrip('/')}/{name}" for folder in folders for name in names):
            source = f"{component}:cgroup:{path}"
            if source in self._names:  # cpu and cpuacct may be one folder under two names
                continue
            descriptor = open_if_there(f"{str(root).rstrip('/')}{path}")
            if descriptor is not None:
                self._names.append(source)
                held.append((self._writer.source(source), descriptor))

    def sample(self, now_s: float) -> None:
        """Once the cgroup is removed its files answer ENODEV: absent from then on."""
        read_all(self._writer, self._held)
        if now_s >= self._next_second_s:
            self._next_second_s = now_s + SECOND_S
            read_all(self._writer, self._slow)

    def close(self) -> None:
        for _, descriptor in (*self._held, *self._slow):
            os.close(descriptor)
        for name in self._names:
            self._writer.retire(name)


def size_counts_open_files(root: Path) -> bool:
    """Whether the size of /proc/PID/fd is the number of open files (Linux 6.2 and later)."""
    path = root / "proc/self/fd"
    descriptor = open_if_there(str(path))
    if descriptor is None:
        return False
    try:
        return os.stat(path).st_size == len(os.listdir(descriptor)) > 0  # noqa: PTH116, PTH208 - held open, not by path
    finally:
        os.close(descriptor)


class ProcessFiles:
    """One followed process: its files, its threads, the number of its open files. OSError if it does not exist, or
    where no descriptors are left."""

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
        self._size_counts = size_counts
        self._next_second_s = 0.0
        self._many_open_files = False
        # Of a tree laid out elsewhere only the files are available, not the clocks of its processes.
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
        self._stat: Held = []
        self._held: Held = []
        self._slow: Held = []
        try:
            self._open(self._stat, PROCESS_FILES[:1])
            if not self._stat:
                raise ProcessLookupError(f"process {pid} ended while its files were opened")
            self._open(self._held, PROCESS_FILES[1:])
            self._open(self._slow, SLOW_PROCESS_FILES)
        except OSError:
            self.close()
            raise

    def _open(self, held: Held, names: Sequence[str]) -> None:
        """Without permission for io, or where this kernel has no such file, its entry is absent."""
        for name in names:
            descriptor = open_if_there(name, self._directory)
            if descriptor is not None:
                held.append((self._sources[name], descriptor))

    def sample(self, now_s: float) -> bool:
        """Append this tick's entries; False (and an entry that says so) once the process is gone."""
        second = now_s >= self._next_second_s
        if second:
            self._next_second_s = now_s + SECOND_S
        due = second or self._threads.count <= MANY_THREADS
        try:
            if due:
                # The clock goes by the pid, which may be a stranger's by now: only a stat that still answers says that
                # the process lived when the clock was read.
                spent_ns = None if self._clock is None else time.clock_gettime_ns(self._clock)
                for source, descriptor in self._stat:
                    self._writer.read(source, descriptor)
                if spent_ns is not None:
                    self._writer.put(self._sources["cpu"], b"%d\n" % spent_ns)
        except OSError:  # ESRCH, and EINVAL of the clock
            self._writer.put(self._sources["gone"], _GONE)
            return False
        if due:
            read_all(self._writer, self._held)
        if second:
            read_all(self._writer, self._slow)
        self._sample_open_files(second)
        self._threads.sample(second)
        return True

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
            os.close(descriptor)
        os.close(self._directory)
        for name in self._names:
            self._writer.retire(name)


def _entries_of(path: str, directory: int) -> int:
    descriptor = os.open(path, READ_ONLY, dir_fd=directory)
    try:
        with os.scandir(descriptor) as listing:
            return sum(1 for _ in listing)
    finally:
        os.close(descriptor)
