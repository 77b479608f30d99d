"""What a snapshot reads of one process and of the user it belongs to.

Layouts: proc_pid_limits(5), proc_pid_fdinfo(5) (the "tfd:" and "inotify wd:" lines), proc_pid_maps(5),
Documentation/scheduler/sched-stats.rst.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.listeners import listeners
from loadframe.recording.snapshot import Pair, Place, Source, lines, read_file
from loadframe.recording.snapshot_kernel import elsewhere

_ALLOWED = re.compile(rb"^Cpus_allowed_list:\s*(\S+)$", re.MULTILINE)
_UID = re.compile(rb"^Uid:\s*(\d+)", re.MULTILINE)
_THREADS = re.compile(rb"^Threads:\s*(\d+)", re.MULTILINE)
_WATCHED = {"anon_inode:[eventpoll]": "epoll", "anon_inode:inotify": "inotify"}
_NS = 1e9


def _limits(pair: Pair) -> dict[str, float]:
    files = procfs.parse_limits(pair.last).get("Max open files")
    return {"target.open_files.limit": files.soft, "target.open_files.hard_limit": files.hard} if files else {}


def fetch_open_files(place: Place, path: str) -> bytes:
    """How many files are open, as a number."""
    return b"%d\n" % sum(1 for _ in place.path(path).iterdir())


def _open_files(pair: Pair) -> dict[str, float]:
    return {"target.open_files": float(procfs.parse_count(pair.last))}


def fetch_mappings(place: Place, path: str) -> bytes:
    """How many memory mappings, as a number."""
    return b"%d\n" % place.text(path).count(b"\n")


def _mappings(pair: Pair) -> dict[str, float]:
    return {"target.mappings": float(procfs.parse_count(pair.last))}


def _status(pair: Pair) -> dict[str, float]:
    values: dict[str, float] = {}
    status = procfs.parse_process_status(pair.last)
    if status.rss_bytes is not None:
        values["target.memory.rss"] = float(status.rss_bytes)
    if status.shared_memory_bytes is not None:
        values["target.memory.shared"] = float(status.shared_memory_bytes)
    if (allowed := _ALLOWED.search(pair.last)) is not None:
        values["target.cpus.named"] = float(_listed(allowed[1]))
    return values


def _status_together(pairs: Sequence[Pair]) -> dict[str, float]:
    """Their memory, what they share counted once; the CPUs are the first one's."""
    found = [procfs.parse_process_status(pair.last) for pair in pairs]
    resident = [(one.rss_bytes or 0, one.shared_bytes or 0) for one in found]
    shared = [one.shared_memory_bytes or 0 for one in found]
    return {
        **_status(pairs[0]),
        "target.memory.rss": float(procfs.together_bytes(resident)),
        "target.memory.shared": float(max(shared)),
    }


def _most(parse: Callable[[Pair], Mapping[str, float]]) -> Callable[[Sequence[Pair]], dict[str, float]]:
    """Of several processes the one that has most."""

    def together(pairs: Sequence[Pair]) -> dict[str, float]:
        each = [parse(pair) for pair in pairs]
        return {metric: max(one[metric] for one in each if metric in one) for metric in each[0]}

    return together


def _threads_together(pairs: Sequence[Pair]) -> dict[str, float]:
    """The CPU time of all of them, and the busiest thread of any."""
    each = [_threads(pair) for pair in pairs]
    hottest = "target.cpu.hottest_thread"
    return {
        metric: (max if metric == hottest else sum)(one[metric] for one in each if metric in one) for metric in each[0]
    }


def _listed(text: bytes) -> int:
    """How many CPUs a list such as "0-2,5" names."""
    count = 0
    for part in text.split(b","):
        first, _, last = part.partition(b"-")
        count += max(0, procfs.parse_count(last or first) - procfs.parse_count(first) + 1)
    return count


# --- its threads ----------------------------------------------------------------------------------------------------


def fetch_threads(place: Place, path: str) -> bytes:
    """One line per thread: its id and its schedstat (ns on a CPU, ns waiting for one)."""
    rows = []
    for folder in place.path(path).iterdir():
        try:
            rows.append(f"{folder.name} {(folder / 'schedstat').read_text(encoding='utf-8', errors='replace').strip()}")
        except (FileNotFoundError, ProcessLookupError):  # this thread has just ended, or the kernel has no schedstat
            continue
    return lines(rows)


def _threads(pair: Pair) -> dict[str, float]:
    """What the threads used that were there at both moments, and those born between them."""
    first, last = _times(pair.first), _times(pair.last)
    if not last:
        raise RecordingError("this kernel was built without CONFIG_SCHED_INFO")
    if pair.elapsed_s <= 0:
        return {}
    used = {thread: [now - before for now, before in zip(times, first.get(thread, (0, 0)), strict=True)]
            for thread, times in last.items()}  # fmt: skip
    run, wait = (sum(max(0, times[at]) for times in used.values()) / _NS / pair.elapsed_s for at in (0, 1))
    return {
        "target.cpu.cores": run,
        "target.cpu.hottest_thread": max(times[0] for times in used.values()) / _NS / pair.elapsed_s,
        "target.cpu.run_delay": wait,
    }


