"""What a snapshot reads of one process, of its user and of its control groups, of version 1 and 2. A process is held by
the tightest limit of its group and all groups above. Layouts: proc_pid_limits(5), proc_pid_fdinfo(5), proc_pid_maps(5),
Documentation/scheduler/sched-stats.rst, admin-guide/cgroup-v2.rst and cgroup-v1/; cgroups(7)."""

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path

from loadframe.cages.groups import IO_FILES_V1, QUOTA_V1, hierarchies
from loadframe.errors import RecordingError
from loadframe.recording import procfs, snapshot_machine
from loadframe.recording.cage_metrics import CAGE, IO
from loadframe.recording.derivation import PAGE_BYTES, Derivation, Metrics
from loadframe.recording.frames import Facts
from loadframe.recording.process_metrics import (
    CLOCK,
    NS,
    STAT,
    ComponentTrack,
    memory,
    open_files,
    open_files_limits,
    parse_stat,
)
from loadframe.recording.snapshot import Pair, Place, Source, below
from loadframe.recording.snapshot_machine import elsewhere
from loadframe.recording.socket_rows import fullest, listeners

_UID = re.compile(rb"^Uid:\s*(\d+)", re.MULTILINE)
_THREADS = re.compile(rb"^Threads:\s*(\d+)", re.MULTILINE)
_WATCHED = {"anon_inode:[eventpoll]": b"tfd:", "anon_inode:inotify": b"inotify wd:"}
"""Where a descriptor leads to, and how a line of its fdinfo begins."""
CPU_CLOCK = 2
"""CPUCLOCK_SCHED: include/linux/posix-timers.h."""
ROOT = Path("/")


def _of_target(metrics: Metrics) -> Metrics:
    return {f"target.{metric}": float(value) for metric, value in metrics.items()}


def fetch_open_files(place: Place, path: str) -> dict[str, bytes]:
    entries = {"fd": b"%d" % sum(1 for _ in place.path(path).iterdir())}
    with suppress(FileNotFoundError):  # it ended
        entries["limits"] = place.text("proc/{pid}/limits")
    return entries


def _open_files(*pairs: Pair) -> Metrics:
    return _of_target(open_files([pair.last for pair in pairs]))


def _status(*pairs: Pair) -> Metrics:
    """The memory of all processes; the CPUs are the first one's."""
    named = procfs.parse_process_status(pairs[0].last).cpus_allowed
    metrics = _of_target(memory(PAGE_BYTES, [{"status": pair.last} for pair in pairs]))
    return metrics | ({"target.cpus.named": float(named)} if named is not None else {})


def fetch_cpu(place: Place, path: str) -> dict[str, bytes]:
    """The process's stat, and its clock (ns), except of a recorded tree."""
    entries = {STAT: place.text(path)}
    if place.pid and place.root == ROOT:
        entries[CLOCK] = b"%d" % time.clock_gettime_ns((~place.pid << 3) | CPU_CLOCK)
    return entries


def _cpu(*pairs: Pair) -> Metrics:
    """As in a step: with threads and children that ended, less what was seen of such a child at the first look."""
    if pairs[0].elapsed_s <= 0:
        raise RecordingError("A rate needs two readings.")
    elapsed_s, pids = pairs[0].elapsed_s, [parse_stat(pair.first[STAT]).pid for pair in pairs]
    track = ComponentTrack(Facts.of_this_machine(elapsed_s))
    track.step(0.0, None, {pid: pair.first for pid, pair in zip(pids, pairs, strict=True)})
    metrics = track.step(elapsed_s, 0.0, {pid: pair.last for pid, pair in zip(pids, pairs, strict=True) if pair.last})
    return _of_target({metric: value for metric, value in metrics.items() if metric == "cpu.cores"})


def _threads(*pairs: Pair) -> Metrics:
    """The schedstat of each thread (ns on a CPU, ns waiting for one). New threads began at zero."""
    looks = [(_times(pair.first), _times(pair.last)) for pair in pairs]
    if not all(last for _, last in looks):
        raise RecordingError("this kernel was built without CONFIG_SCHED_INFO")
    elapsed_s = pairs[0].elapsed_s
    if elapsed_s <= 0:
        return {}
    used = [
        [max(0, now - before) / NS / elapsed_s for now, before in zip(times, first.get(thread, (0, 0)), strict=True)]
        for first, last in looks
        for thread, times in last.items()
    ]
    return {
        "target.cpu.hottest_thread": max(run for run, _ in used),
        "target.cpu.run_delay": sum(wait for _, wait in used),
    }


