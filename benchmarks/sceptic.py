"""What a sceptic would try, in one table: python benchmarks/sceptic.py [--only ROW ...] [--quick] [--list]

A row is a claim with its goal, the figure that the shipped code reaches on simulated data whose truth is known, and the
figure of a rival where there is one. A row is a function with `@row`: it is told how many series to draw and returns a
Figure. Seeds are fixed. Ends with 1 where a goal is missed by more than chance explains.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from functools import partial
from pathlib import Path

import numpy as np

import at_once  # noqa: F401 - its rows
import causes  # noqa: F401 - its rows
import decoys  # noqa: F401 - its rows
import disturbances  # noqa: F401 - its rows
import forecast_rows  # noqa: F401 - its rows
import remedies  # noqa: F401 - its rows
import steps  # noqa: F401 - its rows
import verdicts as noises
from claims import ROWS, Figure, rate, row
from correlated import search_it
from loadframe.analysis import samples
from loadframe.analysis.comparison import at_each_level, verdict_at_end
from loadframe.analysis.curve import LevelSample, fit
from loadframe.analysis.divergence import reach
from loadframe.analysis.sequential import Plan
from loadframe.cli.comparing import arrange
from loadframe.formats.csv_tables import Sample

SERIES, QUICK = 4000, 600


# --- 4. what is compared: blocks ---


def in_blocks(generate: noises.Generate, series: int, plan: Plan = noises.PLAN) -> Figure:
    """False positives of a proof, beside Welch's test on interleaved runs."""
    random = np.random.default_rng(1)
    noise = generate(random, series, 2 * plan.last)
    wrong = int(noises.loadframe_rule(noise, 0.0, random, plan=plan).different.sum())
    others = [noises.share(noises.fixed_rule(rule, noise, 0.0).different) for rule in ("welch", "benchstat")]
    return rate(wrong, series, rival=f"A then B: Welch {others[0]:.0f}, Mann-Whitney {others[1]:.0f}")


for _name, _generate in noises.NOISES.items():
    row(f"blocks: {_name}", f"equal servers called different, 3 to 10 blocks, {_name}", section=4, goal=5)(
        partial(in_blocks, _generate)
    )
for _runs, _loudness in ((4, 1), (4, 3), (4, 7), (6, 7), (8, 7), (3, 2), (2.5, 2)):
    row(
        f"blocks: period {_runs / 2:g}, x{_loudness}",
        f"the same, a wave of {_runs / 2:g} blocks, {_loudness} times the noise",
        section=4,
        goal=5,
    )(partial(in_blocks, noises.periodic(_runs, _loudness)))
for _blocks in (3, 5):
    row(f"blocks: {_blocks} alone, period 2, x3", f"the same, one look after {_blocks} blocks", section=4, goal=5)(
        partial(in_blocks, noises.periodic(4, 3), plan=Plan(_blocks, _blocks))
    )


@row("blocks: counted, 2", "two blocks of counted throughputs (24 and 50 in a window, 4 % noise)", section=4, goal=5)
def counted(series: int) -> Figure:
    """The worse of the two counts."""
    random, drawn = np.random.default_rng(7), min(series, 1000)
    worst = 0
    for requests in (24, 50):
        sides = np.round(requests * np.exp(random.normal(0, 0.04, (drawn, 2, 2)))) / 0.3
        known = {1.0: (1 / requests, 1 / requests)}
        wrong = sum(verdict_at_end({1.0: list(a)}, {1.0: list(b)}, grain=known).decided for a, b in sides)
        worst = max(worst, wrong)
    return rate(worst, drawn)


@row("levels: counted, 2", "the same at each of two levels", section=4, goal=5)
def counted_levels(series: int) -> Figure:
    """Any level wrong."""
    random, drawn = np.random.default_rng(8), min(series, 1000)
    wrong = 0
    for _ in range(drawn):
        counts = np.round(24 * np.exp(random.normal(0, 0.04, (2, 2, 2)))) / 0.3
        sides = [{1.0: list(side[0]), 2.0: list(side[1])} for side in counts]
        wrong += any(one.decided for one in at_each_level(*sides))
    return rate(wrong, drawn)


