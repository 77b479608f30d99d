"""A farm manager's job database, by sysbench: under its daily mix (render-farm), and a user's acceptance test, of which
only the reads are judged, as the time to create tables does not show how long a listing takes (render-farm-burst).
Both, and why Open_tables is about k * active_jobs: docs/writing-a-workload.md. A job has k tables (`job_17`, `work_17`,
...), made from the table `template`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from loadframe.host.environment import python_package
from loadframe.model import Endpoint, Requirement
from loadframe.workloads import step_files, sysbench
from loadframe.workloads.base import demand
from loadframe.workloads.common import registration
from loadframe.workloads.databases import InOwnSchema, await_gone, make_schema_over, name_of
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.mariadb import ENGINES, ask, connected, execute, schema_of
from loadframe.workloads.options import choice, mix_of, whole

if TYPE_CHECKING:
    from loadframe.workloads.mariadb import Connection


MOST_TABLES_PER_JOB = 30
TABLE_KINDS = ("job", "work", "subjob", "callback", "data", *(f"extra{n}" for n in range(6, MOST_TABLES_PER_JOB + 1)))

MADE_AND_FILLED = (
    "DROP TABLE IF EXISTS {0}.{1};CREATE TABLE {0}.{1} LIKE {0}.template;INSERT INTO {0}.{1} SELECT * FROM {0}.template"
)
"""MySQL has no CREATE OR REPLACE TABLE, and with GTIDs it refuses a statement that makes and fills a table of MyISAM
(error 1786). A driver killed between the two leaves one table without rows."""
MOST_JOBS = 1_000_000
MIX = ("dispatch", "report", "submit", "complete", "list")
"""Operations in the order of the request log, as in render_farm.lua."""


def requirements(kind: str) -> tuple[Requirement, ...]:
    return (*sysbench.requirements(kind), python_package(kind, "pymysql", "mariadb"))


@dataclass(frozen=True)
class FarmOptions:
    tables_per_job: int = whole(5, 1, MOST_TABLES_PER_JOB, "tables that each job keeps")
    threads: int = whole(4, 1, 1024, "supervisor threads, each with its own connection")
    engine: str = choice("MyISAM", ENGINES, "storage engine of the tables")
    payload_bytes: int = whole(100, 1, 10_000, "payload of each row in bytes")
    rows_per_table: int = whole(4, 1, 1000, "rows in each table")


Options = TypeVar("Options", bound=FarmOptions)


class Farm(InOwnSchema, sysbench.BySysbench[Options]):
    target_kinds = frozenset({"mariadb", "mysql"})

    def install(self, endpoint: Endpoint) -> None:
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

    def create_jobs(self, connection: Connection, endpoint: Endpoint, jobs: Sequence[int]) -> None:
        """Make jobs with their rows, replacing half-made ones."""
        # One statement per table, creating and filling it at once, on one connection: about 1 ms per table here, where
        # CREATE LIKE and INSERT took 2.3 ms and more connections only waited for each other (DDL log, fsync).
        schema, at_once = name_of(endpoint), endpoint.kind == "mariadb"
        made = f"(PRIMARY KEY (id)) ENGINE = {self.options.engine} SELECT * FROM {schema}.template"
        execute(
            connection,
            [
                f"CREATE OR REPLACE TABLE {schema}.{name} {made}" if at_once else MADE_AND_FILLED.format(schema, name)
                for name in (f"{kind}_{job}" for job in jobs for kind in TABLE_KINDS[: self.options.tables_per_job])
            ],
        )

    def run(
        self, script: str, endpoint: Endpoint, folder: Path, seconds: float | None, own: sysbench.Options
    ) -> ProcessDriver:
        """own: options of the script. seconds: as in start_script."""
        tables = ",".join(TABLE_KINDS[: self.options.tables_per_job])
        filled = "after" if endpoint.kind == "mysql" else "made"
        return self.start_script(
            script,
            endpoint,
            folder,
            seconds,
            threads=self.options.threads,
            options={
                **sysbench.OURS,
                **own,
                "schema": name_of(endpoint),
                "tables": tables,
                "engine": self.options.engine,
                "filled": filled,
            },
        )


def tidy(connection: Connection, endpoint: Endpoint) -> None:
    """Empty the archive once no driver uses it."""
    await_gone(connection, endpoint)
    execute(connection, [f"TRUNCATE TABLE {name_of(endpoint)}.archive"])


@dataclass(frozen=True)
class RenderFarmOptions(FarmOptions):
    order: str = choice("turn", ("turn", "random"), "how a thread goes through its jobs")
    dispatch: int = whole(4989, 0, 1_000_000, "weight of dispatch in the mix of requests")
    report: int = whole(4989, 0, 1_000_000, "weight of report in the mix of requests")
    submit: int = whole(
        10, 0, 1_000_000, "weight of submit in the mix; it counts with complete: as many are submitted as completed"
    )
    complete: int = whole(10, 0, 1_000_000, "weight of complete in the mix of requests")
    list: int = whole(2, 0, 1_000_000, "weight of list in the mix of requests")


class RenderFarm(Farm[RenderFarmOptions]):
    """A thread that completes a job submits another one under the same number at once."""

    kind = "render-farm"
    axes = frozenset({"active_jobs"})
    axis_unit = "active jobs"
    operations: tuple[str, ...] = MIX
    model = RenderFarmOptions
    levels = (1, MOST_JOBS)

    def set_up(self) -> None:
        self._mix = mix_of(self.options, MIX)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """The pool of prepared jobs grows to the level; jobs beyond it are left alone."""
        wanted = self.check_level(level)
        with connected(endpoint, f"{wanted} active jobs") as connection:
            tidy(connection, endpoint)
            # Incomplete jobs are not made yet, or were removed by a driver that was stopped between completing one and
            # submitting the next. A job's last table is made last and dropped with all others. Asked only for names,
            # the server reads the folder and opens no table.
            last = f"^{TABLE_KINDS[self.options.tables_per_job - 1]}_[0-9]+$"
            like = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_name REGEXP %s"
            there = {int(name.rpartition("_")[2]) for (name,) in ask(connection, like, [schema_of(endpoint), last])}
            missing = [job for job in range(1, wanted + 1) if job not in there]
            self.create_jobs(connection, endpoint, missing)

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        seconds, jobs = repr(float(duration_s)), self.check_level(level)
        own: sysbench.Options = {"jobs": jobs, "order": self.options.order, "seconds": seconds, **self._mix}
        return self.run("render_farm.lua", endpoint, folder, duration_s, own)

    def after_step(self, endpoint: Endpoint) -> None:
        with connected(endpoint, "to tidy up after a step") as connection:
            tidy(connection, endpoint)


@dataclass(frozen=True)
class BurstOptions(FarmOptions):
    threads: int = whole(8, 1, 1024, "workers of the farm, each with its own connection")
    fan_out: int = whole(10, 1, 10_000, "jobs that each job submits")
    reads: int = whole(200, 1, 10_000_000, "a listing job repeats until it has read this many jobs")
    listing_jobs: int = whole(32, 1, 10_000, "how many of the last jobs (at most half) list every job in full")


class RenderFarmBurst(Farm[BurstOptions]):
    kind = "render-farm-burst"
    axes = frozenset({"jobs"})
    axis_unit = "jobs"
    operations: tuple[str, ...] = ("submit", "read", "list")
    judged: tuple[str, ...] = ("read",)
    runs_to_completion = True
    model = BurstOptions
    levels = (2, MOST_JOBS)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Empty the farm but for the first job, which submits all others."""
        self.check_level(level)
        self.install(endpoint)
        with connected(endpoint, "the first job") as connection:
            self.create_jobs(connection, endpoint, range(1, 2))

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        jobs = self.check_level(level)
        # Byte j shows all workers whether job j was submitted; the first one is there already. Byte 0: a worker failed.
        step_files.write(folder / "submitted", bytes([0, 1]) + bytes(jobs - 1), self.allowance.user)
        own: sysbench.Options = {
            "jobs": jobs,
            "fan_out": self.options.fan_out,
            "reads": self.options.reads,
            "listing": min(self.options.listing_jobs, jobs // 2),
            "rows": self.options.rows_per_table,
        }
        return self.run("render_farm_burst.lua", endpoint, folder, None, own)


KIND = registration(RenderFarm, requirements)
BURST = registration(RenderFarmBurst, requirements)
