"""Forecasts of growth on loads that are not ours: python benchmarks/growth_foreign.py [--only NAME ...] [--keep FILE]

Databases of other shapes than a file system's, filled by the statements that their users fill them with (COPY, LOAD
DATA, INSERT of many rows, executemany, a pipeline of HSET), each with a cache smaller than its data, but for Redis. The
first quarter of each load is all that is seen of it; the rate and the time at twice and four times that are forecast
and scored by how the load went on. Beside it two rivals: the rate of the last windows goes on, and a straight line of
the rate over the logarithm of the size. The law and its constants were fixed before these were declared; those of the
role `first` have changed what is refused, those of the role `later` were declared after that. Each load takes --seconds
of its database's time. --keep writes the windows to a file, --of scores those of such a file.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import growth_forecasts
import loadframe
from growth_loads import Sink, filling, private
from loadframe.host.privilege import NamedUser
from loadframe.host.processes import Allowance, spawn
from loadframe.workloads import mariadb, postgres

WINDOW_S, SECONDS = 0.1, 35.0
CUTS, TIMES = (4,), (2.0, 4.0)
RIVALS = ("constant", "logarithm")
LEAST = 0.85
WORDS = [f"word{number}" for number in range(20_000)]
Row = tuple[Any, ...]
Opened = Callable[[Mapping[str, Any], str], AbstractContextManager[Sink]]


def orders(draw: random.Random, number: int) -> Row:
    """A random key, and two columns that have an index: one in no order, one that grows."""
    return (str(uuid.UUID(int=draw.getrandbits(128))), draw.randrange(200_000), number, "x" * draw.randrange(40, 120))


def addresses(draw: random.Random, number: int) -> Row:
    """A text in no order that is unique."""
    return (f"{draw.choice(WORDS)}.{draw.getrandbits(40):x}@{draw.choice(WORDS)}.example", number, draw.randrange(90))


def readings(draw: random.Random, number: int) -> Row:
    """A key that grows within each of 5,000 sensors, and a value that has an index."""
    return (number % 5000, number, draw.gauss(20.0, 8.0))


def events(draw: random.Random, number: int) -> Row:
    """A key that grows, and a text in no order that has an index."""
    return (number, f"{draw.getrandbits(64):016x}", draw.randrange(1 << 30), "y" * draw.randrange(10, 60))


def tokens(draw: random.Random, number: int) -> Row:
    """Bytes in no order, and two columns in no order."""
    return (draw.randbytes(20), draw.randrange(1 << 40), draw.random())


def visits(draw: random.Random, number: int) -> Row:
    """A key that is mostly in no order: a visitor, and when."""
    return (draw.getrandbits(40), number, draw.randrange(1000))


def documents(draw: random.Random, number: int) -> Row:
    """A list of words, of which some are frequent."""
    return (number, [WORDS[int(len(WORDS) * draw.random() ** 3)] for _ in range(8)])


@contextmanager
def copied(load: Mapping[str, Any], table: str) -> Iterator[Sink]:
    """Into PostgreSQL by COPY; what it reads: blocks that were not in the shared buffers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        private(load, Path(folder)) as endpoint,
        postgres.connected(endpoint, "loading") as connection,
    ):
        cursor = connection.cursor()
        cursor.execute("CREATE SCHEMA IF NOT EXISTS loadframe")
        cursor.execute("SET search_path TO loadframe")
        for statement in table.split(";"):
            cursor.execute(statement.encode())
        connection.commit()

        def put(batch: Sequence[Row]) -> None:
            with cursor.copy("COPY filled FROM STDIN") as copy:
                for one in batch:
                    copy.write_row(one)
            connection.commit()

        def asked(query: str) -> int:
            cursor.execute(query.encode())
            value = int(cast(tuple[int], cursor.fetchone())[0])
            connection.commit()
            return value

        def reads() -> int:
            asked("SELECT 1 FROM pg_stat_force_next_flush()")  # else it counts once a second
            return asked("SELECT coalesce(sum(heap_blks_read + idx_blks_read), 0) FROM pg_statio_user_tables")

        yield Sink(put, reads, lambda: asked("SELECT pg_total_relation_size('filled')"))


