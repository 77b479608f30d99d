"""What is found of a fleet before it is loaded: its hosts, the links between them, and what speaks against it."""

from dataclasses import dataclass

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
