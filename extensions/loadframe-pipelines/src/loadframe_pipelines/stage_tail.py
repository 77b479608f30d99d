"""What a pipeline prints about its stages while a load runs. A thread collects what is new in each file a few times a
second; lines are parsed once the load has ended, to take no CPU from what is measured. A line without a time has that
of the look that found it. If several processes work on a stage, each is weighted by the entries that pass through it: a
plain mean with a scanner that has nothing to scan would hide that another's workers are all busy, or blocked."""

import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from loadframe.formats.said import words
from loadframe.model import CounterSpec, Reading
from loadframe.system.files import regular_file
from loadframe.system.trees import closing
from loadframe_pipelines.families import LOGS, STAGES, is_cumulative
from loadframe_pipelines.stage_lines import MARKS, STAGE, SUMMED, StageLine, StageLines

Process = tuple[int, str]
SPENT = {"busy_s": "busy_weighted", "idle_s": "idle_weighted", "blocked_s": "blocked_weighted"}
"""Worker-seconds so far -> the sum of workers' shares derived from them."""
SMOOTHED_S = 1.0
"""Averaging time of a process's rate: one that has just ended a large batch is not the only one."""
EVERY_S = 0.2
MOST_BYTES = 64 << 20
"""Growth of one file in a step that is read; the rest is not."""
PIECE = 1 << 20
MOST_NAMES = 40
MOST_PROCESSES = 256
TOGETHER_S = 0.05
"""Lines within this time are one reading."""
LATEST_S = 60.0
"""A buffered line may be written this late; an earlier or a future time is of another clock and is ignored."""
KEPT = frozenset({"order", "ms_per_op", "batch", "lag_s", "follow"})
"""These are not reported of a stage that no process works on any more; all else is 0 then."""
OF_DRIVER = "workload.stages"
"""The number of stages that are the load driver itself, which is then what is studied."""
LARGEST = frozenset({"lag_s", "ms_per_op", "batch"})
"""Of several processes of a stage the largest of these counts, of `order` the smallest; all else is added up."""


@dataclass
class _Work:
    """What a process has reported of a stage, when, and its rate (entries per second) until then."""

    at_s: float
    values: dict[str, float]
    rate: float | None = None

    def take(self, at_s: float, values: Mapping[str, float]) -> dict[str, float]:
        """What its workers did since then: shares of them times seconds."""
        passed_s, before = at_s - self.at_s, self.values
        self.at_s, self.values = at_s, {**before, **values}
        if passed_s <= 0:
            return {}
        more = {name: max(0.0, values[name] - before[name]) for name in values.keys() & before.keys()}
        rate = more.get("entries", more.get("done", 0.0)) / passed_s
        known = rate if self.rate is None else self.rate
        self.rate = known + (rate - known) * -math.expm1(-passed_s / SMOOTHED_S)
        spent = {name: more[name] for name in SPENT if name in more}
        workers = self.workers or (sum(spent.values()) / passed_s if len(spent) == len(SPENT) else 0.0)
        return {SPENT[name]: value / workers for name, value in spent.items()} if workers else {}

    def restarted(self, now: Mapping[str, float]) -> bool:
        """Whether all cumulative numbers went back, one by half: sums that are read while they grow are rounded a
        little."""
        both = [(self.values[name], now[name]) for name in SUMMED if name in self.values and name in now]
        return all(after <= first for first, after in both) and any(after < first / 2 for first, after in both)

    @property
    def workers(self) -> float:
        return self.values.get("workers", 0.0)


