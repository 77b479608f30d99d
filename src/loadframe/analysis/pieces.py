"""The piecewise straight models of a curve: a rise in the load N, a decline in log N (segments.py)."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadframe.analysis.arrays import Flags, Floats

Kind = Literal[
    "flat", "linear", "rise-plateau", "rise-bend", "plateau-decline", "plateau-fall-floor", "rise-plateau-decline"
]
WEIGHT_FLOOR = 0.05
"""Share of the peak below which noise is taken as constant: else the bottom of a collapse would count more than its
edge."""
COARSE = 3
MOST_BREAKS = 45
"""Most breaks tried in pairs: the whole coarse grid for up to 15 levels."""
PARAMETERS: dict[Kind, int] = {
    "flat": 1,
    "linear": 2,
    "rise-plateau": 3,
    "rise-bend": 4,
    "plateau-decline": 3,
    "plateau-fall-floor": 4,
    "rise-plateau-decline": 5,
}


@dataclass(frozen=True, slots=True)
class Series:
    """Throughputs of ascending levels, as shares of the peak. value (median over blocks), weight (size of the noise
    relative to the others), spread (variance of the median in units of one block's): (n,). residuals: standardised
    scatter of all blocks; freedom: its degrees."""

    load: Floats
    value: Floats
    weight: Floats
    spread: Floats
    blocks: tuple[int, ...]
    residuals: Floats
    freedom: int

    @property
    def scale(self) -> Floats:
        """Standard deviation of each level's median, in units of the noise."""
        result: Floats = self.weight * np.sqrt(self.spread)
        return result

    @property
    def noise(self) -> float:
        """Pooled relative standard deviation of a block; 0 without two blocks."""
        return float(np.sqrt((self.residuals**2).sum() / self.freedom)) if self.freedom else 0.0

    def weighted_by(self, fitted: Floats) -> "Series":
        """The series with noise proportional to a smooth fit: weights from the values would favour levels that noise
        has made low."""
        weight = np.maximum(fitted / fitted.max(), WEIGHT_FLOOR)
        residuals = self.residuals * np.repeat(self.weight / weight, self.blocks)
        return Series(self.load, self.value, weight, self.spread, self.blocks, residuals, self.freedom)

    def upto(self, load: float) -> "Series":
        """The levels up to `load`: a collapse is noisier than what comes before it."""
        keep = self.load <= load
        kept = tuple(count for count, inside in zip(self.blocks, keep, strict=True) if inside)
        residuals = self.residuals[np.repeat(keep, self.blocks)]
        freedom = sum(kept) - len(kept)
        return Series(self.load[keep], self.value[keep], self.weight[keep], self.spread[keep], kept, residuals, freedom)


def series(loads: Sequence[float], blocks: Sequence[Sequence[float]]) -> Series:
    """Ascending levels, and throughputs per block, not all zero."""
    medians = np.array([np.median(level) for level in blocks])
    peak = float(medians.max())
    # Rounding makes the same curve in another unit the same numbers, so that ties break alike.
    value = np.round(medians / peak, 12)
    weight = np.maximum(value, WEIGHT_FLOOR)
    counts = tuple(len(level) for level in blocks)
    # A single block may be any number of times the peak; beyond a million its square would only overflow.
    shares = [np.round(np.minimum(np.asarray(level), 1e6 * peak) / peak, 12) for level in blocks]
    residuals = [(level - level.mean()) / width for level, width in zip(shares, weight, strict=True)]
    # Variance of a median: 1/n up to two values, about 1.4/n for few normal ones (pi/2 in the limit).
    spread = np.array([1 / count if count <= 2 else 1.4 / count for count in counts])
    return Series(
        np.asarray(loads, dtype=np.float64), value, weight, spread, counts, np.concatenate(residuals),
        sum(count - 1 for count in counts),
    )  # fmt: skip


def grid(load: Floats, steps: int) -> Floats:
    pieces = [np.geomspace(low, high, steps, endpoint=False) for low, high in itertools.pairwise(load)]
    return np.concatenate([*pieces, load[-1:]])


def _rise(load: Floats, breaks: Floats) -> Floats:
    """(c, n): 0 from the bend on, negative and linear before it; in units of the bend's load."""
    columns: Floats = np.minimum(load[None, :] / breaks[:, None] - 1, 0.0)
    return columns


def _fall(load: Floats, breaks: Floats, floors: Floats) -> Floats:
    """(c, n): 0 up to the bend, then growing with log N until the floor."""
    logs = np.log(load)[None, :] - np.log(breaks)[:, None]
    columns: Floats = np.clip(logs, 0.0, (np.log(floors) - np.log(breaks))[:, None])
    return columns


@dataclass(frozen=True, slots=True)
class Family:
    """Candidates of one kind. designs: (c, n, q); per candidate, (c,): the bend, the end of the rise before it, and of
    the fall."""

    kind: Kind
    designs: Floats
    breaks: Floats
    before: Floats
    floors: Floats


def family_at(kind: Kind, load: Floats, breaks: Floats, before: Floats, floors: Floats) -> Family:
    """breaks, before, floors: as in Family, (c,)."""
    ones = np.ones((len(breaks), len(load)))
    end = np.full_like(breaks, load[-1])
    columns: list[Floats]
    if kind == "rise-plateau":
        columns = [ones, _rise(load, breaks)]
    elif kind == "rise-bend":
        columns = [ones, _rise(load, breaks), _fall(load, breaks, end)]
    elif kind == "rise-plateau-decline":
        columns = [ones, _rise(load, before), _fall(load, breaks, end)]
    else:
        columns = [ones, _fall(load, breaks, floors)]
    return Family(kind, np.stack(columns, axis=-1), breaks, before, floors)


def _thinned(points: Floats) -> Floats:
    if len(points) <= MOST_BREAKS:
        return points
    return points[np.round(np.linspace(0, len(points) - 1, MOST_BREAKS)).astype(np.int64)]


def bending_families(load: Floats) -> list[Family]:
    points = _thinned(grid(load, max(1, min(COARSE, MOST_BREAKS // len(load)))))
    inner, falling = points[1:-1], points[:-1]
    end = np.full_like(falling, load[-1])
    families = [
        family_at("rise-plateau", load, inner, inner, end[: len(inner)]),
        family_at("rise-bend", load, inner, inner, end[: len(inner)]),
        family_at("plateau-decline", load, falling, falling, end),
    ]
    bottoms = [(point, level) for level in _thinned(load[1:-1]) for point in falling if point < level]
    if bottoms:
        breaks, floors = np.array(bottoms).T
        families.append(family_at("plateau-fall-floor", load, breaks, breaks, floors))
    both = [(first, last) for i, first in enumerate(inner) for last in inner[i + 1 :]]
    if both:
        before, breaks = np.array(both).T
        families.append(family_at("rise-plateau-decline", load, breaks, before, np.full_like(breaks, load[-1])))
    return families


def _downward(kind: Kind, coefficients: Floats) -> Flags:
    # Slopes count from 1e-9 of the peak on, above rounding errors.
    second = coefficients[..., 1]
    if kind == "rise-plateau":
        return second > 1e-9
    if kind in ("plateau-decline", "plateau-fall-floor"):
        return second < -1e-9
    third = coefficients[..., 2]
    if kind == "rise-plateau-decline":
        return (second > 1e-9) & (third < -1e-9)
    # In units of the bend's load, both slopes at the bend are the coefficients themselves.
    return (second > 1e-9) & (third < second)


MOST_AT_ONCE = 1 << 22


def sums_of_squares(family: Family, scale: Floats, values: Floats) -> Floats:
    """Weighted sums of squares (s, c) of s series (s, n); infinite where the bend is not downward."""
    designs = family.designs / scale[None, :, None]
    inverse = np.linalg.pinv(designs, rcond=1e-10)
    targets = values / scale
    coefficients = np.einsum("cqn,sn->scq", inverse, targets)
    squares = np.empty(coefficients.shape[:2])
    at_once = max(1, MOST_AT_ONCE // designs[..., 0].size)
    for at in range(0, len(targets), at_once):
        some = slice(at, at + at_once)
        residuals = targets[some, None, :] - np.einsum("cnq,scq->scn", designs, coefficients[some])
        squares[some] = (residuals**2).sum(axis=2)
    result: Floats = np.where(_downward(family.kind, coefficients), squares, np.inf)
    return result


def straight_lines(data: Series, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums of squares of flat and of rising straight lines (s,), and the line's fitted values (s, n)."""
    targets = values / data.scale
    flat_column = (1 / data.scale)[:, None]
    line_columns = np.column_stack([np.ones_like(data.load), data.load / data.load[-1]]) / data.scale[:, None]
    level = targets @ np.linalg.pinv(flat_column).T
    line = targets @ np.linalg.pinv(line_columns).T
    # A falling line is no null hypothesis: a fall is what is looked for.
    line = np.where(line[:, 1:] > 0, line, np.column_stack([level, np.zeros_like(level)]))
    flat = ((targets - level @ flat_column.T) ** 2).sum(axis=1)
    rising = ((targets - line @ line_columns.T) ** 2).sum(axis=1)
    return flat, rising, (line @ line_columns.T) * data.scale
