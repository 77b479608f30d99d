"""A target on the bench, in its cages, and the machine around it: each brought to one state at a time, with every
change in the journal."""

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from loadframe.bench.base import OnBench
from loadframe.cages.cage import LIMITS, Cage
from loadframe.changes.durable import NOT_ALONE, DurableJournal
from loadframe.changes.host import Host
from loadframe.changes.journal import Journal, Reasons
from loadframe.changes.places import Place
from loadframe.errors import ChangeError, NotRecovered, StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.processes import Allowance, Resources, bind, bound_to, parse_cpus
from loadframe.kinds import registry as targets
from loadframe.kinds.base import Cache, Exposing, Listening, Losing, Noting, PrintsStages, Target
from loadframe.kinds.exposed import Exposure
from loadframe.model import ChangeRecord, CounterSpec, Endpoint, Reading, SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.study.cage_tables import ComponentCage
from loadframe.study.declaration import HostTable
from loadframe.workloads.base import Workload

CPUS, DRIVER_CPUS = "cage.cpus", "cage.driver.cpus"
"""What a state binds: the target, the load driver."""


def kinds_of(study: Study) -> tuple[str, ...]:
    named = (study.target.kind, *(alternative.target.kind for alternative in study.alternative))
    return tuple(dict.fromkeys(kind for kind in named if kind is not None))


def prefix_of(study: Study, kind: str) -> str:
    """The prefix of a target's counter names: two servers' may be equal."""
    return "" if len(kinds_of(study)) == 1 else f"{kind}."


class Rig:
    """target: created, not started; destroyed by its maker."""

    def __init__(self, target: OnBench, run: RunFolder, prefix: str = "", reasons: Reasons | None = None) -> None:
        self.target = target
        self._prefix = prefix
        self._journal = Journal(run, target, private=target.private, reasons=reasons)
        self._first: TargetState | None = None
        self._now: TargetState | None = None
        self._installed = False
        self._put_back: list[ChangeRecord] = []
        self._checked: list[TargetState] = []

    @property
    def counter_specs(self) -> tuple[CounterSpec, ...]:
        """Including all that it has exposed so far."""
        specs = (*self.target.counter_specs, *self.target.exposure.counter_specs)
        return tuple(replace(spec, name=f"{self._prefix}{spec.name}") for spec in specs)

    def counters(self) -> dict[str, float]:
        """Values by the names of `counter_specs`. Raises as Target.counters does."""
        return {f"{self._prefix}{name}": value for name, value in self.target.counters().items()}

    def exposed(self) -> list[Reading]:
        return [
            replace(reading, counters={f"{self._prefix}{name}": value for name, value in reading.counters.items()})
            for reading in self.target.exposure.readings()
        ]

    def check(self, state: TargetState) -> None:
        """Raises as Target.check does. Each state is checked once, and none that the target has been in."""
        state = replace(state, cpus={}) if self.target.private else state
        if state not in self._checked:
            self.target.check(state)
            self._checked.append(state)

    def bring(self, treatment: str, state: TargetState, workload: Workload) -> dict[str, SettingValue]:
        """Returns the target's effective settings."""
        if self._now is None:
            begin = state if self.target.initial is None else self.target.initial
            self.target.start(begin)
            self._first = begin if self._first is None else self._first
            self._now = begin
            self._checked.append(replace(begin, cpus={}) if self.target.private else begin)
        if not self._installed:
            self.target.install(workload)
            self._installed = True
        if self._now != state:
            self.check(state)
            before, self._now = self._now, None  # not known until the change has succeeded
            try:
                self._journal.go(treatment, before, state)
            except Exception:  # not Ctrl-C: then `close` follows at once
                self._note(self.target.abandon())
                raise
        self._now = state
        return self.target.effective()

    def stop(self) -> None:
        self._note(self.target.abandon())
        self._ended()

    def empty(self) -> None:
        """The next `bring` starts it again."""
        self.stop()
        self.target.empty()

    def close(self) -> list[ChangeRecord]:
        """A private target's changes end with it; one that goes on is restored. Returns the outcome of each change."""
        self._note(self.target.leave())
        self._ended()
        return self._put_back

    def _ended(self) -> None:
        if self._first is not None and self._now is not None:
            self._journal.close(self._now, self._first)
        self._now = None

    def _note(self, outcomes: list[ChangeRecord]) -> None:
        self._put_back += outcomes
        self._journal.reverted(outcomes)


class Machine(Place, Protocol):
    def moves(self, name: str) -> tuple[str, ...]:
        """The settings that may change along with this one."""


