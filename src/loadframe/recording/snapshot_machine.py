"""What a snapshot reads of the whole machine: CPUs, memory, disks, file systems, kernel tables. Layouts: proc(5),
Documentation/admin-guide/sysctl/, Documentation/admin-guide/iostats.rst, Documentation/accounting/psi.rst,
Documentation/admin-guide/pm/cpufreq.rst; Intel's thermal_throttle files in
Documentation/ABI/testing/sysfs-devices-system-cpu."""

import os
from dataclasses import replace

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import PAGE_BYTES, Metrics, growth
from loadframe.recording.procfs import SystemStat
from loadframe.recording.snapshot import Pair, Place, Source, below, derived, each_below, lines
from loadframe.recording.system_metrics import (
    DISKSTATS,
    MEMINFO,
    PAGING,
    PRESSURE,
    PRESSURES,
    STAT,
    VMSTAT,
    Disks,
    both,
    spent_on,
)

BLOCKS = "sys/block"
CPUS = "sys/devices/system/cpu"


# --- CPUs ---


def _softirqs(first: SystemStat, last: SystemStat, _elapsed_s: float) -> Metrics:
    spent = [spent_on(first.cpus[name], times) for name, times in last.cpus.items() if name in first.cpus]
    shares = [ticks["softirq"] / max(1, sum(ticks.values())) for ticks in spent]
    return {"system.cpu.softirq_busiest": max(shares)} if shares else {}


def _frequency(pair: Pair) -> Metrics:
    """One line per CPU: name, present and highest frequency (kHz)."""
    lost = []
    for line in pair.last.splitlines():
        _, now, most = [*line.split(), b"", b"", b""][:3]
        highest = procfs.parse_count(most)
        if highest > 0:
            lost.append(max(0.0, 1 - procfs.parse_count(now) / highest))
    return {"system.cpu.frequency_missing": sum(lost) / len(lost)} if lost else {}


def _throttling(pair: Pair) -> Metrics:
    first, last = ({row[0]: procfs.parse_count(row[-1]) for line in text.splitlines() if (row := line.split())}
                   for text in (pair.first, pair.last))  # fmt: skip
    shares = [pair.rate(first[name], ms) / 1000 for name, ms in last.items() if name in first]
    return {"system.cpu.throttled": min(1.0, max(shares))} if shares else {}


# --- memory ---


def _swap(pair: Pair) -> Metrics:
    sizes = procfs.parse_meminfo(pair.last)
    total = sizes.get("SwapTotal", 0)
    return {"system.swap.limit": total, "system.swap.used": total - sizes.get("SwapFree", 0)} if total > 0 else {}


def _paging_shares(first: dict[str, int], last: dict[str, int], elapsed_s: float) -> Metrics:
    """pgpgin counts KiB read from disks."""
    rates, values = VMSTAT.between(first, last, elapsed_s), {}
    direct, background = (rates.get(f"system.paging.{kind}_scan") for kind in ("direct", "background"))
    if direct is not None and background is not None:
        values["system.paging.direct_share"] = direct / (direct + background) if direct else 0.0
    if "system.paging.refaults" in rates and "pgpgin" in first and "pgpgin" in last:
        read_bytes = 1024 * growth(first["pgpgin"], last["pgpgin"]) / elapsed_s
        again = rates["system.paging.refaults"] * PAGE_BYTES
        values["system.paging.refault_share"] = min(1.0, again / read_bytes) if read_bytes else 0.0
    return values


def _writing(counted: dict[str, int]) -> Metrics:
    if not {"nr_dirty_threshold", "nr_dirty"} <= counted.keys():
        return {}
    return {
        "system.memory.dirty_limit": counted["nr_dirty_threshold"] * PAGE_BYTES,
        "system.memory.unwritten": (counted["nr_dirty"] + counted.get("nr_writeback", 0)) * PAGE_BYTES,
    }


# --- disks and file systems ---


def _flushes(first: Disks, last: Disks, elapsed_s: float) -> Metrics:
    shares = [
        growth(earlier.flush_ms, later.flush_ms) / elapsed_s / 1000
        for earlier, later in both(first, last)
        if earlier.flush_ms is not None and later.flush_ms is not None
    ]
    return {"system.disk.flushing": min(1.0, max(shares))} if shares else {}


def _queues(pair: Pair) -> Metrics:
    """The lines of diskstats, then "DISK N" for each block device: the requests that it can queue."""
    rows = (line.split() for line in pair.last.splitlines())
    limits = {row[0]: procfs.parse_count(row[1]) for row in rows if len(row) == 2}
    before, after = procfs.parse_diskstats(pair.first), procfs.parse_diskstats(pair.last)
    queues = [
        (pair.rate(before[name].queue_ms, disk.queue_ms) / 1000, float(limits[name.encode()]))
        for name, disk in after.items()
        if name in before and limits.get(name.encode(), 0) > 0
    ]
    if not queues:
        return {}
    queue, most = max(queues, key=lambda queue: queue[0] / queue[1])
    return {"system.disk.queue_fullest": queue, "system.disk.queue_limit": most}


