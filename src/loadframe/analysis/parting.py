"""Where two curves part: the load from which on the ratio of their throughputs is another one than before.

The logarithm of the ratio is constant up to the parting, then straight in the logarithm of the load, up to a second
place where it may become constant again. Both places are searched on a grid; that there is any is proved by permuting:
where the ratio is the same at all loads, what a block shows at one load it might as well have shown at another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from loadframe.analysis.queueing.laws import Floats
from loadframe.analysis.segments import grid
from loadframe.model import LoadInterval

FEWEST_LEVELS, FEWEST_BLOCKS = 3, 3
"""With two blocks, 6 of 100 pairs whose ratio was the same everywhere seemed to part."""

STEPS = 12
"""Places that are tried between neighbouring levels."""

SIGNIFICANCE = 0.02
"""How often curves whose ratio is the same at all loads may seem to part; that of a bend in segments.py."""

SMALLEST = math.log(1.05)
"""A ratio that changes by less is the same."""

PERMUTATIONS, RESAMPLES = 499, 400


def parting(
    before: Mapping[float, Sequence[float]], after: Mapping[float, Sequence[float]], *, seed: int = 0
) -> LoadInterval | None:
    """The load at which the ratio begins to change, with a 95 % interval (bootstrap over the blocks); None where noise
    would change it as much, or with fewer than three levels or blocks.

    before, after: throughputs (1/s) per block by level, index i of both from the same block, so that what the machine
    does to both cancels. Levels at which one of the two did nothing in a block are left out.
    """
    levels = [level for level in sorted(before.keys() & after.keys()) if min(*before[level], *after[level]) > 0]
    blocks = min((min(len(before[level]), len(after[level])) for level in levels), default=0)
    if len(levels) < FEWEST_LEVELS or blocks < FEWEST_BLOCKS:
        return None
    load = np.array(levels)
    sides = [np.log([side[level][:blocks] for level in levels]).T for side in (before, after)]
    table = sides[1] - sides[0]  # (blocks, levels)
    table = table - table.mean(axis=1, keepdims=True)
    places, shapes = _candidates(load)
    seen = table.mean(axis=0)
    gains = _gains(shapes, seen[None, :])[0]
    best = int(gains.argmax())
    fitted = shapes[best] * float(shapes[best] @ seen)
    random = np.random.default_rng(seed)
    if np.ptp(fitted) < SMALLEST or not _proved(table, shapes, float(gains[best]), random):
        return None
    scatter = (table - seen) * math.sqrt(blocks / (blocks - 1))
    drawn = scatter[random.integers(blocks, size=(RESAMPLES, blocks, len(load))), np.arange(len(load))].mean(axis=1)
    found = places[_gains(shapes, seen + drawn).argmax(axis=1)]
    low, high = np.quantile(found, [0.025, 0.975])
    return LoadInterval(
        float(places[best]), min(float(low), float(places[best])), max(float(high), float(places[best]))
    )


def _candidates(load: Floats) -> tuple[Floats, Floats]:
    """Where the ratio begins to change, (c,), and the shapes of the change: (c, levels), centred, of length 1."""
    logs, fine = np.log(load), np.log(grid(load, STEPS))
    ends = [*logs[1:-1], logs[-1]]
    pairs = [(begin, end) for begin, end in itertools.product(fine[:-1], ends) if begin < end - 1e-9]
    begins, finals = np.array(pairs).T
    shapes = np.clip(logs[None, :] - begins[:, None], 0.0, (finals - begins)[:, None])
    shapes = shapes - shapes.mean(axis=1, keepdims=True)
    return np.exp(begins), shapes / np.linalg.norm(shapes, axis=1, keepdims=True)


def _gains(shapes: Floats, means: Floats) -> Floats:
    """What each shape explains of the squares of these series of means, (s, levels): (s, c)."""
    return np.asarray((means @ shapes.T) ** 2)


def _proved(table: Floats, shapes: Floats, gain: float, random: np.random.Generator) -> bool:
    """Whether levels in another order, drawn for each block, hardly ever explain as much."""
    shuffled = random.permuted(np.broadcast_to(table, (PERMUTATIONS, *table.shape)), axis=2).mean(axis=1)
    as_much = int((_gains(shapes, shuffled).max(axis=1) >= gain * (1 - 1e-9)).sum())
    return (1 + as_much) / (1 + PERMUTATIONS) <= SIGNIFICANCE
