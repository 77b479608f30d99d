"""What every workload can do, and its registration record: `KIND` in its own module, or an entry point of the group
`loadframe.workloads`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from loadframe.changes.places import OwnPlace, Place
from loadframe.errors import MissingTool
from loadframe.host.environment import located
from loadframe.model import AnswersCompared, Endpoint, Knob, Requirement, SettingValue
from loadframe.workloads.options import OptionRule
from loadframe.workloads.request_log import Requests

ELSEWHERE = "elsewhere"
STAGES_FILE = "stages.jsonl"
"""File in a step's folder: what the driver prints about the stages of a pipeline (docs/pipelines.md)."""


@runtime_checkable
class AsksForObjects(Protocol):
    def objects_at(self, level: float) -> int: ...

    def warm(self, endpoint: Endpoint, level: float) -> None:
        """Have a cache fetch the objects that it lacks. TargetError if it does not answer."""


@runtime_checkable
class MakesObjects(Protocol):
    """Makes what the target serves, in Endpoint.options["files"]; if the endpoint has `ELSEWHERE`, the target's machine
    has identical objects already."""

    def make_objects(self, endpoint: Endpoint) -> None:
        """As `install`, without what a driver needs. TargetError if there is no room."""


@runtime_checkable
class MakesThings(Protocol):
    """Makes things in a server that Loadframe did not start, in a place of their own."""

    def own_place(self, endpoint: Endpoint) -> OwnPlace:
        """TargetError if there is no such place."""


@runtime_checkable
class TellsTimes(Protocol):
    """Its driver reports how long its requests took, in a unit that may be wrong."""

    def users(self, level: float) -> float | None:
        """Requests in progress at a level, one after the other; None if the level does not say it."""


@runtime_checkable
class HasUsers(Protocol):
    def think_s(self) -> float:
        """The mean pause between an answer and the next request; 0 without pauses."""


@runtime_checkable
class CountsWork(Protocol):
    work_unit: str
    """The noun of throughput: "entries" for entries per second."""


@runtime_checkable
class TellsMore(Protocol):
    def notes(self) -> tuple[str, ...]:
        """Sentences for the report; each step may add some."""


@runtime_checkable
class ComparesAnswers(Protocol):
    """Asks the target for what other programs also report."""

    def answers(self) -> tuple[AnswersCompared, ...]:
        """The answers of both; each step may add some."""


@runtime_checkable
class SendsRequests(TellsMore, Protocol):
    """Sends what the study declares, or what was recorded. StudyError if a file cannot be read."""

    def check_requests(self, *, running: bool) -> None:
        """StudyError if a file or a secret of the environment is missing. running: for a server that Loadframe did not
        start, also if its data would be changed and the study does not allow it."""

    def unchecked(self, target_kind: str) -> str:
        """Which answers are only partly checked, in words; "" for none."""


@runtime_checkable
class ToldTheWarmUp(Protocol):
    def expect(self, warmup_s: float) -> None:
        """Before a step: how much of its beginning does not count, as far as known."""


@runtime_checkable
class Marked(Protocol):
    @property
    def marks(self) -> tuple[str, ...]:
        """After its end: flags of the step, from model.FLAGS."""


@runtime_checkable
class TakesOptions(Protocol):
    def with_options(self, changed: Mapping[str, SettingValue]) -> "Workload":
        """The same workload with these options changed. StudyError for invalid ones."""


class Driver(Protocol):
    def pids(self) -> tuple[int, ...]:
        """What makes the load (and, for an embedded target, is the target)."""

    def running(self) -> bool: ...

    def wait(self, timeout_s: float) -> bool:
        """True if it has ended within timeout_s."""

    def waiting(self) -> int:
        """In an open loop: how many requests should have begun by now and have not ended; 0 in a closed loop."""

    def offered(self, start_s: float, end_s: float) -> int | None:
        """In an open loop: requests due after start_s and not after end_s (CLOCK_MONOTONIC); None in a closed loop."""

    def moved_bytes(self, start_s: float, end_s: float) -> int | None:
        """After its end: bytes of answers, by the end of their requests (CLOCK_MONOTONIC). None if not counted."""

    def requests(self) -> Requests:
        """What it did, after its end. WorkloadError with what the driver printed if it failed."""

    def kill(self) -> None:
        """End it at once, with all its processes. Idempotent; never raises."""


class Workload(Protocol):
    """A load driver and what it does to the target. Made with its options; StudyError for bad ones."""

    kind: str
    target_kinds: frozenset[str]
    axes: frozenset[str]
    axis_unit: str
    one_lock: bool
    """Whether waiting_ms is the wait for a lock that one request holds at a time."""
    runs_to_completion: bool
    """True if a step ends when its work is done (a burst), False if it ends when its time is up."""

    @property
    def operations(self) -> tuple[str, ...]:
        """The kinds of request, to which the log's indices refer; a driver may add some until a step ends."""

    @property
    def judged(self) -> tuple[str, ...]:
        """The operations whose requests are the throughput and the latency. A step that runs until its work is done has
        the time of these requests as its window."""

    def check_level(self, level: float) -> int:
        """StudyError if it cannot be a level of this workload."""

    def trials(self) -> Sequence[Sequence[str]]:
        """Commands that succeed for a user who may read the driver's programs and scripts."""

    def install(self, endpoint: Endpoint) -> None:
        """Once in the life of the data: make the schema, replacing one that was there. TargetError if a server has one
        that is not ours; MissingTool if the driver's program is not installed."""

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Outside the measured window: bring the data to this level. TargetError if the target refuses."""

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> Driver:
        """Scratch files go into `folder`. duration_s is ignored by workloads that run to completion."""

    def after_step(self, endpoint: Endpoint) -> None:
        """Tidy up what a step left behind (a killed driver's half-done jobs), outside the measured window."""

    def remove(self, endpoint: Endpoint) -> None:
        """At the end, if the target goes on: remove all that install made. Does nothing if it is gone."""


Make = Callable[..., Workload]
"""Called with the options and the allowance; with Declared if the kind has `tables`, and `axis` if it has
`any_axis`."""


@dataclass(frozen=True)
class KindOfWorkload:
    """options: name -> rule, default. tables: of `[workload]`, by their names in Declared; a study with others is
    refused. required: tables and options that a study must give, whose defaults mean "missing". any_axis: the axis is
    the study's own word. knobs: options that are part of what is studied; `raises` names the stage (pipeline.STAGE).
    examined: what `loadframe doctor` shows, too. places: how an `own_place` is found again, by the `kind` of its
    address."""

    kind: str
    make: Make
    options: Mapping[str, tuple[OptionRule, SettingValue]]
    requirements: Callable[[str], tuple[Requirement, ...]]
    other_axes: Mapping[str, Make] = field(default_factory=dict)
    tables: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    any_axis: bool = False
    knobs: tuple[Knob, ...] = ()
    examined: Callable[[], Iterable[Requirement]] = tuple
    places: Mapping[str, Callable[[Mapping[str, str]], Place]] = field(default_factory=dict)


def program(kind: str, name: str, package: str) -> Requirement:
    """A program on PATH, of this Debian package."""
    return Requirement(kind, name, located(name), f"sudo apt-get install {package}")


def demand(requirements: tuple[Requirement, ...]) -> None:
    """MissingTool for the first that is not there."""
    for requirement in requirements:
        if requirement.present is None:
            raise MissingTool(
                f"The workload {requirement.kind} needs {requirement.what}, which is not installed.",
                remedy=f"Install it: {requirement.how_to_get_it}",
            )
