"""When the model is fitted: now and then, and soon where the load is one that was never there."""

from __future__ import annotations

import math
import sys
from itertools import chain, repeat
from pathlib import Path

import pytest

from loadframe_watch.daemon import RealChildren
from loadframe_watch.days import lines
from waiting import await_that
from watch_farm import DAY_S, ChildrenAtOnce, Farm, watching

INTERVAL_S = 10.0


class SteadyFarm(Farm):
    """Its load is what the test says."""

    def step(self) -> None:
        self.jobs = self.peak


def test_a_rise_within_minutes_is_fitted_while_it_lasts(tmp_path: Path) -> None:
    farm, children = SteadyFarm(1, 40.0), ChildrenAtOnce(row_s=60.0)
    with watching(farm, tmp_path, INTERVAL_S, children=children) as watcher:

        def minutes(count: float) -> int:
            """Fits within so many minutes."""
            before, until_s = children.fits, farm.passed_s + 60 * count
            while farm.passed_s < until_s:
                watcher.tick()
                farm.clocks.advance(INTERVAL_S)
            return children.fits - before

        assert minutes(11) == 1
        assert minutes(3) == 0  # nothing new
        farm.peak = 60.0
        assert minutes(3) in (1, 2)  # the first one has a part of a minute
        assert minutes(3) == 0  # that load is known now
        farm.peak = 100.0
        assert minutes(3) in (1, 2)


class SmallPool(Farm):
    """40 jobs for twelve minutes, then 184 within ten more. Each needs a place in ten of a pool of 16."""

    def step(self) -> None:
        self.jobs = float(round(40 + 14.4 * max(0.0, self.passed_s / 60 - 12)))

    def metrics(self) -> dict[str, float]:
        wanted, product = 0, self._random.random()
        while product > math.exp(-self.jobs / 10):  # as many as come at random
            wanted, product = wanted + 1, product * self._random.random()
        return {**super().metrics(), "mariadb.connections": min(16.0, wanted), "mariadb.max_connections": 16.0}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_jobs_that_are_added_within_ten_minutes_are_told_before_four_fifths_of_the_limit(
    tmp_path: Path, seed: int
) -> None:
    farm = SmallPool(seed, 40.0)
    with watching(farm, tmp_path, INTERVAL_S, children=ChildrenAtOnce(row_s=60.0), every_s=60.0) as watcher:
        while farm.jobs < 128 and not watcher.alarms:
            watcher.tick()
            farm.clocks.advance(INTERVAL_S)
    (alarm,) = watcher.alarms
    assert (alarm["alarm"], alarm["about"]) == ("limit-ahead", "mariadb.max_connections")
    assert alarm["at_load"]["low"] < 160 < alarm["at_load"]["high"]


def test_a_child_that_hangs_is_killed_and_said_and_the_next_one_is_begun(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Else it would be the last fit of this watch. On a busy machine a Python may need longer than that to start."""
    said = chain(["while True: pass"], repeat("print('{\"rows\": 7}')"))
    children = RealChildren(within_s=0.5, command=lambda *_: [sys.executable, "-c", next(said)])

    def ended() -> object:
        children.fit(tmp_path, 0.0)  # as a watch asks: nothing begins while one is in progress
        return children.fitted()

    try:
        assert await_that(ended, "a fit") == {"rows": 7}
    finally:
        children.close()
    assert "did not end within 0.5 s: it is killed" in capfd.readouterr().err


@pytest.mark.long
def test_a_watch_removes_its_oldest_days_and_tells_which(tmp_path: Path) -> None:
    farm = SteadyFarm(1, 40.0)
    with watching(farm, tmp_path, 600.0, keep_days=2) as watcher:
        while farm.passed_s < 5 * DAY_S:
            watcher.tick()
            farm.clocks.advance(600.0)
    told = [line.data["days"] for line in lines(tmp_path, kinds=("removed",))]
    assert len({file.name[:10] for file in tmp_path.glob("2*")}) == 2
    assert told
    assert all(len(one) == 1 for one in told)
