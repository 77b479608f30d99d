"""Rows of benchmarks/sceptic.py on steps and curves: drivers beside their targets, warm-ups, knees and bends."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

import bends
import drivers
import verdicts as noises
import warmups
from claims import Figure, rate, row
from loadframe.analysis.comparison import verdict_at_end
from loadframe.analysis.window import BATCHES
from loadframe.bench.settling import held
from loadframe.model import UNSETTLED, Verdict
from simulated import step


@row(
    "driver beside: told",
    "a driver whose CPUs would give the target half as much again: told",
    section=4,
    goal=95,
    most=False,
)
def driver_told(series: int) -> Figure:
    """Beside the flag for drivers that are the bottleneck, which alone was there before."""
    heavy = [one for one in drivers.many(series, 9) if one.worth >= drivers.HEAVY]
    limited = noises.share(np.array([one.limited for one in heavy]))
    return Figure(noises.share(np.array([one.flagged for one in heavy])), 2.0, f"driver-limited {limited:.0f}")


@row("driver beside: not told", "a driver that costs less than a tenth, or is bound apart: told", section=4, goal=5)
def driver_not_told(series: int) -> Figure:
    """Beside a rule that asks for its share of the machine's CPUs alone."""
    light = [one for one in drivers.many(series, 10) if one.worth < drivers.LIGHT]
    rival = noises.share(np.array([one.share >= 0.25 for one in light]))
    return rate(sum(one.flagged for one in light), len(light), rival=f"by its share alone {rival:.0f}")


