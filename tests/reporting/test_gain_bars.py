"""Each change stands beside the noise of its own blocks, and only what is clear of it is called so."""

from __future__ import annotations

import json
from dataclasses import replace

from loadframe.model import Investigation, Verdict
from loadframe.reporting import gain_bars, reports
from loadframe.reporting.reports import render_page


def with_floor(farm: Investigation, low: float, high: float) -> Investigation:
    first = farm.rounds[0]
    trial = replace(first.tried[0], verdict=replace(first.tried[0].verdict, floor=(low, high)))
    return replace(farm, rounds=(replace(first, tried=(trial,)), *farm.rounds[1:]))


def test_a_gain_is_clear_of_the_noise_only_with_its_whole_interval(farm: Investigation) -> None:
    assert gain_bars.title(with_floor(farm, 0.9, 1.1)) == (
        "The gain on average over 20, 40 and 80 active jobs, 2.9 times, is clear of the noise of its own blocks"
    )
    assert "is within reach of the noise" in gain_bars.title(with_floor(farm, 0.3, 2.72))
    assert "against the noise" in gain_bars.title(farm), "no noise is known"


def test_several_changes_are_counted(queue: Investigation) -> None:
    assert len(gain_bars.gains(queue)) == 3
    assert gain_bars.title(queue) == "2 changes were tried; each is clear of the noise of its own blocks"
    noisy = replace(queue.rounds[0].tried[0].reported, low=0.9)
    trial = replace(queue.rounds[0].tried[0], verdict=noisy, fresh=None)
    inv = replace(queue, rounds=(replace(queue.rounds[0], tried=(trial,)), *queue.rounds[1:]))
    assert gain_bars.title(inv) == "2 changes were tried; 1 is clear of the noise of its own blocks"


def test_the_band_is_the_noise_and_the_line_is_the_interval(farm: Investigation) -> None:
    spec = json.loads(reports.page_charts(with_floor(farm, 0.9, 1.1))["gains"].spec)
    rows = [row for rows in spec["datasets"].values() for row in rows if "x2" in row]
    kinds = [layer["mark"]["type"] for layer in spec["layer"]]
    assert "rect" in kinds and "point" in kinds
    band = next(row for row in rows if row["y2"] - row["y"] == gain_bars.LANE_PX - 2)
    one = next(row for row in rows if row["x"] == row["x2"])
    assert band["x"] < one["x"] < band["x2"]


def test_an_interval_that_goes_on_is_told(farm: Investigation) -> None:
    wild = Verdict(3.0, 0.001, 9000.0, "no-proven-difference", 2, "two blocks")
    first = farm.rounds[0]
    inv = replace(farm, rounds=(replace(first, tried=(replace(first.tried[0], verdict=wild),)), *farm.rounds[1:]))
    assert gain_bars.note(inv).endswith("An arrow: the interval goes on.")
    assert "gains" in reports.page_charts(inv)


def test_the_words_for_those_who_do_not_see_it(farm: Investigation) -> None:
    page = render_page(with_floor(farm, 0.9, 1.1))
    said = "Raise the table cache and what it stands on: 2.9 times (2.7 to 3.0) on average over 20, 40 and 80 active "
    said += "jobs; kept; noise 0.9 to 1.1."
    assert said in " ".join(page.split())
