"""Limits are drawn as bars that fill over the load, and the title says which one is full from where on."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from loadframe.model import Investigation
from loadframe.reporting import limits_report, reports


def test_a_limit_is_full_from_where_the_round_has_it(farm: Investigation) -> None:
    """Seen: "full from 1 worker" above a table that says 2, and "no limit is full" of a state whose limit is."""
    table = {panel.name: panel for panel in limits_report.panels(farm)}["mariadb.table_open_cache"]
    there = [next(limit for limit in round_.limits if limit.id == table.name) for round_ in farm.rounds]
    assert [table.full["before"], table.full["after"]] == [limit.exhausted_at for limit in there]
    assert table.peak("after")[0] == pytest.approx(1, abs=0.1)


def test_the_title_is_the_fact(farm: Investigation) -> None:
    cache = "mariadb.table_open_cache: full from about 12.8 active jobs on"
    assert limits_report.title(farm) == f"{cache} before, from about 86 active jobs on after the changes"
    first, last = farm.rounds
    ample = replace(last, limits=(replace(last.limits[0], ceiling=2000.0, exhausted_at=None),))
    said = limits_report.title(replace(farm, rounds=(first, ample)))
    assert said.startswith(f"Before, {cache}; after, no limit is full; nearest: mariadb.table_open_cache, ")
    only = replace(farm, rounds=farm.rounds[:1], after=None)
    first = replace(only.rounds[0], tried=())
    assert limits_report.title(replace(only, rounds=(first,))) == cache


def test_nothing_is_full_is_said_with_the_nearest(farm: Investigation) -> None:
    first = farm.rounds[0]
    wide = tuple(replace(limit, ceiling=128.0, exhausted_at=None) for limit in first.limits[:1])
    inv = replace(farm, rounds=(replace(first, limits=wide, tried=()),))
    assert limits_report.title(inv).startswith("No limit is full; nearest: mariadb.table_open_cache, 5")


def test_a_bar_is_as_high_as_its_share_and_never_higher_than_its_room(farm: Investigation) -> None:
    spec = json.loads(reports.page_charts(farm)["limits"].spec)
    bars = [row for rows in spec["datasets"].values() for row in rows if "y2" in row]
    panels = limits_report.shown(limits_report.panels(farm))
    assert len(bars) == 2 * sum(len(found) for each in panels for found in each.shares.values())
    assert all(0 <= row["y2"] - row["y"] <= limits_report.BARS_PX + 1e-9 for row in bars)
    heights = [row["y2"] - row["y"] for row in bars]
    lowest = panels[0].shares["before"][5.0]
    assert 0.3 < lowest < 0.5, "25 of 64 tables"
    assert any(height == pytest.approx(limits_report.BARS_PX * lowest) for height in heights)


def test_what_is_far_from_its_ceiling_is_told_and_not_drawn(farm: Investigation) -> None:
    assert limits_report.note(farm).endswith("the room that is left.")
    first = farm.rounds[0]
    many = tuple(replace(first.limits[0], id=f"x{number}", ceiling=1e6) for number in range(5))
    inv = replace(farm, rounds=(replace(first, limits=many, tried=()),))
    assert len(limits_report.shown(limits_report.panels(inv))) == limits_report.ALWAYS_SHOWN
    assert "Not drawn: 2 more" in limits_report.note(inv)


def test_a_limit_without_a_ceiling_or_a_use_is_left_out(farm: Investigation) -> None:
    first = farm.rounds[0]
    unlimited = replace(first.limits[0], ceiling=float("inf"))
    unread = replace(first.limits[0], use_metric="")
    inv = replace(farm, rounds=(replace(first, limits=(unlimited, unread), tried=()),))
    assert limits_report.panels(inv) == []
    assert "limits" not in reports.page_charts(inv)
