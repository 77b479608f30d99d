"""What an experiment does with the device. The bench with real servers (`RealBench`) and the simulated one of the tests
pass one contract (tests/bench/test_bench_contract.py). And what the bench needs of a target, wherever that is: in cages
of this machine (caged.py), running already (attached.py), or on another host (fleet/far.py)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from loadframe.cages.cage import Cage
from loadframe.kinds.base import Target
from loadframe.kinds.exposed import Exposure
from loadframe.model import (
    ChangeRecord,
    Ending,
    Endpoint,
    ProfiledStep,
    ProfilePlace,
    Remedy,
    SettingValue,
    Step,
    StepRequest,
    TargetState,
)
from loadframe.runs.folder import RunFolder
from loadframe.study import Study
from loadframe.workloads.base import Workload


class Bench(Protocol):
    """One target and one workload. States of the target are declared under a name, and steps are taken in them."""

    study: Study
    """Whose steps it takes."""
    run: RunFolder
    """The run that its steps belong to."""
    workload: Workload
    """What loads the target."""

    @property
    def axis_unit(self) -> str:
        """What the load axis counts, in the user's words."""

    @property
    def work_unit(self) -> str:
        """What throughput counts, in the user's words."""

    @property
    def treatments(self) -> int:
        """How many states have been declared."""

    @property
    def start_state(self) -> TargetState:
        """The state that the study declares."""

    # --- treatments

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
        """Give a state of the target (or of an alternative's, of that kind) a short name; steps carry it. cold_of: the
        treatment of which this is the cold one: a cache whose steps all begin with nothing cached. remedy: the one that
        has led to the state."""

    def check(self, state: TargetState, kind: str | None = None) -> None:
        """Raises as Target.check does where the target, or that of another kind, would not start in a state."""

    def use(self, name: str) -> dict[str, SettingValue]:
        """Bring the target to a declared state and answer what it really uses. TargetError where it cannot be."""

    def starts_fresh(self, name: str) -> bool:
        """As `use`; whether the target has served no step since it was started."""

    def carries_over(self, name: str) -> bool:
        """Whether what was asked of the target before may matter to a step of this treatment."""

    def recover(self, name: str) -> None:
        """Bring the target to a declared state whatever has become of it: it is started again."""

    def is_cache(self, name: str) -> bool:
        """Whether a treatment is one of a cache, and the workload asks it for objects."""

    # --- the target of the treatment in use

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, as far as can be told."""

    @property
    def free_disk_bytes(self) -> float:
        """Of the file system that holds what it stores; infinite where that is not ours."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it answers."""

    def counters(self) -> dict[str, float]:
        """What it counts now. Raises as Target.counters does."""

    def end(self, how: Ending) -> None:
        """End it in this way; the next `use` starts it again."""

    def leave_alone(self, seconds: float) -> None:
        """Ask nothing of the target for so long."""

    # --- steps

    def take_step(self, request: StepRequest) -> Step:
        """One measured window. TargetError, with the server's last words, where the target died; WorkloadError where
        the driver failed."""

    def take_profile(self, place: ProfilePlace, *, treatment: str, level: float, window_s: float) -> ProfiledStep:
        """An extra step with a window of `window_s` that is sampled: it belongs to no curve and no verdict. Raises as
        take_step does."""


class OnBench(Target, Protocol):
    """A target on the bench; what is written out here is so of a private one. `effective` has the limits of its cages,
    too."""

    exposure: Exposure
    private: bool
    """Whether Loadframe starts it, so that what is changed of it ends with it."""
    cages: tuple[Cage, ...]
    """As far as they are of this machine."""

    def found_in(self, state: TargetState) -> TargetState:
        """The state in which it is found, where it is to be brought to this one."""
        return state

    def install(self, workload: Workload) -> None:
        """The workload's data."""
        workload.install(self.endpoint())

    def forget(self) -> None:
        """Its cages let go of what can be read again."""

    def empty(self) -> None:
        """Of a cache: forget all that is cached. It must have been stopped."""

    def kill(self) -> None:
        """SIGKILL for its processes, as a crash would have it; `abandon` has to follow."""

    def abandon(self) -> list[ChangeRecord]:
        """It is as it was before, whatever has become of it, or has ended; what has become of each change."""
        self.stop()
        return []

    def leave(self) -> list[ChangeRecord]:
        """The same at the end of all steps; one that is private is destroyed then."""
        return []

    def local(self) -> bool:
        """Whether it is on this machine, as far as can be told."""
        return True

    def first_process(self) -> tuple[int, ...]:
        """The one that all others come from, wherever it is: another one after a restart. Empty where it is out of
        sight."""
        return self.pids()[:1]

    def stage_files(self) -> Sequence[Path]:
        """Files in which it prints statistics of a pipeline's stages."""

    def notes(self) -> tuple[str, ...]:
        """What it has found out that the report has to say."""
