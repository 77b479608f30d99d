"""What a snapshot reads of the control groups that a process is in, of version 1 and 2.

A limit holds for a group and everything below it, so a process is held by the tightest of its group and all groups
above. Layouts: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/; cgroups(7).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from loadframe.errors import RecordingError
from loadframe.json_text import write_json
from loadframe.recording import procfs
from loadframe.recording.snapshot import Pair, Place, Source

Group = Mapping[str, str]
"""The files of one group by name."""

FILES = {
    "pids": ("pids.max", "pids.current", "pids.events"),
    "memory": (
        "memory.max",
        "memory.current",
        "memory.stat",
        "memory.events",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.failcnt",
    ),
    "cpu": ("cpu.max", "cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "cpuacct": ("cpuacct.usage",),
    "blkio": (
        "io.max",
        "io.stat",
        "blkio.throttle.read_bps_device",
        "blkio.throttle.write_bps_device",
        "blkio.throttle.read_iops_device",
        "blkio.throttle.write_iops_device",
        "blkio.throttle.io_service_bytes_recursive",
        "blkio.throttle.io_serviced_recursive",
    ),
}
"""What is read, by the controller's name in version 1; version 2 has one folder for all."""

V1_UNLIMITED = 2**62
"""memory.limit_in_bytes without a limit is the largest multiple of the page size below 2^63."""
OUT_OF_SIGHT = "the control groups of the process are not mounted where we can see them"


# --- finding and reading them ---------------------------------------------------------------------------------------


def fetch_groups(place: Place, path: str, *, wanted: Sequence[str] = tuple(FILES)) -> bytes:
    """JSON: for every wanted controller the files of the process's group and of those above it, the innermost first."""
    mounts = _mounts(place)
    found: dict[str, dict[str, Group]] = {}
    for line in place.text(path).decode("utf-8", "replace").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        for controller in controllers.split(",") if controllers else wanted:
            mount = mounts.get(controller if controllers else "")
            if controller in wanted and mount is not None:
                found.setdefault(controller, {}).update(_chain(place, mount, group, FILES[controller]))
    if not mounts:
        raise RecordingError(OUT_OF_SIGHT)
    return write_json({controller: list(groups.values()) for controller, groups in found.items()}).encode()


def _mounts(place: Place) -> dict[str, tuple[str, str]]:
    """(mount point, the group that is mounted there) by controller; "" is version 2. From mountinfo (proc(5))."""
    found = {}
    for line in place.text("proc/self/mountinfo").decode("utf-8", "replace").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            found[""] = (fields[4], fields[3])
        elif kind[0] == "cgroup":
            found |= {option: (fields[4], fields[3]) for option in kind[2].split(",") if option in FILES}
    return found


def _chain(place: Place, mount: tuple[str, str], group: str, files: Sequence[str]) -> dict[str, Group]:
    """The group and those above it, as far as they are mounted: path -> its files."""
    point, root = mount
    inside = PurePosixPath(group)
    if root != "/":
        inside = PurePosixPath("/") / inside.relative_to(root) if inside.is_relative_to(root) else PurePosixPath("/")
    chain: dict[str, Group] = {}
    for level in (inside, *inside.parents):
        folder = place.root / point.lstrip("/") / str(level).lstrip("/")
        texts = {file: text for file in files if (text := _text(folder / file)) is not None}
        if texts:
            chain[str(folder)] = texts
    return chain


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # a controller that is off here, or the root group, which has no limits
        return None


# --- what they say --------------------------------------------------------------------------------------------------


def _groups(text: bytes, controller: str) -> list[Group]:
    try:
        found = json.loads(text)
        groups = found.get(controller, [])
        if not all(isinstance(one, dict) and all(isinstance(value, str) for value in one.values()) for one in groups):
            raise ValueError
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise RecordingError("what was read of the control groups is damaged.") from error
    return list(groups)


