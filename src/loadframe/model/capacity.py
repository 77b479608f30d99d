"""The highest load that meets an objective, and the trials that found it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.curve import LoadInterval
from loadframe.model.verdict import FleetHosts, Verdict

LevelClass = Literal["meets", "misses", "undecided"]
CapacityEnd = Literal["found", "undecided", "above-range", "below-range"]
"""found: bracketed as narrowly as asked. undecided: the budget ended first. above-range: the highest level meets.
below-range: the lowest misses."""


@dataclass(frozen=True, slots=True)
class CapacityLevel:
    """seconds: of load; error_probability: that its class (or the likelier one) is wrong."""

    load: float
    trials: int
    met: int
    seconds: float
    classified: LevelClass
    error_probability: float


@dataclass(frozen=True, slots=True)
class CapacityTrial:
    """step: 0 where the target failed in it; seconds: under load. missed: the part of the objective, or "". offered:
    requests per second that should have begun; None in a closed loop. counted: False where it shows nothing of the
    level."""

    step: int
    load: float
    seconds: float
    missed: str
    throughput: float
    offered: float | None
    latency_p95_ms: float
    ended_early: bool
    counted: bool
    note: str = ""

    @property
    def met(self) -> bool:
        return not self.missed


@dataclass(frozen=True, slots=True)
class CapacityObjective:
    """None: not asked for. latencies_ms: other fields of Latency."""

    loss_ratio: float | None = None
    latency_p95_ms: float | None = None
    latencies_ms: Mapping[str, float] = field(default_factory=dict)
    error_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class AlternativeCapacity:
    """On a host of a fleet. end: "" where the target failed. verdict: against the capacity as given on that host."""

    name: str
    host: str
    end: CapacityEnd | Literal[""]
    load: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """low: the highest level shown to meet the objective, high: the lowest shown to miss it. load: best estimate, None
    where even the lowest level misses. error_probability: that the capacity lies outside low..high. held_s: time under
    loads from `low` on that met. seconds_above_share: of load_seconds, above `load`. open_loop: latencies count from
    the intended start. expected: by a guess, or a forecast from trials. alternatives: on hosts of a fleet; hosts: how
    equal these are."""

    axis: str
    axis_unit: str
    objective: CapacityObjective
    end: CapacityEnd
    load: float | None
    low: float | None
    high: float | None
    error_probability: float
    precision: float
    held_s: float
    load_seconds: float
    seconds_above_share: float
    open_loop: bool
    levels: tuple[CapacityLevel, ...]
    trials: tuple[CapacityTrial, ...]
    expected: LoadInterval | None = None
    run: str = ""
    warnings: tuple[str, ...] = ()
    alternatives: tuple[AlternativeCapacity, ...] = field(default=(), metadata={"alias": "beside"})
    hosts: FleetHosts | None = None

    @property
    def reported(self) -> None:
        """A search for a capacity changes nothing."""

    @property
    def load_unit(self) -> str:
        return self.axis_unit or self.axis.replace("_", " ")
