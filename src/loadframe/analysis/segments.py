"""Where a curve first bends downwards: a continuous segmented fit of rise, plateau and decline.

The pieces are straight where real curves are: a rise is linear in the load N (every client adds its share), a
decline linear in log N (levels are geometric, and a thrashing server loses by ratios). Given the breaks each model
is linear, so that all breaks on a geometric grid are tried (no local minima). Number of pieces by BIC, its
significance by simulation: the gain in BIC that pure noise of the same size yields at the same levels, for breaks
that were *searched*, follows no textbook F (Davies 1987, Biometrika 74; Muggeo 2003, Statistics in Medicine 22).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from loadframe.model import LoadInterval

Floats = NDArray[np.float64]
Kind = Literal[
    "flat", "linear", "rise-plateau", "rise-bend", "plateau-decline", "plateau-fall-floor", "rise-plateau-decline"
]

SIGNIFICANCE = 0.02
"""Share of bendless curves that may seem to bend in one test; a curve has up to two tests."""

SIMULATIONS = 399
RESAMPLES = 200

ROUNDER = 0.95
"""A curve is rounder than straight pieces where noise would not take its levels so far away with this probability."""

SMALLEST_BEND = 0.05
"""A bend must move the curve by this share of the peak away from flat or straight, however small the noise is."""

NOISE_FLOOR = 0.01
"""No throughput is known better than this; keeps noise-free figures from proving every wiggle of their shape."""

WEIGHT_FLOOR = 0.05
"""Noise is a share of the throughput, but below this share of the peak it is taken as constant, or the bottom of a
collapse would count more than its edge."""

COARSE, FINE = 3, 24
"""Grid steps between neighbouring levels: for finding the model, and for placing the break."""

MOST_BREAKS = 45
"""Breaks are tried in pairs: with 15 levels or fewer this is the whole coarse grid, with more it is thinner."""

PARAMETERS: dict[Kind, int] = {
    "flat": 1,
    "linear": 2,
    "rise-plateau": 3,
    "rise-bend": 4,
    "plateau-decline": 3,
    "plateau-fall-floor": 4,
    "rise-plateau-decline": 5,
}
"""Free parameters, breaks included."""


@dataclass(frozen=True, slots=True)
class Series:
    """Throughputs of ascending levels, as shares of the peak.

    load, value (median over blocks), weight (size of the noise relative to the others), spread (variance of the
    median in units of one block's): (n,) each. residuals: standardised scatter of all blocks; freedom: its degrees.
    """

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
        """Pooled relative standard deviation of a block; 0 where no level has two blocks."""
        return float(np.sqrt((self.residuals**2).sum() / self.freedom)) if self.freedom else 0.0

    def weighted_by(self, fitted: Floats) -> Series:
        """The same with the noise in proportion to a smooth fit: weights taken from the values themselves would
        count the levels more that noise has made low, and bend a straight line."""
        weight = np.maximum(fitted / fitted.max(), WEIGHT_FLOOR)
        residuals = self.residuals * np.repeat(self.weight / weight, self.blocks)
        return Series(self.load, self.value, weight, self.spread, self.blocks, residuals, self.freedom)

    def upto(self, load: float) -> Series:
        """The levels up to `load` only: a collapse is noisier than what comes before it."""
        keep = self.load <= load
        kept = tuple(count for count, inside in zip(self.blocks, keep, strict=True) if inside)
        residuals = self.residuals[np.repeat(keep, self.blocks)]
        freedom = sum(kept) - len(kept)
        return Series(self.load[keep], self.value[keep], self.weight[keep], self.spread[keep], kept, residuals, freedom)


@dataclass(frozen=True, slots=True)
class Bend:
    """The chosen model, its fitted values (share of the peak), and its first bend (None: bendless)."""

    kind: Kind
    fitted: Floats
    knee: LoadInterval | None


def series(loads: Sequence[float], blocks: Sequence[Sequence[float]]) -> Series:
    """Levels in ascending order with their throughputs per block -> the series to fit. All must not be zero."""
    medians = np.array([np.median(level) for level in blocks])
    peak = float(medians.max())
    # Rounding makes the same curve in another unit the same numbers, so that no tie is broken differently.
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


def first_bend(data: Series, seed: int, *, proven: bool = False) -> Bend:
    """The first downward bend of the curve, with an interval; knee None where noise alone would bend it as much.

    proven: the caller has proved already that the curve falls; then only the place of the bend is asked for.
    """
    bend = _bend(data, seed, proven=proven)
    if bend is None:
        return _bendless(data)
    falls = bend.fitted[-1] < bend.fitted.max() * (1 - SMALLEST_BEND)
    if bend.knee is None or not falls:
        return bend
    # Before a fall the curve may have stopped rising already; that bend is proved by the levels before the fall alone.
    before = data.upto(bend.knee.load)
    earlier = first_bend(before, seed) if len(before.load) < len(data.load) else None
    if earlier is not None and earlier.knee is not None:
        return Bend(bend.kind, bend.fitted, earlier.knee)
    return bend


# --- candidate models -----------------------------------------------------------------------------------------------


def grid(load: Floats, steps: int) -> Floats:
    """Geometric grid from the lowest to the highest level, the levels included."""
    pieces = [np.geomspace(low, high, steps, endpoint=False) for low, high in itertools.pairwise(load)]
    return np.concatenate([*pieces, load[-1:]])


def _rise(load: Floats, bends: Floats) -> Floats:
    """(c, n): 0 at and after the bend, negative and linear before it; in units of the bend's load."""
    columns: Floats = np.minimum(load[None, :] / bends[:, None] - 1, 0.0)
    return columns


def _fall(load: Floats, bends: Floats, floors: Floats) -> Floats:
    """(c, n): 0 up to the bend, then growing with log N until the floor."""
    logs = np.log(load)[None, :] - np.log(bends)[:, None]
    columns: Floats = np.clip(logs, 0.0, (np.log(floors) - np.log(bends))[:, None])
    return columns


@dataclass(frozen=True, slots=True)
class _Family:
    """All candidates of one kind: designs (c, n, q); per candidate (c,) the bend, the end of the rise before it (the
    same where they are one), and the end of the fall."""

    kind: Kind
    designs: Floats
    breaks: Floats
    before: Floats
    floors: Floats


def _family(kind: Kind, load: Floats, breaks: Floats, before: Floats, floors: Floats) -> _Family:
    """Candidates of `kind` with the bend at `breaks`; `before`: end of the rise, `floors`: end of the fall; (c,)."""
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
    return _Family(kind, np.stack(columns, axis=-1), breaks, before, floors)


def _candidates(load: Floats) -> Floats:
    """Where a break is tried: on the coarse grid, or, of many levels, at as many of them as can be tried in pairs."""
    return _thinned(grid(load, max(1, min(COARSE, MOST_BREAKS // len(load)))))


def _thinned(points: Floats) -> Floats:
    if len(points) <= MOST_BREAKS:
        return points
    return points[np.round(np.linspace(0, len(points) - 1, MOST_BREAKS)).astype(np.int64)]


def _families(load: Floats) -> list[_Family]:
    """Every model that bends, its breaks on the coarse grid."""
    points = _candidates(load)
    inner, falling = points[1:-1], points[:-1]
    end = np.full_like(falling, load[-1])
    families = [
        _family("rise-plateau", load, inner, inner, end[: len(inner)]),
        _family("rise-bend", load, inner, inner, end[: len(inner)]),
        _family("plateau-decline", load, falling, falling, end),
    ]
    bottoms = [(point, level) for level in _thinned(load[1:-1]) for point in falling if point < level]
    if bottoms:
        breaks, floors = np.array(bottoms).T
        families.append(_family("plateau-fall-floor", load, breaks, breaks, floors))
    both = [(first, last) for i, first in enumerate(inner) for last in inner[i + 1 :]]
    if both:
        before, breaks = np.array(both).T
        families.append(_family("rise-plateau-decline", load, breaks, before, np.full_like(breaks, load[-1])))
    return families


def _downward(kind: Kind, coefficients: Floats) -> NDArray[np.bool_]:
    """Whether rises rise, falls fall and bends bend downwards: (..., q) -> (...)."""
    # Slopes count from 1e-9 of the peak on, so that rounding is no slope.
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


def _squares(family: _Family, scale: Floats, values: Floats) -> Floats:
    """Weighted sums of squares (s, c) of s series (s, n); infinite where the bend is not a downward one."""
    designs = family.designs / scale[None, :, None]
    inverse = np.linalg.pinv(designs, rcond=1e-10)
    targets = values / scale
    coefficients = np.einsum("cqn,sn->scq", inverse, targets)
    residuals = targets[:, None, :] - np.einsum("cnq,scq->scn", designs, coefficients)
    squares = (residuals**2).sum(axis=2)
    result: Floats = np.where(_downward(family.kind, coefficients), squares, np.inf)
    return result


def _straight(data: Series, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums of squares of flat and of rising straight lines (s,), and the line's fitted values (s, n)."""
    targets = values / data.scale
    flat_column = (1 / data.scale)[:, None]
    line_columns = np.column_stack([np.ones_like(data.load), data.load / data.load[-1]]) / data.scale[:, None]
    level = targets @ np.linalg.pinv(flat_column).T
    line = targets @ np.linalg.pinv(line_columns).T
    # A line that falls is no null: a fall is what is looked for.
    line = np.where(line[:, 1:] > 0, line, np.column_stack([level, np.zeros_like(level)]))
    flat = ((targets - level @ flat_column.T) ** 2).sum(axis=1)
    rising = ((targets - line @ line_columns.T) ** 2).sum(axis=1)
    return flat, rising, (line @ line_columns.T) * data.scale


# --- choosing and testing -------------------------------------------------------------------------------------------


def _score(data: Series, squares: Floats, pure: Floats, kind: Kind) -> Floats:
    """BIC of a model from its sum of squares and the blocks' own scatter."""
    count = len(data.load) + data.freedom
    floor = count * NOISE_FLOOR**2
    result: Floats = count * np.log((squares + pure + floor) / count) + PARAMETERS[kind] * np.log(count)
    return result


def _allowed(kind: Kind, data: Series) -> bool:
    """A model may not have as many parameters as there are levels, unless the blocks tell what is noise."""
    spare = 0 if data.freedom >= 2 else 1
    return PARAMETERS[kind] + spare <= len(data.load)


def _bend(data: Series, seed: int, *, proven: bool = False) -> Bend | None:
    """The best model that bends, if it is proved against the best straight one."""
    if len(data.load) < 3:
        return None
    families = [family for family in _families(data.load) if _allowed(family.kind, data)]
    if not families:
        return None
    _, best, choice = _gain(data, families, data.value[None, :], _pure(data))
    data = data.weighted_by(_fit(families[int(best[0])], int(choice[0]), data)[1])
    pure = _pure(data)
    gain, best, choice = _gain(data, families, data.value[None, :], pure)
    if gain[0] <= 0:
        return None
    family, fitted = _fit(families[int(best[0])], int(choice[0]), data)
    null = _straight(data, data.value[None, :])[2]
    if np.abs(fitted - null[0]).max() < SMALLEST_BEND * fitted.max():
        return None
    if not proven and not _significant(data, families, float(gain[0]), seed):
        return None
    return Bend(family.kind, fitted, _locate(data, family, seed))


def _significant(data: Series, families: list[_Family], gain: float, seed: int) -> bool:
    """Whether curves without a bend, with the same levels, blocks and noise, hardly ever gain as much in BIC."""
    _, rising, null = _straight(data, data.value[None, :])
    freedom = max(len(data.load) + data.freedom - 2, 1)
    noise = float(np.sqrt((rising[0] + _pure(data)[0]) / freedom + NOISE_FLOOR**2))
    random = np.random.default_rng(seed)
    values = null[0] + noise * data.scale * random.standard_normal((SIMULATIONS, len(data.load)))
    pure = noise**2 * random.chisquare(data.freedom, SIMULATIONS) if data.freedom else np.zeros(SIMULATIONS)
    simulated = _gain(data, families, values, pure)[0]
    return bool((1 + int((simulated >= gain).sum())) / (1 + SIMULATIONS) <= SIGNIFICANCE)


def _pure(data: Series) -> Floats:
    """Sum of squares of the blocks around their levels, (1,)."""
    return np.array([(data.residuals**2).sum()])


def _gain(data: Series, families: list[_Family], values: Floats, pure: Floats) -> tuple[Floats, Floats, Floats]:
    """How much BIC the best bend gains over the best straight line; which family and candidate that is. All (s,)."""
    flat, rising, _ = _straight(data, values)
    straight = np.minimum(_score(data, flat, pure, "flat"), _score(data, rising, pure, "linear"))
    squares = [_squares(family, data.scale, values) for family in families]
    scores = np.stack(
        [_score(data, each.min(axis=1), pure, family.kind) for family, each in zip(families, squares, strict=True)]
    )
    best = scores.argmin(axis=0)
    candidates = np.stack([each.argmin(axis=1) for each in squares])
    chosen = np.take_along_axis(candidates, best[None, :], axis=0)[0]
    gain: Floats = straight - scores.min(axis=0)
    return gain, best, chosen


def _fit(family: _Family, candidate: int, data: Series) -> tuple[_Family, Floats]:
    """One candidate alone, and its fitted values."""
    keep = slice(candidate, candidate + 1)
    single = _Family(family.kind, family.designs[keep], family.breaks[keep], family.before[keep], family.floors[keep])
    design = single.designs[0] / data.scale[:, None]
    coefficients = np.linalg.pinv(design, rcond=1e-10) @ (data.value / data.scale)
    return single, (design @ coefficients) * data.scale


# --- placing the break ----------------------------------------------------------------------------------------------


def _locate(data: Series, model: _Family, seed: int) -> LoadInterval:
    """The break on the fine grid, with its interval from a bootstrap over the blocks.

    Breaks that fit equally well (a fall between two levels may begin anywhere between them) widen the interval to
    all of them; the break is then their geometric middle. With single blocks the interval is the neighbouring levels.
    """
    load = data.load
    points = grid(load, FINE)
    points = points[1:-1] if model.kind.startswith("rise") else points[:-1]
    floor = float(model.floors[0])
    points = points[points < floor]
    before = points
    if model.kind == "rise-plateau-decline":
        # The rise's end stays where the coarse fit saw it: only the fall is placed here.
        rise_end = float(model.before[0])
        points = points[points > rise_end]
        before = np.full_like(points, rise_end)
    family = _family(model.kind, load, points, before, np.full_like(points, floor))
    low, high = _ties(family, data, data.value[None, :])
    from_start = not model.kind.startswith("rise") and low[0] <= load[0] * (1 + 1e-9)
    knee = float(load[0]) if from_start else float(np.sqrt(low[0] * high[0]))
    low_end, high_end = (float(low[0]), float(high[0]))
    if data.freedom:
        lows, highs = _ties(family, data, _resample(data, np.random.default_rng(seed)))
        # The break is known to a step of the grid at best.
        low_end = max(min(low_end, float(np.quantile(lows, 0.025))) / _step(load, low_end), float(load[0]))
        high_end = min(max(high_end, float(np.quantile(highs, 0.975))) * _step(load, high_end), float(load[-1]))
    else:
        below, above = load[load < low_end * (1 - 1e-9)], load[load > high_end * (1 + 1e-9)]
        low_end = float(below[-1]) if below.size else float(load[0])
        high_end = float(above[0]) if above.size else float(load[-1])
    place = LoadInterval(knee, min(low_end, knee), max(high_end, knee))
    return _between_levels(load, place) if _is_rounder(data, family) else place


def _is_rounder(data: Series, family: _Family) -> bool:
    """Whether the levels lie further from the pieces than the blocks' noise explains, or are too few to tell: then no
    straight pieces meet, and where they seem to depends on the levels (lack of fit: Draper and Smith, Applied
    Regression Analysis, 2.1)."""
    if data.freedom < 1:
        return False
    spare = len(data.load) - PARAMETERS[family.kind]
    if spare < 1:
        return True
    from scipy.special import fdtri

    away = float(_squares(family, data.scale, data.value[None, :]).min()) / spare
    return away > float(fdtri(spare, data.freedom, ROUNDER)) * max(data.noise, NOISE_FLOOR) ** 2


def _between_levels(load: Floats, place: LoadInterval) -> LoadInterval:
    """The interval out to the levels on either side of the bend; never to the lowest one, where nothing is known to
    hold."""
    below, above = load[load < place.load * (1 - 1e-9)], load[load > place.load * (1 + 1e-9)]
    low = min(place.low, float(below[-1])) if len(below) > 1 else place.low
    return LoadInterval(place.load, low, max(place.high, float(above[0])) if above.size else place.high)


def _step(load: Floats, near: float) -> float:
    """Ratio of neighbouring points of the fine grid around `near`."""
    gap = min(max(int(np.searchsorted(load, near)), 1), len(load) - 1)
    return float((load[gap] / load[gap - 1]) ** (1 / FINE))


def _ties(family: _Family, data: Series, values: Floats) -> tuple[Floats, Floats]:
    """Lowest and highest break of those that fit equally well, for each of s series."""
    squares = _squares(family, data.scale, values)
    # A resample in which nothing bends downwards has no break; it says only that the break may be anywhere.
    squares = np.where(np.isfinite(squares.min(axis=1, keepdims=True)), squares, 0.0)
    within = squares <= squares.min(axis=1, keepdims=True) * (1 + 1e-6) + 1e-12
    lows = family.breaks[within.argmax(axis=1)]
    highs = family.breaks[within.shape[1] - 1 - within[:, ::-1].argmax(axis=1)]
    return lows, highs


def _resample(data: Series, random: np.random.Generator) -> Floats:
    """Curves whose levels are drawn anew: medians plus scatter drawn from that of all blocks, (RESAMPLES, n)."""
    scatter = data.residuals * np.sqrt(len(data.residuals) / data.freedom)
    values = np.empty((RESAMPLES, len(data.load)))
    for i, count in enumerate(data.blocks):
        draws = random.choice(scatter, size=(RESAMPLES, count))
        values[:, i] = data.value[i] + data.weight[i] * np.median(draws, axis=1)
    return values


def _bendless(data: Series) -> Bend:
    """A straight line, flat unless a rise gains enough in BIC."""
    flat, rising, fitted = _straight(data, data.value[None, :])
    pure = _pure(data)
    is_flat = _score(data, flat, pure, "flat")[0] <= _score(data, rising, pure, "linear")[0]
    if is_flat or len(data.load) < 2:
        return Bend("flat", np.full_like(data.value, float(np.median(data.value))), None)
    return Bend("linear", fitted[0], None)
