"""The pipeline of file metadata beside what others have: python benchmarks/metadata.py [warm|cold|answers|load ...]

warm, cold  the reading of a tree alone, beside `find -printf`, du, fd, gdu and duc on the same tree, in rounds of
            random order; cold: the kernel's caches of names and inodes are dropped before each. A tool that is absent
            is named. The goals: at least half of find's rate with one thread; twice that with two processes.
answers     du of the whole tree from the database, beside du itself with cold caches; both must say the same. The goal:
            at least 50 times faster, from a database that is in use: it is asked twice, and the second time counts.
load        entries/s of the whole pipeline into each database, beside a bulk load of the same rows into the same tables
            (executemany, LOAD DATA, COPY): the physical limit, and beside the 5,000 changes/s that a user of the
            story's policy engine asked about.

The tree has --entries entries and is made in --tree, or a temporary folder. Ratios are of one run, with 95 % intervals
over its rounds (of their logarithms). Ends with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import growth_loads
import loadframe
import tree_scanning
import whole_scan
from loadframe.analysis import student
from loadframe.model import Endpoint
from loadframe.workloads import mariadb, postgres
from loadframe_index import queries, seeded
from loadframe_index.config import Config
from loadframe_index.store import COLUMNS, Row, connect

DROP = Path("/proc/sys/vm/drop_caches")
STORY = 5_000
"""Creations per second that were followed, in a question to the authors of RobinHood (robinhood4, issue 21)."""
LEAST_OF_FIND, LEAST_BY_TWO, LEAST_DU = 0.5, 1.0, 50.0
"""Of find's rate: one thread, two processes; of du's time."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that reads the whole tree. command: ends with the tree. own: whether it prints its own seconds, without
    the start of the interpreter."""

    name: str
    command: tuple[str, ...]
    own: bool = False


def scanner(scanners: int, threads: int) -> tuple[str, ...]:
    """The scan stage alone."""
    more = ("--scanners", str(scanners), "--threads", str(threads))
    return (sys.executable, "-P", tree_scanning.__file__, *more)


def tools(folder: Path) -> tuple[Tool, ...]:
    """Ours, and those that are installed. folder: for what they write."""
    return (
        Tool("scan, 1 thread", scanner(1, 1), own=True),
        Tool("scan, 2 threads", scanner(1, 2), own=True),
        Tool("scan, 2 processes", scanner(2, 1), own=True),
        Tool("find -printf", ("find",)),
        Tool(TWO_FINDS, ("find",)),
        Tool("du", ("du", "-s")),
        Tool("fd, names only", ("fdfind", "-u", ".")),
        Tool("gdu", ("gdu", "-n", "-p", "-s", "-c")),
        Tool("duc", ("duc", "index", "-q", "-d", str(folder / "duc.db"))),
    )


FIND = ("-printf", "%p %i %y %s %b %n %U %G %m %A@ %T@ %C@\\n")
"""What the pipeline looks up, too."""


TWO_FINDS = "two finds, half each"


def two_finds(tree: Path) -> float:
    """What two processes can give here at most: each has every other directory of the root; seconds until both end."""
    below = sorted(str(one) for one in tree.iterdir())
    began = time.monotonic()
    both = [subprocess.Popen(["find", *below[half::2], *FIND], stdout=subprocess.DEVNULL) for half in range(2)]
    codes = [each.wait() for each in both]
    if any(codes):
        raise RuntimeError(f"find failed on {tree}")
    return time.monotonic() - began


def seconds_of(tool: Tool, tree: Path) -> float:
    """How long it took. RuntimeError where it fails."""
    if tool.name == TWO_FINDS:
        return two_finds(tree)
    command = [*tool.command, str(tree), *(FIND if tool.name == "find -printf" else ())]
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE if tool.own else subprocess.DEVNULL, check=False)
    taken = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}")
    return float(json.loads(done.stdout)["seconds"]) if tool.own else taken


def drop_caches() -> bool:
    """Names and inodes, and what of the disk is in memory; whether that is permitted."""
    try:
        os.sync()
        DROP.write_text("3", encoding="ascii")
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Ratio:
    """With its 95 % interval; infinite ends of a single round."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Of values of the same rounds."""
    logs = np.log(np.array(above) / np.array(below))
    middle = float(logs.mean())
    if len(logs) < 2:
        return Ratio(math.exp(middle), 0.0, math.inf)
    half = float(student.quantile(0.975, len(logs) - 1)) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def reading(tree: Path, entries: int, rounds: int, *, cold: bool) -> bool:
    """Print the table; whether the goals are met (warm: they are goals of CPU time)."""
    if cold and not drop_caches():
        print("cold: caches cannot be dropped here (root is needed); not measured")
        return True
    with tempfile.TemporaryDirectory() as folder:
        every = tools(Path(folder))
        installed = [one for one in every if shutil.which(one.command[0])]
        for one in every:
            if one not in installed:
                print(f"{one.name}: {one.command[0]} is not installed")
        taken: dict[str, list[float]] = {one.name: [] for one in installed}
        order = random.Random(1)
        for tool in installed if not cold else ():
            seconds_of(tool, tree)
        for _ in range(rounds):
            for tool in order.sample(installed, len(installed)):
                if cold:
                    drop_caches()
                taken[tool.name].append(seconds_of(tool, tree))
    rates = {name: [entries / one for one in found] for name, found in taken.items()}
    print(f"\n{'cold' if cold else 'warm'}, {entries:,} entries, {rounds} rounds")
    print(f"{'':18} {'entries/s':>12}  of find -printf (95 %)")
    for name, found in rates.items():
        print(f"{name:18} {float(np.median(found)):12,.0f}  {ratio(found, rates['find -printf'])}", flush=True)
    one = ratio(rates["scan, 1 thread"], rates["find -printf"])
    two = ratio(rates["scan, 2 processes"], rates["find -printf"])
    if cold:
        return True
    said = f"goals: one thread {LEAST_OF_FIND:g} of find's rate, two processes {LEAST_BY_TWO:g}"
    met = one.value >= LEAST_OF_FIND and two.value >= LEAST_BY_TWO
    scaled = ratio(rates["scan, 2 processes"], rates["scan, 1 thread"])
    print(f"two processes over one: {scaled}; of finds: {ratio(rates[TWO_FINDS], rates['find -printf'])}")
    print(f"{said}: {'met' if met else 'missed'}")
    return met