class Surroundings:
    kind = "host"

    def __init__(
        self, machine: Machine, names: Iterable[str], durable: DurableJournal, run: RunFolder, reasons: Reasons | None
    ) -> None:
        """machine: the target's. names: all settings that any state may set."""
        self._names = tuple(dict.fromkeys(names))
        self._host = machine
        self._durable = durable
        far = not isinstance(machine, Host)
        self._journal = Journal(run, self, private=False, reasons=reasons, words=lambda: machine.words if far else "")
        self._now: Mapping[str, SettingValue] = {}

    def bring(self, treatment: str, settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
        """All other settings become as they were; returns the effective ones."""
        if settings != self._now:
            self._journal.go(treatment, TargetState(host=self._now), TargetState(host=settings))
            self._now = dict(settings)
        return self.effective()

    def apply(self, state: TargetState) -> None:
        """ChangeError where the kernel rejects a value, or another program changes it too."""
        gone = self._now.keys() - state.host.keys()
        moved = {other for name in gone for other in self._host.moves(name)}
        for outcome in self._durable.back(self._host, gone | moved - state.host.keys()):
            if outcome.status != "reverted":
                raise ChangeError(str(outcome), remedy=NOT_ALONE)
        for name, value in state.host.items():
            if self._now.get(name) != value:
                self._durable.set(self._host, name, value, self._host.moves(name))

    def effective(self) -> dict[str, SettingValue]:
        return {name: self._host.read(name) for name in self._names}

    def close(self) -> list[ChangeRecord]:
        outcomes = self._durable.back(self._host)
        self._now = {}
        self._journal.reverted(outcomes)
        return outcomes


def host_settings(*tables: HostTable) -> dict[str, SettingValue]:
    """Later tables win. Raises as Host.check does."""
    check = Host().check
    return {name: value for table in tables for name, value in check(table.settings).items()}


def check_host(study: Study) -> None:
    """StudyError where the study may not change the machine; raises as Host.check does."""
    named = [table.settings for table in study.host_tables]
    if any(named) and "host" not in study.remedies.allow:
        first = next(name for settings in named for name in settings)
        raise StudyError(
            f"host.settings: the study changes {first} of the whole machine, and remedies.allow does not name that",
            remedy='If the change is permitted on this machine, set remedies.allow = ["target", "process", "host"]. '
            "It is put back at the end.",
        )
    for settings in named:
        Host().check(settings)


# --- in cages ---


class CagedTarget(OnBench):
    """cages: of the target or of its shards, all with the same limits; in_front: of components in front of the shards,
    each with its own limits, in the state under its name ("loader.cpu.max")."""

    private = True

    def __init__(
        self, target: Target, *cages: Cage, in_front: Sequence[Cage] = (), cpus: frozenset[int] | None = None
    ) -> None:
        """cpus: its CPUs in states that set none; None: all that we may use."""
        self._target = target
        self._cpus = cpus
        self._bound = False
        self._workload: Workload | None = None
        self._groups = {"": cages, **{f"{cage.component}.": (cage,) for cage in in_front}}
        self.cages = (*in_front, *cages)
        self.kind = target.kind
        self.embedded = target.embedded
        self.counter_specs: tuple[CounterSpec, ...] = target.counter_specs
        self.exposure = target.exposure if isinstance(target, Exposing) else Exposure()

    def stage_files(self) -> Sequence[Path]:
        return self._target.stage_files() if isinstance(self._target, PrintsStages) else ()

    def create(self) -> None:
        self._target.create()

    def check(self, state: TargetState) -> None:
        own, _ = self._parted(state)
        self._target.check(own)

    def install(self, workload: Workload) -> None:
        self._workload = workload
        super().install(workload)

    def start(self, state: TargetState) -> None:
        own, caged = self._parted(state)
        for prefix, cages in self._groups.items():
            for cage in cages:
                cage.begin()
                cage.set(caged[prefix])
        with self._explained():
            self._target.start(own)
        self._bound = False
        self._bind(state)
        self._install_again()

    def apply(self, state: TargetState) -> None:
        """The cage first: a target needs its resources when it asks for them."""
        own, caged = self._parted(state)
        for prefix, cages in self._groups.items():
            for cage in cages:
                if caged[prefix] != cage.limits():
                    cage.set(caged[prefix])
        with self._explained():
            self._target.apply(own)
        self._bind(state)
        self._install_again()

    def reset(self) -> None:
        with self._explained():
            self._target.reset()

    def forget(self) -> None:
        for cage in self.cages:
            cage.forget()

    def empty(self) -> None:
        assert isinstance(self._target, Cache), "only caches are emptied"
        self._target.empty()

    def listen_on(self, number: str) -> None:
        assert isinstance(self._target, Listening), "of kinds that say so"
        self._target.listen_on(number)

    def kill(self) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):  # ended along with its parent
                (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, signal.SIGKILL)

    def stop(self) -> None:
        self._target.stop()

    def destroy(self) -> None:
        self._target.destroy()

    def effective(self) -> dict[str, SettingValue]:
        caged = {
            f"{prefix}{name}": value
            for prefix, cages in self._groups.items()
            for name, value in cages[0].limits().items()
        }
        with self._explained():
            settings = {**self._target.effective(), **caged}
        if self._bound and (cpus := bound_to(self.pids()[0])) is not None:
            settings[CPUS] = cpus
        return settings

    def counters(self) -> dict[str, float]:
        with self._explained():
            return self._target.counters()

    def pids(self) -> tuple[int, ...]:
        return self._target.pids()

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        return self._target.processes()

    def endpoint(self) -> Endpoint:
        return self._target.endpoint()

    def healthy(self) -> bool:
        return self._target.healthy()

    def version(self) -> str:
        return self._target.version()

    def log_tail(self, lines: int = 20) -> str:
        return self._target.log_tail(lines)

    def describe(self) -> Mapping[str, str]:
        return self._target.describe()

    def notes(self) -> tuple[str, ...]:
        return self._target.notes() if isinstance(self._target, Noting) else ()

    def _install_again(self) -> None:
        if isinstance(self._target, Losing) and self._target.has_lost_data() and self._workload is not None:
            self.install(self._workload)

    def _parted(self, state: TargetState) -> tuple[TargetState, dict[str, dict[str, int]]]:
        names = {f"{prefix}{name}": (prefix, name) for prefix in self._groups for name in LIMITS}
        caged: dict[str, dict[str, int]] = {prefix: {} for prefix in self._groups}
        for full, (prefix, name) in names.items():
            if full in state.limits:
                caged[prefix][name] = state.limits[full]
        own = {name: value for name, value in state.limits.items() if name not in names}
        return TargetState(state.settings, own), caged

    def _bind(self, state: TargetState) -> None:
        asked = state.cpus.get(CPUS)
        if asked is not None or self._bound:
            own = self._cpus or frozenset(os.sched_getaffinity(0))
            bind(self._target.pids(), own if asked is None else parse_cpus(asked))
        self._bound = asked is not None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except TargetError as error:
            if (why := out_of_memory(*self.cages)) is None:
                raise
            fact = f"{error.fact}: {why}"
            if isinstance(error, NotRecovered):
                raise NotRecovered(
                    fact, remedy=MORE_MEMORY, details=error.details, died=error.died, full=why
                ) from error
            raise TargetError(fact, remedy=MORE_MEMORY, details=error.details) from error


