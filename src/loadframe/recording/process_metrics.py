"""The metrics of the followed processes in a window: the target's, the driver's, and the recorder's own.

What is recorded at each tick is compared between the process's first and last tick in the window: what was born in the
window counts from zero. A child that has ended counts with its parent, which inherits its numbers from the kernel: so
nothing is lost that comes and goes between two ticks. What is recorded more seldom (everything of a process of more
than a thousand threads, context switches) is compared between the two readings nearest to the window's edges, by their
own times. Of threads that are looked at in turn the sample stands for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import gather, growth
from loadframe.recording.frames import Tick
from loadframe.recording.procfs import ProcessStat, TaskTexts
from loadframe.recording.windows import Window, nearest_pair

_NS = 1e9
_OPEN_FILES = "Max open files"
STATES = {"running": "R", "blocked": "D", "sleeping": "S"}
_ENOUGH_FOR_MOST = 0.9
"""The hottest thread is known only where the CPU time of nearly all threads is."""
_ENOUGH_FOR_SUM = 0.5
"""A sum over all threads is estimated from a sample only where it holds half of them."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A thread's cumulative numbers at one moment."""

    at_s: float
    numbers: tuple[int, ...]


class ProcessInWindow:
    """One followed process, with the ticks of the window at which it was there."""

    def __init__(self, component: str, pid: int, window: Window) -> None:
        self.component = component
        self.pid = pid
        self.window = window
        self.ended_children: list[ProcessInWindow] = []
        """Followed themselves until they ended in the window."""

    def source(self, kind: str) -> str:
        return f"{self.component}:{self.pid}:{kind}"

    def file(self, name: str) -> str:
        return self.source(f"/proc/{self.pid}/{name}")

    def readings(self, source: str) -> list[bytes]:
        """What a source said in the window; where it did not, the nearest that it said before or after."""
        inside = [tick.entries[source] for tick in self.window.ticks if source in tick.entries]
        nearest = self.window.nearest(source)
        return inside or ([nearest] if nearest else [])

    @cached_property
    def present(self) -> list[Tick]:
        """The ticks of the window at which it was there."""
        marks = (self.source("threads"), self.file("stat"))
        return [tick for tick in self.window.ticks if any(mark in tick.entries for mark in marks)]

    @cached_property
    def stat(self) -> ProcessStat:
        """Its first one in the window, or the nearest."""
        readings = self.readings(self.file("stat"))
        if not readings:
            raise RecordingError(f"{self.file('stat')} was not recorded.")
        return procfs.parse_process_stat(readings[0])

    @cached_property
    def born_here(self) -> bool:
        facts = self.window.facts
        started_s = self.stat.started_ticks / facts.clock_ticks_per_s - facts.boottime_offset_s
        return started_s >= self.window.ticks[0].monotonic_s

    @cached_property
    def ended_here(self) -> bool:
        """Whether it was there at first and not at the end of the window."""
        return bool(self.present) and self.present[-1] is not self.window.ticks[-1]

    @cached_property
    def parent(self) -> int:
        """Who started it; 0 where that is not known."""
        try:
            return self.stat.parent
        except RecordingError:
            return 0

    def rate(self, source: str, number: Callable[[bytes], float]) -> float:
        """Growth per second of a counter, over the window where the source is there at each of the process's ticks."""
        inside = [tick for tick in self.window.ticks if source in tick.entries]
        if inside and inside[0] is self.present[0] and inside[-1] is self.present[-1]:
            first = 0 if self.born_here else number(inside[0].entries[source])
            return growth(first, number(inside[-1].entries[source])) / self.window.elapsed_s
        return self.window.slow_rate(source, number)

    def stat_rate(self, *fields: str) -> float:
        """Growth per second of the sum of these fields of its stat, with that of children that have ended."""
        return self._own_rate(*fields) + self._children_rate(*fields)

    def _own_rate(self, *fields: str) -> float:
        return self.rate(self.file("stat"), partial(_total, fields))

    def _children_rate(self, *fields: str) -> float:
        """What it inherited per second, less what was seen of those children while they lived."""
        theirs = [f"children_{field}" for field in fields]
        inherited = self.rate(self.file("stat"), partial(_total, theirs))
        both = (*fields, *theirs)
        seen = sum(_total(both, child.readings(child.file("stat"))[-1]) for child in self.ended_children)
        return max(0.0, inherited - seen / self.window.elapsed_s)

    @cached_property
    def cores(self) -> float:
        """CPU-seconds per second: from its clock, to the nanosecond and with threads that ended; else, from a recording
        without it, from its clock ticks of 10 ms. Of ended children always from the latter."""
        ticks, per_second = ("user_ticks", "system_ticks"), self.window.facts.clock_ticks_per_s
        try:
            own = self.rate(self.source("cpu"), procfs.parse_count) / _NS
        except RecordingError:
            return self.stat_rate(*ticks) / per_second
        try:
            return own + self._children_rate(*ticks) / per_second
        except RecordingError:  # a process of which only the clock was recorded
            return own

    # --- threads

    def threads_at(self, tick: Tick, rows: int) -> int:
        """How many threads it has at a tick at which `rows` of them were looked at."""
        text = tick.entries.get(self.source("threads"))
        return max(rows, procfs.parse_count(text)) if text is not None else rows

    @cached_property
    def census(self) -> list[tuple[float, int, list[TaskTexts]]]:
        """Time, number of threads, and those whose state was looked at, for each tick of the window that has any."""
        source = self.source("tasks")
        found = []
        for tick in self.window.ticks:
            if source in tick.entries:
                rows = procfs.parse_tasks(tick.entries[source])
                found.append((tick.monotonic_s, self.threads_at(tick, len(rows)), rows))
        return found

    @cached_property
    def most_threads(self) -> int:
        return max((count for _, count, _ in self.census), default=0)

    @cached_property
    def cpu_rates(self) -> dict[int, tuple[float, float]]:
        """Per thread: CPU-seconds, and seconds of waiting for a CPU, per second."""
        source = self.source("task-schedstat")
        if not any(source in tick.entries for tick in self.window.around):
            source = self.source("tasks")  # as version 1 recorded it

        def numbers(task: TaskTexts) -> tuple[int, ...] | None:
            if not task.schedstat.strip():
                return None
            read = procfs.parse_schedstat(task.schedstat)
            return read.run_ns, read.wait_ns

        rates = self._thread_rates(source, numbers)
        return {thread: (run / _NS, wait / _NS) for thread, (run, wait) in rates.items()}

    @cached_property
    def switch_rates(self) -> dict[int, tuple[float, float]]:
        """Per thread: voluntary and involuntary context switches per second."""

        def numbers(task: TaskTexts) -> tuple[int, ...] | None:
            status = procfs.parse_process_status(task.stat)
            if status.voluntary_switches is None or status.involuntary_switches is None:
                return None
            return status.voluntary_switches, status.involuntary_switches

        rates = self._thread_rates(self.source("task-status"), numbers)
        return {thread: (first, second) for thread, (first, second) in rates.items()}

    def _thread_rates(
        self, source: str, numbers: Callable[[TaskTexts], tuple[int, ...] | None]
    ) -> dict[int, tuple[float, ...]]:
        """Growth per second of each thread's numbers. Where all threads are looked at each time, one that appears began
        from zero, and one that lived for a part of the window counts for that part."""
        sights: dict[int, list[Sight]] = {}
        complete, before_s = True, None
        for tick in self.window.around:
            if source not in tick.entries:
                continue
            rows = procfs.parse_tasks(tick.entries[source])
            complete &= len(rows) >= self.threads_at(tick, len(rows))
            for row in rows:
                found = numbers(row)
                if found is not None:
                    if row.thread not in sights and complete and before_s is not None:
                        sights[row.thread] = [Sight(before_s, (0,) * len(found))]
                    sights.setdefault(row.thread, []).append(Sight(tick.monotonic_s, found))
            before_s = tick.monotonic_s
        rates = {}
        for thread, seen in sights.items():
            grown = self._grown(seen, complete)
            if grown is not None:
                rates[thread] = grown
        return rates

    def _grown(self, seen: Sequence[Sight], complete: bool) -> tuple[float, ...] | None:
        window = self.window
        if complete:
            inside = [sight for sight in seen if sight.at_s <= window.ticks[-1].monotonic_s]
            before = [sight for sight in inside if sight.at_s <= window.ticks[0].monotonic_s]
            chosen = [*before[-1:], *(sight for sight in inside if sight.at_s > window.ticks[0].monotonic_s)]
            if not chosen:
                return None
            first, last, elapsed_s = chosen[0], chosen[-1], window.elapsed_s
        else:
            pair = nearest_pair([sight.at_s for sight in seen], window.start_s, window.end_s)
            if pair is None:
                return None
            first, last = seen[pair[0]], seen[pair[1]]
            elapsed_s = last.at_s - first.at_s
        # Not `growth`: a thread id that was given again is no reason to lose the other threads.
        return tuple(max(0, b - a) / elapsed_s for a, b in zip(first.numbers, last.numbers, strict=True))


