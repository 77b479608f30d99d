"""What a watch reads every few seconds, at a cost that does not grow with the machine. Layouts: proc(5),
Documentation/accounting/psi.rst, Documentation/admin-guide/iostats.rst."""

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from loadframe.errors import RecordingError
from loadframe.recording import procfs
from loadframe.recording.process_metrics import open_files_limits
from loadframe.recording.system_metrics import MEMINFO, PRESSURES

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PART, MOST_READ = 1 << 13, 1 << 18
"""Bytes per read, and per file. A large buffer would make the kernel map new memory at each reading."""
WHOLE = 3584
"""A read that returns fewer bytes has reached the end: for most of /proc the kernel returns a page at a time
(fs/seq_file.c), less a line that does not fit, and no line here is longer than 512 bytes."""
MEMORY = {"system.memory.limit", "system.memory.used"}
MOST_THREADS = 32
"""Threads read in one sample, at 20 us each; the next sample goes on with others."""
STATES = {b"R": "running", b"D": "disk", b"S": "sleeping", b"I": "sleeping"}
"""proc_pid_stat(5). D: uninterruptible, mostly a disk."""


@dataclass(slots=True)
class Look:
    """gauges: current values; counters: cumulative, in units of their metric times seconds. at_s: CLOCK_MONOTONIC."""

    at_s: float
    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)


def metrics(first: Look | None, last: Look) -> dict[str, float]:
    """Gauges of the last look and rates between the two. A counter that fell was reset: it has no rate."""
    values = dict(last.gauges)
    if first is not None and (elapsed_s := last.at_s - first.at_s) > 0:
        for name, value in last.counters.items():
            before = first.counters.get(name)
            if before is not None and value >= before:
                values[name] = (value - before) / elapsed_s
    return values


