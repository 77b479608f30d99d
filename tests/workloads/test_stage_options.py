"""Options of a pipeline that belong to a stage: each is one of the workload's, and names a stage that it prints."""

from __future__ import annotations

import pytest

from loadframe.diagnosis.remedies.declared import remedies
from loadframe.errors import StudyError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.knowledge.remedy import Situation
from loadframe.model import Finding, TargetState
from loadframe.workloads import registry
from loadframe.workloads.base import TakesOptions
from loadframe_index.board import STAGES


@pytest.mark.parametrize("axis", sorted(registry.axes("metadata-index")))
def test_each_stage_has_options_that_give_it_more(axis: str) -> None:
    knobs = registry.knobs("metadata-index", axis)
    options = registry.options("metadata-index", {})
    assert all(knob.layer == "application" and knob.name in options for knob in knobs)
    assert axis not in {knob.name for knob in knobs}, "what grows is no remedy"
    assert {knob.raises for knob in knobs} <= {f"pipeline.{stage}" for stage in STAGES}
    assert {f"pipeline.{stage}" for stage in STAGES[1:]} <= {knob.raises for knob in knobs}


@pytest.mark.parametrize(("now", "tried"), [("all", ["du"]), ("du", ["parent"]), ("parent", [])])
def test_fewer_indexes_are_tried_last_for_the_stage_that_writes_and_say_what_they_cost(
    now: str, tried: list[str]
) -> None:
    """The index of parents stays: without it a directory that goes is looked for in the whole table."""
    effective = {"batch": 10, "db_threads": 1, "indexes": now}
    knobs = registry.knobs("metadata-index", "scan_threads")
    finding = Finding("pipeline.DB_APPLY", "at work", None, (), 0.6)
    found = remedies(finding, Situation("sqlite", TargetState({}), effective, {}, {}, knobs=knobs))
    assert [one.changes[0].setting for one in found] == ["batch", "db_threads", *(["indexes"] if tried else [])]
    told = [(one.changes[0].after, one.price.durability) for one in found[2:]]
    assert told == [(after, None) for after in tried]
    assert all("read the whole table" in one.price.note for one in found[2:])


def test_an_option_that_has_its_most_is_not_tried_with_its_least() -> None:
    effective = {"batch": 100_000, "db_threads": 256}
    knobs = registry.knobs("metadata-index", "scan_threads")
    finding = Finding("pipeline.DB_APPLY", "at work", None, (), 0.6)
    assert not remedies(finding, Situation("sqlite", TargetState({}), effective, {}, {}, knobs=knobs))


def test_the_workload_goes_on_with_other_options() -> None:
    workload = registry.make("metadata-index", {"batch": 10}, Allowance(US))
    assert isinstance(workload, TakesOptions)
    other = workload.with_options({"db_threads": 4})
    assert (other.options.db_threads, other.options.batch) == (4, 10)  # type: ignore[attr-defined]
    with pytest.raises(StudyError, match="db_threads"):
        workload.with_options({"db_threads": 0})
