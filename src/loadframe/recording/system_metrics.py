"""The metrics of the whole machine in a window."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.procfs import CpuTimes
from loadframe.recording.windows import Window, gather, growth

_RUNNING = re.compile(rb"^procs_running (\d{1,9})$", re.MULTILINE)
_BLOCKED = re.compile(rb"^procs_blocked (\d{1,9})$", re.MULTILINE)

_VMSTAT = {
    "system.paging.major_faults": ("pgmajfault",),
    "system.paging.direct_scan": ("pgscan_direct",),
    "system.paging.direct_stalls": ("allocstall_dma", "allocstall_dma32", "allocstall_normal", "allocstall_movable"),
    "system.paging.refaults": ("workingset_refault_file",),
    "system.paging.swap_in": ("pswpin",),
    "system.paging.swap_out": ("pswpout",),
}
_OLDER_KERNELS = {"system.paging.direct_stalls": ("allocstall",), "system.paging.refaults": ("workingset_refault",)}


CLOCK_STEP_S = 0.010
"""The wall clock was set where it gains or loses this much between two ticks: more than the fastest slewing (chrony's
83,333 ppm, 8.3 ms in a tick of 0.1 s) can do. See CLOCK_SLEW for ticks farther apart."""
CLOCK_SLEW = 0.1
_FREQUENCY = re.compile(r"system:/sys/devices/system/cpu/cpu\d+/cpufreq/scaling_cur_freq")
_THROTTLE = re.compile(r"system:/sys/devices/system/cpu/cpu\d+/thermal_throttle/core_throttle_count")


def system_metrics(window: Window) -> dict[str, float]:
    """All `system.` metrics that this window has, but system.cpu.foreign and system.disk.flushes_per_request.

    Steal counts as utilization (no CPU is left), not as busy cores (nothing was done), and has its own metric.
    """
    parts = (
        _cpu,
        _scheduling,
        _memory,
        _paging,
        _disks,
        _files,
        _clock,
        _frequency,
        _throttling,
        _network,
        _interrupts,
    )
    groups: list[Callable[[], dict[str, float]]] = [partial(part, window) for part in parts]
    groups += [partial(_pressure, window, resource) for resource in ("cpu", "memory", "io")]
    return gather(groups)


def busy_cores(window: Window) -> float:
    """CPUs busy in user space or in the kernel on behalf of processes: without interrupts and steal."""
    first, last = (procfs.parse_stat(text) for text in window.edges("system:/proc/stat"))
    spent = _spent(first.all_cpus, last.all_cpus)
    return (spent["user"] + spent["nice"] + spent["system"]) / _total(spent) * len(last.cpus)


def cpu_count(window: Window) -> int:
    """CPUs online at the end of the window."""
    return len(procfs.parse_stat(window.edges("system:/proc/stat")[1]).cpus)


def _cpu(window: Window) -> dict[str, float]:
    first, last = (procfs.parse_stat(text) for text in window.edges("system:/proc/stat"))
    spent = _spent(first.all_cpus, last.all_cpus)
    total = _total(spent)
    each = [_utilization(_spent(first.cpus[name], times)) for name, times in last.cpus.items() if name in first.cpus]
    return {
        "system.cpu.utilization": _utilization(spent),
        "system.cpu.user": (spent["user"] + spent["nice"]) / total,
        "system.cpu.system": (spent["system"] + spent["irq"] + spent["softirq"]) / total,
        "system.cpu.iowait": spent["iowait"] / total,
        "system.cpu.steal": spent["steal"] / total,
        "system.cpu.count": len(last.cpus),
        "system.cpu.busy_cores": (total - spent["idle"] - spent["iowait"] - spent["steal"]) / total * len(last.cpus),
    } | ({"system.cpu.busiest": max(each)} if each else {})


def _spent(first: CpuTimes, last: CpuTimes) -> dict[str, int]:
    # The kernel's idle and iowait are known to go back by a tick now and then (proc(5)): that is no reset.
    return {name: max(0, getattr(last, name) - getattr(first, name)) for name in CpuTimes.__slots__}


def _total(spent: dict[str, int]) -> int:
    total = sum(spent.values())
    if total <= 0:
        raise RecordingError("No CPU time passed in the window.")
    return total


def _utilization(spent: dict[str, int]) -> float:
    total = sum(spent.values())
    return 1 - (spent["idle"] + spent["iowait"]) / total if total else 0.0


def _scheduling(window: Window) -> dict[str, float]:
    first, last = (procfs.parse_stat(text) for text in window.edges("system:/proc/stat"))
    metrics = {
        "system.processes.created": window.rate(first.processes_created, last.processes_created),
        "system.context_switches": window.rate(first.context_switches, last.context_switches),
    }
    texts = window.all("system:/proc/stat")
    for name, pattern, own in (("running", _RUNNING, 1), ("blocked", _BLOCKED, 0)):
        # The recorder itself runs whenever it looks, and is not what is meant.
        counts = [max(0, int(found[1]) - own) for found in map(pattern.search, texts) if found]
        if counts:
            metrics[f"system.processes.{name}"] = sum(counts) / len(counts)
    return metrics


def _memory(window: Window) -> dict[str, float]:
    readings = [procfs.parse_meminfo(text) for text in window.all("system:/proc/meminfo")]
    total = readings[0]["MemTotal"]
    metrics: dict[str, float] = {"system.memory.limit": total}
    available = [reading["MemAvailable"] for reading in readings if "MemAvailable" in reading]
    if available:
        metrics["system.memory.available"] = min(available)
        metrics["system.memory.used"] = total - min(available)
        if total > 0:
            metrics["system.memory.utilization"] = 1 - min(available) / total
    for name, key in (("dirty", "Dirty"), ("writeback", "Writeback")):
        values = [reading[key] for reading in readings if key in reading]
        if values:
            metrics[f"system.memory.{name}"] = max(values)
    return metrics


def _paging(window: Window) -> dict[str, float]:
    first, last = (procfs.parse_vmstat(text) for text in window.edges("system:/proc/vmstat"))
    metrics = {}
    for metric, names in _VMSTAT.items():
        there = [name for name in (*names, *_OLDER_KERNELS.get(metric, ())) if name in first and name in last]
        if there:
            metrics[metric] = window.rate(sum(first[name] for name in there), sum(last[name] for name in there))
    return metrics


def _disks(window: Window) -> dict[str, float]:
    before, after = (procfs.parse_diskstats(text) for text in window.edges("system:/proc/diskstats"))
    pairs = [(before[name], disk) for name, disk in after.items() if name in before]
    if not pairs:
        raise RecordingError("No disk was recorded.")
    elapsed_ms = 1000 * window.elapsed_s
    busiest = max(pairs, key=lambda pair: pair[1].busy_ms - pair[0].busy_ms)
    metrics = {
        "system.disk.busy": min(1.0, growth(busiest[0].busy_ms, busiest[1].busy_ms) / elapsed_ms),
        "system.disk.queue": growth(busiest[0].queue_ms, busiest[1].queue_ms) / elapsed_ms,
    }
    for name, field, factor in (
        ("reads", "reads", 1),
        ("writes", "writes", 1),
        ("read_bytes", "read_sectors", procfs.SECTOR_BYTES),
        ("write_bytes", "write_sectors", procfs.SECTOR_BYTES),
    ):
        rates = (window.rate(getattr(first, field), getattr(last, field)) for first, last in pairs)
        metrics[f"system.disk.{name}"] = factor * sum(rates)
    flushes = [(growth(a.flushes, b.flushes), growth(a.flush_ms or 0, b.flush_ms or 0)) for a, b in pairs
               if a.flushes is not None and b.flushes is not None]  # fmt: skip
    if flushes:
        count = sum(number for number, _ in flushes)
        metrics["system.disk.flushes"] = count / window.elapsed_s
        metrics["system.disk.working"] = min(1.0, max(map(_worked_ms, pairs)) / elapsed_ms)
        if count:
            metrics["system.disk.flush_ms"] = sum(spent_ms for _, spent_ms in flushes) / count
    return metrics


def _worked_ms(pair: tuple[procfs.DiskCounters, procfs.DiskCounters]) -> float:
    """The kernel does not count a flush as a request outstanding, so the two are added: at most too much."""
    first, last = pair
    return growth(first.busy_ms, last.busy_ms) + growth(first.flush_ms or 0, last.flush_ms or 0)


def _pressure(window: Window, resource: str) -> dict[str, float]:
    first, last = (procfs.parse_pressure(text) for text in window.edges(f"system:/proc/pressure/{resource}"))
    kinds = ("some",) if resource == "cpu" else ("some", "full")
    return {
        f"system.pressure.{resource}.{kind}": min(1.0, window.rate(first[kind], last[kind]))
        for kind in kinds
        if kind in first and kind in last
    }


def _files(window: Window) -> dict[str, float]:
    """Recorded once per second."""
    source = "system:/proc/sys/fs/file-nr"
    texts = [tick.entries[source] for tick in window.ticks if source in tick.entries] or [window.nearest(source)]
    readings = [procfs.parse_file_numbers(text) for text in texts]
    return {
        "system.files.allocated": max(reading.allocated for reading in readings),
        "system.files.limit": readings[-1].limit,
    }


def _clock(window: Window) -> dict[str, float]:
    """How far the wall clock was set, 0 where it only went on."""
    steps = [0.0]
    for before, after in pairwise(window.ticks):
        gap_s = after.monotonic_s - before.monotonic_s
        step_s = abs(after.wall_s - before.wall_s - gap_s)
        if step_s > max(CLOCK_STEP_S, CLOCK_SLEW * gap_s):
            steps.append(step_s)
    return {"system.clock.step": max(steps)}


def _frequency(window: Window) -> dict[str, float]:
    """Of the fastest CPU at each reading, since idle ones are slow on purpose: the average, and by how much the slowest
    reading lies below the fastest. Recorded once per second: of a window without a reading, the nearest one to it. What
    lies outside tells nothing else, for before and after the load the CPUs idle."""
    readings = []
    for tick in window.around:
        texts = [text for name, text in tick.entries.items() if _FREQUENCY.fullmatch(name)]
        if texts:
            readings.append((tick.monotonic_s, 1000.0 * max(procfs.parse_count(text) for text in texts)))
    if not readings:
        raise RecordingError("No CPU's frequency was recorded.")
    _, nearest = min(readings, key=lambda reading: max(window.start_s - reading[0], reading[0] - window.end_s))
    fastest = [value for at_s, value in readings if window.start_s <= at_s <= window.end_s] or [nearest]
    if max(fastest) <= 0:
        raise RecordingError("No CPU's frequency was recorded.")
    return {
        "system.cpu.frequency": sum(fastest) / len(fastest),
        "system.cpu.frequency_drop": 1 - min(fastest) / max(fastest),
    }


def _throttling(window: Window) -> dict[str, float]:
    """How often the CPUs were slowed down because they were hot."""
    names = {name for tick in window.around for name in tick.entries if _THROTTLE.fullmatch(name)}
    if not names:
        raise RecordingError("No throttling was recorded.")
    return {"system.cpu.throttles": sum(window.slow_rate(name, procfs.parse_count) for name in sorted(names))}


NETWORK = {
    "system.network.retransmits": ("/proc/net/snmp", "Tcp", "RetransSegs"),
    "system.network.listen_overflows": ("/proc/net/netstat", "TcpExt", "ListenOverflows"),
    "system.network.listen_drops": ("/proc/net/netstat", "TcpExt", "ListenDrops"),
}
"""Metric -> file, protocol and name of the counter."""


def _network(window: Window) -> dict[str, float]:
    return {
        metric: window.slow_rate(f"system:{path}", partial(_protocol_counter, protocol, name))
        for metric, (path, protocol, name) in NETWORK.items()
    }


def _interrupts(window: Window) -> dict[str, float]:
    """CPUs that had to be told that a page is no longer where it was: x86 counts them."""
    return {"system.tlb_shootdowns": window.slow_rate("system:/proc/interrupts", _tlb_shootdowns)}


def _tlb_shootdowns(text: bytes) -> int:
    counts = procfs.parse_interrupts(text)
    if "TLB" not in counts:
        raise RecordingError("/proc/interrupts as recorded lacks TLB.")
    return counts["TLB"]


def _protocol_counter(protocol: str, name: str, text: bytes) -> int:
    counters = procfs.parse_protocols(text).get(protocol, {})
    if name not in counters:
        raise RecordingError(f"{protocol} as recorded lacks {name}.")
    return counters[name]
