"""Parsing procfs texts. All functions raise RecordingError if what must be there is missing or is no number; unknown
lines are ignored. Layouts: proc(5), Documentation/admin-guide/iostats.rst, accounting/psi.rst,
scheduler/sched-stats.rst."""

import itertools
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from loadframe.errors import RecordingError

SECTOR_BYTES = 512
_STACKED = re.compile(r"(loop|ram|zram|sr|fd|dm-|md)\d+$")
_MOST_CPUS = 2**16
_CPUS_ALLOWED = re.compile(rb"^Cpus_allowed_list:\s*([\d,-]+)$", re.MULTILINE)
LARGEST = 2**64


def parse_count(data: bytes) -> int:
    return integer(data.strip(), "a count")


def parse_hexadecimal(field: bytes, where: str) -> int:
    try:
        return int(field[:32], 16)
    except ValueError as error:
        raise RecordingError(f"{where} has {field[:20]!r} where a number belongs.") from error


def integer(field: bytes, where: str) -> int:
    try:
        number = int(field)
    except ValueError as error:
        raise RecordingError(f"{where} has {field[:40]!r} where a number belongs.") from error
    if not -LARGEST < number <= LARGEST:
        raise RecordingError(f"{where} has {field[:40]!r}, larger than any counter of the kernel.")
    return number


def integers(fields: Sequence[bytes], where: str) -> list[int]:
    return [integer(field, where) for field in fields]


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def missing(where: str, what: str) -> RecordingError:
    return RecordingError(
        f"{where} as recorded lacks {what}.", remedy="The recording is damaged there, or the kernel is odd."
    )


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Clock ticks since boot; older kernels lack the last ones."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int = 0
    irq: int = 0
    softirq: int = 0
    steal: int = 0


@dataclass(frozen=True, slots=True)
class SystemStat:
    """running, blocked: threads now; the rest counts since boot."""

    all_cpus: CpuTimes
    cpus: dict[str, CpuTimes]
    context_switches: int
    processes_created: int
    running: int
    blocked: int


@dataclass(frozen=True, slots=True)
class DiskCounters:
    """Since boot. flushes and flush_ms are None before Linux 5.5, discards before 4.18."""

    reads: int
    read_sectors: int
    writes: int
    write_sectors: int
    in_flight: int
    busy_ms: int
    queue_ms: int
    discards: int | None
    flushes: int | None
    flush_ms: int | None


def parse_stat(data: bytes) -> SystemStat:
    cpus: dict[str, CpuTimes] = {}
    words: dict[str, int] = {}
    for line in data.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[0].startswith(b"cpu"):
            cpus[text_of(fields[0])] = CpuTimes(*integers(fields[1:9], "/proc/stat"))
        elif len(fields) == 2:
            words[text_of(fields[0])] = integer(fields[1], "/proc/stat")
    try:
        counts = [words[name] for name in ("ctxt", "processes", "procs_running", "procs_blocked")]
        return SystemStat(cpus.pop("cpu"), cpus, *counts)
    except KeyError as error:
        raise missing("/proc/stat", str(error)) from error


def parse_meminfo(data: bytes) -> dict[str, int]:
    """In bytes, or a plain count if the kernel gives no unit."""
    numbers = by_name(data, "/proc/meminfo")
    if "MemTotal" not in numbers:
        raise missing("/proc/meminfo", "MemTotal")
    return numbers


def by_name(data: bytes, where: str) -> dict[str, int]:
    """Lines "name: 12" and "name: 12 kB", the latter in bytes."""
    numbers = {}
    for line in data.splitlines():
        name, colon, value = line.partition(b":")
        fields = value.split()
        if colon and fields:
            numbers[text_of(name)] = (1024 if fields[1:] == [b"kB"] else 1) * integer(fields[0], where)
    if not numbers:
        raise missing(where, "any counter")
    return numbers


def parse_vmstat(data: bytes) -> dict[str, int]:
    """Also cpu.stat, memory.stat, memory.events and the like of a control group."""
    words = data.split()
    with suppress(ValueError):  # fast path, taken ten times a second: each second word is a number
        read = list(map(int, words[1::2]))
        if len(words) == 2 * len(read) and read and max(read) <= LARGEST and min(read) > -LARGEST:
            return dict(zip(map(text_of, words[::2]), read, strict=True))
    numbers = {}
    for line in data.splitlines():
        fields = line.split()
        if len(fields) == 2:
            numbers[text_of(fields[0])] = integer(fields[1], "/proc/vmstat")
    if not numbers:
        raise missing("/proc/vmstat", "any counter")
    return numbers


def parse_diskstats(data: bytes) -> dict[str, DiskCounters]:
    """Without partitions, loop and ram devices, and dm and md, which would count twice."""
    rows: dict[str, list[int]] = {}
    for line in data.splitlines():
        fields = line.split()
        if len(fields) >= 14:
            rows[text_of(fields[2])] = integers(fields[3:], "/proc/diskstats")
    return {
        name: DiskCounters(
            reads=row[0],
            read_sectors=row[2],
            writes=row[4],
            write_sectors=row[6],
            in_flight=row[8],
            busy_ms=row[9],
            queue_ms=row[10],
            discards=row[11] if len(row) > 11 else None,
            flushes=row[15] if len(row) > 16 else None,
            flush_ms=row[16] if len(row) > 16 else None,
        )
        for name, row in rows.items()
        if not _STACKED.match(name) and not _is_partition(name, rows)
    }


def _is_partition(name: str, names: dict[str, list[int]]) -> bool:
    """sda1 of sda, nvme0n1p1 of nvme0n1; not sdaa of sda, nor nvme0n10 of nvme0n1."""
    stem = name.rstrip("0123456789")
    if stem == name:
        return False
    return stem in names or (stem.endswith("p") and stem[:-1] in names and stem[-2:-1].isdigit())


