"""What a component used of its resource limits. Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/;
scheduler/sched-bwc.rst for the quota."""

import math
from collections.abc import Callable, Collection, Mapping
from functools import partial

from loadframe.recording import procfs
from loadframe.recording.derivation import Derivation, Metrics, Window, derive, growth, rate_of, rates_of
from loadframe.recording.system_metrics import pressure

NO_LIMIT = 2**62
"""Version 1 shows no limit of memory as the largest number of whole pages."""


def _number(metric: str, most: float = math.inf) -> Callable[[float], Metrics]:
    """A limit of `most` or more is no limit."""
    return lambda number: {metric: number} if number < most else {}


def _cpu_stat(text: bytes, quota: bytes, period: bytes) -> dict[str, int]:
    period = quota.strip().rpartition(b" ")[2] or period
    return procfs.parse_vmstat(text) | ({_PERIOD_US: procfs.parse_count(period)} if period else {})


_CPU_TIMES = (
    rates_of({"cage.cpu": ("usage_usec",), "cage.cpu.throttled_time": ("throttled_usec",)}, 1e6),
    rates_of({"cage.cpu.throttled_time": ("throttled_time",)}, 1e9),
)
"""CPU time, and the time that all CPUs together were denied (microseconds in version 2, nanoseconds in 1)."""
_PERIOD_US = "period of the quota"


def _throttled(first: Mapping[str, int], last: Mapping[str, int], elapsed_s: float) -> Metrics:
    metrics = rates_of({"cage.cpu.throttled": ("nr_throttled",)})(first, last, elapsed_s)
    if metrics and (period_us := last.get(_PERIOD_US)):
        metrics["cage.cpu.throttled_share"] = min(1.0, metrics["cage.cpu.throttled"] * period_us / 1e6)
    return metrics


def _quota(text: bytes, period: bytes = b"") -> float:
    """CPUs. text: of cpu.max, with the period, or of cpu.cfs_quota_us (-1 without a limit)."""
    quota, _, behind = text.strip().partition(b" ")
    period_us, quota_us = procfs.parse_count(behind or period), procfs.parse_maximum(quota)
    return quota_us / max(1, period_us) if quota_us > 0 else math.inf


_V1 = "blkio.throttle"
IO: Mapping[str, tuple[str, str, str, str, str]] = {
    "read_bytes": ("rbytes", "rbps", f"{_V1}.io_service_bytes", "Read", f"{_V1}.read_bps_device"),
    "write_bytes": ("wbytes", "wbps", f"{_V1}.io_service_bytes", "Write", f"{_V1}.write_bps_device"),
    "reads": ("rios", "riops", f"{_V1}.io_serviced", "Read", f"{_V1}.read_iops_device"),
    "writes": ("wios", "wiops", f"{_V1}.io_serviced", "Write", f"{_V1}.write_iops_device"),
}
"""Metric -> its keys in io.stat and io.max (version 2); its file and key, and the file of its limit (version 1)."""
Devices = dict[str, dict[str, float]]


def parse_cgroup_io(data: bytes) -> Devices:
    """The numbers of each device ("8:0"). io.stat and io.max (version 2): rbytes, wbytes, rios, wios; rbps, wbps,
    riops, wiops, infinite without a limit. blkio.throttle.io_service_bytes and io_serviced (version 1): Read and Write;
    its limits, blkio.throttle.*_device: ""."""
    devices: Devices = {}
    for line in data.splitlines():
        device, *fields = line.split() or [b""]
        pairs = [field.split(b"=", 1) for field in fields if b"=" in field]
        if len(fields) == 2 and fields[0] in (b"Read", b"Write"):
            pairs.append(fields)
        elif len(fields) == 1 and not pairs and b":" in device:
            pairs.append([b"", *fields])
        numbers = {procfs.text_of(key): procfs.parse_maximum(value) for key, value in pairs}
        if numbers:
            devices.setdefault(procfs.text_of(device), {}).update(numbers)
    return devices


Io = tuple[Devices, ...]


def _io_text(*texts: bytes) -> Io:
    return tuple(map(parse_cgroup_io, texts))


def _io(name: str, key: str, limit_key: str, place: int, first: Io, last: Io, elapsed_s: float) -> Metrics:
    """The rate of the disk nearest to its limit (the use of others does not show it); over all disks if none has a
    limit."""

    def rate(devices: Collection[str]) -> float:
        used = [sum(reading[0].get(device, {}).get(key, 0.0) for device in devices) for reading in (first, last)]
        return growth(*used) / elapsed_s

    limits = {device: numbers.get(limit_key, math.inf) for device, numbers in last[place].items()}
    limited = [(rate([device]), limit) for device, limit in limits.items() if math.isfinite(limit)]
    if not limited:
        return {f"cage.{name}": rate(first[0].keys() | last[0].keys())}
    use, limit = max(limited, key=lambda pair: pair[0] / pair[1] if pair[1] > 0 else math.inf)
    share = {f"cage.{name}.utilization": use / limit} if limit > 0 else {}
    return {f"cage.{name}": use, f"cage.{name}.limit": limit} | share