def _tightest(limits: Sequence[tuple[float, float, float]]) -> tuple[float, float, float] | None:
    """(use, limit, harm) of the group that is nearest to its limit; without any limit the innermost group's use."""
    finite = [one for one in limits if math.isfinite(one[1])]
    return (
        max(finite, key=lambda one: one[0] / one[1] if one[1] > 0 else math.inf) if finite else next(iter(limits), None)
    )


def _number(group: Group, file: str, word: str = "") -> float | None:
    """The number in a file, or the one behind `word` in a file of words and numbers; "max" is infinite."""
    text = group.get(file)
    if text is None:
        return None
    fields = text.split()
    if word:
        rows = (line.split() for line in text.splitlines())
        fields = next((row[1:] for row in rows if row[:1] == [word]), [])
    if not fields:
        return None
    return math.inf if fields[0] == "max" else float(procfs.parse_count(fields[0].encode()))


def _pids(pair: Pair) -> dict[str, float]:
    first, last = _groups(pair.first, "pids"), _groups(pair.last, "pids")
    found = [
        (use, limit, _grown(pair, before, group, "pids.events", "max"))
        for before, group in zip(first, last, strict=False)
        if (use := _number(group, "pids.current")) is not None and (limit := _number(group, "pids.max")) is not None
    ]
    return _named(_tightest(found), "target.cgroup.pids", "target.cgroup.pids.refused")


def _memory(pair: Pair) -> dict[str, float]:
    """Use without the file pages that were not used lately: those the group gives up before it suffers, which is what
    Kubernetes calls the working set."""
    first, last = _groups(pair.first, "memory"), _groups(pair.last, "memory")
    found = []
    for before, group in zip(first, last, strict=False):
        second = "memory.max" in group
        limit = _number(group, "memory.max" if second else "memory.limit_in_bytes")
        use = _number(group, "memory.current" if second else "memory.usage_in_bytes")
        if limit is None or use is None:
            continue
        idle = _number(group, "memory.stat", "inactive_file" if second else "total_inactive_file") or 0.0
        events = ("memory.events", "max") if second else ("memory.failcnt", "")
        limit = math.inf if limit >= V1_UNLIMITED else limit
        found.append((max(0.0, use - idle), limit, _grown(pair, before, group, *events)))
    return _named(_tightest(found), "target.cgroup.memory", "target.cgroup.memory.hits")


def _cpu(pair: Pair) -> dict[str, float]:
    """Cores used and allowed, and how often per second the group was throttled."""
    first, last = _groups(pair.first, "cpu"), _groups(pair.last, "cpu")
    accounts = list(zip(_groups(pair.first, "cpuacct"), _groups(pair.last, "cpuacct"), strict=False))
    found = []
    for at, (before, group) in enumerate(zip(first, last, strict=False)):
        quota, period = _quota(group)
        used = _rate(pair, before, group, "cpu.stat", "usage_usec", 1e6)
        if used is None and at < len(accounts):
            used = _rate(pair, *accounts[at], "cpuacct.usage", "", 1e9)
        if quota is not None and used is not None:
            throttled = _grown(pair, before, group, "cpu.stat", "nr_throttled")
            found.append((used, quota / period, throttled))
    return _named(_tightest(found), "target.cgroup.cpu", "target.cgroup.cpu.throttled")


def _quota(group: Group) -> tuple[float | None, float]:
    """(microseconds of CPU per period, microseconds of the period)."""
    words = group.get("cpu.max", "").split()
    if len(words) == 2:
        quota = math.inf if words[0] == "max" else float(procfs.parse_count(words[0].encode()))
        return quota, float(procfs.parse_count(words[1].encode())) or 1.0
    old, period = _number(group, "cpu.cfs_quota_us"), _number(group, "cpu.cfs_period_us")
    return (math.inf if old is not None and old < 0 else old), period or 1.0


