"""The followed processes in a window. What is recorded at each tick is compared between a process's first and last tick
in it, from zero if born in it; what is recorded less often, because processes are looked at in turn, between the
readings nearest to its edges. Of threads that are looked at in turn the sample stands for all."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.derivation import Derivation, Metrics, Window, gather, nearest_pair, put_together, texts_of
from loadframe.recording.frames import Entries, Tick
from loadframe.recording.process_metrics import (
    BORN,
    CLOCK,
    HELD,
    NS,
    POLLING,
    STAT,
    TaskTexts,
    added_up,
    after,
    born_since,
    census,
    is_there,
    memory,
    nearness,
    open_files,
    parse_stat,
    parse_tasks,
    process_rows,
    split_source,
    with_clock,
    with_cores,
)
from loadframe.recording.procfs import ProcessStat

_ENOUGH_FOR_MOST = 0.9
"""The hottest thread is known only if nearly all threads' CPU time is."""
PROGRAM = "exe"
_ENOUGH_FOR_SUM = 0.5
"""A sum over all threads needs a sample of at least half of them."""

_ONE_AT_A_TIME = {
    r"python[23](\.\d+)?|python": "CPython, the global interpreter lock; a free-threaded build ends with t (PEP 703)",
    r"pypy[23]?(\.\d+)?": "PyPy has a global interpreter lock, too",
    r"ruby(\d+(\.\d+)*)?": "CRuby, the global VM lock: of the threads of one Ractor one runs",
}
"""Name of the program -> source: its threads run one at a time, apart from what they do outside the interpreter."""
PROGRAMS = re.compile(rf"(?:.*/)?(?:{'|'.join(_ONE_AT_A_TIME)})(?: \(deleted\))?", re.DOTALL)
"""As /proc/PID/exe leads to them."""
Sight = tuple[float, tuple[int, int]]
"""A moment (s), and two cumulative numbers of a thread then."""


