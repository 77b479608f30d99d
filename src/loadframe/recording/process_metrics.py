"""The metrics of the followed processes in a window: the target's, the driver's, and the recorder's own.

Counters are parsed at a process's first and last tick in the window only, thread states at each tick. What was born in
the window counts from zero; what was there before and began to be followed later counts from where it was first seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.frames import Tick
from loadframe.recording.procfs import ProcessStat, TaskTexts
from loadframe.recording.windows import Window, gather, growth, nearest_pair

_NS = 1e9
_OPEN_FILES = "Max open files"
_STATES = {"running": "R", "blocked": "D", "sleeping": "S"}


@dataclass(frozen=True, slots=True)
class ThreadUse:
    """One thread's CPU time and time it waited for a CPU (None where the kernel does not say) in the window."""

    cpu_s: float
    wait_s: float | None
    precise: bool


class ProcessInWindow:
    """One followed process, with the ticks of the window at which it was there."""

    def __init__(self, component: str, pid: int, window: Window) -> None:
        self.component = component
        self.pid = pid
        self.window = window

    def source(self, kind: str) -> str:
        return f"{self.component}:{self.pid}:{kind}"

    def file(self, name: str) -> str:
        return self.source(f"/proc/{self.pid}/{name}")

    def readings(self, source: str) -> list[bytes]:
        return [tick.entries[source] for tick in self.window.ticks if source in tick.entries]

    def edges(self, source: str) -> tuple[bytes, bytes]:
        readings = self.readings(source)
        if not readings:
            raise RecordingError(f"{source} was not recorded.")
        return readings[0], readings[-1]

    @cached_property
    def stats(self) -> tuple[ProcessStat, ProcessStat]:
        first, last = self.edges(self.file("stat"))
        return procfs.parse_process_stat(first), procfs.parse_process_stat(last)

    @cached_property
    def born_here(self) -> bool:
        return _born_in(self.window, self.stats[0])

    def growth(self, first: float, last: float) -> float:
        """Of a counter of this process: from zero where the process was born in the window."""
        return growth(0 if self.born_here else first, last)

    def ticks_s(self, field: str) -> float:
        first, last = self.stats
        return self.growth(getattr(first, field), getattr(last, field)) / self.window.facts.clock_ticks_per_s

    @cached_property
    def tasks(self) -> list[list[TaskTexts]]:
        """Its threads at each tick."""
        return [procfs.parse_tasks(data) for data in self.readings(self.source("tasks"))]

    @cached_property
    def threads(self) -> dict[int, ThreadUse]:
        """What each of its threads used, also of those that lived for a part of the window only."""
        first: dict[int, TaskTexts] = {}
        last: dict[int, TaskTexts] = {}
        for tasks in self.tasks:
            for task in tasks:
                first.setdefault(task.thread, task)
                last[task.thread] = task
        return {thread: _thread_use(self.window, first[thread], text) for thread, text in last.items()}

    @cached_property
    def cpu_s(self) -> float:
        """CPU time in the window. The threads' nanoseconds where they agree with the process's total, which is coarse
        (clock ticks) but misses no thread that came and went between two ticks."""
        total_s = self.ticks_s("user_ticks") + self.ticks_s("system_ticks")
        if not self.threads or not all(use.precise for use in self.threads.values()):
            return total_s
        fine_s = sum(use.cpu_s for use in self.threads.values())
        # User and system time are each cut to whole ticks at both ends, and a running thread's nanoseconds are up to
        # one scheduler tick old.
        tolerance_s = 3 / self.window.facts.clock_ticks_per_s
        return fine_s if abs(fine_s - total_s) <= tolerance_s else total_s


def _born_in(window: Window, stat: ProcessStat) -> bool:
    started_s = stat.started_ticks / window.facts.clock_ticks_per_s - window.facts.boottime_offset_s
    return started_s >= window.ticks[0].monotonic_s