def _times(texts: Mapping[str, Sequence[bytes]]) -> dict[str, list[int]]:
    rows = {thread: text.split()[:2] for thread, (text,) in texts.items()}
    return {thread: [procfs.parse_count(word) for word in row] for thread, row in rows.items() if len(row) == 2}


def _descriptors(place: Place) -> Iterator[tuple[str, str]]:
    for link in place.path("proc/{pid}/fd").iterdir():
        try:
            yield link.name, str(link.readlink())
        except FileNotFoundError:  # closed meanwhile
            continue


def fetch_watches(place: Place, path: str) -> dict[str, list[int]]:
    """How much each epoll and inotify instance watches."""
    watches: dict[str, list[int]] = {leads_to: [] for leads_to in _WATCHED}
    for number, leads_to in _descriptors(place):
        if (mark := _WATCHED.get(leads_to)) is not None:
            with suppress(FileNotFoundError):  # closed meanwhile
                lines = (place.path(path) / number).read_bytes().splitlines()
                watches[leads_to].append(sum(line.startswith(mark) for line in lines))
    return watches


def _watches(pair: Pair) -> Metrics:
    epoll, inotify = (pair.last[leads_to] for leads_to in _WATCHED)
    return {
        "target.epoll_watches": float(sum(epoll)),
        "target.inotify_watches": float(sum(inotify)),
        "target.inotify_instances": float(len(inotify)),
    }


def fetch_accept_queues(place: Place, path: str) -> list[tuple[int, int]]:
    """Of each listening socket: connections that wait, how many may. RecordingError."""
    if elsewhere(place):
        raise RecordingError("the process is in another network namespace; run Loadframe in it (nsenter --net)")
    own = {leads_to for _, leads_to in _descriptors(place)}
    return [queue for inode, queue in listeners().items() if f"socket:[{inode}]" in own]


def _accept_queues(pair: Pair) -> Metrics:
    queues = [(waiting, most) for waiting, most in pair.last if most > 0]
    if not queues:
        return {}
    waiting, most = fullest(queues)
    return {"target.accept_queue": float(waiting), "target.accept_queue.limit": float(most)}


def fetch_user(place: Place, path: str) -> Metrics:
    """The threads of all processes of the real user, and RLIMIT_NPROC: a walk over /proc. RecordingError."""
    if (uid := _UID.search(place.text(path))) is None:
        raise RecordingError("a process's status has no line Uid.")
    if uid[1] == b"0":
        raise RecordingError("it does not hold for root (setrlimit(2), RLIMIT_NPROC)")
    threads = 0
    for folder in place.path("proc").iterdir():
        if folder.name.isdigit():
            try:
                status = (folder / "status").read_bytes()
            except OSError:  # ended meanwhile, or hidden from us
                continue
            user, count = _UID.search(status), _THREADS.search(status)
            if user is not None and user[1] == uid[1] and count is not None:
                threads += int(count[1])
    limit = procfs.parse_limits(place.text("proc/{pid}/limits")).get("Max processes")
    return {"user.threads": float(threads), "user.threads.limit": math.inf if limit is None else limit.soft}