@contextmanager
def mariadb_of(load: Mapping[str, Any], table: str, *, from_file: bool) -> Iterator[Sink]:
    """Into InnoDB, by LOAD DATA or by INSERT of many rows; what it reads: pages that were not in the buffer pool."""
    with (
        tempfile.TemporaryDirectory() as name,
        private(load, Path(name)) as endpoint,
        mariadb.connected(endpoint, "making the schema", schema=False) as first,
    ):
        first.cursor().execute("CREATE DATABASE IF NOT EXISTS loadframe")
        import pymysql

        given = {"schema": "loadframe", **mariadb.parameters(endpoint)}
        connection = pymysql.connect(
            unix_socket=given["socket"], user=given["user"], password=given["password"], database=given["schema"],
            local_infile=True,
        )  # fmt: skip
        cursor, file = connection.cursor(), Path(name) / "rows.tsv"
        cursor.execute(table)

        def from_rows(batch: Sequence[Row]) -> None:
            cursor.executemany(f"INSERT INTO filled VALUES ({', '.join(['%s'] * len(batch[0]))})", batch)
            connection.commit()

        def from_its_file(batch: Sequence[Row]) -> None:
            file.write_text("".join("\t".join(map(str, one)) + "\n" for one in batch))
            cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE filled")
            connection.commit()

        def asked(query: str, column: int) -> int:
            cursor.execute(query)
            return int(cast(tuple[Any, ...], cursor.fetchone())[column])

        sizes = "SELECT SUM(FILE_SIZE) FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME = 'loadframe/filled'"
        yield Sink(
            from_its_file if from_file else from_rows,
            lambda: asked("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_reads'", 1),
            lambda: asked(sizes, 0),
        )
        connection.close()


@contextmanager
def loaded(load: Mapping[str, Any], table: str) -> Iterator[Sink]:
    """By LOAD DATA."""
    with mariadb_of(load, table, from_file=True) as sink:
        yield sink


@contextmanager
def inserted(load: Mapping[str, Any], table: str) -> Iterator[Sink]:
    """By INSERT of many rows."""
    with mariadb_of(load, table, from_file=False) as sink:
        yield sink


@contextmanager
def in_a_file(load: Mapping[str, Any], table: str) -> Iterator[Sink]:
    """SQLite with a rollback journal, as it comes; what it reads is what this process reads."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        file = Path(folder) / "filled.db"
        database = sqlite3.connect(file, isolation_level=None)
        for pragma in (f"cache_size=-{load['cache_kib']}", "synchronous=OFF", "mmap_size=0"):
            database.execute(f"PRAGMA {pragma}")
        database.executescript(table)

        with filling(database, file, "filled") as sink:
            yield sink


@contextmanager
def in_memory(load: Mapping[str, Any], table: str) -> Iterator[Sink]:
    """Redis, which keeps all of it in memory: it reads nothing."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)  # the server is another user
        command = ["redis-server", "--port", "0", "--unixsocket", f"{folder}/redis.sock", "--unixsocketperm", "777"]
        command += ["--save", "", "--appendonly", "no", "--dir", folder, "--daemonize", "no"]
        server = spawn(
            command, Allowance(NamedUser("nobody")), stdin=None, stdout=subprocess.DEVNULL, stderr=None, cwd=folder
        )
        try:
            with _reached(f"{folder}/redis.sock") as connection:
                answers = connection.makefile("rb")

                def put(batch: Sequence[Row]) -> None:
                    connection.sendall(b"".join(_hset(one) for one in batch))
                    for _ in batch:
                        answers.readline()

                def size() -> int:
                    connection.sendall(b"INFO memory\r\n")
                    body = answers.read(int(answers.readline()[1:]) + 2).decode()
                    return int(dict(line.split(":", 1) for line in body.split("\r\n") if ":" in line)["used_memory"])

                yield Sink(put, lambda: 0, size)
        finally:
            server.terminate()
            server.wait()


