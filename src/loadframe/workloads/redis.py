"""redis: the requests of redis-benchmark (targets: a Redis, or what speaks its protocol, as a service; axis: clients).

redis-benchmark keeps a number of connections busy in a closed loop and prints counts and distributions, no requests. It
is run part after part (redis_relay.py): what happened within a part is not known, and the steps say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadframe.connections.host_port import parted
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.host.environment import importing, python
from loadframe.model import Endpoint, Requirement
from loadframe.workloads import step_files
from loadframe.workloads.command_lines import LineError, Lines, Second
from loadframe.workloads.driver_clock import Life
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.options import choice, rules, whole
from loadframe.workloads.own_output import Reader
from loadframe.workloads.own_program import STDOUT, OwnProgram
from loadframe.workloads.requirements import demand, program

if TYPE_CHECKING:
    from loadframe.workloads.command_output import Output

PROGRAM, PORT = "redis-benchmark", "6379"
TESTS = (
    "get", "set", "incr", "lpush", "rpush", "lpop", "rpop", "sadd", "hset", "spop", "zadd", "zpopmin",
    "lrange_100", "lrange_300", "lrange_500", "lrange_600", "mset", "ping_inline", "ping_mbulk",
)  # fmt: skip
MOST_CLIENTS = 10_000


@dataclass(frozen=True)
class RedisOptions:
    test: str = choice("get", TESTS, "which of redis-benchmark's tests")
    data_bytes: int = whole(3, 1, 1 << 29, "size of a value in bytes")
    keys: int = whole(100_000, 1, 2**31 - 1, "number of keys, chosen evenly")
    pipeline: int = whole(1, 1, 10_000, "requests that a client sends at once")
    threads: int = whole(1, 1, 256, "threads of redis-benchmark, which share the clients")


class Redis(OwnProgram[RedisOptions]):
    """The workload. Options: RedisOptions."""

    kind = "redis"
    target_kinds = frozenset({"service"})
    axes = frozenset({"clients"})
    axis_unit = "clients"
    model = RedisOptions
    levels = (1, MOST_CLIENTS)

    def trials(self) -> Sequence[Sequence[str]]:
        """See Workload."""
        return ((PROGRAM, "--version"), importing("loadframe.workloads.redis_relay"))

    def demand(self) -> None:
        """See OwnProgram."""
        demand(requirements(self.kind))

    def command_line(self, endpoint: Endpoint, level: int, folder: Path, duration_s: float) -> list[str]:
        """See OwnProgram."""
        host, port = parted(endpoint.address, PORT)
        given = self.options
        return [
            *python("loadframe.workloads.redis_relay", f"{duration_s:.3f}", str(level), PROGRAM),
            *("-h", host, "-p", port, "-c", str(level), "-t", given.test, "-d", str(given.data_bytes)),
            *("-r", str(given.keys), "-P", str(given.pipeline), "--precision", "3"),
            *(("--threads", str(given.threads)) if given.threads > 1 else ()),
        ]

    def reader(self, folder: Path, level: int) -> Reader:
        """See OwnProgram."""
        return partial(_read, folder / STDOUT, self.names)


def _read(path: Path, names: list[str], life: Life, *, cut_off: bool) -> Output:
    """A part of redis_relay in each line."""
    from loadframe.workloads.command_output import of_lines
    from loadframe.workloads.redis_report import read_report

    lines = Lines(names)
    data = step_files.read(path)
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
        try:
            part = parse_json(line)
            report = read_report(part["text"])
            end_s, taken_s = float(part["end"]), float(part["end"]) - float(part["begin"])
        except (JsonError, ValueError, KeyError, TypeError) as error:
            raise LineError(number, f"it is no part of redis-benchmark: {error}") from error
        if report.name not in names:
            names.append(report.name)
        length_s = min(report.length_s, taken_s)
        lines.seconds.append(
            Second(
                line=number,
                at_s=end_s - length_s,
                length_s=length_s,
                requests=report.requests,
                operation=names.index(report.name),
                values_ms=report.values_ms,
                counts=report.counts,
            )
        )
    return of_lines(lines, life)


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What it needs."""
    return (program(kind, PROGRAM, "redis-tools"),)


KIND = KindOfWorkload(Redis.kind, Redis, rules(RedisOptions), requirements)
