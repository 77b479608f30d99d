"""A target in its cage, or in one for each of its pieces: the limits of the control groups are part of its state."""

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from loadframe.bench.base import OnBench
from loadframe.cages.cage import LIMITS, Cage
from loadframe.errors import NotRecovered, TargetError
from loadframe.host.leases import Lease
from loadframe.host.privilege import Privilege
from loadframe.host.processes import Allowance, Resources, bind, bound_to, parse_cpus
from loadframe.kinds import registry as targets
from loadframe.kinds.base import Cache, Exposing, Listening, Losing, Noting, PrintsStages, Target
from loadframe.kinds.exposed import Exposure
from loadframe.model import CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.study import Study
from loadframe.study.cage_tables import ComponentCage
from loadframe.workloads.base import Workload

CPUS, DRIVER_CPUS = "cage.cpus", "cage.driver.cpus"
"""What a state binds: the target, the load driver."""


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