def _thread_use(window: Window, first: TaskTexts, last: TaskTexts) -> ThreadUse:
    stat = procfs.parse_process_stat(first.stat)
    born_here = _born_in(window, stat)
    if first.schedstat.strip() and last.schedstat.strip():
        before, after = procfs.parse_schedstat(first.schedstat), procfs.parse_schedstat(last.schedstat)
        return ThreadUse(
            # Not `growth`: a thread id that was given anew within the window is no reason to lose the other threads.
            cpu_s=max(0, after.run_ns - (0 if born_here else before.run_ns)) / _NS,
            wait_s=max(0, after.wait_ns - (0 if born_here else before.wait_ns)) / _NS,
            precise=True,
        )
    end = procfs.parse_process_stat(last.stat)
    before_ticks = 0 if born_here else stat.user_ticks + stat.system_ticks
    used_ticks = max(0, end.user_ticks + end.system_ticks - before_ticks)
    return ThreadUse(used_ticks / window.facts.clock_ticks_per_s, None, precise=False)


# --- which processes ------------------------------------------------------------------------------------------------


def followed_processes(window: Window) -> list[ProcessInWindow]:
    """All processes that were followed in the window, under each component that they were followed as."""
    names = {name for tick in window.ticks for name in tick.entries if name.endswith("/stat")}
    keys = set()
    for name in names:
        component, pid, _ = [*name.split(":", 2), "", ""][:3]
        if pid.isdecimal() and name == f"{component}:{pid}:/proc/{pid}/stat":
            keys.add((component, int(pid)))
    return [ProcessInWindow(component, pid, window) for component, pid in sorted(keys)]


def recorder_cores(window: Window) -> float:
    """CPU of the recorder (one thread). RecordingError where it was not recorded."""
    try:
        first, last = (procfs.parse_schedstat(text) for text in window.edges("recorder:/proc/self/schedstat"))
    except RecordingError:
        before, after = (procfs.parse_process_stat(text) for text in window.edges("recorder:/proc/self/stat"))
        ticks = growth(before.user_ticks + before.system_ticks, after.user_ticks + after.system_ticks)
        return ticks / window.facts.clock_ticks_per_s / window.elapsed_s
    return window.rate(first.run_ns / _NS, last.run_ns / _NS)


# --- metrics of one component ---------------------------------------------------------------------------------------