def without_scatter(blocks: int, series: int, *, gain: float = 1.0, grain: bool = True) -> int:
    """How often servers whose every request takes the same time are called different: what a window counts depends on
    where it begins only. Rates from 5 to 500 a window, and as many clients as make 1 to 16 answers come at once."""
    random = np.random.default_rng(9)
    found = 0
    for _ in range(series):
        burst = int(random.choice((1, 4, 16)))
        rate = float(np.exp(random.uniform(np.log(5), np.log(500)))) / burst
        phases = random.random((2, blocks))
        before, after = (burst * np.maximum(1, np.floor(rate * g + phases[i])) for i, g in enumerate((1.0, gain)))
        known = {1.0: (burst / float(np.median(before)), burst / float(np.median(after)))} if grain else None
        judged = verdict_at_end({1.0: list(before)}, {1.0: list(after)}, grain=known)
        found += judged.decided
    return found


def equal_without_scatter(blocks: int, series: int) -> Figure:
    """False positives of it."""
    drawn = min(series, 1000)
    return rate(without_scatter(blocks, drawn), drawn)


for _blocks in (2, 3, 4, 6, 10):
    row(
        f"blocks: no scatter, {_blocks}",
        f"equal servers whose requests all take the same time called different, {_blocks} blocks",
        section=4,
        goal=5,
    )(partial(equal_without_scatter, _blocks))


@row("blocks: no scatter, power", "twice as much found in 4 blocks without scatter", section=4, goal=90, most=False)
def power_without_scatter(series: int) -> Figure:
    """Beside the rule that goes by the spacing of the values alone."""
    drawn = min(series, 1000)
    rival = 100 * without_scatter(4, drawn, gain=2.0, grain=False) / drawn
    return Figure(100 * without_scatter(4, drawn, gain=2.0) / drawn, 2.0, f"by the spacing of values: {rival:.0f}")


@row("blocks: power", "5 % found in white noise of 2 % (20 runs at most)", section=4, goal=90, most=False)
def power(series: int) -> Figure:
    """Beside Mann-Whitney's, which takes all 20 runs."""
    random = np.random.default_rng(3)
    noise = noises.white(random, series, noises.RUNS)
    judged = noises.loadframe_rule(noise, 0.05, random)
    rival = noises.share(noises.fixed_rule("benchstat", noise, 0.05).found)
    words = f"in {judged.runs.mean():.1f} runs; Mann-Whitney {rival:.0f} in {noises.RUNS}"
    return Figure(noises.share(judged.found), 2.0, words)


# --- 4. what is compared: samples ---


def long_bursts(random: np.random.Generator, count: int, length: int) -> noises.Numbers:
    """White noise; 14 % of the time, for twenty values on average, a stranger takes a fifth away."""
    busy = np.empty((count, length), dtype=np.bool_)
    busy[:, 0] = random.random(count) < 0.14
    for i in range(1, length):
        chance = random.random(count)
        busy[:, i] = np.where(busy[:, i - 1], chance < 0.95, chance < 0.05 * 0.14 / 0.86)
    return noises.white(random, count, length) + np.log(0.8) * busy


