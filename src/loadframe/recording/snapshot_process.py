"""What a snapshot reads of one process and of the user it belongs to. Layouts: proc_pid_limits(5), proc_pid_fdinfo(5)
(the "tfd:" and "inotify wd:" lines), proc_pid_maps(5), Documentation/scheduler/sched-stats.rst."""

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import PAGE_BYTES, Metrics
from loadframe.recording.frames import Facts
from loadframe.recording.listeners import listeners
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
from loadframe.recording.snapshot import Pair, Place, Source, below, lines
from loadframe.recording.snapshot_kernel import elsewhere
from loadframe.recording.socket_rows import fullest

_UID = re.compile(rb"^Uid:\s*(\d+)", re.MULTILINE)
_THREADS = re.compile(rb"^Threads:\s*(\d+)", re.MULTILINE)
_WATCHED = {"anon_inode:[eventpoll]": "epoll", "anon_inode:inotify": "inotify"}
CPU_CLOCK = 2
"""CPUCLOCK_SCHED of a process: include/linux/posix-timers.h."""
ROOT = Path("/")


def _of_target(metrics: Metrics) -> Metrics:
    return {f"target.{metric}": float(value) for metric, value in metrics.items()}


def fetch_open_files(place: Place, path: str) -> bytes:
    """The number of open files, and below it the process's limits."""
    count = sum(1 for _ in place.path(path).iterdir())
    try:
        return b"%d\n" % count + place.text("proc/{pid}/limits")
    except FileNotFoundError:  # it ended
        return b"%d\n" % count


def _open_files(*pairs: Pair) -> Metrics:
    parts = (pair.last.partition(b"\n") for pair in pairs)
    return _of_target(open_files([{"fd": count, "limits": limits} for count, _, limits in parts]))


def _mappings(*pairs: Pair) -> Metrics:
    return {"target.mappings": float(max(procfs.parse_count(pair.last) for pair in pairs))}


def _status(*pairs: Pair) -> Metrics:
    """The memory of all of them; the CPUs are the first one's."""
    named = procfs.parse_process_status(pairs[0].last).cpus_allowed
    metrics = _of_target(memory(PAGE_BYTES, [{"status": pair.last} for pair in pairs]))
    return metrics | ({"target.cpus.named": float(named)} if named is not None else {})


def fetch_cpu(place: Place, path: str) -> bytes:
    """The process's clock in nanoseconds, empty in a recorded tree, and below it its stat."""
    clock = b"%d" % time.clock_gettime_ns((~place.pid << 3) | CPU_CLOCK) if place.pid and place.root == ROOT else b""
    return clock + b"\n" + place.text(path)


def _cpu(*pairs: Pair) -> Metrics:
    """As in a step: with threads and children that ended; less what was seen of such a child at the first look."""
    if pairs[0].elapsed_s <= 0:
        raise RecordingError("A rate needs two readings.")
    elapsed_s, pids = pairs[0].elapsed_s, [parse_stat(_spent(pair.first)[STAT]).pid for pair in pairs]
    track = ComponentTrack(Facts.of_this_machine(elapsed_s))
    track.step(0.0, None, {pid: _spent(pair.first) for pid, pair in zip(pids, pairs, strict=True)})
    there = {pid: _spent(pair.last) for pid, pair in zip(pids, pairs, strict=True) if pair.last}
    metrics = track.step(elapsed_s, 0.0, there)
    return _of_target({metric: value for metric, value in metrics.items() if metric == "cpu.cores"})


def _spent(text: bytes) -> dict[str, bytes]:
    clock, _, stat = text.partition(b"\n")
    return {STAT: stat, CLOCK: clock} if clock else {STAT: stat}


# --- its threads ---


def _threads(*pairs: Pair) -> Metrics:
    """One line per thread: its id and its schedstat (ns on a CPU, ns waiting for one). New threads began at zero."""
    if not all(_times(pair.last) for pair in pairs):
        raise RecordingError("this kernel was built without CONFIG_SCHED_INFO")
    elapsed_s = pairs[0].elapsed_s
    if elapsed_s <= 0:
        return {}
    used = [_used(pair) for pair in pairs]
    return {
        "target.cpu.hottest_thread": max(run for threads in used for run, _ in threads) / NS / elapsed_s,
        "target.cpu.run_delay": sum(sum(wait for _, wait in threads) / NS / elapsed_s for threads in used),
    }


def _used(pair: Pair) -> list[tuple[int, int]]:
    """Nanoseconds that each thread ran and waited."""
    first = _times(pair.first)
    both = ((times, first.get(thread, (0, 0))) for thread, times in _times(pair.last).items())
    return [(max(0, now[0] - before[0]), max(0, now[1] - before[1])) for now, before in both]