def make_target(study: Study, lease: Lease, kind: str, driver: Privilege) -> CagedTarget:
    """A target of this kind, not created yet. driver: the user of the load driver, of an embedded target, and of what
    stands in front of shards. CageError, StudyError."""
    of = kind if kind != study.target.kind else ""
    study = study.around(kind)
    shards = study.target.shards
    names = targets.components(kind, shards, study.target.sql_nodes)
    cages = [make_cage(name, study.allowed(name), lease, of) for name in names]
    if shards is None:
        held = Resources(cpus=cpus_of(study.cage), groups=cages[0].folders)
        held = held.run_by(driver) if targets.kind_named(kind).embedded else held
        target = targets.of_study(study, kind).make(lease, held)
        return CagedTarget(target, *cages, cpus=cpus_of(study.cage))
    split = len(cages) - shards
    resources: dict[str, Resources] = {
        cage.component: allowance(study.allowed(cage.component), cage, driver, lease) for cage in cages[:split]
    }
    cpus = cpus_of(study.target_cage)
    resources |= {cage.component: Resources(cpus=cpus, groups=cage.folders) for cage in cages[split:]}
    target = targets.make_shards(kind, lease=lease, resources=resources)
    return CagedTarget(target, *cages[split:], in_front=cages[:split])


def make_cage(component: str, allowed: ComponentCage, lease: Lease, of: str = "") -> Cage:
    return Cage.make(component, allowed.group_limits(), lease=lease, cpus=cpus_of(allowed), of=of)


def allowance(allowed: ComponentCage, cage: Cage, user: Privilege, lease: Lease) -> Allowance:
    resources = Resources(limits=allowed.process_limits(), cpus=cpus_of(allowed), groups=cage.folders)
    return lease.admitted(resources.run_by(user))


def cpus_of(allowed: ComponentCage) -> frozenset[int] | None:
    return parse_cpus(allowed.cpus) if allowed.cpus else None


def pinned(study: Study, state: TargetState) -> Study:
    if not state.cpus:
        return study
    cage = study.cage
    driver = cage.driver.model_copy(update={"cpus": state.cpus.get(DRIVER_CPUS, cage.driver.cpus)})
    cage = cage.model_copy(update={"cpus": state.cpus.get(CPUS, cage.cpus), "driver": driver})
    return study.model_copy(update={"cage": cage})


MORE_MEMORY = (
    "Raise cage.memory (of a component: cage.NAME.memory; of shards: cage.shard.memory), or give the target settings "
    "that fit into it."
)


def out_of_memory(*cages: Cage) -> str | None:
    for cage in cages:
        ended, most = cage.ended_for_memory(), cage.limits().get("memory.max")
        whose = "its cage" if cage.component == "target" else f"the cage of the {cage.component}"
        if ended and most is not None:
            return f"{whose} of {most / 2**20:,.0f} MiB was full, and the kernel ended {ended} of its processes"
        if ended:
            return f"the machine or a group around {whose} had no memory left, and the kernel ended {ended} processes"
    return None
