"""Trials side by side on the hosts of a fleet: the result of each task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.capacity import Capacity
from loadframe.model.fleet import ClockInStep
from loadframe.model.investigation import Investigation
from loadframe.model.step import Step
from loadframe.model.target import SettingValue

TaskPurpose = Literal["alone", "together", "trial", "block", "capacity", "investigation"]
"""alone: the start on one host while the others rest. together: the start on all hosts at once. trial: of a search for
settings. block: of a ladder. capacity: a search with one set of settings. investigation: a whole one."""


@dataclass(frozen=True, slots=True)
class SeenBeside:
    """An observer's host while a task ran on another one, from_s to to_s by its own monotonic clock. metrics: those of
    WATCHED that could be computed; clock: against the coordinator's."""

    from_s: float
    to_s: float
    clock: ClockInStep
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FleetAttempt:
    """One task on a host. task: its unique name; number: of the trial, or of the block of the start. attempt: 1 for the
    first one. boot, process: of the host and the worker that did it; "" and 0 if it was lost. began_s, ended_s: wall
    clock here. steps: by that host's clocks. capacity, investigation: its conclusion; no host keeps its run folder.
    lost: why there is no answer; failed: why the target would not work. counted: the one that counts for its number.
    observed: by observer."""

    task: str
    purpose: TaskPurpose
    number: int
    attempt: int
    host: str
    changes: Mapping[str, SettingValue]
    began_s: float
    ended_s: float
    boot: str = ""
    process: int = 0
    steps: tuple[Step, ...] = ()
    lost: str = ""
    failed: str = ""
    counted: bool = True
    capacity: Capacity | None = None
    investigation: Investigation | None = None
    observed: Mapping[str, SeenBeside] = field(default_factory=dict)
