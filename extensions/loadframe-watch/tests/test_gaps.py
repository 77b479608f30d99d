"""A gap is told with its reason and its length, and the watch goes on after it."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from loadframe_watch.days import days, lines
from loadframe_watch.journal import lost_lines
from loadframe_watch.watcher import Watcher
from watch_farm import Farm, watching

INTERVAL_S = 10.0


def told(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [dict(line.data) for line in lines(folder, kinds=(kind,))]


def ticks(farm: Farm, watcher: Watcher, count: int) -> None:
    for _ in range(count):
        watcher.tick()
        farm.clocks.advance(INTERVAL_S)


@contextmanager
def watched(folder: Path, **wished: Any) -> Iterator[tuple[Farm, Watcher]]:
    farm = Farm(1, 100.0)
    with watching(farm, folder, INTERVAL_S, **wished) as watcher:
        ticks(farm, watcher, 3)
        yield farm, watcher


def test_a_watch_without_a_gap_tells_of_none(tmp_path: Path) -> None:
    with watched(tmp_path) as (farm, watcher):
        ticks(farm, watcher, 50)
    assert told(tmp_path, "gap") == [] and watcher.gaps == 0
    assert len(told(tmp_path, "sample")) == 53


def test_a_suspended_machine_is_told_from_a_watcher_without_a_cpu(tmp_path: Path) -> None:
    with watched(tmp_path) as (farm, watcher):
        farm.clocks.boot_s += 3600
        farm.clocks.wall_s += 3600
        ticks(farm, watcher, 3)
        farm.clocks.advance(100)
        ticks(farm, watcher, 3)
    suspended, late = told(tmp_path, "gap")
    assert (suspended["reason"], suspended["seconds"]) == ("suspended", 3600 + INTERVAL_S)
    assert suspended["words"] == "the machine was suspended for 3600 s"
    assert suspended["to_s"] - suspended["from_s"] == 3600 + INTERVAL_S
    assert (late["reason"], late["seconds"]) == ("late", 100 + INTERVAL_S)


@pytest.mark.parametrize("late_s", [3.0, 60.0, 64.0])
def test_what_was_missed_is_not_made_up_for(tmp_path: Path, late_s: float) -> None:
    """The look that comes late is the only one until the next is due: two at once would have no time between them."""
    with watched(tmp_path, for_s=300.0, late_s={5: late_s}) as (_, watcher):
        assert watcher.run() == "time"
    looks = [line.up_s for line in lines(tmp_path, kinds=("sample",))]
    assert min(b - a for a, b in pairwise(looks)) >= INTERVAL_S - late_s % INTERVAL_S
    assert len(looks) == len(set(looks))


@pytest.mark.parametrize("by", [7200.0, -86400.0])
def test_a_clock_that_is_set_is_told_and_nothing_is_missing(tmp_path: Path, by: float) -> None:
    with watched(tmp_path) as (farm, watcher):
        farm.clocks.wall_s += by
        ticks(farm, watcher, 3)
    (gap,) = told(tmp_path, "gap")
    assert (gap["reason"], gap["seconds"]) == ("clock set", by)
    assert len(told(tmp_path, "sample")) == 6
    assert sorted(line.n for line in lines(tmp_path)) == list(range(1, watcher.journal.n + 1))


def test_a_slow_correction_of_the_clock_is_no_gap(tmp_path: Path) -> None:
    """NTP slews by up to 500 ppm."""
    with watched(tmp_path) as (farm, watcher):
        for _ in range(200):
            farm.clocks.wall_s += 500e-6 * INTERVAL_S
            ticks(farm, watcher, 1)
    assert told(tmp_path, "gap") == []


def test_a_full_disk_is_told_once_it_takes_lines_again(tmp_path: Path) -> None:
    with watched(tmp_path) as (farm, watcher):
        since_s = farm.clocks.wall()
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (days(tmp_path)[-1].files[0].stat().st_size, before[1]))
        try:
            ticks(farm, watcher, 4)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        ticks(farm, watcher, 2)
    (gap,) = told(tmp_path, "gap")
    assert (gap["reason"], gap["from_s"], gap["seconds"]) == ("disk full", since_s, 40.0)
    assert gap["words"].startswith("4 lines could not be written")
    assert len(told(tmp_path, "sample")) == 5 and watcher.gaps == 1


def test_a_service_that_goes_is_alarmed_once_and_its_return_closes_the_gap(tmp_path: Path) -> None:
    with watched(tmp_path) as (farm, watcher):
        farm.there = False
        ticks(farm, watcher, 12)
        assert [one["alarm"] for one in watcher.alarms] == ["absent"]
        assert told(tmp_path, "gap") == []
        farm.there = True
        ticks(farm, watcher, 2)
    (gap,) = told(tmp_path, "gap")
    assert (gap["reason"], gap["seconds"]) == ("target absent", 12 * INTERVAL_S)
    assert len(told(tmp_path, "target")) == 3
    samples = told(tmp_path, "sample")
    assert len(samples) == 17  # the machine is recorded meanwhile
    assert [bool(one["use"]) for one in samples] == [True] * 3 + [False] * 12 + [True] * 2


def test_the_gap_of_a_service_that_is_still_away_at_the_end_is_written(tmp_path: Path) -> None:
    with watched(tmp_path, for_s=1.0) as (farm, watcher):
        farm.there = False
        ticks(farm, watcher, 4)
        watcher.run()
        assert watcher.gaps == 1
    (gap,) = told(tmp_path, "gap")
    assert (gap["reason"], gap["seconds"]) == ("target absent", 4 * INTERVAL_S)


def test_an_alarm_of_a_failing_unit_of_work_says_how_it_failed(tmp_path: Path) -> None:
    with watched(tmp_path, every_s=10.0) as (farm, watcher):
        farm.error = "no answer: [Errno 111] Connection refused"
        ticks(farm, watcher, 5)
        (alarm,) = watcher.alarms
    assert alarm["alarm"] == "unit-fails"
    assert [one["text"] for one in alarm["evidence"]] == ["The last one: no answer: [Errno 111] Connection refused"]


@pytest.mark.parametrize(("load", "said"), [("jobs_actve", True), ("active_jobs", False)])
def test_a_load_that_is_none_is_said_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], load: str, said: bool
) -> None:
    with watched(tmp_path, load=load) as (farm, watcher):
        ticks(farm, watcher, 30)
    told_ = [line for line in capfd.readouterr().err.splitlines() if "was not read" in line]
    assert len(told_) == (1 if said else 0)
    assert all(f"The load, {load}," in line and line.partition("--load ")[2] for line in told_)


@pytest.mark.parametrize("what", ["absent", "unit-fails"])
def test_a_service_that_crashes_again_and_again_is_one_event(tmp_path: Path, what: str) -> None:
    """For 100 s of every 150 s it is away, or its unit of work fails; then it is well for two hours, and dies again."""
    with watched(tmp_path, every_s=10.0) as (farm, watcher):
        for hours in (1, 2, 0.1):
            for at in range(int(hours * 360)):
                bad = hours != 2 and at % 15 < 10
                farm.there = not (bad and what == "absent")
                farm.error = "status 503" if bad and what == "unit-fails" else ""
                ticks(farm, watcher, 1)
            assert [one["alarm"] for one in watcher.alarms] == [what] * (1 if hours != 0.1 else 2)


def test_a_service_that_is_back_soon_gives_no_alarm(tmp_path: Path) -> None:
    with watched(tmp_path) as (farm, watcher):
        farm.there = False
        ticks(farm, watcher, 4)
        farm.there = True
        ticks(farm, watcher, 1)
    assert watcher.alarms == [] and len(told(tmp_path, "gap")) == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_memory_is_learned_on_after_a_restart_of_the_watcher_and_again_after_one_of_the_service(
    tmp_path: Path, restarted: bool
) -> None:
    """Else a watcher that is started again each night would never see a leak of days."""
    with watched(tmp_path, for_s=600.0) as (farm, watcher):
        assert watcher.run() == "time"
    before = [row for row, _ in watcher.model.as_json()["rows"]["rows"]]
    if restarted:
        farm.there = False
        farm.who()
        farm.there = True
    with watching(farm, tmp_path, INTERVAL_S) as again:
        ticks(farm, again, 1)
        after = [row for row, _ in again.model.as_json()["rows"]["rows"]]
    assert len(before) > 5 and (before[0] in after) is not restarted


def test_a_watch_that_begins_again_goes_on_where_it_was(tmp_path: Path) -> None:
    with watched(tmp_path, for_s=60.0) as (farm, watcher):
        assert watcher.run() == "time"
    learned, numbers = watcher.model.as_json(), watcher.journal.n
    farm.clocks.advance(500)
    with watching(farm, tmp_path, INTERVAL_S) as again:
        assert again.model.as_json()["rows"] == learned["rows"]
        ticks(farm, again, 1)
    (gap,) = told(tmp_path, "gap")
    assert gap["reason"] == "stopped" and gap["seconds"] == pytest.approx(500, abs=INTERVAL_S)
    assert [line.n for line in lines(tmp_path)][numbers - 1 : numbers + 1] == [numbers, numbers + 1]
    assert [one["reason"] for one in told(tmp_path, "end")] == ["time"]


def test_one_line_that_was_not_written_is_told_in_the_singular() -> None:
    assert lost_lines(1, 0.0, 1.0).words.startswith("1 line could")
