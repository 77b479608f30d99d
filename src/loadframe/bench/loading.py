"""The load of a step: a driver works, it and the target are recorded until it has ended, and its log is summarised."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import queueing
from loadframe.analysis.window import Summary, summarise
from loadframe.bench.rig import MORE_MEMORY, Rig, out_of_memory
from loadframe.connections.unix_socket import LET_IT_GO_ON
from loadframe.errors import TargetError, WorkloadError
from loadframe.formats.json_text import write_json
from loadframe.host.privilege import Privilege, make_private
from loadframe.host.processes import bind, parse_cpus
from loadframe.host.signals import stopped_by_signal
from loadframe.kinds.base import PrintsStages
from loadframe.kinds.behind import Components
from loadframe.knowledge.families import modules
from loadframe.model import (
    NO_LATENCIES,
    OUT_OF_BALANCE,
    TIME_UNIT,
    UNFINISHED,
    CounterSpec,
    ProfiledStep,
    ProfilePlace,
    Reading,
)
from loadframe.recording.control import Recorder
from loadframe.recording.metrics import specs_text
from loadframe.recording.profiles.perf import Permission, permission
from loadframe.recording.profiles.profiler import Profiler, components_of
from loadframe.runs.folder import RunFolder
from loadframe.study.load_tables import MeasureTable, Within
from loadframe.system import kernel
from loadframe.system.trees import remove_tree
from loadframe.workloads.base import STAGES_FILE, Driver, Marked, TellsTimes, ToldTheWarmUp, Workload
from loadframe.workloads.request_log import Requests

POLL_S = 0.25
CONNECTING_S = 0.2
"""Seconds after the driver's start with more frequent looks: connections may start server processes."""
WARMUP_SHARE = 0.2
"""Shortest warm-up as a share of the window: connecting, filling caches, first touches."""
SHORTEST_WARMUP_S = 0.15
ACTIVE_S = 3600.0
"""A step that runs until its work is done is ended after an hour."""


@dataclass(frozen=True)
class Load:
    """name: of its scratch folder and marks. driver_cpus: None: its cage's. cold: cut off no warm-up. most_waiting,
    warmup_s: as for Bench.take_step."""

    name: str
    treatment: str
    level: float
    seconds: float
    driver_cpus: str | None = None
    cold: bool = False
    most_waiting: int | None = None
    warmup_s: float = 0.0


@dataclass(frozen=True)
class Loaded:
    """offered: requests due in the window, None in a closed loop. moved_bytes: of its answers, None where not counted.
    marks: doubts about the driver's log (model.FLAGS). components: recorded programs that the target connects to.
    strangers: CPUs (s/s) of programs outside the study, the busiest first."""

    requests: Requests
    summary: Summary
    offered: int | None
    moved_bytes: int | None
    ended_early: bool
    marks: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    strangers: Mapping[str, float] = field(default_factory=dict)

    @property
    def latencies_ms(self) -> NDArray[np.float32]:
        """See Summary; empty where not known."""
        known = self.summary.latencies_ms
        return known if self.latency_known else known[:0]

    @property
    def latency_known(self) -> bool:
        """Whether response times were reported, and agree with throughput and requests in flight."""
        return not {NO_LATENCIES, OUT_OF_BALANCE}.intersection(self.marks)


class Tail(Protocol):
    """Follows files for a family of metrics (knowledge.families.Family.tail)."""

    @property
    def counter_specs(self) -> tuple[CounterSpec, ...]:
        """Of all readings so far."""

    def watching(self, kept: Sequence[Path], fresh: Sequence[Path] = ()) -> AbstractContextManager[None]:
        """kept: files that go on from step to step; fresh: those of this step."""

    def readings(self) -> list[Reading]:
        """What was read since the last call."""

    def missing(self) -> tuple[str, ...]:
        """Sentences on what could not be read."""


def tails() -> list[Tail]:
    return [module.Tail() for module in modules("tail")]