def _times(text: bytes) -> dict[bytes, tuple[int, int]]:
    rows = (line.split() for line in text.splitlines())
    return {row[0]: (procfs.parse_count(row[1]), procfs.parse_count(row[2])) for row in rows if len(row) >= 3}


# --- what it watches and listens to ---------------------------------------------------------------------------------


def _descriptors(place: Place) -> Iterator[tuple[str, str]]:
    """(number, what it leads to) of every open file."""
    for link in place.path("proc/{pid}/fd").iterdir():
        try:
            yield link.name, str(link.readlink())
        except FileNotFoundError:  # closed meanwhile
            continue


def fetch_watches(place: Place, path: str) -> bytes:
    """One line per epoll and inotify instance: which of the two, and how much it watches."""
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


def _watches(pair: Pair) -> dict[str, float]:
    found: dict[bytes, list[int]] = {b"epoll": [], b"inotify": []}
    for line in pair.last.splitlines():
        kind, _, count = line.partition(b" ")
        if kind in found:
            found[kind].append(procfs.parse_count(count))
    return {
        "target.epoll_watches": float(sum(found[b"epoll"])),
        "target.inotify_watches": float(sum(found[b"inotify"])),
        "target.inotify_instances": float(len(found[b"inotify"])),
    }


def fetch_accept_queues(place: Place, path: str) -> bytes:
    """One line per socket on which it listens: inode, connections that wait, how many may. RecordingError where its
    sockets cannot be seen from here."""
    if elsewhere(place):
        raise RecordingError("the process is in another network namespace; run Loadframe in it (nsenter --net)")
    own = {leads_to[8:-1] for _, leads_to in _descriptors(place) if leads_to.startswith("socket:[")}
    return lines(f"{one.inode} {one.waiting} {one.most}" for one in listeners() if str(one.inode) in own)


def _accept_queues(pair: Pair) -> dict[str, float]:
    """The fullest queue: the kernel lets one more in than its length says (sk_acceptq_is_full)."""
    rows = [[procfs.parse_count(field) for field in line.split()] for line in pair.last.splitlines()]
    queues = [(waiting, most) for _, waiting, most in (row for row in rows if len(row) == 3) if most > 0]
    if not queues:
        return {}
    waiting, most = max(queues, key=lambda one: (one[0] / one[1], -one[1]))
    return {"target.accept_queue": float(waiting), "target.accept_queue.limit": float(most)}


# --- the user -------------------------------------------------------------------------------------------------------


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
    if (found := _UID.search(status)) is None:
        raise RecordingError("a process's status has no line Uid.")
    return int(found[1])


def _user(pair: Pair) -> dict[str, float]:
    words = dict(line.split(b" ", 1) for line in pair.last.splitlines() if b" " in line)
    if not {b"uid", b"threads", b"limit"} <= words.keys():
        raise RecordingError("what was read of the user is damaged.")
    if words[b"uid"] == b"0":
        raise RecordingError("it does not hold for root (setrlimit(2), RLIMIT_NPROC)")
    limit = float("inf") if words[b"limit"] == b"unlimited" else float(procfs.parse_count(words[b"limit"]))
    return {"user.threads": float(procfs.parse_count(words[b"threads"])), "user.threads.limit": limit}


GONE = "the process has ended"


def _of_process(
    name: str,
    metrics: tuple[str, ...],
    parse: Callable[[Pair], Mapping[str, float]],
    fetch: Callable[[Place, str], bytes] = read_file,
    absent: str = GONE,
    *,
    path: str = "",
    together: Callable[[Sequence[Pair]], Mapping[str, float]] | None = None,
) -> Source:
    return Source(name, metrics, parse, fetch, absent, of_process=True, path=path, together=together)


SOURCES: tuple[Source, ...] = (
    _of_process("proc/{pid}/limits", ("target.open_files.limit", "target.open_files.hard_limit"), _limits),
    _of_process("proc/{pid}/fd", ("target.open_files",), _open_files, fetch_open_files, together=_most(_open_files)),
    _of_process("proc/{pid}/maps", ("target.mappings",), _mappings, fetch_mappings, together=_most(_mappings)),
    _of_process(
        "proc/{pid}/status",
        ("target.memory.rss", "target.memory.shared", "target.cpus.named"),
        _status,
        together=_status_together,
    ),
    _of_process(
        "proc/{pid}/task",
        ("target.cpu.cores", "target.cpu.hottest_thread", "target.cpu.run_delay"),
        _threads,
        fetch_threads,
        together=_threads_together,
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
        "it does not listen on any socket",
        path="proc/{pid}/fd",
    ),
    _of_process("user", ("user.threads", "user.threads.limit"), _user, fetch_user, path="proc/{pid}/status"),
)
"""In the order of the page: files, memory, CPU, sockets, user."""
