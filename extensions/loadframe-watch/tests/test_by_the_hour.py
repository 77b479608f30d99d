"""A use that the hour of the day drives is not blamed on the load, and one that either may drive is said to be so."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from loadframe_watch.importing import begin_from, mapping_of
from loadframe_watch.observed.answers import predict_observed
from loadframe_watch.observed.by_the_hour import driver
from loadframe_watch.observed.learning import learn
from loadframe_watch.observed.records import Observed
from loadframe_watch.observed.report import render_learned
from loadframe_watch.records import WatchPlan

STEP_S, BEGAN_S = 300.0, 1.764e9
Use = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Of hours of the day and loads."""


def lasting(random: np.random.Generator, count: int, deviation: float, rows: float) -> np.ndarray:
    """A correlated series that forgets itself within so many rows."""
    keep = math.exp(-1 / rows)
    series = random.normal(0, deviation, count)
    for at in range(1, count):
        series[at] = keep * series[at - 1] + math.sqrt(1 - keep**2) * series[at]
    return series


def days(seed: int, use: Use, *, count: int = 10, alike: bool = False) -> Observed:
    """Days with a peak of about 100 at three in the afternoon, rows of five minutes. alike: each as the other."""
    random = np.random.default_rng(seed)
    rows = round(count * 86400 / STEP_S)
    time_s = BEGAN_S - BEGAN_S % 86400 + STEP_S * np.arange(rows)
    hours = time_s % 86400 / 3600
    load = 100 * (0.15 + 0.85 * (0.5 + 0.5 * np.cos(2 * np.pi * (hours - 15) / 24)) ** 1.3)
    load *= np.exp(random.normal(0, 0.05, rows) if alike else lasting(random, rows, 0.12, 24))
    served = 5 * load * (1 + random.normal(0, 0.03, rows))
    shares = np.clip(use(hours, load) * np.exp(lasting(random, rows, 0.02, 30)) + random.normal(0, 0.01, rows), 0, 1)
    time, loads, throughput, disk = (tuple(each.tolist()) for each in (time_s, load, served, shares))
    return Observed("made", time, loads, throughput, None, {"disk": disk})


def batch(hours: np.ndarray, _load: np.ndarray) -> np.ndarray:
    """Three hours around the daily peak."""
    return np.where(np.abs(hours - 15) < 1.5, 0.6, 0.05)


def wide(hours: np.ndarray, _load: np.ndarray) -> np.ndarray:
    """The same, with slow beginnings and ends."""
    return np.asarray(0.05 + 0.6 * np.exp(-(((hours - 15) / 2.5) ** 2)))


def straight(_hours: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Full at a load of 250."""
    return load / 250


def square(_hours: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Full at a load of 180."""
    return np.asarray((load / 180) ** 2)


def fills(_hours: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Never full."""
    return np.asarray(0.8 * (1 - np.exp(-load / 30)))


def drives(rows: Observed) -> str:
    return driver(rows.time_s, rows.load, rows.use["disk"])


@pytest.mark.parametrize("use", [batch, wide])
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_at_the_hour_of_the_peak_is_told_from_the_load(use: Use, seed: int) -> None:
    assert drives(days(seed, use)) == "hour"


@pytest.mark.parametrize("use", [straight, square, fills])
@pytest.mark.parametrize("seed", range(4))
def test_a_use_that_the_load_drives_is_the_loads(use: Use, seed: int) -> None:
    assert drives(days(seed, use)) == "load"


@pytest.mark.parametrize(("count", "alike"), [(10, True), (2, False)])
@pytest.mark.parametrize("use", [batch, straight])
def test_days_that_are_alike_or_few_cannot_tell(use: Use, count: int, alike: bool) -> None:
    assert drives(days(1, use, count=count, alike=alike)) == "either"


def test_curve_and_predict_do_not_blame_the_load() -> None:
    rows = days(5, wide)
    learned = learn(rows)
    (disk,) = learned.demands
    assert disk.full_at is None and disk.demand_s is None
    assert "follows the hour of the day rather than the load" in " ".join(render_learned(learned).split())
    forecast = predict_observed(rows)
    assert forecast.capacity is None and "follows the hour" in (forecast.unexplained or "")


def test_where_either_may_be_the_cause_the_note_says_so() -> None:
    learned = learn(days(6, straight, alike=True))
    assert learned.demands[0].full_at is not None
    assert any("the hour of the day drives the use is not known" in note for note in learned.notes)


@pytest.mark.long
def test_a_watch_tells_no_limit_of_what_the_hour_drives(tmp_path: Path) -> None:
    told = {}
    for use in (wide, straight):
        rows = days(7, use)
        lines = ["time,load,util.disk"]
        lines += [f"{a},{b},{c}" for a, b, c in zip(rows.time_s, rows.load, rows.use["disk"], strict=True)]
        file = tmp_path / "rows.csv"
        file.write_text("\n".join(lines), encoding="utf-8")
        told[use] = begin_from([str(file)], mapping_of((), ()), WatchPlan("", str(tmp_path / use.__name__)))
    assert not told[wide].model["limits"] and [one["id"] for one in told[straight].model["limits"]] == ["disk"]
    said = "The hour of the day drives it rather than the load: disk."
    assert said in told[wide].notes and said not in told[straight].notes