def component_metrics(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    """The metrics of one component's processes together, without the component's name in front ("cpu.cores")."""
    groups = (_cpu, _threads, _run_delay, _states, _open_files, _memory, _io, _faults, _switches)
    bound: list[Callable[[], dict[str, float]]] = [partial(group, window, processes) for group in groups]
    return gather(bound) if processes else {}


def _cpu(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    return {
        "cpu.cores": sum(process.cpu_s for process in processes) / window.elapsed_s,
        "cpu.user_cores": sum(process.ticks_s("user_ticks") for process in processes) / window.elapsed_s,
        "cpu.system_cores": sum(process.ticks_s("system_ticks") for process in processes) / window.elapsed_s,
    }


def _threads(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    uses = [use for process in processes for use in process.threads.values()]
    return {"cpu.hottest_thread": max(use.cpu_s for use in uses) / window.elapsed_s} if uses else {}


def _run_delay(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    waits = [use.wait_s for process in processes for use in process.threads.values() if use.wait_s is not None]
    return {"cpu.run_delay": sum(waits) / window.elapsed_s} if waits else {}


def _states(_window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    """Averages over the ticks at which any process of the component was there; the count is the largest."""
    by_tick: dict[float, list[TaskTexts]] = {}
    for process in processes:
        times = [tick.monotonic_s for tick in process.window.ticks if process.source("tasks") in tick.entries]
        for at_s, tasks in zip(times, process.tasks, strict=True):
            by_tick.setdefault(at_s, []).extend(tasks)
    if not by_tick:
        return {}
    moments = [[(task.state, task) for task in tasks] for tasks in by_tick.values()]
    metrics: dict[str, float] = {"threads.count": max(len(moment) for moment in moments)}
    for name, letter in _STATES.items():
        metrics[f"threads.{name}"] = sum(state == letter for moment in moments for state, _ in moment) / len(moments)
    sleepers = [task for moment in moments for state, task in moment if state == "S"]
    # A kernel that tells of nobody where it sleeps gives no count of zero, but none.
    if not sleepers or any(task.where_known for task in sleepers):
        metrics["threads.polling"] = sum(task.sleeps_in_timer for task in sleepers) / len(moments)
    return metrics


def _open_files(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    most: list[tuple[int, ProcessInWindow]] = []
    for process in processes:
        counts = [procfs.parse_count(text) for text in process.readings(process.source("fd"))]
        if counts:
            most.append((max(counts), process))
    if not most:
        return {}
    count, process = max(most, key=lambda pair: pair[0])
    metrics: dict[str, float] = {"open_files": count}
    text = _nearest_entry(window, process.file("limits"))
    limit = procfs.parse_limits(text).get(_OPEN_FILES) if text else None
    if limit is not None and limit.soft != float("inf"):
        metrics["open_files.limit"] = limit.soft
    return metrics


def _nearest_entry(window: Window, source: str) -> bytes:
    """The newest one up to the window's end, else the first after it; empty where there is none."""
    having = [tick for tick in window.around if source in tick.entries]
    until = [tick for tick in having if tick.monotonic_s <= window.end_s]
    return until[-1].entries[source] if until else having[0].entries[source] if having else b""


def _memory(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    sources = [process.file("status") for process in processes]

    def resident_bytes(tick: Tick) -> list[int]:
        statuses = (procfs.parse_process_status(tick.entries[name]) for name in sources if name in tick.entries)
        return [status.rss_bytes for status in statuses if status.rss_bytes is not None]

    sums = [sum(sizes) for sizes in map(resident_bytes, window.ticks) if sizes]
    return {"memory.rss": max(sums)} if sums else {}


def _io(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    names = {"io.read_bytes": "read_bytes", "io.write_bytes": "write_bytes", "io.write_calls": "syscw"}
    totals = dict.fromkeys(names, 0.0)
    # /proc/PID/io may be forbidden for all (another user) or for some; what is not seen of a few is not made up.
    readable = [process for process in processes if process.readings(process.file("io"))]
    if len(readable) < len(processes) or not readable:
        return {}
    for process in readable:
        first, last = (procfs.parse_process_io(text) for text in process.edges(process.file("io")))
        for metric, name in names.items():
            if name not in first or name not in last:
                raise RecordingError(f"A process's io lacks {name}.")
            totals[metric] += process.growth(first[name], last[name])
    return {metric: total / window.elapsed_s for metric, total in totals.items()}


def _faults(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    return {
        f"paging.{kind}": sum(
            process.growth(getattr(process.stats[0], kind), getattr(process.stats[1], kind)) for process in processes
        )
        / window.elapsed_s
        for kind in ("major_faults", "minor_faults")
    }


def _switches(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    """From the threads' statuses, recorded once per second: the two readings nearest to the window's edges."""
    rates = [rate for process in processes if (rate := _switch_rates(window, process)) is not None]
    if not rates:
        return {}
    return {
        "context_switches.voluntary": sum(voluntary for voluntary, _ in rates),
        "context_switches.involuntary": sum(involuntary for _, involuntary in rates),
    }


def _switch_rates(window: Window, process: ProcessInWindow) -> tuple[float, float] | None:
    source = process.source("task-status")
    ticks = [tick for tick in window.around if source in tick.entries]
    pair = nearest_pair([tick.monotonic_s for tick in ticks], window.start_s, window.end_s)
    if pair is None:
        return None
    begin, end = ticks[pair[0]], ticks[pair[1]]
    before, after = _switch_counts(begin.entries[source]), _switch_counts(end.entries[source])
    zero = (0, 0)
    elapsed_s = end.monotonic_s - begin.monotonic_s
    sums = [
        sum(max(0, counts[kind] - before.get(thread, zero)[kind]) for thread, counts in after.items())
        for kind in (0, 1)
    ]
    return sums[0] / elapsed_s, sums[1] / elapsed_s


def _switch_counts(data: bytes) -> dict[int, tuple[int, int]]:
    counts = {}
    for task in procfs.parse_tasks(data):
        status = procfs.parse_process_status(task.stat)
        if status.voluntary_switches is not None and status.involuntary_switches is not None:
            counts[task.thread] = (status.voluntary_switches, status.involuntary_switches)
    return counts