def of_samples(arrangement: str, length: int, series: int) -> Figure:
    """False positives of samples of unknown order in bursts of twenty, on a machine that has equal sessions behind it,
    beside Mann-Whitney's."""
    random, drawn = np.random.default_rng(2), min(series, 1000)
    sessions = drawn * noises.EQUAL_SESSIONS
    if arrangement == "apart":
        before, after = long_bursts(random, drawn, length), long_bursts(random, drawn, length)
        equal = long_bursts(random, sessions, length)
    else:
        noise = long_bursts(random, drawn, 2 * length)
        before, after = noise[:, :length], noise[:, length:]
        equal = long_bursts(random, sessions // 2, 2 * length)
    width = noises.sessions_width(equal.reshape(drawn, noises.EQUAL_SESSIONS, length))
    centre, half = noises.apart_interval(before, after, width)
    wrong = int((np.abs(centre) > half).sum())
    return rate(wrong, drawn, rival=f"Mann-Whitney {noises.share(noises.rank_test(before, after) < noises.ALPHA):.0f}")


for _length in (5, 10, 20, 40, 100):
    for _arrangement in ("apart", "one after the other"):
        row(
            f"csv: bursts of 20, n = {_length}, {_arrangement}",
            f"equal samples of {_length} values called different, taken {_arrangement}, bursts of 20 values",
            section=4,
            goal=5,
        )(partial(of_samples, _arrangement, _length))


def in_turns(generate: noises.Generate, length: int, series: int, effect: float = 0.0) -> Figure:
    """Samples with times that were taken in drawn turns, beside Mann-Whitney on the same values."""
    random, drawn = np.random.default_rng(4), min(series, 1000)
    noise = generate(random, drawn, 2 * length)
    swapped = random.random((drawn, length)) < 0.5
    first, second = noise[:, ::2], noise[:, 1::2]
    before = np.where(swapped, second, first)
    after = np.where(swapped, first, second) + math.log1p(effect)
    found = 0
    for one, two, turns in zip(before, after, swapped, strict=True):
        times = [2 * i + turn for i, turn in enumerate(turns)], [2 * i + 1 - turn for i, turn in enumerate(turns)]
        sides = [
            Sample(str(side), tuple(np.exp(values)), None, tuple(map(float, at)))
            for side, (values, at) in enumerate(zip((one, two), times, strict=True))
        ]
        found += arrange(*sides).judged("typical").decided
    rival = noises.share(noises.benchstat(before, after))
    return rate(found, drawn, rival=f"Mann-Whitney {rival:.0f}")


for _length in (5, 7, 10):
    row(
        f"csv in turns: power, n = {_length}",
        f"5 % found, {_length} values taken in turns, white 2 %",
        section=4,
        goal={5: 65, 7: 80, 10: 90}[_length],
        most=False,
    )(partial(in_turns, noises.white, _length, effect=0.05))
    for _name in ("white", "AR(1) 0.8", "linear drift", "period of two blocks"):
        row(
            f"csv in turns: {_name}, n = {_length}",
            f"equal values in turns called different, {_name}",
            section=4,
            goal=5,
        )(partial(in_turns, noises.NOISES[_name], _length))
    row(f"csv in turns: bursts of 20, n = {_length}", "the same, bursts of 20", section=4, goal=5)(
        partial(in_turns, long_bursts, _length)
    )


def of_quantity(by: str, series: int) -> Figure:
    """False positives by a quantity, and how often its interval holds a true ratio, heavy tails."""
    random, drawn = np.random.default_rng(5), min(series, 400)
    wrong = held = 0
    for _ in range(drawn):
        one, two = random.lognormal(1, 1, (2, 2000))
        wrong += samples.unpaired(list(one), list(two), by=by).decided
        found = samples.unpaired(list(one), list(1.2 * two), by=by)
        held += found.low <= 1.2 <= found.high
    return rate(wrong, drawn, rival=f"its interval holds x1.2 in {100 * held / drawn:.0f} %")


for _by in ("mean", "p50", "p99", "max"):
    row(f"csv: by {_by}", f"equal latencies called different by {_by}, 2,000 log-normal", section=4, goal=5)(
        partial(of_quantity, _by)
    )


@row("csv: a worse tail", "mean +17 %, p99 10 to 60 ms, medians -5 %: told as worse", section=4, goal=95, most=False)
def worse_tail(series: int) -> Figure:
    """Beside the typical value, which decided before."""
    random, drawn = np.random.default_rng(6), min(series, 300)
    told, typical = 0, 0
    for _ in range(drawn):
        one, two = (
            np.where(random.random(4000) < share, slow, usual) * random.normal(1, 0.02, 4000)
            for usual, slow, share in ((10.0, 10.6, 0.02), (9.5, 60.0, 0.045))
        )
        told += samples.unpaired(list(one), list(two), by="mean").low > 1
        typical += samples.unpaired(list(one), list(two)).high < 1
    return Figure(100 * told / drawn, 0.0, f"by the typical value called better in {100 * typical / drawn:.0f} %")


def published() -> dict[str, list[tuple[float, float]]]:
    """MariaDB's published thread pool curves, by name."""
    curves = json.loads((Path(__file__).parents[1] / "tests" / "data" / "curves.json").read_text())
    pools = curves["mariadb_threadpool"]
    return {name: list(zip(pools["clients"], one["X"], strict=False)) for name, one in pools["curves"].items()}


@row(
    "headline: ends",
    "headline for levels that end at 256, 1,024, 4,096: largest over smallest",
    section=4,
    goal=1.05,
    unit="x",
)
def headline(_series: int) -> Figure:
    """Peak against peak of the published curves, beside the ratio at the highest level; the worst pair of each."""
    curves = published()
    peaks, ratios = [], []
    for name, threads in curves.items():
        pool = curves.get(name.replace("thread-per-connection", "threadpool"))
        if pool is None or pool is threads:
            continue
        found, told = [], []
        for end in (256, 1024, 4096):
            sides = [
                fit([LevelSample(load, (x,), ()) for load, x in side if load <= end], axis="clients", treatment="A")
                for side in (threads, pool)
            ]
            worth = reach(*sides)
            assert worth is not None
            found.append(worth.ratio)
            told.append(sides[1].points[-1].throughput / sides[0].points[-1].throughput)
        peaks.append(max(found) / min(found))
        ratios.append(max(told) / min(told))
    return Figure(max(peaks), 0.0, f"at the highest level: {max(ratios):.3g}x")


def capacity(noise: float, correlation: float, series: int) -> Figure:
    """Brackets that do not hold the capacity."""
    found = [search_it(noise, correlation, seed) for seed in range(max(20, series // 40))]
    trials = sum(one.trials for one in found) / len(found)
    stated = 100 * sum(one.stated for one in found) / len(found)
    return rate(sum(not one.held for one in found), len(found), rival=f"stated {stated:.1f} %, {trials:.0f} trials")


for _noise, _correlation in ((0.02, 0.0), (0.02, 0.8), (0.05, 0.8)):
    row(
        f"capacity: noise {100 * _noise:g} %, r {_correlation:g}",
        f"brackets of a capacity that do not hold it, noise {100 * _noise:g} %, AR(1) {_correlation:g}",
        section=4,
        goal=5,
    )(partial(capacity, _noise, _correlation))


@row("cliff: slope", "X = N^-0.5 called a cliff, levels apart by 2, 3, 5, 8", section=4, goal=0, unit="of 4")
def slope(_series: int) -> Figure:
    """How many of the four."""
    called = 0
    for step in (2, 3, 5, 8):
        levels = [float(step**i) for i in range(6)]
        rows = [
            LevelSample(level, tuple(1000 * level**-0.5 * near for near in (0.99, 1, 1.01)), ()) for level in levels
        ]
        called += fit(rows, axis="n", treatment="A").cliff is not None
    return Figure(called)


# --- the table ---


def main() -> int:
    """Print the table; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="ROW", help="rows whose name begins so")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} series of each kind instead of {SERIES:,}")
    parser.add_argument("--list", action="store_true", help="the rows' names")
    arguments = parser.parse_args()
    rows = sorted(ROWS, key=lambda one: one.section)
    chosen = [one for one in rows if not arguments.only or one.name.startswith(tuple(arguments.only))]
    if arguments.list or not chosen:
        print("\n".join(one.name for one in rows))
        return 0 if arguments.list else 2
    missed = 0
    print(f"{'':2}{'claim':88}{'goal':>9}{'figure':>9}  rival")
    for one in chosen:
        figure = one.measure(QUICK if arguments.quick else SERIES)
        missed += not one.met(figure)
        goal = f"{'<=' if one.most else '>='} {one.goal:g} {one.unit}"
        mark = " " if one.met(figure) else "!"
        print(f"{one.section} {one.claim:88}{goal:>9}{figure.value:>9.3g} {mark} {figure.rival}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} goals met; ! missed by more than chance")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
