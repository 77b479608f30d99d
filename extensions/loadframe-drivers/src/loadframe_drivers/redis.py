"""The requests of redis-benchmark, in parts (redis_relay.py), or of memtier_benchmark. Both report counts and
distributions, not requests: memtier_benchmark 2 an HdrHistogram; redis-benchmark 7 cumulative counts, at its
percentiles (93.75, 96.875, 98.4375, ...) and at latencies, and quantiles, whose p95 and p99 lie far from these
percentiles. All are points of one distribution, interpolated linearly."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from loadframe.connections.address import parted
from loadframe.errors import StudyError
from loadframe.formats.hdr_histogram import decode
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.plain_numbers import finite
from loadframe.formats.plain_numbers import whole as whole_number
from loadframe.host.environment import importing, located, python
from loadframe.model import Endpoint, Requirement
from loadframe.workloads.base import demand, program
from loadframe.workloads.command_lines import LineError, Lines, Second, whole_lines
from loadframe.workloads.common import registration
from loadframe.workloads.databases import MARK
from loadframe.workloads.options import choice, text, whole
from loadframe.workloads.own_program import OwnProgram
from loadframe_drivers.redis_keys import OwnKeys
from loadframe_drivers.redis_relay import MEMTIER_LATE_S

TITLE = re.compile(r"^====== (?P<title>[^=\r\n]{1,100}) ======", re.M)
REQUESTS = re.compile(r"^ +(?P<requests>\d{1,15}) requests completed in ", re.M)
RATE = re.compile(r"throughput summary: (?P<rate>[0-9.]{1,30}) requests per second")
POINT = re.compile(r"<= (?P<ms>[0-9.]{1,30}) milliseconds \(cumulative count (?P<count>\d{1,15})\)")
QUANTILES = re.compile(r"avg +min +p50 +p95 +p99 +max *\n(?P<numbers>[ 0-9.]{1,200})")
KINDS_OF_MEMTIER = {"Sets": "set", "Gets": "get"}
"""Part of memtier's report -> kind of request. Its latencies are in microseconds."""
SHARES = {1: 0.0, 2: 0.50, 3: 0.95, 4: 0.99, 5: 1.0}
"""Column of the quantiles -> the share of the requests at or below it."""
AT_MOST = 200
"""Values that describe a part's distribution, evenly spread over its requests, in addition to the points."""
LONGEST_MS = 3_600_000.0


@dataclass
class Report:
    """name: of the test, in lower case. length_s: how long it took. values_ms, counts: its latencies. seconds: (second
    from 0, requests), if they were counted."""

    name: str
    requests: int
    length_s: float
    values_ms: NDArray[np.float64]
    counts: NDArray[np.int64]
    seconds: tuple[tuple[int, int], ...] = ()
    begin_s: float = 0.0

    def of_lines(self, number: int, lines: Lines) -> Iterator[Second]:
        """Its seconds, each with latencies drawn from those of the whole; or itself. number: of its line."""
        operation = lines.grouped(self.name)
        if not self.seconds:
            values_ms, counts = self.values_ms, self.counts
            yield Second(
                number, self.begin_s, self.length_s, self.requests,
                operation=operation, values_ms=values_ms, counts=counts,
            )  # fmt: skip
            return
        drawn_ms = np.random.default_rng(number).permutation(np.repeat(self.values_ms, self.counts))
        ends = np.cumsum([count for _, count in self.seconds])
        for (second, count), values_ms in zip(self.seconds, np.split(drawn_ms, ends[:-1]), strict=True):
            length_s, ones = min(1.0, max(self.length_s - second, SHORTEST_S)), np.ones(count, dtype=np.int64)
            yield Second(number, second, length_s, count, operation=operation, values_ms=values_ms, counts=ones)


def read_report(text: str) -> Report:
    """A report of redis-benchmark 7. ValueError for other text."""
    title, requests, rate = TITLE.search(text), REQUESTS.search(text), RATE.search(text)
    if title is None or requests is None or rate is None:
        raise ValueError("it is no report of redis-benchmark 7 (title, number of requests, throughput summary)")
    count, per_s = whole_number(requests["requests"]) or 0, finite(rate["rate"]) or 0.0
    if count < 1 or not 0 < per_s <= 1e10:
        raise ValueError(f"it has {count} requests at {per_s:g}/s")
    values_ms, counts = _spread(_points(text, count), count)
    return Report(title["title"].strip().lower(), count, count / per_s, values_ms, counts)


