"""The report shows all latencies at one level before and after, and says how far they can be trusted."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from loadframe.model import Investigation
from loadframe.reporting import latencies, vega
from loadframe.reporting.json_shapes import investigation_json
from loadframe.reporting.reports import render_page
from loadframe.reporting.vega import Size
from loadframe.runs.folder import RunFolder

NARROW = Size(270, 240)


@pytest.fixture
def queue(queue: Investigation) -> Investigation:
    """With the latencies of its record, which its steps refute."""
    record = RunFolder.open(Path(__file__).parents[1] / "data" / "runs" / "job-queue").investigation()
    assert record is not None and not queue.latencies
    return replace(queue, latencies=record.latencies)


def without_charts(inv: Investigation, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page, its pictures left out."""
    monkeypatch.setattr(vega, "render", lambda _spec, _name, _title: "")
    monkeypatch.setattr(vega, "start_engine", lambda: None)
    return render_page(inv)


def test_the_title_has_the_highest_percentile_that_both_tell(queue: Investigation) -> None:
    """4,541 requests have four beyond p99.9."""
    before, after = (one.latency for one in queue.latencies)
    found = latencies.title(queue)
    assert found == f"Latencies at 4 workers: p99 {before.p99_ms:.3g} ms before, {after.p99_ms:.3g} ms after"
    assert "Fewer than 10 requests of a state lie beyond p99.9: uncertain." in latencies.note(queue)
    many = replace(queue, latencies=tuple(replace(one, requests=10_000) for one in queue.latencies))
    assert latencies.title(many).startswith("Latencies at 4 workers: p99.9 ")
    assert "uncertain" not in latencies.note(many)


def test_where_the_slowest_requests_take_longer_it_is_said_beside_the_gain(queue: Investigation) -> None:
    """Seen: p99 1.38 -> 0.225 ms as the title, and 1 request in 1,000 of 3.31 -> 18.5 ms as a cell of the table."""
    before, after = queue.latencies
    calm = (replace(before, latency=replace(before.latency, p50_ms=1, p999_ms=3.3)), after)
    worse = replace(queue, latencies=(calm[0], replace(after, latency=replace(after.latency, p50_ms=0.1, p999_ms=18))))
    assert "1 request in 1,000 took longer than 18 ms, before 3.3 ms, from few requests" in latencies.slower(worse)
    assert latencies.title(worse).endswith("; the slowest requests take longer")
    assert latencies.slower(worse) in render_page(worse)
    same = replace(worse, latencies=(calm[0], replace(after, latency=replace(after.latency, p50_ms=0.1, p999_ms=4))))
    assert latencies.slower(same) == "", "4 of 3.3 may be noise"


def test_a_percentile_that_no_request_lies_beyond_is_not_told(queue: Investigation) -> None:
    few = replace(queue, latencies=(replace(queue.latencies[0], requests=99),))
    ((name, cells),) = latencies.rows(few)
    assert name == "", "one state has no name"
    requests, mean, p50, p99, p999, longest = cells
    assert (requests, p99, p999) == ("99", "", "") and mean and p50 and longest
    assert "p50" in latencies.title(few)


def test_requests_that_failed_are_told(queue: Investigation) -> None:
    failed = replace(queue, latencies=tuple(replace(one, failed=700) for one in queue.latencies))
    assert "1,400 of them failed" in latencies.note(failed)
    assert "failed" not in latencies.note(queue)
    left_out = replace(queue, latencies=tuple(replace(one, left_out=700) for one in queue.latencies))
    assert "1,400 more failed, and are not among them" in latencies.note(left_out)


def test_the_figure_reaches_from_the_shortest_to_the_longest_request(queue: Investigation) -> None:
    drawn = latencies.percentiles(queue, NARROW)
    assert drawn is not None
    spec = drawn.specification()
    encodings = [layer["encoding"] for layer in spec["layer"]]
    assert {each["x"]["scale"]["type"] for each in encodings} == {"log"}
    assert {each["y"]["title"] for each in encodings} == {"latency in ms (log scale)"}
    assert all("percentile" in each["x"]["title"] for each in encodings)
    rows = [row for found in spec["datasets"].values() for row in found if "one_in" in row]
    for one in queue.latencies:
        assert {"one_in": one.requests, "value": one.latency.max_ms} in rows
    assert {row["label"] for row in rows if "label" in row} == {"before", "after"}
    assert len(json.dumps(spec)) < 60_000


def test_the_page_has_the_figure_and_its_table(queue: Investigation, monkeypatch: pytest.MonkeyPatch) -> None:
    page = without_charts(queue, monkeypatch)
    (figure,) = re.findall(r'<figure class="chart" id="chart-percentiles">.*?</figure>', page, flags=re.S)
    assert latencies.title(queue) in figure
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", figure)
    assert heads == ["", "Requests", "Mean", "p50", "p99", "p99.9", "Max"]
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", figure)[1:]]
    assert [row[:2] for row in rows] == [["Before", "4,541"], ["After", "118,901"]]
    assert all(len(row) == len(heads) and all(row) for row in rows)


def test_a_run_without_histograms_has_no_figure(farm: Investigation, monkeypatch: pytest.MonkeyPatch) -> None:
    page = without_charts(farm, monkeypatch)
    assert "percentiles" not in page and "p99.9" not in page
    assert (latencies.title(farm), latencies.rows(farm)) == ("", [])


def test_the_steps_have_p99_9_where_one_of_them_tells_it(farm: Investigation, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *rest = farm.rounds[0].footprint
    told = replace(farm.rounds[0], footprint=({**first, "latency_p999_ms": 47.11}, *rest))
    page = without_charts(replace(farm, rounds=(told, *farm.rounds[1:])), monkeypatch)
    assert page.count("<th>p99.9 in ms</th>") == 1
    assert page.count("<td>47.1</td>") == 1


def test_the_json_has_the_distributions(queue: Investigation) -> None:
    found = investigation_json(queue)["latencies"]
    assert [each["requests"] for each in found] == [4541, 118_901]
    assert found[0]["points"][0] == {"one_in": 1.0, "latency_ms": queue.latencies[0].points[0].latency_ms}
    assert found[1]["latency"]["p999_ms"] == queue.latencies[1].latency.p999_ms
