"""Long loads into real databases, window by window: python benchmarks/growth_loads.py [--role held] [--only NAME]

Each load of growth_loads.toml fills one table with entries of a file system (a 16-byte identity, parent, name, size,
mtime, owner), with the indexes that find and du need, until its time ends. A row of the result is a window: entries
before and after, seconds, pages or blocks that were read from beyond the database's memory. The loads of the role
`held` were measured after the law was fixed, and nothing was chosen by them. Written to growth_loads.json beside this
file: one load a line; those that were not measured again are kept.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import tomli_w

import loadframe
from loadframe.bench.rig import make_target
from loadframe.host.leases import Lease
from loadframe.model import Endpoint, TargetState
from loadframe.workloads import mariadb, postgres

LOADS = Path(__file__).with_suffix(".toml")
RESULT = Path(__file__).with_suffix(".json")
WINDOW_S = 0.25
Row = tuple[bytes, int, str, int, int, int]
COLUMNS = ("id", "parent", "name", "size", "mtime", "owner")
INDEXES = {"find": "size", "age": "mtime", "du": "owner"}


@dataclass(frozen=True, slots=True)
class Sink:
    """Where entries go. put: a batch, committed. reads: pages or blocks read from beyond the memory, so far. size:
    bytes of the database now."""

    put: Callable[[Sequence[Row]], None]
    reads: Callable[[], int]
    size: Callable[[], int]


def rows(seed: int, *, ordered: bool) -> Iterator[Row]:
    """Entries without end. ordered: identities and all else grow, so that every index is appended to."""
    draw = random.Random(seed)
    number = 0
    while True:
        number += 1
        if ordered:
            yield (
                number.to_bytes(16),
                number // 1000,
                f"file-{number}",
                number,
                1_600_000_000 + number,
                number // 100_000,
            )
        else:
            size = int(draw.lognormvariate(9, 2))
            age = draw.randrange(100_000_000)
            yield (
                draw.randbytes(16),
                draw.randrange(1 << 20),
                f"file-{number}",
                size,
                1_500_000_000 + age,
                draw.randrange(50),
            )


@contextmanager
def sqlite(load: Mapping[str, Any]) -> Iterator[Sink]:
    """In a file, write-ahead log, a page cache of `cache_kib`; what it reads is what this process reads."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        file = Path(folder) / "entries.db"
        database = sqlite3.connect(file, isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", f"cache_size=-{load['cache_kib']}", "mmap_size=0"):
            database.execute(f"PRAGMA {pragma}")
        database.execute(
            "CREATE TABLE entries (id BLOB PRIMARY KEY, parent INT, name TEXT, size INT, mtime INT, owner INT)"
            " WITHOUT ROWID"
        )
        for name in load["indexes"]:
            database.execute(f"CREATE INDEX by_{name} ON entries ({INDEXES[name]})")

        with filling(database, file, "entries") as sink:
            yield sink


@contextmanager
def filling(database: sqlite3.Connection, file: Path, table: str) -> Iterator[Sink]:
    """Rows into a table of SQLite's, each batch a transaction; what it reads is what this process reads. The database
    is closed."""

    def put(batch: Sequence[Row]) -> None:
        database.execute("BEGIN")
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(batch[0]))})", batch)
        database.execute("COMMIT")

    def reads() -> int:
        lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="utf-8").splitlines())
        return int(lines["syscr"])

    try:
        yield Sink(put, reads, lambda: file.stat().st_size)
    finally:
        database.close()


@contextmanager
def private(load: Mapping[str, Any], folder: Path) -> Iterator[Endpoint]:
    """A private server with the load's settings, in its cage."""
    study = {
        "study": {"name": "growth", "question": "How does a load go on?"},
        "target": {"kind": load["kind"], "settings": load["settings"]},
        "workload": {"kind": "oltp"},
        "load": {"axis": "concurrency", "levels": [1]},
        **({"cage": {"memory": load["memory"]}} if "memory" in load else {}),
    }
    path = folder / "study.toml"
    path.write_text(tomli_w.dumps(study))
    declared = loadframe.load_study(path)
    with Lease.acquire("a long load") as lease, ExitStack() as stack:
        target = make_target(declared, lease, load["kind"], None)
        stack.callback(target.destroy)
        target.create()
        target.start(TargetState(declared.target.settings, declared.target_limits))
        yield target.endpoint()


