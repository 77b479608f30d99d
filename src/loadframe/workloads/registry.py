"""Every workload by its kind. A new one is added here and in docs/writing-a-workload.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loadframe.errors import StudyError
from loadframe.host.processes import Allowance
from loadframe.model import Requirement, SettingValue
from loadframe.workloads import (
    bulk_ingest,
    farm,
    http,
    job_queue,
    oltp,
    pgbench,
    render_farm,
    render_farm_burst,
    sysbench_oltp,
)
from loadframe.workloads.base import Workload
from loadframe.workloads.options import OptionRule, did_you_mean, rules

Make = Callable[[Mapping[str, SettingValue], Allowance], Workload]


@dataclass(frozen=True)
class Kind:
    """How a workload is made, what options it has (name -> rule, default), and what it needs on the machine.
    other_axes: how it is made for load axes beside the usual one."""

    make: Make
    options: Mapping[str, tuple[OptionRule, SettingValue]]
    requirements: Callable[[str], tuple[Requirement, ...]]
    other_axes: Mapping[str, Make] = field(default_factory=dict)


KINDS: Mapping[str, Kind] = {
    "bulk-ingest": Kind(
        bulk_ingest.BulkIngest,
        rules(bulk_ingest.BulkIngestOptions),
        bulk_ingest.requirements,
        {"files_per_gib": bulk_ingest.BulkIngestBySize},
    ),
    "http": Kind(
        http.Http,
        rules(http.HttpOptions),
        http.requirements,
        {"rate": http.HttpAtRate, "working_set": http.HttpByWorkingSet},
    ),
    "job-queue": Kind(job_queue.JobQueue, rules(job_queue.JobQueueOptions), job_queue.requirements),
    "oltp": Kind(oltp.Oltp, rules(oltp.OltpOptions), oltp.requirements, {"rate": oltp.OltpAtRate}),
    "pgbench": Kind(
        pgbench.Pgbench, rules(pgbench.PgbenchOptions), pgbench.requirements, {"rate": pgbench.PgbenchAtRate}
    ),
    "render-farm": Kind(render_farm.RenderFarm, rules(render_farm.RenderFarmOptions), farm.requirements),
    "render-farm-burst": Kind(
        render_farm_burst.RenderFarmBurst, rules(render_farm_burst.BurstOptions), farm.requirements
    ),
    "sysbench": Kind(
        sysbench_oltp.Sysbench,
        rules(sysbench_oltp.SysbenchOptions),
        sysbench_oltp.requirements,
        {"rate": sysbench_oltp.SysbenchAtRate},
    ),
}


def make(
    kind: str, options: Mapping[str, SettingValue], allowance: Allowance | None = None, *, axis: str | None = None
) -> Workload:
    """The workload of this kind with these options, its driver under the allowance (None: no restriction), for a load
    axis (None: its usual one). StudyError for an unknown kind or an option that does not fit."""
    known = _kind(kind)
    return known.other_axes.get(axis or "", known.make)(options, allowance or Allowance())


def axes(kind: str) -> frozenset[str]:
    """The load axes of this kind of workload. StudyError for an unknown kind."""
    return _kind(kind).make({}, Allowance()).axes | _kind(kind).other_axes.keys()


def check(*kinds: str) -> list[Requirement]:
    """What these kinds (none given: all of them) need on the machine and whether it is there. StudyError for an unknown
    kind."""
    return [requirement for kind in kinds or KINDS for requirement in _kind(kind).requirements(kind)]


def _kind(kind: str) -> Kind:
    if kind not in KINDS:
        raise StudyError(
            f"There is no workload {kind!r}.",
            remedy=f"{did_you_mean(kind, list(KINDS))}workload.kind must be one of: {', '.join(KINDS)}.",
        )
    return KINDS[kind]
