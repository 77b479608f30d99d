"""The workload that a study declares, made: with its options, its tables and its axis; and what it lets be tried."""

from __future__ import annotations

from loadframe.host.processes import Allowance
from loadframe.kinds import registry as targets
from loadframe.model import Knob
from loadframe.study import Study
from loadframe.workloads import registry
from loadframe.workloads.base import Workload


def workload_of(study: Study, allowance: Allowance | None = None, *, axis: str | None = None) -> Workload:
    """For the study's axis, or for another one of its kind. StudyError for what does not fit."""
    given = study.workload
    return registry.make(given.kind, given.options, allowance, axis=axis or study.load.axis, declared=given.declared)


def knobs_of(study: Study) -> tuple[Knob, ...]:
    """What may be tried: the settings that the study declares, and options of a workload that is what is studied."""
    return (*targets.of_study(study).knobs, *registry.knobs(study.workload.kind, study.load.axis))
