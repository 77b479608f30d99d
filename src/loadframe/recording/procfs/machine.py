"""The files of the whole machine."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from dataclasses import dataclass

from loadframe.recording.procfs.words import LARGEST, integer, integers, missing, padded, real, text_of

SECTOR_BYTES = 512
_STACKED = re.compile(r"(loop|ram|zram|sr|fd|dm-|md)\d+$")


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """One CPU's (or all CPUs') time since boot in clock ticks, by what it was spent on."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int
    softirq: int
    steal: int


@dataclass(frozen=True, slots=True)
class SystemStat:
    """/proc/stat. running and blocked are the numbers of threads now; the rest counts since boot."""

    all_cpus: CpuTimes
    cpus: dict[str, CpuTimes]
    context_switches: int
    processes_created: int
    running: int
    blocked: int


@dataclass(frozen=True, slots=True)
class DiskCounters:
    """One whole disk since boot. flushes and flush_ms are None before Linux 5.5."""

    reads: int
    read_sectors: int
    writes: int
    write_sectors: int
    busy_ms: int
    queue_ms: int
    flushes: int | None
    flush_ms: int | None


@dataclass(frozen=True, slots=True)
class LoadAverage:
    """/proc/loadavg: the averages, and threads runnable now and in all."""

    one_minute: float
    five_minutes: float
    fifteen_minutes: float
    running: int
    threads: int


@dataclass(frozen=True, slots=True)
class FileNumbers:
    """/proc/sys/fs/file-nr: open files on the machine, and fs.file-max."""

    allocated: int
    limit: int


def parse_stat(data: bytes) -> SystemStat:
    """/proc/stat."""
    cpus: dict[str, CpuTimes] = {}
    words: dict[bytes, int] = {}
    for line in data.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[0].startswith(b"cpu"):
            cpus[text_of(fields[0])] = CpuTimes(*padded(integers(fields[1:9], "/proc/stat"), 8))
        elif len(fields) == 2:
            words[fields[0]] = integer(fields[1], "/proc/stat")
    try:
        return SystemStat(
            all_cpus=cpus.pop("cpu"),
            cpus=cpus,
            context_switches=words[b"ctxt"],
            processes_created=words[b"processes"],
            running=words[b"procs_running"],
            blocked=words[b"procs_blocked"],
        )
    except KeyError as error:
        raise missing("/proc/stat", str(error)) from error


def parse_meminfo(data: bytes) -> dict[str, int]:
    """/proc/meminfo: name -> bytes (or a plain count where the kernel gives no unit)."""
    numbers = {}
    for line in data.splitlines():
        name, colon, value = line.partition(b":")
        fields = value.split()
        if colon and fields:
            factor = 1024 if fields[1:] == [b"kB"] else 1
            numbers[text_of(name)] = factor * integer(fields[0], "/proc/meminfo")
    if "MemTotal" not in numbers:
        raise missing("/proc/meminfo", "MemTotal")
    return numbers


def parse_vmstat(data: bytes) -> dict[str, int]:
    """/proc/vmstat: name -> number."""
    words = data.split()
    with suppress(ValueError):  # where each second word is a number, which ten times a second should not take long
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
    """/proc/diskstats: whole disks only.

    Left out: partitions, loop and ram devices, and devices stacked on others (dm, md), which would count twice.
    """
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
            busy_ms=row[9],
            queue_ms=row[10],
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
    """/proc/pressure/*: "some" and "full" -> seconds of stall since boot."""
    totals = {}
    for line in data.splitlines():
        kind, _, rest = line.partition(b" ")
        _, found, total = rest.partition(b"total=")
        if found and kind in (b"some", b"full"):
            totals[text_of(kind)] = integer(total, "/proc/pressure") / 1e6
    if not totals:
        raise missing("/proc/pressure", "total=")
    return totals


def parse_loadavg(data: bytes) -> LoadAverage:
    """/proc/loadavg."""
    fields = data.replace(b"/", b" ").split()
    if len(fields) < 5:
        raise missing("/proc/loadavg", "five numbers")
    averages = [real(field, "/proc/loadavg") for field in fields[:3]]
    running, threads = integers(fields[3:5], "/proc/loadavg")
    return LoadAverage(averages[0], averages[1], averages[2], running, threads)


def parse_file_numbers(data: bytes) -> FileNumbers:
    """/proc/sys/fs/file-nr: allocated, free, limit."""
    fields = integers(data.split(), "file-nr")
    if len(fields) < 3:
        raise missing("file-nr", "three numbers")
    return FileNumbers(allocated=max(0, fields[0] - fields[1]), limit=fields[2])


def parse_protocols(data: bytes) -> dict[str, dict[str, int]]:
    """/proc/net/snmp and netstat: protocol -> counter -> number. Two lines for each: the names, then the numbers."""
    protocols: dict[str, dict[str, int]] = {}
    names: dict[bytes, list[bytes]] = {}
    for line in data.splitlines():
        protocol, colon, rest = line.partition(b":")
        if not colon:
            continue
        fields = rest.split()
        if protocol in names:
            if len(fields) != len(names[protocol]):
                raise missing("/proc/net/snmp or netstat", "numbers for its names")
            numbers = integers(fields, "/proc/net")
            protocols[text_of(protocol)] = {text_of(a): b for a, b in zip(names.pop(protocol), numbers, strict=True)}
        else:
            names[protocol] = fields
    if not protocols:
        raise missing("/proc/net/snmp or netstat", "any counter")
    return protocols


def parse_sockets(data: bytes) -> dict[str, int]:
    """/proc/net/sockstat: the words and numbers of the line "TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 12"."""
    for line in data.splitlines():
        words = line.split()
        if words[:1] == [b"TCP:"]:
            numbers = integers(words[2::2], "/proc/net/sockstat")
            return {text_of(word): number for word, number in zip(words[1::2], numbers, strict=False)}
    raise missing("/proc/net/sockstat", "a line for TCP")


def parse_interrupts(data: bytes) -> dict[str, int]:
    """/proc/interrupts: what a line begins with ("TLB", "RES", "24") -> its count, all CPUs together."""
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
