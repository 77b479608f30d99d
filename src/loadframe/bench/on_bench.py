"""What the bench needs of a target, wherever that is: in cages of this machine (caged.py), running already
(attached.py), or on another host (fleet/far.py)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from loadframe.cages.cage import Cage
from loadframe.kinds.base import Target
from loadframe.kinds.exposed import Exposure
from loadframe.model import ChangeRecord, TargetState
from loadframe.workloads.base import Workload


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
