"""The JSON of range queries: series by name and labels, counters as rates, and what is wrong with an answer."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import SampleError
from loadframe_watch.observed.reading import parse_prometheus
from loadframe_watch.observed.records import Observed, ObservedMapping
from loadframe_watch.observed.series import assemble

Values = list[tuple[float, float]]


def series(name: str, values: Values, **labels: str) -> dict[str, Any]:
    metric = {"__name__": name, **labels} if name else dict(labels)
    return {"metric": metric, "values": [[at, str(value)] for at, value in values]}


def answer(*found: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(found)}}


def observed(*found: dict[str, Any], **terms: Any) -> Observed:
    return assemble(parse_prometheus(json.dumps(answer(*found)), "range.json"), ObservedMapping(**terms))


def steps(*values: float, step: float = 15) -> Values:
    return [(1.7e9 + step * at, value) for at, value in enumerate(values)]


def test_a_counter_is_a_rate_and_starts_again_after_a_reset() -> None:
    found = observed(
        series("jobs", steps(1, 3, 5, 7, 9)),
        series("requests_total", steps(100, 250, 400, 30, 180)),
        load="jobs",
        throughput="requests_total",
    )
    assert found.throughput is not None
    assert math.isnan(found.throughput[0])
    assert found.throughput[1:] == (10, 10, 2, 10)
    assert found.load == (1, 2, 4, 6, 8)  # a gauge beside a rate: the mean of both ends of the interval
    assert any("reset 1 time" in note for note in found.notes)


def test_labels_choose_and_what_matches_is_added_up() -> None:
    many = [series("up_total", steps(0, 15 * rate), job="api", pod=str(rate)) for rate in (1, 2)]
    other = series("up_total", steps(0, 15_000), job="batch")
    found = observed(*many, other, series("n", steps(4, 4)), load="n", throughput='up_total{job="api"}')
    assert found.throughput is not None and found.throughput[1] == 3
    one = observed(*many, other, series("n", steps(4, 4)), load="n", throughput='{pod="2"}')
    assert one.throughput is not None and one.throughput[1] == 2


def test_instances_that_come_and_go_are_added_up_while_they_are_there() -> None:
    """A deployment replaces the pods: each has a series of its own, and none is there all the time."""
    old, new = steps(*range(0, 600, 150)), [(1.7e9 + 15 * at, 300.0 * (at - 3)) for at in range(3, 9)]
    found = observed(
        series("jobs", steps(*range(1, 10))),
        series("requests_total", old, pod="old"),
        series("requests_total", new, pod="new"),
        load="jobs",
        throughput="requests_total",
    )
    assert found.throughput is not None
    assert found.throughput[1:] == (10, 10, 10, 20, 20, 20, 20, 20)
    assert any("2 of the 2 series of requests_total are not there all the time" in note for note in found.notes)


def test_a_mean_response_time_is_a_sum_over_a_count() -> None:
    found = observed(
        series("n", steps(4, 4, 4)),
        series("seconds_sum", steps(0, 3, 6)),
        series("seconds_count", steps(0, 30, 30)),
        load="n",
        response="seconds_sum / seconds_count",
    )
    assert found.response_s is not None
    assert found.response_s[1] == pytest.approx(0.1)
    assert math.isnan(found.response_s[2])  # nothing was answered


def test_a_divisor_changes_the_unit_and_slashes_in_labels_do_not() -> None:
    found = observed(
        series("n", steps(1, 2)),
        series("cpu", steps(50, 75), path="/a/b"),
        load="n",
        use={"cpu": 'cpu{path="/a/b"} / 100'},
    )
    assert found.use["cpu"] == (0.5, 0.75)


def test_a_series_without_a_name_is_called_by_its_file() -> None:
    found = observed(series("", steps(1, 2)), series("n", steps(1, 2)), load="n", throughput="range")
    assert found.throughput == (1, 2)


def test_what_prometheus_says_against_its_own_answer_is_told() -> None:
    document = {**answer(series("n", steps(1, 2))), "warnings": ["a store\x1b[2J did not answer"], "isPartial": True}
    notes = parse_prometheus(json.dumps(document), "range.json").notes
    assert notes[0] == "Prometheus warned: a store\\x1b[2J did not answer" and "partial" in notes[1]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"status": "error", "error": "query timed out"}, "query timed out"),
        ({"data": {"resultType": "vector", "result": []}}, "'vector'"),
        (answer(), "no series with values"),
        (answer({"metric": {}, "values": [[1, 2, 3]]}), "no pair"),
        (answer({"metric": {}, "values": [["now", "1"]]}), "now"),
        (answer({"metric": {}, "values": [[1, "many"]]}), "many"),
        ([1], "a number"),
        ({"data": {"resultType": "matrix", "result": {}}}, "no list"),
    ],
)
def test_what_is_no_answer_is_refused(document: Any, words: str) -> None:
    with pytest.raises(SampleError) as raised:
        parse_prometheus(json.dumps(document), "range.json")
    assert words in str(raised.value) and raised.value.remedy


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({}, "the load is not known"),
        ({"load": "n"}, "nothing else"),
        ({"load": "m"}, "'m' matches no series"),
        ({"load": "n", "throughput": 'n{x="1"}'}, "matches no series"),
        ({"load": "n", "throughput": "n / m"}, "neither a number nor a series"),
        ({"load": "n", "throughput": "n / 0"}, "above zero"),
    ],
)
def test_a_term_that_means_nothing_is_named_with_what_there_is(terms: dict[str, Any], words: str) -> None:
    with pytest.raises(SampleError) as raised:
        observed(series("n", steps(1, 2)), **terms)
    assert words in str(raised.value) and raised.value.remedy


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["data", "result", "metric", "values", "resultType", "status"]), inner)
    ),
    max_leaves=15,
)


@given(JSON)
def test_any_json_is_read_or_refused_with_a_remedy(document: Any) -> None:
    try:
        parse_prometheus(json.dumps(document), "x")
    except SampleError as error:
        assert error.remedy


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=40))
def test_rates_add_up_to_what_was_counted(grown: list[int]) -> None:
    total, values = 0, []
    for each in grown:
        total += each
        values.append(float(total))
    found = observed(
        series("n", steps(*[1.0] * len(values))), series("a_total", steps(*values)), load="n", throughput="a_total"
    )
    assert found.throughput is not None
    assert sum(15 * rate for rate in found.throughput[1:]) == pytest.approx(total - grown[0], abs=1e-3)
