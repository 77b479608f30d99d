"""Where two curves diverge, and what a change is worth (docs/mathematics.md)."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Floats
from loadframe.analysis.comparison import Blocks, exp_in_range
from loadframe.analysis.pieces import grid
from loadframe.model import Curve, CurvePoint, LevelRatio, LoadInterval, Peak

FEWEST_LEVELS, FEWEST_BLOCKS = 3, 3
"""With two blocks, 6 of 100 pairs with the same ratio at all loads seemed to diverge."""
STEPS = 12
SIGNIFICANCE = 0.02
"""Probability that curves with a constant ratio seem to diverge; as for a bend in segments.py."""
SMALLEST = math.log(1.05)
SIMULATED = 1999
TINY = 1e-12


def divergence(before: Blocks, after: Blocks) -> LoadInterval | None:
    """The load at which the ratio begins to change, 95 % interval; None where noise would change it as much, or with
    too few levels or blocks. before, after: throughputs (1/s) per block by level, index i of both from the same block.
    Levels at which either side did nothing in a block are left out."""
    levels = [level for level in sorted(before.keys() & after.keys()) if min(*before[level], *after[level]) > 0]
    blocks = min((min(len(before[level]), len(after[level])) for level in levels), default=0)
    if len(levels) < FEWEST_LEVELS or blocks < FEWEST_BLOCKS:
        return None
    load = np.array(levels)
    sides = [np.log([side[level][:blocks] for level in levels]).T for side in (before, after)]
    table = _centred(sides[1] - sides[0])  # (blocks, levels)
    seen = table.mean(axis=0)
    logs, fine = np.log(load), np.log(grid(load, STEPS))
    ends = [*logs[1:-1], logs[-1]]
    pairs = [(begin, end) for begin, end in itertools.product(fine[:-1], ends) if begin < end - 1e-9]
    begins, finals = np.array(pairs).T
    shapes = _centred(np.clip(logs - begins[:, None], 0.0, (finals - begins)[:, None]))
    shapes = shapes / np.linalg.norm(shapes, axis=1, keepdims=True)
    gains = _gains(shapes, seen[None, :])[0]
    best = int(gains.argmax())
    fitted = shapes[best] * (shapes[best] @ seen)
    if np.ptp(fitted) < SMALLEST or not _proved(table, shapes, gains[best]):
        return None
    freedom = (blocks - 1) * (len(levels) - 1)
    noise = max(((table - seen) ** 2).sum() / freedom / blocks, TINY)
    # F with 1 and n degrees of freedom is the square of t with n.
    within = noise * student.quantile(0.975, freedom) ** 2
    bent = _bent_gains(begins[:, None], finals[:, None], logs, seen)
    loads = np.exp(begins)
    near = loads[bent >= bent.max() - within]
    low, high, place = float(near.min()), float(near.max()), float(loads[best])
    if gains[best] < bent.max() - within or not low <= place <= high:
        place = math.sqrt(low * high)
    return LoadInterval(place, low, high)


def _bent_gains(begins: Floats, ends: Floats, logs: Floats, seen: Floats) -> Floats:
    """What each candidate explains of the squares of `seen`, (c,), if the ratio may change on, less steeply. begins,
    ends: (c, 1), logs."""
    first = _centred(np.clip(logs - begins, 0.0, ends - begins))
    second = _centred(np.clip(logs - ends, 0.0, None))
    first_power, second_power, both = (first**2).sum(axis=1), (second**2).sum(axis=1), (first * second).sum(axis=1)
    seen_one, seen_two = first @ seen, second @ seen
    whole = np.maximum(first_power * second_power - both**2, TINY)
    steep = (second_power * seen_one - both * seen_two) / whole
    flat = (first_power * seen_two - both * seen_one) / whole
    falls_off = (steep * flat > 0) & (np.abs(steep) >= np.abs(flat))
    return np.asarray(np.where(falls_off, steep * seen_one + flat * seen_two, seen_one**2 / first_power))


def _centred(values: Floats) -> Floats:
    return np.asarray(values - values.mean(axis=-1, keepdims=True))


def _gains(shapes: Floats, means: Floats) -> Floats:
    return (means @ shapes.T) ** 2


def _proved(table: Floats, shapes: Floats, gain: float) -> bool:
    noise = _centred(np.random.default_rng(0).standard_normal((SIMULATED, *table.shape)))
    means = noise.mean(axis=1)
    scatter = ((noise - means[:, None, :]) ** 2).sum(axis=(1, 2))
    explained = _gains(shapes, means).max(axis=1)
    own = ((table - table.mean(axis=0)) ** 2).sum()
    as_much = int((explained * own >= gain * scatter).sum())
    return (1 + as_much) / (1 + SIMULATED) <= SIGNIFICANCE


@dataclass(frozen=True, slots=True)
class Reach:
    """ratio: of the peaks, after over before, 95 % interval. rising: throughput after the change still grows at the
    highest level. knee, capacity: before and after."""

    ratio: float
    low: float
    high: float
    before: Peak
    after: Peak
    rising: bool
    knee: tuple[LoadInterval | None, LoadInterval | None]
    capacity: tuple[LoadInterval | None, LoadInterval | None]


def reach(before: Curve, after: Curve) -> Reach | None:
    """None where either served nothing. Intervals combine those of the peaks' points, in quadrature of logarithms."""
    first, second = before.at_peak, after.at_peak
    if min(first.throughput, second.throughput) <= 0:
        return None
    rising = after.shape == "linear" and after.peak.load == after.points[-1].load
    ends = ((before.knee, after.knee), (before.capacity, after.capacity))
    return Reach(*_ratio(first, second), before.peak, after.peak, rising, *ends)


def at_loads(before: Curve, after: Curve) -> tuple[LevelRatio, ...]:
    """The gain at each common load with throughput, ascending; intervals as those of `reach`."""
    points = {point.load: point for point in after.points if point.throughput > 0}
    pairs = [(point, points[point.load]) for point in before.points if point.throughput > 0 and point.load in points]
    return tuple(
        LevelRatio(first.load, first.throughput, second.throughput, *_ratio(first, second), from_curves=True)
        for first, second in sorted(pairs, key=lambda pair: pair[0].load)
    )


def _ratio(before: CurvePoint, after: CurvePoint) -> tuple[float, float, float]:
    centre = math.log(after.throughput / before.throughput)
    down = math.hypot(_log(after.throughput, after.throughput_low), _log(before.throughput_high, before.throughput))
    up = math.hypot(_log(after.throughput_high, after.throughput), _log(before.throughput, before.throughput_low))
    return exp_in_range(centre), exp_in_range(centre - down), exp_in_range(centre + up)


def _log(more: float, less: float) -> float:
    return math.log(more / less) if less > 0 and math.isfinite(more) else math.inf
