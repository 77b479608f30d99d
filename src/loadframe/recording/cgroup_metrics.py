"""The metrics of a component's cgroup in a window, of either version of cgroups; the names are version 2's.

Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{cpuacct,memory,blkio-controller,pids}.rst.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.windows import Window, gather

NO_LIMIT = 2**62
"""Version 1 has no word for "no limit" of memory: it shows the largest number of whole pages."""


class CgroupInWindow:
    """The files of a component's cgroup, by their names without the folder."""

    def __init__(self, component: str, window: Window) -> None:
        self.window = window
        prefix = f"{component}:cgroup:"
        names = {name for tick in window.around for name in tick.entries if name.startswith(prefix)}
        self._sources = {name.rpartition("/")[2]: name for name in sorted(names)}

    def __contains__(self, file: str) -> bool:
        return file in self._sources

    def rate(self, file: str, number: Callable[[bytes], float]) -> float:
        """Growth per second of a counter. RecordingError where there is no such file."""
        return self.window.slow_rate(self._source(file), number)

    def last(self, file: str) -> bytes:
        """What a file said last. RecordingError where there is no such file."""
        return self.window.nearest(self._source(file))

    def all(self, file: str) -> list[bytes]:
        """What a file said at each tick of the window. RecordingError where there is no such file."""
        return self.window.all(self._source(file))

    def _source(self, file: str) -> str:
        if file not in self._sources:
            raise RecordingError(f"The cgroup's {file} was not recorded.")
        return self._sources[file]


def followed_cgroups(window: Window) -> list[str]:
    """The components whose cgroup was followed."""
    names = {name for tick in window.around for name in tick.entries if ":cgroup:" in name}
    return sorted({name.partition(":cgroup:")[0] for name in names})


def cgroup_metrics(component: str, window: Window) -> dict[str, float]:
    """The metrics of one component's cgroup, without the component's name in front ("cgroup.cpu.cores")."""
    cgroup = CgroupInWindow(component, window)
    groups = (_cpu, _cpu_limit, _throttled, _memory, _memory_limit, _memory_events, _io, _processes, _processes_limit)
    found = gather([partial(group, cgroup) for group in groups] + [partial(_pressure, cgroup, name) for name in _KINDS])
    return {f"cgroup.{name}": value for name, value in found.items()}


_KINDS = ("cpu", "memory", "io")


def _key(name: str, text: bytes) -> int:
    numbers = procfs.parse_flat_keyed(text)
    if name not in numbers:
        raise RecordingError(f"A cgroup's file lacks {name}.")
    return numbers[name]


def _cpu(cgroup: CgroupInWindow) -> dict[str, float]:
    if "cpuacct.usage" in cgroup:
        return {"cpu.cores": cgroup.rate("cpuacct.usage", procfs.parse_count) / 1e9}
    return {"cpu.cores": cgroup.rate("cpu.stat", partial(_key, "usage_usec")) / 1e6}


def _cpu_limit(cgroup: CgroupInWindow) -> dict[str, float]:
    if "cpu.max" in cgroup:
        quota, _, period = cgroup.last("cpu.max").strip().partition(b" ")
        limit = procfs.parse_maximum(quota) / max(1, procfs.parse_count(period))
    else:
        allowed_us = procfs.parse_count(cgroup.last("cpu.cfs_quota_us"))
        limit = (
            allowed_us / max(1, procfs.parse_count(cgroup.last("cpu.cfs_period_us"))) if allowed_us > 0 else math.inf
        )
    return {"cpu.limit": limit} if math.isfinite(limit) else {}


def _throttled(cgroup: CgroupInWindow) -> dict[str, float]:
    """Share of the periods of the quota in which it ran out."""
    periods = cgroup.rate("cpu.stat", partial(_key, "nr_periods"))
    throttled = cgroup.rate("cpu.stat", partial(_key, "nr_throttled"))
    return {"cpu.throttled": min(1.0, throttled / periods)} if periods > 0 else {}


def _memory(cgroup: CgroupInWindow) -> dict[str, float]:
    file = "memory.current" if "memory.current" in cgroup else "memory.usage_in_bytes"
    return {"memory.usage": max(procfs.parse_count(text) for text in cgroup.all(file))}


def _memory_limit(cgroup: CgroupInWindow) -> dict[str, float]:
    file = "memory.max" if "memory.max" in cgroup else "memory.limit_in_bytes"
    limit = procfs.parse_maximum(cgroup.last(file))
    return {"memory.limit": limit} if limit < NO_LIMIT else {}


def _memory_events(cgroup: CgroupInWindow) -> dict[str, float]:
    """How often its limit was hit and memory had to be reclaimed first."""
    if "memory.events" in cgroup:
        return {"memory.limit_hits": cgroup.rate("memory.events", partial(_key, "max"))}
    return {"memory.limit_hits": cgroup.rate("memory.failcnt", procfs.parse_count)}


_IO = (
    ("io.read_bytes", "io.stat", "rbytes"),
    ("io.write_bytes", "io.stat", "wbytes"),
    ("io.reads", "io.stat", "rios"),
    ("io.writes", "io.stat", "wios"),
    ("io.read_bytes", "blkio.throttle.io_service_bytes", "Read"),
    ("io.write_bytes", "blkio.throttle.io_service_bytes", "Write"),
    ("io.reads", "blkio.throttle.io_serviced", "Read"),
    ("io.writes", "blkio.throttle.io_serviced", "Write"),
)


def _io(cgroup: CgroupInWindow) -> dict[str, float]:
    def number(key: str, text: bytes) -> float:
        return procfs.parse_cgroup_io(text).get(key, 0)

    return {metric: cgroup.rate(file, partial(number, key)) for metric, file, key in _IO if file in cgroup}


def _processes(cgroup: CgroupInWindow) -> dict[str, float]:
    return {"processes": max(procfs.parse_count(text) for text in cgroup.all("pids.current"))}


def _processes_limit(cgroup: CgroupInWindow) -> dict[str, float]:
    limit = procfs.parse_maximum(cgroup.last("pids.max"))
    return {"processes.limit": limit} if math.isfinite(limit) else {}


def _pressure(cgroup: CgroupInWindow, resource: str) -> dict[str, float]:
    def some(text: bytes) -> float:
        totals = procfs.parse_pressure(text)
        if "some" not in totals:
            raise RecordingError(f"{resource}.pressure as recorded lacks some.")
        return totals["some"]

    return {f"pressure.{resource}.some": min(1.0, cgroup.rate(f"{resource}.pressure", some))}
