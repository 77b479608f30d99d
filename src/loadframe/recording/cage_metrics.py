"""What a component used of its cage in a window: from the files of its control groups, of either version.

Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{cpuacct,memory,blkio-controller,pids}.rst;
Documentation/scheduler/sched-bwc.rst for the quota.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.windows import Window, gather

NO_LIMIT = 2**62
"""Version 1 has no word for "no limit" of memory: it shows the largest number of whole pages."""


class GroupsInWindow:
    """The files of a component's control groups, by their names without the folder: of the groups that were followed at
    the window's end, where others were before."""

    def __init__(self, component: str, window: Window) -> None:
        self.window = window
        prefix = f"{component}:cgroup:"
        self._sources: dict[str, str] = {}
        for tick in window.around:
            for name in tick.entries:
                file = name.rpartition("/")[2]
                if name.startswith(prefix) and (tick.monotonic_s <= window.end_s or file not in self._sources):
                    self._sources[file] = name

    def __contains__(self, file: str) -> bool:
        return file in self._sources

    def rate(self, file: str, number: Callable[[bytes], float]) -> float:
        """Growth per second of a counter. RecordingError where there is no such file."""
        return self.window.slow_rate(self._source(file), number)

    def last(self, file: str) -> bytes:
        """What a file said last. RecordingError where there is no such file."""
        return self.window.nearest(self._source(file))

    def largest(self, file: str) -> float:
        """The largest number that a file said in the window. RecordingError where there is no such file."""
        return max(procfs.parse_count(text) for text in self.window.all(self._source(file)))

    def _source(self, file: str) -> str:
        if file not in self._sources:
            raise RecordingError(f"The control group's {file} was not recorded.")
        return self._sources[file]


def caged_components(window: Window) -> list[str]:
    """The components whose control groups were followed."""
    names = {name for tick in window.around for name in tick.entries if ":cgroup:" in name}
    return sorted({name.partition(":cgroup:")[0] for name in names})


def cage_metrics(component: str, window: Window) -> dict[str, float]:
    """The metrics of one component's cage, without the component's name in front ("cage.cpu"); a limit that is not set
    is absent, and so is what the machine does not count."""
    cage = GroupsInWindow(component, window)
    found = gather(partial(group, cage) for group in _GROUPS)
    return {f"cage.{name}": value for name, value in (found | _used_shares(found)).items()}


def _used_shares(found: Mapping[str, float]) -> dict[str, float]:
    """How much of each limit was used, for the limits that there are."""
    return {
        f"{use}.utilization": found[use] / found[f"{use}.limit"]
        for use in ("cpu", *IO)
        if use in found and found.get(f"{use}.limit", 0.0) > 0
    }


def _key(name: str, text: bytes) -> int:
    numbers = procfs.parse_flat_keyed(text)
    if name not in numbers:
        raise RecordingError(f"A control group's file lacks {name}.")
    return numbers[name]


# --- CPU ------------------------------------------------------------------------------------------------------------


def _cpu(cage: GroupsInWindow) -> dict[str, float]:
    if "cpuacct.usage" in cage:
        return {"cpu": cage.rate("cpuacct.usage", procfs.parse_count) / 1e9}
    return {"cpu": cage.rate("cpu.stat", partial(_key, "usage_usec")) / 1e6}


def _quota(cage: GroupsInWindow) -> tuple[float, float]:
    """The CPU time of a period and the period, in microseconds; no quota is infinite."""
    if "cpu.max" in cage:
        quota, _, period = cage.last("cpu.max").strip().partition(b" ")
        return procfs.parse_maximum(quota), max(1, procfs.parse_count(period))
    quota_us = procfs.parse_count(cage.last("cpu.cfs_quota_us"))
    return quota_us if quota_us > 0 else math.inf, max(1, procfs.parse_count(cage.last("cpu.cfs_period_us")))


def _cpu_limit(cage: GroupsInWindow) -> dict[str, float]:
    quota_us, period_us = _quota(cage)
    return {"cpu.limit": quota_us / period_us} if math.isfinite(quota_us) else {}


def _throttled(cage: GroupsInWindow) -> dict[str, float]:
    """How often the quota ran out, in how much of the time that was so in some period, and the time that all CPUs
    together were denied."""
    throttled = cage.rate("cpu.stat", partial(_key, "nr_throttled"))
    found = {"cpu.throttled": throttled, "cpu.throttled_share": min(1.0, throttled * _quota(cage)[1] / 1e6)}
    key, per_second = ("throttled_usec", 1e6) if "cpu.max" in cage else ("throttled_time", 1e9)
    return found | {"cpu.throttled_time": cage.rate("cpu.stat", partial(_key, key)) / per_second}


# --- memory ---------------------------------------------------------------------------------------------------------


def _memory(cage: GroupsInWindow) -> dict[str, float]:
    return {"memory.usage": cage.largest("memory.current" if "memory.current" in cage else "memory.usage_in_bytes")}