def _times(text: bytes) -> dict[bytes, tuple[int, int]]:
    rows = (line.split() for line in text.splitlines())
    return {row[0]: (procfs.parse_count(row[1]), procfs.parse_count(row[2])) for row in rows if len(row) >= 3}


# --- what it watches and listens to ---


def _descriptors(place: Place) -> Iterator[tuple[str, str]]:
    for link in place.path("proc/{pid}/fd").iterdir():
        try:
            yield link.name, str(link.readlink())
        except FileNotFoundError:  # closed meanwhile
            continue


def fetch_watches(place: Place, path: str) -> bytes:
    """One line per epoll and inotify instance: its kind, and how much it watches."""
    rows = []
    for number, leads_to in _descriptors(place):
        if (kind := _WATCHED.get(leads_to)) is not None:
            mark = b"tfd:" if kind == "epoll" else b"inotify wd:"
            try:
                watched = (place.path(path) / number).read_bytes().splitlines()
            except FileNotFoundError:  # closed meanwhile
                continue
            rows.append(f"{kind} {sum(line.startswith(mark) for line in watched)}")
    return lines(rows)


def _watches(pair: Pair) -> Metrics:
    watches: dict[bytes, list[int]] = {b"epoll": [], b"inotify": []}
    for line in pair.last.splitlines():
        kind, _, count = line.partition(b" ")
        if kind in watches:
            watches[kind].append(procfs.parse_count(count))
    return {
        "target.epoll_watches": float(sum(watches[b"epoll"])),
        "target.inotify_watches": float(sum(watches[b"inotify"])),
        "target.inotify_instances": float(len(watches[b"inotify"])),
    }


def fetch_accept_queues(place: Place, path: str) -> bytes:
    """One line per listening socket: inode, connections that wait, how many may. Raises RecordingError."""
    if elsewhere(place):
        raise RecordingError("the process is in another network namespace; run Loadframe in it (nsenter --net)")
    own = {leads_to[8:-1] for _, leads_to in _descriptors(place) if leads_to.startswith("socket:[")}
    return lines(
        f"{listener.inode} {listener.waiting} {listener.most}" for listener in listeners() if str(listener.inode) in own
    )


def _accept_queues(pair: Pair) -> Metrics:
    rows = [[procfs.parse_count(field) for field in line.split()] for line in pair.last.splitlines()]
    queues = [(waiting, most) for _, waiting, most in (row for row in rows if len(row) == 3) if most > 0]
    if not queues:
        return {}
    waiting, most = fullest(queues)
    return {"target.accept_queue": float(waiting), "target.accept_queue.limit": float(most)}


# --- the user ---


def fetch_user(place: Place, path: str) -> bytes:
    """The real user of the process, the threads of all processes of that user, and RLIMIT_NPROC: a walk over /proc."""
    uid = _real_user(place.text(path))
    threads = 0
    for folder in place.path("proc").iterdir():
        if folder.name.isdigit():
            try:
                status = (folder / "status").read_bytes()
            except OSError:  # ended meanwhile, or hidden from us
                continue
            if _real_user(status) == uid and (count := _THREADS.search(status)) is not None:
                threads += int(count[1])
    limit = procfs.parse_limits(place.text("proc/{pid}/limits")).get("Max processes")
    most = "unlimited" if limit is None or limit.soft == float("inf") else f"{limit.soft:.0f}"
    return lines([f"uid {uid}", f"threads {threads}", f"limit {most}"])


def _real_user(status: bytes) -> int:
    if (match := _UID.search(status)) is None:
        raise RecordingError("a process's status has no line Uid.")
    return int(match[1])


def _user(pair: Pair) -> Metrics:
    words = dict(line.split(b" ", 1) for line in pair.last.splitlines() if b" " in line)
    if not {b"uid", b"threads", b"limit"} <= words.keys():
        raise RecordingError("what was read of the user is damaged.")
    if words[b"uid"] == b"0":
        raise RecordingError("it does not hold for root (setrlimit(2), RLIMIT_NPROC)")
    limit = float("inf") if words[b"limit"] == b"unlimited" else float(procfs.parse_count(words[b"limit"]))
    return {"user.threads": float(procfs.parse_count(words[b"threads"])), "user.threads.limit": limit}


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
        _mappings,
        lambda place, path: b"%d\n" % place.text(path).count(b"\n"),
        together=True,
    ),
    _of_process(
        "proc/{pid}/status",
        ("target.memory.rss", "target.memory.shared", "target.cpus.named"),
        _status,
        together=True,
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
    _of_process("user", ("user.threads", "user.threads.limit"), _user, fetch_user, path="proc/{pid}/status"),
)
"""In the order of the page: files, memory, CPU, sockets, user."""
