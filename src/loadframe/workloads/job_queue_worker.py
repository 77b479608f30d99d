"""One worker of the job-queue workload: `python -P -m loadframe.workloads.job_queue_worker URI PRAGMAS LOG SECONDS
PAYLOAD_BYTES NUMBER` prints "ready" once its connection is open, and reads the instant of the common start
(CLOCK_MONOTONIC, s) from standard input. Standard library only, because many of these start together."""

import json
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import BinaryIO

from loadframe.workloads.request_log import RECORD

SUBMIT, CLAIM, COMPLETE = range(3)
DONE, BUSY = 0, 1
FLUSH_EVERY_S = 0.1
OPENING_TIMEOUT_S = 10.0
FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S = 0.001, 0.05

INSERT_JOB = "INSERT INTO job (state, payload) VALUES (0, ?)"
CLAIM_OLDEST = """UPDATE job SET state = 1, worker = ? WHERE id =
    (SELECT id FROM job WHERE state = 0 ORDER BY id LIMIT 1) RETURNING id"""
DELETE_JOB = "DELETE FROM job WHERE id = ?"


class Log:
    """A request log in memory, written every FLUSH_EVERY_S, so that a killed worker loses little."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._buffer = bytearray()
        self._written_s = time.monotonic()

    def add(self, end_s: float, latency_ms: float, waiting_ms: float, operation: int, outcome: int) -> None:
        self._buffer += RECORD.pack(end_s, latency_ms, waiting_ms, operation, outcome)
        if end_s - self._written_s > FLUSH_EVERY_S:
            self.write()
            self._written_s = end_s

    def write(self) -> None:
        self._file.write(self._buffer)
        self._file.flush()
        self._buffer.clear()


class Worker:
    """The three requests are each one transaction that takes the write lock at its begin."""

    def __init__(self, connection: sqlite3.Connection, log: Log, deadline_s: float, number: int, payload_bytes: int):
        self._connection = connection
        self._log = log
        self._deadline_s = deadline_s
        self._number = number
        self._payload = bytes(payload_bytes)

    def work(self) -> None:
        execute = self._connection.execute
        while time.monotonic() < self._deadline_s:
            self._request(SUBMIT, lambda: execute(INSERT_JOB, (self._payload,)))
            claimed: list[tuple[int]] = []
            self._request(CLAIM, lambda: claimed.extend(execute(CLAIM_OLDEST, (self._number,))))  # noqa: B023
            for (job,) in claimed:  # these functions are called before the next turn
                self._request(COMPLETE, lambda: execute(DELETE_JOB, (job,)))  # noqa: B023

    def _request(self, operation: int, action: Callable[[], object]) -> None:
        """A busy database fails the request, which is repeated after a back-off until the time is up."""
        back_off_s = FIRST_BACK_OFF_S
        while time.monotonic() < self._deadline_s:
            if self._transaction(operation, action):
                return
            time.sleep(back_off_s)
            back_off_s = min(2 * back_off_s, LONGEST_BACK_OFF_S)

    def _transaction(self, operation: int, action: Callable[[], object]) -> bool:
        start_s = time.monotonic()
        held_s = None
        outcome = DONE
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            held_s = time.monotonic()
            action()
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            outcome = BUSY
        end_s = time.monotonic()
        waiting_s = (held_s if held_s is not None else end_s) - start_s
        self._log.add(end_s, 1e3 * (end_s - start_s), 1e3 * waiting_s, operation, outcome)
        return outcome == DONE


def connect(database: str, pragmas: dict[str, str | int | float]) -> sqlite3.Connection:
    connection = sqlite3.connect(database, uri=True, isolation_level=None, timeout=OPENING_TIMEOUT_S)
    # Read before the pragmas apply: the first reader of a write-ahead log holds a lock, which is not part of the load.
    connection.execute("SELECT count(*) FROM job WHERE state = 0").fetchone()
    for name, value in pragmas.items():
        connection.execute(f"PRAGMA {name} = {value}").fetchall()
    return connection


def main(arguments: list[str]) -> int:
    """Exit 0 when the time was up; 1 with one line on standard error if SQLite or the disk refused."""
    database, pragmas, log_path, seconds, payload_bytes, number = arguments
    try:
        connection = connect(database, json.loads(pragmas))
        with open(log_path, "wb", buffering=0) as file:  # noqa: PTH123 - pathlib costs start-up time
            print("ready", flush=True)
            start_s = float(sys.stdin.readline())
            log = Log(file)
            worker = Worker(connection, log, start_s + float(seconds), int(number), int(payload_bytes))
            time.sleep(max(0.0, start_s - time.monotonic()))
            try:
                worker.work()
            finally:
                log.write()
                connection.close()
    except (sqlite3.Error, OSError) as error:
        print(f"{type(error).__name__}: {error} (database {database})", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
