"""The files of a process and of its threads."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass

from loadframe.errors import RecordingError
from loadframe.recording.frames import TASK
from loadframe.recording.procfs.words import integer, integers, missing, text_of

_MOST_CPUS = 2**16
_CPUS_ALLOWED = re.compile(rb"^Cpus_allowed_list:\s*([\d,-]+)$", re.MULTILINE)
_TIMER_SLEEP = re.compile(rb"(nanosleep|_sleep|msleep|usleep)(\.|$)")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """/proc/PID/stat, or a thread's. CPU and start time in clock ticks, the latter since boot. children_*: of the
    children that have ended and were waited for, and of theirs."""

    pid: int
    command: str
    state: str
    minor_faults: int
    major_faults: int
    user_ticks: int
    system_ticks: int
    threads: int
    started_ticks: int
    rss_pages: int
    parent: int = 0
    children_minor_faults: int = 0
    children_major_faults: int = 0
    children_user_ticks: int = 0
    children_system_ticks: int = 0


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """/proc/PID/status, or the tail of it; None for what is not in it (a zombie has no memory).

    The context switches are those of the one thread, for a process those of its first thread. shared_bytes: resident
    pages of files and of shared memory, which other processes may have too; shared_memory_bytes: the latter alone.
    """

    rss_bytes: int | None
    peak_rss_bytes: int | None
    threads: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    cpus_allowed: int | None = None
    shared_bytes: int | None = None
    shared_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SchedStat:
    """One thread: time on a CPU, time runnable but waiting for one, and how often it got one."""

    run_ns: int
    wait_ns: int
    slices: int


@dataclass(frozen=True, slots=True)
class ResourceLimit:
    """Soft and hard; infinity for "unlimited"."""

    soft: float
    hard: float


@dataclass(frozen=True, slots=True)
class TaskTexts:
    """One thread of a `tasks` entry, not parsed yet; schedstat and wchan are empty where the kernel has none."""

    thread: int
    stat: bytes
    schedstat: bytes
    wchan: bytes

    @property
    def state(self) -> str:
        """R, S, D, ...; empty if its stat cannot be read."""
        begin = self.stat.rfind(b")") + 2
        return self.stat[begin : begin + 1].decode("ascii", "replace") if begin >= 2 else ""

    @property
    def where_known(self) -> bool:
        """Whether the kernel says where it sleeps; "0" is its answer for running ones and where it will not tell."""
        return self.wchan not in (b"", b"0")

    @property
    def sleeps_in_timer(self) -> bool:
        """Whether it sleeps for a time (nanosleep and its like) rather than until something happens."""
        return _TIMER_SLEEP.search(self.wchan) is not None


def parse_process_stat(data: bytes) -> ProcessStat:
    """/proc/PID/stat or /proc/PID/task/TID/stat. The command may contain spaces, parentheses and line ends."""
    begin, end = data.find(b"("), data.rfind(b")")
    fields = data[end + 1 :].split()
    if not 0 < begin < end or len(fields) < 22:
        raise missing("a process's stat", "its 24 fields")
    numbers = integers(fields[1:22], "a process's stat")
    return ProcessStat(
        pid=integer(data[:begin].strip(), "a process's stat"),
        command=text_of(data[begin + 1 : end]),
        state=text_of(fields[0]),
        minor_faults=numbers[6],
        major_faults=numbers[8],
        user_ticks=numbers[10],
        system_ticks=numbers[11],
        threads=numbers[16],
        started_ticks=numbers[18],
        rss_pages=numbers[20],
        parent=numbers[0],
        children_minor_faults=numbers[7],
        children_major_faults=numbers[9],
        children_user_ticks=numbers[12],
        children_system_ticks=numbers[13],
    )


def parse_process_status(data: bytes) -> ProcessStatus:
    """/proc/PID/status, a thread's, or only the last lines of one. Never raises for lines that are missing."""
    of_files, of_memory = _line_number(data, b"RssFile:", 1024), _line_number(data, b"RssShmem:", 1024)
    return ProcessStatus(
        rss_bytes=_line_number(data, b"VmRSS:", 1024),
        peak_rss_bytes=_line_number(data, b"VmHWM:", 1024),
        threads=_line_number(data, b"Threads:"),
        voluntary_switches=_line_number(data, b"voluntary_ctxt_switches:"),
        involuntary_switches=_line_number(data, b"nonvoluntary_ctxt_switches:"),
        cpus_allowed=parse_cpu_list(found[1]) if (found := _CPUS_ALLOWED.search(data)) else None,
        shared_bytes=None if of_files is None or of_memory is None else of_files + of_memory,
        shared_memory_bytes=of_memory,
    )


def _line_number(data: bytes, name: bytes, factor: int = 1) -> int | None:
    begin = 0 if data.startswith(name) else data.find(b"\n" + name) + 1
    if begin == 0 and not data.startswith(name):
        return None
    fields = data[begin + len(name) : begin + len(name) + 40].split(None, 1)
    return factor * integer(fields[0], "a process's status") if fields else None


def parse_process_io(data: bytes) -> dict[str, int]:
    """/proc/PID/io: name -> number (bytes, or calls for syscr and syscw)."""
    numbers = {}
    for line in data.splitlines():
        name, colon, value = line.partition(b":")
        if colon:
            numbers[text_of(name)] = integer(value.strip(), "a process's io")
    if not numbers:
        raise missing("a process's io", "any counter")
    return numbers


def parse_limits(data: bytes) -> dict[str, ResourceLimit]:
    """/proc/PID/limits: the kernel's own names ("Max open files") -> soft and hard limit."""
    limits = {}
    for line in data.splitlines()[1:]:
        match = re.match(rb"(\S.*?) {2,}(\S+) +(\S+)", line)
        if match:
            limits[text_of(match[1])] = ResourceLimit(_limit(match[2]), _limit(match[3]))
    if not limits:
        raise missing("a process's limits", "any limit")
    return limits


def _limit(field: bytes) -> float:
    return math.inf if field == b"unlimited" else float(integer(field, "a process's limits"))


def parse_schedstat(data: bytes) -> SchedStat:
    """/proc/PID/task/TID/schedstat (for a process: its first thread's)."""
    fields = integers(data.split()[:3], "schedstat")
    if len(fields) < 3:
        raise missing("schedstat", "three numbers")
    return SchedStat(*fields)


def parse_tasks(data: bytes) -> list[TaskTexts]:
    """The threads of a `tasks` entry (layout: frames.TASK)."""
    tasks = []
    position = 0
    while position < len(data):
        try:
            thread, stat, schedstat, wchan = TASK.unpack_from(data, position)
        except struct.error as error:
            raise missing("a list of threads", "its end") from error
        begin = position + TASK.size
        middle, last = begin + stat, begin + stat + schedstat
        position = last + wchan
        if position > len(data):
            raise missing("a list of threads", "its end")
        tasks.append(TaskTexts(thread, data[begin:middle], data[middle:last], data[last:position]))
    return tasks


def parse_cpu_list(data: bytes) -> int:
    """How many CPUs a list like 0-3,8 has."""
    count = 0
    for part in data.strip().split(b","):
        first, dash, last = part.partition(b"-")
        low = integer(first, "a list of CPUs")
        high = integer(last, "a list of CPUs") if dash else low
        if not 0 <= low <= high < _MOST_CPUS:
            raise RecordingError(f"A list of CPUs has {part[:40]!r}.")
        count += high - low + 1
    return count
