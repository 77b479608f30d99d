"""The workload that a study declares, made: with its options, its tables and its axis."""

from __future__ import annotations

from loadframe.host.processes import Allowance
from loadframe.study import Study
from loadframe.workloads import registry
from loadframe.workloads.base import Workload


def workload_of(study: Study, allowance: Allowance | None = None, *, axis: str | None = None) -> Workload:
    """For the study's axis, or for another one of its kind. StudyError for what does not fit."""
    given = study.workload
    return registry.make(given.kind, given.options, allowance, axis=axis or study.load.axis, declared=given.declared)
