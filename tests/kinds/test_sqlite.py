"""SQLite's own ways: what the file remembers, what each connection must set, and who is in the way."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

import pytest

from loadframe.errors import StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.sqlite.kind import SqliteTarget
from loadframe.model import TargetState


@pytest.fixture
def target(lease: Lease) -> Iterator[SqliteTarget]:
    target = SqliteTarget(lease=lease, resources=Resources().run_by(lease.runs_as))
    target.create()
    yield target
    target.destroy()


def pragmas(target: SqliteTarget) -> dict[str, object]:
    found: dict[str, object] = json.loads(target.endpoint().options["pragmas"])
    return found


def test_wal_is_in_the_file_so_that_any_connection_has_it(target: SqliteTarget) -> None:
    target.start(TargetState({"journal_mode": "WAL"}))
    connection = sqlite3.connect(target.endpoint().address)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert pragmas(target) == {}


def test_what_the_file_does_not_remember_is_carried_to_each_connection_in_a_working_order(target: SqliteTarget) -> None:
    target.start(TargetState({"synchronous": "off", "journal_mode": "truncate", "busy_timeout": 9}))
    assert list(pragmas(target).items()) == [("busy_timeout", 9), ("journal_mode", "TRUNCATE"), ("synchronous", "OFF")]


def test_the_page_size_changes_with_data_inside_also_in_wal_mode(target: SqliteTarget) -> None:
    target.start(TargetState({"journal_mode": "WAL"}))
    connection = sqlite3.connect(target.endpoint().address)
    connection.execute("CREATE TABLE jobs AS SELECT 7 AS id")
    connection.commit()
    connection.close()
    target.apply(TargetState({"journal_mode": "WAL", "page_size": 16384}))
    effective = target.effective()
    assert (effective["page_size"], effective["journal_mode"]) == (16384, "WAL")
    connection = sqlite3.connect(target.endpoint().address)
    assert connection.execute("SELECT id FROM jobs").fetchall() == [(7,)]
    connection.close()


def test_the_log_is_measured_and_emptied_before_a_step(target: SqliteTarget) -> None:
    target.start(TargetState({"journal_mode": "WAL"}))
    connection = sqlite3.connect(target.endpoint().address)
    connection.execute("CREATE TABLE jobs (id)")
    assert target.counters()["wal_bytes"] > 0
    target.reset()
    assert target.counters()["wal_bytes"] == 0
    assert target.counters()["database_bytes"] > 0
    connection.close()


def test_somebody_who_has_the_file_open_is_in_the_way_and_it_is_said(target: SqliteTarget) -> None:
    target.start(TargetState({"journal_mode": "WAL", "busy_timeout": 1}))
    other = sqlite3.connect(target.endpoint().address, isolation_level=None)
    other.execute("CREATE TABLE jobs (id)")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TargetError, match="locked") as caught:
        target.apply(TargetState({"journal_mode": "DELETE", "busy_timeout": 1}))
    assert "End every other process" in caught.value.remedy
    other.close()


def test_limits_of_a_process_that_it_does_not_have_are_refused(target: SqliteTarget) -> None:
    with pytest.raises(StudyError, match="RLIMIT_NOFILE"):
        target.start(TargetState(limits={"RLIMIT_NOFILE": 100}))


def test_a_file_that_is_no_database_is_a_clear_error(target: SqliteTarget, lease: Lease) -> None:
    (lease.folder / "sqlite" / "database.sqlite").write_bytes(b"no database, and longer than a header of 100 B" * 9)
    with pytest.raises(TargetError, match="not a database"):
        target.start(TargetState())
