"""Rows in time order: what is told of them holds the truth that they were made of, or is not told."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from loadframe.analysis.series import autocorrelation_time
from loadframe.errors import SampleError
from loadframe_watch.observed.blocks import blocks
from loadframe_watch.observed.learning import learn
from loadframe_watch.observed.records import Observed
from loadframe_watch.observed.report import render_learned

CAPACITY, IDLE, ROWS = 500.0, 0.05, 1500
DEMAND_S = (1 - IDLE) / CAPACITY


def ar(random: np.random.Generator, count: int, r: float) -> np.ndarray:
    """A correlated series with deviation 1."""
    series = random.normal(size=count)
    for at in range(1, count):
        series[at] = r * series[at - 1] + math.sqrt(1 - r**2) * series[at]
    return series


def production(seed: int, peak: float, *, changed: float = 1.0, r: float = 0.7) -> Observed:
    """A rate that wanders up to `peak` of the capacity; a request needs `changed` times as much in the second half."""
    random = np.random.default_rng(seed)
    place = ar(random, ROWS, 0.99)
    place = (place - place.min()) / np.ptp(place)
    load = CAPACITY * peak * (0.1 + 0.9 * place)
    throughput = np.minimum(load, CAPACITY) * np.exp(0.02 * ar(random, ROWS, r))
    needs = np.where(np.arange(ROWS) < ROWS // 2, DEMAND_S, changed * DEMAND_S)
    use = IDLE + throughput * needs * np.exp(0.02 * ar(random, ROWS, r))
    response = 0.01 / (1 - np.minimum(use, 0.97))
    cells = [60.0 * np.arange(ROWS), load, throughput, response, np.clip(use, 0, 1)]
    time_s, load, throughput, response, use = (tuple(each.tolist()) for each in cells)
    return Observed("made", time_s, load, throughput, response, {"cpu": use})


def test_the_demand_and_the_load_at_which_it_is_full_hold_the_truth_without_a_knee() -> None:
    found = learn(production(1, 0.5))
    (cpu,) = found.demands
    assert cpu.low_s is not None and cpu.high_s is not None and cpu.full_at is not None
    assert cpu.low_s <= DEMAND_S <= cpu.high_s < 1.5 * cpu.low_s
    assert cpu.background == pytest.approx(IDLE, abs=0.02)
    assert cpu.full_at.low <= CAPACITY <= cpu.full_at.high
    assert found.curve is not None and found.curve.knee is None and found.curve.shape == "linear"
    assert not found.came_near and not found.regimes


def test_a_load_beyond_the_limit_has_a_knee_that_holds_it() -> None:
    found = learn(production(2, 1.5))
    assert found.curve is not None and found.curve.knee is not None
    assert found.curve.knee.low <= CAPACITY <= found.curve.knee.high
    assert found.came_near


def test_noise_that_is_correlated_is_worth_fewer_blocks() -> None:
    random = np.random.default_rng(3)
    assert autocorrelation_time(random.normal(size=4000)) == pytest.approx(1, abs=0.3)
    assert autocorrelation_time(ar(random, 40_000, 0.9)) == pytest.approx(19, rel=0.3)  # (1 + r) / (1 - r)
    white, slow = random.normal(size=4000), ar(random, 4000, 0.95)
    assert blocks([white, slow], 4000).count < 0.3 * blocks([white], 4000).count


def test_a_year_of_rows_is_some_hundred_blocks() -> None:
    assert blocks([np.random.default_rng(8).normal(size=200_000)], 200_000).count == 400


def test_after_a_change_only_what_came_later_is_learnt_from() -> None:
    found = learn(replace(production(4, 0.5, changed=1.4), response_s=None))
    assert [change.what for change in found.regimes] == ["the use of cpu"]
    (change,) = found.regimes
    assert change.at_s == pytest.approx(60 * ROWS / 2, rel=0.1)
    assert change.ratio == pytest.approx(1.4, rel=0.12)
    (cpu,) = found.demands
    assert cpu.demand_s == pytest.approx(1.4 * DEMAND_S, rel=0.05)


def test_missing_cells_gaps_and_outliers_change_little() -> None:
    whole = production(5, 0.6)
    random = np.random.default_rng(5)
    kept = [at for at in range(ROWS) if at // 40 % 6 != 2]  # gaps of 40 rows

    def damaged(cells: tuple[float, ...], wrong: float) -> tuple[float, ...]:
        chance = random.random(ROWS)
        return tuple(math.nan if chance[at] < 0.1 else wrong if chance[at] < 0.11 else cells[at] for at in kept)

    assert whole.throughput is not None
    holes = replace(
        whole,
        time_s=tuple(whole.time_s[at] for at in kept),
        load=tuple(whole.load[at] for at in kept),
        throughput=damaged(whole.throughput, 5000.0),
        response_s=None,
        use={"cpu": damaged(whole.use["cpu"], 1.0)},
    )
    found = learn(holes)
    (cpu,) = found.demands
    assert cpu.low_s is not None and cpu.high_s is not None and cpu.low_s <= DEMAND_S <= cpu.high_s
    assert found.data.gaps == 6 and found.data.incomplete > 100 and found.data.outliers >= 10
    assert found.curve is not None and found.curve.knee is None


def test_without_a_throughput_the_response_time_has_the_bend_and_the_use_its_end() -> None:
    found = learn(replace(production(6, 0.9), throughput=None))
    assert found.basis == "response" and found.observations is None
    (cpu,) = found.demands
    assert cpu.demand_s is None and cpu.full_at is not None
    assert cpu.full_at.low <= CAPACITY <= cpu.full_at.high


def test_a_use_that_does_not_follow_the_load_is_full_nowhere() -> None:
    rows = production(7, 0.5)
    chance = np.random.default_rng(7).uniform(0.2, 0.3, ROWS)
    (disk,) = learn(replace(rows, use={"disk": tuple(chance)})).demands
    assert disk.full_at is None


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (Observed("x", (0.0, 1.0), (1.0, 2.0), (1.0, 2.0)), "2 of 2 rows"),
        (Observed("x", (0.0,), (1.0,)), "nothing else"),
        (Observed("x", tuple(map(float, range(99))), (5.0,) * 99, (5.0,) * 99), "hardly varies"),
        (Observed("x", tuple(map(float, range(99))), (0.0,) * 99, (5.0,) * 99), "every load is 0"),
    ],
)
def test_what_says_too_little_is_refused(rows: Observed, words: str) -> None:
    with pytest.raises(SampleError, match=words):
        learn(rows)


@pytest.mark.long
def test_rows_that_are_missing_are_counted_and_the_longest_pause_is_named() -> None:
    """Seen: "2 gaps", and no word on how long."""
    whole = production(9, 0.5)
    kept = [at for at in range(ROWS) if not 100 <= at < 340 and not 700 <= at < 712 and at != 900]
    columns = (whole.time_s, whole.load, whole.throughput, whole.response_s, whole.use["cpu"])
    time_s, load, throughput, response, use = (tuple(each[at] for at in kept) for each in columns)
    found = learn(Observed("made", time_s, load, throughput, response, {"cpu": use}))
    missing = found.data.missing
    assert (missing.rows, missing.pauses, missing.seconds) == (253, 3, 253 * 60)
    assert (missing.longest_s, missing.longest_at_s) == (240 * 60, 100 * 60)
    text = render_learned(found, width=500)
    assert "253 rows are missing, as they come every 60 s: 3 pauses, 4 h 13 min together; the longest is 4 h, " in text
    assert "after 1 h 40 min." in text
    assert "missing" not in render_learned(learn(whole), width=500)


@pytest.mark.long
def test_the_response_times_are_told_so_that_a_wrong_unit_is_seen() -> None:
    whole = production(11, 0.5)
    assert whole.response_s is not None
    said = render_learned(learn(whole), width=500)
    wrong = render_learned(learn(replace(whole, response_s=tuple(1000 * one for one in whole.response_s))), width=500)
    assert re.search(r"The response time was 1\d(\.\d)? ms in the middle, and above \d+(\.\d)? ms in one of", said)
    assert re.search(r"The response time was 1\d(\.\d)? s in the middle|The response time was \d+,\d+ ms", wrong), wrong


def test_a_response_that_rises_smoothly_is_told_by_a_ratio_and_not_by_a_bend() -> None:
    """Seen: "rises from 33 (29 to 36) on" of 1 / (1 - use), which rises from the first request on."""
    whole = production(12, 0.8)
    found = learn(replace(whole, throughput=None, use={}))
    assert found.response_bend is not None and whole.response_s is not None
    low = float(np.median(np.array(whole.response_s)[np.argsort(whole.load)[: ROWS // 3]]))
    true = (1 - 0.01 / (1.5 * low) - IDLE) / DEMAND_S  # 0.01 / (1 - use) is 1.5 times as long
    assert found.response_bend.low * 0.97 <= true <= found.response_bend.high * 1.03
    said = render_learned(found, width=500)
    assert "on the response takes 1.5 times as long as at the lowest third of the loads." in said
    assert "rises from" not in said


def test_rows_that_come_as_they_like_are_not_missing() -> None:
    whole = production(10, 0.5)
    at_s = np.cumsum(np.random.default_rng(10).exponential(60, ROWS))
    assert learn(replace(whole, time_s=tuple(at_s.tolist()))).data.missing.rows == 0
