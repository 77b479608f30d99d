"""The job queue: jobs are neither lost nor run twice, steps start alike, and waiting is told from holding."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from loadframe.errors import TargetError, WorkloadError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint
from loadframe.workloads import registry
from loadframe.workloads.job_queue import JobQueue
from loadframe.workloads.request_log import Requests

BACKLOG = 30
TRAIL = """
CREATE TABLE trail (job INTEGER, event TEXT);
CREATE TRIGGER submitted AFTER INSERT ON job BEGIN INSERT INTO trail VALUES (NEW.id, 'submitted'); END;
CREATE TRIGGER claimed AFTER UPDATE OF state ON job BEGIN INSERT INTO trail VALUES (NEW.id, 'claimed'); END;
CREATE TRIGGER completed AFTER DELETE ON job BEGIN INSERT INTO trail VALUES (OLD.id, 'completed'); END;
"""


@pytest.fixture
def queue() -> JobQueue:
    return JobQueue({"backlog": BACKLOG, "payload_bytes": 10}, Allowance(US))


@contextmanager
def opened(endpoint: Endpoint) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(endpoint.address, isolation_level=None)) as connection:
        yield connection


def run(queue: JobQueue, endpoint: Endpoint, workers: int, folder: Path, seconds: float = 0.7) -> Requests:
    driver = queue.start(endpoint, workers, folder, seconds)
    try:
        assert driver.wait(60)
        return driver.requests()
    finally:
        driver.kill()


def done(requests: Requests, operation: str) -> int:
    return int(((requests.operation == JobQueue.operations.index(operation)) & (requests.outcome == 0)).sum())


def test_four_workers_lose_no_job_and_run_none_twice(queue: JobQueue, queue_file: Endpoint, tmp_path: Path) -> None:
    queue.install(queue_file)
    queue.set_level(queue_file, 4)
    with opened(queue_file) as connection:
        connection.executescript(TRAIL)
        connection.execute("INSERT INTO trail SELECT id, 'submitted' FROM job")
    requests = run(queue, queue_file, 4, tmp_path)
    with opened(queue_file) as connection:
        events = {
            event: [job for (job,) in connection.execute("SELECT job FROM trail WHERE event = ?", (event,))]
            for event in ("submitted", "claimed", "completed")
        }
        left = {job for (job,) in connection.execute("SELECT id FROM job")}
        workers = connection.execute("SELECT count(DISTINCT worker) FROM job WHERE state = 1").fetchone()[0]
    for event in events.values():
        assert len(event) == len(set(event))
    assert set(events["completed"]) <= set(events["claimed"]) <= set(events["submitted"])
    assert left == set(events["submitted"]) - set(events["completed"])
    assert workers <= 4
    assert done(requests, "submit") == len(events["submitted"]) - BACKLOG
    assert done(requests, "claim") == len(events["claimed"]) > 10
    assert done(requests, "complete") == len(events["completed"])


def test_jobs_are_claimed_oldest_first(queue: JobQueue, queue_file: Endpoint, tmp_path: Path) -> None:
    queue.install(queue_file)
    queue.set_level(queue_file, 1)
    with opened(queue_file) as connection:
        connection.executescript(TRAIL)
    run(queue, queue_file, 1, tmp_path, 0.3)
    with opened(queue_file) as connection:
        claimed = [job for (job,) in connection.execute("SELECT job FROM trail WHERE event = 'claimed' ORDER BY rowid")]
    assert claimed == list(range(1, len(claimed) + 1))


def test_every_step_starts_with_the_same_backlog(queue: JobQueue, queue_file: Endpoint, tmp_path: Path) -> None:
    queue.install(queue_file)
    for _ in range(2):
        queue.set_level(queue_file, 2)
        with opened(queue_file) as connection:
            rows = connection.execute("SELECT id, state, length(payload) FROM job ORDER BY id").fetchall()
        assert rows == [(number, 0, 10) for number in range(1, BACKLOG + 1)]
        log = Path(queue_file.address + "-wal")
        assert not log.exists() or log.stat().st_size == 0
        run(queue, queue_file, 2, tmp_path, 0.2)


def test_waiting_for_the_lock_is_told_from_holding_it(queue: JobQueue, queue_file: Endpoint, tmp_path: Path) -> None:
    queue.install(queue_file)
    queue.set_level(queue_file, 4)
    requests = run(queue, queue_file, 4, tmp_path, 0.7)
    held_s = (requests.latency_ms - requests.waiting_ms)[requests.outcome == 0].sum() / 1e3
    assert 0 < held_s < 0.7 * 1.2, "only one of them can hold the lock at a time"
    assert requests.waiting_ms.sum() > requests.latency_ms.sum() / 4, "four contend for one lock"


def test_a_busy_database_is_an_error_that_is_asked_again(queue: JobQueue, queue_file: Endpoint, tmp_path: Path) -> None:
    impatient = dataclasses.replace(queue_file, options={"pragmas": json.dumps({"busy_timeout": 0})})
    queue.install(impatient)
    queue.set_level(impatient, 1)
    with opened(queue_file) as connection:
        connection.execute("BEGIN IMMEDIATE")
        requests = run(queue, impatient, 1, tmp_path, 0.3)
        connection.execute("ROLLBACK")
    assert len(requests) > 3
    assert set(requests.outcome) == {1}
    assert set(requests.operation) == {0}, "the same request is asked again"
    assert (requests.waiting_ms == requests.latency_ms).all()


def test_pragmas_reach_every_worker(queue: JobQueue, queue_file: Endpoint, tmp_path: Path) -> None:
    queue.install(queue_file)
    queue.set_level(queue_file, 1)
    read_only = dataclasses.replace(queue_file, options={"pragmas": json.dumps({"query_only": 1})})
    with pytest.raises(WorkloadError) as caught:
        run(queue, read_only, 2, tmp_path)
    assert "readonly database" in caught.value.details


def test_a_full_disk_ends_the_driver_with_sqlites_own_words(
    queue: JobQueue, queue_file: Endpoint, tmp_path: Path
) -> None:
    queue.install(queue_file)
    queue.set_level(queue_file, 1)
    with opened(queue_file) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    full = dataclasses.replace(queue_file, options={"pragmas": json.dumps({"max_page_count": pages})})
    large = JobQueue({"payload_bytes": 100_000}, Allowance(US))
    with pytest.raises(WorkloadError) as caught:
        run(large, full, 2, tmp_path)
    assert "full" in caught.value.details
    with pytest.raises(WorkloadError) as caught:
        queue.start(dataclasses.replace(queue_file, options={"pragmas": "no JSON"}), 1, tmp_path, 1.0)
    assert "no JSON" in caught.value.details or "pragmas" in caught.value.details


def test_a_file_that_is_no_database_is_refused(queue: JobQueue, tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    path.write_bytes(os.urandom(4096))
    with pytest.raises(TargetError, match="not a database"):
        queue.install(Endpoint("sqlite", str(path)))


def test_the_driver_is_all_its_workers(queue_file: Endpoint, tmp_path: Path) -> None:
    queue = registry.make("job-queue", {}, Allowance(US))
    queue.install(queue_file)
    queue.set_level(queue_file, 3)
    driver = queue.start(queue_file, 3, tmp_path, 30.0)
    try:
        commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in driver.pids()]
    finally:
        driver.kill()
    assert len(commands) == 3
    assert all(b"job_queue_worker" in command for command in commands)


def test_a_lab_that_holds_a_thousand_files_open_can_start_workers(
    queue: JobQueue, queue_file: Endpoint, tmp_path: Path
) -> None:
    queue.install(queue_file)
    queue.set_level(queue_file, 1)
    with ExitStack() as held:
        for _ in range(1024):
            held.enter_context(Path("/dev/null").open())
        driver = queue.start(queue_file, 1, tmp_path, 0.1)
        try:
            assert driver.wait(60)
        finally:
            driver.kill()