@dataclass
class _File:
    path: Path
    own: bool
    """The driver's own: with a second name it could be a file that the driver may not read."""
    at: int = 0
    pieces: list[tuple[float, bytes | None]] = field(default_factory=list)
    """None: the file began again."""
    taken: int = 0
    problem: str = ""
    was_there: bool = False
    identity: tuple[int, int] | None = None
    """Changes if another file replaces it, as in log rotation."""

    def look(self) -> None:
        """Links and other than regular files are not read."""
        try:
            with closing(regular_file(self.path)) as descriptor:
                self._take(descriptor)
        except FileNotFoundError:
            return
        except OSError as error:
            self.problem = error.strerror or "it cannot be read"

    def _take(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if self.own and status.st_nlink > 1:
            self.problem = "it has a second name"
            return
        self.was_there, self.problem = True, ""
        identity = (status.st_dev, status.st_ino)
        if status.st_size < self.at or self.identity not in (None, identity):
            self.at = 0
            self.pieces.append((time.monotonic(), None))
        self.identity = identity
        while self.taken < MOST_BYTES and (piece := os.pread(descriptor, PIECE, self.at)):
            self.at += len(piece)
            first, last = piece.find(b"\n"), piece.rfind(b"\n")
            # whole lines that cannot be statistics are not kept: a log may have much else
            others = first != last and not any(mark in piece for mark in MARKS)
            kept = piece[: first + 1] + piece[last + 1 :] if others else piece
            self.pieces.append((time.monotonic(), kept))
            self.taken += len(kept)
        if self.taken >= MOST_BYTES:
            self.problem = f"more than {MOST_BYTES >> 20} MiB were written in a step; what follows is not read"


class Tail:
    def __init__(self) -> None:
        self._specs: dict[str, CounterSpec] = {}
        self._readings: list[Reading] = []
        self._strange: dict[str, Counter[str]] = {}
        self._problems: dict[str, str] = {}
        self._names: dict[str, None] = {}

    @property
    def counter_specs(self) -> tuple[CounterSpec, ...]:
        return tuple(self._specs.values())

    @contextmanager
    def watching(self, kept: Sequence[Path], fresh: Sequence[Path] = ()) -> Iterator[None]:
        """kept: files that go on from step to step; fresh: those of this step."""
        files = [*(_File(path, own=False) for path in kept), *(_File(path, own=True) for path in fresh)]
        if not files:
            yield
            return
        for file in files[: len(kept)]:  # what is there already belongs to earlier steps
            with suppress(OSError):
                status = file.path.stat(follow_symlinks=False)
                file.at, file.identity = status.st_size, (status.st_dev, status.st_ino)
        over = threading.Event()

        def follow() -> None:
            while not over.wait(EVERY_S):
                for file in files:
                    file.look()

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        lines: list[_Report] = []
        for number, file in enumerate(files):
            file.look()
            lines += self._lines(file, number, of_driver=number >= len(kept))
        lines.sort(key=lambda line: line.at_s)
        sums = _Sums(driver_alone=all(line.of_driver for line in lines))
        readings = [reading for reading in (*map(sums.add, lines), sums.last()) if reading is not None]
        for name in (name for reading in readings for name in reading.counters):
            if name not in self._specs:
                self._specs[name] = CounterSpec(name, name, cumulative=is_cumulative(name))
        self._readings += readings

    def readings(self) -> list[Reading]:
        readings, self._readings = sorted(self._readings, key=lambda reading: reading.at_s), []
        return readings

    def missing(self) -> tuple[str, ...]:
        sentences = [f"Statistics of stages in {name}: {problem}." for name, problem in self._problems.items()]
        for name, reasons in self._strange.items():
            count, (why, _) = sum(reasons.values()), reasons.most_common(1)[0]
            sentences.append(f"Statistics of stages in {name}: {count:,} lines cannot be read, most of them as {why}.")
        return tuple(sentences)

    def _lines(self, file: _File, number: int, *, of_driver: bool) -> "Iterator[_Report]":
        lines, name = StageLines.of(piece for _, piece in file.pieces), words(file.path.name, 80)
        for seen_s, piece in file.pieces:
            if piece is None:
                lines.restart()
                continue
            for line in lines.feed(piece):
                if line.name in self._names or len(self._names) < MOST_NAMES:
                    self._names[line.name] = None
                    in_time = line.at_s is not None and seen_s - LATEST_S <= line.at_s <= seen_s
                    at_s = line.at_s if line.at_s is not None and in_time else seen_s
                    yield _Report(at_s, line, (number, line.process), of_driver)
                else:
                    beyond = f"more than {MOST_NAMES} stages are named; those beyond are left out"
                    self._problems["the study"] = beyond
        if lines.strange:
            self._strange.setdefault(name, Counter()).update(lines.strange)
        if file.problem:
            self._problems[name] = file.problem
        elif not of_driver and not file.was_there:
            self._problems[name] = "there is no such file"
        else:
            self._problems.pop(name, None)


@dataclass(frozen=True, slots=True)
class _Report:
    """at_s: when it was true. process: which of which file printed it. of_driver: the load driver's."""

    at_s: float
    line: StageLine
    process: Process
    of_driver: bool


class _Sums:
    """Adds up the lines of all processes of a stage; lines of about the same time are one reading. Of a process that
    ends its cumulative numbers stay, its gauges are dropped."""

    def __init__(self, *, driver_alone: bool) -> None:
        """driver_alone: no target has stages; with them, the driver may still be the one that is too slow."""
        self._driver_alone = driver_alone
        self._by: dict[str, dict[Process, _Work]] = {}
        self._over: dict[str, dict[str, float]] = {}
        self._rates: dict[Process, float] = {}
        """Entries per second of each process over all stages: in one of them it may be amid a long operation."""
        self._weighted: dict[str, dict[str, float]] = {}
        self._began_s: float | None = None
        self._now: dict[str, float] = {}
        self._reported: set[tuple[str, str, Process]] = set()
        self._orders: dict[str, float] = {}
        self._of_driver: set[str] = set()

    def add(self, report: _Report) -> Reading | None:
        """A process that reports a stage again reports another moment, which completes the reading before."""
        line, done = report.line, None
        reporter = (line.kind, line.name, report.process)
        later_s = 0.0 if self._began_s is None else report.at_s - self._began_s
        if later_s > TOGETHER_S or (later_s > 0 and reporter in self._reported):
            done = self.last()
        self._reported.add(reporter)
        if self._began_s is None:
            self._began_s = report.at_s
        prefix = f"{STAGES if line.kind == STAGE else LOGS}{line.name}."
        processes, over = self._by.setdefault(prefix, {}), self._over.setdefault(prefix, {})
        if report.process in processes and processes[report.process].restarted(line.values):
            self._end(prefix, report.process)
        if report.process in processes or len(processes) < MOST_PROCESSES:
            if line.kind == STAGE:
                weighted = self._flow(prefix, processes, report)
                self._now |= {prefix + name: value for name, value in weighted.items()}
            else:
                processes.setdefault(report.process, _Work(report.at_s, {})).values.update(line.values)
        if line.ended:
            self._end(prefix, report.process)
        for name in line.values:
            values = [work.values[name] for work in processes.values() if name in work.values]
            values += [over[name]] if name in SUMMED and name in over else []
            if values:
                together = min if name == "order" else max if name in LARGEST else sum
                self._now[prefix + name] = together(values)
            elif name in over and name not in KEPT:
                self._now[prefix + name] = 0.0
        if line.kind == STAGE:
            self._orders.setdefault(prefix, float(len(self._orders)))
            self._now.setdefault(f"{prefix}order", self._orders[prefix])
            if report.of_driver and self._driver_alone:
                self._of_driver.add(line.name)
                self._now[OF_DRIVER] = float(len(self._of_driver))
        return done

    def _flow(self, prefix: str, processes: dict[Process, _Work], report: _Report) -> dict[str, float]:
        """Lines come in time order. With several processes: the sums of their workers' shares, and how full the queues
        before the stage are."""
        process, sums = report.process, self._weighted.setdefault(prefix, {})
        work = processes.get(process)
        if work is None:
            processes[process] = _Work(report.at_s, dict(report.line.values))
        else:
            before = work.rate or 0.0
            did = work.take(report.at_s, report.line.values)
            self._rates[process] = max(0.0, self._rates.get(process, 0.0) + (work.rate or 0.0) - before)
            weight = self._weights(processes)[process] if did else 0.0
            for name, value in did.items():
                sums[name] = sums.get(name, 0.0) + weight * value
        return {**sums, **self._queue(processes)} if len(processes) > 1 else {}

    def _weights(self, processes: Mapping[Process, _Work]) -> dict[Process, float]:
        """Each process's part of the entries that pass through; of the workers, if none do."""
        rates = {process: self._rates.get(process, 0.0) for process in processes}
        if not any(rates.values()):
            rates = {process: work.workers or 1.0 for process, work in processes.items()}
        total = sum(rates.values())
        return {process: rate / total for process, rate in rates.items()}

    def _queue(self, processes: Mapping[Process, _Work]) -> dict[str, float]:
        queues = {process: work.values for process, work in processes.items() if work.values.get("queue")}
        if len(queues) < len(processes) or not all("waiting" in values for values in queues.values()):
            return {}
        weights = self._weights(processes)
        fullness = (weights[process] * values["waiting"] / values["queue"] for process, values in queues.items())
        return {"queue_weighted": sum(fullness)}

    def _end(self, prefix: str, process: Process) -> None:
        work, over = self._by[prefix].pop(process, None), self._over[prefix]
        if work is None:
            return
        for name, value in work.values.items():
            over[name] = over.get(name, 0.0) + value
        if work.rate is not None:
            self._rates[process] = max(0.0, self._rates[process] - work.rate)

    def last(self) -> Reading | None:
        began_s, now = self._began_s, self._now
        self._began_s, self._now, self._reported = None, {}, set()
        return None if began_s is None else Reading(began_s, now)
