"""The metrics of a component's processes. A child that has ended counts with its parent, which inherits its numbers
from the kernel: nothing is lost that comes and goes between two ticks."""

import math
import re
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from loadframe.recording import procfs
from loadframe.recording.derivation import Derivation, Metrics, gather, growth, rate_of, rates_of
from loadframe.recording.frames import TASK, Entries, Facts
from loadframe.recording.procfs import ProcessStat

NS = 1e9
STATES = {"running": "R", "blocked": "D", "sleeping": "S"}
POLLING = "polling"
parse_stat = lru_cache(maxsize=512)(procfs.parse_process_stat)
"""Cached: several metrics come from one text."""

_LONGEST_PID = 10
_TIMER_SLEEP = re.compile(rb"(nanosleep|_sleep|msleep|usleep)(\.|$)")


def _counted(ticks_per_s: int, first: ProcessStat, last: ProcessStat, elapsed_s: float) -> Metrics:
    own, inherited = _grown(first, last, ""), _grown(first, last, "children_")
    both = {name: (own[name] + max(0.0, inherited[name])) / elapsed_s for name in own}
    return {
        "cpu.user_cores": both["user_ticks"] / ticks_per_s,
        "cpu.system_cores": both["system_ticks"] / ticks_per_s,
        CHILDREN_CORES: max(0.0, inherited["user_ticks"] + inherited["system_ticks"]) / elapsed_s / ticks_per_s,
        "paging.major_faults": both["major_faults"],
        "paging.minor_faults": both["minor_faults"],
    }


_COUNTERS = ("user_ticks", "system_ticks", "major_faults", "minor_faults")


def _grown(first: ProcessStat, last: ProcessStat, prefix: str) -> dict[str, float]:
    """Children may leave less than was seen of them before; everything else never goes back."""
    pairs = {name: (getattr(first, prefix + name), getattr(last, prefix + name)) for name in _COUNTERS}
    return {name: after - before if prefix else growth(before, after) for name, (before, after) in pairs.items()}


def after(first: ProcessStat, ended: Sequence[ProcessStat]) -> ProcessStat:
    """A process's numbers plus what was seen of children that ended since: they count once, as themselves."""
    if not ended:
        return first
    of_all = {
        name: sum(getattr(child, name) + getattr(child, f"children_{name}") for child in ended) for name in _COUNTERS
    }
    return replace(first, **{f"children_{name}": getattr(first, f"children_{name}") + n for name, n in of_all.items()})


def with_clock(seen: ProcessStat, clock_ns: int, facts: Facts) -> ProcessStat:
    ticks = int(clock_ns / NS * facts.clock_ticks_per_s) - seen.user_ticks
    return replace(seen, system_ticks=max(seen.system_ticks, ticks))


_IO = {"io.read_bytes": ("read_bytes",), "io.write_bytes": ("write_bytes",), "io.write_calls": ("syscw",)}
CLOCK_CORES, CHILDREN_CORES, RECORDER_CORES = "cpu.of its clock", "cpu.of its children", "recorder.cpu.cores"
STAT, CLOCK, IO = "stat", "cpu", "io"
BORN: Mapping[str, object] = {
    STAT: ProcessStat(0, "", "", 0, 0, 0, 0, 0, 0, 0),
    CLOCK: 0,
    IO: {name: 0 for names in _IO.values() for name in names},
}


def process_rows(ticks_per_s: int) -> tuple[Derivation, ...]:
    """By the last word of the source's name."""
    return (
        Derivation(STAT, parse_stat, rates=(partial(_counted, ticks_per_s),)),
        Derivation(CLOCK, procfs.parse_count, rates=(rate_of(CLOCK_CORES, NS),)),
        Derivation(IO, partial(procfs.by_name, where="a process's io"), rates=(rates_of(_IO),)),
    )


def recorder_rows(ticks_per_s: int) -> tuple[Derivation, ...]:
    """From its one thread's schedstat; from clock ticks on a kernel without."""

    def ticks(text: bytes) -> int:
        stat = parse_stat(text)
        return stat.user_ticks + stat.system_ticks

    rows = (("stat", ticks, ticks_per_s), ("schedstat", lambda text: procfs.parse_schedstat(text).run_ns, NS))
    return tuple(
        Derivation(f"recorder:/proc/self/{file}", parse, rates=(rate_of(RECORDER_CORES, unit),))
        for file, parse, unit in rows
    )


