"""What saturates first and at which load, and how forecasts scored."""

from dataclasses import dataclass
from typing import Literal

from loadframe.model.curve import LoadInterval
from loadframe.model.limit import Limit, NextLimit


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its 90 % interval; an end that the data cannot support is 0 or infinity."""

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
    """The highest throughput (1/s) that the resources and limits allow, at least the one measured, and the load at
    which the first of them saturates. limited_by: a resource, or the id of a limit of the ledger."""

    throughput: Estimate
    load: Estimate
    limited_by: str


@dataclass(frozen=True, slots=True)
class ResourceForecast:
    """One resource. demand_s: seconds of one of its servers per request, at the highest load measured, with its
    interval; growth: the demand at saturation over that at the lowest load, None where nearly 1. utilization: at the
    highest load measured. at_load: where it saturates; None where out of sight."""

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
    """A forecast throughput and the measured one; inside: within the interval."""

    load: float
    predicted: float
    low: float
    high: float
    actual: float
    inside: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """All forecasts scored on this machine: `inside` of `count` held (90 %). median_error: of the relative error."""

    inside: int
    count: int
    median_error: float


@dataclass(frozen=True, slots=True)
class Reached:
    """What measurements showed of a forecast. throughput: the highest, 1/s, at at_load. saturated_at: where the line
    through the lowest load reaches it; None where the curve does not bend and nothing is used up. limited_by: the most
    used resource of those forecast, and its use (0..1). load_inside, throughput_inside: whether the forecast's
    intervals of saturation hold them; None without saturation."""

    at_load: float
    throughput: float
    limited_by: str
    utilization: float
    saturated_at: float | None = None
    load_inside: bool | None = None
    throughput_inside: bool | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a system will do at loads that were not measured, or why that is unknown. source: of the measurements;
    measured: their loads. kind: waiting clients (closed), or an offered rate. saturation, exhaustion: resources, and
    limits of the ledger, in order of the load at which they saturate. refused: the reason; only exhaustion is given
    then. notes: sentences for the reader. scored, reached: by later measurements. at_least: the highest measured
    throughput; without capacity nothing more is known. unexplained: why there is no capacity; throughputs rest on the
    curve alone. curves: real servers of the calibration. first, first_from: what limits this state by its run's case
    study."""

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
