"""What was used inside a control group, by the ends of the metrics' names, whichever version counts it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from loadframe.cage.groups import ACCOUNTING, text

PERIOD_S = 0.1
"""The period of the CPU quota: the kernel's default."""

COUNTERS: Mapping[str, bool] = {
    "cpu": True,
    "cpu.throttled": True,
    "cpu.throttled_time": True,
    "cpu.limit": False,
    "memory.usage": False,
    "memory.peak": False,
    "memory.limit": False,
    "memory.hits": True,
    "memory.refaults": True,
    "memory.oom_kills": True,
    "read_bytes": True,
    "write_bytes": True,
    "reads": True,
    "writes": True,
    "read_bytes.limit": False,
    "write_bytes.limit": False,
    "reads.limit": False,
    "writes.limit": False,
    "pids": False,
    "pids.limit": False,
    "pids.refused": True,
}
"""Every counter by the end of its metric's name (units.py), and whether it only ever grows."""

CEILINGS: Mapping[str, tuple[str, float]] = {
    "cpu.max": ("cpu.limit", 1e6 * PERIOD_S),
    "memory.max": ("memory.limit", 1),
    "pids.max": ("pids.limit", 1),
    "io.rbps": ("read_bytes.limit", 1),
    "io.wbps": ("write_bytes.limit", 1),
    "io.riops": ("reads.limit", 1),
    "io.wiops": ("writes.limit", 1),
}
"""Limit -> the metric of the ceiling, and by what the limit is divided to be in that metric's unit."""

USED_SHARES: Mapping[str, tuple[str, str]] = {
    "cpu.utilization": ("cpu", "cpu.limit"),
    **{f"{what}.utilization": (what, f"{what}.limit")
       for what in ("read_bytes", "write_bytes", "reads", "writes")},
}  # fmt: skip
"""Shares that are worked out from a use and its ceiling."""


def used_shares(metrics: Mapping[str, float], component: str) -> dict[str, float]:
    """How much of each limit was used, by the metrics' names, for the limits that there are; and for how much of the
    time a quota ran out."""
    prefix = f"{component}.cage."
    throttled = metrics.get(prefix + "cpu.throttled")
    cut = {} if throttled is None else {f"{prefix}cpu.throttled_share": throttled * PERIOD_S}
    return cut | {
        prefix + share: metrics[prefix + use] / metrics[prefix + ceiling]
        for share, (use, ceiling) in USED_SHARES.items()
        if prefix + use in metrics and metrics.get(prefix + ceiling, 0.0) > 0
    }


def of_group(version: int, controllers: Collection[str], folder: Path) -> dict[str, float]:
    """The counters of one group, as far as its controllers count."""
    return _version_1(controllers, folder) if version == 1 else _version_2(controllers, folder)


def ceilings(limits: Mapping[str, int]) -> dict[str, float]:
    """The ceilings that limits set, each in the unit of its metric."""
    return {CEILINGS[name][0]: value / CEILINGS[name][1] for name, value in limits.items()}


def _version_1(there: Collection[str], folder: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    if ACCOUNTING in there:
        found["cpu"] = _number(folder / "cpuacct.usage") / 1e9
    if "cpu" in there:
        stat = _pairs(folder / "cpu.stat")
        found |= _throttled(stat, stat.get("throttled_time", 0.0) / 1e9)
    if "memory" in there:
        stat = _pairs(folder / "memory.stat")
        found |= {
            "memory.usage": _number(folder / "memory.usage_in_bytes"),
            "memory.peak": _number(folder / "memory.max_usage_in_bytes"),
            "memory.hits": _number(folder / "memory.failcnt"),
            "memory.refaults": stat.get("total_workingset_refault_file", stat.get("workingset_refault_file", 0.0)),
            "memory.oom_kills": _pairs(folder / "memory.oom_control").get("oom_kill", 0.0),
        }
    if "io" in there:
        served, asked = (
            _io_v1(text(folder / f"blkio.throttle.{name}")) for name in ("io_service_bytes", "io_serviced")
        )
        found |= {
            "read_bytes": served["Read"],
            "write_bytes": served["Write"],
            "reads": asked["Read"],
            "writes": asked["Write"],
        }
    return found | (_processes(folder) if "pids" in there else {})


def _version_2(there: Collection[str], folder: Path) -> dict[str, float]:
    stat = _pairs(folder / "cpu.stat")
    found = {"cpu": stat["usage_usec"] / 1e6} if "usage_usec" in stat else {}
    if "cpu" in there:
        found |= _throttled(stat, stat.get("throttled_usec", 0.0) / 1e6)
    if "memory" in there:
        events, pages = _pairs(folder / "memory.events"), _pairs(folder / "memory.stat")
        found |= {
            "memory.usage": _number(folder / "memory.current"),
            "memory.hits": events.get("max", 0.0),
            "memory.refaults": pages.get("workingset_refault_file", 0.0),
            "memory.oom_kills": events.get("oom_kill", 0.0),
        }
        if (folder / "memory.peak").exists():  # Linux 5.19 and later
            found["memory.peak"] = _number(folder / "memory.peak")
    if "io" in there:
        sums = dict.fromkeys(("rbytes", "wbytes", "rios", "wios"), 0.0)
        for name, value in re.findall(r"\b(rbytes|wbytes|rios|wios)=(\d+)", text(folder / "io.stat")):
            sums[name] += float(value)
        found |= dict(zip(("read_bytes", "write_bytes", "reads", "writes"), sums.values(), strict=True))
    return found | (_processes(folder) if "pids" in there else {})


def _throttled(stat: Mapping[str, float], time_s: float) -> dict[str, float]:
    """The periods in which the quota ran out, and the time that all CPUs together were denied."""
    return {"cpu.throttled": stat.get("nr_throttled", 0.0), "cpu.throttled_time": time_s}


def _processes(folder: Path) -> dict[str, float]:
    return {
        "pids": _number(folder / "pids.current"),
        "pids.refused": _pairs(folder / "pids.events").get("max", 0.0),
    }


def _io_v1(lines: str) -> dict[str, float]:
    """Sums over all disks of the lines "254:0 Read 4096"."""
    sums = {"Read": 0.0, "Write": 0.0}
    for kind, value in re.findall(r"^\d+:\d+ (Read|Write) (\d+)$", lines, re.MULTILINE):
        sums[kind] += float(value)
    return sums


def _number(path: Path) -> float:
    words = text(path).split()
    return float(words[0]) if words and words[0].isdigit() else 0.0


def _pairs(path: Path) -> dict[str, float]:
    """Lines of a name and a number."""
    return {name: float(value) for name, value in re.findall(r"^(\w+) (\d+)$", text(path), re.MULTILINE)}
