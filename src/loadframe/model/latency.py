"""How long all requests at one level took, not only a few quantiles of them."""

from __future__ import annotations

from dataclasses import dataclass

from loadframe.model.step import Latency


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """One request in `one_in` took longer than `latency_ms`: at 2 that is the median, at 1,000 p99.9."""

    one_in: float
    latency_ms: float


@dataclass(frozen=True, slots=True)
class LatencyDistribution:
    """The latencies of the requests of the windows of some steps: of one treatment, at one level. Steps
    are merged by their counts.

    requests: how many there are. left_out: how many failed, which are not among them: an error that comes at once is no
    short response time. failed: those of them that failed, in runs of versions that did not leave them out. latency: of
    all of them together. points: one_in rises from 1, the shortest, to `requests`, the longest.
    """

    treatment: str
    level: float
    steps: int
    requests: int
    failed: int
    latency: Latency
    points: tuple[LatencyPoint, ...]
    left_out: int = 0