def _hset(row: Row) -> bytes:
    key, *values = (str(cell).encode() for cell in row)
    words = [b"HSET", b"filled:" + key, *(part for at, cell in enumerate(values) for part in (b"%d" % at, cell))]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def _reached(place: str) -> socket.socket:
    """TimeoutError after ten seconds."""
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(place)
        except OSError:
            connection.close()
            time.sleep(0.05)
        else:
            return connection
    raise TimeoutError(f"no server answers at {place}")


@dataclass(frozen=True, slots=True)
class Load:
    """more: settings and cache_kib as in growth_loads.toml. most: entries, where memory would not last. role: first =
    what they showed has changed what is refused; later = declared and measured after that."""

    about: str
    into: Opened
    row: Callable[[random.Random, int], Row]
    table: str
    kind: str
    batch: int = 500
    most: int = 1 << 60
    more: Mapping[str, Any] = field(default_factory=dict)
    role: str = "first"


ORDERS = "CREATE TABLE filled (id {key} PRIMARY KEY, customer INT, number BIGINT, note VARCHAR(200))"
LOADS = {
    "orders": Load(
        "PostgreSQL, COPY, a random key and two indexes, 16 MiB", copied, orders,
        f"{ORDERS.format(key='UUID')};CREATE INDEX ON filled (customer);CREATE INDEX ON filled (number)", "postgres",
        more={"settings": {"shared_buffers": "16MB", "synchronous_commit": "off"}},
    ),
    "documents": Load(
        "PostgreSQL, COPY, an index of words (GIN), 16 MiB", copied, documents,
        "CREATE TABLE filled (id BIGINT PRIMARY KEY, words TEXT[]);CREATE INDEX ON filled USING GIN (words)",
        "postgres", more={"settings": {"shared_buffers": "16MB", "synchronous_commit": "off"}},
    ),
    "addresses": Load(
        "MariaDB, LOAD DATA, a unique text, 24 MiB", loaded, addresses,
        "CREATE TABLE filled (address VARCHAR(120) CHARACTER SET ascii PRIMARY KEY, number BIGINT, age INT)", "mariadb",
        more={"settings": {
            "innodb_buffer_pool_size": "24M", "innodb_flush_log_at_trx_commit": 2, "local_infile": "ON",
        }},
    ),
    "readings": Load(
        "MariaDB, INSERT, 5,000 keys that grow and an index of a value, 16 MiB", inserted, readings,
        "CREATE TABLE filled (sensor INT, at BIGINT, value DOUBLE, PRIMARY KEY (sensor, at), INDEX (value))", "mariadb",
        more={"settings": {"innodb_buffer_pool_size": "16M", "innodb_flush_log_at_trx_commit": 2}},
    ),
    "pages": Load(
        "SQLite, executemany, a unique text and an index, 10 MiB", in_a_file, addresses,
        "CREATE TABLE filled (address TEXT PRIMARY KEY, number INT, age INT);CREATE INDEX by_age ON filled (age);",
        "sqlite", more={"cache_kib": 10_240},
    ),
    "events": Load(
        "PostgreSQL, COPY, a key that grows and an index of a text, 2 MiB", copied, events,
        "CREATE TABLE filled (id BIGINT PRIMARY KEY, code VARCHAR(40), kind INT, note VARCHAR(80));"
        "CREATE INDEX ON filled (code)", "postgres",
        more={"settings": {"shared_buffers": "2MB", "synchronous_commit": "off"}}, role="later",
    ),
    "prices": Load(
        "PostgreSQL, COPY, a unique text, 4 MiB", copied, addresses,
        "CREATE TABLE filled (code VARCHAR(120) PRIMARY KEY, number BIGINT, cents INT)", "postgres",
        more={"settings": {"shared_buffers": "4MB", "synchronous_commit": "off"}}, role="later",
    ),
    "visits": Load(
        "MariaDB, INSERT, a random key and an index, 6 MiB", inserted, visits,
        "CREATE TABLE filled (visitor BIGINT, at BIGINT, page INT, PRIMARY KEY (visitor, at), INDEX (page))", "mariadb",
        more={"settings": {"innodb_buffer_pool_size": "6M", "innodb_flush_log_at_trx_commit": 2}}, role="later",
    ),
    "mails": Load(
        "MariaDB, LOAD DATA, a unique text, 8 MiB", loaded, addresses,
        "CREATE TABLE filled (address VARCHAR(120) CHARACTER SET ascii PRIMARY KEY, number BIGINT, age INT)", "mariadb",
        more={"settings": {
            "innodb_buffer_pool_size": "8M", "innodb_flush_log_at_trx_commit": 2, "local_infile": "ON",
        }}, role="later",
    ),
    "tokens": Load(
        "SQLite, executemany, a random key and two indexes, 4 MiB", in_a_file, tokens,
        "CREATE TABLE filled (token BLOB PRIMARY KEY, customer INT, weight REAL) WITHOUT ROWID;"
        "CREATE INDEX a ON filled (customer);CREATE INDEX b ON filled (weight);", "sqlite",
        more={"cache_kib": 4096}, role="later",
    ),
    "hashes": Load("Redis, HSET in a pipeline, all in memory", in_memory, orders, "", "redis", most=2_500_000),
}  # fmt: skip


