"""The metrics of the whole machine."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import Derivation, Metrics, Window, derive, gather, growth, levels_of, rates_of
from loadframe.recording.procfs import CpuTimes, DiskCounters, SystemStat

CLOCK_STEP_S = 0.010
"""Beyond this a clock was set: the fastest slewing (chrony's 83,333 ppm) gains 8.3 ms in a tick of 0.1 s."""
CLOCK_SLEW = 0.1


def cpu(first: SystemStat, last: SystemStat, _elapsed_s: float) -> Metrics:
    """Steal counts as utilization (no CPU is left), not as busy cores (nothing was done)."""
    spent = spent_on(first.all_cpus, last.all_cpus)
    total = _total(spent)
    utilizations = [
        _utilization(spent_on(first.cpus[name], times)) for name, times in last.cpus.items() if name in first.cpus
    ]
    return {
        "system.cpu.utilization": _utilization(spent),
        "system.cpu.user": (spent["user"] + spent["nice"]) / total,
        "system.cpu.system": (spent["system"] + spent["irq"] + spent["softirq"]) / total,
        "system.cpu.iowait": spent["iowait"] / total,
        "system.cpu.steal": spent["steal"] / total,
        "system.cpu.busy_cores": (total - spent["idle"] - spent["iowait"] - spent["steal"]) / total * len(last.cpus),
    } | ({"system.cpu.busiest": max(utilizations)} if utilizations else {})


def spent_on(first: CpuTimes, last: CpuTimes) -> dict[str, int]:
    """Clock ticks. The kernel's idle and iowait sometimes go back by a tick (proc(5)): that is no reset."""
    return {name: max(0, getattr(last, name) - getattr(first, name)) for name in CpuTimes.__slots__}


def _total(spent: dict[str, int]) -> int:
    total = sum(spent.values())
    if total <= 0:
        raise RecordingError("No CPU time passed in the window.")
    return total


def _utilization(spent: dict[str, int]) -> float:
    total = sum(spent.values())
    return 1 - (spent["idle"] + spent["iowait"]) / total if total else 0.0


def _scheduling(first: SystemStat, last: SystemStat, elapsed_s: float) -> Metrics:
    return {
        "system.processes.created": growth(first.processes_created, last.processes_created) / elapsed_s,
        "system.context_switches": growth(first.context_switches, last.context_switches) / elapsed_s,
    }


def _running(stat: SystemStat) -> Metrics:
    """The recorder itself runs whenever it looks, and does not count."""
    return {
        "system.cpu.count": len(stat.cpus),
        "system.processes.running": max(0, stat.running - 1),
        "system.processes.blocked": stat.blocked,
    }


def _numbers(text: bytes) -> list[int]:
    return [procfs.parse_count(word) for word in text.split()]


def _frequency(khz: Sequence[int]) -> Metrics:
    """Of the fastest CPU, since idle ones are slow on purpose."""
    if max(khz, default=0) <= 0:
        raise RecordingError("No CPU's frequency was recorded.")
    return {"system.cpu.frequency": 1000.0 * max(khz)}


def _throttles(first: Sequence[int], last: Sequence[int], elapsed_s: float) -> Metrics:
    if len(first) != len(last):
        raise RecordingError("A CPU came or went.")
    return {"system.cpu.throttles": sum(map(growth, first, last)) / elapsed_s}


_DIRTY = levels_of({"system.memory.dirty": "Dirty", "system.memory.writeback": "Writeback"})


def _memory(meminfo: dict[str, int]) -> Metrics:
    total = meminfo["MemTotal"]
    metrics: Metrics = {"system.memory.limit": total}
    if "MemAvailable" in meminfo:
        metrics["system.memory.available"] = meminfo["MemAvailable"]
        metrics["system.memory.used"] = total - meminfo["MemAvailable"]
        if total > 0:
            metrics["system.memory.utilization"] = 1 - meminfo["MemAvailable"] / total
    return metrics | _DIRTY(meminfo)


PAGING = {
    "system.paging.major_faults": ("pgmajfault",),
    "system.paging.direct_scan": ("pgscan_direct",),
    "system.paging.background_scan": ("pgscan_kswapd",),
    "system.paging.direct_stalls": (
        *("allocstall_dma", "allocstall_dma32", "allocstall_normal", "allocstall_movable"),
        "allocstall",  # before Linux 4.10
    ),
    "system.paging.refaults": ("workingset_refault_file", "workingset_refault"),  # the latter before Linux 5.9
    "system.paging.swap_in": ("pswpin",),
    "system.paging.swap_out": ("pswpout",),
}

PRESSURES = {
    "cpu": ("system.pressure.cpu.some",),
    "memory": ("system.pressure.memory.some", "system.pressure.memory.full"),
    "io": ("system.pressure.io.some", "system.pressure.io.full"),
}


def pressure(source: str, metrics: Sequence[str]) -> Derivation:
    """Of the machine or a control group. A metric's last word names its line."""

    def shares(first: dict[str, float], last: dict[str, float], elapsed_s: float) -> Metrics:
        kinds = ((metric, metric.rpartition(".")[2]) for metric in metrics)
        return {
            metric: min(1.0, growth(first[kind], last[kind]) / elapsed_s)
            for metric, kind in kinds
            if kind in first and kind in last
        }

    return Derivation(source, procfs.parse_pressure, rates=(shares,))


Disks = dict[str, DiskCounters]


def both(first: Disks, last: Disks) -> list[tuple[DiskCounters, DiskCounters]]:
    """Disks at both moments. RecordingError if there is none."""
    pairs = [(first[name], disk) for name, disk in last.items() if name in first]
    if not pairs:
        raise RecordingError("No disk was recorded.")
    return pairs


def _busiest_disk(first: Disks, last: Disks, elapsed_s: float) -> Metrics:
    earlier, later = max(both(first, last), key=lambda pair: pair[1].busy_ms - pair[0].busy_ms)
    return {
        "system.disk.busy": min(1.0, growth(earlier.busy_ms, later.busy_ms) / (1000 * elapsed_s)),
        "system.disk.queue": growth(earlier.queue_ms, later.queue_ms) / (1000 * elapsed_s),
    }


def _all_disks(first: Disks, last: Disks, elapsed_s: float) -> Metrics:
    pairs, size = both(first, last), procfs.SECTOR_BYTES
    fields = {"reads": ("reads", 1), "writes": ("writes", 1)}
    fields |= {"read_bytes": ("read_sectors", size), "write_bytes": ("write_sectors", size)}
    return {
        f"system.disk.{name}": factor * sum(growth(getattr(a, field), getattr(b, field)) for a, b in pairs) / elapsed_s
        for name, (field, factor) in fields.items()
    }


def _flushes(first: Disks, last: Disks, elapsed_s: float) -> Metrics:
    pairs = both(first, last)
    if not any(earlier.flushes is not None and later.flushes is not None for earlier, later in pairs):
        return {}
    count = sum(growth(earlier.flushes or 0, later.flushes or 0) for earlier, later in pairs)
    flushed_ms = [growth(earlier.flush_ms or 0, later.flush_ms or 0) for earlier, later in pairs]
    spent_ms = sum(flushed_ms)
    worked_ms = max(  # a flush does not count as outstanding in the kernel: added, at most too much
        growth(earlier.busy_ms, later.busy_ms) + ms for (earlier, later), ms in zip(pairs, flushed_ms, strict=True)
    )
    return {
        "system.disk.flushes": count / elapsed_s,
        "system.disk.working": min(1.0, worked_ms / (1000 * elapsed_s)),
    } | ({"system.disk.flush_ms": spent_ms / count} if count else {})


_FILES = {"system.files.allocated": "allocated", "system.files.limit": "limit"}
_SOCKETS = {"system.network.time_wait": "tw", "system.network.tcp_memory": "mem"}
_INTERRUPTS = {"system.tlb_shootdowns": ("TLB",)}
"""CPUs that had to flush a translation of a page: x86 counts them."""
_SNMP = {
    "system.network.retransmits": ("RetransSegs",),
    "system.network.connections_opened": ("ActiveOpens",),  # RFC 4022
}
_NETSTAT = {
    "system.network.listen_overflows": ("ListenOverflows",),
    "system.network.listen_drops": ("ListenDrops",),
    "system.network.delayed_acks": ("DelayedACKs",),
    "system.network.syn_drops": ("TCPReqQFullDrop", "TCPReqQFullDoCookies"),
    "system.network.time_wait_overflows": ("TCPTimeWaitOverflow",),
    "system.network.tcp_memory_pressures": ("TCPMemoryPressures",),
}


def parse_port_range(text: bytes, reserved: bytes) -> int:
    if len(numbers := _numbers(text)) != 2:
        raise RecordingError("ip_local_port_range does not have its two numbers.")
    low, high = numbers
    taken = 0
    for part in reserved.strip().split(b","):
        first, _, last = part.partition(b"-")
        if first.strip():
            start, end = procfs.parse_count(first), procfs.parse_count(last or first)
            taken += max(0, min(end, high) - max(start, low) + 1)
    return max(0, high - low + 1 - taken)


_CPU_FOLDER = "system:/sys/devices/system/cpu/cpu*"
STAT = Derivation("system:/proc/stat", procfs.parse_stat, (_running,), (cpu, _scheduling))
MEMINFO = Derivation("system:/proc/meminfo", procfs.parse_meminfo, (_memory,))
VMSTAT = Derivation("system:/proc/vmstat", procfs.parse_vmstat, rates=(rates_of(PAGING),))
DISKSTATS = Derivation("system:/proc/diskstats", procfs.parse_diskstats, rates=(_busiest_disk, _all_disks, _flushes))
PRESSURE = {resource: pressure(f"system:/proc/pressure/{resource}", metrics) for resource, metrics in PRESSURES.items()}
FILE_NUMBERS = Derivation("system:/proc/sys/fs/file-nr", procfs.parse_file_numbers, (levels_of(_FILES),))
SNMP = Derivation("system:/proc/net/snmp", partial(procfs.parse_protocol, protocol="Tcp"), rates=(rates_of(_SNMP),))
NETSTAT = Derivation(
    "system:/proc/net/netstat", partial(procfs.parse_protocol, protocol="TcpExt"), rates=(rates_of(_NETSTAT),)
)
SOCKSTAT = Derivation("system:/proc/net/sockstat", procfs.parse_sockets, (levels_of(_SOCKETS),))
PORT_RANGE = Derivation(
    "system:/proc/sys/net/ipv4/ip_local_port_range",
    parse_port_range,
    (lambda ports: {"system.network.local_ports.limit": ports},),
    slower=("system:/proc/sys/net/ipv4/ip_local_reserved_ports",),
)
FREQUENCY = Derivation(f"{_CPU_FOLDER}/cpufreq/scaling_cur_freq", _numbers, (_frequency,))
MACHINE: tuple[Derivation, ...] = (
    *(STAT, MEMINFO, VMSTAT, DISKSTATS, *PRESSURE.values(), FILE_NUMBERS, SNMP, NETSTAT, SOCKSTAT, PORT_RANGE),
    Derivation("system:local-ports", procfs.parse_count, (lambda count: {"system.network.local_ports": count},)),
    FREQUENCY,
    Derivation(f"{_CPU_FOLDER}/thermal_throttle/core_throttle_count", _numbers, rates=(_throttles,)),
    Derivation("system:/proc/interrupts", procfs.parse_interrupts, rates=(rates_of(_INTERRUPTS),)),
)
"""One row per file that is recorded of the machine."""


def system_metrics(window: Window) -> Metrics:
    """All `system.` metrics except system.cpu.foreign."""
    return derive(window, MACHINE) | gather(
        [partial(_clock, window), partial(_frequency_drop, window), partial(disk_stall, window)]
    )


def busy_cores(window: Window) -> tuple[float, int]:
    """CPUs busy for processes, without interrupts and steal, and how many are online at the window's end."""
    first, last, _ = window.pair(STAT)
    spent = spent_on(first.all_cpus, last.all_cpus)
    count = len(last.cpus)
    return (spent["user"] + spent["nice"] + spent["system"]) / _total(spent) * count, count


def _clock(window: Window) -> Metrics:
    steps = [0.0]
    for before, after in pairwise(window.ticks):
        gap_s = after.monotonic_s - before.monotonic_s
        step_s = abs(after.wall_s - before.wall_s - gap_s)
        if step_s > max(CLOCK_STEP_S, CLOCK_SLEW * gap_s):
            steps.append(step_s)
    return {"system.clock.step": max(steps)}


def _frequency_drop(window: Window) -> Metrics:
    """Read only within the window: before and after the load the CPUs idle."""
    speeds = [1000.0 * max(khz, default=0) for khz in window.readings(FREQUENCY)]
    return {"system.cpu.frequency_drop": 1 - min(speeds) / max(speeds)} if max(speeds) > 0 else {}


BUSY = 0.9
"""Share of a stretch in which the disk then had requests: the kernel counts in clock ticks, 1 to 10 ms."""
FAR_BEYOND = 100.0
"""A stall is this many times as long as a request keeps the disk busy at other times: slow disks do not stall."""

Course = list[tuple[float, DiskCounters]]


def disk_stall(window: Window) -> Metrics:
    """The longest stretch in which the disk that completed most requests had some and completed none; 0 unless
    FAR_BEYOND. A flush that does not end goes unseen: the kernel does not count it as outstanding. RecordingError if no
    disk was recorded twice, or completed a request."""
    stretch_s, longest_s, calm_ms, requests = 0.0, 0.0, 0, 0
    for (before_s, before), (after_s, after) in pairwise(_busiest(window)):
        ended, busy_ms = _ended(after) - _ended(before), after.busy_ms - before.busy_ms
        waits = min(before.in_flight, after.in_flight) > 0 or busy_ms >= BUSY * 1000 * (after_s - before_s)
        if ended == 0 and waits:
            stretch_s += max(0.0, min(after_s, window.end_s) - max(before_s, window.start_s))
            longest_s = max(longest_s, stretch_s)
            continue
        stretch_s = 0.0
        if ended >= 0 and busy_ms >= 0:  # otherwise it was reset
            calm_ms, requests = calm_ms + busy_ms, requests + ended
    if requests == 0:
        raise RecordingError("No disk ended a request.")
    far_beyond = 1000 * longest_s * requests > FAR_BEYOND * calm_ms
    return {"system.disk.stall_ms": 1000 * longest_s if far_beyond else 0.0}


def _busiest(window: Window) -> Course:
    """The disk that completed most requests. Of all ticks but two only its own line is parsed: a long window has
    thousands."""
    read = [
        (tick.monotonic_s, tick.entries[DISKSTATS.source]) for tick in window.around if DISKSTATS.source in tick.entries
    ]
    if len(read) < 2:
        raise RecordingError("No disk was recorded twice.")
    first, last = (procfs.parse_diskstats(text) for _, text in (read[0], read[-1]))
    grown = {name: _ended(last[name]) - _ended(first[name]) for name in last if name in first}
    for name in sorted(grown, key=lambda disk: -grown[disk]):
        lines = ((at_s, procfs.parse_diskstats(_line(text, name.encode()))) for at_s, text in read)
        course = [(at_s, disks[name]) for at_s, disks in lines if name in disks]
        if len(course) == len(read):
            return course
    raise RecordingError("No disk was recorded all the time.")


def _line(text: bytes, name: bytes) -> bytes:
    at = text.find(b" %b " % name)
    return text[text.rfind(b"\n", 0, at) + 1 :].partition(b"\n")[0] if at >= 0 else b""


def _ended(disk: DiskCounters) -> int:
    return disk.reads + disk.writes + (disk.discards or 0) + (disk.flushes or 0)
