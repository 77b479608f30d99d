"""Trials side by side on the hosts of a fleet: what each task came to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.capacity import Capacity
from loadframe.model.fleet import ClockInStep
from loadframe.model.investigation import Investigation
from loadframe.model.step import Step
from loadframe.model.target import SettingValue

TaskPurpose = Literal["alone", "together", "trial", "block", "capacity", "investigation"]
"""alone: the start on one host while the others rest. together: the start on all hosts at the same time. trial: of a
search for settings. block: of a ladder. capacity: a search for that with one set of settings. investigation: all of one
of a study."""


@dataclass(frozen=True, slots=True)
class SeenBeside:
    """What an observer's host did while a task was under way on another one, from_s to to_s by its own monotonic clock.
    metrics: of WATCHED, those that could be computed; clock: it against the coordinator's."""

    from_s: float
    to_s: float
    clock: ClockInStep
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FleetAttempt:
    """One task on a host. task: its name, which no other task has; number: of the trial, or of the block of the start.
    attempt: 1 for the first one of this trial. boot, process: of the host and the worker that say they did it; "" and 0
    where it was lost. began_s, ended_s: wall clock of this machine. steps: as that host measured them, by its clocks.
    capacity: what a search for it found. investigation: what it concluded; its run folder stays on no host. lost: why
    there is no answer, in words; "" where there is one. failed: why the target would not work. counted: whether it is
    the one that counts for its number. observed: by observer, what it saw meanwhile, of a lost task, too."""

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