@row(
    "knee: spacing",
    "pairs of ladders (levels apart by 1.5, 2, 3, 4) whose knee intervals do not meet",
    section=4,
    goal=5,
)
def knee_spacing(series: int) -> Figure:
    """Of seven shapes of curves, with corners and without."""
    random = np.random.default_rng(14)
    counts = [bends.apart(random) for _ in range(max(2, series // 400))]
    wrong, pairs = (sum(each[i] for each in counts) for i in (0, 1))
    return Figure(100 * wrong / pairs, 2.0, "without a test of roundness 33")


@row("bend: at a limit", "median distance of the told bend from where a table cache runs out", section=4, goal=2)
def bend_at_limit(series: int) -> Figure:
    """Levels apart by 1.5 to 3, throughput falls gradually; beside the knee alone."""
    random, drawn = np.random.default_rng(15), max(30, series // 40)
    found = [bends.told(random, spacing) for spacing in bends.SPACINGS[:3] for _ in range(drawn)]
    places = [(at, bend.load) for at, _, bend in found if bend is not None]
    knees = [(at, knee) for at, knee, bend in found if bend is not None and knee is not None]
    off, alone = (
        100 * float(np.median([abs(math.log(one.load / at)) for at, one in each])) for each in (places, knees)
    )
    held, held_alone = (
        noises.share(np.array([one.low <= at <= one.high for at, one in each])) for each in (places, knees)
    )
    words = (
        f"the knee {alone:.0f}; intervals hold {held:.0f} % (its {held_alone:.0f} %); told {len(places)}/{len(found)}"
    )
    return Figure(off, 0.0, words)


@row(
    "bend: leftovers in a cache",
    "the load at which a table cache of 60 to 750 runs out lies in its interval",
    section=4,
    goal=95,
    most=False,
)
def bend_with_leftovers(series: int) -> Figure:
    """Levels apart by 1.5 to 3, tables of jobs that have ended stay open until their place is needed."""
    random, drawn = np.random.default_rng(16), max(30, series // 40)
    found = [bends.acts(random, spacing) for spacing in bends.SPACINGS[:3] for _ in range(drawn)]
    places = [(at, one) for at, one in found if one is not None]
    held = [one.low <= at <= one.high for at, one in places]
    off = 100 * float(np.median([abs(math.log(one.load / at)) for at, one in places]))
    wide = float(np.median([one.high / one.low for _, one in places]))
    words = f"{off:.0f} % off in the median, high / low {wide:.2f}; told {len(places)}/{len(found)}"
    return Figure(noises.share(np.array(held)), rate(0, len(held)).doubt, words)


def flat_step(size: float, correlation: float, series: int) -> Figure:
    """Steady throughput said not to have settled, beside plain MSER-5 and a straight line by least squares."""
    random, length = np.random.default_rng(11), len(warmups.times())
    drawn = [1 + warmups.noise(random, length, size, correlation) for _ in range(series)]
    rivals = [noises.share(np.array([rule(one) for one in drawn])) for rule in (warmups.mser_5, warmups.line)]
    wrong = sum(not warmups.told(one).settled for one in drawn)
    return rate(wrong, series, rival=f"MSER-5 {rivals[0]:.0f}, straight line {rivals[1]:.0f}")


def approached(size: float, correlation: float, series: int) -> Figure:
    """Approaches that are told, or cut so late that less than 5 % is missing; the rivals see them and more."""
    random, caught, seen = np.random.default_rng(12), 0, [0, 0]
    for _ in range(series):
        one = warmups.approach(random)
        measured = one.at(warmups.times()) * (1 + warmups.noise(random, len(warmups.times()), size, correlation))
        found = warmups.told(measured)
        caught += not found.settled or one.missing(found.warmup_s) < warmups.SETTLED
        for i, rule in enumerate((warmups.mser_5, warmups.line)):
            seen[i] += rule(measured)
    rivals = [100 * count / series for count in seen]
    return Figure(100 * caught / series, 2.0, f"MSER-5 {rivals[0]:.0f}, straight line {rivals[1]:.0f}")


for _size, _correlation in ((0.05, 0.0), (0.05, 0.5), (0.12, 0.3), (0.05, 0.8)):
    row(
        f"warm-up: steady {100 * _size:g} %, r {_correlation:g}",
        f"steady steps called not settled, slices {100 * _size:g} % noisy, AR(1) {_correlation:g}",
        section=4,
        goal=5,
    )(partial(flat_step, _size, _correlation))
for _size, _correlation, _goal in ((0.05, 0.0, 80), (0.05, 0.5, 67), (0.12, 0.3, 50)):
    row(
        f"warm-up: slow {100 * _size:g} %, r {_correlation:g}",
        f"steps 10 to 30 % too low told or cut, slices {100 * _size:g} % noisy, AR(1) {_correlation:g}",
        section=4,
        goal=_goal,
        most=False,
    )(partial(approached, _size, _correlation))


def slow_level(size: float, correlation: float, series: int) -> Figure:
    """After longer warm-ups, the budget is ample; as they come, all are too low."""
    random, drawn = np.random.default_rng(13), min(series, 500)
    found = [warmups.level(random, warmups.approach(random), size, correlation) for _ in range(drawn)]
    wrong = sum(one.too_low > warmups.SETTLED and not one.told for one in found)
    left = 100 * sum(one.too_low for one in found) / drawn
    steps = sum(one.steps for one in found) / drawn
    return Figure(100 * wrong / drawn, 2.0, f"without any: 100 (20 % too low); with: {left:.1f} %, {steps:.1f} steps")


for _size, _correlation, _goal in ((0.05, 0.5, 12), (0.12, 0.3, 20)):
    row(
        f"warm-up: level {100 * _size:g} %, r {_correlation:g}",
        f"such levels over 5 % too low after 3 blocks and not told, {100 * _size:g} % noisy, AR(1) {_correlation:g}",
        section=4,
        goal=_goal,
    )(partial(slow_level, _size, _correlation))


BLOCKS = 3


def unfinished(random: np.random.Generator, gain: float, size: float, correlation: float) -> tuple[Verdict, Verdict]:
    """The verdict on a side that has settled, and serves `gain` times as much, against one that still approaches its
    level, which no warm-up has reached: by the blocks alone, and with what the warm-ups can still change."""
    cold, when, steps = warmups.approach(random), warmups.times(), []
    late = when > warmups.FLOOR
    for block in range(1, BLOCKS + 1):
        for name, level in (("A", cold.at(when)), ("B", np.full(len(when), gain))):
            loud = np.exp(random.normal(0, size / 2)) * (1 + warmups.noise(random, len(when), size, correlation))
            seen = np.maximum(level * loud, 0.0)[late]
            batches = tuple(float(part.mean()) for part in np.array_split(seen, BATCHES))
            others = {"treatment": name, "block": block, "batches": batches, "flags": (UNSETTLED,)}
            steps.append(step(4, float(seen.mean()), **others))
    sides = ({4.0: [one.throughput for one in steps if one.treatment == name]} for name in "AB")
    plain = verdict_at_end(*sides)
    return plain, held(plain, steps, "A", "B")


def not_cured(size: float, correlation: float, series: int) -> Figure:
    """Equal servers, one of which has not warmed up: called worse."""
    random, drawn = np.random.default_rng(16), min(series, 2000)
    pairs = [unfinished(random, 1.0, size, correlation) for _ in range(drawn)]
    plain, wrong = (sum(pair[place].decided for pair in pairs) for place in (0, 1))
    return rate(wrong, drawn, rival=f"by the blocks alone {100 * plain / drawn:.0f}")


def large_gain(size: float, correlation: float, series: int) -> Figure:
    """What a veto loses."""
    random, drawn = np.random.default_rng(17), min(series, 2000)
    won = sum(unfinished(random, 5.0, size, correlation)[1].decision == "better" for _ in range(drawn))
    return Figure(100 * won / drawn, 2.0, "a veto 0")


for _size, _correlation, _goal in ((0.05, 0.0, 85), (0.12, 0.3, 80), (0.3, 0.3, 60)):
    row(
        f"warm-up: verdict {100 * _size:g} %, r {_correlation:g}",
        f"equal, one side 10 to 30 % too low: decided, 3 blocks, {100 * _size:g} % noisy, AR(1) {_correlation:g}",
        section=4,
        goal=5,
    )(partial(not_cured, _size, _correlation))
    row(
        f"warm-up: gain {100 * _size:g} %, r {_correlation:g}",
        f"the same where the other side gives 5 times as much: decided, {100 * _size:g} % noisy",
        section=4,
        goal=_goal,
        most=False,
    )(partial(large_gain, _size, _correlation))
