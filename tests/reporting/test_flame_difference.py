"""The flame graph of two states shows what grew, what shrank and what vanished, and paints what chance cannot do."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from loadframe.model import Investigation
from loadframe.reporting import flame
from loadframe.reporting.flame import Difference, Node
from loadframe.reporting.reports import render_page


@pytest.fixture(autouse=True)
def _without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take seconds, and are tested elsewhere."""
    monkeypatch.setattr("loadframe.reporting.reports.page_charts", lambda _: {})


@pytest.fixture
def pair(compared: Investigation) -> Difference:
    found = flame.pair_of(compared)
    assert found is not None
    return found


def test_both_states_are_needed(profiled: Investigation, farm: Investigation) -> None:
    assert flame.pair_of(profiled) is None, "its last state was not sampled"
    assert flame.pair_of(farm) is None
    assert "flame-difference" not in render_page(profiled)


def test_a_box_has_its_share_of_both_states(pair: Difference) -> None:
    command = flame.merged(pair).below["mariadbd"].below["do_command"]
    parse, opening = command.below["MYSQLparse"], command.below["open_table"]
    assert (parse.before, parse.after) == pytest.approx((310 / 660, 500 / 555))
    assert (opening.before, opening.after) == pytest.approx((290 / 660, 0.0))
    assert opening.width == pytest.approx(145 / 660), "what vanished is still seen"


def test_boxes_lie_within_those_that_called_them(compared: Investigation, pair: Difference) -> None:
    root = ElementTree.fromstring(flame.difference_svg(compared, pair))
    boxes = list(root.iter("rect"))
    spans = {(float(r.get("x", "")), float(r.get("width", "")), float(r.get("y", ""))) for r in boxes}
    for left, width, y in spans:
        below = [one for one in spans if one[2] == y + flame.ROW]
        assert not below or any(x - 0.02 <= left and left + width <= x + wide + 0.02 for x, wide, _ in below)
    titles = [box.findtext("title") or "" for box in root.findall("g")]
    assert "path_openat (kernel): 44 % before, less than 0.25 % after" in titles
    assert "all of the CPU time" in titles


def test_only_what_is_beyond_chance_is_painted(pair: Difference) -> None:
    assert flame.difference_shade(Node("f", 0.44, 0.0), pair) == "down3"
    assert flame.difference_shade(Node("f", 0.47, 0.90), pair) == "up3"
    assert flame.difference_shade(Node("f", 0.10, 0.13), pair) == "", "30 samples of 660 are chance"
    many = replace(pair, before=replace(pair.before, samples=10**6), after=replace(pair.after, samples=10**6))
    assert flame.difference_shade(Node("f", 0.100, 0.103), many) == "up1"


def test_the_sentence_names_what_changed_most(compared: Investigation, pair: Difference) -> None:
    said = flame.difference_sentence(compared, pair)
    assert said.startswith("The target's CPU time at 40 active jobs, before against after the changes")
    assert "path_openat 44 % before, less than 0.25 % after" in said
    assert "MYSQLparse 47 % before, 90 % after" in said
    page = render_page(compared)
    assert re.search(r'<svg class="flame difference" viewBox="[^"]+" role="img" aria-label="Flame graph, before', page)


def test_equal_states_differ_nowhere(compared: Investigation, pair: Difference) -> None:
    same = replace(pair, after=pair.before)
    assert flame.changed(same) == []
    assert "no share differs beyond chance" in flame.difference_sentence(compared, same).lower()
