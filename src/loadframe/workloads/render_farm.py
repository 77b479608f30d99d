"""render-farm: a farm manager's job database under its daily mix (targets: mariadb; axis: active_jobs).

Every active job keeps k tables. dispatch reads one job's tables and updates its first, report updates all of them,
submit creates a job, complete archives and drops one, list reads every active job in full. Threads walk their own
share of the jobs, so Open_tables is about k * active_jobs however many threads there are. sysbench runs
render_farm.lua in a closed loop: a request begins when the one before has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import farm, sysbench
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.mariadb import ENGINES, connected, drop_schema
from loadframe.workloads.options import choice, mix_of, read_options, rules, whole, whole_level
from loadframe.workloads.requirements import demand
from loadframe.workloads.sysbench import OURS, start_script

MOST_JOBS = 1_000_000
MIX = ("dispatch", "report", "submit", "complete", "list")
"""The operations in the order of the request log; render_farm.lua counts them in the same order."""


@dataclass(frozen=True)
class RenderFarmOptions:
    tables_per_job: int = whole(5, 1, farm.MOST_TABLES_PER_JOB, "tables that each job keeps")
    threads: int = whole(4, 1, 1024, "supervisor threads, each with its own connection")
    engine: str = choice("MyISAM", ENGINES, "storage engine of the tables")
    payload_bytes: int = whole(100, 1, 10_000, "payload of each row in bytes")
    rows_per_table: int = whole(4, 1, 1000, "rows in each table")
    order: str = choice("turn", ("turn", "random"), "how a thread goes through its jobs")
    dispatch: int = whole(4989, 0, 1_000_000, "weight of dispatch in the mix of requests")
    report: int = whole(4989, 0, 1_000_000, "weight of report in the mix of requests")
    submit: int = whole(
        10, 0, 1_000_000, "weight of submit in the mix; it counts with complete: as many are submitted as completed"
    )
    complete: int = whole(10, 0, 1_000_000, "weight of complete in the mix of requests")
    list: int = whole(2, 0, 1_000_000, "weight of list in the mix of requests")


class RenderFarm:
    """The workload. Options: RenderFarmOptions.

    The number of active jobs stays the level's: when a thread completes a job it submits another one in its place at
    once. With fewer jobs than threads, threads share jobs, and none is completed.
    """

    kind = "render-farm"
    target_kinds = frozenset({"mariadb"})
    axes = frozenset({"active_jobs"})
    axis_unit = "active jobs"
    operations: tuple[str, ...] = MIX
    judged = operations
    one_lock = False
    runs_to_completion = False

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        self.allowance = allowance or Allowance()
        self.options = read_options(RenderFarmOptions, self.kind, options)
        self._mix = mix_of(self.options, MIX)

    def check_level(self, level: float) -> int:
        """The number of active jobs. StudyError where the level cannot be one."""
        return whole_level(self.kind, "active_jobs", level, 1, MOST_JOBS)

    def describe_axis(self, level: float) -> str:
        return f"{level:g} active job" + ("" if level == 1 else "s")

    def trials(self) -> Sequence[Sequence[str]]:
        """See Workload."""
        return sysbench.trials()

    def install(self, endpoint: Endpoint) -> None:
        """Make the farm's schema, empty."""
        demand(farm.requirements(self.kind))
        farm.install(
            endpoint,
            engine=self.options.engine,
            payload_bytes=self.options.payload_bytes,
            rows_per_table=self.options.rows_per_table,
        )

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Let the pool of prepared jobs grow to the level. It never shrinks: jobs beyond the level are left alone."""
        wanted = self.check_level(level)
        with connected(endpoint, f"{wanted} active jobs") as connection:
            farm.tidy(connection)
            farm.create_jobs(
                connection,
                farm.missing_jobs(connection, wanted, self.options.tables_per_job),
                tables_per_job=self.options.tables_per_job,
                engine=self.options.engine,
            )

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        """Start sysbench; its threads work for duration_s from the moment each is connected."""
        demand(farm.requirements(self.kind))
        return start_script(
            self.kind,
            "render_farm.lua",
            endpoint,
            allowance=self.allowance,
            threads=self.options.threads,
            folder=folder,
            duration_s=duration_s,
            options={
                **OURS,
                "jobs": self.check_level(level),
                "tables": ",".join(farm.TABLE_KINDS[: self.options.tables_per_job]),
                "engine": self.options.engine,
                "order": self.options.order,
                "seconds": repr(float(duration_s)),
                **self._mix,
            },
        )

    def after_step(self, endpoint: Endpoint) -> None:
        """Empty the archive, once the driver is gone from the server."""
        with connected(endpoint, "to tidy up after a step") as connection:
            farm.tidy(connection)

    def remove(self, endpoint: Endpoint) -> None:
        """Drop the farm's database."""
        drop_schema(endpoint)


KIND = KindOfWorkload(RenderFarm.kind, RenderFarm, rules(RenderFarmOptions), farm.requirements)