# --- which processes ------------------------------------------------------------------------------------------------


def followed_processes(window: Window) -> list[ProcessInWindow]:
    """All processes that were followed in the window, under each component that they were followed as."""
    names = {name for tick in window.ticks for name in tick.entries if name.endswith(("/stat", ":threads"))}
    keys = set()
    for name in names:
        component, pid, what = [*name.split(":", 2), "", ""][:3]
        if pid.isdecimal() and what in (f"/proc/{pid}/stat", "threads"):
            keys.add((component, int(pid)))
    found = {key: ProcessInWindow(*key, window) for key in sorted(keys)}
    for (component, _), process in found.items():
        if (parent := found.get((component, process.parent))) is not None and process.ended_here:
            parent.ended_children.append(process)
    return list(found.values())


def recorder_cores(window: Window) -> float:
    """CPU of the recorder (one thread). RecordingError where it was not recorded."""
    try:
        first, last = (procfs.parse_schedstat(text) for text in window.edges("recorder:/proc/self/schedstat"))
    except RecordingError:  # a kernel without schedstat
        ticks = window.slow_rate("recorder:/proc/self/stat", _cpu_ticks)
        return ticks / window.facts.clock_ticks_per_s
    return window.rate(first.run_ns / _NS, last.run_ns / _NS)


