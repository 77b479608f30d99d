"""The render farm's job store in MariaDB, as both render-farm workloads prepare it.

A job keeps k tables, called kind_job (`job_17`, `work_17`, ...), each made from the table `template`. Jobs of the pool
are numbered; a driver that completes one submits another one under the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loadframe.model import Endpoint, Requirement
from loadframe.workloads.mariadb import await_drivers_gone, connected, execute, make_schema
from loadframe.workloads.requirements import program, python_package

if TYPE_CHECKING:
    from loadframe.workloads.mariadb import Connection

MOST_TABLES_PER_JOB = 30
TABLE_KINDS = ("job", "work", "subjob", "callback", "data", *(f"extra{n}" for n in range(6, MOST_TABLES_PER_JOB + 1)))


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What both render-farm workloads need beside the target."""
    return (program(kind, "sysbench", "sysbench"), python_package(kind, "pymysql", "mariadb"))


def tables_of(job: int | str, tables_per_job: int) -> list[str]:
    """The names of a job's tables, in the order in which they are created."""
    return [f"{kind}_{job}" for kind in TABLE_KINDS[:tables_per_job]]


def install(endpoint: Endpoint, *, engine: str, payload_bytes: int, rows_per_table: int) -> None:
    """Make the schema, with the template of every job's tables and the archive. What was there before is dropped."""
    rows = ", ".join(f"({row}, 0, REPEAT('x', {payload_bytes}))" for row in range(1, rows_per_table + 1))
    columns = f"id INT NOT NULL, state INT NOT NULL, payload VARBINARY({payload_bytes}) NOT NULL"
    with connected(endpoint, "to make the render farm's schema", schema=False) as connection:
        make_schema(connection, endpoint)
        execute(
            connection,
            [
                f"CREATE TABLE template ({columns}, PRIMARY KEY (id)) ENGINE = {engine}",
                f"CREATE TABLE archive (job VARCHAR(64) NOT NULL, {columns}) ENGINE = {engine}",
                f"INSERT INTO template VALUES {rows}",
            ],
        )


def create_jobs(connection: Connection, jobs: Sequence[int], *, tables_per_job: int, engine: str) -> None:
    """Create these jobs with their rows. A half-made job of an earlier attempt is made again."""
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
