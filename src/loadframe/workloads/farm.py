"""The render farm's job store, as both render-farm workloads prepare it: each job has k tables (`job_17`, `work_17`,
...), made from the table `template`. A driver that completes a job of the pool submits another one under the same
number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from loadframe.connections.mariadb_connection import server_version
from loadframe.host.environment import python_package
from loadframe.model import Endpoint, Requirement
from loadframe.workloads import sysbench
from loadframe.workloads.common import Common
from loadframe.workloads.databases import await_gone, drop_schema, make_schema_over, name_of
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.kind import demand
from loadframe.workloads.mariadb import ENGINES, ask, connected, execute
from loadframe.workloads.options import choice, whole

if TYPE_CHECKING:
    from loadframe.workloads.mariadb import Connection

MOST_TABLES_PER_JOB = 30
TABLE_KINDS = ("job", "work", "subjob", "callback", "data", *(f"extra{n}" for n in range(6, MOST_TABLES_PER_JOB + 1)))

MADE_AND_FILLED = (
    "DROP TABLE IF EXISTS {0}.{1};CREATE TABLE {0}.{1} LIKE {0}.template;INSERT INTO {0}.{1} SELECT * FROM {0}.template"
)
"""MySQL has no CREATE OR REPLACE TABLE, and with GTIDs, which are on in 9.7, it refuses a statement that makes and
fills a table of MyISAM (error 1786). A driver that is killed between the two leaves one table without rows."""


def requirements(kind: str) -> tuple[Requirement, ...]:
    """What both render-farm workloads need beside the target."""
    return (*sysbench.requirements(kind), python_package(kind, "pymysql", "mariadb"))


def tables_of(job: int | str, tables_per_job: int) -> list[str]:
    """The names of a job's tables, in the order in which they are created."""
    return [f"{kind}_{job}" for kind in TABLE_KINDS[:tables_per_job]]


@dataclass(frozen=True)
class FarmOptions:
    tables_per_job: int = whole(5, 1, MOST_TABLES_PER_JOB, "tables that each job keeps")
    threads: int = whole(4, 1, 1024, "supervisor threads, each with its own connection")
    engine: str = choice("MyISAM", ENGINES, "storage engine of the tables")
    payload_bytes: int = whole(100, 1, 10_000, "payload of each row in bytes")
    rows_per_table: int = whole(4, 1, 1000, "rows in each table")


Options = TypeVar("Options", bound=FarmOptions)


class Farm(Common[Options]):
    """What both do to the job store."""

    target_kinds = frozenset({"mariadb", "mysql"})
    trials = staticmethod(sysbench.trials)

    def install(self, endpoint: Endpoint) -> None:
        """Make the schema, with the template of every job's tables and the archive, in place of one that was there."""
        demand(requirements(self.kind))
        options, size = self.options, self.options.payload_bytes
        rows = ", ".join(f"({row}, 0, REPEAT('x', {size}))" for row in range(1, options.rows_per_table + 1))
        columns = f"id INT NOT NULL, state INT NOT NULL, payload VARBINARY({size}) NOT NULL"
        schema = name_of(endpoint)
        with connected(endpoint, "to make the render farm's schema", schema=False) as connection:
            make_schema_over(connection, endpoint)
            execute(
                connection,
                [
                    f"CREATE TABLE {schema}.template ({columns}, PRIMARY KEY (id)) ENGINE = {options.engine}",
                    f"CREATE TABLE {schema}.archive (job VARCHAR(64) NOT NULL, {columns}) ENGINE = {options.engine}",
                    f"INSERT INTO {schema}.template VALUES {rows}",
                ],
            )

    def create_jobs(self, connection: Connection, schema: str, jobs: Sequence[int]) -> None:
        """Create these jobs with their rows, also half-made ones again. schema: as statements name it."""
        # One statement per table, creating and filling it at once, on one connection: about 1 ms per table here, where
        # CREATE LIKE and INSERT took 2.3 ms and more connections only waited for each other (DDL log, fsync).
        made = f"(PRIMARY KEY (id)) ENGINE = {self.options.engine} SELECT * FROM {schema}.template"
        at_once = "MariaDB" in server_version(connection)
        execute(
            connection,
            [
                f"CREATE OR REPLACE TABLE {schema}.{name} {made}" if at_once else MADE_AND_FILLED.format(schema, name)
                for job in jobs
                for name in tables_of(job, self.options.tables_per_job)
            ],
        )

    def run(
        self, script: str, endpoint: Endpoint, folder: Path, seconds: float | None, own: sysbench.Options
    ) -> ProcessDriver:
        """Start sysbench with this script and its own options. seconds: as in start_script."""
        demand(requirements(self.kind))
        tables = ",".join(TABLE_KINDS[: self.options.tables_per_job])
        filled = "after" if endpoint.kind == "mysql" else "made"
        return sysbench.start_script(
            self.kind,
            script,
            endpoint,
            allowance=self.allowance,
            threads=self.options.threads,
            folder=folder,
            duration_s=seconds,
            options={
                **sysbench.OURS,
                **own,
                "schema": name_of(endpoint),
                "tables": tables,
                "engine": self.options.engine,
                "filled": filled,
            },
        )

    def remove(self, endpoint: Endpoint) -> None:
        drop_schema(endpoint)


def missing_jobs(connection: Connection, schema: str, wanted: int, tables_per_job: int) -> list[int]:
    """Which of the jobs 1..wanted are not complete: not made yet, or taken away by a driver that was stopped between
    completing one and submitting the next. A job's last table is made last and dropped with all others."""
    last_kind = TABLE_KINDS[tables_per_job - 1]
    # Only the name is asked for: the server then reads the folder and opens no table.
    like = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_name REGEXP %s"
    there = {int(name.rpartition("_")[2]) for (name,) in ask(connection, like, [schema, f"^{last_kind}_[0-9]+$"])}
    return [job for job in range(1, wanted + 1) if job not in there]


def tidy(connection: Connection, endpoint: Endpoint) -> None:
    """Empty the archive, once no driver is at it any more."""
    await_gone(connection, endpoint)
    execute(connection, [f"TRUNCATE TABLE {name_of(endpoint)}.archive"])