def fetch_filesystems(place: Place, name: str) -> bytes:
    """Per file system: blocks, free, free to users, inodes, free to users, mount point. Network ones could hang us."""
    virtual = {line.split()[-1] for line in place.text("proc/filesystems").splitlines() if line.startswith(b"nodev")}
    rows, seen = [], set()
    for line in place.text(name).splitlines():
        fields = line.split(b" ")
        if len(fields) < 4 or (fields[2] in virtual and fields[2] not in (b"tmpfs", b"overlay")):
            continue
        mount = fields[1].replace(b"\\040", b" ")
        root = place.path("proc/{pid}/root") if place.pid is not None else place.root
        try:
            status = os.statvfs(os.fsencode(root) + b"/" + mount.lstrip(b"/"))
        except OSError:  # a mount point that is hidden from us, or that another mount covers
            continue
        writable = b"ro" not in fields[3].split(b",")
        if writable and status.f_blocks and status.f_fsid not in seen:
            seen.add(status.f_fsid)
            numbers = (status.f_blocks, status.f_bfree, status.f_bavail, status.f_files, status.f_favail)
            rows.append(" ".join(map(str, numbers)) + " " + mount.decode("utf-8", "replace"))
    return lines(rows)


def _filesystems(pair: Pair) -> Metrics:
    """The fullest file system, in blocks and in inodes, as shares of what an ordinary user may use (as df(1) does)."""
    space, inodes = [], []
    for line in pair.last.splitlines():
        fields = [procfs.parse_count(field) for field in line.split()[:5]]
        if len(fields) < 5:
            raise RecordingError("a list of file systems lacks its numbers.")
        blocks, free, available, files, files_available = fields
        used = blocks - free
        if used + available > 0:
            space.append(used / (used + available))
        if files > 0:
            inodes.append(1 - files_available / files)
    values = {}
    if space:
        values["system.filesystem.space"] = max(space)
    if inodes:
        values["system.filesystem.inodes"] = max(inodes)
    return values


# --- all of them ---

NO_TIME = "no CPU time passed between two readings"
NO_PRESSURE = "it needs Linux 4.20 with CONFIG_PSI, booted with psi=1"
SOURCES: tuple[Source, ...] = (
    derived(
        STAT,
        *("system.cpu.count", "system.processes.running", "system.cpu.busy_cores", "system.cpu.steal"),
        absent=NO_TIME,
    ),
    derived(replace(STAT, levels=(), rates=(_softirqs,)), "system.cpu.softirq_busiest", absent=NO_TIME),
    Source(
        "frequencies",
        ("system.cpu.frequency_missing",),
        _frequency,
        below("cpufreq/scaling_cur_freq", "cpufreq/cpuinfo_max_freq"),
        "no cpufreq here: a virtual machine, or a kernel without a driver for it",
        path=CPUS,
    ),
    Source(
        "throttling",
        ("system.cpu.throttled",),
        _throttling,
        below("thermal_throttle/core_throttle_total_time_ms"),
        "no thermal_throttle here: a virtual machine, no Intel CPU, or a kernel before 5.8",
        path=CPUS,
    ),
    derived(MEMINFO, "system.memory.limit", "system.memory.used"),
    Source(
        "swap",
        ("system.swap.limit", "system.swap.used"),
        _swap,
        absent="this machine has no swap",
        path="proc/meminfo",
    ),
    derived(VMSTAT, *PAGING),
    derived(replace(VMSTAT, rates=(_paging_shares,)), "system.paging.direct_share", "system.paging.refault_share"),
    derived(replace(VMSTAT, levels=(_writing,), rates=()), "system.memory.unwritten", "system.memory.dirty_limit"),
    *(derived(row, *PRESSURES[resource], absent=NO_PRESSURE) for resource, row in PRESSURE.items()),
    derived(DISKSTATS, "system.disk.busy", absent="no disk is counted here"),
    derived(
        replace(DISKSTATS, rates=(_flushes,)), "system.disk.flushing", absent="Linux 5.5 or later counts cache flushes"
    ),
    Source(
        "queues",
        ("system.disk.queue_fullest", "system.disk.queue_limit"),
        _queues,
        lambda place, path: place.text("proc/diskstats") + each_below(place.path(path), "queue/nr_requests"),
        "no disk tells how many requests it queues",
        path=BLOCKS,
    ),
    Source(
        "filesystems",
        ("system.filesystem.space", "system.filesystem.inodes"),
        _filesystems,
        fetch_filesystems,
        "no file system on a device is mounted for it",
        path="proc/{pid}/mounts",
    ),
)
"""In the order of the page: CPUs, memory, disks, file systems."""
