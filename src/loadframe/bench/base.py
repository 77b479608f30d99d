"""The contract between experiments and bench (`RealBench`, and the simulated one of the tests); and what the bench
needs of a target."""

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
    """States of the target are declared under a name, and steps are taken in them."""

    study: Study
    run: RunFolder
    workload: Workload

    @property
    def axis_unit(self) -> str: ...
    @property
    def work_unit(self) -> str: ...
    @property
    def treatments(self) -> int:
        """The number of declared states."""

    @property
    def start_state(self) -> TargetState:
        """As the study declares it."""

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
        """kind: of an alternative's target. cold_of: the treatment whose steps all begin with an empty cache here.
        remedy: the one that led to the state."""

    def check(self, state: TargetState, kind: str | None = None) -> None:
        """Raises as Target.check does. kind: of the target, if not the study's own."""

    def use(self, name: str) -> dict[str, SettingValue]:
        """Bring the target to a declared state; returns its effective settings. TargetError."""

    def starts_fresh(self, name: str) -> bool:
        """As `use`; returns whether the target has served no step since its start."""

    def carries_over(self, name: str) -> bool:
        """Whether earlier requests may matter to a step."""

    def recover(self, name: str) -> None:
        """Restart the target, whatever has become of it."""

    def is_cache(self, name: str) -> bool:
        """Whether a treatment's target is a cache that the workload asks for objects."""

    @property
    def kind(self) -> str: ...
    @property
    def is_local(self) -> bool:
        """Whether the target is on this machine, as far as known."""

    @property
    def free_disk_bytes(self) -> float:
        """Free space of the file system that holds the target's data; infinite where that is not ours."""

    @property
    def endpoint(self) -> Endpoint: ...
    def counters(self) -> dict[str, float]:
        """Raises as Target.counters does."""

    def end(self, how: Ending) -> None:
        """The next `use` starts it again."""

    def leave_alone(self, seconds: float) -> None:
        """Send nothing to the target for so long."""

    def take_step(self, request: StepRequest) -> Step:
        """One measured window. TargetError, with its last log lines, where the target died; WorkloadError."""

    def take_profile(self, place: ProfilePlace, *, treatment: str, level: float, window_s: float) -> ProfiledStep:
        """An extra sampled step, in no curve and no verdict. Raises as take_step does."""


class OnBench(Target, Protocol):
    """A target on the bench, with defaults for a private one. `effective` includes the limits of its cages."""

    exposure: Exposure
    private: bool
    """Whether Loadframe starts it, so that changes end with it."""
    cages: tuple[Cage, ...]
    """Its cages on this machine."""
    initial: TargetState | None = None
    """Its state before it is brought to another one; None: it is started in the one asked for."""

    def install(self, workload: Workload) -> None:
        workload.install(self.endpoint())

    def forget(self) -> None:
        """Release what its cages can read again."""

    def empty(self) -> None:
        """Empty a cache, which must have been stopped."""

    def kill(self) -> None:
        """SIGKILL its processes, as in a crash; `abandon` has to follow."""

    def abandon(self) -> list[ChangeRecord]:
        """End or restore it, whatever has become of it; returns the outcome of each change."""
        self.stop()
        return []

    def leave(self) -> list[ChangeRecord]:
        """As `abandon`, at the end of all steps; a private target is destroyed afterwards."""
        return []

    def local(self) -> bool:
        """Whether it is on this machine, as far as known."""
        return True

    def first_process(self) -> tuple[int, ...]:
        """The parent of its processes: differs after a restart. Empty where it is not visible."""
        return self.pids()[:1]

    def stage_files(self) -> Sequence[Path]:
        """Files to which it prints statistics of a pipeline's stages."""

    def notes(self) -> tuple[str, ...]:
        """Notes for the report."""
