"""A use that flattens as the load rises is full nowhere in sight, and nothing is told of it from there on."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from loadframe.reporting.forecasts import render_forecast
from loadframe_watch.observed.answers import predict_observed
from loadframe_watch.observed.learning import learn
from loadframe_watch.observed.records import Observed
from loadframe_watch.observed.report import render_learned

STEP_S, ROWS = 300.0, 288 * 7
TOP = 100.0


def lasting(random: np.random.Generator, deviation: float, rows: float = 30.0) -> np.ndarray:
    """A correlated series that forgets itself within so many rows."""
    keep = math.exp(-1 / rows)
    series = random.normal(0, deviation, ROWS)
    for at in range(1, ROWS):
        series[at] = keep * series[at - 1] + math.sqrt(1 - keep**2) * series[at]
    return series


def noisy(random: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Noise of each row, and some that lasts for hours."""
    return np.asarray(values * np.exp(lasting(random, 0.02)) * (1 + random.normal(0, 0.03, ROWS)))


def week(seed: int, use: str, *, ceiling: float = 0.8, scale: float = 40.0) -> Observed:
    """A week in rows of five minutes: a daily cycle up to about TOP, and five requests/s for each unit of the load.
    use: "fills" up to `ceiling` and never further, as 1 - exp(-load / scale); "straight": full at a load of 250;
    "held up": the throughput levels off at half of what the CPU could; "near": it levels off as the CPU is full."""
    random = np.random.default_rng(seed)
    hours = np.arange(ROWS) * STEP_S / 86400
    cycle = 0.15 + 0.85 * (0.5 - 0.5 * np.cos(2 * np.pi * hours)) ** 1.3
    load = TOP * cycle * np.exp(lasting(random, 0.12))
    most = {"held up": 250.0, "near": 500.0}.get(use, math.inf)
    served = noisy(random, 5 * load / (1 + (5 * load / most) ** 4) ** 0.25)
    shares = {
        "fills": ceiling * (1 - np.exp(-load / scale)),
        "straight": load / 250,
        "held up": served / 600,
        "near": served / 500,
    }[use]
    cells = (STEP_S * np.arange(ROWS), load, served, np.clip(noisy(random, shares), 0, 1))
    time_s, load, served, shares = (tuple(each.tolist()) for each in cells)
    return Observed("made", time_s, load, served, None, {"cache": shares})


@pytest.mark.parametrize(("ceiling", "scale"), [(0.8, 40.0), (0.8, 80.0), (0.6, 25.0), (0.95, 40.0)])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_cache_that_fills_and_no_further_has_no_load_at_which_it_is_full(
    seed: int, ceiling: float, scale: float
) -> None:
    rows = week(seed, "fills", ceiling=ceiling, scale=scale)
    learned = learn(rows)
    (cache,) = learned.demands
    assert cache.full_at is None and cache.flattens and cache.cheaper
    assert "where it would be full is not in sight" in " ".join(render_learned(learned).split())
    forecast = predict_observed(rows, [200.0])
    assert forecast.capacity is None and not forecast.saturation
    said = " ".join(render_forecast(forecast).split())
    assert "The maximum is unknown" in said and "cache" in said and "saturates" not in said


def test_the_same_without_a_throughput() -> None:
    (cache,) = learn(replace(week(3, "fills"), throughput=None)).demands
    assert cache.full_at is None and cache.flattens


@pytest.mark.parametrize("seed", range(4))
def test_a_straight_use_is_told_as_before(seed: int) -> None:
    rows = week(seed, "straight")
    (cpu,) = learn(rows).demands
    assert cpu.full_at is not None and not cpu.flattens and not cpu.cheaper
    assert cpu.full_at.low <= 250 <= cpu.full_at.high < 1.5 * cpu.full_at.low
    assert predict_observed(rows).capacity is not None


@pytest.mark.long
def test_beside_one_that_flattens_the_other_is_told_with_what_is_not_in_sight() -> None:
    filling, straight = week(4, "fills"), week(4, "straight")
    rows = replace(filling, use={"cache": filling.use["cache"], "cpu": straight.use["cache"]})
    answer = " ".join(render_learned(learn(rows)).split("\n\n")[0].split())
    assert "cpu would be full first" in answer and "cache, used more, flattens" in answer
    forecast = predict_observed(rows)
    assert [one.resource for one in forecast.saturation] == ["cpu"]
    assert any(note.startswith("Left out: cache.") for note in forecast.notes)


