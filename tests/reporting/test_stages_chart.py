"""The diagram of the stages of a pipeline has a bar for each stage and level; the text and the JSON say the same."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from loadframe.model import Investigation, LoadInterval, More
from loadframe.reporting import reports
from loadframe.reporting.json_shapes import investigation_json
from loadframe.reporting.reports import render_page, render_text
from loadframe_pipelines import report

Told = Mapping[str, Mapping[str, float]]
PIPELINE: Told = {
    "SCAN": {"order": 0, "busy_share": 0.25, "blocked_share": 0.7, "idle_share": 0.05, "waiting": 0},
    "GET_INFO_FS": {
        "order": 1, "busy_share": 0.4, "blocked_share": 0.6, "idle_share": 0.0, "waiting": 9, "queue_share": 0.9
    },
    "DB_APPLY": {
        "order": 2, "busy_share": 0.97, "blocked_share": 0.0, "idle_share": 0.03, "waiting": 10, "queue_share": 1.0
    },
    "ACKNOWLEDGE_ALL_OF_IT": {"order": 3, "busy_share": 0.02, "blocked_share": 0.0, "idle_share": 0.98, "waiting": 0},
}  # fmt: skip


@pytest.fixture
def piped(farm: Investigation) -> Callable[[Told], Investigation]:
    """The render farm's investigation, with stages of a pipeline in its first round."""

    def make(told: Told) -> Investigation:
        seen = {f"pipeline.{name}.{end}": value for name, ends in told.items() for end, value in ends.items()}
        first = replace(farm.rounds[0], footprint=tuple({**row, **seen} for row in farm.rounds[0].footprint))
        return replace(farm, rounds=(first, *farm.rounds[1:]))

    return make


def rows(chart: reports.Chart) -> list[dict[str, float | str]]:
    return [row for each in json.loads(chart.spec)["datasets"].values() for row in each]


def test_each_stage_has_a_bar_at_each_level_that_adds_up_to_its_workers(
    piped: Callable[[Told], Investigation],
) -> None:
    drawn = reports.page_charts(piped(PIPELINE))
    assert "stages" in drawn
    assert "stages-after" not in drawn, "nothing was told there"
    chart = drawn["stages"]
    assert chart.title == "At 320 active jobs, the workers of DB_APPLY are at work for 97 % of the time"
    labels = [str(row["label"]) for row in rows(chart) if "label" in row]
    assert labels.count("97 %") == labels.count("10 waiting") == 6, "a column for each of six levels"
    for svg in chart.svgs:
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert "GET_INFO_FS" in svg
        assert "ACKNOWLEDGE_AL…" in svg


def test_a_stage_that_tells_no_time_has_its_number_and_no_bar(piped: Callable[[Told], Investigation]) -> None:
    inv = piped({"GET_FID": {"order": 0, "busy": 2.5, "waiting": 40}})
    chart = reports.page_charts(inv)["stages"]
    assert "2.5 at work" in chart.svgs[0]
    assert chart.title == "At 320 active jobs, the stages of the pipeline and their queues"


def test_the_page_the_text_and_the_json_say_the_same(piped: Callable[[Told], Investigation]) -> None:
    inv = piped(PIPELINE)
    assert "the workers of DB_APPLY are at work for 97 % of the time" in render_page(inv)
    text = " ".join(render_text(inv, details=True).split())
    assert "DB_APPLY: 97 % at work, 0 % blocked, 3 % idle, 10 waiting before it (100 % of its room)" in text
    (told,) = [row for row in investigation_json(inv)["stages"] if row["stage"] == "DB_APPLY" and row["level"] == 320]
    assert (round(told["busy"], 6), told["waiting"], told["state"]) == (0.97, 10, "before")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.6, 1.96, "2 processes give 1.8 times what 1 gives (95 % interval 1.6 to 2.0)."),
        (0.9, 1.2, "2 processes give 1.0 times what 1 gives (95 % interval 0.9 to 1.2): no proven difference."),
        (0.5, 0.6, "2 processes give 0.55 times what 1 gives (95 % interval 0.50 to 0.60): worse."),
    ],
)
def test_it_is_said_what_more_threads_give(
    piped: Callable[[Told], Investigation], low: float, high: float, said: str
) -> None:
    jobs = piped(PIPELINE)
    more = More(2, 1, math.sqrt(low * high), low, high)
    first = replace(jobs.rounds[0], curve=replace(jobs.rounds[0].curve, enough=LoadInterval(1, 1, 2), more=more))
    study = replace(jobs.study, axis="scanners", axis_unit="processes")
    inv = replace(jobs, study=study, rounds=(first, *jobs.rounds[1:]))
    assert said in " ".join(render_text(inv, details=True).split())
    assert investigation_json(inv)["more"]["low"] == low
    entries = replace(inv, study=replace(study, axis="entries", axis_unit="entries"))
    assert investigation_json(entries)["more"] is None and "times what 1 gives" not in render_text(
        entries, details=True
    )


@pytest.mark.parametrize(
    ("enough", "said"),
    [
        (
            LoadInterval(20, 10, 40),
            "More threads stopped helping at 20 threads (10 to 40): no higher level gave 5 % more.",
        ),
        (LoadInterval(1, 1, 1), "More threads stopped helping at 1 thread: no higher level gave 5 % more."),
        (None, "It was not seen that more threads stop helping, up to 320 threads."),
    ],
)
def test_it_is_said_where_more_threads_stop_helping(
    piped: Callable[[Told], Investigation], enough: LoadInterval | None, said: str
) -> None:
    """The same in the text, in the page and in the JSON; nothing of a load that is no number of workers."""
    jobs = piped(PIPELINE)
    first = replace(jobs.rounds[0], curve=replace(jobs.rounds[0].curve, enough=enough))
    study = replace(jobs.study, axis="scan_threads", axis_unit="threads")
    inv = replace(jobs, study=study, rounds=(first, *jobs.rounds[1:]))
    assert said in " ".join(render_text(inv, details=True).split())
    assert said in render_page(inv)
    found = investigation_json(inv)["enough"]
    assert found == (None if enough is None else {"load": enough.load, "low": enough.low, "high": enough.high})
    assert report.summary(jobs) == ""
    entries = replace(inv, study=replace(study, axis="entries", axis_unit="entries"))
    assert investigation_json(entries)["enough"] is None


def test_without_stages_nothing_is_said(farm: Investigation) -> None:
    assert "stages" not in reports.page_charts(farm)
    assert report.sentences(farm) == []
    assert investigation_json(farm)["stages"] == []
