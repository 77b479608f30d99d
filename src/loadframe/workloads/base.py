"""What every workload can do. One contract suite (tests/workloads) runs against each of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from loadframe.model import AnswersCompared, Endpoint, SettingValue
from loadframe.workloads.request_log import Requests


@runtime_checkable
class AsksForObjects(Protocol):
    """A workload that asks for objects, the same ones again and again."""

    def objects_at(self, level: float) -> int:
        """How many objects a level has."""

    def warm(self, endpoint: Endpoint, level: float) -> None:
        """Have a cache fetch those that it lacks. TargetError where it does not answer."""


@runtime_checkable
class MakesObjects(Protocol):
    """A workload that makes what the target serves, in a folder of the target's (Endpoint.options["files"]). Where the
    endpoint says `ELSEWHERE`, others have made them, on the target's machine, and they are the same."""

    def make_objects(self, endpoint: Endpoint) -> None:
        """As `install`, without what a driver needs. TargetError where there is no room for them."""


ELSEWHERE = "elsewhere"
"""In an endpoint's options in place of `files`."""


@runtime_checkable
class TellsTimes(Protocol):
    """A workload whose driver tells how long its requests took, in a unit that it may have wrong."""

    def users(self, level: float) -> float | None:
        """How many requests are in progress at a level, one after the other; None where it does not say that."""


@runtime_checkable
class HasUsers(Protocol):
    """A workload whose users pause between an answer and the next request."""

    def think_s(self) -> float:
        """For so long on average; 0 where they do not."""


@runtime_checkable
class CountsWork(Protocol):
    """A workload whose requests have a name of their own."""

    work_unit: str
    """What it is done with one of at a time: "entries". Throughput is in these per second."""


@runtime_checkable
class TellsMore(Protocol):
    """A workload that finds out something that the report of a run has to say."""

    def notes(self) -> tuple[str, ...]:
        """What that is, in sentences; it may become more with each step."""


@runtime_checkable
class ComparesAnswers(Protocol):
    """A workload that asks the target what other programs tell, too."""

    def answers(self) -> tuple[AnswersCompared, ...]:
        """What both said; it may become more with each step."""


@runtime_checkable
class SendsRequests(TellsMore, Protocol):
    """A workload that sends what the study declares, or what was recorded of others. Its notes say what of a file is
    sent and what is not; StudyError where it cannot be read."""

    def check_requests(self, *, running: bool) -> None:
        """StudyError where what is to be sent cannot be had: a file, a secret of the environment. running: of a server
        that Loadframe did not start also where its data would be changed, and the study does not say that they may."""

    def unchecked(self, target_kind: str) -> str:
        """Of which answers no more than a part is checked, in words; "" for none."""


@runtime_checkable
class ToldTheWarmUp(Protocol):
    """A workload whose driver is told how much of a step is its warm-up."""

    def expect(self, warmup_s: float) -> None:
        """Before a step: how much of its beginning does not count, as far as that is known."""


@runtime_checkable
class Marked(Protocol):
    """A driver that knows why a step should be read with care."""

    @property
    def marks(self) -> tuple[str, ...]:
        """After its end: flags of the step, of model.FLAGS."""


@runtime_checkable
class TakesOptions(Protocol):
    """A workload that can go on with other options and the same data."""

    def with_options(self, changed: Mapping[str, SettingValue]) -> "Workload":
        """The same workload with these options, and all others as they are. StudyError for what does not suit it."""


STAGES_FILE = "stages.jsonl"
"""In a step's folder: what the driver prints of the stages of a pipeline (docs/pipelines.md), if it is one."""


@runtime_checkable
class PrintsStages(Protocol):
    """A driver that prints that elsewhere, too."""

    def stage_files(self) -> Sequence[Path]:
        """The files of its step that it may be in; they may come while it runs."""


class Driver(Protocol):
    """The load driver while it runs."""

    def pids(self) -> tuple[int, ...]:
        """The processes that make the load (and, for an embedded target, are the target)."""

    def running(self) -> bool:
        """Whether it still makes load."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end, at most timeout_s; True if it has ended."""

    def waiting(self) -> int:
        """In an open loop: how many requests should have begun by now and have not ended; 0 in a closed loop."""

    def offered(self, start_s: float, end_s: float) -> int | None:
        """In an open loop: how many requests should have begun after start_s and not after end_s (CLOCK_MONOTONIC).
        None in a closed loop."""

    def moved_bytes(self, start_s: float, end_s: float) -> int | None:
        """After its end: bytes of the answers that ended after start_s and not after end_s (CLOCK_MONOTONIC). None
        where the driver does not count them."""

    def requests(self) -> Requests:
        """What it did, after its end. WorkloadError, with what the driver printed, where it failed."""

    def kill(self) -> None:
        """End it at once, with all its processes. Idempotent; never raises."""


class Workload(Protocol):
    """A load driver and what it does to the target. Given its options when made; StudyError for bad ones."""

    kind: str
    target_kinds: frozenset[str]
    axes: frozenset[str]
    axis_unit: str
    one_lock: bool
    """True where waiting_ms is time waited for a lock that only one request can hold, and the rest of the latency is
    time for which it was held."""
    runs_to_completion: bool
    """True where a step ends when its work is done (a burst), False where it ends when its time is up."""

    @property
    def operations(self) -> tuple[str, ...]:
        """Names of the kinds of request; a request log refers to them by index. Where the driver names them, those that
        it has named by the end of a step."""

    @property
    def judged(self) -> tuple[str, ...]:
        """The operations whose requests are the throughput and the latency; the others are reported separately. Where a
        step runs until its work is done, its window is the time of these requests."""

    def check_level(self, level: float) -> int:
        """The level as the whole number that it must be. StudyError where it cannot be one of this workload."""

    def trials(self) -> Sequence[Sequence[str]]:
        """Commands that end well for a user who can run the driver: who may read its programs and its scripts."""

    def install(self, endpoint: Endpoint) -> None:
        """Once in the life of the data: make the schema, in place of one that was there. TargetError where an attached
        server has one that is not ours; MissingTool where the driver's program is not installed."""

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Outside the measured window: bring the data to what this level needs. TargetError where the target refuses
        the level."""

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> Driver:
        """Start the load; scratch files go into `folder`. duration_s is ignored by workloads that run to completion."""

    def after_step(self, endpoint: Endpoint) -> None:
        """Tidy up what a step left behind (a killed driver's half-done jobs), outside the measured window."""

    def remove(self, endpoint: Endpoint) -> None:
        """At the end, where the target goes on: take away all that install made. Does nothing where it is gone."""
