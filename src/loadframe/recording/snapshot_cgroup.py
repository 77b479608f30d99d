"""What a snapshot reads of the control groups that a process is in, of version 1 and 2. A limit holds for a group and
everything below it, so a process is held by the tightest of its group and all groups above. cage_metrics derives the
numbers of their files. Layouts: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/; cgroups(7)."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path

from loadframe.cages.groups import hierarchies
from loadframe.errors import RecordingError
from loadframe.formats.json_text import write_json
from loadframe.recording import procfs
from loadframe.recording.cage_metrics import CAGE, IO
from loadframe.recording.derivation import Derivation, Metrics
from loadframe.recording.snapshot import Pair, Place, Source

Group = Mapping[str, str]

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
    "io": (
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
"""What is read, by the controller's name in version 2 (cpuacct: of version 1)."""

OUT_OF_SIGHT = "the control groups of the process are not mounted where we can see them"


# --- finding and reading them ---


def fetch_groups(place: Place, path: str, *, wanted: Sequence[str]) -> bytes:
    """JSON: for every wanted controller the files of the process's group and of those above it, the innermost first, as
    far as they are mounted."""
    place.text(path)  # raises if the process has ended
    mounted = hierarchies(place.root, "self" if place.pid is None else str(place.pid))
    if not mounted:
        raise RecordingError(OUT_OF_SIGHT)
    chains: dict[str, dict[str, Group]] = {}
    for hierarchy in mounted:
        above = [folder for folder in hierarchy.own.parents if folder.is_relative_to(hierarchy.top)]
        for controller in wanted if hierarchy.version == 2 else hierarchy.controllers & set(wanted):
            for folder in (hierarchy.own, *above):
                texts = {file: said for file in FILES[controller] if (said := _text(folder / file)) is not None}
                if texts:
                    chains.setdefault(controller, {})[str(folder)] = texts
    return write_json({controller: list(groups.values()) for controller, groups in chains.items()}).encode()


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # a controller that is off here, or the root group, which has no limits
        return None


# --- what they say ---


def _working_set(use: bytes, stat: bytes) -> float:
    """What Kubernetes calls the working set: use without inactive file pages, which the group gives up first."""
    counted = procfs.parse_vmstat(stat) if stat else {}
    idle = counted.get("total_inactive_file", counted.get("inactive_file", 0))  # the former of version 1
    return max(0.0, procfs.parse_count(use) - idle)


ROWS = (
    *CAGE,
    *(
        Derivation(file, _working_set, (lambda use: {"cage.memory": use},), beside=("memory.stat",))
        for file in ("memory.current", "memory.usage_in_bytes")
    ),
)
_LIMITED_BY = {
    "pids": ("pids.max",),
    "memory": ("memory.max", "memory.limit_in_bytes"),
    "cpu": ("cpu.max", "cpu.cfs_quota_us"),
}
_HARM = {"cage.pids": "refused", "cage.memory": "hits", "cage.cpu": "throttled"}
"""The count of events at the limit; none for I/O, which is only slowed down."""


def _groups(text: bytes, controllers: Sequence[str]) -> list[dict[str, bytes]]:
    """The files of each group, the innermost first, combined over these controllers, named as in cage_metrics."""
    try:
        chains = json.loads(text)
        levels = zip_longest(*(chains.get(controller, []) for controller in controllers), fillvalue={})
        return [
            {name.removesuffix("_recursive"): said.encode() for group in level for name, said in group.items()}
            for level in levels
        ]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise RecordingError("what was read of the control groups is damaged.") from error


def _tells(before: Mapping[str, bytes], after: Mapping[str, bytes], elapsed_s: float) -> Metrics:
    """The metrics of two looks at a group, named as in cage_metrics. Raises RecordingError if any is damaged."""
    metrics: Metrics = {}
    for row in ROWS:
        if row.source in before and row.source in after:
            of_row, lacking = row.looks(before, after, elapsed_s)
            if lacking:
                raise lacking[0]
            metrics |= of_row
    return metrics


def _of_tightest(controllers: Sequence[str], uses: Sequence[str], pair: Pair) -> Metrics:
    """Of the group nearest to its limit; without any limit of the innermost group, and 0 for rates."""
    limited_by = _LIMITED_BY.get(controllers[0])
    groups = [_groups(text, controllers) for text in (pair.first, pair.last)]
    looks = [
        _tells(before, after, pair.elapsed_s)
        for before, after in zip(*groups, strict=False)
        if limited_by is None or any(file in after for file in limited_by)
    ]
    values: Metrics = {}
    for use in uses:
        candidates = [(look[use], look.get(f"{use}.limit", math.inf), look) for look in looks if use in look]
        if not candidates:
            continue
        amount, limit, tightest = max(
            (candidate for candidate in candidates if math.isfinite(candidate[1])),
            key=lambda candidate: candidate[0] / candidate[1] if candidate[1] > 0 else math.inf,
            default=candidates[0] if limited_by is not None else (0.0, math.inf, {}),
        )
        metric = use.replace("cage", "target.cgroup", 1)
        values |= {metric: amount, f"{metric}.limit": limit}
        if (harm := _HARM.get(use)) is not None:
            values[f"{metric}.{harm}"] = tightest.get(f"{use}.{harm}", 0.0)
    return values


def _controller(name: str, controllers: Sequence[str], *uses: str) -> Source:
    metrics = (use.replace("cage", "target.cgroup", 1) for use in uses)
    return Source(
        f"cgroup {name}",
        tuple(metric_name for metric in metrics for metric_name in (metric, f"{metric}.limit")),
        partial(_of_tightest, controllers, uses),
        partial(fetch_groups, wanted=controllers),
        f"the {name} controller is off for its control group: the root group, or not delegated",
        of_process=True,
        path="proc/{pid}/cgroup",
    )


SOURCES: tuple[Source, ...] = (
    _controller("pids", ("pids",), "cage.pids"),
    _controller("memory", ("memory",), "cage.memory"),
    _controller("cpu", ("cpu", "cpuacct"), "cage.cpu"),
    _controller("io", ("io",), *(f"cage.{name}" for name in IO)),
)
