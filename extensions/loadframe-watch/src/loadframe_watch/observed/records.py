"""What was observed of a system under its users' load, and what was learnt from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from loadframe.model.curve import Curve, LoadInterval, Saturation
from loadframe.model.step import Observations

ResponseIs = Literal["mean", "p95"]
Basis = Literal["throughput", "response"]
Driver = Literal["load", "hour", "either"]


@dataclass(frozen=True, slots=True)
class ObservedMapping:
    """Which series of a file is what; None: the one with the usual name. A term is NAME, NAME{label="value", ...}
    (matching series are added up), TERM / NUMBER, or TERM / TERM. Series whose name ends like a counter's (_total,
    _count, _sum, _bucket), and those of `counters`, become rates per second. use: by resource, a share from 0 to 1."""

    load: str | None = None
    throughput: str | None = None
    response: str | None = None
    use: Mapping[str, str] = field(default_factory=dict)
    counters: tuple[str, ...] = ()
    response_is: ResponseIs = "mean"

    def completed(self, usual: "ObservedMapping") -> "ObservedMapping":
        return replace(
            self,
            load=self.load or usual.load,
            throughput=self.throughput or usual.throughput,
            response=self.response or usual.response,
            response_is=self.response_is if self.response else usual.response_is,
            use={**usual.use, **self.use},
        )


@dataclass(frozen=True, slots=True)
class Observed:
    """Rows in time order, (n,) each; NaN where a cell is missing. time_s: of the clock of the file. load: in any unit.
    throughput: 1/s. response_s: the mean or the p95 of the row's window. use: share of each resource, 0 to 1. servers:
    as in `Observations`. notes: on what was left out or changed."""

    name: str
    time_s: tuple[float, ...]
    load: tuple[float, ...]
    throughput: tuple[float, ...] | None = None
    response_s: tuple[float, ...] | None = None
    use: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    servers: Mapping[str, float] = field(default_factory=dict)
    response_is: ResponseIs = "mean"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedDemand:
    """One resource by the utilisation law: use = background + demand x throughput, 95 % intervals over time blocks.
    demand_s: seconds of the whole resource per request; None without a throughput. highest_use: of the highest level,
    at highest_load. full_at: where the use would reach 1, with an interval that also covers a use that is not linear;
    None where it does not rise with the load, or provably flattens. cheaper: each request needs less of it the more
    there are, with no end in sight. driver: "hour" where the hour of the day provably drives its use: then it has no
    demand and never saturates; "either" where that is unknown. growing: the demand of the upper half of the loads over
    that of the lower half, from growing_low to growing_high (infinite where the lower half may need none); None where
    not proven to differ."""

    resource: str
    highest_use: float
    highest_load: float
    demand_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    background: float | None = None
    full_at: Saturation | None = None
    growing: float | None = None
    growing_low: float | None = None
    growing_high: float | None = None
    servers: float = 1.0
    flattens: bool = False
    cheaper: bool = False
    driver: Driver = "load"


@dataclass(frozen=True, slots=True)
class Apart:
    """When a resource was used by 90 % or more though such loads, or higher ones, typically take less than 70 % of it
    (usual). use, highest_use: median and maximum of these rows; spells: stretches of them. days: on how many of
    days_seen, UTC; None without a wall clock. hours_from_s, hours_to_s: seconds since midnight between which all
    (always) or nine in ten were. weekday: 0 for Monday, if common to all. response: over the usual response time at
    their loads."""

    resource: str
    rows: int
    spells: int
    use: float
    highest_use: float
    usual: float
    low_load: float
    high_load: float
    first_s: float
    last_s: float
    longest_s: float
    days: int | None = None
    days_seen: int | None = None
    hours_from_s: float | None = None
    hours_to_s: float | None = None
    always: bool = False
    weekday: int | None = None
    response: float | None = None


@dataclass(frozen=True, slots=True)
class GrowsByItself:
    """With time, at equal load. use: at the end; per_day, low_per_day, high_per_day: share of the whole, 95 %; ends_s,
    ends_low_s, ends_high_s: when it would be full (as Observed.time_s; infinite: unknown)."""

    resource: str
    use: float
    per_day: float
    low_per_day: float
    high_per_day: float
    ends_s: float
    ends_low_s: float
    ends_high_s: float


@dataclass(frozen=True, slots=True)
class RegimeChange:
    """From at_s (as Observed.time_s) on `what` ("the use of cpu") is `ratio` times as high as before at equal load."""

    at_s: float
    what: str
    ratio: float


@dataclass(frozen=True, slots=True)
class MissingRows:
    """Rows that an even pace of one every usual_s would have: number, pauses and seconds in all, and the longest pause
    with the time of its first missing row."""

    usual_s: float
    rows: int = 0
    pauses: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0
    longest_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class ObservedData:
    """used: rows of the last regime with a load and anything else; incomplete: used rows with an empty cell; gaps:
    pauses of more than a few rows; span_s: from the first used row to the last; block_s, blocks: rows closer than
    block_s are correlated, and count as one; outliers: rows far from their neighbours at equal load. response_s,
    slow_response_s: median and p99 of the response time."""

    rows: int
    used: int
    incomplete: int
    gaps: int
    span_s: float
    block_s: float
    blocks: int
    outliers: int
    missing: MissingRows
    response_s: float | None = None
    slow_response_s: float | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """apart: resources near their end without the load to explain it. growing: with time. curve: over levels of the
    load; None without throughput and response. basis: its throughput is requests per second, or 1 / response time.
    response_bend: the load from which on the response time is 1.5 times that at the lowest third of the loads.
    came_near: any resource was near its end, or the throughput bent. observations: the same rows by level and time
    block, for a forecast."""

    name: str
    data: ObservedData
    curve: Curve | None
    basis: Basis
    demands: tuple[ObservedDemand, ...]
    response_bend: LoadInterval | None
    regimes: tuple[RegimeChange, ...]
    came_near: bool
    highest_load: float
    apart: tuple[Apart, ...] = ()
    growing: tuple[GrowsByItself, ...] = ()
    observations: Observations | None = None
    notes: tuple[str, ...] = ()
