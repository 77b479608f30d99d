"""Simulated steps for benchmarks/sceptic.py: throughput that has settled, or that still approaches its level.

A step is as long as a window and a fifth of it, which is the least that is cut off; in 79 slices, as analysis/window.py
looks at it. An approach is X (1 - a exp(-t / tau)), tau from 0.2 to 3 windows, such that the mean of what follows the
fifth is 10 to 30 % below X. Noise is a share of the throughput, an AR(1) series from slice to slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import warmup
from loadframe.analysis.selection import select
from loadframe.analysis.student import quantile
from loadframe.analysis.window import BATCHES, LIKELY, unsettled
from loadframe.bench.bookkeeping import FEWEST_BLOCKS
from loadframe.bench.budget import Budget
from loadframe.bench.settling import MOST_TIMES, Settling
from loadframe.model import UNSETTLED, Step
from simulated import step

FLOOR = 0.2
"""In windows."""
SLICES = 66
"""Of a window."""
SETTLED = 0.05
"""An approach of which less than this is missing has settled for all that can be asked."""
STEPS = 3
"""Blocks of a level."""

Numbers = NDArray[np.float64]


def times(floor: float = FLOOR) -> Numbers:
    """The middles of the slices of a step with this warm-up."""
    middles: Numbers = (np.arange(int((1 + floor) * SLICES + 1e-9)) + 0.5) / SLICES
    return middles


@dataclass(frozen=True, slots=True)
class Approach:
    """share: what is missing at first; tau: in windows."""

    share: float
    tau: float

    def at(self, when: Numbers) -> Numbers:
        """Throughput without noise, X = 1."""
        throughput: Numbers = 1 - self.share * np.exp(-when / self.tau)
        return throughput

    def missing(self, begins: float) -> float:
        """What a window that begins there, and ends with the step, measures too little."""
        when = times()
        return 1 - float(self.at(when[when > begins]).mean())


def noise(random: np.random.Generator, length: int, size: float, correlation: float) -> Numbers:
    """An AR(1) series."""
    values = random.standard_normal(length)
    for i in range(1, length):
        values[i] = correlation * values[i - 1] + np.sqrt(1 - correlation**2) * values[i]
    return size * values


def approach(random: np.random.Generator) -> Approach:
    """A drawn one."""
    when = times()
    while True:
        tau, low = float(np.exp(random.uniform(np.log(0.2), np.log(3)))), random.uniform(0.1, 0.3)
        share = low / float(np.exp(-when[when > FLOOR] / tau).mean())
        if share <= 1:
            return Approach(share, tau)


def told(series: Numbers, floor: float = FLOOR) -> warmup.WarmUp:
    """By the shipped rule; seconds are windows."""
    return warmup.detect(series, 1 / SLICES, floor_s=floor)


def mser_5(series: Numbers) -> bool:
    """The rival: not settled where the minimum of plain MSER-5 lies in the second half."""
    whole = len(series) // warmup.BATCH
    means = series[: whole * warmup.BATCH].reshape(whole, warmup.BATCH).mean(axis=1)
    return int(np.argmin(warmup.mser(means)[: whole - 1])) > whole / 2


def line(series: Numbers) -> bool:
    """The rival: a straight line through what follows the floor, by least squares, at 5 %, neighbours independent."""
    tail = series[times() > FLOOR]
    time = np.linspace(-0.5, 0.5, len(tail))
    rise = float(time @ tail) / float(time @ time)
    residuals = tail - tail.mean() - rise * time
    error = np.sqrt(float(residuals @ residuals) / (len(tail) - 2) / float(time @ time))
    return abs(rise) > float(quantile(0.975, len(tail) - 2)) * error


@dataclass(frozen=True, slots=True)
class Measured:
    """A level after its blocks: by how much its throughput is too low, and whether it is said that it has not
    settled. steps: as many as it took."""

    too_low: float
    told: bool
    steps: int


def level(random: np.random.Generator, of: Approach, size: float, correlation: float) -> Measured:
    """A level in three blocks, each from cold, with longer warm-ups as the bench takes them; the budget is ample."""
    settling, budget, steps = Settling(), Budget(1e6, 1.0, clock=lambda: 0.0), list[Step]()
    for block in range(STEPS):
        floor: float | None = settling.warmup_s(1.0)
        again = 0
        while floor is not None:
            steps.append(_step(random, of, max(floor, FLOOR), size, correlation, block))
            floor = settling.longer_s(steps[-1], budget, again)
            again += 1
    for _ in range(MOST_TIMES):
        if not unsettled(select(steps).steps, LIKELY) or not settling.lengthen(steps[-1], budget, FEWEST_BLOCKS):
            break
        floor = settling.warmup_s(1.0)
        steps += [_step(random, of, floor, size, correlation, block) for block in range(FEWEST_BLOCKS)]
    counting = select(steps).steps
    return Measured(1 - fmean(step.throughput for step in counting), bool(unsettled(counting)), len(steps))


def _step(random: np.random.Generator, of: Approach, floor: float, size: float, correlation: float, block: int) -> Step:
    when = times(floor)
    series = of.at(when) * (1 + noise(random, len(when), size, correlation))
    found = told(series, floor)
    inside = when > found.warmup_s
    batches = tuple(float(part.mean()) for part in np.array_split(series[inside], BATCHES))
    return step(
        1.0,
        float(series[inside].mean()),
        number=block,
        block=block,
        ended_s=1 + floor,
        window_start_s=found.warmup_s,
        window_end_s=1 + floor,
        batches=batches,
        flags=() if found.settled else (UNSETTLED,),
    )
