"""The section on profiles: the same facts in page, text and JSON, and a flame graph that reads without a script."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from loadframe.model import Investigation, Stack
from loadframe.reporting import flame
from loadframe.reporting import flame as drawing
from loadframe.reporting.flame import TitledStacks, speedscope_json
from loadframe.reporting.json_shapes import investigation_json
from loadframe.reporting.reports import render_page, render_text


@pytest.fixture(autouse=True)
def _without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take seconds, and are tested elsewhere."""
    monkeypatch.setattr("loadframe.reporting.reports.page_charts", lambda _: {})


def text_of(page: str) -> str:
    shown = re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]+>", " ", page, flags=re.S)
    return " ".join(shown.split())


def test_page_text_and_json_tell_the_same_shares(profiled: Investigation) -> None:
    page, text = text_of(render_page(profiled)), " ".join(render_text(profiled, details=True).split())
    past = profiled.profiles[2]
    files = next(one for one in past.classes if one.id == "files")
    assert files.share == pytest.approx(290 / 660)
    for shown in (page, text):
        assert f"file system and page cache {flame.share(files)}" in shown
        assert "past the bend, at 40 active jobs" in shown.lower()
        assert "9.67 times in file system and page cache" in shown
        assert "kernel.perf_event_paranoid=1 (it is 2)" in shown
    shape = json.loads(json.dumps(investigation_json(profiled), allow_nan=False))
    assert [one["place"] for one in shape["profiles"]] == ["below", "below", "past", "past"]
    assert {one["id"] for one in shape["profiles"][2]["classes"]} == {"user", "files"}
    assert "flame" not in shape["profiles"][0]
    assert shape["profile_missing"][0]["how_to_get_it"] == profiled.profile_missing[0].how_to_get_it


def test_unnamed_functions_are_counted(profiled: Investigation) -> None:
    assert "9.1 % of them in functions without a name" in text_of(render_page(profiled))


def test_threads_stand_in_where_perf_is_forbidden(profiled: Investigation) -> None:
    only = replace(profiled, profiles=tuple(one for one in profiled.profiles if one.kind == "threads"))
    page, text = text_of(render_page(only)), " ".join(render_text(only, details=True).split())
    assert "Flame graph" not in page
    assert "of 3 threads on average: 2 running or waiting for a CPU, 1 locks" in text
    assert "Threads of the target on average" in page


def test_without_profiles_there_is_no_section_and_no_script(farm: Investigation) -> None:
    page = render_page(farm)
    assert "Where the time goes" not in page
    assert "flame-zoom" not in page


def test_the_picture_is_whole_and_named(profiled: Investigation) -> None:
    past = profiled.profiles[2]
    root = ElementTree.fromstring(drawing.svg(past, label="a & <b>"))
    boxes = root.findall("g")
    assert len(boxes) == len(past.flame) + 1
    titles = [box.findtext("title") or "" for box in boxes]
    assert "path_openat (kernel): 44 % of the samples, 9.67 times the CPU time per request" in titles
    assert root.get("aria-label") == "a & <b>"
    for box in boxes:
        rect = box.find("rect")
        assert rect is not None
        left, width = float(rect.get("x", "")), float(rect.get("width", ""))
        assert left >= -0.01
        assert left + width <= drawing.WIDTH + 0.02


def test_names_from_outside_cannot_become_markup(profiled: Investigation) -> None:
    attack = '"><script>alert(1)</script>'
    evil = tuple(
        replace(one, flame=tuple(replace(box, name=attack) for box in one.flame), component="target")
        for one in profiled.profiles
    )
    lacking = tuple(replace(one, what=attack) for one in profiled.profile_missing)
    page = render_page(replace(profiled, profiles=evil, profile_missing=lacking))
    assert "<script>alert" not in page
    scripts = re.findall(r"<script ([^>]*)>", page)
    assert all(
        re.search('type="application/json"|id="(flame-zoom|figure-files|settings-copy)"', one) for one in scripts
    )


@pytest.mark.parametrize(("width", "text"), [(10, ""), (60, "open_ta"), (45, "ope..")])
def test_a_name_is_cut_to_its_box(width: float, text: str) -> None:
    assert drawing.fitted("open_ta" if text == "open_ta" else "open_table", width) == text


def test_shades_grow_with_the_change() -> None:
    assert [drawing.shade(change) for change in (1.1, 1.5, 3.0, 0.9, 0.7, 0.3, None, 0.0)] == [
        "up1",
        "up2",
        "up3",
        "down1",
        "down2",
        "down3",
        "",
        "",
    ]


def test_every_class_and_shade_has_its_colour() -> None:
    css = (Path(drawing.__file__).parent / "page.css").read_text()
    painted = ("user", "kernel", "lock", "scheduling", "io", "files", "network", "copy", "fault", "reclaim")
    assert all(f".k-{name} " in css for name in (*painted, "allocation", "process", "collecting"))
    assert all(f".flame .{name} " in css for name in ("up1", "up2", "up3", "down1", "down2", "down3"))


def test_speedscope_has_every_sample_and_each_frame_once() -> None:
    past = (Stack(("m", "parse"), 310), Stack(("m", "open", "path_openat_[k]"), 290), Stack(("m", "[mariadbd]"), 60))
    states = (Stack(("m", "[sleeping]"), 5),)
    document = speedscope_json("run", [TitledStacks("cpu", past, 0.002, True), TitledStacks("t", states, 0.01, False)])
    names = [frame["name"] for frame in document["shared"]["frames"]]
    assert len(names) == len(set(names))
    cpu, threads = document["profiles"]
    assert (cpu["unit"], threads["unit"]) == ("seconds", "none")
    assert cpu["endValue"] == pytest.approx(660 * 0.002)
    assert sum(cpu["weights"]) == pytest.approx(cpu["endValue"])
    assert [tuple(names[index] for index in stack) for stack in cpu["samples"]] == [stack.frames for stack in past]
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