def with_cores(metrics: Metrics) -> Metrics:
    """Adds cpu.cores, CPU-seconds per second: from the process's clock, to the nanosecond and with threads that ended;
    from clock ticks of 10 ms in a recording without it, and always for ended children."""
    clock, children = metrics.pop(CLOCK_CORES, None), metrics.pop(CHILDREN_CORES, 0.0)
    if clock is not None:
        metrics["cpu.cores"] = clock + children
    elif "cpu.user_cores" in metrics:
        metrics["cpu.cores"] = metrics["cpu.user_cores"] + metrics["cpu.system_cores"]
    return metrics


def born_since(stat: ProcessStat, at_s: float, facts: Facts) -> bool:
    return stat.started_ticks / facts.clock_ticks_per_s - facts.boottime_offset_s >= at_s


def added_up(rates: Sequence[Metrics]) -> Metrics:
    """A metric missing for some (/proc/PID/io may be forbidden) is left out."""
    common = set[str].intersection(*(set(metrics) for metrics in rates)) if rates else set[str]()
    return {metric: sum(metrics[metric] for metrics in rates) for metric in common}


@dataclass(frozen=True, slots=True)
class TaskTexts:
    """schedstat and wchan are empty if the kernel has none."""

    thread: int
    stat: bytes
    schedstat: bytes
    wchan: bytes

    @property
    def state(self) -> str:
        """R, S, D, ...; empty if its stat cannot be read."""
        begin = self.stat.rfind(b")") + 2
        return self.stat[begin : begin + 1].decode("ascii", "replace") if begin >= 2 else ""

    @property
    def name(self) -> str:
        """At most 15 bytes."""
        return self.stat[self.stat.find(b"(") + 1 : max(0, self.stat.rfind(b")"))].decode("utf-8", "replace")


def parse_tasks(data: bytes) -> list[TaskTexts]:
    tasks, position = [], 0
    try:
        while position < len(data):
            thread, stat, schedstat, wchan = TASK.unpack_from(data, position)
            begin = position + TASK.size
            middle, last = begin + stat, begin + stat + schedstat
            position = last + wchan
            if position > len(data):
                raise struct.error
            tasks.append(TaskTexts(thread, data[begin:middle], data[middle:last], data[last:position]))
    except struct.error as error:
        raise procfs.missing("a list of threads", "its end") from error
    return tasks


HELD = frozenset({STAT, "status", "limits", "fd", "threads", "tasks"})
"""The latest text of these stays valid: with thousands of threads, or many processes, they are read once per second."""
KINDS = frozenset({*HELD, CLOCK, IO})


@dataclass(frozen=True, slots=True)
class Census:
    """A component's threads at a moment. states: extrapolated from the threads that were looked at (None if none was).
    sleepers: of these; where_known: the kernel reported of at least one where it sleeps."""

    count: int
    processes: int
    states: Mapping[str, float] | None
    sleepers: int
    where_known: bool

    @property
    def metrics(self) -> Metrics:
        states = self.states or {}
        return {"threads.count": self.count, "processes.count": self.processes} | {
            f"threads.{name}": states[letter] for name, letter in STATES.items() if letter in states
        }


def census(members: Collection[Entries]) -> Census | None:
    """members: the entries of each process. None without threads. RecordingError for damaged entries."""
    total, sleepers, where_known, asked_some = 0, 0, False, False
    states = dict.fromkeys([*STATES.values(), POLLING], 0.0)
    with_threads = [member for member in members if "tasks" in member or "threads" in member]
    for entries in with_threads:
        rows = parse_tasks(entries.get("tasks", b""))
        count = max(len(rows), procfs.parse_count(entries["threads"])) if "threads" in entries else len(rows)
        total += count
        asked_some |= bool(rows)
        asked = sum(task.wchan != b"" for task in rows)
        for task in rows:
            state = task.state
            if state in states:
                states[state] += count / len(rows)
            if state == "S":
                sleepers += 1
                where_known |= task.wchan not in (b"", b"0")  # the latter without permission
                states[POLLING] += (_TIMER_SLEEP.search(task.wchan) is not None) * count / max(asked, 1)
    if not with_threads:
        return None
    return Census(total, len(with_threads), states if asked_some else None, sleepers, where_known)


def open_files(members: Collection[Entries]) -> Metrics:
    uses = [
        {"open_files": procfs.parse_count(entries["fd"])} | open_files_limits(entries.get("limits", b""))
        for entries in members
        if "fd" in entries
    ]
    return max(uses, key=nearness, default={})


def nearness(metrics: Metrics) -> tuple[float, float]:
    """How near a process is to the limit of open files; without a limit, or as tie-breaker, how many it has."""
    count = metrics.get("open_files", -1.0)
    return count / max(metrics.get("open_files.limit", math.inf), 1.0), count


