"""A leak is named with the hour at which the memory that the service may have ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.model import Saturation
from loadframe_watch.leaks import Leak, in_words, unjudged
from watch_farm import BEGUN_S, MIB, Farm, watching


def test_a_leak_ends_at_the_limit_of_the_control_group(tmp_path: Path) -> None:
    """Which only a look at all limits tells: the machine itself has room for two weeks."""
    farm = Farm(11, 200.0, leak=MIB / 60, memory_limit=2048 * MIB)
    with watching(farm, tmp_path, 300.0) as watcher:
        while not watcher.alarms and farm.metrics()["target.memory.rss"] < farm.memory_limit:
            watcher.tick()
            farm.clocks.advance(300.0)
    (alarm,) = watcher.alarms
    ends = alarm["ends_s"]
    full_s = BEGUN_S + (2048 - 700) * 60
    assert (alarm["alarm"], alarm["about"]) == ("leak", "target.memory.rss")
    assert 0.85 < (ends["value"] - BEGUN_S) / (full_s - BEGUN_S) < 1.15


@pytest.mark.parametrize("by_s", [40 * 365 * 86400.0, -7200.0])
def test_the_hour_is_told_by_a_clock_that_was_set_meanwhile(tmp_path: Path, by_s: float) -> None:
    """A machine may begin with a wrong clock, and get the right time a moment later."""
    farm = Farm(12, 200.0, leak=MIB / 60, memory_limit=2048 * MIB)
    with watching(farm, tmp_path, 300.0) as watcher:
        watcher.tick()
        farm.clocks.wall_s += by_s
        while not watcher.alarms and farm.metrics()["target.memory.rss"] < farm.memory_limit:
            farm.clocks.advance(300.0)
            watcher.tick()
        (leak,) = watcher.known()["leaks"]
    (alarm,) = watcher.alarms
    full_s = BEGUN_S + by_s + (2048 - 700) * 60
    assert alarm["ends_s"]["value"] == pytest.approx(full_s, abs=4 * 3600)
    assert leak["ends_s"]["value"] == pytest.approx(full_s, abs=4 * 3600)


@pytest.mark.long
def test_what_cannot_be_judged_yet_is_said_with_the_moment_from_which_it_can(tmp_path: Path) -> None:
    """None that is told is not none that is there."""
    farm = Farm(13, 200.0, memory_limit=2048 * MIB)
    with watching(farm, tmp_path, 60.0) as watcher:

        def minutes(count: int) -> dict[str, dict[str, float | None]]:
            for _ in range(count):
                watcher.tick()
                farm.clocks.advance(60.0)
            return {one["metric"]: one for one in watcher.known()["unjudged"]}

        first = minutes(10)["target.memory.rss"]
        assert first["per_hour"] is None
        assert first["from_s"] == pytest.approx(BEGUN_S + 1800, abs=120)
        said = watcher.model.unjudged_words(watcher.known())
        assert said.startswith("Leaks that cannot be judged yet: memory (resident)") and " UTC on)" in said
        slow = minutes(110)["target.memory.rss"]
        assert slow["from_s"] == pytest.approx(BEGUN_S + 14.4 * 3600, abs=120)
        room = 2048 * MIB - farm.metrics()["target.memory.rss"]
        assert slow["per_hour"] == pytest.approx(room / (50 * 2), rel=0.05)  # what ends within 50 times the two hours
        said = watcher.model.unjudged_words(watcher.known())
        assert "memory (resident) by less than " in said and " MiB an hour" in said
        assert "target.memory.rss" not in minutes(13 * 60)
    assert watcher.alarms == []


def test_a_leak_that_is_seen_and_may_be_a_log_is_said_to_wait() -> None:
    ends = Saturation(2 * 86400.0, 86400.0, 4 * 86400.0, "extrapolated", "line")
    grows = Leak(1e-7, 0.5e-7, 1.5e-7, ends, 0.9, 20 * 3600.0, load_known=True)
    times_s = [60.0 * at for at in range(1200)]
    one = unjudged("system.filesystem.space", times_s, 0.9, 1.0, 60.0, (grows, 30 * 3600.0))
    assert one is not None and one["from_s"] == 30 * 3600.0
    said = in_words([one], {"system.filesystem.space": "the fullest file system"}, lambda _, value: f"{value:.2%}")
    assert said == (
        "Leaks that cannot be judged yet: the fullest file system, which grows by 0.04% an hour and may be a log "
        "(from 1970-01-02 06:00 UTC on)"
    )


def test_what_has_no_ceiling_is_said_to_have_none() -> None:
    one = unjudged("target.open_files", [0.0, 60.0], 7.0, None, 60.0, None)
    assert one is not None and one["from_s"] is None
    assert "open files (no time can be named: its end is not known)" in in_words(
        [one], {"target.open_files": "open files"}, lambda _, value: f"{value:g}"
    )
