"""The chart of what threads wait for has a band for each class, adds up to the threads, and says the fact in words."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from loadframe.model import Investigation
from loadframe.recording.wait_classes import CLASSES
from loadframe.reporting import facts, reports, waits
from loadframe.reporting.reports import render_page

Classes = Mapping[str, Callable[[float], float]]
POOL: Classes = {
    "network": lambda load: min(load, 4.0),
    "idle": lambda load: max(1.0, 12 - load),
    "futex": lambda load: 3.0,
    "running": lambda load: 0.1 * min(load, 4.0),
}


@pytest.fixture
def waiting(farm: Investigation) -> Callable[[Classes], Investigation]:
    """The render farm's investigation, with a census of its threads in the first round."""

    def make(classes: Classes) -> Investigation:
        def rows(row: Mapping[str, float]) -> Mapping[str, float]:
            counted = {
                f"target.waits.{name}": classes[name](row["level"]) if name in classes else 0.0 for name in CLASSES
            }
            return {**row, **counted, "target.cpu.limit": 2.0}

        first = replace(farm.rounds[0], footprint=tuple(map(rows, farm.rounds[0].footprint)))
        return replace(farm, rounds=(first, *farm.rounds[1:]))

    return make


def values(chart: reports.Chart) -> list[float]:
    rows = json.loads(chart.spec)["datasets"].values()
    return [row["value"] for each in rows for row in each if "value" in row and "low" in row]


def test_every_class_of_the_census_has_a_band_of_its_own() -> None:
    assert set(waits.BANDS) == set(CLASSES)
    assert len({colour for _, colour, _ in waits.BANDS.values()}) == len(CLASSES)


def test_the_bands_add_up_to_the_threads(waiting: Callable[[Classes], Investigation]) -> None:
    drawn = reports.page_charts(waiting(POOL))
    assert "waits" in drawn
    assert "waits-after" not in drawn, "nothing was counted there"
    chart = drawn["waits"]
    assert max(values(chart)) == pytest.approx(4 + 3 + 0.4 + 7)
    assert (
        chart.title
        == "At 320 active jobs, of 8.4 threads of the target 4 wait for a peer and 3 are at a lock or in an idle pool"
    )
    for svg in chart.svgs:
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert "a peer" in svg
    assert "2 CPUs" in chart.svgs[0]


def test_hundreds_of_idle_threads_are_told_and_not_drawn(waiting: Callable[[Classes], Investigation]) -> None:
    inv = waiting({**POOL, "idle": lambda load: 200.0})
    chart = reports.page_charts(inv)["waits"]
    assert max(values(chart)) == pytest.approx(4 + 3 + 0.4)
    assert chart.note.endswith("Not drawn: up to 200 threads that wait for the next request.")


def test_without_a_census_there_is_no_chart(farm: Investigation, waiting: Callable[[Classes], Investigation]) -> None:
    assert waits.rounds(farm) == []
    ((_, each),) = waits.rounds(waiting({"idle": lambda load: 5.0}))
    assert isinstance(each, facts.Series)
    assert waits.title(replace(each, role="after"), "jobs").startswith("After the change, at 320 jobs, 5 threads")
    assert waits.title(each, "active jobs") == "At 320 active jobs, 5 threads of the target wait for requests"
    assert 'id="chart-waits"' in render_page(waiting(POOL))
