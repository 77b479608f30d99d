"""render-farm-burst: the story's acceptance test (targets: mariadb; axis: jobs).

From an empty farm: a job that submits jobs, recursively, until there are `jobs` of them; the last `listing_jobs` (half
of them at most) then each list every job in full, which opens every table there is; where jobs are few, they list
again until they have read enough. All jobs are run by `threads`
workers. A step ends when the last listing is done. submit is the creation of one job, read the reading of one job by a
listing, list a whole listing (its completion time), each from the moment its worker begins it. The reads are what is
judged: how long it takes to create a table says nothing about how long a listing takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import farm, step_files, sysbench
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.mariadb import ENGINES, await_drivers_gone, connected, drop_schema
from loadframe.workloads.options import choice, read_options, rules, whole, whole_level
from loadframe.workloads.requirements import demand
from loadframe.workloads.sysbench import OURS, start_script

MOST_JOBS = 1_000_000


@dataclass(frozen=True)
class BurstOptions:
    tables_per_job: int = whole(5, 1, farm.MOST_TABLES_PER_JOB, "tables that each job keeps")
    threads: int = whole(8, 1, 1024, "workers of the farm, each with its own connection")
    engine: str = choice("MyISAM", ENGINES, "storage engine of the tables")
    payload_bytes: int = whole(100, 1, 10_000, "payload of each row in bytes")
    rows_per_table: int = whole(4, 1, 1000, "rows in each table of a new job")
    fan_out: int = whole(10, 1, 10_000, "jobs that each job submits")
    reads: int = whole(200, 1, 10_000_000, "a listing job repeats until it has read this many jobs")
    listing_jobs: int = whole(32, 1, 10_000, "how many of the last jobs (at most half) list every job in full")


class RenderFarmBurst:
    """The workload. Options: BurstOptions."""

    kind = "render-farm-burst"
    target_kinds = frozenset({"mariadb"})
    axes = frozenset({"jobs"})
    axis_unit = "jobs"
    operations: tuple[str, ...] = ("submit", "read", "list")
    judged: tuple[str, ...] = ("read",)
    one_lock = False
    runs_to_completion = True

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        self.allowance = allowance or Allowance()
        self.options = read_options(BurstOptions, self.kind, options)

    def check_level(self, level: float) -> int:
        """The number of jobs. StudyError where the level cannot be one: one to submit, one to list, at least."""
        return whole_level(self.kind, "jobs", level, 2, MOST_JOBS)

    def describe_axis(self, level: float) -> str:
        return f"{level:g} jobs"

    def trials(self) -> Sequence[Sequence[str]]:
        """See Workload."""
        return sysbench.trials()

    def install(self, endpoint: Endpoint) -> None:
        """Make the farm's schema, empty."""
        demand(farm.requirements(self.kind))
        self._empty(endpoint)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Empty the farm but for the first job, which submits all others."""
        self.check_level(level)
        self._empty(endpoint)
        with connected(endpoint, "the first job") as connection:
            farm.create_jobs(
                connection, range(1, 2), tables_per_job=self.options.tables_per_job, engine=self.options.engine
            )

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        """Start sysbench on the farm that set_level has emptied; duration_s is ignored."""
        demand(farm.requirements(self.kind))
        jobs = self.check_level(level)
        # Byte j tells all workers whether job j was submitted; the first one is there already. Byte 0: a worker failed.
        step_files.write(folder / "submitted", bytes([0, 1]) + bytes(jobs - 1), self.allowance.user)
        return start_script(
            self.kind,
            "render_farm_burst.lua",
            endpoint,
            allowance=self.allowance,
            threads=self.options.threads,
            folder=folder,
            duration_s=None,
            options={
                **OURS,
                "jobs": jobs,
                "fan_out": self.options.fan_out,
                "reads": self.options.reads,
                "listing": min(self.options.listing_jobs, jobs // 2),
                "rows": self.options.rows_per_table,
                "tables": ",".join(farm.TABLE_KINDS[: self.options.tables_per_job]),
                "engine": self.options.engine,
            },
        )

    def after_step(self, endpoint: Endpoint) -> None:
        """Wait until the server is rid of a killed driver; the next step begins by emptying the farm."""
        with connected(endpoint, "to tidy up after a step") as connection:
            await_drivers_gone(connection)

    def remove(self, endpoint: Endpoint) -> None:
        """Drop the farm's database."""
        drop_schema(endpoint)

    def _empty(self, endpoint: Endpoint) -> None:
        farm.install(
            endpoint,
            engine=self.options.engine,
            payload_bytes=self.options.payload_bytes,
            rows_per_table=self.options.rows_per_table,
        )


KIND = KindOfWorkload(RenderFarmBurst.kind, RenderFarmBurst, rules(BurstOptions), farm.requirements)
