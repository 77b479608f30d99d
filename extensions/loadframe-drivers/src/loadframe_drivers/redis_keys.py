"""Where the load of a Redis that Loadframe did not start keeps its keys: a logical database that was empty, with a key
that marks it as ours; the names of others are redis-benchmark's, and the owner may have some of them.
https://redis.io/docs/latest/develop/reference/protocol-spec/, RESP2."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from loadframe.connections.address import parted
from loadframe.errors import TargetError
from loadframe.formats.said import why
from loadframe.model import Endpoint, SettingValue
from loadframe.units import show
from loadframe.workloads.databases import MARK

PORT = "6379"
PATIENCE_S = 30.0
LONGEST_LINE = 1 << 16
MOST_BYTES = 1 << 22
"""Bytes of one value of an answer: names of keys, a thousand at a time."""
AT_ONCE = "1000"
LAST_DATABASE = 15
"""A Redis has 16 unless its configuration says otherwise (redis.conf, databases)."""
NAMES = ("key:*", "counter:*", "mylist", "myset", "myhash", "myzset", "memtier-*")
"""The keys of redis-benchmark and memtier_benchmark (redis-benchmark.c; memtier_benchmark --key-prefix)."""
OF_WHAT_IS_LEFT = 0.5
"""The share of the free memory that a load may take: the owner's keys grow, and connections need some."""
THERE, GONE = "present", "absent"
DATABASE = "database"
"""The endpoint's option with the number of the logical database."""


class OwnKeys:
    """See changes.places.OwnPlace: its only setting, keys with our mark, can only be set to GONE."""

    def __init__(self, address: str, database: int, mark: str) -> None:
        self._where, self.database, self._mark = address, database, mark
        self.name = f"keys in database {database}"
        self.words = f"Redis at {address}"
        self.options = {DATABASE: str(database)}
        self.address: Mapping[str, str] = {"kind": "keys", "address": address, "mark": mark, **self.options}

    @staticmethod
    def of(endpoint: Endpoint) -> "OwnKeys | None":
        """None if the whole server is ours. TargetError if no database was chosen."""
        if not endpoint.attached:
            return None
        if DATABASE not in endpoint.options:
            raise TargetError(
                f"The Redis at {endpoint.address} runs already, and no database of its own was chosen for the load",
                remedy="Load it without a fleet, or a Redis that Loadframe starts (target.command).",
            )
        return OwnKeys(endpoint.address, int(endpoint.options[DATABASE]), endpoint.options[MARK])

    @staticmethod
    def at(address: Mapping[str, str]) -> "OwnKeys":
        return OwnKeys(address["address"], int(address["database"]), address["mark"])

    @staticmethod
    def found(address: str, mark: str, needs_bytes: int | None) -> "OwnKeys":
        """A database without keys, in a Redis that evicts none and has room. needs_bytes: None if unbounded.
        TargetError."""
        with _asking(address) as ask:
            _check_room(address, str(ask("INFO", "memory")), needs_bytes)
            for database in range(LAST_DATABASE, -1, -1):
                with suppress(_RefusedError):  # a Redis may have fewer, a cluster has only the first
                    ask("SELECT", str(database))
                    if ask("DBSIZE") == 0:
                        return OwnKeys(address, database, mark)
        raise TargetError(
            f"The Redis at {address} has no empty logical database, and a load makes keys whose names others may have.",
            remedy="Load a Redis of its own, which Loadframe starts (target.command), or empty a database of this one.",
        )

    def make(self) -> None:
        """Mark the database as ours. TargetError if it has got a key meanwhile."""
        with self._selected() as ask:
            ask("SET", self._mark, "1", "NX")
            if ask("DBSIZE") == 1:
                return
            ask("DEL", self._mark)
        raise TargetError(
            f"{self._place} was empty, and now has keys of others",
            remedy="Run it again: Loadframe looks for another empty database.",
        )

    def check(self) -> None:
        """TargetError if it is no longer ours."""
        if self.read(self.name) == GONE:
            raise TargetError(
                f"{self._place} does not have this run's mark any more: it was emptied, or another server answers "
                "there",
                remedy="Find out what emptied it, then run it again.",
            )

    def read(self, name: str) -> SettingValue:
        """TargetError if there are keys that the load may have made, and no mark: their owner is unknown."""
        with self._selected() as ask:
            if ask("EXISTS", self._mark):
                return THERE
            if (key := next((key for keys in _of_the_load(ask) for key in keys), None)) is None:
                return GONE
            size = ask("DBSIZE")
        host, port = parted(self._where, PORT)
        raise TargetError(
            f"{self._place} does not have this run's mark any more, and has {size:,} keys, among them {key[:60]}: "
            "whether the load has made them is not known, and none is removed",
            remedy=f"Look at them: redis-cli -h {host} -p {port} -n {self.database} --scan. Remove those that are not "
            "needed and run `loadframe changes revert`, or keep them and run `loadframe changes forget`",
        )

    def write(self, name: str, value: SettingValue) -> None:
        """The mark is removed last."""
        with self._selected() as ask:
            if ask("EXISTS", self._mark):
                for keys in _of_the_load(ask):
                    ask("DEL", *keys)
                ask("DEL", self._mark)

    @property
    def _place(self) -> str:
        return f"Database {self.database} of the Redis at {self._where}"

    @contextmanager
    def _selected(self) -> Iterator[Any]:
        with _asking(self._where) as ask:
            ask("SELECT", str(self.database))
            yield ask


