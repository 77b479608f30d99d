"""A watch on the live page: read line by line as its file grows; what is not known, or hostile, is left out."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from loadframe.system.files import Folder, Whose, hold
from loadframe_watch.page import WatchView

BEGAN_S = 1.8e9
TODAY = "2027-01-15.jsonl"
HEAD = {"kind": "head", "at_s": BEGAN_S, "schema": "loadframe.watch/1", "subject": "the farm", "load": "active_jobs"}


def sample(minute: float, load: float, **others: Any) -> dict[str, Any]:
    return {"kind": "sample", "at_s": BEGAN_S + 60 * minute, "load": load, "use": {"table_cache": load / 80}, **others}


NUMBERS, LATER = itertools.count(1), 10**6


def written(line: dict[str, Any]) -> str:
    """A line as a watch writes it, with the next number where it has none."""
    return json.dumps({"n": next(NUMBERS), "up_s": 0.0, **line}) + "\n"


def add(folder: Path, *lines: dict[str, Any], day: str = TODAY) -> None:
    with (folder / day).open("a", encoding="utf-8") as file:
        file.writelines(written(line) for line in lines)


@pytest.fixture
def view(tmp_path: Path) -> WatchView:
    folder = tmp_path / "farm"
    folder.mkdir()
    add(folder, HEAD)
    return WatchView(Folder(folder, Whose.NAMED), "0/farm")


def folder_of(view: WatchView) -> Path:
    return view._storage.path


def test_each_minute_is_told_as_it_comes(view: WatchView) -> None:
    assert view.refresh()["heading"]["subject"] == "the farm"
    add(folder_of(view), sample(0, 8), sample(0.5, 10), sample(1, 20))
    told = view.refresh()
    assert [minute["load"] for minute in told["minutes"]] == [9, 20]
    assert told["limits"]["table_cache"]["share"] == 0.25
    assert view.refresh() == {}
    add(folder_of(view), sample(1.5, 30), {"kind": "unit", "at_s": BEGAN_S + 95, "response_s": 0.05, "load": 30})
    refused = {"kind": "unit", "at_s": BEGAN_S + 99, "response_s": 0.001, "error": "status 503"}
    add(folder_of(view), refused)
    assert [minute["response_ms"] for minute in view.refresh()["minutes"]] == [None, 50]


def test_a_load_that_no_minute_has_is_said_to_be_missing(view: WatchView) -> None:
    def without_load(minute: float) -> dict[str, Any]:
        return {key: value for key, value in sample(minute, 8).items() if key != "load"}

    add(folder_of(view), without_load(0), without_load(1))
    assert "blind" not in view.refresh()
    add(folder_of(view), without_load(2))
    assert "The load (active jobs) was not read" in view.refresh()["blind"]
    add(folder_of(view), sample(3, 8))
    assert view.refresh()["blind"] == ""


def test_read_at_once_it_is_what_was_told_bit_by_bit(view: WatchView) -> None:
    alarm = {"kind": "alarm", "at_s": BEGAN_S + 90, "title": "The table cache will be full", "try": ["Raise it."]}
    for line in (sample(0, 8), alarm, sample(2, 9), {"kind": "cost", "at_s": BEGAN_S, "cpu_s": 1, "elapsed_s": 3600}):
        add(folder_of(view), line)
        view.refresh()
    at_once = WatchView(Folder(folder_of(view), Whose.NAMED), "0/farm")
    at_once.refresh()
    assert view.whole() == at_once.whole()
    assert view.row()["answer"] == "1 alarm. The last: The table cache will be full"


def test_yesterday_is_read_from_its_compacted_day(view: WatchView) -> None:
    lines = "".join(written(sample(minute, 5)) for minute in range(-30, -20)).encode()
    frames = zstandard.compress(lines[:200]) + zstandard.compress(lines[200:])
    (folder_of(view) / "2027-01-14.jsonl.zst").write_bytes(frames)
    add(folder_of(view), sample(0, 8))
    view.refresh()
    assert len(view.whole()["minutes"]) == 11


def compact(folder: Path, day: str) -> None:
    """As a watch does: what the day has goes into a frame behind those that are there."""
    target = folder / f"{day}.zst"
    before = target.read_bytes() if target.exists() else b""
    target.write_bytes(before + zstandard.compress((folder / day).read_bytes()))
    (folder / day).unlink()


@pytest.mark.parametrize("days", [1, 2, 5])
def test_what_came_while_nothing_was_read_is_told_though_its_day_was_compacted(view: WatchView, days: int) -> None:
    """While the page has no viewer nothing is read: the alarm of last night is what they want to see."""
    view.refresh()
    add(folder_of(view), {**alarm_at(600), "n": LATER + 7})
    compact(folder_of(view), TODAY)
    for day in range(1, days + 1):
        add(folder_of(view), {**sample(1440 * day, 3), "n": LATER + 10 + day}, day=f"2027-01-{15 + day}.jsonl")
    view.refresh()
    assert [one["at_s"] for one in view.alarms] == [BEGAN_S + 600]
    assert view.refresh() == {}


def alarm_at(after_s: float) -> dict[str, Any]:
    return {"kind": "alarm", "at_s": BEGAN_S + after_s, "title": "The table cache will be full"}


def test_a_day_that_goes_on_after_it_was_compacted_is_read_on(view: WatchView) -> None:
    """A clock that was set back leads into a day that had ended."""
    add(folder_of(view), {**alarm_at(1), "n": LATER + 1})
    view.refresh()
    compact(folder_of(view), TODAY)
    view.refresh()
    for n in (2, 3):
        add(folder_of(view), {**alarm_at(n), "n": LATER + n})
        view.refresh()
    compact(folder_of(view), TODAY)
    add(
        folder_of(view), {**alarm_at(3), "n": LATER + 3}, {**alarm_at(4), "n": LATER + 4}
    )  # killed before the day was removed
    view.refresh()
    assert [one["at_s"] - BEGAN_S for one in view.alarms] == [1, 2, 3, 4]


def test_a_clock_that_was_far_ahead_does_not_stop_the_page(view: WatchView) -> None:
    ahead = 40 * 365 * 1440
    add(folder_of(view), sample(0, 8), sample(ahead, 9), sample(1, 10))
    add(folder_of(view), sample(ahead, 9), day="2066-12-05.jsonl")
    view.refresh()
    add(folder_of(view), sample(2, 11), sample(3, 12))
    assert [minute["load"] for minute in view.refresh()["minutes"]] == [11, 12]


def test_an_alarm_of_a_week_ago_and_the_first_day_are_still_told(view: WatchView) -> None:
    week_s = 7 * 86400
    first = [{**HEAD, "at_s": BEGAN_S - week_s}, {"kind": "alarm", "at_s": BEGAN_S - week_s + 5, "title": "Full soon"}]
    text = "".join(map(written, (*first, sample(-10080, 5)))).encode()
    (folder_of(view) / "2027-01-08.jsonl.zst").write_bytes(zstandard.compress(text))
    for day in range(9, 15):
        (folder_of(view) / f"2027-01-{day:02d}.jsonl.zst").write_bytes(zstandard.compress(b""))
    add(folder_of(view), sample(0, 8))
    view.refresh()
    assert [one["title"] for one in view.alarms] == ["Full soon"]
    assert view.heading["since"] == "2027-01-08T08:00:00+00:00"
    assert len(view.minutes) == 1


def test_a_day_is_shown_however_rarely_it_is_read(view: WatchView) -> None:
    add(folder_of(view), *(sample(10.0 * at, 5) for at in range(200)))
    view.refresh()
    shown = [minute["at_s"] for minute in view.whole()["minutes"]]
    assert shown[-1] - shown[0] < 86400 and len(shown) == 144


def test_a_watch_is_at_work_while_its_lock_is_held(view: WatchView) -> None:
    view.refresh()
    assert view.status == "stopped"
    descriptor = os.open(folder_of(view) / "watch.lock", os.O_CREAT | os.O_RDWR)
    hold(descriptor)
    assert view.refresh()["status"] == "watching"
    os.close(descriptor)
    assert view.refresh()["status"] == "stopped"


def test_a_watch_that_ended_is_told_from_one_that_was_killed_until_it_begins_again(view: WatchView) -> None:
    add(folder_of(view), sample(0, 5), {"kind": "end", "at_s": BEGAN_S + 1, "reason": "time"})
    view.refresh()
    assert view.row()["status"] == "ended"
    add(folder_of(view), {**HEAD, "at_s": BEGAN_S + 2})
    view.refresh()
    assert view.row()["status"] == "stopped"


def test_limits_and_load_have_names_before_the_ledger_is_read(view: WatchView) -> None:
    add(
        folder_of(view), {**HEAD, "load": "mariadb.connections"}, sample(0, 5) | {"use": {"disk.busy": 0.2, "own": 0.1}}
    )
    view.refresh()
    assert view.heading["load"] == "client connections open"
    assert {one["title"] for one in view.limits.values()} == {"the busiest disk's time", "own"}
    add(folder_of(view), {**HEAD, "load": "target.connections"})
    assert view.refresh()["heading"]["load"] == "connections"


def test_a_watch_of_a_few_minutes_is_shown_by_its_samples(view: WatchView) -> None:
    add(folder_of(view), sample(0, 4), sample(0.5, 8))
    assert [one["load"] for one in view.refresh()["recent"]] == [4, 8]
    assert [one["use"] for one in view.whole()["recent"]] == [{"table_cache": 0.05}, {"table_cache": 0.1}]
    add(folder_of(view), *(sample(minute, 8) for minute in range(1, 12)))
    told = view.refresh()
    assert told["recent"] == []
    assert told["minutes"][-1]["use"] == {"table_cache": 0.1}


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        '{"kind": 1, "at_s": 1}',
        '{"n": 900000, "up_s": 0, "kind": "sample", "at_s": "x"}',
        '{"n": 900000, "up_s": 0, "kind": "sample", "at_s": 1, "use": [1], "load": "many"}',
        '{"n": 900000, "up_s": 0, "kind": "ledger", "at_s": 1, "limits": {"id": 1}}',
        '{"n": 900000, "up_s": 0, "kind": "model", "at_s": 1, "limits": [1, {"id": 2, "use": "x"}]}',
        '{"n": 900000, "up_s": 0, "kind": "head", "schema": "loadframe.watch/1", "at_s": 1e300}',
        '{"n": 900000, "up_s": 0, "kind": "cost", "at_s": 1, "cpu_s": [1]}',
        '{"n": 900000, "up_s": 0, "kind": "of-tomorrow", "at_s": 1}',
        "\x00\xff",
    ],
)
def test_lines_that_are_not_known_are_left_out(view: WatchView, line: str) -> None:
    with (folder_of(view) / TODAY).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    add(folder_of(view), sample(5, 7, n=LATER))
    view.refresh()
    assert view.error == ""
    assert view.whole()["minutes"][-1]["load"] == 7


def test_a_torn_line_waits_for_its_end(view: WatchView) -> None:
    view.refresh()
    text = written(sample(0, 8))
    with (folder_of(view) / TODAY).open("a", encoding="utf-8") as file:
        file.write(text[:20])
        file.flush()
        assert view.refresh() == {}
        file.write(text[20:])
    assert len(view.refresh()["minutes"]) == 1


def test_a_link_and_a_bomb_are_refused(view: WatchView, tmp_path: Path) -> None:
    bomb = zstandard.compress(b"\n" * (80 << 20))
    (folder_of(view) / "2027-01-14.jsonl.zst").write_bytes(bomb)
    assert "far more than their size on the disk" in view.refresh()["error"]
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / TODAY).symlink_to(folder_of(view) / TODAY)
    linked = WatchView(Folder(tmp_path / "linked", Whose.NAMED), "0/linked")
    assert "link" in linked.refresh()["error"]


@pytest.mark.extension("loadframe_live")
def test_it_is_in_the_list_whether_its_folder_or_the_one_above_is_named(view: WatchView) -> None:
    from loadframe_live.follower import Listing
    from loadframe_live.shown import Places

    for path in (folder_of(view), folder_of(view).parent):
        listing = Listing(Places([path]))
        assert [one.id for one in listing.look()] == ["0/farm"]
        assert list(listing.rows) == ["0/farm"]


@pytest.mark.extension("loadframe_live")
def test_prometheus_gets_the_last_line_of_each_watch_and_every_alarm(tmp_path: Path) -> None:
    from loadframe_live.follower import Metrics
    from loadframe_live.shown import Places

    for name in ("farm", "shop"):
        (tmp_path / name).mkdir()
        add(tmp_path / name, {**HEAD, "subject": name}, sample(0, 10.0), sample(1, 20.0, values={"x": []}))
    metrics = Metrics(Places([tmp_path]), lambda _: pytest.fail("there is no run"))

    def loads() -> dict[str, float]:
        families = {one.name: one.samples for one in text_string_to_metric_families(metrics.text())}
        assert {one.labels["watch"] for one in families["loadframe_watch_info"]} == {"farm", "shop"}
        return {one.labels["watch"]: one.value for one in families["loadframe_watch_load"]}

    assert loads() == {"farm": 20, "shop": 20}
    add(tmp_path / "shop", sample(2, 30.0), {"kind": "alarm", "at_s": BEGAN_S, "alarm": "leak", "title": "it leaks"})
    assert loads() == {"farm": 20, "shop": 30}
    assert 'loadframe_watch_alarms{watch="shop",alarm="leak"} 1' in metrics.text()
    shutil.rmtree(tmp_path / "shop")
    (tmp_path / "farm" / TODAY).write_bytes(b"\xff\x00\n")
    assert "shop" not in metrics.text()


@pytest.mark.extension("loadframe_live")
def test_of_very_many_watches_each_can_be_opened(tmp_path: Path) -> None:
    from loadframe_live.follower import MOST_FOLLOWED, Follower
    from loadframe_live.hub import Hub
    from loadframe_live.shown import Places

    names = [f"farm-{number:02}" for number in range(MOST_FOLLOWED + 2)]
    for name in names:
        (tmp_path / name).mkdir()
        add(tmp_path / name, {**HEAD, "subject": name}, sample(0, 10.0), alarm_at(1))
    follower = Follower(Places([tmp_path]), Hub())

    async def subjects() -> list[str]:
        return [(await follower.whole(f"0/{name}"))["heading"]["subject"] for name in names]

    assert asyncio.run(subjects()) == names
    told = {row["answer"] for row in asyncio.run(follower.rows())["runs"]}
    assert told == {"1 alarm. The last: The table cache will be full"}
