"""A small part of benchmarks/verdicts.py: false positives and power of the shipped code in each kind of noise."""

from __future__ import annotations

import numpy as np
import pytest

import verdicts as bench
from loadframe.analysis.comparison import verdict
from loadframe.analysis.sequential import Plan

SERIES = 1500


@pytest.mark.parametrize("noise", list(bench.NOISES))
def test_equal_systems_are_called_different_in_at_most_one_of_twenty(noise: str) -> None:
    random = np.random.default_rng(11)
    judged = bench.loadframe_rule(bench.NOISES[noise](random, SERIES, bench.RUNS), 0.0, random)
    assert bench.share(judged.different) <= 5 + bench.doubt(SERIES)


def test_a_drift_far_above_the_noise_proves_nothing() -> None:
    random = np.random.default_rng(12)
    drifting = 0.01 * bench.white(random, SERIES, bench.RUNS) + 0.02 * np.arange(bench.RUNS)
    assert bench.share(bench.loadframe_rule(drifting, 0.0, random).different) <= 2


@pytest.mark.parametrize("loudness", [1, 3, 7])
def test_noise_with_a_period_of_two_blocks_is_rarely_a_difference(loudness: int) -> None:
    """Checkpoints, scrapes: two blocks are four runs."""
    random = np.random.default_rng(16)
    waves = bench.periodic(4.0, loudness)(random, SERIES, bench.RUNS)
    assert bench.share(bench.loadframe_rule(waves, 0.0, random).different) <= 5 + bench.doubt(SERIES)


@pytest.mark.parametrize("noise", list(bench.SESSION_NOISES))
@pytest.mark.parametrize("apart", [True, False])
def test_samples_are_judged_as_well_as_by_the_tests_of_the_field(noise: str, apart: bool) -> None:
    """Which are told the noise that a user does not know, so that they err in 5 %, too."""
    series = 500
    equal, *changed = bench.called_different(*bench.SESSION_NOISES[noise], 20, series, apart=apart)
    assert bench.share(equal[0]) <= 5 + bench.doubt(series)
    ours, theirs = (sum(bench.share(cell[side]) for cell in changed) for side in (0, 1))
    assert ours >= 0.85 * theirs, "0.9, and what chance makes of it"


def test_bursts_in_which_a_block_shares_its_state_are_no_difference() -> None:
    """Skewed noise: with a scale of its own for each side, what the scales differ by looks like a difference in 6 %."""
    random, series = np.random.default_rng(17), 6000
    values = bench.session_bursts(random, series, 200).reshape(series, 100, 2)
    turned = random.random((series, 100)) < 0.5
    before, after = (np.where(turned, values[..., 1 - side], values[..., side]) for side in (0, 1))
    centre, half = bench.in_blocks_interval(before, after)
    assert bench.share(np.abs(centre) > half) <= 5 + bench.doubt(series)


@pytest.mark.parametrize("effect", [0.05, -0.05])
def test_five_per_cent_is_found_in_quiet_noise_with_half_of_the_runs(effect: float) -> None:
    random = np.random.default_rng(14)
    noise = bench.NOISES["AR(1) 0.8"](random, SERIES, bench.RUNS)
    judged = bench.loadframe_rule(noise, effect, random)
    assert judged.found.mean() >= bench.POWER
    assert judged.runs.mean() <= bench.FEWER_RUNS


def test_the_benchmark_judges_as_verdict_does() -> None:
    random = np.random.default_rng(15)
    ratios = np.exp(random.normal(0.03, 0.03, (60, 6)))
    plan = Plan(6, 6)
    same = 0
    for row in ratios:
        whole = verdict({1.0: [1.0] * 6}, {1.0: row.tolist()}, plan=plan).decision != "no-proven-difference"
        half = bench.half_width(np.zeros(6), np.log(row), bench.planned_level(plan, 6, 0.05))
        same += whole == bool(abs(np.log(row).mean()) > half)
    assert same == len(ratios)
