"""Records of a fleet, and the files of a run that have them: of its check; of each step; of trials side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from loadframe.model import Capacity, FleetDrivers, FleetHosts, Investigation, SettingValue, Step
from loadframe.runs.folder import RunFolder
from loadframe_fleet.clocks import ClockInStep

ENCRYPTS = 0.9
"""Share of a CPU: from here on encryption, and not the link, may have limited the transfer."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """boot: id of the kernel's boot. cpus: that Loadframe may use. code: digest of Loadframe's source files, or ""."""

    loadframe: str
    python: str
    kernel: str
    machine: str
    cpus: int
    memory_bytes: int | None
    boot: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class HostClock:
    """The host's wall clock is ahead of the coordinator's by offset_s, within uncertainty_s (half of the shortest round
    trip). drift: seconds per second by which its monotonic clock runs faster, with bounds."""

    offset_s: float
    uncertainty_s: float
    round_trip_s: float
    drift: float
    drift_low: float
    drift_high: float


@dataclass(frozen=True, slots=True)
class HostUse:
    """CPUs in use while the host is idle for us. loudest: the program that used most."""

    busy_cpus: float
    steal_cpus: float
    loudest: str
    loudest_cpus: float


@dataclass(frozen=True, slots=True)
class HostCheck:
    """why_not: it was not reached; the rest is None then. missing: what `loadframe doctor` lacks there."""

    name: str
    roles: tuple[str, ...]
    why_not: str = ""
    facts: HostFacts | None = None
    clock: HostClock | None = None
    use: HostUse | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetLink:
    """A link's round trips (s), bytes per second of one TLS connection in each direction, and the share of a CPU that
    the busier end used. why_not: it was not measured; the rest is 0 then."""

    driver: str
    target: str
    why_not: str = ""
    round_trip_s: float = 0.0
    median_s: float = 0.0
    p99_s: float = 0.0
    pings: int = 0
    there_bytes_per_s: float = 0.0
    back_bytes_per_s: float = 0.0
    there_cpu: float = 0.0
    back_cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class FleetProblem:
    """about: a host, or two. refuses: it must not be used for measurements."""

    about: str
    fact: str
    remedy: str
    refuses: bool = False


@dataclass(frozen=True, slots=True)
class FleetCheck:
    name: str
    hosts: tuple[HostCheck, ...]
    links: tuple[FleetLink, ...]
    problems: tuple[FleetProblem, ...]

    @property
    def fit(self) -> bool:
        return not any(problem.refuses for problem in self.problems)


VoidReason = Literal[
    "agent-lost", "not-ready", "late-start", "load-failed", "recorder-failed", "clock-set", "log-refused",
    "change-failed",
]  # fmt: skip
"""Why a step over many hosts is no measurement. agent-lost: it closed its connection, or was silent for the lease.
not-ready: it could not prepare its share. late-start: it got the start too late, or never. load-failed: its driver
failed. recorder-failed: its recording ended. clock-set: its clock and the coordinator's diverged. log-refused: its
request log is invalid or too large. change-failed: a setting there was not made."""


@dataclass(frozen=True, slots=True)
class DriverInStep:
    """share: of the level. began_s, ended_s: of its first and last request, by the coordinator's clock; 0 where it made
    none. log_bytes: of its request log, sent_bytes: compressed."""

    host: str
    share: int
    clock: ClockInStep
    requests: int
    began_s: float
    ended_s: float
    log_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class LinkUse:
    """An interface's traffic from the target to the drivers, under load. load_bytes_per_s: bodies of answers.
    others_bytes_per_s: the rest, within error_bytes_per_s (a bound). why_not: why that is unknown, or ""."""

    load_bytes_per_s: float = 0.0
    others_bytes_per_s: float = 0.0
    error_bytes_per_s: float = 0.0
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class FleetStep:
    """start_s: the common start (coordinator's CLOCK_MONOTONIC). apart_s: between the first requests of the first and
    the last driver; unsure_s: error of that. watched: clocks of recorded hosts that did not drive. metrics: by host, in
    the window. void: "" for a measurement; else the reason, at void_host. target: the host on which it was recorded, or
    "". moved_bytes_per_s: to each driver in the window."""

    name: str
    level: float
    start_s: float
    duration_s: float
    drivers: tuple[DriverInStep, ...] = ()
    apart_s: float = 0.0
    unsure_s: float = 0.0
    watched: Mapping[str, ClockInStep] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    void: VoidReason | Literal[""] = ""
    void_host: str = ""
    void_fact: str = ""
    target: str = ""
    moved_bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[str, LinkUse] = field(default_factory=dict)


WATCHED = (
    "system.cpu.count", "system.cpu.busy_cores", "system.cpu.utilization", "system.cpu.steal",
    "system.memory.available", "system.memory.used", "system.memory.limit",
    "driver.cpu.cores", "driver.saturation", "target.cpu.cores", "target.memory.rss",
)  # fmt: skip
"""Metrics kept of each host; the rest is in its recording."""


def watched_of(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: metrics[name] for name in WATCHED if name in metrics}


TaskPurpose = Literal["alone", "together", "trial", "block", "capacity", "investigation"]
"""alone: the start on one host while the others rest. together: the start on all hosts at once. trial: of a search for
settings. block: of a ladder. capacity: a search with one set of settings. investigation: a whole one."""


@dataclass(frozen=True, slots=True)
class Observed:
    """An observer's host while a task ran on another one, from_s to to_s by its own monotonic clock (`clock`)."""

    from_s: float
    to_s: float
    clock: ClockInStep
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FleetAttempt:
    """task: its unique name; number: of the trial, or of the block of the start. boot, process: of the host and the
    worker that did it; "" and 0 if it was lost. began_s, ended_s: wall clock here. steps: by that host's clocks. lost:
    why there is no answer; failed: why the target would not work. counted: this attempt counts for its number."""

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
    observed: Mapping[str, Observed] = field(default_factory=dict)


Record = TypeVar("Record")


def recording_of(host: str) -> str:
    return f"raw/host-{host}.lfr"


@dataclass(frozen=True, slots=True)
class Lines(Generic[Record]):
    """A run's file; empty where the run had no fleet."""

    file: str
    schema: str
    record: type[Record]

    def add(self, run: RunFolder, record: Record) -> None:
        run.append_line(self.file, self.schema, record)

    def of(self, run: RunFolder) -> list[Record]:
        """RunError for damaged ones."""
        return run.records(self.file, self.schema, self.record)


STEPS = Lines("fleet.jsonl", "fleet-step", FleetStep)
DRIVERS = Lines("fleet-drivers.jsonl", "fleet-drivers", FleetDrivers)
LINKS = Lines("fleet-links.jsonl", "fleet-link", FleetLink)
ATTEMPTS = Lines("fleet-trials.jsonl", "fleet-trial", FleetAttempt)
HOSTS = Lines("fleet-hosts.jsonl", "fleet-hosts", FleetHosts)
