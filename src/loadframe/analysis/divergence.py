"""Where two curves diverge, and what a change is worth (docs/mathematics.md)."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Floats
from loadframe.analysis.comparison import exp_in_range
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


def divergence(before: Mapping[float, Sequence[float]], after: Mapping[float, Sequence[float]]) -> LoadInterval | None:
    """The load at which the ratio begins to change, with a 95 % interval; None where noise would change it as much, or
    with fewer than three levels or blocks. before, after: throughputs (1/s) per block by level, index i of both from
    the same block. Levels at which either side did nothing in a block are left out."""
    levels = [level for level in sorted(before.keys() & after.keys()) if min(*before[level], *after[level]) > 0]
    blocks = min((min(len(before[level]), len(after[level])) for level in levels), default=0)
    if len(levels) < FEWEST_LEVELS or blocks < FEWEST_BLOCKS:
        return None
    load = np.array(levels)
    sides = [np.log([side[level][:blocks] for level in levels]).T for side in (before, after)]
    table = sides[1] - sides[0]  # (blocks, levels)
    table = table - table.mean(axis=1, keepdims=True)
    seen = table.mean(axis=0)
    logs, fine = np.log(load), np.log(grid(load, STEPS))
    ends = [*logs[1:-1], logs[-1]]
    pairs = [(begin, end) for begin, end in itertools.product(fine[:-1], ends) if begin < end - 1e-9]
    begins, finals = np.array(pairs).T
    shapes = np.clip(logs[None, :] - begins[:, None], 0.0, (finals - begins)[:, None])
    shapes = shapes - shapes.mean(axis=1, keepdims=True)
    straight = _Straight(np.exp(begins), finals, shapes / np.linalg.norm(shapes, axis=1, keepdims=True))
    gains = _gains(straight.shapes, seen[None, :])[0]
    best = int(gains.argmax())
    fitted = straight.shapes[best] * float(straight.shapes[best] @ seen)
    if np.ptp(fitted) < SMALLEST or not _proved(table, straight.shapes, float(gains[best])):
        return None
    freedom = (blocks - 1) * (len(levels) - 1)
    noise = max(float(((table - seen) ** 2).sum()) / freedom / blocks, TINY)
    # F with 1 and n degrees of freedom is the square of t with n.
    within = noise * float(student.quantile(0.975, freedom)) ** 2
    bent = _bent_gains(straight, np.log(load), seen)
    near = straight.begins[bent >= bent.max() - within]
    low, high = float(near.min()), float(near.max())
    place = float(straight.begins[best])
    if gains[best] < bent.max() - within or not low <= place <= high:
        place = math.sqrt(low * high)
    return LoadInterval(place, low, high)


@dataclass(frozen=True, slots=True)
class _Straight:
    """Candidate changes of a ratio. begins: load, (c,); ends: log load from which it is constant, (c,); shapes: (c,
    levels), of length 1."""

    begins: Floats
    ends: Floats
    shapes: Floats


def _bent_gains(straight: _Straight, logs: Floats, seen: Floats) -> Floats:
    """What each candidate explains of the squares of `seen`, (c,), where the ratio may change on, less steeply, beyond
    its end."""
    begins, ends = np.log(straight.begins)[:, None], straight.ends[:, None]
    first, second = (
        shape - shape.mean(axis=1, keepdims=True)
        for shape in (np.clip(logs - begins, 0.0, ends - begins), np.clip(logs - ends, 0.0, None))
    )
    first_power, second_power, both = (first**2).sum(axis=1), (second**2).sum(axis=1), (first * second).sum(axis=1)
    seen_one, seen_two = first @ seen, second @ seen
    whole = np.maximum(first_power * second_power - both**2, TINY)
    steep, flat = (
        (second_power * seen_one - both * seen_two) / whole,
        (first_power * seen_two - both * seen_one) / whole,
    )
    falls_off = (steep * flat > 0) & (np.abs(steep) >= np.abs(flat))
    return np.asarray(np.where(falls_off, steep * seen_one + flat * seen_two, seen_one**2 / first_power))


def _gains(shapes: Floats, means: Floats) -> Floats:
    return np.asarray((means @ shapes.T) ** 2)


def _proved(table: Floats, shapes: Floats, gain: float) -> bool:
    """Whether tables of noise, (blocks, levels), rarely explain as much relative to the scatter of blocks."""
    noise = np.random.default_rng(0).standard_normal((SIMULATED, *table.shape))
    noise = noise - noise.mean(axis=2, keepdims=True)
    means = noise.mean(axis=1)
    scatter = ((noise - means[:, None, :]) ** 2).sum(axis=(1, 2))
    explained = _gains(shapes, means).max(axis=1)
    own = float(((table - table.mean(axis=0)) ** 2).sum())
    as_much = int((explained * own >= gain * scatter).sum())
    return (1 + as_much) / (1 + SIMULATED) <= SIGNIFICANCE


@dataclass(frozen=True, slots=True)
class Reach:
    """ratio: the peak after over that before, 95 % interval. rising: throughput after the change still grows at the
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
    """Compares the peaks of both curves; None where either served nothing. The interval combines those of the peaks'
    points, in quadrature of logarithms."""
    first, second = before.at_peak, after.at_peak
    if min(first.throughput, second.throughput) <= 0:
        return None
    ratio, low, high = _ratio(first, second)
    return Reach(
        ratio=ratio,
        low=low,
        high=high,
        before=before.peak,
        after=after.peak,
        rising=after.shape == "linear" and after.peak.load == after.points[-1].load,
        knee=(before.knee, after.knee),
        capacity=(before.capacity, after.capacity),
    )


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