@contextmanager
def database(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """One of this kind, as the pipeline is told of it: the server is private, and ends with this."""
    if kind == "sqlite":
        file = folder / "entries.db"
        file.touch()
        pragmas = {"journal_mode": "WAL", "synchronous": "NORMAL", "cache_size": -262_144}
        yield {"kind": kind, "path": str(file), "pragmas": json.dumps(pragmas)}
        return
    settings: dict[str, Any] = {
        "mariadb": {"innodb_buffer_pool_size": "1G", "innodb_flush_log_at_trx_commit": 2, "local_infile": "ON"},
        "postgres": {"shared_buffers": "512MB", "synchronous_commit": "off"},
    }[kind]
    with growth_loads.private({"kind": kind, "settings": settings}, folder) as endpoint:
        _make_schema(kind, endpoint)
        given = (mariadb if kind == "mariadb" else postgres).parameters(endpoint)
        yield {"kind": kind, **given, "schema": "loadframe"}


def _make_schema(kind: str, endpoint: Endpoint) -> None:
    if kind == "mariadb":
        with mariadb.connected(endpoint, "making the schema", schema=False) as connection:
            connection.cursor().execute("CREATE DATABASE IF NOT EXISTS loadframe")
    else:
        with postgres.connected(endpoint, "making the schema") as postgres_connection:
            postgres_connection.execute("CREATE SCHEMA IF NOT EXISTS loadframe")
            postgres_connection.commit()


def scanned(tree: Path, into: Mapping[str, str], folder: Path, **options: int) -> float:
    """Scan the tree into the empty database; seconds. RuntimeError where the pipeline fails."""
    folder.mkdir(exist_ok=True)
    config = Config(str(tree), str(folder), into, **options)  # type: ignore[arg-type]
    path = folder / "config.json"
    path.write_text(config.text(), encoding="utf-8")
    command = [sys.executable, "-P", whole_scan.__file__, str(path)]
    began = time.monotonic()
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"the pipeline ended with {done.returncode}: {done.stderr[-500:]}")
    return time.monotonic() - began