@lru_cache(maxsize=512)
def open_files_limits(text: bytes) -> Metrics:
    limit = procfs.parse_limits(text).get("Max open files") if text else None
    return {} if limit is None else {"open_files.limit": limit.soft, "open_files.hard_limit": limit.hard}


def memory(page_bytes: int, members: Collection[Entries]) -> Metrics:
    """What processes share (a server's buffers, its program) counts once: the largest share of any of them. A process
    without its stat is counted by its status."""
    resident, touched = [], []
    for entries in members:
        status = procfs.parse_process_status(entries.get("status", b""))
        touched += [status.shared_memory_bytes] if status.shared_memory_bytes is not None else []
        whole = parse_stat(entries[STAT]).rss_pages * page_bytes if STAT in entries else status.rss_bytes
        if whole is not None:
            resident.append((whole, min(whole, status.shared_bytes or 0)))
    metrics: Metrics = {}
    if resident:
        shared = [part for _, part in resident]
        metrics["memory.rss"] = sum(whole for whole, _ in resident) - sum(shared) + max(shared)
    return metrics | ({"memory.shared": max(touched)} if touched else {})


def split_source(name: str) -> tuple[str, int, str] | None:
    """Component, process and last word; None for a source that is of no process."""
    component, _, rest = name.partition(":")
    pid, colon, what = rest.partition(":")
    if not colon or not (pid.isascii() and pid.isdecimal()) or len(pid) > _LONGEST_PID:
        return None
    word = what.removeprefix(f"/proc/{pid}/")
    return (component, int(pid), word) if "/" not in word else None


def is_there(entries: Entries) -> bool:
    return not entries.keys().isdisjoint((STAT, CLOCK, "threads", "tasks"))


class ComponentTrack:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._rows = process_rows(facts.clock_ticks_per_s)
        self._before: dict[int, dict[str, tuple[float, object, Metrics]]] = {}
        self._held: dict[int, dict[str, bytes]] = {}
        self._ended: dict[int, list[ProcessStat]] = {}

    def step(self, at_s: float, before_s: float | None, processes: Mapping[int, Entries]) -> Metrics:
        """before_s: time of the tick before. A process born since then counts from zero; an older one that was not
        followed then counts from here on. If a file is read of some of the processes only, the earlier rates of the
        others count."""
        there = {pid: entries for pid, entries in processes.items() if is_there(entries)}
        for pid, seen in self._before.items():
            if pid not in there and STAT in seen and isinstance(last := seen[STAT][1], ProcessStat):
                clock_s, clock, _ = seen.get(CLOCK, (0.0, None, {}))
                if isinstance(clock, int) and clock_s > seen[STAT][0]:
                    last = with_clock(last, clock, self._facts)
                self._ended.setdefault(last.parent, []).append(last)
        self._ended = {pid: ended for pid, ended in self._ended.items() if pid in there}
        read = {row.source for row in self._rows if any(row.source in entries for entries in there.values())}
        self._before = {pid: self._before.get(pid, {}) for pid in there}
        self._held = {
            pid: {**self._held.get(pid, {}), **{name: entries[name] for name in HELD & entries.keys()}}
            for pid, entries in there.items()
        }

        def rates(pid: int, entries: Entries, row: Derivation) -> Metrics:
            before = self._before[pid].get(row.source)
            if row.source not in entries:
                return before[2] if before is not None and row.source in read else {}
            reading = row.reading(entries)
            self._before[pid][row.source] = at_s, reading, {}
            if before is None:
                if before_s is None:
                    return {}
                born = born_since(parse_stat(entries.get(STAT, b"")), before_s, self._facts)
                before = before_s, BORN[row.source] if born else reading, {}
            then_s, first, _ = before
            if at_s <= then_s:
                return {}
            first = after(first, self._ended.pop(pid, ())) if isinstance(first, ProcessStat) else first
            grown = row.between(first, reading, at_s - then_s)
            self._before[pid][row.source] = at_s, reading, grown
            return grown

        of_each = [
            with_cores(gather(partial(rates, pid, entries, row) for row in self._rows))
            for pid, entries in there.items()
        ]
        members = [{**self._held[pid], **entries} for pid, entries in there.items()]
        levels = (_threads, open_files, partial(memory, self._facts.page_bytes))
        return added_up(of_each) | gather(partial(level, members) for level in levels)


def _threads(members: Collection[Entries]) -> Metrics:
    return {} if (counted := census(members)) is None else counted.metrics
