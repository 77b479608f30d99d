"""What saturates first and at which load, how a load goes on as the database grows, and how forecasts fared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from loadframe.model.curve import LoadInterval
from loadframe.model.limit import Limit, NextLimit


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that was worked out, with its 90 % interval. An end that the data cannot carry: 0, infinity."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """What one window at this load should show: throughput in 1/s, and p95 latency where latencies were measured."""

    load: float
    throughput: Estimate
    latency_p95_ms: Estimate | None


@dataclass(frozen=True, slots=True)
class ForecastCapacity:
    """The highest throughput (1/s) that the resources and limits allow, never below what was measured, and the load at
    which the first of them is used up. limited_by: a resource, or the id of a limit of the ledger."""

    throughput: Estimate
    load: Estimate
    limited_by: str


@dataclass(frozen=True, slots=True)
class ResourceForecast:
    """One resource. demand_s: seconds of one of its servers per request, at the highest load measured, with its
    interval; growth: the demand at its saturation, as a ratio to that at the lowest load; None where that is nearly
    none. utilization: at the highest load measured. at_load: where it saturates; None where that is out of sight."""

    resource: str
    demand_s: float
    demand_low_s: float
    demand_high_s: float
    servers: float
    utilization: float
    growth: Estimate | None
    at_load: Estimate | None


@dataclass(frozen=True, slots=True)
class Scored:
    """A forecast throughput next to the measured one; inside: within the interval."""

    load: float
    predicted: float
    low: float
    high: float
    actual: float
    inside: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """All forecasts that were ever scored on this machine: of `count`, `inside` were within their interval of 90 %;
    median_error: of |predicted / actual - 1|."""

    inside: int
    count: int
    median_error: float


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of a forecast, once its loads were measured. throughput: the highest, 1/s, at_load. saturated_at: where
    the line through the lowest load reaches it; None where the curve does not bend and nothing is used up. limited_by:
    the resource that was used most there, of those that were forecast, and how much (0..1). load_inside,
    throughput_inside: whether the forecast's intervals of saturation hold them; None without saturation."""

    at_load: float
    throughput: float
    limited_by: str
    utilization: float
    saturated_at: float | None = None
    load_inside: bool | None = None
    throughput_inside: bool | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a system will do at loads that were not measured, or why that cannot be told.

    source: where the measurements come from; measured: their loads. kind: the load is clients that wait for their
    answers (closed), or a rate that is offered. saturation: the first to saturate first. exhaustion: limits of the
    ledger with the load at which they run out, the first first. refused: the reason, then there is nothing else but
    exhaustion. notes: what a reader must know, in sentences. scored, reached: what was measured later. at_least: the
    highest throughput that a load gave; without capacity it is all that is known of it. unexplained: why there is no
    capacity: the throughputs are forecast from the curve alone. curves: of real servers, by which the intervals were
    made. first: of a run, what its case study names as what limits this state; first_from: its load.
    """

    source: str
    axis: str
    kind: Literal["closed", "rate"]
    measured: tuple[float, ...]
    at: tuple[ForecastPoint, ...] = ()
    capacity: ForecastCapacity | None = None
    saturation: tuple[ResourceForecast, ...] = ()
    exhaustion: tuple[Limit, ...] = ()
    refused: str | None = None
    scored: tuple[Scored, ...] = ()
    notes: tuple[str, ...] = ()
    reached: Reached | None = None
    at_least: float = 0.0
    unexplained: str | None = None
    curves: int = 0
    first: NextLimit | None = None
    first_from: LoadInterval | None = None

    @property
    def limited(self) -> bool:
        """Whether what limits it lies within the loads measured."""
        return self.first_from is not None and self.first_from.load <= self.measured[-1]


@dataclass(frozen=True, slots=True)
class LoadWindow:
    """A part of a load. before, after: entries in the database at its ends; seconds: it took; reads: of pages or blocks
    from beyond the database's memory within it, None where they are not counted."""

    before: float
    after: float
    seconds: float
    reads: float | None = None


@dataclass(frozen=True, slots=True)
class Memories:
    """What the database may hold in memory, in bytes by name (a buffer pool, the cage); the smallest is the one beyond
    which reads are counted. entry_bytes: what an entry takes with its indexes. Where either is not known no end of
    memory is foretold."""

    bytes: Mapping[str, float] = field(default_factory=dict)
    entry_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryEnd:
    """Where the database leaves its memory. entries: by the cost, with its 90 % interval; by_reads: by its own counter
    of reads, None where that did not begin to rise, or is not known. times: the cost of an entry at the end of what was
    seen over that before. confirmed: both rise, and their intervals meet, or lie less than a factor of 2 apart. memory:
    the name of the one whose size lies that near; empty where none does."""

    entries: LoadInterval
    by_reads: LoadInterval | None
    times: float
    confirmed: bool
    memory: str = ""


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """rate: entries/s at this size. seconds: to fill an empty database up to it."""

    entries: float
    rate: Estimate
    seconds: Estimate


@dataclass(frozen=True, slots=True)
class GrowthRefusal:
    """A size that is not forecast, and why, in a sentence."""

    entries: float
    because: str


@dataclass(frozen=True, slots=True)
class GrowthScored:
    """A forecast beside what was measured later; inside: the rate, the seconds."""

    entries: float
    rate: float
    rate_inside: bool
    seconds: float
    seconds_inside: bool


@dataclass(frozen=True, slots=True)
class GrowthForecast:
    """How a load goes on. entries: the largest size seen. windows: seen. now: the rate there. end: of memory, None
    where none was seen. walls: sizes at which a memory ends that was not left yet, by its name. refused: why
    nothing at all is forecast."""

    entries: float
    windows: int
    now: Estimate | None = None
    end: MemoryEnd | None = None
    walls: Mapping[str, float] = field(default_factory=dict)
    at: tuple[GrowthPoint, ...] = ()
    not_at: tuple[GrowthRefusal, ...] = ()
    scored: tuple[GrowthScored, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str | None = None
