"""Throughput over load: its shape, its bend and where it falls."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Throughput: 1/s, with its 95 % interval; where not settled (the warm-up had ended) a lower bound."""

    load: float
    throughput: float
    throughput_low: float
    throughput_high: float
    latency_p95_ms: float | None
    steps: int = 0
    settled: bool = True


@dataclass(frozen=True, slots=True)
class Peak:
    load: float
    throughput: float


@dataclass(frozen=True, slots=True)
class LoadInterval:
    load: float
    low: float
    high: float

    def meets(self, other: "LoadInterval") -> bool:
        return self.low <= other.high and other.low <= self.high


How = Literal["measured", "extrapolated", ""]
Method = Literal["bracket", "line", "proportion", "curve", ""]


@dataclass(frozen=True, slots=True)
class Saturation(LoadInterval):
    """Where a limit is used up (or the seconds until then). measured: between two loads; extrapolated: beyond all.
    method: what places it within the interval. Both "" in older runs."""

    how: How = ""
    method: Method = ""


@dataclass(frozen=True, slots=True)
class Cliff:
    """Throughput is held at `from_load` and lost at `to_load`; throughput_kept: their ratio."""

    from_load: float
    to_load: float
    throughput_kept: float


@dataclass(frozen=True, slots=True)
class Scalability:
    """Universal Scalability Law X = lambda N / (1 + sigma (N-1) + kappa N (N-1)), kappa >= 0; 95 % intervals."""

    lambda_: float
    sigma: float
    kappa: float
    lambda_interval: tuple[float, float]
    sigma_interval: tuple[float, float]
    kappa_interval: tuple[float, float]
    peak_load: float | None


Shape = Literal["linear", "plateau", "decline", "cliff"]


@dataclass(frozen=True, slots=True)
class More:
    """The best throughput above the lowest level `base`, at `load`, over that at `base`; 95 % interval."""

    load: float
    base: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """closed_loop: a request began when the one before had ended. enough: the lowest level that no higher one exceeds;
    more: the best level over the lowest. gradual: the loads between which throughput levels off, if proven."""

    axis: str
    treatment: str
    points: tuple[CurvePoint, ...]
    shape: Shape
    peak: Peak
    knee: LoadInterval | None
    cliff: Cliff | None
    capacity: LoadInterval | None
    usl: Scalability | None
    warnings: tuple[str, ...] = ()
    closed_loop: bool | None = None
    enough: LoadInterval | None = None
    more: More | None = None
    gradual: LoadInterval | None = None

    @property
    def at_peak(self) -> CurvePoint:
        return next(point for point in self.points if point.load == self.peak.load)
