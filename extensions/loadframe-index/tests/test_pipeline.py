"""Whatever the threads, processes and batches are, the database has what the tree has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import whole_scan
from loadframe.workloads import request_log
from loadframe_index import seeded
from loadframe_index.config import Config
from loadframe_index.entries import Entry, entry_of, id_of, split
from loadframe_index.seeded import Shape
from loadframe_index.store import COLUMNS, Store, connect
from tree_scanning import Looked, scan
from waiting import await_that

names = st.binary(min_size=1, max_size=255).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)
SEEN = COLUMNS.index("seen_ns")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "step").mkdir()
    return tmp_path / "step"


@pytest.fixture
def config(tree: Path, folder: Path, sqlite_database: dict[str, str]) -> Iterator[Config]:
    """Into an empty SQLite database."""
    with closing(connect(sqlite_database)) as store:
        store.create()
    yield Config(str(tree), str(folder), sqlite_database)


@pytest.fixture
def store(config: Config) -> Iterator[Store]:
    with closing(connect(config.database)) as store:
        yield store


def command(config: Config) -> list[str]:
    path = config.path("config.json")
    path.write_text(config.text())
    return [sys.executable, "-P", whole_scan.__file__, str(path)]


def run(config: Config) -> dict[str, Any]:
    """Once to its end; what it says of itself."""
    done = subprocess.run(command(config), stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(config.path("result.json").read_text())
    return told


def in_the_tree(tree: Path) -> set[Entry]:
    """By another walk than the pipeline's."""
    root = os.fsencode(tree)
    paths = [b""]
    for directory, below, files in os.walk(root):
        paths += [os.path.relpath(os.path.join(directory, name), root) for name in [*below, *files]]  # noqa: PTH118
    found = [entry_of(*split(path), os.lstat(os.path.join(root, path) if path else root)) for path in paths]  # noqa: PTH118
    return {read_when(entry) for entry in found}


def read_when(entry: Entry) -> Entry:
    """Whoever walks a tree reads its directories and links: when that was is left out."""
    return entry._replace(atime_ns=0) if entry.type in "dl" else entry


def in_the_database(store: Store) -> set[Entry]:
    return {read_when(Entry(row[2], split(row[2])[0], *row[3:SEEN])) for row in store.rows()}


SHAPES = [
    {},
    {"scanners": 3, "batch": 7, "queue": 7},
    {"scan_threads": 4, "info_threads": 2, "fs_threads": 3, "db_threads": 2, "batch": 50},
    {"scanners": 2, "scan_threads": 2, "batch": 1, "queue": 1},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_database_has_the_tree(tree: Path, config: Config, store: Store, shape: dict[str, int]) -> None:
    seeded.make(tree / "made", Shape(1500, files_per_directory=20, depth=6))
    (tree / "link").symlink_to("made")
    (tree / "hard").hardlink_to(next((tree / "made").rglob("f*")))
    os.mkfifo(tree / "pipe")
    told = run(replace(config, **shape))
    assert in_the_database(store) == in_the_tree(tree)
    assert told["applied"] == told["new"] == store.count()
    asked = replace(config, **shape)
    requests = request_log.read([asked.requests(process) for process in range(asked.scanners)])
    assert len(requests) == store.count()
    applied = b"".join(asked.applied(process).read_bytes() for process in range(asked.scanners))
    assert {applied[at : at + 16] for at in range(0, len(applied), 16)} == set(store.ids())


@pytest.mark.server
@pytest.mark.parametrize("server", ["mariadb_database", "postgres_database"])
def test_a_server_has_it_too(tree: Path, config: Config, request: pytest.FixtureRequest, server: str) -> None:
    seeded.make(tree / "made", Shape(1500))
    config = replace(config, database=request.getfixturevalue(server), scanners=2, db_threads=2, batch=100)
    with closing(connect(config.database)) as store:
        store.create()
        run(config)
        assert in_the_database(store) == in_the_tree(tree)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=st.sets(names, min_size=1, max_size=8))
def test_any_name_is_found_by_threads_and_processes(tree: Path, found: set[bytes]) -> None:
    top = tree / f"{abs(hash(frozenset(found))):x}"
    for name in found:
        folder = top / os.fsdecode(name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "file").touch()
    seen: set[bytes] = set()

    def take(path: bytes, looked: list[Looked]) -> None:
        seen.update(path + b"/" + name if path else name for name, _ in looked)

    scanned = scan(top, threads=2, take=take)  # type: ignore[arg-type]
    assert seen == {b"", *found, *(name + b"/file" for name in found)}
    assert scanned.entries == len(seen) == scan(top, scanners=2).entries


