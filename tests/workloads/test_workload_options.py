"""Options: what a study may say, and how it is told what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import MissingTool, StudyError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.workloads import registry
from loadframe.workloads.base import demand
from loadframe.workloads.options import whole_level
from loadframe.workloads.render_farm import RenderFarm

values = st.one_of(st.integers(), st.floats(), st.text(max_size=20), st.booleans())


@pytest.mark.parametrize("kind", registry.KINDS)
def test_defaults_are_within_their_own_ranges(kind: str) -> None:
    options = registry.KINDS[kind].options
    made: Any = registry.make(kind, {name: default for name, (_, default) in options.items()}, Allowance(US))
    assert made.kind == kind
    assert made.options == type(made.options)()


@given(st.data())
def test_an_option_is_either_taken_as_it_is_or_refused_by_name_value_and_range(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(registry.KINDS)))
    name = data.draw(st.sampled_from(list(registry.KINDS[kind].options)))
    value = data.draw(st.one_of(values, st.integers(0, 50)))
    rule, _ = registry.KINDS[kind].options[name]
    try:
        workload: Any = registry.make(kind, {name: value}, Allowance(US))
    except StudyError as error:
        assert name in error.fact and repr(value) in error.fact
        others = [other for other in registry.KINDS[kind].options if other != name]
        accepted = rule.accepts(value)  # of the right kind, but not with the other options, or not as a path or a name
        right = [rule.right] if not accepted else [*others, "For example ", "Give the path of a file"]
        assert any(words in error.remedy for words in right)
    else:
        assert getattr(workload.options, name) == value
        assert not isinstance(value, bool) or rule.right == "true or false"


def test_an_unknown_option_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(StudyError) as caught:
        registry.make("render-farm", {"table_per_job": 5}, Allowance(US))
    assert "table_per_job" in caught.value.fact
    assert "Did you mean 'tables_per_job'?" in caught.value.remedy


def test_an_unknown_kind_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(StudyError) as caught:
        registry.make("renderfarm", {}, Allowance(US))
    assert "Did you mean 'render-farm'?" in caught.value.remedy
    assert "job-queue" in caught.value.remedy


def test_a_mix_without_any_request_is_refused() -> None:
    with pytest.raises(StudyError, match="nothing to do"):
        RenderFarm({"dispatch": 0, "report": 0, "submit": 0, "complete": 0, "list": 0}, Allowance(US))


def test_a_burst_needs_a_job_that_submits_and_one_that_lists() -> None:
    burst = registry.make("render-farm-burst", {"listing_jobs": 30}, Allowance(US))
    with pytest.raises(StudyError, match="2"):
        burst.set_level(None, 1)  # type: ignore[arg-type] # refused before the endpoint matters


@given(st.floats())
def test_a_level_is_a_whole_number_within_its_range_or_refused(level: float) -> None:
    try:
        assert whole_level("kind", "axis", level, 1, 1000) == level
    except StudyError as error:
        assert "axis" in error.fact
        assert level not in range(1, 1001)


def test_doctor_is_told_what_each_kind_needs_and_how_to_get_it() -> None:
    needs = registry.check()
    assert {need.kind for need in needs} == set(registry.KINDS)
    assert [need.what for need in registry.check("render-farm")] == ["sysbench", "Python package pymysql"]
    assert all(need.how_to_get_it for need in needs)
    with pytest.raises(StudyError):
        registry.check("no-such-kind")


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingTool, match="sysbench") as caught:
        demand(tuple(registry.check("render-farm")))
    assert "apt-get install sysbench" in caught.value.remedy


def test_every_option_is_in_the_manual_with_its_default_and_range() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "writing-a-workload.md").read_text()
    for kind, known in registry.KINDS.items():
        for name, (rule, default) in known.options.items():
            shown = str(default).lower() if isinstance(default, bool) else default
            assert f"| `{kind}` | `{name}` | {shown} | {rule.right}: {rule.what} |" in manual
