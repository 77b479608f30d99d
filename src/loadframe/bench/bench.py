"""The test bench: one target, one workload, one recorder and a journal; takes one step at a time. On exit all that it
started has ended, and all that it made outside the run folder is gone."""

import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Self

from loadframe.bench.attached import AttachedTarget, running
from loadframe.bench.base import Bench, OnBench
from loadframe.bench.declared import WorkloadOptions, workload_of
from loadframe.bench.driver_user import driver_user, logging_in
from loadframe.bench.evaluation import TICK_S, Evaluated, evaluate, is_late, step_of
from loadframe.bench.loading import Load, Loaded, Loading, Profiles, duration_s
from loadframe.bench.rig import (
    DRIVER_CPUS,
    Rig,
    Surroundings,
    allowance,
    cpus_of,
    host_settings,
    kinds_of,
    make_cage,
    make_target,
    pinned,
    prefix_of,
)
from loadframe.cages.groups import limiting
from loadframe.changes.durable import DurableJournal
from loadframe.changes.host import Host
from loadframe.changes.journal import Reasons
from loadframe.diagnosis.windows import blind_counters
from loadframe.errors import NotRecovered, TargetError, WorkloadError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.host.signals import undisturbed
from loadframe.kinds import registry as targets
from loadframe.masking import masked
from loadframe.model import (
    WORK,
    AnswersCompared,
    ChangeRecord,
    Ending,
    Endpoint,
    ProfiledStep,
    ProfilePlace,
    Remedy,
    RunQuality,
    SettingValue,
    Step,
    StepRequest,
    TargetState,
)
from loadframe.recording.cage_metrics import AROUND
from loadframe.recording.control import Recorder
from loadframe.recording.frames import Tick
from loadframe.recording.metrics import specs_text
from loadframe.recording.profiles.profiler import Profiler
from loadframe.recording.readers import RecordingReader
from loadframe.runs.folder import RECORDING, RunFolder, Treatment
from loadframe.runs.lines import Told
from loadframe.study import Study
from loadframe.workloads.base import AsksForObjects, ComparesAnswers, CountsWork, HasUsers, TellsMore, Workload
from loadframe.workloads.forking import end_fork_servers


