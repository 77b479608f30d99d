"""A file system that is emptied each night grows all day: that is no leak, and one that goes on growing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from watch_farm import DAY_S, Farm, watching


class Filling(Farm):
    """By 8 % a day; emptied: each night."""

    emptied = False

    def metrics(self) -> dict[str, float]:
        day = self.passed_s / DAY_S
        return {**super().metrics(), "system.filesystem.space": 0.41 + 0.08 * (day % 1 if self.emptied else day)}


@pytest.mark.long
@pytest.mark.parametrize("emptied", [True, False])
def test_what_ends_in_days_is_told_once_a_night_was_seen(tmp_path: Path, emptied: bool) -> None:
    farm = Filling(5, 200.0)
    farm.emptied = emptied
    with watching(farm, tmp_path, 300.0) as watcher:
        while farm.passed_s < 1.4 * DAY_S and not watcher.alarms:
            watcher.tick()
            farm.clocks.advance(300.0)
    told = [(one["alarm"], one["about"]) for one in watcher.alarms]
    assert told == ([] if emptied else [("leak", "system.filesystem.space")])
    assert farm.passed_s > DAY_S