class ProcessInWindow:
    """names: its sources, and their last words."""

    def __init__(self, component: str, pid: int, window: Window, names: Mapping[str, str]) -> None:
        self.component = component
        self.pid = pid
        self.window = window.of(names, ())
        self.held = window.of(names, HELD)
        self.ended_children: list[ProcessInWindow] = []  # followed themselves until they ended in the window

    @cached_property
    def present(self) -> list[Tick]:
        return [tick for tick in self.window.ticks if is_there(tick.entries)]

    @property
    def share(self) -> float:
        """Of the window: how long it was there."""
        return len(self.present) / len(self.window.ticks)

    @cached_property
    def last_stat(self) -> ProcessStat:
        return parse_stat(self.held.ticks[-1].entries.get(STAT, b""))

    @cached_property
    def last_seen(self) -> ProcessStat:
        """With the CPU time since its last stat."""
        last = self.present[-1].entries
        if STAT in last or CLOCK not in last:
            return self.last_stat
        return with_clock(self.last_stat, procfs.parse_count(last[CLOCK]), self.window.facts)

    @cached_property
    def parent(self) -> int:
        try:
            return self.last_stat.parent
        except RecordingError:
            return 0

    def pair(self, row: Derivation) -> tuple[object, object, float]:
        """As Window.pair. What is recorded at each tick spans the whole window, from zero if the process was born in
        it; so does what was recorded less often of one born in it, up to its last look."""
        inside = [tick for tick in self.window.ticks if row.source in tick.entries]
        born = born_since(self.last_stat, self.window.ticks[0].monotonic_s, self.window.facts)
        if inside and (born or (inside[0] is self.present[0] and inside[-1] is self.present[-1])):
            first = BORN[row.source] if born else row.reading(inside[0].entries)
            return first, row.reading(inside[-1].entries), self.window.elapsed_s
        looks = [tick for tick in self.window.around if row.source in tick.entries]
        pair = self._nearest([tick.monotonic_s for tick in looks])
        if pair is None:
            raise RecordingError(f"The {row.source} of process {self.pid} was not recorded twice.")
        first, last = looks[pair[0]], looks[pair[1]]
        elapsed_s = last.monotonic_s - first.monotonic_s or self.window.elapsed_s
        return row.reading(first.entries), row.reading(last.entries), elapsed_s / self.share

    def _nearest(self, times: Sequence[float]) -> tuple[int, int] | None:
        """As nearest_pair; of a process that ended before its next turn the last two, or one twice."""
        pair = nearest_pair(times, self.window.start_s, self.window.end_s)
        if pair is None and times and self.share < 1:
            return max(0, len(times) - 2), len(times) - 1
        return pair

    @cached_property
    def rates(self) -> Metrics:
        def of(row: Derivation) -> Metrics:
            first, last, elapsed_s = self.pair(row)
            if isinstance(first, ProcessStat):
                first = after(first, [child.last_seen for child in self.ended_children])
            return row.between(first, last, elapsed_s)

        return with_cores(gather(partial(of, row) for row in process_rows(self.window.facts.clock_ticks_per_s)))

    @property
    def cores(self) -> float:
        """CPU-seconds per second. RecordingError if unknown."""
        if "cpu.cores" not in self.rates:
            raise RecordingError(f"The CPU time of process {self.pid} was not recorded.")
        return self.rates["cpu.cores"]

    @cached_property
    def most_threads(self) -> int:
        censuses = (census([tick.entries]) for tick in self.window.ticks if "tasks" in tick.entries)
        return max((counted.count for counted in censuses if counted is not None), default=0)

    @cached_property
    def cpu_rates(self) -> dict[int, tuple[float, float]]:
        """Per thread: seconds on a CPU, and waiting for one, per second."""

        def numbers(task: TaskTexts) -> tuple[int, int] | None:
            if not task.schedstat.strip():
                return None
            times = procfs.parse_schedstat(task.schedstat)
            return times.run_ns, times.wait_ns

        # as version 1 recorded it
        source = "task-schedstat" if texts_of(self.window.around, "task-schedstat") else "tasks"
        return {thread: (run / NS, wait / NS) for thread, (run, wait) in self._thread_rates(source, numbers).items()}

    @cached_property
    def switch_rates(self) -> dict[int, tuple[float, float]]:
        """Per thread: voluntary and involuntary context switches per second."""

        def numbers(task: TaskTexts) -> tuple[int, int] | None:
            status = procfs.parse_process_status(task.stat)
            voluntary, involuntary = status.voluntary_switches, status.involuntary_switches
            return None if voluntary is None or involuntary is None else (voluntary, involuntary)

        return self._thread_rates("task-status", numbers)

    def _thread_rates(
        self, source: str, numbers: Callable[[TaskTexts], tuple[int, int] | None]
    ) -> dict[int, tuple[float, float]]:
        """If all threads are looked at each time, a new thread began from zero, and counts for the part of the window
        that it lived. Between two looks of a process that has its turn less often, its rate is taken to be the same."""
        sights: dict[int, list[Sight]] = {}
        complete, before_s = True, None
        for tick in self.window.around:
            if source not in tick.entries:
                continue
            rows = parse_tasks(tick.entries[source])
            complete &= "threads" not in tick.entries or len(rows) >= procfs.parse_count(tick.entries["threads"])
            for row in rows:
                if (counts := numbers(row)) is not None:
                    born: list[Sight] = [(before_s, (0, 0))] if complete and before_s is not None else []
                    sights.setdefault(row.thread, born).append((tick.monotonic_s, counts))
            before_s = tick.monotonic_s
        turns = any(source not in tick.entries for tick in self.present)
        grown = {thread: self._grown(seen, complete=complete, turns=turns) for thread, seen in sights.items()}
        return {thread: rates for thread, rates in grown.items() if rates is not None}

    def _grown(self, seen: Sequence[Sight], *, complete: bool, turns: bool) -> tuple[float, float] | None:
        window = self.window
        if complete and not turns:
            first_s, last_s = window.ticks[0].monotonic_s, window.ticks[-1].monotonic_s
            inside = [sight for sight in seen if sight[0] <= last_s]
            before = [sight for sight in inside if sight[0] <= first_s]
            chosen = [*before[-1:], *inside[len(before) :]]
            elapsed_s = window.elapsed_s
        else:
            times = [at_s for at_s, _ in seen]
            pair = self._nearest(times) if complete else nearest_pair(times, window.start_s, window.end_s)
            chosen = [seen[index] for index in pair or ()]
            elapsed_s = ((times[pair[1]] - times[pair[0]]) or window.elapsed_s) / self.share if pair else 0.0
        if not chosen:
            return None
        first, last = chosen[0][1], chosen[-1][1]
        # Not `growth`: a reused thread id must not cost the other threads.
        return max(0, last[0] - first[0]) / elapsed_s, max(0, last[1] - first[1]) / elapsed_s


def followed_processes(window: Window) -> list[ProcessInWindow]:
    sources: dict[tuple[str, int], dict[str, str]] = {}
    for name in {name for tick in window.around for name in tick.entries}:
        if (split := split_source(name)) is not None:
            sources.setdefault(split[:2], {})[name] = split[2]
    inside = {name for tick in window.ticks for name in tick.entries}
    keys = {split[:2] for name in inside if (split := split_source(name)) is not None}
    processes = {key: ProcessInWindow(*key, window, sources[key]) for key in sorted(keys)}
    there = {key: process for key, process in processes.items() if process.present}
    for (component, _), process in there.items():
        ended = process.present[-1] is not process.window.ticks[-1]
        if ended and (parent := there.get((component, process.parent))) is not None:
            parent.ended_children.append(process)
    return list(there.values())


