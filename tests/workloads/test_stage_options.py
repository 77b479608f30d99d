"""Options of a pipeline that belong to a stage: each is one of the workload's, and names a stage that it prints."""

from __future__ import annotations

import pytest

from loadframe.errors import StudyError
from loadframe.indexing.board import STAGES
from loadframe.workloads import registry
from loadframe.workloads.base import TakesOptions


@pytest.mark.parametrize("axis", sorted(registry.axes("metadata-index")))
def test_each_stage_has_options_that_give_it_more(axis: str) -> None:
    knobs = registry.knobs("metadata-index", axis)
    options = registry.options("metadata-index", {})
    assert all(knob.layer == "application" and knob.name in options for knob in knobs)
    assert axis not in {knob.name for knob in knobs}, "what grows is no remedy"
    assert {knob.raises for knob in knobs} <= {f"pipeline.{stage}" for stage in STAGES}
    assert {f"pipeline.{stage}" for stage in STAGES[1:]} <= {knob.raises for knob in knobs}


def test_the_workload_goes_on_with_other_options() -> None:
    workload = registry.make("metadata-index", {"batch": 10})
    assert isinstance(workload, TakesOptions)
    other = workload.with_options({"db_threads": 4})
    assert (other.options.db_threads, other.options.batch) == (4, 10)  # type: ignore[attr-defined]
    with pytest.raises(StudyError, match="db_threads"):
        workload.with_options({"db_threads": 0})
