"""What the bench needs of a target, wherever that is: in cages of this machine (caged.py), running already
(attached.py), or on another host (fleet/far_target.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from loadframe.cages.cage import Cage
from loadframe.kinds.exposed import Exposure
from loadframe.model import ChangeRecord, CounterSpec, Endpoint, SettingValue, TargetState
from loadframe.workloads.base import Workload


class OnBench(Protocol):
    """A target on the bench. Where nothing else is said, as kinds.base.Target."""

    kind: str
    exposure: Exposure

    @property
    def private(self) -> bool:
        """Whether Loadframe starts it, so that what is changed of it ends with it."""

    @property
    def embedded(self) -> bool:
        """Whether it runs inside the driver's processes."""

    @property
    def cages(self) -> tuple[Cage, ...]:
        """Its cages, as far as they are of this machine."""

    @property
    def counter_specs(self) -> tuple[CounterSpec, ...]:
        """The counters that `counters` answers."""

    def create(self) -> None:
        """As Target.create."""

    def check(self, state: TargetState) -> None:
        """As Target.check."""

    def found_in(self, state: TargetState) -> TargetState:
        """The state in which it is found, where it is to be brought to this one."""

    def start(self, state: TargetState) -> None:
        """As Target.start."""

    def apply(self, state: TargetState) -> None:
        """As Target.apply."""

    def install(self, workload: Workload) -> None:
        """The workload's data."""

    def reset(self) -> None:
        """As Target.reset."""

    def forget(self) -> None:
        """Its cages let go of what can be read again."""

    def empty(self) -> None:
        """Of a cache: forget all that is cached. It must have been stopped."""

    def kill(self) -> None:
        """SIGKILL for its processes, as a crash would have it; `abandon` has to follow."""

    def stop(self) -> None:
        """As Target.stop."""

    def abandon(self) -> list[ChangeRecord]:
        """It is as it was before, whatever has become of it, or has ended; what has become of each change."""

    def leave(self) -> list[ChangeRecord]:
        """The same at the end of all steps."""

    def destroy(self) -> None:
        """As Target.destroy."""

    def effective(self) -> dict[str, SettingValue]:
        """As Target.effective, with the limits of its cages."""

    def counters(self) -> dict[str, float]:
        """As Target.counters."""

    def local(self) -> bool:
        """Whether it is on this machine, as far as can be told."""

    def pids(self) -> tuple[int, ...]:
        """Its processes on this machine, the one that all others come from first."""

    def first_process(self) -> tuple[int, ...]:
        """That one, wherever it is: another one after a restart. Empty where it is out of sight."""

    def processes(self) -> Mapping[str, tuple[int, ...]]:
        """`pids` by component."""

    def stage_files(self) -> Sequence[Path]:
        """Files in which it prints statistics of a pipeline's stages."""

    def endpoint(self) -> Endpoint:
        """As Target.endpoint."""

    def healthy(self) -> bool:
        """Whether it answers now."""

    def version(self) -> str:
        """As Target.version."""

    def log_tail(self, lines: int = 20) -> str:
        """As Target.log_tail."""

    def describe(self) -> Mapping[str, str]:
        """As Target.describe."""

    def notes(self) -> tuple[str, ...]:
        """What it has found out that the report has to say."""