def read_memtier(text: str) -> tuple[float, list[Report]]:
    """What memtier_benchmark writes with --json-out-file: its start (time of day, s), and a report for each kind of
    request. ValueError."""
    try:
        stats = parse_json(text)["ALL STATS"]
        started_s, length_s = (float(stats["Runtime"][key]) / 1000.0 for key in ("Start time", "Total duration"))
        if not 0 < length_s <= LONGEST_MS or not 0 < started_s < 1e12:
            raise ValueError(f"it took {length_s:g} s from {started_s:g} on")
        reports = [
            _kind(name, stats[key], length_s)
            for key, name in KINDS_OF_MEMTIER.items()
            if stats.get(key, {}).get("Count", 0)
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no report of memtier_benchmark 2 ({error!r})") from error
    return started_s, reports


def _kind(name: str, part: dict[str, Any], length_s: float) -> Report:
    histogram = decode(part["Percentile Latencies"]["Histogram log format"]["Compressed Histogram"])
    seconds = tuple((int(second), int(row["Count"])) for second, row in part["Time-Serie"].items())
    counted, total = int(histogram.counts.sum()), sum(count for _, count in seconds)
    if not counted == total == part["Count"]:
        raise ValueError(f"{name}: it counts {part['Count']}, its histogram {counted}, its seconds {total}")
    if any(not 0 <= second <= length_s or count < 0 for second, count in seconds):
        raise ValueError(f"{name}: it has seconds that are not of its {length_s:g} s")
    return Report(name, counted, length_s, histogram.middles / 1000.0, histogram.counts, seconds)


def _points(text: str, count: int) -> list[tuple[int, float]]:
    """Cumulative counts and the latencies that they lie at or below, ascending in both. ValueError."""
    points = [(int(match["count"]), finite(match["ms"])) for match in POINT.finditer(text)]
    if (quantiles := QUANTILES.search(text)) is not None:
        numbers = [finite(word) for word in quantiles["numbers"].split()]
        points += [(round(share * count), numbers[at]) for at, share in SHARES.items() if at < len(numbers)]
    known = [(many, ms) for many, ms in points if ms is not None and 0 <= ms <= LONGEST_MS and 0 <= many <= count]
    if len(known) < len(points) or not known:
        raise ValueError("its distribution has more requests than it sent, or latencies that cannot be")
    rising: list[tuple[int, float]] = []
    for many, ms in sorted(known, key=lambda point: (point[1], point[0])):
        if not rising or many > rising[-1][0]:
            rising.append((many, ms))
    if rising[-1][0] < count:
        raise ValueError(f"its distribution has {rising[-1][0]:,} of its {count:,} requests")
    return rising


def _spread(points: list[tuple[int, float]], count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Latencies and their counts: evenly between two points, in at most AT_MOST equal parts of the requests."""
    many = np.array([0, *(point[0] for point in points)], dtype=np.float64)
    ms = np.array([points[0][1], *(point[1] for point in points)], dtype=np.float64)
    edges = np.unique(np.concatenate([many, np.linspace(0, count, min(count, AT_MOST) + 1).round()])).astype(np.int64)
    middles = (edges[:-1] + edges[1:]) / 2
    return np.interp(middles, many, ms), np.diff(edges)


PROGRAM, MEMTIER, PORT, REPORT = "redis-benchmark", "memtier_benchmark", "6379", "report.json"
GET_MEMTIER = "build it from github.com/RedisLabs/memtier_benchmark, and put it into PATH; Debian 12 has no package"
SHORTEST_S = 0.01
RATIO = re.compile(r"\d{1,6}:\d{1,6}")
TESTS = (
    "get", "set", "incr", "lpush", "rpush", "lpop", "rpop", "sadd", "hset", "spop", "zadd", "zpopmin",
    "lrange_100", "lrange_300", "lrange_500", "lrange_600", "mset", "ping_inline", "ping_mbulk",
)  # fmt: skip
MAKES_NOTHING = ("get", "lpop", "rpop", "spop", "zpopmin", "ping_inline", "ping_mbulk")
GROWS = ("lpush", "rpush", "lrange_100", "lrange_300", "lrange_500", "lrange_600")
"""Each push lengthens `mylist`, also those that redis-benchmark sends first to have something to read."""
WITHOUT_VALUES = ("incr", "sadd", "zadd")
"""Tests whose values do not have data_bytes."""
BYTES_OF_A_KEY = 200
"""Bytes of a key in addition to its value (which jemalloc rounds up, to less than twice): name, entry, and the table,
which has twice the entries while it grows. A test measures it."""
MOST_CLIENTS = 10_000


@dataclass(frozen=True)
class RedisOptions:
    program: str = choice(PROGRAM, (PROGRAM, MEMTIER), "which of the two makes the load")
    test: str = choice("get", TESTS, "which of redis-benchmark's tests")
    ratio: str = text("1:10", "memtier_benchmark: how often SET and GET are sent, SETS:GETS")
    data_bytes: int = whole(3, 1, 1 << 29, "size of a value in bytes")
    keys: int = whole(100_000, 1, 2**31 - 1, "number of keys, chosen evenly")
    pipeline: int = whole(1, 1, 10_000, "requests that a client sends at once")
    threads: int = whole(1, 1, 256, "threads of the program, which share the clients")


class Redis(OwnProgram[RedisOptions]):
    kind = "redis"
    target_kinds = frozenset({"service"})
    axes = frozenset({"clients"})
    axis_unit = "clients"
    model = RedisOptions
    levels = (1, MOST_CLIENTS)
    files = ("parts.jsonl",)

    def set_up(self) -> None:
        super().set_up()
        self.late_s = MEMTIER_LATE_S if self.options.program == MEMTIER else 0.0
        if not RATIO.fullmatch(self.options.ratio) or not any(map(int, self.options.ratio.split(":"))):
            raise StudyError(
                f"workload.options.ratio = {self.options.ratio!r} is no ratio of SET and GET.",
                remedy="Give two whole numbers, as program = memtier_benchmark takes them: 1:10.",
            )

    def trials(self) -> Sequence[Sequence[str]]:
        return ((self.options.program, "--version"), importing("loadframe_drivers.redis_relay"))

    def demand(self) -> None:
        if self.options.program == PROGRAM:
            demand(requirements(self.kind))
        else:
            demand((Requirement(self.kind, MEMTIER, located(MEMTIER), GET_MEMTIER),))

    def own_place(self, endpoint: Endpoint) -> OwnKeys:
        return OwnKeys.found(endpoint.address, endpoint.options[MARK], self.needs_bytes())

    def needs_bytes(self) -> int | None:
        """The most memory that the keys take; None if each request adds to them."""
        given = self.options
        test = given.test if given.program == PROGRAM else ""
        if test in MAKES_NOTHING:
            return 0
        if test in GROWS:
            return None
        return given.keys * (BYTES_OF_A_KEY + (0 if test in WITHOUT_VALUES else 2 * given.data_bytes))

    def install(self, endpoint: Endpoint) -> None:
        """Also marks the database of a Redis that is not ours."""
        super().install(endpoint)
        if (keys := OwnKeys.of(endpoint)) is not None:
            keys.make()

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """TargetError if the database is no longer ours."""
        super().set_level(endpoint, level)
        if (keys := OwnKeys.of(endpoint)) is not None:
            keys.check()

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        host, port = parted(endpoint.address, PORT)
        given, seconds = self.options, f"{duration_s:.3f}"
        keys = OwnKeys.of(endpoint)
        database = "0" if keys is None else str(keys.database)
        if given.program == MEMTIER:
            threads = min(given.threads, level)
            per_thread = level // threads
            return [
                *python(
                    "loadframe_drivers.redis_relay", seconds, str(threads * per_thread), str(folder / REPORT), MEMTIER
                ),
                *("-s", host, "-p", port, "-t", str(threads), "-c", str(per_thread), "--ratio", given.ratio),
                *("-d", str(given.data_bytes), "--key-maximum", str(given.keys), "--pipeline", str(given.pipeline)),
                *("--select-db", database, "--hide-histogram", "--json-out-file", str(folder / REPORT)),
            ]
        return [
            *python("loadframe_drivers.redis_relay", seconds, str(level), "", PROGRAM),
            *("-h", host, "-p", port, "-c", str(level), "-t", given.test, "-d", str(given.data_bytes)),
            *("-r", str(given.keys), "-P", str(given.pipeline), "--precision", "3", "--dbnum", database),
            *(("--threads", str(given.threads)) if given.threads > 1 else ()),
        ]

    def lines(self, file: IO[bytes], *, cut_off: bool) -> Lines:
        lines = Lines(self.names)
        for number, line in whole_lines(file, cut_off=True):
            try:
                part = parse_json(line)
                if self.options.program == MEMTIER:
                    lines.zero_s, reports = read_memtier(part["text"])
                else:
                    # The program's start took time before its first request, so the part is placed at its end.
                    reports, end_s = [read_report(part["text"])], float(part["end"])
                    reports[0].length_s = min(reports[0].length_s, end_s - float(part["begin"]))
                    reports[0].begin_s = end_s - reports[0].length_s
            except (JsonError, ValueError, KeyError, TypeError) as error:
                raise LineError(number, f"it is no report of its program: {error}") from error
            lines.seconds += [second for report in reports for second in report.of_lines(number, lines)]
        return lines


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (program(kind, PROGRAM, "redis-tools"),)


KIND = registration(Redis, requirements, places={"keys": OwnKeys.at})
