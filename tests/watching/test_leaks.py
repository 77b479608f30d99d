"""A leak is named with the hour at which the memory that the service may have ends."""

from __future__ import annotations

from pathlib import Path

import pytest

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
