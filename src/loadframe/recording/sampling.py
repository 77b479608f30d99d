"""procfs, sysfs and cgroup files, read as cheaply as Python can: they stay open, a tick is one `preadv` per file into
the recording's buffer, nothing is parsed. An open file of a process that is gone answers ESRCH, so reused pids are no
danger."""

import math
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.held_files import READ_ONLY, Descriptors, HeldFiles, opened
from loadframe.recording.jvm_sampling import PROGRAMS, JvmCounters
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
HALF_SYSTEM_FILES = ("/proc/net/netstat",)
"""Twice per second: counters used per request need it in windows as short as a second."""
SLOW_SYSTEM_FILES = (
    *("/proc/loadavg", "/proc/sys/fs/file-nr", "/proc/interrupts"),
    *("/proc/net/dev", "/proc/net/snmp", "/proc/net/sockstat"),
    *("/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/net/ipv4/ip_local_reserved_ports"),
)
SLOW_SYSTEM_PATTERNS = (
    "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq",
    "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count",
)
"""Once per second: what changes slowly."""
RECORDER_FILES = ("/proc/self/schedstat",)
SLOW_RECORDER_FILES = ("/proc/self/stat",)
PROCESS_FILES = ("stat", "io")
"""The first shows whether the process still lives."""
SLOW_PROCESS_FILES = ("status", "limits")
CGROUP_FILES = (
    *("cpu.stat", "cpu.pressure", "memory.current", "memory.pressure", "io.stat", "io.pressure", "pids.current"),
    *("cpuacct.usage", "cpuacct.stat", "memory.usage_in_bytes"),
    *("blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced"),
    *("memory.events", "memory.stat", "memory.failcnt"),
)
SLOW_CGROUP_FILES = (
    *("cpu.max", "memory.max", "memory.peak", "io.max", "pids.max", "pids.events"),
    *("cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    "memory.oom_control",
    *(f"blkio.throttle.{name}_device" for name in ("read_bps", "write_bps", "read_iops", "write_iops")),
)

MANY_THREADS = 1000
"""Above this, what the kernel adds up over all threads is read once per second: per 1,000 threads, /proc/PID/stat takes
43 us, io 20 us, the CPU clock 22 us (benchmarks/recorder.py)."""
MANY_OPEN_FILES = 512
"""Above this, counting open files by listing them (kernels before 6.2) is done once per second."""
LOOKS_FOR_JVM = 10
"""Once per second from a Java process's start on."""
_FOLDER = READ_ONLY | os.O_DIRECTORY
GONE = b"gone\n"
_CPU_CLOCK_OF_PROCESS = 2


class SystemFiles(HeldFiles):
    def __init__(self, root: Path, writer: FrameWriter) -> None:
        super().__init__(writer)
        patterns = [path for pattern in SLOW_SYSTEM_PATTERNS for path in sorted(root.glob(pattern))]
        slow = (*SLOW_SYSTEM_FILES, *(f"/{path.relative_to(root)}" for path in patterns))
        for held, component, paths in (
            (self.each_tick, "system", SYSTEM_FILES),
            (self.each_tick, "recorder", RECORDER_FILES),
            (self.each_half, "system", HALF_SYSTEM_FILES),
            (self.each_second, "system", slow),
            (self.each_second, "recorder", SLOW_RECORDER_FILES),
        ):
            for path in paths:
                self.open(held, f"{component}:{path}", f"{str(root).rstrip('/')}{path}")


class CgroupFiles(HeldFiles):
    """One folder with version 2, one per controller with version 1. Raises OSError if no descriptors are left. The
    files of a removed cgroup answer ENODEV: they are absent from then on."""

    def __init__(self, root: Path, component: str, folders: Sequence[str], writer: FrameWriter) -> None:
        super().__init__(writer)
        try:
            for held, names in ((self.each_tick, CGROUP_FILES), (self.each_second, SLOW_CGROUP_FILES)):
                for path in (f"{folder.rstrip('/')}/{name}" for folder in folders for name in names):
                    # cpu and cpuacct may be one folder under two names
                    self.open(held, f"{component}:cgroup:{path}", f"{str(root).rstrip('/')}{path}")
        except OSError:
            self.close()
            raise


@cache
def size_counts_open_files(root: Path) -> bool:
    """Whether the size of /proc/PID/fd is the number of open files (Linux 6.2 and later)."""
    path = root / "proc/self/fd"
    with suppress(OSError):
        return 0 < path.stat().st_size == len(list(path.iterdir())) - 1  # listing it has it open itself
    return False


class ProcessFiles(HeldFiles):
    """Raises OSError if the process is gone, or descriptors are used up. end: a pidfd, unless a filter forbids it."""

    end: int | None = None

    def __init__(
        self, root: Path, component: str, pid: int, writer: FrameWriter, descriptors: Descriptors, *, interval_s: float
    ) -> None:
        super().__init__(writer)
        self.component = component
        self.pid = pid
        self._size_counts = size_counts_open_files(root)
        self._many_open_files = False
        self._jvm: JvmCounters | None = None
        self._looks_for_jvm = LOOKS_FOR_JVM
        # Of a recorded tree only the files are available, not the clocks of its processes.
        self._clock = (~pid << 3) | _CPU_CLOCK_OF_PROCESS if root == Path("/") else None
        self.looked_s = -math.inf
        self.directory = os.open(root / f"proc/{pid}", _FOLDER)
        try:
            tasks_directory = os.open("task", _FOLDER, dir_fd=self.directory)
        except OSError:
            os.close(self.directory)
            raise
        if self._clock is not None:
            with suppress(OSError):
                self.end = os.pidfd_open(pid)  # of this process if its files can still be read afterwards
        prefix = f"{component}:{pid}"
        self._sources = {name: self.source(f"{prefix}:{name}") for name in ("fd", "cpu", "gone", "exe", "jvm")}
        self._threads = Threads(prefix, tasks_directory, writer, descriptors, interval_s, live=self._clock is not None)
        try:
            for held, names in ((self.each_tick, PROCESS_FILES), (self.each_second, SLOW_PROCESS_FILES)):
                for name in names:
                    self.open(held, f"{prefix}:/proc/{pid}/{name}", name, self.directory)
                    if not self.each_tick:
                        raise ProcessLookupError(f"process {pid} ended while its files were opened")
            words = os.pread(self.each_tick[0][1], 4096, 0).rpartition(b")")[2].split()[1:2]
            self.parent = int(words[0]) if words else 0
        except OSError:
            self.close()
            raise

    def census(self, ended: bool) -> bool:
        """As `sample`, but only whether it lives, and its CPU time; nothing before the first `sample`. ended: whether
        it may be gone."""
        if self.looked_s == -math.inf:
            return True
        if self._clock is None or self._threads.count > MANY_THREADS:
            self._threads.put_count()
            return True
        try:
            spent_ns = time.clock_gettime_ns(self._clock)
            if ended:
                os.pread(self.each_tick[0][1], 1, 0)  # fails once its pid may be another's
            self._writer.put(self._sources["cpu"], b"%d\n" % spent_ns)
        except OSError:
            self._writer.put(self._sources["gone"], GONE)
            return False
        return True

    def sample(self, now_s: float) -> bool:
        """False, with an entry, once the process is gone."""
        self.looked_s = now_s
        second = self.is_second(now_s)
        due = second or self._threads.count <= MANY_THREADS
        try:
            if due:
                # The clock goes by the pid, which may be reused: only a stat that still answers shows that it was ours.
                spent_ns = None if self._clock is None else time.clock_gettime_ns(self._clock)
                self._writer.read(*self.each_tick[0])
                if spent_ns is not None:
                    self._writer.put(self._sources["cpu"], b"%d\n" % spent_ns)
        except OSError:  # ESRCH, and EINVAL of the clock
            self._writer.put(self._sources["gone"], GONE)
            return False
        if due:
            self.read(self.each_tick[1:])
        if second:
            self.read(self.each_second)
            self._sample_program()
        if self._jvm is not None:
            self._writer.put(self._sources["jvm"], self._jvm.read())
        self._sample_open_files(second)
        self._threads.sample(second)
        return True

    def _sample_program(self) -> None:
        try:
            program = os.readlink("exe", dir_fd=self.directory)
        except OSError:
            return
        self._writer.put(self._sources["exe"], os.fsencode(program))
        if self._jvm is None and self._looks_for_jvm > 0 and Path(program).name in PROGRAMS:
            self._looks_for_jvm -= 1
            self._jvm = JvmCounters.of(self.directory)

    def _sample_open_files(self, second: bool) -> None:
        if self._many_open_files and not second:
            return
        try:
            if self._size_counts:
                count = os.stat("fd", dir_fd=self.directory).st_size
            else:
                with opened("fd", self.directory) as folder, os.scandir(folder) as listing:
                    count = sum(1 for _ in listing)
                self._many_open_files = count > MANY_OPEN_FILES
        except OSError:  # no permission, or gone
            return
        self._writer.put(self._sources["fd"], b"%d\n" % count)

    def close(self) -> None:
        self._threads.close()
        if self._jvm is not None:
            self._jvm.close()
        if self.end is not None:
            os.close(self.end)
        super().close()
        os.close(self.directory)
