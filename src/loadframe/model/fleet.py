"""What is kept of a fleet: its hosts and the links between them, and what speaks against it, before it is loaded; how
alike hosts are on which trials run side by side; and of each step over many hosts who drove, how far each clock was
off, what each did, why it is void, and the limits of hosts and links."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.limit import Limit
from loadframe.model.verdict import Compared

ENCRYPTS = 0.9
"""Of a CPU: where encryption used so much of one, it and not the link may have set what was carried."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What a host is. boot: one running kernel has one. cpus: that Loadframe may use there. code: a digest of
    Loadframe's own source files there; "" where it does not tell."""

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
    """The host's wall clock is ahead of the coordinator's by offset_s, give or take uncertainty_s (a bound: half of the
    shortest round trip). drift: seconds per second by which its monotonic clock runs faster, with its bounds."""

    offset_s: float
    uncertainty_s: float
    round_trip_s: float
    drift: float
    drift_low: float
    drift_high: float


@dataclass(frozen=True, slots=True)
class HostUse:
    """Who uses its CPUs while nothing is asked of it, in CPUs. loudest: the name of the program that used most."""

    busy_cpus: float
    steal_cpus: float
    loudest: str
    loudest_cpus: float


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One host. why_not: it was not reached; the rest is None then. missing: what `loadframe doctor` lacks there."""

    name: str
    roles: tuple[str, ...]
    why_not: str = ""
    facts: HostFacts | None = None
    clock: HostClock | None = None
    use: HostUse | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetLink:
    """From a driver to a target. Round trips of a message in seconds; bytes per second of one TLS connection there and
    back, and the share of a CPU that the busier end used. why_not: it was not measured; the rest is 0 then."""

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
    """What speaks against a fleet. about: a host, or two. refuses: nothing is to be measured with it so."""

    about: str
    fact: str
    remedy: str
    refuses: bool


@dataclass(frozen=True, slots=True)
class FleetCheck:
    """The whole check."""

    name: str
    hosts: tuple[HostCheck, ...]
    links: tuple[FleetLink, ...]
    problems: tuple[FleetProblem, ...]

    @property
    def fit(self) -> bool:
        """Whether nothing refuses it."""
        return not any(each.refuses for each in self.problems)


Likeness = Literal["alike", "differ", "unknown"]
"""alike: the whole interval lies within the margin. differ: the ratio is beyond the margin, and its interval leaves out
1. unknown: neither is proved."""


@dataclass(frozen=True, slots=True)
class HostRatio:
    """Throughput as given of one host beside another one, or of a host beside itself, with an interval. blocks: their
    number."""

    host: str
    beside: str
    ratio: float
    low: float
    high: float
    blocks: int
    likeness: Likeness


@dataclass(frozen=True, slots=True)
class FleetHosts:
    """How alike the hosts of a search are (A/A: the same settings on each). levels: at which. margin: ratios from
    1 / margin to margin are alike. hosts: each beside the middle one, measured one after another. together: each while
    all are loaded beside itself while the others rest."""

    levels: tuple[float, ...]
    margin: float
    hosts: tuple[HostRatio, ...]
    together: tuple[HostRatio, ...]


VoidReason = Literal[
    "agent-lost",
    "not-ready",
    "late-start",
    "load-failed",
    "recorder-failed",
    "clock-set",
    "log-refused",
    "change-failed",
]
"""Why a step over many hosts is no measurement. agent-lost: it closed its connection or said nothing for the lease.
not-ready: it could not prepare its share. late-start: it heard of the start when it was over, or not at all.
load-failed: its driver failed. recorder-failed: nothing is recorded there any more. clock-set: its clock and the
coordinator's did not go on alike. log-refused: what it sent is no request log, or more than is taken. change-failed: a
setting there was not made."""


@dataclass(frozen=True, slots=True)
class ClockInStep:
    """A host's monotonic clock against the coordinator's, by the shortest round trip before the step and after it:
    theirs is ahead by offset_s, give or take uncertainty_s (a bound); later_s: by so much after the step, which began
    at at_s and was measured again at later_at_s (the coordinator's clock). exchanges: how many each time."""

    offset_s: float
    uncertainty_s: float
    round_trip_s: float
    at_s: float
    later_s: float
    later_uncertainty_s: float
    later_at_s: float
    exchanges: int

    def ours_s(self, theirs_s: float) -> float:
        """When that was by the coordinator's clock. Between the two measurements the offset is taken to grow evenly."""
        return self.at_s + (theirs_s - self.offset_s - self.at_s) / (1.0 + self._rate)

    def theirs_s(self, ours_s: float) -> float:
        """What its clock showed then."""
        return ours_s + self.offset_s + self._rate * (ours_s - self.at_s)

    @property
    def _rate(self) -> float:
        apart_s = self.later_at_s - self.at_s
        return (self.later_s - self.offset_s) / apart_s if apart_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class DriverInStep:
    """One host's part. share: of the level. began_s, ended_s: its first request began, its last one ended, by the
    coordinator's clock; 0 where it made none. log_bytes: of its request log, sent_bytes: as it came, compressed."""

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
    """What went through the interface of a host in the direction from the target to the drivers while the load went on.
    load_bytes_per_s: bodies of its answers. others_bytes_per_s: what was not of the load, give or take
    error_bytes_per_s (a bound). why_not: why that cannot be seen; "" where it can."""

    load_bytes_per_s: float = 0.0
    others_bytes_per_s: float = 0.0
    error_bytes_per_s: float = 0.0
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class FleetStep:
    """One step. start_s: the instant at which all were to begin (the coordinator's CLOCK_MONOTONIC). apart_s: from the
    first driver's first request to the last driver's first one; unsure_s: by so much that may be wrong (the two largest
    uncertainties together). watched: clocks of hosts that were recorded and did not drive, by name. metrics: of each
    host in the window, by name (see WATCHED). void: "" for a measurement; else the reason, about void_host. target: the
    host on which the target was recorded, "" for none. moved_bytes_per_s: what came to each driver in the window.
    links: what went through the interface of each driver, and of the target's host, beside the load."""

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


DriversLimit = Literal["drivers", "link", "target", "not proven"]
"""What all drivers of a fleet together are held up by. drivers: fewer give less. target: fewer give as much, and no
link is full. link: fewer give as much, and what comes from the target is what its link carries."""


@dataclass(frozen=True, slots=True)
class FleetDrivers(Compared):
    """All drivers against fewer of them, at the same level, in alternating blocks. moved_bytes_per_s: what came from
    the target, by all; link_bytes_per_s: the most that one link from the target to a driver carried by itself; None
    where either is not known."""

    level: float
    drivers: tuple[str, ...]
    fewer: tuple[str, ...]
    limit: DriversLimit
    moved_bytes_per_s: float | None = None
    link_bytes_per_s: float | None = None

    @property
    def limit_the_curve(self) -> bool:
        """Whether they, or the link to them, are what the curve shows: it then says nothing about the target."""
        return self.limit in ("drivers", "link")


@dataclass(frozen=True, slots=True)
class FleetLimit:
    """A limit of one host. driver: of the link from that host, the target's, to this one; "" for what is of the host
    itself, also for all that leaves it. error: by so much its use may be wrong (a bound), where that is known. unseen:
    why its use cannot be seen; the limit then says nothing of it."""

    host: str
    driver: str
    limit: Limit
    error: float | None = None
    unseen: str = ""


WATCHED = (
    "system.cpu.count",
    "system.cpu.busy_cores",
    "system.cpu.utilization",
    "system.cpu.steal",
    "system.memory.available",
    "system.memory.used",
    "system.memory.limit",
    "driver.cpu.cores",
    "driver.saturation",
    "target.cpu.cores",
    "target.memory.rss",
)
"""What is kept of each host in a step; the rest is in its recording."""