def measured(load: Load, seconds: float) -> dict[str, Any]:
    """Windows of (entries before, after, seconds of the database, reads beyond memory), and bytes of an entry at the
    end. What the rows take to be made does not count."""
    windows, draw = list[list[float]](), random.Random(11)
    with load.into({"kind": load.kind, **load.more}, load.table) as sink:
        done, before, spent, total, reads = 0, 0, 0.0, 0.0, sink.reads()
        while total < seconds and done < load.most:
            batch = [load.row(draw, done + each) for each in range(load.batch)]
            began = time.monotonic()
            sink.put(batch)
            spent += time.monotonic() - began
            done += len(batch)
            if spent >= WINDOW_S:
                seen = sink.reads()
                windows.append([before, done, round(spent, 4), seen - reads])
                before, total, spent, reads = done, total + spent, 0.0, seen
        return {"windows": windows, "entry_bytes": round(sink.size() / done, 1)}


def report(results: Mapping[str, Mapping[str, Any]]) -> float:
    """Print the tables; the share of the forecasts whose intervals hold."""
    rates, times, refused = list[growth_forecasts.Row](), list[growth_forecasts.Row](), list[str]()
    for name, result in results.items():
        found = growth_forecasts.scored(name, LOADS[name].more, result, CUTS, TIMES, RIVALS)
        print(f"\n{name}: {LOADS[name].about}, {result['windows'][-1][1]:,.0f} entries")
        for row in (*found[0], *found[1]):
            if row.method in ("forecast", "time"):
                said = "held" if row.inside else "missed"
                print(
                    f"  {row.method:8} x{row.times:g}: off by {100 * row.error:+.0f} %, width {row.width:.2f}, {said}"
                )
        rates, times, refused = rates + found[0], times + found[1], refused + found[2]
    print("\nthe rate")
    growth_forecasts.table(rates, ("forecast", *RIVALS))
    print("\nthe time from empty")
    growth_forecasts.table(times, ("time",))
    print("\n" + "\n".join(["refused", *refused]))
    ours = [one for one in (*rates, *times) if one.method in ("forecast", "time")]
    return sum(one.inside for one in ours) / max(1, len(ours))


def main() -> int:
    """Measure and print; 1 where fewer than LEAST of the intervals hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help=", ".join(LOADS))
    parser.add_argument("--role", choices=["first", "later"])
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--of", type=Path, metavar="FILE")
    given = parser.parse_args()
    results: dict[str, Any] = json.loads(given.of.read_text()) if given.of else {}
    for name, load in LOADS.items() if not given.of else ():
        if (given.only and name not in given.only) or given.role not in (None, load.role):
            continue
        if load.kind == "redis" and shutil.which("redis-server") is None:
            print("redis-server is not installed")
            continue
        loadframe.sweep_leftovers()
        results[name] = measured(load, given.seconds)
        print(f"{name}: {len(results[name]['windows'])} windows", file=sys.stderr, flush=True)
        if given.keep:
            given.keep.write_text(json.dumps(results))
    return 0 if report(results) >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