class Held:
    """Files that stay open and are read again from their beginning. A missing one is tried again each time."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = str(root).rstrip("/")
        self._open: dict[str, int] = {}

    def read(self, name: str) -> bytes:
        """Up to MOST_READ bytes; empty where it cannot be read."""
        descriptor = self._open.get(name)
        try:
            if descriptor is None:
                descriptor = os.open(f"{self._root}/{name}", os.O_RDONLY | os.O_CLOEXEC)
                self._open[name] = descriptor
            data = os.pread(descriptor, PART, 0)
            while WHOLE <= len(data) < MOST_READ:
                if not (part := os.pread(descriptor, min(PART, MOST_READ - len(data)), len(data))):
                    break
                data += part
            return data
        except OSError:
            self.forget(name)
            return b""

    def forget(self, name: str) -> None:
        """Close it: the file of an ended process never comes back."""
        descriptor = self._open.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        for name in list(self._open):
            self.forget(name)


class Machine(Held):
    def look(self, into: Look) -> None:
        """Only the line of all CPUs is parsed: a machine may have hundreds."""
        text = self.read("proc/stat")
        fields = text[: text.find(b"\n")].split()
        if len(fields) < 9:
            return
        user, nice, system, _idle, _waiting, irq, softirq, steal = (int(field) for field in fields[1:9])
        into.counters["system.cpu.busy_cores"] = (user + nice + system + irq + softirq) / TICKS
        into.counters["system.cpu.steal_cores"] = steal / TICKS
        into.gauges["system.cpu.count"] = float(text.count(b"\ncpu"))

    def look_at_the_rest(self, into: Look) -> Look:
        """What needs fewer readings: counters count on between them."""
        read = self.read
        with suppress(RecordingError):
            amounts = MEMINFO.at(MEMINFO.parse(read("proc/meminfo")), PAGE)
            into.gauges |= {name: float(amounts[name]) for name in MEMORY & amounts.keys()}
        with suppress(RecordingError):
            disks = procfs.parse_diskstats(read("proc/diskstats"))
            into.counters |= {f"system.disk.{name}.busy": disk.busy_ms / 1000 for name, disk in disks.items()}
        for resource, names in PRESSURES.items():
            with suppress(RecordingError):
                totals = procfs.parse_pressure(read(f"proc/pressure/{resource}"))
                into.counters |= {name: totals[kind] for name in names if (kind := name.rpartition(".")[2]) in totals}
        with suppress(RecordingError):
            into.gauges["system.threads.count"] = float(procfs.parse_threads(read("proc/loadavg")))
        return into


class Service(Held):
    def __init__(self, root: Path = Path("/")) -> None:
        super().__init__(root)
        self.pids: tuple[int, ...] = ()
        self._used: dict[int, tuple[float, float]] = {}
        self._cpu_s = self._faults = 0.0
        self._limits: dict[str, float] = {}
        self._next_thread = 0
        self._counts_by_size = self._size_counts_files()

    def follow(self, pids: Sequence[int]) -> None:
        for pid in set(self.pids) - set(pids):
            self._forget(pid)
        self.pids = tuple(pids)
        self._limits = {}
        with suppress(RecordingError, IndexError):  # no process
            limits = open_files_limits(self.read(f"proc/{self.pids[0]}/limits"))
            if (limit := limits.get("open_files.limit", math.inf)) < math.inf:
                self._limits = {"target.open_files.limit": float(limit)}

    def look(self, into: Look) -> bool:
        """False where the main process has ended."""
        private = shared = threads = files = 0
        if not self._used:  # another service, or the first reading: its counters begin again
            self._cpu_s = self._faults = 0.0
        for pid in self.pids:
            fields = self.read(f"proc/{pid}/stat").rpartition(b")")[2].split(None, 22)
            pages = self.read(f"proc/{pid}/statm").split()
            if len(fields) < 22 or fields[0] in (b"Z", b"X") or len(pages) < 3:
                if pid == self.pids[0]:
                    return False
                self._forget(pid)
                continue
            self._use(pid, (int(fields[11]) + int(fields[12])) / TICKS, float(fields[9]))
            threads += int(fields[17])
            private += (int(pages[1]) - int(pages[2])) * PAGE
            shared = max(shared, int(pages[2]) * PAGE)
            files += self._open_files(pid)
        if not self.pids:
            return False
        into.counters["target.cpu.cores"] = self._cpu_s
        into.counters["target.paging.major_faults"] = self._faults
        into.gauges["target.memory.rss"] = float(private + shared)
        into.gauges["target.threads.count"] = float(threads)
        if files >= 0:
            into.gauges["target.open_files"] = float(files)
        into.gauges.update(self._limits)
        return True

    def states(self) -> dict[str, float]:
        """Shares of the main process's threads by state, from up to MOST_THREADS of them."""
        if not self.pids:
            return {}
        folder = f"{self._root}/proc/{self.pids[0]}/task"
        counts: dict[str, int] = {}
        try:
            names = sorted(os.listdir(folder), key=int)  # noqa: PTH208 - one call, no objects for a thousand threads
        except (OSError, ValueError):
            return {}
        start = self._next_thread % len(names) if names else 0
        chosen = (names[start:] + names[:start])[:MOST_THREADS]
        self._next_thread = start + len(chosen)
        for name in chosen:
            with suppress(OSError):
                state = Path(folder, name, "stat").read_bytes().rpartition(b")")[2].split()[:1]
                word = STATES.get(state[0] if state else b"", "other")
                counts[word] = counts.get(word, 0) + 1
        total = sum(counts.values())
        return {f"target.threads.{word}": count / total for word, count in counts.items()} if total else {}

    def _use(self, pid: int, cpu_s: float, faults: float) -> None:
        """A new process adds nothing yet; one that ends subtracts nothing."""
        before = self._used.get(pid, (cpu_s, faults))
        self._cpu_s += max(0.0, cpu_s - before[0])
        self._faults += max(0.0, faults - before[1])
        self._used[pid] = cpu_s, faults

    def _forget(self, pid: int) -> None:
        self._used.pop(pid, None)
        self.pids = tuple(other for other in self.pids if other != pid)
        for name in ("stat", "statm", "limits"):
            self.forget(f"proc/{pid}/{name}")

    def _open_files(self, pid: int) -> int:
        path = f"{self._root}/proc/{pid}/fd"
        try:
            return os.stat(path).st_size if self._counts_by_size else len(os.listdir(path))  # noqa: PTH116, PTH208 - as above
        except OSError:  # of another user
            return -1_000_000

    def _size_counts_files(self) -> bool:
        """Of /proc/PID/fd (Linux 6.2 and later)."""
        path = Path(f"{self._root}/proc/self/fd")
        try:
            return 0 < path.stat().st_size == len(os.listdir(path)) - 1  # noqa: PTH208 - listing it opens it
        except OSError:
            return False


def derived(values: dict[str, float]) -> dict[str, float]:
    disks = [name for name in values if name.startswith("system.disk.") and name.endswith(".busy")]
    busiest = max((values.pop(name) for name in disks), default=None)
    if busiest is not None:
        values["system.disk.busy"] = min(1.0, busiest)
    return values
