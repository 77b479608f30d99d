"""The highest load that meets an objective, and the trials that found it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.curve import LoadInterval
from loadframe.model.fleet import FleetHosts
from loadframe.model.verdict import Verdict

LevelClass = Literal["meets", "misses", "undecided"]

CapacityEnd = Literal["found", "undecided", "above-range", "below-range"]
"""found: bracketed as narrowly as was asked for. undecided: the budget ended first. above-range: the highest level
still meets. below-range: the lowest one misses."""


@dataclass(frozen=True, slots=True)
class CapacityLevel:
    """What trials say of one level. seconds: of load in them; error_probability: that its class is wrong (of an
    undecided level: that the likelier one would be)."""

    load: float
    trials: int
    met: int
    seconds: float
    classified: LevelClass
    error_probability: float


@dataclass(frozen=True, slots=True)
class CapacityTrial:
    """One trial of a search. step: its number in the run, 0 where the target failed in it; seconds: for which it loaded
    the target. missed: what of the objective it missed, in words; "" where it met. offered: requests per second that
    should have begun; None in a closed loop. ended_early: it was over before its time, as it could only miss. counted:
    False where it says nothing of the level, and why, in words, in `note`."""

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
        """Whether it met the objective."""
        return not self.missed


@dataclass(frozen=True, slots=True)
class CapacityObjective:
    """What a level must meet: shares of requests that may be lost (0..1), p95 latency in ms; None: not asked for.
    latencies_ms: of the other fields of Latency, by name. error_ratio: the share that may fail."""

    loss_ratio: float | None = None
    latency_p95_ms: float | None = None
    latencies_ms: Mapping[str, float] = field(default_factory=dict)
    error_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class CapacityBeside:
    """The capacity with other settings, those of an alternative of the study, on a host of a fleet. end: "" where the
    target failed with them. verdict: on it against the capacity as given on the same host, within bounds; one that is
    open to a side has the other bound as its ratio. failed: why the target did not work with them."""

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
    """The highest load that meets an objective. low: the highest level shown to meet it, high: the lowest one shown to
    miss it; None where there is none. load: the best estimate between them, None where even the lowest level misses.
    error_probability: that the capacity lies outside of low..high. precision: how close they had to be. held_s: for how
    long in all loads at `low` or above met. load_seconds: all time under load; seconds_above_share: of it the share
    above `load`. open_loop: whether latencies count from the intended start of each request. expected: where a
    guess, or a forecast from the trials below, expected it. beside: with other settings, on the hosts of a fleet;
    hosts: how alike these are."""

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
    beside: tuple[CapacityBeside, ...] = ()
    hosts: FleetHosts | None = None
