"""render-farm: a farm manager's job database under its daily mix, by sysbench's render_farm.lua in a closed loop
(targets: mariadb, mysql; axis: active_jobs). Threads walk their own share of the jobs, so Open_tables is about k *
active_jobs however many threads there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import farm, sysbench
from loadframe.workloads.databases import name_of
from loadframe.workloads.driving import ProcessDriver
from loadframe.workloads.kind import KindOfWorkload
from loadframe.workloads.mariadb import connected, schema_of
from loadframe.workloads.options import choice, mix_of, rules, whole

MOST_JOBS = 1_000_000
MIX = ("dispatch", "report", "submit", "complete", "list")
"""The operations in the order of the request log; render_farm.lua counts them in the same order."""


@dataclass(frozen=True)
class RenderFarmOptions(farm.FarmOptions):
    order: str = choice("turn", ("turn", "random"), "how a thread goes through its jobs")
    dispatch: int = whole(4989, 0, 1_000_000, "weight of dispatch in the mix of requests")
    report: int = whole(4989, 0, 1_000_000, "weight of report in the mix of requests")
    submit: int = whole(
        10, 0, 1_000_000, "weight of submit in the mix; it counts with complete: as many are submitted as completed"
    )
    complete: int = whole(10, 0, 1_000_000, "weight of complete in the mix of requests")
    list: int = whole(2, 0, 1_000_000, "weight of list in the mix of requests")


class RenderFarm(farm.Farm[RenderFarmOptions]):
    """The number of active jobs stays the level's: when a thread completes a job it submits another one in its place at
    once. With fewer jobs than threads, threads share jobs, and none is completed."""

    kind = "render-farm"
    axes = frozenset({"active_jobs"})
    axis_unit = "active jobs"
    operations: tuple[str, ...] = MIX
    judged = operations
    model = RenderFarmOptions
    levels = (1, MOST_JOBS)

    def __init__(self, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> None:
        super().__init__(options, allowance)
        self._mix = mix_of(self.options, MIX)

    def set_level(self, endpoint: Endpoint, level: float) -> None:
        """Let the pool of prepared jobs grow to the level. It never shrinks: jobs beyond the level are left alone."""
        wanted = self.check_level(level)
        with connected(endpoint, f"{wanted} active jobs") as connection:
            farm.tidy(connection, endpoint)
            missing = farm.missing_jobs(connection, schema_of(endpoint), wanted, self.options.tables_per_job)
            self.create_jobs(connection, name_of(endpoint), missing)

    def start(self, endpoint: Endpoint, level: float, folder: Path, duration_s: float) -> ProcessDriver:
        seconds, jobs = repr(float(duration_s)), self.check_level(level)
        own: sysbench.Options = {"jobs": jobs, "order": self.options.order, "seconds": seconds, **self._mix}
        return self.run("render_farm.lua", endpoint, folder, duration_s, own)

    def after_step(self, endpoint: Endpoint) -> None:
        """Empty the archive, once the driver is gone from the server."""
        with connected(endpoint, "to tidy up after a step") as connection:
            farm.tidy(connection, endpoint)


KIND = KindOfWorkload(RenderFarm.kind, RenderFarm, rules(RenderFarmOptions), farm.requirements)
