"""The test bench: one target, one workload, one recorder and a journal. It takes one step at a time.

A context manager: whatever it started has ended, and whatever it made outside the run folder is gone, when it is left.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Self

from loadframe.analysis.window import Summary, summarise
from loadframe.bench.attached import AttachedTarget
from loadframe.bench.caged import (
    DRIVER_CPUS,
    MORE_MEMORY,
    CagedTarget,
    allowance,
    cpus_of,
    make_cage,
    make_target,
    out_of_memory,
    pinned,
)
from loadframe.bench.evaluation import components, derived, flags
from loadframe.bench.rig import Rig
from loadframe.bench.surroundings import Surroundings, host_settings
from loadframe.cage.leases import Lease
from loadframe.cage.processes import Allowance, bind, parse_cpus
from loadframe.changes.durable import DurableJournal, Outcome
from loadframe.errors import WorkloadError
from loadframe.model import (
    OPEN_LOOP_AXES,
    Conduct,
    CounterSpec,
    Ending,
    Endpoint,
    ProfiledStep,
    ProfilePlace,
    SettingValue,
    Step,
    Survival,
    TargetState,
)
from loadframe.recording.control import Recorder
from loadframe.recording.metrics import specs_text, stalls, window_metrics
from loadframe.recording.profiles.perf import Permission, permission
from loadframe.recording.profiles.profiler import Profiler, components_of
from loadframe.recording.readers import RecordingReader
from loadframe.runs.folder import RunFolder, Treatment
from loadframe.study import Study
from loadframe.targets import registry as targets
from loadframe.workloads import registry as workloads
from loadframe.workloads.base import AsksForObjects, Driver, Workload
from loadframe.workloads.request_log import Requests

FETCHES = "fetches"
"""What a cache counts: requests that it passed on to its origin."""
POLL_S = 0.25
CONNECTING_S = 0.2
"""For so long after its start a driver makes connections, and a server may start a process for each of them: looked at
more often, so that these are followed from the beginning of the window on."""
TICK_S = 0.1
WARMUP_SHARE = 0.2
"""The least that is cut off as warm-up, as a share of the window: connecting, filling caches, first touches."""
SHORTEST_WARMUP_S = 0.15
ACTIVE_S = 3600.0
"""A step that runs until its work is done is ended after an hour."""


@dataclass(frozen=True)
class _Loaded:
    """A step's load. offered: requests that should have begun in the window, None in a closed loop. moved_bytes: of
    the answers in it, None where the driver does not count them."""

    requests: Requests
    summary: Summary
    offered: int | None
    moved_bytes: int | None
    ended_early: bool


class Bench:
    """Takes steps of one study into one run folder. Enter it before use."""

    def __init__(self, study: Study, run: RunFolder) -> None:
        self.study = study
        self.run = run
        self.workload: Workload = self._make_workload(Allowance())
        self.version = ""
        self.put_back: list[Outcome] = []
        """Once it is left: what became of the settings that outlive it."""
        self._start_host = host_settings(study.host)  # before anything is changed
        self._stack = ExitStack()
        self._steps = self._profiled = 0
        self._may_sample: Permission | None = None
        self._rigs: dict[str, Rig] = {}
        self._served: dict[str, tuple[int, ...]] = {}
        self._treatments: dict[str, Treatment] = {}

    @property
    def axis_unit(self) -> str:
        """What the load axis counts, in the user's words."""
        return self.workload.axis_unit

    @property
    def treatments(self) -> int:
        """How many states have been declared."""
        return len(self._treatments)

    @property
    def start_state(self) -> TargetState:
        """The state that the study declares."""
        settings = targets.check_settings(self.study.target.kind, self.study.target.settings)
        return TargetState(settings, self.study.target_limits, host=self._start_host, cpus=self.study.target_cpus)

    # --- life ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            study = self.study
            what = f"{study.target.kind} for study {study.study.name}"
            durable = DurableJournal(what, self.run.path)
            self._lease = stack.enter_context(Lease.acquire(what, run=self.run.path))
            for kind in dict.fromkeys((study.target.kind, *(each.target.kind for each in study.alternative))):
                if kind is not None:
                    target: CagedTarget | AttachedTarget
                    attached = kind == study.target.kind and study.target.attach is not None
                    target = AttachedTarget(study, durable) if attached else make_target(study, self._lease, kind)
                    stack.callback(target.destroy)
                    target.create()
                    self._rigs[kind] = Rig(target, self.run)
            self._rig = self._rigs[study.target.kind]
            self._surroundings = Surroundings(host_settings(*study.host_tables), durable, self.run)
            stack.callback(self._put_back)
            self._make_driver()
            recording = self.run.path / "raw" / "host.lfr"
            self._recorder = stack.enter_context(Recorder(recording, interval_s=TICK_S))
            specs = [spec for rig in self._rigs.values() for spec in self._specs_of(rig)]
            self._recorder.note("counters", specs_text(tuple(specs)))
            self._recorder.follow_cgroup(self._driver_cage.component, self._driver_cage.folders)
            self._follow_cages()
            self._reader = RecordingReader(recording)
            self.version = self._target.version()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            for rig in self._rigs.values():
                self.put_back += rig.close()
        finally:
            self._stack.close()

    def _put_back(self) -> None:
        """What outlives the bench is as it was before."""
        self.put_back += self._surroundings.close()

    @property
    def endpoint(self) -> Endpoint:
        """Where the target of the treatment in use answers."""
        return self._target.endpoint()

    @property
    def _target(self) -> CagedTarget | AttachedTarget:
        """The target of the treatment in use."""
        return self._rig.target

    def _make_driver(self) -> None:
        """The workload, whose driver is in a cage of its own; a target that runs inside the driver's processes shares
        one with them."""
        cage, target = self.study.cage, self._target
        self._driver_cage = target.cages[0] if target.embedded else make_cage("driver", cage.driver, self._lease)
        driven = allowance(cage.driver, self._driver_cage)
        if target.embedded and driven.cpus is None:
            driven = replace(driven, cpus=cpus_of(cage))
        self.workload = self._make_workload(driven)

    def _follow_cages(self) -> None:
        for cage in self._target.cages:
            self._recorder.follow_cgroup(cage.component, cage.folders)

    def _make_workload(self, allowance: Allowance) -> Workload:
        study = self.study
        return workloads.make(study.workload.kind, study.workload.options, allowance, axis=study.load.axis)

    def conduct(self, seconds: float, steps: Sequence[Step], repeated: int) -> Conduct:
        """How the run went; ends the recording."""
        cost = self._recorder.stop()
        return Conduct(
            steps=len(steps),
            repeated=repeated,
            flags=dict(Counter(flag for step in steps for flag in step.flags)),
            recorder_cpu_share=cost.cpu_s / max(cost.elapsed_s, 1e-9),
            recorder_rss_bytes=cost.rss_bytes,
            ticks=cost.ticks,
            late_ticks=cost.late_ticks,
            seconds=seconds,
        )

    # --- treatments -----------------------------------------------------------------------------------------------

    def declare(self, name: str, title: str, state: TargetState, kind: str | None = None, *, cold_of: str = "") -> None:
        """Give a state of the target (or of an alternative's, of that kind) a short name; steps carry it. Settings are
        spelt as the target answers them. cold_of: the treatment of which this is the cold one: a cache whose steps all
        begin with nothing cached."""
        kind = kind or self.study.target.kind
        state = replace(state, settings=targets.check_settings(kind, state.settings))
        self._treatments[name] = Treatment(name, title, state, kind, cold_of)
        self.run.append_line("treatments.jsonl", "treatment", self._treatments[name])

    def check(self, state: TargetState, kind: str | None = None) -> None:
        """Raises as Target.check does where the target, or that of another kind, would not start in a state."""
        kind = kind or self.study.target.kind
        settings = targets.check_settings(kind, state.settings)
        self._rigs[kind].check(replace(state, settings=settings, host={}))

    def use(self, name: str) -> dict[str, SettingValue]:
        """Bring the target to a declared state and answer what it really uses."""
        treatment = self._treatments[name]
        if self._rigs[treatment.kind] is not self._rig:
            self._rig = self._rigs[treatment.kind]
            self._follow_cages()
        around = self._surroundings.bring(name, treatment.state.host)
        return {**self._rig.bring(name, replace(treatment.state, host={}), self.workload), **around}

    def begins_anew(self, name: str) -> bool:
        """Bring the target to a declared state, as `use`; whether it has served no step since it was started. Not where
        every step begins with a cache that was filled or emptied for it."""
        self.use(name)
        prepared = self.is_cache(name) or bool(self._treatments[name].cold_of)
        return not prepared and self._target.pids()[:1] != self._served.get(self._target.kind, ())

    def recover(self, name: str) -> None:
        """Bring the target to a declared state whatever has become of it: it is started anew."""
        self._rigs[self._treatments[name].kind].stop()
        self.use(name)

    def is_cache(self, name: str) -> bool:
        """Whether a treatment is one of a cache, and the workload asks it for objects."""
        return targets.KINDS[self._treatments[name].kind].cache and isinstance(self.workload, AsksForObjects)

    def survival(self, name: str, level: float, how: Ending) -> Survival:
        """What the cache of a treatment (`is_cache`) still has after it was ended so, of all objects of a level.
        TargetError where it does not come back."""
        assert isinstance(self.workload, AsksForObjects), "a cache is asked for objects"
        self.use(name)
        rig, workload = self._rig, self.workload
        workload.set_level(self.endpoint, level)
        workload.warm(self.endpoint, level)
        if how == "SIGKILL":
            rig.kill()
        rig.stop()
        self.use(name)
        before = self._fetched()
        workload.warm(self.endpoint, level)
        asked = workload.objects_at(level)
        fetched = round(self._fetched() - before)
        return Survival(name, rig.target.kind, how, asked, min(max(asked - fetched, 0), asked))

    def _fetched(self) -> float:
        """What a cache has fetched in all: a thread of it may tell that a moment after the answer, so until two looks
        say the same."""
        found, seen = self._target.counters()[FETCHES], -1.0
        while found != seen:
            time.sleep(POLL_S)
            found, seen = self._target.counters()[FETCHES], found
        return found

    # --- steps ----------------------------------------------------------------------------------------------------

    def take_step(
        self,
        *,
        round_number: int,
        block: int,
        treatment: str,
        level: float,
        window_s: float | None = None,
        most_waiting: int | None = None,
    ) -> Step:
        """One measured window, of window_s (the study's, where that is None). On the disk when this returns.

        most_waiting: in an open loop, the step is ended once more requests than this should have begun and have not
        ended. TargetError, with the server's last words, where the target died; WorkloadError where the driver failed.
        """
        self._steps += 1
        loaded = self._load(
            f"step-{self._steps:05d}", treatment, level, self._duration_s(window_s), most_waiting=most_waiting
        )
        requests, summary = loaded.requests, loaded.summary
        step = self._step(loaded, round_number, block, treatment, level)
        self.workload.after_step(self.endpoint)  # first: what it finds wrong is no measurement
        self.run.add_step(step, requests.to_bytes(), requests.latency_ms[summary.inside])
        return step

    def take_profile(self, place: ProfilePlace, *, treatment: str, level: float, window_s: float) -> ProfiledStep:
        """An extra step with a window of so many seconds that is sampled: it belongs to no curve and no verdict. On
        the disk when this returns. Raises as take_step does."""
        self._profiled += 1
        name = f"{self._profiled:02d}-{treatment}-{place}"
        scratch = self._lease.folder / f"profile-{name}"
        scratch.mkdir(mode=0o700)
        profiler = Profiler(self._permission(), scratch)
        try:
            seconds = self._duration_s() - self.study.measure.window + window_s
            summary = self._load(f"profiled-{name}", treatment, level, seconds, profiler).summary
        finally:
            profiler.stop()
        start_s, end_s = summary.window_start_s, summary.window_end_s
        sources = profiler.write(start_s, end_s, self.run.path / "profiles", name)
        shutil.rmtree(scratch)
        done = ProfiledStep(
            place=place,
            treatment=treatment,
            level=level,
            seconds=end_s - start_s,
            requests=summary.requests,
            throughput=summary.throughput,
            sources=sources,
            missing=tuple(profiler.missing),
        )
        self.run.add_profiled(done)
        self.workload.after_step(self.endpoint)
        return done

    def _permission(self) -> Permission:
        """What perf may sample here; asked once."""
        if self._may_sample is None:
            self._may_sample = permission()
        return self._may_sample

    def _load(
        self,
        name: str,
        treatment: str,
        level: float,
        seconds: float,
        profiler: Profiler | None = None,
        most_waiting: int | None = None,
    ) -> _Loaded:
        """Load the target at a level: what was asked, and what it says."""
        cold = bool(self._treatments[treatment].cold_of)
        self.use(treatment)
        if cold:
            self._rig.empty()
            self.use(treatment)
        scratch = self._lease.folder / name
        scratch.mkdir()
        scratch.chmod(0o777)
        endpoint = self.endpoint
        self._target.reset()
        self._bring_to(level, treatment, cold=cold)
        self._served[self._target.kind] = self._target.pids()[:1]
        self._recorder.mark("step-start", step=name, level=level, treatment=treatment)
        if profiler is not None:
            profiler.prepare()
        with self._explaining():
            driver = self.workload.start(endpoint, level, scratch, seconds)
        try:
            if (cpus := self._treatments[treatment].state.cpus.get(DRIVER_CPUS)) is not None:
                bind(driver.pids(), parse_cpus(cpus))
            if profiler is not None:
                profiler.start(components_of(self._target.pids(), driver.pids()))
            ended_early_s = self._watch(driver, profiler, most_waiting)
            with self._explaining():
                requests = driver.requests()
        finally:
            driver.kill()
        self._recorder.mark("step-end", step=name)
        self._recorder.flush()
        if not len(requests):
            raise WorkloadError(
                f"no request ended in a step at {level:g}", remedy="Lower the load, or give the step a longer window."
            )
        floor_s = self._floor_s()
        fixed_s = 0.0 if cold else self.study.measure.warmup  # how a cold cache fills is what is measured
        if ended_early_s is not None:
            seconds = ended_early_s - float((requests.end_s - requests.latency_ms / 1000.0).min())
            fixed_s = min(floor_s if fixed_s is None else fixed_s, seconds / 2)
        summary = summarise(
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
        offered = driver.offered(summary.window_start_s, summary.window_end_s)
        moved = driver.moved_bytes(summary.window_start_s, summary.window_end_s)
        return _Loaded(requests, summary, offered, moved, ended_early_s is not None)

    def _bring_to(self, level: float, treatment: str, *, cold: bool) -> None:
        """The data of a level. A cache that is not to be cold has what this level asks for, and nothing of others, in
        memory."""
        endpoint = self.endpoint
        caches = self.is_cache(treatment)
        if caches:
            self._target.forget()
        self.workload.set_level(endpoint, level)
        if caches and not cold:
            assert isinstance(self.workload, AsksForObjects), "a cache is asked for objects"
            self.workload.warm(endpoint, level)

    def _duration_s(self, window_s: float | None = None) -> float:
        measure = self.study.measure
        warmup = measure.warmup if measure.warmup is not None else self._floor_s()
        return warmup + (measure.window if window_s is None else window_s)

    def _floor_s(self) -> float:
        return max(SHORTEST_WARMUP_S, WARMUP_SHARE * self.study.measure.window)

    def _watch(self, driver: Driver, profiler: Profiler | None = None, most_waiting: int | None = None) -> float | None:
        """Until the driver has ended: record its processes and the target's, and ask the target's counters. The time at
        which it was ended because more than most_waiting requests waited; None where it ended by itself."""
        with self._explaining():
            followed: dict[str, tuple[int, ...]] = {}
            ended_early_s: float | None = None
            began = time.monotonic()
            deadline = began + ACTIVE_S
            while True:
                pids = self._processes(driver)
                if pids != followed:
                    for component in pids:
                        self._recorder.follow(component, pids[component])
                    if profiler is not None:
                        profiler.follow(components_of(self._target.pids(), driver.pids()))
                    followed = pids
                at = time.monotonic()
                self._recorder.note("service", self._counters(), at)
                connecting = at - began < CONNECTING_S and len(self._target.pids()) > 1
                if driver.wait(CONNECTING_S / 4 if connecting else POLL_S):
                    break
                if most_waiting is not None and driver.waiting() > most_waiting:
                    driver.kill()
                    ended_early_s = time.monotonic()
                    break
                if time.monotonic() > deadline:
                    raise WorkloadError(
                        f"the step did not end within {ACTIVE_S:.0f} s",
                        remedy="Make the work of a step smaller.",
                    )
            self._recorder.note("service", self._counters(), time.monotonic())
        return ended_early_s

    def _specs_of(self, rig: Rig) -> tuple[CounterSpec, ...]:
        """The counters of a target as they are recorded: servers of two kinds may call theirs alike."""
        if len(self._rigs) == 1:
            return rig.target.counter_specs
        return tuple(replace(spec, name=f"{rig.target.kind}.{spec.name}") for spec in rig.target.counter_specs)

    def _counters(self) -> str:
        """The counters now, to be recorded."""
        kind = "" if len(self._rigs) == 1 else f"{self._target.kind}."
        return json.dumps({f"{kind}{name}": value for name, value in self._target.counters().items()})

    def _processes(self, driver: Driver) -> dict[str, tuple[int, ...]]:
        """Whom to follow, by component; a server may have a process for each connection, so they come and go."""
        if self._target.embedded:
            return {"target": driver.pids()}
        return {**self._target.processes(), "driver": driver.pids()}

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """A driver fails when its target dies: let the target say so first. Workers that the kernel ended because their
        cage is full do not know why they died."""
        try:
            yield
        except WorkloadError as error:
            if not self._target.healthy():
                self._target.counters()
            why = out_of_memory(*self._target.cages) if self._target.embedded else None
            if why is None:
                raise
            raise WorkloadError(
                f"{error.fact.rstrip('.')}: {why}", remedy=MORE_MEMORY, details=error.details
            ) from error

    def _step(self, loaded: _Loaded, round_number: int, block: int, treatment: str, level: float) -> Step:
        summary = loaded.summary
        ticks = self._reader.ticks_between(summary.window_start_s, summary.window_end_s)
        metrics = window_metrics(
            ticks,
            summary.window_start_s,
            summary.window_end_s,
            service=self._specs_of(self._rig),
            embedded=self._target.embedded,
            pieces=components(self.study) if self.study.target.shards is not None else (),
        )
        metrics |= derived(
            metrics,
            summary,
            pinned(self.study, self._treatments[treatment].state),
            embedded=self._target.embedded,
            one_lock=self.workload.one_lock,
        )
        if loaded.offered is not None:
            metrics["workload.offered"] = loaded.offered / (summary.window_end_s - summary.window_start_s)
        if loaded.moved_bytes is not None:
            metrics["workload.bytes"] = loaded.moved_bytes / (summary.window_end_s - summary.window_start_s)
        late = any(
            stall.start_s < summary.window_end_s and stall.start_s + stall.length_s > summary.window_start_s
            for stall in stalls(ticks, TICK_S)
        )
        return Step(
            number=self._steps,
            round=round_number,
            block=block,
            treatment=treatment,
            level=level,
            started_s=summary.started_s,
            ended_s=summary.ended_s,
            window_start_s=summary.window_start_s,
            window_end_s=summary.window_end_s,
            requests=summary.requests,
            errors=summary.errors,
            throughput=summary.throughput,
            batches=summary.batches,
            latency=summary.latency,
            waiting_share=summary.waiting_share,
            operations=summary.operations,
            metrics=metrics,
            flags=(*flags(summary, metrics, late=late), *(("ended-early",) if loaded.ended_early else ())),
            closed_loop=self.study.load.axis not in OPEN_LOOP_AXES,
        )
