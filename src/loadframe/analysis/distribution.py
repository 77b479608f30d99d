"""Latency histograms merged over several steps: summary, points to draw, share in a latency band."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis.arrays import Floats, Whole
from loadframe.model import Latency, LatencyPoint

POINTS_PER_DECADE, MOST_POINTS = 40, 300
"""For drawing: 40 per decade show every bend, 300 reach one request in thirty million."""


def summary(latencies_ms: Floats, counts: Whole) -> Latency:
    """Summary of a histogram with at least one request: latencies (ascending) and counts, (bins,). To merge steps, add
    counts."""
    reached = np.cumsum(counts)
    p50, p95, p99, p999 = (_quantile(latencies_ms, reached, one_in) for one_in in (2.0, 20.0, 100.0, 1000.0))
    return Latency(
        mean_ms=float(np.dot(latencies_ms, counts.astype(np.float64))) / int(reached[-1]),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=float(latencies_ms[np.flatnonzero(counts)[-1]]),
        p999_ms=p999,
    )


def points(latencies_ms: Floats, counts: Whole) -> tuple[LatencyPoint, ...]:
    """The distribution as at most MOST_POINTS points and the usual percentiles, evenly spaced on the scale of
    HdrHistogram's plots (Tene): percentile q at one_in = 1 / (1 - q). Arrays as for `summary`."""
    reached = np.cumsum(counts)
    requests = int(reached[-1])
    decades = math.log10(requests)
    some = np.geomspace(1.0, requests, min(MOST_POINTS, 1 + math.ceil(POINTS_PER_DECADE * decades)))
    usual = [2.0, *(10.0**power for power in range(1, math.floor(decades) + 1))]
    places = sorted({float(place) for place in (*some[:-1], *usual) if place < requests})
    shown = [LatencyPoint(place, _quantile(latencies_ms, reached, place)) for place in places]
    return (*shown, LatencyPoint(float(requests), float(latencies_ms[np.flatnonzero(counts)[-1]])))


def _quantile(latencies_ms: Floats, reached: Whole, one_in: float) -> float:
    requests = int(reached[-1])
    rank = max(requests - math.floor(requests / one_in + 1e-9), 1)
    return float(latencies_ms[np.searchsorted(reached, rank)])


DELAYED_ACK_MS = (38.0, 48.0)
"""TCP_DELACK_MIN is 40 ms (include/net/tcp.h); timers of 100 to 1000 Hz are off by up to a tick."""
HIGHEST_CONTRAST = 1000.0


@dataclass(frozen=True, slots=True)
class Band:
    """share: of the requests, in the band. contrast: their number over that of the fuller of two equally wide bands,
    the next below and the second above; about 1 for a broad distribution."""

    share: float
    contrast: float


def band(latency_ms: NDArray[np.float32], low_ms: float, high_ms: float) -> Band | None:
    if not len(latency_ms):
        return None
    width_ms = high_ms - low_ms
    edges = (low_ms - width_ms, low_ms, high_ms, high_ms + width_ms, high_ms + 2 * width_ms)
    below, inside, _, above = (
        int(((latency_ms >= first) & (latency_ms < last)).sum()) for first, last in pairwise(edges)
    )
    contrast = inside / max(below, above) if below or above else HIGHEST_CONTRAST
    return Band(inside / len(latency_ms), min(contrast, HIGHEST_CONTRAST))
