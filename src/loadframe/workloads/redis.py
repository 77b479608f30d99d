"""redis: the requests of redis-benchmark, part after part (redis_relay.py), or of memtier_benchmark (targets: a Redis,
or what speaks its protocol, as a service; axis: clients). Both tell counts and distributions, no requests."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from loadframe.connections.host_port import parted
from loadframe.errors import StudyError
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.host.environment import importing, located, python
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, Requirement, SettingValue
from loadframe.workloads import ownership
from loadframe.workloads.command_lines import LineError, Lines, Second, whole_lines
from loadframe.workloads.kind import KindOfWorkload, demand, program
from loadframe.workloads.options import choice, rules, text, whole
from loadframe.workloads.own_program import OwnProgram
from loadframe.workloads.redis_keys import OwnKeys
from loadframe.workloads.redis_relay import MEMTIER_LATE_S
from loadframe.workloads.redis_report import Memtier, Report, read_memtier, read_report

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
"""Theirs do not have data_bytes."""
BYTES_OF_A_KEY = 200
"""Besides its value (which jemalloc rounds up, to less than twice): name, entry, and the table, which has twice the
entries while it grows. A test measures it."""
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

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        """StudyError for a ratio that is none."""
        super().__init__(options, allowance)
        self.late_s = MEMTIER_LATE_S if self.options.program == MEMTIER else 0.0
        if not RATIO.fullmatch(self.options.ratio) or not any(map(int, self.options.ratio.split(":"))):
            raise StudyError(
                f"workload.options.ratio = {self.options.ratio!r} is no ratio of SET and GET.",
                remedy="Give two whole numbers, as program = memtier_benchmark takes them: 1:10.",
            )

    def trials(self) -> Sequence[Sequence[str]]:
        return ((self.options.program, "--version"), importing("loadframe.workloads.redis_relay"))

    def demand(self) -> None:
        needed = (
            requirements(self.kind)
            if self.options.program == PROGRAM
            else (Requirement(self.kind, MEMTIER, located(MEMTIER), GET_MEMTIER),)
        )
        demand(needed)

    def own_place(self, endpoint: Endpoint) -> OwnKeys:
        """Where it makes keys in a Redis that is not ours."""
        return OwnKeys.found(endpoint.address, endpoint.options[ownership.MARK], self.needs_bytes())

    def needs_bytes(self) -> int | None:
        """Memory that the keys take at most; None where each request adds to them."""
        given = self.options
        if given.program == PROGRAM and given.test in MAKES_NOTHING:
            return 0
        if given.program == PROGRAM and given.test in GROWS:
            return None
        has_value = given.program == MEMTIER or given.test not in WITHOUT_VALUES
        return given.keys * (BYTES_OF_A_KEY + (2 * given.data_bytes if has_value else 0))

    def install(self, endpoint: Endpoint) -> None:
        """The database of a Redis that is not ours is marked."""
        super().install(endpoint)
        if (keys := OwnKeys.of(endpoint)) is not None:
            keys.make()

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """TargetError where the database is not ours any more."""
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
            each = level // threads
            return [
                *python("loadframe.workloads.redis_relay", seconds, str(threads * each), str(folder / REPORT), MEMTIER),
                *("-s", host, "-p", port, "-t", str(threads), "-c", str(each), "--ratio", given.ratio),
                *("-d", str(given.data_bytes), "--key-maximum", str(given.keys), "--pipeline", str(given.pipeline)),
                *("--select-db", database, "--hide-histogram", "--json-out-file", str(folder / REPORT)),
            ]
        return [
            *python("loadframe.workloads.redis_relay", seconds, str(level), "", PROGRAM),
            *("-h", host, "-p", port, "-c", str(level), "-t", given.test, "-d", str(given.data_bytes)),
            *("-r", str(given.keys), "-P", str(given.pipeline), "--precision", "3", "--dbnum", database),
            *(("--threads", str(given.threads)) if given.threads > 1 else ()),
        ]

    def lines(self, file: IO[bytes], *, cut_off: bool) -> Lines:
        """A part of redis_relay in each line."""
        lines = Lines(self.names)
        for number, line in whole_lines(file, cut_off=True):
            try:
                part = parse_json(line)
                if self.options.program == MEMTIER:
                    _take_memtier(lines, number, read_memtier(part["text"]))
                else:
                    _take_part(lines, number, read_report(part["text"]), float(part["begin"]), float(part["end"]))
            except (JsonError, ValueError, KeyError, TypeError) as error:
                raise LineError(number, f"it is no report of its program: {error}") from error
        return lines


def _take_part(lines: Lines, number: int, report: Report, begin_s: float, end_s: float) -> None:
    """A part of redis-benchmark; its start took time before its first request."""
    length_s = min(report.length_s, end_s - begin_s)
    lines.seconds.append(
        Second(
            line=number,
            at_s=end_s - length_s,
            length_s=length_s,
            requests=report.requests,
            operation=lines.grouped(report.name),
            values_ms=report.values_ms,
            counts=report.counts,
        )
    )


def _take_memtier(lines: Lines, number: int, run: Memtier) -> None:
    """A run of memtier_benchmark: the requests of each second, with latencies drawn from those of the whole run."""
    lines.zero_s = run.started_s
    for report, seconds in zip(run.reports, run.seconds, strict=True):
        each_ms = np.random.default_rng(number).permutation(np.repeat(report.values_ms, report.counts))
        ends = np.cumsum([count for _, count in seconds])
        for (second, count), values_ms in zip(seconds, np.split(each_ms, ends[:-1]), strict=True):
            lines.seconds.append(
                Second(
                    line=number,
                    at_s=float(second),
                    length_s=min(1.0, max(report.length_s - second, SHORTEST_S)),
                    requests=count,
                    operation=lines.grouped(report.name),
                    values_ms=values_ms,
                    counts=np.ones(count, dtype=np.int64),
                )
            )


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (program(kind, PROGRAM, "redis-tools"),)


KIND = KindOfWorkload(Redis.kind, Redis, rules(RedisOptions), requirements)
