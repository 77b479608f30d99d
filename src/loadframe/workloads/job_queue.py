"""Worker processes share one SQLite file as their queue. Each submits a job, claims the oldest pending one and
completes it, each in one transaction with SQLite's only write lock."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import TargetError
from loadframe.host.environment import importing
from loadframe.host.privilege import of_uid, rights_of
from loadframe.model import Endpoint, Requirement
from loadframe.workloads.common import Common, registration
from loadframe.workloads.driving import ProcessDriver, start_together
from loadframe.workloads.forking import Worker
from loadframe.workloads.options import whole

MOST_WORKERS = 1024

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


class JobQueue(Common[JobQueueOptions]):
    kind = "job-queue"
    target_kinds = frozenset({"sqlite"})
    axes = frozenset({"concurrency"})
    axis_unit = "workers"
    operations: tuple[str, ...] = ("submit", "claim", "complete")
    one_lock = True
    model = JobQueueOptions
    levels = (1, MOST_WORKERS)

    def trials(self) -> Sequence[Sequence[str]]:
        return (importing("loadframe.workloads.job_queue_worker"),)

    def install(self, endpoint: Endpoint) -> None:
        with _connected(endpoint) as connection:
            connection.executescript(SCHEMA)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """The queue has exactly the backlog again: SQLite has rolled back what a killed worker was doing."""
        self.check_level(level)
        with _connected(endpoint) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM job")
            connection.execute(
                FILL_BACKLOG, {"backlog": self.options.backlog, "payload_bytes": self.options.payload_bytes}
            )
            connection.execute("COMMIT")
            # The next step would pay for a log left by the last one.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        folder, workers = folder.resolve(), list[Worker]()
        for number in range(self.check_level(level)):
            log = folder / f"requests-{number}.log"
            arguments = [_uri(endpoint), endpoint.options.get("pragmas", "{}"), str(log), repr(float(duration_s))]
            arguments += [str(self.options.payload_bytes), str(number)]
            printed = folder / f"worker-{number}.txt"
            workers.append(Worker("loadframe.workloads.job_queue_worker", arguments, log, printed))
        return start_together(self.kind, workers, self.allowance, duration_s, one_each=True)

    def remove(self, endpoint: Endpoint) -> None:
        with _connected(endpoint) as connection:
            connection.execute("DROP TABLE IF EXISTS job")


def requirements(kind: str) -> tuple[Requirement, ...]:
    """Only Python's own SQLite, new enough for RETURNING (3.35)."""
    version = sqlite3.sqlite_version if sqlite3.sqlite_version_info >= (3, 35) else None
    return (Requirement(kind, "SQLite 3.35 or newer", version, "use a Python linked with a newer SQLite"),)


def _uri(endpoint: Endpoint) -> str:
    return Path(endpoint.address).resolve().as_uri() + "?mode=rw"


@contextmanager
def _connected(endpoint: Endpoint) -> Iterator[sqlite3.Connection]:
    with ExitStack() as stack:
        try:
            stack.enter_context(rights_of(of_uid(Path(endpoint.address).parent.stat().st_uid)))
            connection = sqlite3.connect(_uri(endpoint), uri=True, isolation_level=None, timeout=30)
            stack.callback(connection.close)
            yield connection
        except sqlite3.Error as error:
            raise TargetError(
                f"SQLite refused to prepare the job queue in {endpoint.address}: {error}.",
                remedy="Check that the file and its folder can be written, and that the disk has space left.",
            ) from error


KIND = registration(JobQueue, requirements)