@contextmanager
def mariadb_sink(load: Mapping[str, Any]) -> Iterator[Sink]:
    """InnoDB; what it reads: pages that were not in the buffer pool."""
    with (
        tempfile.TemporaryDirectory() as folder,
        private(load, Path(folder)) as endpoint,
        mariadb.connected(endpoint, "loading", schema=False) as connection,
    ):
        cursor = connection.cursor()
        indexes = "".join(f", INDEX ({INDEXES[name]})" for name in load["indexes"])
        cursor.execute("CREATE DATABASE IF NOT EXISTS loadframe")
        cursor.execute("USE loadframe")
        cursor.execute(
            "CREATE TABLE entries (id BINARY(16) PRIMARY KEY, parent BIGINT, name VARBINARY(255), size BIGINT, "
            f"mtime BIGINT, owner INT{indexes}) ENGINE=InnoDB"
        )
        statement = "INSERT INTO entries VALUES (%s, %s, %s, %s, %s, %s)"

        def put(batch: Sequence[Row]) -> None:
            cursor.executemany(statement, batch)
            connection.commit()

        def reads() -> int:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_reads'")
            return int(cast(tuple[str, str], cursor.fetchone())[1])

        def size() -> int:
            cursor.execute(
                "SELECT SUM(FILE_SIZE) FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME = 'loadframe/entries'"
            )
            return int(cast(tuple[int], cursor.fetchone())[0])

        yield Sink(put, reads, size)


@contextmanager
def postgres_sink(load: Mapping[str, Any]) -> Iterator[Sink]:
    """By COPY; what it reads: blocks that were not in the shared buffers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        private(load, Path(folder)) as endpoint,
        postgres.connected(endpoint, "loading") as connection,
    ):
        cursor = connection.cursor()
        cursor.execute("CREATE SCHEMA IF NOT EXISTS loadframe")
        cursor.execute("SET search_path TO loadframe")
        cursor.execute(
            "CREATE TABLE entries (id bytea PRIMARY KEY, parent bigint, name bytea, size bigint, mtime bigint, "
            "owner int)"
        )
        for name in load["indexes"]:
            cursor.execute(f"CREATE INDEX ON entries ({INDEXES[name]})")
        connection.commit()

        def put(batch: Sequence[Row]) -> None:
            with cursor.copy("COPY entries FROM STDIN") as copy:
                for one in batch:
                    copy.write_row((one[0], one[1], one[2].encode(), *one[3:]))
            connection.commit()

        def asked(query: str) -> int:
            cursor.execute(query)
            value = int(cast(tuple[int], cursor.fetchone())[0])
            connection.commit()
            return value

        def reads() -> int:
            asked("SELECT 1 FROM pg_stat_force_next_flush()")  # else it counts once a second
            return asked("SELECT coalesce(sum(heap_blks_read + idx_blks_read), 0) FROM pg_statio_user_tables")

        yield Sink(put, reads, lambda: asked("SELECT pg_total_relation_size('entries')"))


SINKS = {"sqlite": sqlite, "mariadb": mariadb_sink, "postgres": postgres_sink}


def measured(load: Mapping[str, Any]) -> dict[str, Any]:
    """One load: rows of (entries before, after, seconds, reads beyond memory), bytes of an entry at its end."""
    windows = []
    with SINKS[load["kind"]](load) as sink:
        source, done, batch = rows(load["seed"], ordered=load.get("ordered", False)), 0, load["batch"]
        begun = since = time.monotonic()
        before, reads = 0, sink.reads()
        while since - begun < load["seconds"]:
            sink.put([next(source) for _ in range(batch)])
            done += batch
            now = time.monotonic()
            if now - since >= WINDOW_S:
                seen = sink.reads()
                windows.append([before, done, round(now - since, 4), seen - reads])
                before, since, reads = done, time.monotonic(), seen
        size = sink.size()
    return {"kind": load["kind"], "role": load["role"], "entry_bytes": round(size / done, 1), "windows": windows}


def main() -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--role", choices=["tuned", "held", "later"])
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    arguments = parser.parse_args()
    loadframe.sweep_leftovers()
    kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    text = tomllib.loads(LOADS.read_text())
    for name, load in text["load"].items():
        if (arguments.role in (None, load["role"])) and (not arguments.only or name in arguments.only):
            kept[name] = one = measured({**text["all"], **load})
            last = one["windows"][-1]
            print(f"{name}: {last[1]} entries, {len(one['windows'])} windows", file=sys.stderr, flush=True)
            lines = [f"{json.dumps(each)}: {json.dumps(value, separators=(',', ':'))}" for each, value in kept.items()]
            RESULT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
