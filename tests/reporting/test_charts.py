"""A chart draws what was measured, in the user's units, and is left out where nothing was."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

from loadframe.model import Investigation
from loadframe.reporting import charts, facts, vega


def test_the_charts_of_a_case_are_whole_svg_documents(farm: Investigation) -> None:
    drawn = charts.page_charts(farm)
    names = {"proof", "latency", "blocks", "evidence-1", "evidence-2", "footprint-1", "footprint-2"}
    assert drawn.keys() == names
    for chart in drawn.values():
        for svg in filter(None, (chart.svg, chart.narrow_svg)):
            assert ElementTree.fromstring(svg).tag.endswith("svg")
            assert "NaN" not in svg


def test_the_specification_can_be_used_again(farm: Investigation) -> None:
    proof = charts.page_charts(farm)["proof"]
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
    assert charts.proof_title(farm) == (
        "Throughput falls to 35 % between 12 and 20 active jobs; after the change it falls after about 170 active jobs"
    )


def test_before_and_after_have_colours_of_their_own_and_are_named(farm: Investigation) -> None:
    svg = charts.page_charts(farm)["proof"].svg
    assert vega.BEFORE in svg and vega.AFTER in svg
    assert ">before<" in svg and ">after<" in svg and "active jobs" in svg


def test_a_state_between_is_drawn_and_named_by_its_change(queue: Investigation) -> None:
    assert [each.label for each in facts.series(queue)] == ["before", "journal_mode = wal", "after"]
    assert "journal_mode = wal" in charts.page_charts(queue)["proof"].svg
    assert charts.page_charts(queue).keys() >= {"ladder"}


def test_without_a_round_there_is_no_chart(examples: dict[str, Investigation]) -> None:
    assert charts.page_charts(examples["bare"]) == {}
    assert charts.chart_svg(examples["bare"]) == ""


def test_a_remedy_kept_at_the_very_end_is_drawn_from_its_proof(farm: Investigation) -> None:
    inv = replace(farm, rounds=farm.rounds[:1])
    drawn = facts.series(inv)
    assert [each.role for each in drawn] == ["before", "after"]
    assert {point.load for point in drawn[1].points} == {10.0, 20.0, 40.0, 80.0}
    assert "proof" in charts.page_charts(inv)


def test_levels_that_grow_by_a_factor_get_a_logarithmic_axis() -> None:
    assert vega.is_geometric((5, 10, 20, 40, 80))
    assert vega.is_geometric((5, 10, 12, 15, 20, 40, 80, 160, 320))
    assert not vega.is_geometric((10, 20, 30, 40, 50))
    assert not vega.is_geometric((0, 1, 2, 4, 8))
    assert not vega.is_geometric((1, 2))


def test_the_picture_for_a_readme_fits_and_carries_its_title(farm: Investigation) -> None:
    root = ElementTree.fromstring(charts.chart_svg(farm))
    assert float(root.get("width", "inf")) <= 800
    assert "Throughput falls" in "".join(root.itertext())
