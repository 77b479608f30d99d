"""job-queue: worker processes share one SQLite file as their queue (targets: sqlite; axis: concurrency = workers).

Each worker submits a job, claims the oldest pending one and completes it, in a closed loop; each of the three is one
transaction that takes SQLite's only write lock. What a request waits for the lock and what it holds it for are told
apart. The queue starts every step with the same backlog.
"""

from __future__ import annotations

import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadframe.cage.processes import Allowance, spawn
from loadframe.errors import TargetError, WorkloadError
from loadframe.model import Endpoint, Requirement, SettingValue
from loadframe.workloads.driving import ProcessDriver, tail
from loadframe.workloads.options import read_options, whole, whole_level

MOST_WORKERS = 1024
READY_WITHIN_S = 60.0
START_AFTER_S = 0.05
"""Between telling the first worker when to start and the start: enough to tell all of them."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS job (
    id INTEGER PRIMARY KEY, state INTEGER NOT NULL, worker INTEGER, payload BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS job_pending ON job (id) WHERE state = 0;
"""
FILL_BACKLOG = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :backlog)
INSERT INTO job (id, state, payload) SELECT n, 0, zeroblob(:payload_bytes) FROM number
"""


@dataclass(frozen=True)
class JobQueueOptions:
    payload_bytes: int = whole(200, 0, 1_000_000, "size of each job's payload in bytes")
    backlog: int = whole(1000, 1, 10_000_000, "pending jobs in the queue when a step starts")


class JobQueue:
    """The workload. Options: JobQueueOptions."""

    kind = "job-queue"
    target_kinds = frozenset({"sqlite"})
    axes = frozenset({"concurrency"})
    axis_unit = "workers"
    operations: tuple[str, ...] = ("submit", "claim", "complete")
    judged = operations
    one_lock = True
    runs_to_completion = False

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        self.allowance = allowance or Allowance()
        self.options = read_options(JobQueueOptions, self.kind, options)

    def check_level(self, level: float) -> int:
        """The number of workers. StudyError where the level cannot be one."""
        return whole_level(self.kind, "concurrency", level, 1, MOST_WORKERS)

    def describe_axis(self, level: float) -> str:
        return f"{level:g} worker" + ("" if level == 1 else "s")

    def install(self, endpoint: Endpoint) -> None:
        """Make the queue's table in the file that the target made."""
        with _connected(endpoint) as connection:
            connection.executescript(SCHEMA)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Bring the queue back to exactly the backlog, whatever the last step left; the level changes nothing else."""
        self.check_level(level)
        with _connected(endpoint) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM job")
            connection.execute(
                FILL_BACKLOG, {"backlog": self.options.backlog, "payload_bytes": self.options.payload_bytes}
            )
            connection.execute("COMMIT")
            # A log left by the last step would be paid for by the next one.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        """Start `level` workers, wait until each has opened the file, and let them begin at one instant."""
        folder = folder.resolve()
        numbers = range(self.check_level(level))
        logs = [folder / f"requests-{number}.log" for number in numbers]
        printed = [folder / f"worker-{number}.txt" for number in numbers]
        for log in logs:
            log.unlink(missing_ok=True)
        workers: list[subprocess.Popen[bytes]] = []
        try:
            for number, log, output in zip(numbers, logs, printed, strict=True):
                workers.append(self._worker(endpoint, number, log, output, duration_s))
            _await_ready(workers, printed)
            start_s = time.monotonic() + START_AFTER_S
            for worker in workers:
                _tell(worker, f"{start_s!r}\n")
        except BaseException:
            ProcessDriver(self.kind, workers, logs=logs, printed=printed, end_s=None).kill()
            raise
        return ProcessDriver(self.kind, workers, logs=logs, printed=printed, end_s=start_s + duration_s)

    def after_step(self, endpoint: Endpoint) -> None:
        """Nothing: SQLite rolls back what a killed worker left, and set_level empties the queue."""

    def _worker(
        self, endpoint: Endpoint, number: int, log: Path, output: Path, duration_s: float
    ) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "loadframe.workloads.job_queue_worker"]
        command += [_uri(endpoint), endpoint.options.get("pragmas", "{}"), str(log), repr(float(duration_s))]
        command += [str(self.options.payload_bytes), str(number)]
        with output.open("wb") as stderr:
            return spawn(
                command, self.allowance, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, cwd=log.parent
            )


def requirements(kind: str) -> tuple[Requirement, ...]:
    """Nothing but Python's own SQLite, new enough to return what an UPDATE changed (3.35)."""
    found = sqlite3.sqlite_version if sqlite3.sqlite_version_info >= (3, 35) else None
    return (Requirement(kind, "SQLite 3.35 or newer", found, "use a Python linked with a newer SQLite"),)


def _await_ready(workers: list[subprocess.Popen[bytes]], printed: list[Path]) -> None:
    """Read each worker's "ready". WorkloadError with its standard error where one ends instead, or takes too long."""
    until = time.monotonic() + READY_WITHIN_S
    for worker, output in zip(workers, printed, strict=True):
        assert worker.stdout is not None
        said = select.poll()  # select knows no descriptor above 1,023
        said.register(worker.stdout, select.POLLIN)
        if not said.poll(1000 * max(0.0, until - time.monotonic())):
            raise WorkloadError(
                f"Only some of {len(workers)} workers of the job queue were ready after {READY_WITHIN_S:.0f} s.",
                remedy="The machine may be too small for so many; try a lower level.",
            )
        if worker.stdout.readline() != b"ready\n":
            worker.wait()
            raise WorkloadError(
                f"A worker of the job queue could not start (process {worker.pid}, exit {worker.returncode}).",
                remedy="What it printed is below; check that the database's folder is there and can be written.",
                details=tail(output),
            )
        worker.stdout.close()


def _tell(worker: subprocess.Popen[bytes], line: str) -> None:
    assert worker.stdin is not None
    # A worker that died between "ready" and now is seen, and told with its own words, by the driver.
    try:
        worker.stdin.write(line.encode())
        worker.stdin.close()
    except BrokenPipeError:
        return


def _uri(endpoint: Endpoint) -> str:
    return Path(endpoint.address).resolve().as_uri() + "?mode=rw"


@contextmanager
def _connected(endpoint: Endpoint) -> Iterator[sqlite3.Connection]:
    """A connection for the preparation. TargetError where the file cannot be used."""
    with ExitStack() as stack:
        try:
            connection = sqlite3.connect(_uri(endpoint), uri=True, isolation_level=None, timeout=30)
            stack.callback(connection.close)
            yield connection
        except sqlite3.Error as error:
            raise TargetError(
                f"SQLite refused to prepare the job queue in {endpoint.address}: {error}.",
                remedy="Check that the file and its folder can be written, and that the disk has space left.",
            ) from error