_version_2 = [partial(_io, name, key, limit_key, 1) for name, (key, limit_key, *_) in IO.items()]
_IO_FILES = [Derivation("io.stat", _io_text, rates=_version_2, slower=("io.max",))]
for _file in dict.fromkeys(row[2] for row in IO.values()):
    _mine = {name: row for name, row in IO.items() if row[2] == _file}
    _rates = [partial(_io, name, row[3], "", place) for place, (name, row) in enumerate(_mine.items(), start=1)]
    _IO_FILES.append(Derivation(_file, _io_text, rates=_rates, slower=[row[4] for row in _mine.values()]))

CAGE: tuple[Derivation, ...] = (
    Derivation("cpu.stat", _cpu_stat, rates=(*_CPU_TIMES, _throttled), slower=("cpu.max", "cpu.cfs_period_us")),
    Derivation("cpuacct.usage", procfs.parse_count, rates=(rate_of("cage.cpu", 1e9),)),
    Derivation("cpu.max", _quota, (_number("cage.cpu.limit"),)),
    Derivation("cpu.cfs_quota_us", _quota, (_number("cage.cpu.limit"),), slower=("cpu.cfs_period_us",)),
    *(
        Derivation(file, procfs.parse_count, (_number(f"cage.{metric}"),))
        for metric, files in {
            "memory.usage": ("memory.current", "memory.usage_in_bytes"),
            "memory.peak": ("memory.peak", "memory.max_usage_in_bytes"),  # the former since Linux 5.19
            "pids": ("pids.current",),
        }.items()
        for file in files
    ),
    *(
        Derivation(file, procfs.parse_maximum, (_number("cage.memory.limit", NO_LIMIT),))
        for file in ("memory.max", "memory.limit_in_bytes")
    ),
    Derivation("pids.max", procfs.parse_maximum, (_number("cage.pids.limit"),)),
    Derivation("memory.failcnt", procfs.parse_count, rates=(rate_of("cage.memory.hits"),)),
    *(
        Derivation(file, procfs.parse_vmstat, rates=tuple(rates_of({f"cage.{metric}": (key,)}) for metric, key in keys))
        for file, keys in {
            "memory.events": (("memory.hits", "max"), ("memory.oom_kills", "oom_kill")),
            "memory.oom_control": (("memory.oom_kills", "oom_kill"),),
            "memory.stat": (
                ("memory.refaults", "workingset_refault_file"),
                ("memory.refaults", "total_workingset_refault_file"),  # of version 1: with the groups below
            ),
            "pids.events": (("pids.refused", "max"),),
        }.items()
    ),
    *_IO_FILES,
    *(pressure(f"{resource}.pressure", (f"cage.pressure.{resource}.some",)) for resource in ("cpu", "memory", "io")),
)
"""By the file's name: a group has those of one version."""
AROUND = ".cgroup"
"""What the group that limits a component from outside is followed as, behind its name."""
FILES = frozenset(name for row in CAGE for name in (row.source, *row.slower))
HELD = frozenset(name for row in CAGE for name in row.slower)


def named(component: str, metrics: Metrics) -> Metrics:
    """ "target.cage.cpu", or "target.cgroup.cpu" of the group around it."""
    around = component.endswith(AROUND)
    return {f"{component}.{name.removeprefix('cage.' if around else '')}": value for name, value in metrics.items()}


def cage_metrics(component: str, window: Window) -> Metrics:
    """Without the component's name in front ("cage.cpu"); of the groups followed at the window's end if they changed.
    Limits that are not set, and what is not counted, are absent."""
    prefix, sources = f"{component}:cgroup:", dict[str, str]()
    for tick in window.around:
        for name in tick.entries:
            file = name.rpartition("/")[2]
            if name.startswith(prefix) and (tick.monotonic_s <= window.end_s or file not in sources):
                sources[file] = name
    metrics = derive(window.of({name: file for file, name in sources.items()}, HELD), CAGE)
    if metrics.get("cage.cpu.limit", 0.0) > 0 and "cage.cpu" in metrics:
        metrics["cage.cpu.utilization"] = metrics["cage.cpu"] / metrics["cage.cpu.limit"]
    return metrics
