"""What saturates first and at which load, and how forecasts scored."""

from dataclasses import dataclass
from typing import Literal

from loadframe.model.curve import LoadInterval
from loadframe.model.limit import Limit, NextLimit


@dataclass(frozen=True, slots=True)
class Estimate:
    """90 % interval; an end that the data cannot support is 0 or infinity."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    load: float
    throughput: Estimate
    latency_p95_ms: Estimate | None


@dataclass(frozen=True, slots=True)
class ForecastCapacity:
    """The most that resources and limits allow, 1/s, and the load at which the first saturates. limited_by: a resource,
    or the id of a limit."""

    throughput: Estimate
    load: Estimate
    limited_by: str


@dataclass(frozen=True, slots=True)
class ResourceForecast:
    """demand_s: of one server per request, at the highest load measured; growth: the demand at saturation over that at
    the lowest load. utilization: at the highest load. at_load: where it saturates; None where out of sight."""

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
    load: float
    predicted: float
    low: float
    high: float
    actual: float
    inside: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    """`inside` of `count` 90 % intervals held. median_error: relative."""

    inside: int
    count: int
    median_error: float


@dataclass(frozen=True, slots=True)
class Reached:
    """throughput: the highest measured, 1/s. saturated_at: where the line through the lowest load reaches it; None
    where the curve does not bend and nothing is used up. limited_by: the most used resource of those forecast, and its
    use."""

    at_load: float
    throughput: float
    limited_by: str
    utilization: float
    saturated_at: float | None = None
    load_inside: bool | None = None
    throughput_inside: bool | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """measured: loads. kind: waiting clients (closed), or an offered rate. saturation, exhaustion: resources, and
    limits, by the load at which they saturate. refused: the reason; only exhaustion is given then. scored, reached: by
    later measurements. at_least: the highest measured throughput. unexplained: why there is no capacity. curves: real
    servers of the calibration. first, first_from: what limits this state by its run's case study."""

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
        return self.first_from is not None and self.first_from.load <= self.measured[-1]