@dataclass
class Loading:
    """folder: of the steps' scratch folders, which belong to `user`. within: the study's latency objectives."""

    workload: Workload
    measure: MeasureTable
    recorder: Recorder
    folder: Path
    user: Privilege
    within: Within = field(default_factory=Within)
    _tails: list[Tail] = field(default_factory=tails, init=False)
    _components: Components = field(default_factory=Components, init=False)
    _noted: set[str] = field(default_factory=set, init=False)

    def load(self, rig: Rig, asked: Load, profiler: Profiler | None = None) -> Loaded:
        """Load the target, which has its state and the level's data. TargetError, with its last log lines, where it
        died; WorkloadError where the driver failed or no request ended."""
        scratch = self.folder / asked.name
        make_private(scratch, self.user)
        least_s = max(_floor_s(self.measure), asked.warmup_s)
        cut_s = 0.0 if asked.cold else least_s if self.measure.warmup is None else self.measure.warmup
        warmup_s = min(cut_s, asked.seconds)
        self.recorder.mark(
            "step-start",
            step=asked.name,
            level=asked.level,
            treatment=asked.treatment,
            warmup_s=float(warmup_s),
            window_s=float(asked.seconds - warmup_s),
        )
        if profiler is not None:
            profiler.prepare()
        if isinstance(self.workload, ToldTheWarmUp):
            self.workload.expect(warmup_s)
        spent, began_s = kernel.spent(), time.monotonic()
        with _explaining(rig):
            driver = self.workload.start(rig.target.endpoint(), asked.level, scratch, asked.seconds)
        try:
            if asked.driver_cpus is not None:
                bind(driver.pids(), parse_cpus(asked.driver_cpus))
            if profiler is not None:
                profiler.start(components_of(rig.target.pids(), driver.pids()))
            more = driver.stage_files() if isinstance(driver, PrintsStages) else ()
            printed = tuple(dict.fromkeys((scratch / STAGES_FILE, *more)))
            with rig.target.exposure.watching(asked.seconds), ExitStack() as stack:
                for tail in self._tails:
                    stack.enter_context(tail.watching(rig.target.stage_files(), printed))
                ended_early_s = self._watch(rig, driver, profiler, asked.most_waiting)
            own = {os.getpid(), *(pid for pids in _processes(rig, driver, self._components).values() for pid in pids)}
            strangers = kernel.between(spent, kernel.spent(), time.monotonic() - began_s, own)
            self._note_exposed(rig)
            with _explaining(rig):
                requests = driver.requests()
            _check_target(rig, requests, asked.level)
        finally:
            driver.kill()
        self.recorder.mark("step-end", step=asked.name)
        self.recorder.flush()
        summary = self._summary(requests, asked, ended_early_s)
        offered = driver.offered(summary.window_start_s, summary.window_end_s)
        moved = driver.moved_bytes(summary.window_start_s, summary.window_end_s)
        marks = driver.marks if isinstance(driver, Marked) else ()
        if NO_LATENCIES in marks and self.within.asks_latency:
            raise WorkloadError(
                "The study limits a latency, and the driver gave quantiles of its seconds, which cannot be added up",
                remedy="Let it print each request, or a histogram for each second (docs/driving-with-a-command.md).",
            )
        if NO_LATENCIES not in marks:
            users = self.workload.users(asked.level) if isinstance(self.workload, TellsTimes) else None
            length_s, ended = summary.window_end_s - summary.window_start_s, summary.requests + summary.errors
            few = queueing.few_failed(summary.requests, summary.errors)
            if users is not None and few and queueing.is_wrong(users, ended / length_s, summary.latency.mean_ms):
                marks = (*marks, TIME_UNIT)
            elif not summary.balanced:
                marks = (*marks, OUT_OF_BALANCE)
        return Loaded(
            requests, summary, offered, moved, ended_early_s is not None, marks, self._components.names, strangers
        )

    def _summary(self, requests: Requests, asked: Load, ended_early_s: float | None) -> Summary:
        seconds, floor_s = asked.seconds, max(_floor_s(self.measure), asked.warmup_s)
        fixed_s = 0.0 if asked.cold else self.measure.warmup
        if ended_early_s is not None:
            seconds = ended_early_s - float((requests.end_s - requests.latency_ms / 1000.0).min())
            fixed_s = min(floor_s if fixed_s is None else fixed_s, seconds / 2)
        return summarise(
            requests.end_s,
            requests.latency_ms,
            requests.waiting_ms,
            requests.operation,
            requests.outcome,
            operations=self.workload.operations,
            judged=self.workload.judged,
            planned_s=None if self.workload.runs_to_completion else seconds,
            floor_s=floor_s,
            fixed_warmup_s=fixed_s,
        )

    def _watch(self, rig: Rig, driver: Driver, profiler: Profiler | None, most_waiting: int | None) -> float | None:
        """Returns when more than most_waiting requests waited, else None."""
        ended_early_s: float | None = None
        with _explaining(rig):
            followed: dict[str, tuple[int, ...]] = {}
            began, looks = time.monotonic(), [0.0, CONNECTING_S]
            while True:
                if looks and time.monotonic() - began >= looks[0]:
                    looks.pop(0)
                    self._components.look(
                        rig.target.pids(), ("target", "driver", rig.target.kind, *rig.target.processes())
                    )
                followed = self._follow(rig, driver, profiler, followed)
                at = time.monotonic()
                self._note_counters(rig, at)
                connecting = at - began < CONNECTING_S and len(rig.target.pids()) > 1
                if driver.wait(CONNECTING_S / 4 if connecting else POLL_S):
                    break
                if most_waiting is not None and driver.waiting() > most_waiting:
                    driver.kill()
                    ended_early_s = time.monotonic()
                    break
                if time.monotonic() > began + ACTIVE_S:
                    raise WorkloadError(
                        f"the step did not end within {ACTIVE_S:.0f} s", remedy="Make the work of a step smaller."
                    )
            self._note_counters(rig, time.monotonic())
        return ended_early_s

    def _follow(
        self, rig: Rig, driver: Driver, profiler: Profiler | None, followed: dict[str, tuple[int, ...]]
    ) -> dict[str, tuple[int, ...]]:
        pids = _processes(rig, driver, self._components)
        if pids != followed:
            for component in pids:
                self.recorder.follow(component, pids[component])
            if profiler is not None:
                profiler.follow(components_of(rig.target.pids(), driver.pids()))
        return pids

    def _note_counters(self, rig: Rig, at_s: float) -> None:
        if counters := rig.counters():
            self.recorder.note("service", write_json(counters), at_s)

    @property
    def tail_specs(self) -> tuple[CounterSpec, ...]:
        return tuple(spec for tail in self._tails for spec in tail.counter_specs)

    def _note_exposed(self, rig: Rig) -> None:
        readings = [*rig.exposed(), *(reading for tail in self._tails for reading in tail.readings())]
        known = (*rig.counter_specs, *self.tail_specs)
        if unknown := [spec for spec in known if spec.name not in self._noted]:
            self.recorder.note("counters", specs_text(unknown))
            self._noted.update(spec.name for spec in unknown)
        for reading in readings:
            self.recorder.note("service", write_json(reading.counters), reading.at_s)
        if missing := (*rig.target.exposure.missing(), *(why for tail in self._tails for why in tail.missing())):
            self.recorder.note("missing", write_json(missing))


