"""A chart draws what was measured, in the user's units, and is left out where nothing was."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import loadframe
from loadframe.diagnosis import windows
from loadframe.model import Investigation
from loadframe.reporting import case_study, facts, plots, reports, vega
from loadframe.reporting.vega import LoadAxis


def test_the_charts_of_a_case_are_whole_svg_documents(farm: Investigation) -> None:
    drawn = reports.page_charts(farm)
    names = {"proof", "latency", "blocks", "evidence-1", "evidence-2", "footprint-1", "footprint-2", "limits", "gains"}
    assert drawn.keys() == names
    for chart in drawn.values():
        for svg in chart.svgs:
            assert ElementTree.fromstring(svg).tag.endswith("svg")
            assert "NaN" not in svg


def test_the_specification_can_be_used_again(farm: Investigation) -> None:
    proof = reports.page_charts(farm)["proof"]
    spec = json.loads(proof.spec)
    assert spec["title"] == proof.title
    loads = {row["load"] for rows in spec["datasets"].values() for row in rows}
    assert loads >= {point.load for point in farm.rounds[0].curve.points}


def test_ids_do_not_collide_on_a_page_with_several_charts() -> None:
    clipped = {"data": {"values": [{"a": 1}, {"a": 2}]}, "mark": {"type": "line", "clip": True}}
    spec = {**clipped, "encoding": {axis: {"field": "a", "type": "quantitative"} for axis in "xy"}}
    svgs = [vega.render(spec, name, "a line") for name in ("one", "two")]
    ids = [re.findall(r'\bid="([^"]+)"', svg) for svg in svgs]
    assert ids[0] and not set(ids[0]) & set(ids[1])
    for svg, own in zip(svgs, ids, strict=True):
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(own)


def test_the_title_states_the_fact(farm: Investigation) -> None:
    assert plots.proof_title(farm) == (
        "Throughput falls to 35 % between 12 and 20 active jobs; after the change it falls after about 170 active jobs"
    )


def test_the_title_says_one_shape_once(farm: Investigation) -> None:
    first, last = farm.rounds[0], farm.rounds[-1]
    flat = []
    for curve in (first.curve, last.curve):
        points = tuple(replace(point, throughput=curve.peak.throughput) for point in curve.points)
        flat.append(replace(curve, points=points, shape="plateau", knee=None, cliff=None))
    rounds = tuple(replace(one, curve=curve) for one, curve in zip((first, last), flat, strict=True))
    inv = replace(farm, rounds=rounds)
    assert plots.proof_title(inv) == "Flat at 2,050/s; after the change flat at 2,110/s"
    rises = replace(
        flat[1], points=(replace(flat[1].points[0], throughput=1500.0, throughput_high=1600.0), *flat[1].points[1:])
    )
    inv = replace(inv, rounds=(rounds[0], replace(rounds[1], curve=rises)))
    assert plots.proof_title(inv) == "Flat at 2,050/s; after the change at most 2,110/s", "as its other words say"
    assert next(case_study.charts(inv)).note == "Shaded: 95 % interval."
    same = replace(last, curve=replace(first.curve, peak=last.curve.peak))
    assert plots.proof_title(replace(farm, rounds=(first, same))) == (
        "Throughput falls to 35 % between 12 and 20 active jobs: at most 2,050/s before, 2,110/s after the change"
    )
    assert next(case_study.charts(farm)).note.endswith("Dashed: where it bends, with its interval.")


def test_every_colour_of_the_charts_has_another_in_the_dark(farm: Investigation) -> None:
    css = (Path(reports.__file__).parent / "page.css").read_text()
    dark = css[css.index("prefers-color-scheme: dark") :]
    svg = "".join(chart.svgs[0] for chart in reports.page_charts(farm).values())
    painted = {*re.findall(r'(?:fill|stroke)="#(\w+)"', svg)}
    assert {"D55E00", "0072B2", "E4E7EB"} <= painted
    assert all(f'="#{colour}"' in dark for colour in painted)


def test_a_long_name_at_the_end_of_a_line_has_room_in_any_font(queue: Investigation, farm: Investigation) -> None:
    rooms = [json.loads(reports.page_charts(inv)["proof"].spec)["padding"]["right"] for inv in (queue, farm)]
    assert rooms[0] - rooms[1] >= len("journal_mode = WAL") - len("before")


def test_before_and_after_have_colours_of_their_own_and_are_named(farm: Investigation) -> None:
    svg = reports.page_charts(farm)["proof"].svgs[0]
    assert vega.BEFORE in svg and vega.AFTER in svg
    assert ">before<" in svg and ">after<" in svg and "active jobs" in svg


def test_a_state_between_is_drawn_and_named_by_its_change(queue: Investigation) -> None:
    assert [each.label for each in facts.series(queue)] == ["before", "journal_mode = WAL", "after"]
    assert "journal_mode = WAL" in reports.page_charts(queue)["proof"].svgs[0]
    assert reports.page_charts(queue).keys() >= {"ladder"}


def test_without_a_round_there_is_no_chart(examples: dict[str, Investigation]) -> None:
    assert reports.page_charts(examples["bare"]) == {}


def test_a_remedy_kept_at_the_very_end_is_drawn_from_its_proof(farm: Investigation) -> None:
    inv = replace(farm, rounds=farm.rounds[:1])
    drawn = facts.series(inv)
    assert [each.role for each in drawn] == ["before", "after"]
    assert {point.load for point in drawn[1].points} == {10.0, 20.0, 40.0, 80.0}
    assert "proof" in reports.page_charts(inv)


def test_levels_that_grow_by_a_factor_get_a_logarithmic_axis() -> None:
    assert vega.is_geometric((5, 10, 20, 40, 80))
    assert vega.is_geometric((5, 10, 12, 15, 20, 40, 80, 160, 320))
    assert not vega.is_geometric((10, 20, 30, 40, 50))
    assert not vega.is_geometric((0, 1, 2, 4, 8))
    assert not vega.is_geometric((1, 2))


def test_a_box_ends_at_the_furthest_step_within_one_and_a_half_of_its_height() -> None:
    found = plots.box_of(4, [10, 11, 12, 13, 14, 18])
    assert (found["median"], found["quarter"], found["three_quarters"]) == (12.5, 11.25, 13.75)
    assert (found["low"], found["high"], found["outliers"]) == (10, 14, [18])
    lonely = plots.box_of(4, [7.0])
    assert (lonely["low"], lonely["median"], lonely["high"], lonely["outliers"]) == (7, 7, 7, [])


def test_every_step_is_drawn_as_a_dot_or_as_a_ring(farm: Investigation) -> None:
    spec = json.loads(reports.page_charts(farm)["blocks"].spec)
    marks = [layer["mark"] for layer in spec["layer"]]
    drawn = [
        row
        for layer in spec["layer"]
        if layer["mark"]["type"] == "point"
        for row in spec["datasets"].get(layer["data"]["name"], [])
    ]
    steps = [row for one in (farm.rounds[0], farm.rounds[-1]) for row in one.footprint]
    assert len(drawn) == len(steps)
    assert {"rule", "bar", "line", "tick", "point"} <= {mark["type"] for mark in marks}


def test_a_forecast_is_drawn_beside_what_came(foretold: Investigation) -> None:
    drawn = reports.page_charts(foretold)
    assert "inside its interval at 1 of 2 loads" in drawn["forecast"].title
    assert "forecast" not in reports.page_charts(replace(foretold, forecast=None))


def test_components_are_drawn_where_there_are_several(farm: Investigation, foretold: Investigation) -> None:
    assert not any(name.startswith("footprint-component") for name in reports.page_charts(farm))
    spec = reports.page_charts(foretold)["footprint-component-1"].spec
    assert "loader" in spec and "shard1" in spec


def test_a_logarithmic_axis_has_few_round_marks() -> None:
    assert vega.log_ticks(480, 80_000) == [500, 1000, 2000, 5000, 10_000, 20_000, 50_000]
    assert vega.log_ticks(0.02, 900) == [0.1, 1, 10, 100], "the powers of ten, where the others would be too many"
    assert vega.log_ticks(3, 4) == []
    labels = vega.ValueAxis("requests/s", 0, 15_000).channel()["axis"]
    assert labels["labelExpr"].startswith("datum.value == 0 ? '0'"), "not 0k"


def test_a_chart_has_the_bend_where_the_text_has_it() -> None:
    """Seen: "after the change it falls after about 12 active jobs" over an answer that had 80: a limit explains the
    bend, and the curve alone gave 12 (4 to 260)."""
    stored = loadframe.open_run(Path(__file__).parents[1] / "data" / "runs" / "render-farm")
    found = loadframe.conclude(stored).answer
    assert isinstance(found, Investigation)
    last, bend = found.rounds[-1], windows.bend_of(found.rounds[-1])
    assert bend is not None and bend.load != last.curve.knee
    drawn = facts.series(found)[-1].curve
    assert drawn is not None and drawn.knee == bend.load
    assert "after about 80 active jobs" in plots.proof_title(found)


def test_a_level_is_on_the_axis_as_it_was_given() -> None:
    """Seen: 4.096k and 16.384k."""
    assert LoadAxis("files", (64, 512, 4096, 16384)).channel()["axis"]["format"] == vega.PLAIN