class _RefusedError(Exception):
    pass


def _of_the_load(ask: Any) -> Iterator[list[str]]:
    for pattern in NAMES:
        cursor = "0"
        while True:
            cursor, keys = ask("SCAN", cursor, "MATCH", pattern, "COUNT", AT_ONCE)
            if keys:
                yield keys
            if cursor == "0":
                break


def _check_room(address: str, memory: str, needs_bytes: int | None) -> None:
    """TargetError if keys of a load would evict the owner's, or leave no room for the owner's next ones."""
    fields = dict(line.split(":", 1) for line in memory.splitlines() if ":" in line)
    most, policy = fields.get("maxmemory", ""), fields.get("maxmemory_policy", "")
    if most == "0" or needs_bytes == 0:
        return
    if policy != "noeviction":
        limit = f"({policy or 'unknown policy'}) beyond maxmemory = {most or 'unknown'}"
        raise TargetError(
            f"The Redis at {address} evicts keys {limit}, and the keys of a load would push out its owner's.",
            remedy="Load a Redis of its own, which Loadframe starts (target.command).",
        )
    left = int(most) - int(fields.get("used_memory", most)) if most else 0
    if needs_bytes is None or needs_bytes > OF_WHAT_IS_LEFT * left:
        needs = "without a bound" if needs_bytes is None else f"of up to {show(needs_bytes, 'bytes')}"
        raise TargetError(
            f"The Redis at {address} refuses writes beyond maxmemory = {most or 'unknown'} (noeviction), its "
            f"owner's too: {show(max(left, 0), 'bytes')} are left, and the load makes keys {needs}.",
            remedy=f"It may take {OF_WHAT_IS_LEFT:.0%} of what is left: lower workload.options.keys or data_bytes, "
            "take another test, or load a Redis of its own, which Loadframe starts (target.command).",
        )


@contextmanager
def _asking(address: str) -> Iterator[Any]:
    host, port = parted(address, PORT)
    try:
        with (
            socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection,
            connection.makefile("rb") as answers,
        ):

            def ask(*command: str) -> Any:
                parts = [part.encode("utf-8", "surrogateescape") for part in command]
                sent = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
                connection.sendall(b"*%d\r\n%s" % (len(parts), sent))
                return _answer(answers)

            yield ask
    except (OSError, ValueError, _RefusedError) as error:
        raise TargetError(
            f"What answers at {address} refused the load keys of its own: {why(error)}",
            remedy="A Redis without a password is expected there.",
        ) from error


def _answer(answers: BinaryIO) -> Any:
    """ValueError for invalid answers."""
    line = answers.readline(LONGEST_LINE)
    kind, text = line[:1], line[1:-2].decode("utf-8", "surrogateescape")
    if not line.endswith(b"\r\n"):
        raise ValueError("its answer is cut off")
    if kind == b"+":
        return text
    if kind == b"-":
        raise _RefusedError(text)
    if kind not in b":$*" or not text.lstrip("-").isdecimal():
        raise ValueError(f"this is no answer of a Redis: {text[:60]!r}")
    number = int(text)
    if kind == b":":
        return number
    if number < 0:
        return None
    if number > MOST_BYTES:
        raise ValueError(f"it announces {number:,} bytes")
    if kind == b"*":
        return [_answer(answers) for _ in range(number)]
    data = answers.read(number + 2)
    if len(data) < number + 2:
        raise ValueError("its answer is cut off")
    return data[:-2].decode("utf-8", "surrogateescape")