_RATES = {
    "target.cgroup.read_bytes": ("rbps", "rbytes", "read_bps_device", "io_service_bytes_recursive", "Read"),
    "target.cgroup.write_bytes": ("wbps", "wbytes", "write_bps_device", "io_service_bytes_recursive", "Write"),
    "target.cgroup.reads": ("riops", "rios", "read_iops_device", "io_serviced_recursive", "Read"),
    "target.cgroup.writes": ("wiops", "wios", "write_iops_device", "io_serviced_recursive", "Write"),
}
"""Metric -> its words in io.max and io.stat (version 2), then in blkio.throttle.* (version 1)."""


def _blkio(pair: Pair) -> dict[str, float]:
    """Rates on the device that is nearest to its limit; no limit on any device: infinite."""
    first, last = _groups(pair.first, "blkio"), _groups(pair.last, "blkio")
    values: dict[str, float] = {}
    for metric, (limit_word, use_word, file, counter, direction) in _RATES.items():
        found = []
        for before, group in zip(first, last, strict=False):
            limits = _by_device(group.get("io.max", ""), limit_word) | _plain(group.get(f"blkio.throttle.{file}", ""))
            texts = (one.get("io.stat", "") for one in (before, group))
            uses = [_by_device(text, use_word) for text in texts]
            if "io.stat" not in group:
                uses = [_directed(one.get(f"blkio.throttle.{counter}", ""), direction) for one in (before, group)]
            found += [
                (pair.rate(uses[0].get(device, 0.0), uses[1].get(device, 0.0)), limit, 0.0)
                for device, limit in limits.items()
                if math.isfinite(limit)
            ]
        if last:
            values |= _named(_tightest(found) or (0.0, math.inf, 0.0), metric, "")
    return values


def _by_device(text: str, word: str) -> dict[str, float]:
    """Of the lines "8:0 rbps=1048576 wbps=max": {"8:0": 1048576} for rbps."""
    found = {}
    for row in (line.split() for line in text.splitlines()):
        for item in row[1:]:
            name, _, value = item.partition("=")
            if name == word:
                found[row[0]] = math.inf if value == "max" else float(procfs.parse_count(value.encode()))
    return found


def _plain(text: str) -> dict[str, float]:
    """Of the lines "8:0 1048576": {"8:0": 1048576}."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: float(procfs.parse_count(row[1].encode())) for row in rows if len(row) == 2}


def _directed(text: str, direction: str) -> dict[str, float]:
    """Of the lines "8:0 Read 4096": {"8:0": 4096} for Read."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: float(procfs.parse_count(row[2].encode())) for row in rows if len(row) == 3 and row[1] == direction}


def _grown(pair: Pair, before: Group, after: Group, file: str, word: str) -> float:
    return _rate(pair, before, after, file, word, 1.0) or 0.0


def _rate(pair: Pair, before: Group, after: Group, file: str, word: str, unit: float) -> float | None:
    first, last = _number(before, file, word), _number(after, file, word)
    return None if first is None or last is None else pair.rate(first, last) / unit


def _named(found: tuple[float, float, float] | None, metric: str, harm: str) -> dict[str, float]:
    if found is None:
        return {}
    use, limit, harmed = found
    return {metric: use, f"{metric}.limit": limit} | ({harm: harmed} if harm else {})


def _controller(
    name: str, wanted: Sequence[str], metrics: Sequence[str], parse: Callable[[Pair], Mapping[str, float]]
) -> Source:
    both = [each for metric in metrics for each in (metric, f"{metric}.limit")]
    absent = f"the {name} controller is off for its control group: the root group, or not delegated"
    return Source(
        f"cgroup {name}",
        tuple(both),
        parse,
        partial(fetch_groups, wanted=wanted),
        absent,
        of_process=True,
        path="proc/{pid}/cgroup",
    )


SOURCES: tuple[Source, ...] = (
    _controller("pids", ("pids",), ("target.cgroup.pids",), _pids),
    _controller("memory", ("memory",), ("target.cgroup.memory",), _memory),
    _controller("cpu", ("cpu", "cpuacct"), ("target.cgroup.cpu",), _cpu),
    _controller("io", ("blkio",), tuple(_RATES), _blkio),
)
"""One per controller."""