def parse_pressure(data: bytes) -> dict[str, float]:
    """ "some" and "full" -> seconds of stall since boot."""
    totals = {}
    for line in data.splitlines():
        kind, _, rest = line.partition(b" ")
        _, mark, total = rest.partition(b"total=")
        if mark and kind in (b"some", b"full"):
            totals[text_of(kind)] = integer(total, "/proc/pressure") / 1e6
    if not totals:
        raise missing("/proc/pressure", "total=")
    return totals


def parse_threads(data: bytes) -> int:
    """142 in the text "1.83 1.07 0.66 4/142 21183" of /proc/loadavg."""
    fields = data.replace(b"/", b" ").split()
    if len(fields) < 5:
        raise missing("/proc/loadavg", "five numbers")
    return integer(fields[4], "/proc/loadavg")


def parse_file_numbers(data: bytes) -> dict[str, int]:
    """Open files on the machine, and fs.file-max, from file-nr (allocated, free, limit)."""
    fields = integers(data.split(), "file-nr")
    if len(fields) < 3:
        raise missing("file-nr", "three numbers")
    return {"allocated": max(0, fields[0] - fields[1]), "limit": fields[2]}


def parse_protocol(data: bytes, protocol: str) -> dict[str, int]:
    """/proc/net/snmp and netstat: a line of a protocol's names, below it one of their numbers."""
    lines = [line.split()[1:] for line in data.splitlines() if line.startswith(f"{protocol}:".encode())]
    if len(lines) < 2:
        raise missing("/proc/net/snmp or netstat", f"the counters of {protocol}")
    names, fields = lines[:2]
    if len(fields) != len(names):
        raise missing("/proc/net/snmp or netstat", "numbers for its names")
    return dict(zip(map(text_of, names), integers(fields, "/proc/net"), strict=True))


def parse_sockets(data: bytes) -> dict[str, int]:
    """The numbers of the line "TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 12"."""
    for line in data.splitlines():
        words = line.split()
        if words[:1] == [b"TCP:"]:
            numbers = integers(words[2::2], "/proc/net/sockstat")
            return {text_of(word): number for word, number in zip(words[1::2], numbers, strict=False)}
    raise missing("/proc/net/sockstat", "a line for TCP")


def parse_interrupts(data: bytes) -> dict[str, int]:
    """What a line begins with ("TLB", "RES", "24") -> its count over all CPUs."""
    head, _, rest = data.partition(b"\n")
    cpus = len(head.split())
    counts = {}
    for line in rest.splitlines():
        name, colon, fields = line.partition(b":")
        numbers = list(itertools.takewhile(bytes.isdigit, fields.split()[:cpus]))
        if colon and numbers:
            counts[text_of(name.strip())] = sum(integers(numbers, "/proc/interrupts"))
    if not counts:
        raise missing("/proc/interrupts", "any counter")
    return counts


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """Also a thread's. Times in clock ticks, started_ticks since boot. children_*: of children that ended and were
    waited for, and of theirs."""

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
    """None for what is not in it (a zombie has no memory). The context switches are those of one thread, for a process
    its first. shared_bytes: resident pages of files and of shared memory; shared_memory_bytes: the latter alone."""

    rss_bytes: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    cpus_allowed: int | None = None
    shared_bytes: int | None = None
    shared_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SchedStat:
    """On a CPU, and runnable without one."""

    run_ns: int
    wait_ns: int


@dataclass(frozen=True, slots=True)
class ResourceLimit:
    soft: float
    hard: float


def parse_process_stat(data: bytes) -> ProcessStat:
    """The command may contain spaces, parentheses and line ends."""
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
    """Also a thread's, or only its last lines. No line must be there."""
    of_files, of_memory = _line_number(data, b"RssFile:", 1024), _line_number(data, b"RssShmem:", 1024)
    return ProcessStatus(
        rss_bytes=_line_number(data, b"VmRSS:", 1024),
        voluntary_switches=_line_number(data, b"voluntary_ctxt_switches:"),
        involuntary_switches=_line_number(data, b"nonvoluntary_ctxt_switches:"),
        cpus_allowed=parse_cpu_list(match[1]) if (match := _CPUS_ALLOWED.search(data)) else None,
        shared_bytes=None if of_files is None or of_memory is None else of_files + of_memory,
        shared_memory_bytes=of_memory,
    )


def _line_number(data: bytes, name: bytes, factor: int = 1) -> int | None:
    begin = 0 if data.startswith(name) else data.find(b"\n" + name) + 1
    if begin == 0 and not data.startswith(name):
        return None
    fields = data[begin + len(name) : begin + len(name) + 40].split(None, 1)
    return factor * integer(fields[0], "a process's status") if fields else None


def parse_limits(data: bytes) -> dict[str, ResourceLimit]:
    """By the kernel's own names ("Max open files"); infinite for "unlimited"."""
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
    """For a process its first thread's."""
    fields = integers(data.split()[:3], "schedstat")
    if len(fields) < 3:
        raise missing("schedstat", "three numbers")
    return SchedStat(*fields[:2])


def parse_cpu_list(data: bytes) -> int:
    count = 0
    for part in data.strip().split(b","):
        first, dash, last = part.partition(b"-")
        low = integer(first, "a list of CPUs")
        high = integer(last, "a list of CPUs") if dash else low
        if not 0 <= low <= high < _MOST_CPUS:
            raise RecordingError(f"A list of CPUs has {part[:40]!r}.")
        count += high - low + 1
    return count


def parse_maximum(data: bytes) -> float:
    """A number, or "max"."""
    return math.inf if data.strip() == b"max" else float(integer(data.strip(), "a cgroup's limit"))
