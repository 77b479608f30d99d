"""The report of redis-benchmark 7: how many requests, in what time, and how their latencies are distributed.

It prints the latencies twice as cumulative counts (at ever higher percentiles, and at ever higher latencies), once as
quantiles. All of them are points of one distribution; between two points requests are taken to lie evenly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadframe.formats.plain_numbers import finite, whole

TITLE = re.compile(r"^====== (?P<title>[^=\r\n]{1,100}) ======", re.M)
REQUESTS = re.compile(r"^ +(?P<requests>\d{1,15}) requests completed in ", re.M)
RATE = re.compile(r"throughput summary: (?P<rate>[0-9.]{1,30}) requests per second")
POINT = re.compile(r"<= (?P<ms>[0-9.]{1,30}) milliseconds \(cumulative count (?P<count>\d{1,15})\)")
QUANTILES = re.compile(r"avg +min +p50 +p95 +p99 +max *\n(?P<numbers>[ 0-9.]{1,200})")
SHARES = {1: 0.0, 2: 0.50, 3: 0.95, 4: 0.99, 5: 1.0}
"""Column of the quantiles -> the share of the requests at or below it."""
AT_MOST = 200
"""Values that a part's distribution is told by, evenly spread over its requests, beside the points."""
LONGEST_MS = 3_600_000.0


@dataclass(frozen=True)
class Report:
    """name: of the test, in lower case. length_s: how long it took. values_ms, counts: its latencies."""

    name: str
    requests: int
    length_s: float
    values_ms: NDArray[np.float64]
    counts: NDArray[np.int64]


def read_report(text: str) -> Report:
    """ValueError, in words, for text that is no report of redis-benchmark."""
    title, requests, rate = TITLE.search(text), REQUESTS.search(text), RATE.search(text)
    if title is None or requests is None or rate is None:
        raise ValueError("it is no report of redis-benchmark 7 (title, number of requests, throughput summary)")
    count, per_s = whole(requests["requests"]) or 0, finite(rate["rate"]) or 0.0
    if count < 1 or not 0 < per_s <= 1e10:
        raise ValueError(f"it has {count} requests at {per_s:g}/s")
    values_ms, counts = _spread(_points(text, count), count)
    return Report(title["title"].strip().lower(), count, count / per_s, values_ms, counts)


def _points(text: str, count: int) -> list[tuple[int, float]]:
    """Cumulative counts and the latencies that they lie at or below, rising in both. ValueError."""
    points = [(int(found["count"]), finite(found["ms"])) for found in POINT.finditer(text)]
    if (quantiles := QUANTILES.search(text)) is not None:
        numbers = [finite(word) for word in quantiles["numbers"].split()]
        points += [(round(share * count), numbers[at]) for at, share in SHARES.items() if at < len(numbers)]
    known = [(many, ms) for many, ms in points if ms is not None and 0 <= ms <= LONGEST_MS and 0 <= many <= count]
    if len(known) < len(points) or not known:
        raise ValueError("its distribution has more requests than it sent, or latencies that cannot be")
    rising: list[tuple[int, float]] = []
    for many, ms in sorted(known, key=lambda point: (point[1], point[0])):
        if rising and many <= rising[-1][0]:
            continue
        rising.append((many, ms))
    if rising[-1][0] < count:
        raise ValueError(f"its distribution has {rising[-1][0]:,} of its {count:,} requests")
    return rising


def _spread(points: list[tuple[int, float]], count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Latencies and how many requests had each: between two points evenly, in as many parts as there are requests or
    AT_MOST of a whole."""
    many = np.array([0, *(point[0] for point in points)], dtype=np.float64)
    ms = np.array([points[0][1], *(point[1] for point in points)], dtype=np.float64)
    edges = np.unique(np.concatenate([many, np.linspace(0, count, min(count, AT_MOST) + 1).round()])).astype(np.int64)
    middles = (edges[:-1] + edges[1:]) / 2
    return np.interp(middles, many, ms), np.diff(edges)