def answering(tree: Path, entries: int, rounds: int) -> bool:
    """Print the table; whether the answers are the same and the goal is met."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name, database("sqlite", Path(name)) as given:
        store = connect(given)
        store.create("du")
        scanned(tree, given, Path(name) / "work", batch=2000)
        cold = drop_caches()
        real, first, second = list[float](), list[float](), list[float]()
        for _ in range(rounds):
            if cold:
                drop_caches()
            began = time.monotonic()
            said = subprocess.run(["du", "-s", "--block-size=1", str(tree)], capture_output=True, text=True, check=True)
            real.append(time.monotonic() - began)
            for taken in (first, second):
                own = connect(given)
                began = time.monotonic()
                found = queries.usage(own)
                taken.append(time.monotonic() - began)
                own.close()
        same = found.bytes_on_disk == int(said.stdout.split()[0]) and found.entries == entries
        store.close()
    times = ratio(real, second)
    print(f"\ndu of {entries:,} entries, {'cold' if cold else 'warm (caches cannot be dropped here)'}, {rounds} rounds")
    print(
        f"du {np.median(real):.2f} s; the database {np.median(first):.3f} s when it is cold, too: {ratio(real, first)}"
    )
    print(f"times faster; {np.median(second):.3f} s when it is in use: {times} times faster")
    print(f"the same bytes and entries: {'yes' if same else 'NO'}; goal {LEAST_DU:g}: {times.value >= LEAST_DU}")
    return same and (times.value >= LEAST_DU or not cold)


def executemany(given: Mapping[str, str], rows: Sequence[Row], folder: Path) -> float:
    """Into SQLite: one transaction; seconds."""
    import sqlite3

    connection = sqlite3.connect(given["path"], isolation_level=None)
    for name, value in json.loads(given["pragmas"]).items():
        connection.execute(f"PRAGMA {name} = {value}")
    began = time.monotonic()
    connection.execute("BEGIN")
    connection.executemany(f"INSERT INTO entries VALUES ({', '.join('?' * len(COLUMNS))})", rows)
    connection.execute("COMMIT")
    taken = time.monotonic() - began
    connection.close()
    return taken


def load_data(given: Mapping[str, str], rows: Sequence[Row], folder: Path) -> float:
    """Into MariaDB: LOAD DATA LOCAL INFILE of a file that is there; seconds."""
    import pymysql

    file = folder / "rows.tsv"
    with file.open("wb") as out:
        for row in rows:
            cells = [one.hex() if isinstance(one, bytes) else str(one) for one in row]
            out.write(("\t".join(cells) + "\n").encode())
    connection = pymysql.connect(
        unix_socket=given["socket"], user=given["user"], password=given["password"], database=given["schema"],
        local_infile=True, autocommit=True,
    )  # fmt: skip
    held = [isinstance(one, bytes) for one in rows[0]]
    names = ", ".join(f"@{name}" if of_bytes else name for name, of_bytes in zip(COLUMNS, held, strict=True))
    sets = ", ".join(f"{name} = UNHEX(@{name})" for name, of_bytes in zip(COLUMNS, held, strict=True) if of_bytes)
    began = time.monotonic()
    connection.cursor().execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE entries ({names}) SET {sets}")
    taken = time.monotonic() - began
    connection.close()
    return taken


def copied(given: Mapping[str, str], rows: Sequence[Row], folder: Path) -> float:
    """Into PostgreSQL: COPY; seconds."""
    import psycopg

    names = ("host", "port", "user", "password", "dbname")
    connection = psycopg.connect(**{name: given[name] for name in names})  # type: ignore[arg-type]
    connection.execute(f"SET search_path TO {given['schema']}")
    began = time.monotonic()
    with connection.cursor().copy("COPY entries FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    connection.commit()
    taken = time.monotonic() - began
    connection.close()
    return taken


BULK: Mapping[str, tuple[str, Callable[[Mapping[str, str], Sequence[Row], Path], float]]] = {
    "sqlite": ("executemany", executemany),
    "mariadb": ("LOAD DATA", load_data),
    "postgres": ("COPY", copied),
}


def loading(tree: Path, entries: int, rounds: int, kinds: Sequence[str]) -> bool:
    """Print the table; whether every row arrived."""
    print(f"\nwhole pipeline, {entries:,} entries, {rounds} rounds; the story's users: {STORY:,} changes/s")
    complete = True
    for kind in kinds:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as name, database(kind, Path(name)) as given:
            store = connect(given)
            ours, bulk, rows = list[float](), list[float](), list[Row]()
            for number in range(rounds):
                store.create()
                ours.append(scanned(tree, given, Path(name) / f"work-{number}", scanners=2, batch=2000))
                complete &= store.count() == entries
                rows = rows or sorted(store.rows())
                store.create()
                bulk.append(BULK[kind][1](given, rows, Path(name)))
                complete &= store.count() == entries
            store.close()
        rate, limit = entries / float(np.median(ours)), entries / float(np.median(bulk))
        print(
            f"{kind:9} {rate:9,.0f} entries/s; {BULK[kind][0]} {limit:9,.0f}; the pipeline "
            f"reaches {ratio(bulk, ours)} of it; "
            f"{rate / STORY:.1f} times the story's",
            flush=True,
        )
    return complete


def main() -> int:
    """Print the tables; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["warm", "cold", "answers", "load"], metavar="PART")
    parser.add_argument("--entries", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", nargs="*", default=list(BULK), metavar="KIND")
    parser.add_argument("--tree", type=Path)
    given = parser.parse_args()
    loadframe.sweep_leftovers()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        seeded.spread(Path(folder))
        tree = given.tree or seeded.apart(Path(folder))
        seeded.make(tree, seeded.Shape(given.entries))
        met = []
        for part in given.parts:
            if part in ("warm", "cold"):
                met.append(reading(tree, given.entries, given.rounds, cold=part == "cold"))
            elif part == "answers":
                met.append(answering(tree, given.entries, given.rounds))
            else:
                met.append(loading(tree, given.entries, given.rounds, given.kinds))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
