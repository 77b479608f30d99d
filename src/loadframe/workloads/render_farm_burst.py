"""render-farm-burst: the story's acceptance test (targets: mariadb, mysql; axis: jobs).

From an empty farm: a job that submits jobs, recursively, until there are `jobs` of them; the last `listing_jobs` (half
of them at most) then each list every job in full, again until they have read enough. The reads are what is judged: how
long it takes to create a table says nothing about how long a listing takes.
"""

from dataclasses import dataclass
from pathlib import Path

from loadframe.model import Endpoint
from loadframe.workloads import farm, step_files, sysbench
from loadframe.workloads.databases import await_gone, name_of
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.mariadb import connected
from loadframe.workloads.options import rules, whole

MOST_JOBS = 1_000_000


@dataclass(frozen=True)
class BurstOptions(farm.FarmOptions):
    threads: int = whole(8, 1, 1024, "workers of the farm, each with its own connection")
    fan_out: int = whole(10, 1, 10_000, "jobs that each job submits")
    reads: int = whole(200, 1, 10_000_000, "a listing job repeats until it has read this many jobs")
    listing_jobs: int = whole(32, 1, 10_000, "how many of the last jobs (at most half) list every job in full")


class RenderFarmBurst(farm.Farm[BurstOptions]):
    kind = "render-farm-burst"
    axes = frozenset({"jobs"})
    axis_unit = "jobs"
    operations: tuple[str, ...] = ("submit", "read", "list")
    judged: tuple[str, ...] = ("read",)
    runs_to_completion = True
    model = BurstOptions
    levels = (2, MOST_JOBS)
    """One to submit, one to list, at least."""

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Empty the farm but for the first job, which submits all others."""
        self.check_level(level)
        self.install(endpoint)
        with connected(endpoint, "the first job") as connection:
            self.create_jobs(connection, name_of(endpoint), range(1, 2))

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        """Start sysbench on the farm that set_level has emptied; duration_s is ignored."""
        jobs = self.check_level(level)
        # Byte j tells all workers whether job j was submitted; the first one is there already. Byte 0: a worker failed.
        step_files.write(folder / "submitted", bytes([0, 1]) + bytes(jobs - 1), self.allowance.user)
        own: sysbench.Options = {
            "jobs": jobs,
            "fan_out": self.options.fan_out,
            "reads": self.options.reads,
            "listing": min(self.options.listing_jobs, jobs // 2),
            "rows": self.options.rows_per_table,
        }
        return self.run("render_farm_burst.lua", endpoint, folder, None, own)

    def after_step(self, endpoint: Endpoint) -> None:
        """Wait until the server is rid of a killed driver; the next step begins by emptying the farm."""
        with connected(endpoint, "to tidy up after a step") as connection:
            await_gone(connection, endpoint)


KIND = KindOfWorkload(RenderFarmBurst.kind, RenderFarmBurst, rules(BurstOptions), farm.requirements)
