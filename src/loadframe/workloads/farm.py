"""The render farm's job store in MariaDB, as both render-farm workloads prepare it.

A job keeps k tables, called kind_job (`job_17`, `work_17`, ...), each made from the table `template`. Jobs of the pool
are numbered; a driver that completes one submits another one under the same number.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadframe.errors import TargetError
from loadframe.model import Endpoint, Requirement
from loadframe.unix_socket import open_socket
from loadframe.workloads.requirements import program, python_package

if TYPE_CHECKING:
    import pymysql

    Connection = pymysql.connections.Connection[Any]

ENGINES = ("MyISAM", "Aria", "InnoDB")
MOST_TABLES_PER_JOB = 30
TABLE_KINDS = ("job", "work", "subjob", "callback", "data", *(f"extra{n}" for n in range(6, MOST_TABLES_PER_JOB + 1)))
STATEMENTS_PER_ROUND_TRIP = 100
DRIVER_GONE_WITHIN_S = 5.0


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What both render-farm workloads need beside the target."""
    return (program(kind, "sysbench", "sysbench"), python_package(kind, "pymysql", "mariadb"))


def socket_of(endpoint: Endpoint) -> str:
    """The server's socket; where it also listens on a port, the address is that port and the socket an option."""
    return endpoint.options.get("socket", endpoint.address)


def schema_of(endpoint: Endpoint) -> str:
    """The database that the farm lives in."""
    return endpoint.options.get("schema", "loadframe")


def tables_of(job: int | str, tables_per_job: int) -> list[str]:
    """The names of a job's tables, in the order in which they are created."""
    return [f"{kind}_{job}" for kind in TABLE_KINDS[:tables_per_job]]


@contextmanager
def connected(endpoint: Endpoint, doing: str, *, schema: bool = True) -> Iterator[Connection]:
    """A connection that accepts several statements at once. TargetError, saying what was being done, where the server
    refuses."""
    import pymysql
    from pymysql.constants import CLIENT

    try:
        connection = pymysql.connect(
            defer_connect=True,
            user=endpoint.options.get("user", "root"),
            password=endpoint.options.get("password", ""),
            database=schema_of(endpoint) if schema else None,
            autocommit=True,
            ssl_disabled=True,  # a local socket; making a TLS context takes 60 ms
            client_flag=CLIENT.MULTI_STATEMENTS,
        )
        connection.connect(open_socket(socket_of(endpoint)))
        try:
            yield connection
        finally:
            connection.close()
    except OSError as error:
        raise TargetError(
            f"No server answers at {socket_of(endpoint)}: {error.strerror or error}.",
            remedy="Its log says why it is not running.",
        ) from error
    except pymysql.err.MySQLError as error:
        number, *words = error.args or (0,)
        raise TargetError(
            f"The server at {socket_of(endpoint)} refused {doing}: {' '.join(map(str, words))} (error {number}).",
            remedy="If disk space, open files or tables ran out, raise that limit or lower the level; "
            "if the server has gone, its log says why.",
        ) from error


def execute(connection: Connection, statements: Sequence[str]) -> None:
    """Statements without results, many per round trip."""
    with connection.cursor() as cursor:
        for first in range(0, len(statements), STATEMENTS_PER_ROUND_TRIP):
            cursor.execute(";".join(statements[first : first + STATEMENTS_PER_ROUND_TRIP]))
            while cursor.nextset():
                pass


def install(endpoint: Endpoint, *, engine: str, payload_bytes: int, rows_per_table: int) -> None:
    """Make the schema, with the template of every job's tables and the archive. What was there before is dropped."""
    schema = schema_of(endpoint)
    rows = ", ".join(f"({row}, 0, REPEAT('x', {payload_bytes}))" for row in range(1, rows_per_table + 1))
    columns = f"id INT NOT NULL, state INT NOT NULL, payload VARBINARY({payload_bytes}) NOT NULL"
    with connected(endpoint, "to make the render farm's schema", schema=False) as connection:
        execute(
            connection,
            [
                f"DROP DATABASE IF EXISTS `{schema}`",
                f"CREATE DATABASE `{schema}`",
                f"USE `{schema}`",
                f"CREATE TABLE template ({columns}, PRIMARY KEY (id)) ENGINE = {engine}",
                f"CREATE TABLE archive (job VARCHAR(64) NOT NULL, {columns}) ENGINE = {engine}",
                f"INSERT INTO template VALUES {rows}",
            ],
        )


def create_jobs(connection: Connection, jobs: Sequence[int], *, tables_per_job: int, engine: str) -> None:
    """Create these jobs with their rows. A half-made job of an earlier attempt is made anew."""
    # One statement per table, creating and filling it at once, on one connection: about 1 ms per table here, where
    # CREATE LIKE and INSERT took 2.3 ms and more connections only waited for each other (DDL log, fsync).
    execute(
        connection,
        [
            f"CREATE OR REPLACE TABLE {name} (PRIMARY KEY (id)) ENGINE = {engine} SELECT * FROM template"
            for job in jobs
            for name in tables_of(job, tables_per_job)
        ],
    )


def missing_jobs(connection: Connection, wanted: int, tables_per_job: int) -> list[int]:
    """Which of the jobs 1..wanted are not complete: not made yet, or taken away by a driver that was stopped between
    completing one and submitting the next. A job's last table is made last and dropped with all others."""
    last_kind = TABLE_KINDS[tables_per_job - 1]
    there = {int(name.rpartition("_")[2]) for name in _tables_like(connection, f"^{last_kind}_[0-9]+$")}
    return [job for job in range(1, wanted + 1) if job not in there]


def tidy(connection: Connection) -> None:
    """Empty the archive, once no driver is at it any more."""
    await_drivers_gone(connection)
    execute(connection, ["TRUNCATE TABLE archive"])


def _tables_like(connection: Connection, pattern: str) -> list[str]:
    # Only the name is asked for: the server then reads the folder and opens no table.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name REGEXP %s",
            (pattern,),
        )
        return [name for (name,) in cursor.fetchall()]


def await_drivers_gone(connection: Connection) -> None:
    """A killed driver's last statement may still run in the server; wait until its connections are closed."""
    until = time.monotonic() + DRIVER_GONE_WITHIN_S
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
            )
            row = cursor.fetchone()
            if row is None or row[0] == 0:
                return
            time.sleep(0.01)
