"""What a watch exports: the latest line of each kind, read back by the parser of Prometheus' client."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from loadframe.reporting.openmetrics import Sample, text
from loadframe_watch.openmetrics import FAMILIES, of_watch
from watched_lines import SEEN, Line


def read(text: str) -> dict[tuple[str, str], float]:
    """Samples by their name and the value of their last label."""
    return {
        (sample.name.removeprefix("loadframe_watch_"), list(sample.labels.values())[-1]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_latest_of_each_kind_is_told() -> None:
    found = read(of_watch(SEEN, "shop"))
    assert found == {
        ("info", "target.connections"): 1,
        ("target_present", "shop"): 1,
        ("sampled_timestamp_seconds", "shop"): 1764000020,
        ("load", "shop"): 4,
        ("throughput_requests_per_second", "shop"): 12.5,
        ("value", "target.cpu.cores"): 0.5,
        ("limit_use_ratio", "process.open_files"): 0.1,
        ("response_seconds", "shop"): 0.125,
        ("unit_failed", "shop"): 0,
        ("limit_reached_load", "process.open_files"): 80,
        ("limit_reached_timestamp_seconds", "memory"): 1764003600,
        ("bend_load", "shop"): 55,
        ("leak_ends_timestamp_seconds", "target.memory"): 1764007200,
        ("alarms", "leak"): 2,
        ("alarm_timestamp_seconds", "leak"): 1764000040,
        ("cost_cpu_cores", "shop"): 0.0005,
        ("cost_memory_bytes", "shop"): 30_000_000,
    }


def test_what_is_read_more_rarely_than_the_rest_holds_for_five_minutes() -> None:
    """As Prometheus takes it: a counter that is read once a minute would else come and go."""
    often = [Line("sample", {"values": {"a": float(at)}}, at_s=1764000000.0 + at) for at in (0, 290, 310)]
    seldom = Line("sample", {"load": 7, "values": {"b": 2.0}, "use": {"pool": 0.5}}, at_s=1764000001.0)
    found = read(of_watch([often[0], seldom, often[1]], "shop"))
    assert (found["load", "shop"], found["value", "b"], found["limit_use_ratio", "pool"]) == (7, 2, 0.5)
    assert found["value", "a"] == 290
    assert read(of_watch([often[0], seldom, often[2]], "shop")) == {
        ("sampled_timestamp_seconds", "shop"): 1764000310, ("value", "a"): 310,
    }  # fmt: skip


def test_a_service_that_has_run_for_days_is_there() -> None:
    """Its line `target` is of a day that is not read any more; each day begins with a line that says who is there."""
    assert read(of_watch([Line("head", {"pids": [7]})], "shop"))["target_present", "shop"] == 1
    gone = [Line("head", {"pids": [7]}), Line("target", {"pids": []})]
    assert read(of_watch(gone, "shop"))["target_present", "shop"] == 0
    assert ("target_present", "shop") not in read(of_watch([Line("head", {"pids": []})], "shop"))


def test_every_family_has_its_unit_at_the_end_of_its_name() -> None:
    units = re.findall(r"# UNIT loadframe_(\S+) (\S+)", text((Sample(name, 1.0, {}) for name in FAMILIES), FAMILIES))
    assert len(units) == 9 and all(name.endswith(f"_{unit}") for name, unit in units)


ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["load", "values", "use", "limits", "bend", "leaks", "cpu_s", "elapsed_s", "pids", "error", "alarm", "subject"]
KINDS = ["head", "sample", "unit", "target", "model", "cost", "alarm"]


@pytest.mark.long
@given(st.lists(st.builds(Line, st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), ANY)), max_size=6))
def test_no_line_breaks_the_text(lines: list[Line]) -> None:
    list(text_string_to_metric_families(of_watch(lines, "shop")))
