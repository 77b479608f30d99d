"""Every workload by its kind. A new one is added here and in docs/writing-a-workload.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadframe.cage.processes import Allowance
from loadframe.errors import StudyError
from loadframe.model import Requirement, SettingValue
from loadframe.workloads import farm, job_queue, oltp, render_farm, render_farm_burst
from loadframe.workloads.base import Workload
from loadframe.workloads.options import OptionRule, did_you_mean, rules


@dataclass(frozen=True)
class Kind:
    """How a workload is made, what options it has (name -> rule, default), and what it needs on the machine."""

    make: Callable[[Mapping[str, SettingValue], Allowance], Workload]
    options: Mapping[str, tuple[OptionRule, SettingValue]]
    requirements: Callable[[str], tuple[Requirement, ...]]


KINDS: Mapping[str, Kind] = {
    "job-queue": Kind(job_queue.JobQueue, rules(job_queue.JobQueueOptions), job_queue.requirements),
    "oltp": Kind(oltp.Oltp, rules(oltp.OltpOptions), oltp.requirements),
    "render-farm": Kind(render_farm.RenderFarm, rules(render_farm.RenderFarmOptions), farm.requirements),
    "render-farm-burst": Kind(
        render_farm_burst.RenderFarmBurst, rules(render_farm_burst.BurstOptions), farm.requirements
    ),
}


def make(kind: str, options: Mapping[str, SettingValue], allowance: Allowance | None = None) -> Workload:
    """The workload of this kind with these options, its driver under the allowance (None: no restriction). StudyError
    for an unknown kind or an option that does not fit."""
    return _kind(kind).make(options, allowance or Allowance())


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