def _total(fields: Sequence[str], text: bytes) -> float:
    stat = procfs.parse_process_stat(text)
    return float(sum(getattr(stat, field) for field in fields))


def _cpu_ticks(text: bytes) -> int:
    stat = procfs.parse_process_stat(text)
    return stat.user_ticks + stat.system_ticks


# --- metrics of one component ---------------------------------------------------------------------------------------


def component_metrics(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    """The metrics of one component's processes together, without the component's name in front ("cpu.cores")."""
    groups = (_cpu, _allowed_cpus, _threads, _run_delay, _states, _open_files, _memory, _io, _faults, _switches)
    bound: list[Callable[[], dict[str, float]]] = [partial(group, window, processes) for group in groups]
    return gather(bound) if processes else {}


def _cpu(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    per_second = window.facts.clock_ticks_per_s
    return {
        "cpu.cores": sum(process.cores for process in processes),
        "cpu.user_cores": sum(process.stat_rate("user_ticks") for process in processes) / per_second,
        "cpu.system_cores": sum(process.stat_rate("system_ticks") for process in processes) / per_second,
    }


def _allowed_cpus(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    """The CPUs that its process with the widest affinity may use, and the share of them in use."""
    allowed = []
    for process in processes:
        text = window.nearest(process.file("status"))
        count = procfs.parse_process_status(text).cpus_allowed if text else None
        if count:
            allowed.append(count)
    if not allowed:
        return {}
    # An affinity mask may name CPUs that the machine does not have.
    limit = min(max(allowed), window.facts.cpus)
    used = {"cpu.limit": limit, "cpu.utilization": sum(process.cores for process in processes) / limit}
    return used | {"cpus.named": max(allowed)}


def _threads(_window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    rates = [rate for process in processes for rate in process.cpu_rates.values()]
    if not rates or len(rates) < _ENOUGH_FOR_MOST * sum(process.most_threads for process in processes):
        return {}
    return {"cpu.hottest_thread": max(run for run, _ in rates)}


def _run_delay(_window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    together = _sum_over_threads(processes, lambda process: process.cpu_rates)
    return {"cpu.thread_cores": together[0], "cpu.run_delay": together[1]} if together else {}


def _sum_over_threads(
    processes: Sequence[ProcessInWindow], rates_of: Callable[[ProcessInWindow], dict[int, tuple[float, float]]]
) -> tuple[float, float] | None:
    """The two rates over all threads; a sample stands for all. None where too few of them are known."""
    sums = [0.0, 0.0]
    for process in processes:
        rates = rates_of(process)
        if not rates or len(rates) < _ENOUGH_FOR_SUM * process.most_threads:
            return None
        scale = max(1.0, process.most_threads / len(rates))
        for index in (0, 1):
            sums[index] += scale * sum(rate[index] for rate in rates.values())
    return (sums[0], sums[1]) if processes else None


def _states(_window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    """Averages over the ticks at which any process of the component was there; the count is the largest. Threads that
    were looked at stand for those that were not."""
    counts: dict[float, int] = {}
    states: dict[float, dict[str, float]] = {}
    sleepers, where_known = 0, False  # a census asks only some of the threads where they sleep
    for process in processes:
        for at_s, count, rows in process.census:
            counts[at_s] = counts.get(at_s, 0) + count
            if not rows:
                continue
            moment = states.setdefault(at_s, dict.fromkeys([*STATES.values(), "polling"], 0.0))
            asked = sum(task.wchan != b"" for task in rows)
            for task in rows:
                state = task.state
                if state in moment:
                    moment[state] += count / len(rows)
                if state == "S":
                    sleepers += 1
                    where_known |= task.where_known
                    moment["polling"] += task.sleeps_in_timer * count / max(asked, 1)
    if not counts:
        return {}
    metrics: dict[str, float] = {"threads.count": max(counts.values())}
    for name, letter in STATES.items():
        metrics[f"threads.{name}"] = sum(moment[letter] for moment in states.values()) / max(1, len(states))
    # A kernel that tells of nobody where it sleeps gives no count of zero, but none.
    if not sleepers or where_known:
        metrics["threads.polling"] = sum(moment["polling"] for moment in states.values()) / max(1, len(states))
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
    text = window.nearest(process.file("limits"))
    limit = procfs.parse_limits(text).get(_OPEN_FILES) if text else None
    if limit is not None and limit.soft != float("inf"):
        metrics["open_files.limit"] = limit.soft
    return metrics


def _memory(window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    """The largest of all ticks. What processes share (a server's buffers, its program) is theirs together."""
    ticks: dict[float, list[tuple[int, int]]] = {}
    touched: list[int] = []
    for process in processes:
        source = process.file("stat")
        text = window.nearest(source)
        status = window.nearest(process.file("status"))
        told = procfs.parse_process_status(status)
        shared = told.shared_bytes or 0
        touched += [told.shared_memory_bytes] if told.shared_memory_bytes is not None else []
        for tick in process.present:
            text = tick.entries.get(source, text)
            if text:
                whole = procfs.parse_process_stat(text).rss_pages * window.facts.page_bytes
                ticks.setdefault(tick.monotonic_s, []).append((whole, min(whole, shared)))
    most = max((procfs.together_bytes(resident) for resident in ticks.values()), default=None)
    found = {} if most is None else {"memory.rss": float(most)}
    return found | ({"memory.shared": float(max(touched))} if touched else {})


def _io(_window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    names = {"io.read_bytes": "read_bytes", "io.write_bytes": "write_bytes", "io.write_calls": "syscw"}
    # /proc/PID/io may be forbidden for all (another user) or for some; what is not seen of a few is not made up.
    return {
        metric: sum(process.rate(process.file("io"), partial(_io_number, name)) for process in processes)
        for metric, name in names.items()
    }


def _io_number(name: str, text: bytes) -> int:
    numbers = procfs.parse_process_io(text)
    if name not in numbers:
        raise RecordingError(f"A process's io lacks {name}.")
    return numbers[name]


def _faults(_window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    return {
        f"paging.{kind}": sum(process.stat_rate(kind) for process in processes)
        for kind in ("major_faults", "minor_faults")
    }


def _switches(_window: Window, processes: Sequence[ProcessInWindow]) -> dict[str, float]:
    """From the threads' statuses, of which a few are recorded at each tick."""
    rates = _sum_over_threads(processes, lambda process: process.switch_rates)
    if rates is None:
        return {}
    return {"context_switches.voluntary": rates[0], "context_switches.involuntary": rates[1]}