FILES = {
    "pids": ("pids.max", "pids.current", "pids.events"),
    "memory": (
        *("memory.max", "memory.current", "memory.stat", "memory.events"),
        *("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.failcnt"),
    ),
    "cpu": ("cpu.max", "cpu.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "cpuacct": ("cpuacct.usage",),
    "io": (
        *("io.max", "io.stat", *IO_FILES_V1.values()),
        *("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive"),
    ),
}
"""By the controller's name in version 2 (cpuacct: of version 1)."""
OUT_OF_SIGHT = "the control groups of the process are not mounted where we can see them"


def fetch_groups(place: Place, path: str, *, wanted: Sequence[str]) -> list[dict[str, bytes]]:
    """The files of the wanted controllers, of the process's group and of those above it, the innermost first. A
    controller that is off there, and the root group, have no files."""
    place.text(path)  # raises if the process has ended
    mounted = hierarchies(place.root, "self" if place.pid is None else str(place.pid))
    if not mounted:
        raise RecordingError(OUT_OF_SIGHT)
    chains: dict[str, dict[Path, dict[str, bytes]]] = {}
    for hierarchy in mounted:
        above = [folder for folder in hierarchy.own.parents if folder.is_relative_to(hierarchy.top)]
        for controller in wanted if hierarchy.version == 2 else hierarchy.controllers & set(wanted):
            for folder in (hierarchy.own, *above):
                texts = {}
                for file in FILES[controller]:
                    with suppress(OSError):
                        texts[file.removesuffix("_recursive")] = (folder / file).read_bytes()
                if texts:
                    chains.setdefault(controller, {})[folder] = texts
    levels = zip_longest(*(chains.get(controller, {}).values() for controller in wanted), fillvalue={})
    return [{file: text for group in level for file, text in group.items()} for level in levels]


def _working_set(use: bytes, stat: bytes) -> float:
    """As Kubernetes defines it: use without inactive file pages, which the group gives up first."""
    counted = procfs.parse_vmstat(stat) if stat else {}
    idle = counted.get("total_inactive_file", counted.get("inactive_file", 0))  # the former of version 1
    return max(0.0, procfs.parse_count(use) - idle)


ROWS = (
    *CAGE,
    *(
        Derivation(file, _working_set, (lambda use: {"cage.memory": use},), slower=("memory.stat",))
        for file in ("memory.current", "memory.usage_in_bytes")
    ),
)
_LIMITED_BY = {
    "pids": ("pids.max",),
    "memory": ("memory.max", "memory.limit_in_bytes"),
    "cpu": ("cpu.max", QUOTA_V1),
}
_HARM = {"cage.pids": "refused", "cage.memory": "hits", "cage.cpu": "throttled_share"}
"""The count of events at the limit; I/O is only slowed down."""


def _look(before: Mapping[str, bytes], after: Mapping[str, bytes], elapsed_s: float) -> Metrics:
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
    looks = [
        _look(before, after, pair.elapsed_s)
        for before, after in zip(pair.first, pair.last, strict=False)
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


GONE = "the process has ended"
_of_process = partial(Source, of_process=True, absent=GONE)
SOURCES: tuple[Source, ...] = (
    _of_process(
        "proc/{pid}/limits",
        ("target.open_files.limit", "target.open_files.hard_limit"),
        lambda pair: _of_target(open_files_limits(pair.last)),
    ),
    _of_process("proc/{pid}/fd", ("target.open_files",), _open_files, fetch_open_files, together=True),
    _of_process(
        "proc/{pid}/maps",
        ("target.mappings",),
        lambda *pairs: {"target.mappings": float(max(pair.last for pair in pairs))},
        lambda place, path: place.text(path).count(b"\n"),
        together=True,
    ),
    _of_process(
        "proc/{pid}/status", ("target.memory.rss", "target.memory.shared", "target.cpus.named"), _status, together=True
    ),
    _of_process("proc/{pid}/stat", ("target.cpu.cores",), _cpu, fetch_cpu, together=True, ended=True),
    _of_process(
        "proc/{pid}/task",
        ("target.cpu.hottest_thread", "target.cpu.run_delay"),
        _threads,
        below("schedstat"),
        together=True,
    ),
    _of_process(
        "proc/{pid}/fdinfo",
        ("target.epoll_watches", "target.inotify_watches", "target.inotify_instances"),
        _watches,
        fetch_watches,
    ),
    _of_process(
        "accept queues",
        ("target.accept_queue", "target.accept_queue.limit"),
        _accept_queues,
        fetch_accept_queues,
        absent="it does not listen on any socket",
        path="proc/{pid}/fd",
    ),
    _of_process(
        "user", ("user.threads", "user.threads.limit"), lambda pair: pair.last, fetch_user, path="proc/{pid}/status"
    ),
    _controller("pids", ("pids",), "cage.pids"),
    _controller("memory", ("memory",), "cage.memory"),
    _controller("cpu", ("cpu", "cpuacct"), "cage.cpu"),
    _controller("io", ("io",), *(f"cage.{name}" for name in IO)),
)

EVERYTHING = (*snapshot_machine.SOURCES, *SOURCES)