class RealBench(Bench):
    """Takes steps of one study into one run folder. Enter it before use."""

    def __init__(self, study: Study, run: RunFolder, say: Callable[[str], None] = lambda _: None) -> None:
        """say: called with what ends and is reverted on Ctrl-C."""
        study = targets.canonical(study)
        self.study = study
        self.run = run
        self._say = say
        self.workload: Workload = self._make_workload(None)
        self.version = ""
        self.versions: dict[str, str] = {}
        """Versions by kind of target, where there are several."""
        self.put_back: list[ChangeRecord] = []
        """Outcomes of the settings that outlive it, after exit."""
        self._what = f"{study.target.kind} for study {study.study.name}"
        self._durable = self._make_journal()
        self._start_host = host_settings(study.host)  # before anything is changed
        self._stack = ExitStack()
        self._steps = 0
        self._profiles = Profiles(run)
        self._rigs: dict[str, Rig] = {}
        self._served: dict[str, tuple[int, ...]] = {}
        self._around: dict[str, tuple[int, ...]] = {}
        self._treatments: dict[str, Treatment] = {}
        self._reasons = Reasons()

    @property
    def notes(self) -> tuple[str, ...]:
        sent = self.workload.notes() if isinstance(self.workload, TellsMore) else ()
        return tuple(dict.fromkeys((*sent, *(note for rig in self._rigs.values() for note in rig.target.notes()))))

    @property
    def answers(self) -> tuple[AnswersCompared, ...]:
        return self.workload.answers() if isinstance(self.workload, ComparesAnswers) else ()

    @property
    def axis_unit(self) -> str:
        return self.workload.axis_unit

    @property
    def work_unit(self) -> str:
        return self.workload.work_unit if isinstance(self.workload, CountsWork) else WORK

    @property
    def treatments(self) -> int:
        return len(self._treatments)

    @property
    def start_state(self) -> TargetState:
        study = self.study
        return TargetState(study.target.settings, study.target_limits, host=self._start_host, cpus=study.target_cpus)

    def __enter__(self) -> Self:
        with ExitStack() as stack, self._telling():
            study = self.study
            with undisturbed():
                self._lease = stack.enter_context(Lease.acquire(self._what, run=self.run.path, visible=study.as_toml()))
            self.driver_user = driver_user(study, self.workload, self._lease)
            self._make_rigs(stack)
            if study.target.attach is not None and self.workload.trials():  # a local driver
                self.driver_user = logging_in(self.driver_user, study, self._target.endpoint())
            self._surroundings = self._make_surroundings()
            stack.callback(lambda: self.put_back.extend(self._surroundings.close()))
            stack.callback(end_fork_servers, self._make_driver())
            self._options = WorkloadOptions(study, self.workload, self.run, self._reasons)
            recorder = Recorder(self.run.place(RECORDING), interval_s=TICK_S, descriptor=self.run.new_recording())
            self._recorder = stack.enter_context(recorder)
            specs = [spec for rig in self._rigs.values() for spec in rig.counter_specs]
            self._recorder.note("counters", specs_text(specs))
            self._recorder.follow_cgroup(self._driver_cage.component, self._driver_cage.folders)
            self._follow_cages()
            self._reader = RecordingReader(recorder.path, descriptor=self.run.recording())
            user, within = self.driver_user.privilege, study.objective.within
            folder = self._lease.folder
            self._loading = Loading(self.workload, study.measure, self._recorder, folder, user, within)
            self.version = self._target.version()
            if len(self._rigs) > 1:
                self.versions = {kind: rig.target.version() for kind, rig in self._rigs.items()}
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self._say(self._ending())
        with undisturbed(f"Stopping. {self._ending()}"):
            try:
                self._options.close()
                for rig in self._rigs.values():
                    self.put_back += rig.close()
            finally:
                self._stack.close()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self._say(self._ending())
            raise

    def _ending(self) -> str:
        servers = [rig.target.kind for rig in self._rigs.values() if rig.target.private and not rig.target.embedded]
        back = f"; putting back {', '.join(self._durable.not_reverted)}" if self._durable.not_reverted else ""
        return f"Ending {' and '.join(['the load', *servers])}{back}."

    def _make_rigs(self, stack: ExitStack) -> None:
        study = self.study
        for kind in kinds_of(study):
            target: OnBench
            runs = kind == study.target.kind and study.target.is_running
            target = self._make_running() if runs else self._make_target(kind)
            stack.callback(target.destroy)
            target.create()
            self._rigs[kind] = Rig(target, self.run, prefix_of(study, kind), self._reasons)
        self._rig = self._rigs[study.target.kind]

    def _make_surroundings(self) -> Surroundings:
        return Surroundings(Host(), host_settings(*self.study.host_tables), self._durable, self.run, self._reasons)

    def _make_journal(self) -> DurableJournal:
        return DurableJournal(self._what, self.run.path)

    def _make_running(self) -> AttachedTarget:
        return running(self.study, self._durable)

    def _make_target(self, kind: str) -> OnBench:
        return make_target(self.study, self._lease, kind, self.driver_user.privilege)

    def _make_driver(self) -> Allowance:
        cage, target = self.study.cage, self._target
        self._driver_cage = target.cages[0] if target.embedded else make_cage("driver", cage.driver, self._lease)
        driven = allowance(cage.driver, self._driver_cage, self.driver_user.privilege, self._lease)
        if target.embedded and driven.cpus is None:
            driven = replace(driven, cpus=cpus_of(cage))
        if self.study.target.attach is not None:  # an option file may name its socket
            socket = self._target.endpoint().options.get("socket") or self._target.endpoint().address
            driven = replace(driven, visible=f"{driven.visible} {socket}")
        self.workload = self._make_workload(driven)
        return driven

    def _follow_cages(self) -> None:
        for cage in self._target.cages:
            self._recorder.follow_cgroup(cage.component, cage.folders)

    def _follow_around(self) -> None:
        """The groups that limit target and driver, such as a container's: what we start shares ours."""
        target, ours = self._target, (os.getpid(),)
        started = target.private and targets.kind_named(target.kind).by_address is None
        pids = {"target": ours if started else target.first_process(), "driver": ours}
        if not target.local() or pids == self._around:
            return
        self._around = pids
        for component, known in pids.items():
            self._recorder.follow_cgroup(component + AROUND, limiting(known[0]) if known else ())

    def _make_workload(self, allowance: Allowance | None) -> Workload:
        return workload_of(self.study, allowance)

    def quality(self, seconds: float, steps: Sequence[Step], repeated: int) -> RunQuality:
        cost = self._recorder.stop()
        return RunQuality(
            steps=len(steps),
            repeated=repeated,
            flags=dict(Counter(flag for step in steps for flag in step.flags)),
            recorder_cpu_share=cost.cpu_s / max(cost.elapsed_s, 1e-9),
            recorder_rss_bytes=cost.rss_bytes,
            ticks=cost.ticks,
            late_ticks=cost.late_ticks,
            seconds=seconds,
            blind=blind_counters(steps),
        )

    def declare(
        self,
        name: str,
        title: str,
        state: TargetState,
        kind: str | None = None,
        *,
        cold_of: str = "",
        remedy: Remedy | None = None,
    ) -> None:
        kind = kind or self.study.target.kind
        self._reasons.note(name, title, state, remedy)
        self._treatments[name] = Treatment(name, title, state, kind, cold_of)
        self.run.append_line("treatments.jsonl", "treatment", self._treatments[name])

    def check(self, state: TargetState, kind: str | None = None) -> None:
        kind = kind or self.study.target.kind
        self._options.check(state.options)
        self._rigs[kind].check(replace(state, host={}, options={}))

    def use(self, name: str) -> dict[str, SettingValue]:
        treatment = self._treatments[name]
        left, self._rig = self._rig, self._rigs[treatment.kind]
        if left is not self._rig:
            self._around = {}
            for cage in left.target.cages:
                self._recorder.follow(cage.component, ())
                self._recorder.follow_cgroup(cage.component, ())
            self._follow_cages()
        around = self._surroundings.bring(name, treatment.state.host)
        asked = self._options.bring(name, treatment.state.options)
        self.workload = self._loading.workload = self._options.now
        effective = self._rig.bring(name, replace(treatment.state, host={}, options={}), self.workload)
        self._follow_around()
        return {**effective, **around, **asked}

    @property
    def kind(self) -> str:
        return self._target.kind

    @property
    def is_local(self) -> bool:
        return self._target.local()

    @property
    def free_disk_bytes(self) -> float:
        return shutil.disk_usage(self._lease.folder).free if self._target.private else math.inf

    @property
    def endpoint(self) -> Endpoint:
        return self._target.endpoint()

    def counters(self) -> dict[str, float]:
        return self._target.counters()

    @property
    def _target(self) -> OnBench:
        return self._rig.target

    def starts_fresh(self, name: str) -> bool:
        self.use(name)
        return not self.is_prepared(name) and self._target.first_process() != self._served.get(self._target.kind, ())

    def carries_over(self, name: str) -> bool:
        return not self.is_prepared(name) and not self.workload.runs_to_completion

    def is_prepared(self, name: str) -> bool:
        """Whether every step begins with a cache that was filled or emptied for it."""
        return self.is_cache(name) or bool(self._treatments[name].cold_of)

    def recover(self, name: str) -> None:
        self._rigs[self._treatments[name].kind].stop()
        self.use(name)

    def is_cache(self, name: str) -> bool:
        return targets.kind_named(self._treatments[name].kind).cache and isinstance(self.workload, AsksForObjects)

    def end(self, how: Ending) -> None:
        if how == "SIGKILL":
            self._target.kill()
        self._rig.stop()

    def leave_alone(self, seconds: float) -> None:
        time.sleep(seconds)

    def take_step(self, request: StepRequest) -> Step:
        """The step is on the disk when this returns."""
        self._steps += 1
        seconds = duration_s(self.study.measure, request.window_s, request.warmup_s)
        asked = self._asked(f"step-{self._steps:05d}", request.treatment, request.level, seconds)
        loaded = self._load(replace(asked, most_waiting=request.most_waiting, warmup_s=request.warmup_s))
        of = self._treatments[request.treatment]
        seen, late = self._seen(loaded, pinned(self.study.around(of.kind), of.state))
        think_s = self.workload.think_s() if isinstance(self.workload, HasUsers) else 0.0
        step = step_of(request, loaded, seen, late=late, number=self._steps, think_s=think_s)
        self.workload.after_step(self.endpoint)  # raises before the step is recorded
        self.run.add_step(step, loaded.requests.to_bytes(), loaded.latencies_ms)
        if (cost := self._recorder.cost_so_far) is not None:
            share = cost.cpu_s / max(cost.elapsed_s, 1e-9)
            self.run.tell(Told("recorder", cpu_share=share, rss_bytes=cost.rss_bytes, late_ticks=cost.late_ticks))
        return step

    def take_profile(self, place: ProfilePlace, *, treatment: str, level: float, window_s: float) -> ProfiledStep:
        asked = self._asked("", treatment, level, duration_s(self.study.measure, window_s))
        done = self._profiles.take(place, asked, self._load, self._lease.folder)
        self.workload.after_step(self.endpoint)
        return done

    def _asked(self, name: str, treatment: str, level: float, seconds: float) -> Load:
        of = self._treatments[treatment]
        cpus = of.state.cpus.get(DRIVER_CPUS)
        return Load(name, treatment, level, seconds, driver_cpus=cpus, cold=bool(of.cold_of))

    def _load(self, asked: Load, profiler: Profiler | None = None) -> Loaded:
        self.use(asked.treatment)
        if asked.cold:
            self._rig.empty()
            self.use(asked.treatment)
        self._target.reset()
        self._bring_to(asked)
        self._served[self._target.kind] = self._target.first_process()
        try:
            try:
                return self._loading.load(self._rig, asked, profiler)
            except WorkloadError:  # a target that hangs or refuses is reported as that
                self._bring_to(asked)
                raise
        except NotRecovered as error:
            error.level, error.treatment = asked.level, asked.treatment
            raise

    def _bring_to(self, asked: Load) -> None:
        """A cache that is not to be cold has this level's objects in memory, and no others."""
        endpoint = self.endpoint
        caches = self.is_cache(asked.treatment)
        if caches:
            self._target.forget()
        try:
            self.workload.set_level(endpoint, asked.level)
        except TargetError as error:
            self._target.counters()  # raises if it died, with its last log lines
            error.details = error.details or masked(self._target.log_tail())
            raise
        if caches and not asked.cold:
            assert isinstance(self.workload, AsksForObjects), "a cache is asked for objects"
            self.workload.warm(endpoint, asked.level)

    def _seen(self, loaded: Loaded, study: Study) -> tuple[Evaluated, bool]:
        summary = loaded.summary
        ticks = self._reader.ticks_between(summary.window_start_s, summary.window_end_s)
        return self._evaluate(loaded, ticks, study), is_late(ticks, summary)

    def _evaluate(self, loaded: Loaded, ticks: Sequence[Tick], study: Study) -> Evaluated:
        return evaluate(
            loaded,
            ticks,
            study,
            self._rig,
            one_lock=self.workload.one_lock,
            printed=self._loading.tail_specs,
            work=self.work_unit,
        )