def _memory_peak(cage: GroupsInWindow) -> dict[str, float]:
    file = "memory.peak" if "memory.peak" in cage else "memory.max_usage_in_bytes"  # the former since Linux 5.19
    return {"memory.peak": procfs.parse_count(cage.last(file))}


def _memory_limit(cage: GroupsInWindow) -> dict[str, float]:
    limit = procfs.parse_maximum(cage.last("memory.max" if "memory.max" in cage else "memory.limit_in_bytes"))
    return {"memory.limit": limit} if limit < NO_LIMIT else {}


def _memory_hits(cage: GroupsInWindow) -> dict[str, float]:
    if "memory.events" in cage:
        return {"memory.hits": cage.rate("memory.events", partial(_key, "max"))}
    return {"memory.hits": cage.rate("memory.failcnt", procfs.parse_count)}


def _memory_refaults(cage: GroupsInWindow) -> dict[str, float]:
    key = "workingset_refault_file" if "memory.current" in cage else "total_workingset_refault_file"
    return {"memory.refaults": cage.rate("memory.stat", partial(_key, key))}


def _memory_kills(cage: GroupsInWindow) -> dict[str, float]:
    file = "memory.events" if "memory.events" in cage else "memory.oom_control"
    return {"memory.oom_kills": cage.rate(file, partial(_key, "oom_kill"))}


# --- disks ----------------------------------------------------------------------------------------------------------

IO: Mapping[str, tuple[str, str, str, str, str]] = {
    "read_bytes": ("rbytes", "rbps", "blkio.throttle.io_service_bytes", "Read", "blkio.throttle.read_bps_device"),
    "write_bytes": ("wbytes", "wbps", "blkio.throttle.io_service_bytes", "Write", "blkio.throttle.write_bps_device"),
    "reads": ("rios", "riops", "blkio.throttle.io_serviced", "Read", "blkio.throttle.read_iops_device"),
    "writes": ("wios", "wiops", "blkio.throttle.io_serviced", "Write", "blkio.throttle.write_iops_device"),
}
"""Metric -> its keys in io.stat and io.max (version 2); its file and key, and the file of its limit (version 1)."""


def _io(name: str, cage: GroupsInWindow) -> dict[str, float]:
    """Of the disk that is nearest to its limit, with that limit: others' use says nothing of it. Over all disks where
    none has a limit."""
    new_key, new_limit, file, key, limit_file = IO[name]
    if "io.stat" in cage:
        file, key, limit_file, limit_key = "io.stat", new_key, "io.max", new_limit
    else:
        limit_key = ""
    limits = _of_devices(limit_key, cage.last(limit_file)) if limit_file in cage else {}

    def of_device(device: str, text: bytes) -> float:
        return _of_devices(key, text).get(device, 0.0)

    limited = [
        (cage.rate(file, partial(of_device, device)), limit) for device, limit in limits.items() if math.isfinite(limit)
    ]
    if not limited:
        return {name: cage.rate(file, lambda text: sum(_of_devices(key, text).values()))}
    use, limit = max(limited, key=lambda one: one[0] / one[1] if one[1] > 0 else math.inf)
    return {name: use, f"{name}.limit": limit}


def _of_devices(key: str, text: bytes) -> dict[str, float]:
    return {device: numbers[key] for device, numbers in procfs.parse_cgroup_io(text).items() if key in numbers}


# --- processes and waiting ------------------------------------------------------------------------------------------


def _pids(cage: GroupsInWindow) -> dict[str, float]:
    return {"pids": cage.largest("pids.current")}


def _pids_limit(cage: GroupsInWindow) -> dict[str, float]:
    limit = procfs.parse_maximum(cage.last("pids.max"))
    return {"pids.limit": limit} if math.isfinite(limit) else {}


def _pids_refused(cage: GroupsInWindow) -> dict[str, float]:
    return {"pids.refused": cage.rate("pids.events", partial(_key, "max"))}


def _pressure(resource: str, cage: GroupsInWindow) -> dict[str, float]:
    def some(text: bytes) -> float:
        totals = procfs.parse_pressure(text)
        if "some" not in totals:
            raise RecordingError(f"{resource}.pressure as recorded lacks some.")
        return totals["some"]

    return {f"pressure.{resource}.some": min(1.0, cage.rate(f"{resource}.pressure", some))}


Group = Callable[[GroupsInWindow], dict[str, float]]
_IO: tuple[Group, ...] = tuple(partial(_io, name) for name in IO)
_PRESSURES: tuple[Group, ...] = tuple(partial(_pressure, resource) for resource in ("cpu", "memory", "io"))
_GROUPS: tuple[Group, ...] = (
    *(_cpu, _cpu_limit, _throttled),
    *(_memory, _memory_peak, _memory_limit, _memory_hits, _memory_refaults, _memory_kills),
    *_IO,
    *(_pids, _pids_limit, _pids_refused),
    *_PRESSURES,
)