def test_a_second_scan_notes_what_is_unchanged_writes_what_is_not_and_forgets_what_is_gone(
    tree: Path, config: Config, store: Store
) -> None:
    for name in ("same", "larger", "gone"):
        (tree / name).write_text("1")
    run(config)
    first = store.last_seen_ns()
    (tree / "larger").write_text("12")
    (tree / "gone").unlink()
    (tree / "new").touch()
    told = run(config)
    assert in_the_database(store) == in_the_tree(tree)
    assert (told["new"], told["forgotten"], told["unchanged"]) == (1, 1, 1)
    assert all(row[SEEN] > first for row in store.rows())


def test_rewriting_writes_all(tree: Path, config: Config, store: Store) -> None:
    seeded.make(tree / "made", Shape(100))
    run(config)
    told = run(replace(config, rewrite=True))
    assert (told["unchanged"], told["changed"]) == (0, store.count())
    told = run(config)
    assert (told["unchanged"], told["changed"]) == (store.count(), 0)


@pytest.mark.long
def test_a_pipeline_that_is_killed_has_lost_nothing_that_it_acknowledged_and_begins_again(
    tree: Path, config: Config, store: Store
) -> None:
    seeded.make(tree / "made", Shape(3000))
    config = replace(config, batch=5, scanners=2)
    process = subprocess.Popen(command(config))
    applied = [config.applied(number) for number in range(2)]
    await_that(
        lambda: sum(path.stat().st_size for path in applied if path.exists()) >= 200 * 16,
        "200 entries are acknowledged", of=process, pause_s=0.001,
    )  # fmt: skip
    process.kill()
    process.wait()
    acknowledged = b"".join(path.read_bytes() for path in applied)
    there = set(store.ids())
    assert {acknowledged[at : at + 16] for at in range(0, len(acknowledged) // 16 * 16, 16)} <= there
    assert there < {id_of(entry.path) for entry in in_the_tree(tree)}
    run(config)
    assert in_the_database(store) == in_the_tree(tree)


def test_each_process_stays_on_a_cpu_of_its_own(config: Config) -> None:
    running = subprocess.Popen(command(replace(config, scanners=2, seconds=60.0)))
    try:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")

        def placed() -> list[set[int]]:
            found = [os.sched_getaffinity(int(pid)) for pid in children.read_text().split()]
            return found if len(found) >= 2 and all(len(cpus) == 1 for cpus in found) else []

        used = await_that(placed, "two processes on one CPU each", of=running)
    finally:
        running.kill()
        running.wait()
    there = sorted(os.sched_getaffinity(0))
    assert used == [{there[0]}, {there[1 % len(there)]}]


def test_its_statistics_add_up(tree: Path, config: Config) -> None:
    seeded.make(tree / "made", Shape(3000))
    told = run(replace(config, batch=10, db_threads=2))
    lines = [json.loads(line) for line in config.path("stages.jsonl").read_text().splitlines()]
    last = {line["stage"]: line for line in lines}
    assert list(last) == ["SCAN", "GET_INFO_DB", "GET_INFO_FS", "DB_APPLY"]
    assert [line["order"] for line in last.values()] == [0, 1, 2, 3]
    for line in last.values():
        assert line["entries"] == told["applied"] == 3002, "the tree's root, what says its shape, and 3,000"
        assert line["waiting"] == line["current"] == 0
        spent_s = line["idle_s"] + line["busy_s"] + line["blocked_s"]
        assert spent_s == pytest.approx(line["workers"] * told["seconds"], rel=0.2, abs=0.2)
        assert line["busy_s"] > 0
    assert last["DB_APPLY"]["workers"] == 2
    assert last["DB_APPLY"]["blocked_s"] == 0
    for stage in ("GET_INFO_DB", "DB_APPLY"):
        assert 0 < last[stage]["server_s"] <= last[stage]["busy_s"] + 0.01, "calls to the database are time at work"
    assert last["SCAN"]["server_s"] is None, "it has no database"


def test_a_database_that_refuses_ends_it_with_one_line(tree: Path, config: Config, store: Store) -> None:
    seeded.make(tree / "made", Shape(500))
    store.drop()
    done = subprocess.run(command(replace(config, scanners=2)), stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "FATAL" in done.stderr and "no such table" in done.stderr and "Traceback" not in done.stderr


def test_a_tree_that_is_not_there_ends_it_with_one_line(config: Config) -> None:
    done = subprocess.run(command(replace(config, tree="/not/there")), stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "/not/there" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.long
def test_an_empty_tree_is_its_root(config: Config, store: Store) -> None:
    assert run(config)["applied"] == store.count() == 1