def _check_target(rig: Rig, requests: Requests, level: float) -> None:
    if why := stopped_by_signal(rig.target.pids()):
        raise TargetError(f"the server did nothing for a part of the step at {level:g}: {why}", remedy=LET_IT_GO_ON)
    if (requests.outcome != UNFINISHED).any():
        return
    if not rig.target.embedded and not rig.target.healthy():
        raise TargetError(
            f"No request completed in a step at {level:g}, and the server at {rig.target.endpoint().address} does not "
            "answer",
            remedy="Look at its log and at the network between; run it again once it answers.",
        )
    raise WorkloadError(
        f"No request completed in a step at {level:g}", remedy="Lower the load, or give the step a longer window."
    )


def duration_s(measure: MeasureTable, window_s: float | None = None, warmup_s: float = 0.0) -> float:
    """Seconds of a step: its window (default: the study's) and its warm-up (least: warmup_s, if the study sets
    none)."""
    warmup = measure.warmup if measure.warmup is not None else max(_floor_s(measure), warmup_s)
    return warmup + (measure.window if window_s is None else window_s)


def _floor_s(measure: MeasureTable) -> float:
    return max(SHORTEST_WARMUP_S, WARMUP_SHARE * measure.window)


def _processes(rig: Rig, driver: Driver, components: Components) -> dict[str, tuple[int, ...]]:
    """A server may have a process for each connection, so they come and go."""
    if rig.target.embedded:
        return {"target": driver.pids()}
    own = {**rig.target.processes(), "driver": driver.pids()}
    return {**components.processes({pid for pids in own.values() for pid in pids}), **own}


@contextmanager
def _explaining(rig: Rig) -> Iterator[None]:
    """A driver fails when its target dies: report the target first."""
    target = rig.target
    try:
        yield
    except WorkloadError as error:
        if stopped := stopped_by_signal(target.pids()):
            raise TargetError(f"the server does not answer: {stopped}", remedy=LET_IT_GO_ON) from error
        if not target.healthy():
            target.counters()
        why = out_of_memory(*target.cages) if target.embedded else None
        if why is None:
            raise
        raise WorkloadError(f"{error.fact.rstrip('.')}: {why}", remedy=MORE_MEMORY, details=error.details) from error


class Profiles:
    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._count = 0
        self._may_sample: Permission | None = None

    def take(
        self, place: ProfilePlace, asked: Load, load: Callable[[Load, Profiler], Loaded], folder: Path
    ) -> ProfiledStep:
        """Take a sampled step; it is on the disk when this returns. load: brings the target to its state and loads
        it."""
        self._count += 1
        name = f"{self._count:02d}-{asked.treatment}-{place}"
        scratch = folder / f"profile-{name}"
        scratch.mkdir(mode=0o700)
        self._may_sample = self._may_sample or permission()
        profiler = Profiler(self._may_sample, scratch)
        try:
            summary = load(replace(asked, name=f"profiled-{name}"), profiler).summary
        finally:
            profiler.stop()
        start_s, end_s = summary.window_start_s, summary.window_end_s
        sources = profiler.write(start_s, end_s, name, self._run.add_stacks)
        remove_tree(scratch)
        done = ProfiledStep(
            place=place,
            treatment=asked.treatment,
            level=asked.level,
            seconds=end_s - start_s,
            requests=summary.requests,
            throughput=summary.throughput,
            sources=sources,
            missing=tuple(profiler.missing),
        )
        self._run.add_profiled(done)
        return done