@pytest.mark.parametrize("seed", [5, 6])
def test_what_something_else_holds_up_is_never_full(seed: int) -> None:
    """The CPU is straight over the throughput, and that levels off at half of what it could do."""
    (cpu,) = learn(week(seed, "held up")).demands
    assert cpu.full_at is None and cpu.flattens and not cpu.cheaper


@pytest.mark.parametrize("seed", [7, 8])
def test_what_levels_off_as_it_is_full_is_still_told(seed: int) -> None:
    (cpu,) = learn(week(seed, "near")).demands
    assert cpu.full_at is not None and not cpu.flattens
    assert 100 <= cpu.full_at.load <= 200


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_throughput_that_is_mostly_0_is_no_throughput(share: float) -> None:
    rows = week(9, "straight")
    chance = np.random.default_rng(9).random(ROWS)
    counted = tuple(value if one < share else 0.0 for value, one in zip(rows.throughput or (), chance, strict=True))
    rows = replace(rows, throughput=counted)
    learned = learn(rows)
    assert learned.curve is None and learned.demands[0].full_at is not None
    assert any(note.startswith("The throughput is 0 in") for note in learned.notes)
    assert "0 requests/s" not in render_learned(learned)
    assert predict_observed(rows).refused is not None


@pytest.mark.long
@pytest.mark.parametrize("value", [0.0, 0.9])
def test_a_use_that_is_the_same_at_any_load_has_no_demand(value: float) -> None:
    rows = week(10, "straight")
    rows = replace(rows, use={**rows.use, "memory": (value,) * ROWS})
    memory = learn(rows).demands[1]
    assert memory.full_at is None and memory.demand_s is None
    said = " ".join(render_learned(learn(rows)).split())
    assert ("it is not used, or not counted" in said) is (value == 0)
    assert [one.resource for one in predict_observed(rows).saturation] == ["cache"]


def test_a_demand_that_grows_has_an_interval() -> None:
    """The use is (load / 150)^2: at the higher half of the loads some three times as much per request."""
    rows = week(11, "straight")
    random = np.random.default_rng(11)
    use = np.clip(noisy(random, (np.array(rows.load) / 150) ** 2), 0, 1)
    (lock,) = learn(replace(rows, use={"lock": tuple(use.tolist())})).demands
    assert lock.growing is not None and lock.growing_low is not None and lock.growing_high is not None
    assert 1 < lock.growing_low < lock.growing < lock.growing_high


@pytest.mark.parametrize("factor", [1.5, 0.7])
def test_a_change_of_the_last_hours_is_told_though_too_few_rows_follow_it(factor: float) -> None:
    """A release eight hours before the end: what was learnt is of the system before it."""
    rows = week(12, "straight")
    late = ROWS - 96
    use = tuple(min(1.0, share * factor) if at >= late else share for at, share in enumerate(rows.use["cache"]))
    learned = learn(replace(rows, use={"cache": use}))
    (note,) = [note for note in learned.notes if note.startswith("The last")]
    told = re.search(r"the use of cache is (\d+) % (higher|lower)", note)
    assert told is not None and float(told[1]) == pytest.approx(100 * abs(factor - 1), abs=8)
    assert told[2] == ("higher" if factor > 1 else "lower")


@pytest.mark.parametrize("seed", range(4))
def test_a_week_without_a_change_is_not_told_to_have_one(seed: int) -> None:
    assert not [note for note in learn(week(seed, "straight")).notes if note.startswith("The last")]


@pytest.mark.long
def test_a_noisy_throughput_that_is_as_much_as_the_load_hides_no_flattening() -> None:
    """Errors of the throughput leave the use over it unproven; it does not level off, and the use does."""
    rows = week(13, "fills", scale=150.0)
    random = np.random.default_rng(13)
    served = np.array(rows.load) * 5 * np.exp(lasting(random, 0.15, 12.0))
    rows = replace(rows, throughput=tuple(served.tolist()))
    (cache,) = learn(rows).demands
    assert cache.full_at is None and cache.cheaper
    assert predict_observed(rows).capacity is None


def test_a_use_without_any_scatter_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    rows = week(14, "straight")
    ramp = tuple(float(at // 400) / 10 for at in range(ROWS))
    learn(replace(rows, use={"zero": (0.0,) * ROWS, "ramp": ramp}))
    assert not recwarn.list
