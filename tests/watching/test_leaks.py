"""A leak is named with the hour at which the memory that the service may have ends."""

from __future__ import annotations

from pathlib import Path

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