Members = Sequence[ProcessInWindow]


def component_metrics(processes: Members) -> Metrics:
    """Without the component's name in front ("cpu.cores")."""
    if not processes:
        return {}
    groups = (_allowed_cpus, _busiest, _threads, _states, _open_files, _memory, _switches)
    rates = added_up([process.rates for process in processes])
    return rates | gather(partial(group, processes) for group in groups)


def _moments(processes: Members) -> list[list[Entries]]:
    moments: dict[float, list[Entries]] = {}
    for process in processes:
        for tick, held in zip(process.window.ticks, process.held.ticks, strict=True):
            if is_there(tick.entries):
                moments.setdefault(tick.monotonic_s, []).append(held.entries)
    return list(moments.values())


def _memory(processes: Members) -> Metrics:
    most: Metrics = {}
    for members in _moments(processes):
        metrics = memory(processes[0].window.facts.page_bytes, members)
        most |= {metric: max(value, most.get(metric, 0.0)) for metric, value in metrics.items()}
    return most


def _open_files(processes: Members) -> Metrics:
    return max(map(open_files, _moments(processes)), key=nearness, default={})


def _states(processes: Members) -> Metrics:
    """Averages over the ticks at which any thread was looked at; the count is the largest."""
    looked = (members for members in _moments(processes) if any("tasks" in entries for entries in members))
    moments = [counted for members in looked if (counted := census(members)) is not None]
    values: dict[str, list[float]] = {}
    for counted in moments:
        for metric, value in counted.metrics.items():
            values.setdefault(metric, []).append(value)
    metrics = {metric: put_together(metric, levels) for metric, levels in values.items()}
    # No count, rather than zero, if the kernel says of no thread where it sleeps.
    asked = [counted.states[POLLING] for counted in moments if counted.states is not None]
    silent = any(counted.sleepers for counted in moments) and not any(counted.where_known for counted in moments)
    return metrics | ({"threads.polling": sum(asked) / len(asked)} if asked and not silent else {})


def _allowed_cpus(processes: Members) -> Metrics:
    """Of the process with the widest affinity."""
    texts = [process.held.ticks[-1].entries.get("status", b"") for process in processes]
    most = max(procfs.parse_process_status(text).cpus_allowed or 0 for text in texts)
    if not most:
        return {}
    # An affinity mask may name CPUs that the machine does not have.
    limit = min(most, processes[0].window.facts.cpus)
    utilization = sum(process.cores for process in processes) / limit
    return {"cpu.limit": limit, "cpu.utilization": utilization, "cpus.named": most}


def _busiest(processes: Members) -> Metrics:
    """cpu.busiest_threads: the inverse Herfindahl index of its threads' CPU, n for n equal threads, 1 if one has all of
    it."""
    busiest = max(processes, key=lambda process: process.rates.get("cpu.cores", -1.0))
    metrics: Metrics = {"cpu.busiest_process": busiest.cores}
    runs = [run for run, _ in busiest.cpu_rates.values()]
    if any(runs):
        metrics["cpu.busiest_threads"] = sum(runs) ** 2 / sum(run**2 for run in runs)
    for program in texts_of(busiest.window.around, PROGRAM)[-1:]:
        metrics["cpu.one_at_a_time"] = float(PROGRAMS.fullmatch(program.decode("utf-8", "replace")) is not None)
    return metrics


def _threads(processes: Members) -> Metrics:
    together = sum_over_threads(processes, lambda process: process.cpu_rates)
    metrics: Metrics = {"cpu.thread_cores": together[0], "cpu.run_delay": together[1]} if together else {}
    rates = [rate for process in processes for rate in process.cpu_rates.values()]
    if rates and len(rates) >= _ENOUGH_FOR_MOST * sum(process.most_threads for process in processes):
        metrics["cpu.hottest_thread"] = max(run for run, _ in rates)
    return metrics


def sum_over_threads(
    processes: Members, rates_of: Callable[[ProcessInWindow], dict[int, tuple[float, float]]]
) -> tuple[float, float] | None:
    """Both rates, extrapolated from a sample. None if too few of the threads are known."""
    sums = [0.0, 0.0]
    for process in processes:
        rates = rates_of(process)
        if not rates or len(rates) < _ENOUGH_FOR_SUM * process.most_threads:
            return None
        scale = max(1.0, process.most_threads / len(rates))
        for index in (0, 1):
            sums[index] += scale * sum(rate[index] for rate in rates.values())
    return (sums[0], sums[1]) if processes else None


def _switches(processes: Members) -> Metrics:
    rates = sum_over_threads(processes, lambda process: process.switch_rates)
    return {"context_switches.voluntary": rates[0], "context_switches.involuntary": rates[1]} if rates else {}
