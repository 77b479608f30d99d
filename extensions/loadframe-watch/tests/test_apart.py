"""A use that is near its end though the load does not take it there is told by when that was, and claims no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loadframe_watch.observed.by_the_hour import by_the_clock
from loadframe_watch.observed.learning import learn
from loadframe_watch.observed.records import Observed
from loadframe_watch.observed.report import render_learned

BEGUN_S, DAYS, STEP_S = 1_761_955_200.0, 20, 300.0  # 2025-11-01 00:00 UTC, a Saturday
TIMES_S = BEGUN_S + STEP_S * np.arange(int(DAYS * 86400 / STEP_S))
HOURS = TIMES_S % 86400 / 3600


def production(
    seed: int, near: np.ndarray | None = None, *, use: float = 0.93, slower: float = 1.0, begun_s: float = BEGUN_S
) -> Observed:
    """A load that is high by day; the disk is also used by something else in the rows `near`."""
    random = np.random.default_rng(seed)
    load = (20 + 80 * np.clip(np.sin((HOURS - 7) / 14 * np.pi), 0, None)) * np.exp(0.1 * random.normal(size=len(HOURS)))
    throughput = load * np.exp(0.02 * random.normal(size=len(load)))
    disk = 0.02 + 0.003 * throughput * np.exp(0.05 * random.normal(size=len(load)))
    response = 0.01 * np.exp(0.05 * random.normal(size=len(load)))
    if near is not None:
        disk = np.where(near, np.clip(use + 0.01 * random.normal(size=len(load)), 0, 1), disk)
        response = np.where(near, slower * response, response)
    columns = (TIMES_S - BEGUN_S + begun_s, load, throughput, response, disk)
    times, loads, served, slow, used = (tuple(each.tolist()) for each in columns)
    return Observed("made", times, loads, served, slow, {"disk": used})


def test_a_backup_of_each_night_is_told_with_its_hours_loads_and_what_such_loads_take() -> None:
    """Seen: "268 outliers", and "the load never came near a limit that is seen"."""
    found = learn(production(1, (HOURS >= 2) & (HOURS < 2.7)))
    (disk,) = found.apart
    assert (disk.days, disk.days_seen, disk.always) == (DAYS, DAYS, True)
    assert disk.use == pytest.approx(0.93, abs=0.01) and disk.usual < 0.12
    assert disk.high_load < 40 and disk.longest_s == 2700
    text = " ".join(render_learned(found).split())
    assert text.startswith("No bend was seen up to") and "never came near" not in text
    assert "disk was 93 % used on 20 of 20 days, between 02:00 and 02:40 UTC, apart from the load." in text
    assert "What takes it there is not seen." in text
    assert "no longer than is usual" in text
    (demand,) = found.demands
    assert demand.full_at is not None and demand.full_at.low <= 327 <= demand.full_at.high  # (1 - 0.02) / 0.003


def test_what_it_does_to_the_response_is_told() -> None:
    found = learn(production(2, (HOURS >= 2) & (HOURS < 2.7), slower=2.0))
    assert found.apart[0].response == pytest.approx(2.0, rel=0.05)
    assert "2 times what is usual at this load" in " ".join(render_learned(found).split())


def test_across_midnight_on_sundays_and_once() -> None:
    late = learn(production(3, (HOURS >= 23.7) | (HOURS < 0.3)))
    assert "between 23:45 and 00:15 UTC" in render_learned(late, width=500)
    sundays = (TIMES_S // 86400 + 4) % 7 == 0
    assert "on 3 of 20 days, all of them Sundays, between 04:00 and 04:55 UTC" in render_learned(
        learn(production(4, sundays & (HOURS >= 4) & (HOURS < 5))), width=500
    )
    once = (TIMES_S - BEGUN_S >= 5 * 86400) & (TIMES_S - BEGUN_S < 5 * 86400 + 3000)
    assert "disk was 93 % used once, for 50 min from 2025-11-06 00:00:00 UTC on" in render_learned(
        learn(production(5, once)), width=500
    )


def test_times_that_are_no_clock_have_no_days() -> None:
    found = learn(production(6, (HOURS >= 2) & (HOURS < 2.7), begun_s=0.0))
    (disk,) = found.apart
    assert disk.days is None and disk.hours_from_s is None
    assert "in 20 spells" in render_learned(found, width=500) and "UTC" not in render_learned(found, width=500)


@pytest.mark.parametrize("seed", range(3))
def test_what_the_load_takes_to_its_end_is_not_apart_from_it(seed: int) -> None:
    quiet = production(seed)
    assert learn(quiet).apart == ()
    higher = {"disk": tuple(min(1.0, 3.2 * use) for use in quiet.use["disk"])}
    busy = learn(replace(quiet, use=higher))
    assert busy.demands[0].highest_use > 0.9 and busy.apart == ()


def test_two_rows_are_outliers() -> None:
    near = np.zeros(len(TIMES_S), dtype=bool)
    near[[500, 2500]] = True
    assert learn(production(7, near)).apart == ()


@pytest.mark.parametrize("seed", range(3))
def test_a_pool_whose_use_scatters_widely_at_the_daily_peak_is_not_apart_from_the_load(seed: int) -> None:
    """Nine in ten of its rows near the end are at the same hours, as the load is highest then."""
    quiet = production(seed)
    random = np.random.default_rng(seed)
    wanted = random.poisson([0.09 * load for load in quiet.load])
    use = np.clip(wanted / 16, 0, 1)
    assert 0.005 < (use >= 0.9).mean() < 0.05
    assert learn(replace(quiet, use={"pool": tuple(use.tolist())})).apart == ()
    columns = (np.array(quiet.time_s), np.array(quiet.load), use)
    assert not by_the_clock(*columns).any()


def test_a_batch_of_most_of_the_night_is_told_too() -> None:
    """There it is the typical use at low loads, but higher ones take less."""
    found = learn(production(8, (HOURS >= 0.5) & (HOURS < 6.5)))
    (disk,) = found.apart
    assert disk.days == DAYS and disk.usual < 0.4
