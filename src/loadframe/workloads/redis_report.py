"""The reports of redis-benchmark 7 and of memtier_benchmark 2: how many requests, in what time, and how their latencies
are distributed. memtier's has an HdrHistogram.

redis-benchmark prints the latencies twice as cumulative counts (at ever higher percentiles, and at ever higher
latencies), once as quantiles, of which p95 and p99 lie far from its percentiles (93.75, 96.875, 98.4375, ...). All of
them are points of one distribution; between two points requests are taken to lie evenly.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadframe.formats.hdr_histogram import decode
from loadframe.formats.json_text import parse_json
from loadframe.formats.plain_numbers import finite, whole

TITLE = re.compile(r"^====== (?P<title>[^=\r\n]{1,100}) ======", re.M)
REQUESTS = re.compile(r"^ +(?P<requests>\d{1,15}) requests completed in ", re.M)
RATE = re.compile(r"throughput summary: (?P<rate>[0-9.]{1,30}) requests per second")
POINT = re.compile(r"<= (?P<ms>[0-9.]{1,30}) milliseconds \(cumulative count (?P<count>\d{1,15})\)")
QUANTILES = re.compile(r"avg +min +p50 +p95 +p99 +max *\n(?P<numbers>[ 0-9.]{1,200})")
MEMTIER = {"Sets": "set", "Gets": "get"}
"""Part of memtier's report -> kind of request. Its latencies are in microseconds."""
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


@dataclass(frozen=True)
class Memtier:
    """started_s: when, time of day. reports: of each kind of request, over the whole run. seconds: for each of them,
    the number of requests in each second (from 0)."""

    started_s: float
    reports: tuple[Report, ...]
    seconds: tuple[tuple[tuple[int, int], ...], ...]


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


def read_memtier(text: str) -> Memtier:
    """What memtier_benchmark writes by --json-out-file. ValueError."""
    try:
        stats = parse_json(text)["ALL STATS"]
        started_s, length_s = (float(stats["Runtime"][key]) / 1000.0 for key in ("Start time", "Total duration"))
        if not 0 < length_s <= LONGEST_MS or not 0 < started_s < 1e12:
            raise ValueError(f"it took {length_s:g} s from {started_s:g} on")
        found = [
            _kind(name, stats[key], length_s) for key, name in MEMTIER.items() if stats.get(key, {}).get("Count", 0)
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no report of memtier_benchmark 2 ({error!r})") from error
    return Memtier(started_s, tuple(each for each, _ in found), tuple(seconds for _, seconds in found))


def _kind(name: str, part: dict[str, Any], length_s: float) -> tuple[Report, tuple[tuple[int, int], ...]]:
    histogram = decode(part["Percentile Latencies"]["Histogram log format"]["Compressed Histogram"])
    seconds = tuple((int(second), int(row["Count"])) for second, row in part["Time-Serie"].items())
    counted, total = int(histogram.counts.sum()), sum(count for _, count in seconds)
    if not counted == total == part["Count"]:
        raise ValueError(f"{name}: it counts {part['Count']}, its histogram {counted}, its seconds {total}")
    if any(not 0 <= second <= length_s or count < 0 for second, count in seconds):
        raise ValueError(f"{name}: it has seconds that are not of its {length_s:g} s")
    return Report(name, counted, length_s, histogram.middles / 1000.0, histogram.counts), seconds


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
