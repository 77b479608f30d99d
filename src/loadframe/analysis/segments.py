"""The first downward bend of a curve: a segmented fit of rise, plateau and decline (docs/mathematics.md, "Curve").
Pieces by BIC, their significance by simulation."""

from dataclasses import dataclass, replace

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Floats
from loadframe.analysis.pieces import (
    PARAMETERS,
    Family,
    Kind,
    Series,
    bending_families,
    family_at,
    grid,
    straight_lines,
    sums_of_squares,
)
from loadframe.model import LoadInterval

SIGNIFICANCE = 0.02
"""Share of bendless curves that may seem to bend in a test; a curve has up to two tests."""
SIMULATIONS, RESAMPLES, SEED = 399, 200, 0
ROUNDER = 0.95
"""A curve is rounder than straight pieces if noise does not explain that with this probability."""
SMALLEST_BEND = 0.05
"""A bend must move the curve by this share of the peak, however small the noise."""
NOISE_FLOOR = 0.01
"""Least relative error of a throughput: otherwise noise-free figures would prove every wiggle."""
FINE, MOST_FINE = 24, 1440
"""Grid steps between neighbouring levels, for placing the break, and over all levels."""


@dataclass(frozen=True, slots=True)
class Bend:
    """fitted: shares of the peak."""

    kind: Kind
    fitted: Floats
    knee: LoadInterval | None


def first_bend(data: Series, *, proven: bool = False) -> Bend:
    """knee: None where noise might bend the curve as much. proven: the caller has proved a fall; only its place is
    determined."""
    bend = _bend(data, proven=proven)
    if bend is None:
        flat, rising, fitted = straight_lines(data, data.value[None, :])
        pure = _pure(data)
        is_flat = _score(data, flat, pure, "flat")[0] <= _score(data, rising, pure, "linear")[0]
        if is_flat or len(data.load) < 2:
            return Bend("flat", np.full_like(data.value, np.median(data.value)), None)
        return Bend("linear", fitted[0], None)
    falls = bend.fitted[-1] < bend.fitted.max() * (1 - SMALLEST_BEND)
    if bend.knee is None or not falls:
        return bend
    # Before a fall the curve may have stopped rising already; the levels before the fall must prove that bend alone.
    before = data.upto(bend.knee.load)
    earlier = first_bend(before).knee if len(before.load) < len(data.load) else None
    return replace(bend, knee=earlier or bend.knee)


def _score(data: Series, squares: Floats, pure: Floats, kind: Kind) -> Floats:
    count = len(data.load) + data.freedom
    floor = count * NOISE_FLOOR**2
    return np.asarray(count * np.log((squares + pure + floor) / count) + PARAMETERS[kind] * np.log(count))


def _bend(data: Series, *, proven: bool) -> Bend | None:
    if len(data.load) < 3:
        return None
    spare = 0 if data.freedom >= 2 else 1  # as many parameters as levels where the blocks show the noise
    families = [family for family in bending_families(data.load) if PARAMETERS[family.kind] + spare <= len(data.load)]
    if not families:
        return None
    _, best, choice = _gain(data, families, data.value[None, :], _pure(data))
    data = data.weighted_by(_fit(families[int(best[0])], int(choice[0]), data)[1])
    pure = _pure(data)
    gain, best, choice = _gain(data, families, data.value[None, :], pure)
    if gain[0] <= 0:
        return None
    family, fitted = _fit(families[int(best[0])], int(choice[0]), data)
    null = straight_lines(data, data.value[None, :])[2]
    if np.abs(fitted - null[0]).max() < SMALLEST_BEND * fitted.max():
        return None
    if not proven and not _significant(data, families, gain[0]):
        return None
    return Bend(family.kind, fitted, _locate(data, family))


def _significant(data: Series, families: list[Family], gain: float) -> bool:
    _, rising, null = straight_lines(data, data.value[None, :])
    freedom = max(len(data.load) + data.freedom - 2, 1)
    noise = np.sqrt((rising[0] + _pure(data)[0]) / freedom + NOISE_FLOOR**2)
    random = np.random.default_rng(SEED)
    values = null[0] + noise * data.scale * random.standard_normal((SIMULATIONS, len(data.load)))
    pure = noise**2 * random.chisquare(data.freedom, SIMULATIONS) if data.freedom else np.zeros(SIMULATIONS)
    simulated = _gain(data, families, values, pure)[0]
    return bool((1 + int((simulated >= gain).sum())) / (1 + SIMULATIONS) <= SIGNIFICANCE)


def _pure(data: Series) -> Floats:
    return np.array([(data.residuals**2).sum()])


def _gain(data: Series, families: list[Family], values: Floats, pure: Floats) -> tuple[Floats, Floats, Floats]:
    """In BIC, over the best straight line; its family, its candidate; (s,)."""
    flat, rising, _ = straight_lines(data, values)
    straight = np.minimum(_score(data, flat, pure, "flat"), _score(data, rising, pure, "linear"))
    squares = [sums_of_squares(family, data.scale, values) for family in families]
    pairs = zip(families, squares, strict=True)
    scores = np.stack([_score(data, of_family.min(axis=1), pure, family.kind) for family, of_family in pairs])
    best = scores.argmin(axis=0)
    candidates = np.stack([of_family.argmin(axis=1) for of_family in squares])
    chosen = np.take_along_axis(candidates, best[None, :], axis=0)[0]
    return straight - scores.min(axis=0), best, chosen


def _fit(family: Family, candidate: int, data: Series) -> tuple[Family, Floats]:
    keep = slice(candidate, candidate + 1)
    single = Family(family.kind, family.designs[keep], family.breaks[keep], family.before[keep], family.floors[keep])
    design = single.designs[0] / data.scale[:, None]
    coefficients = np.linalg.pinv(design, rcond=1e-10) @ (data.value / data.scale)
    return single, (design @ coefficients) * data.scale


def _locate(data: Series, model: Family) -> LoadInterval:
    """The break on the fine grid (docs/mathematics.md, "Place and interval"); of equal breaks the geometric middle."""
    load = data.load
    points = grid(load, _fine(load))
    points = points[1:-1] if model.kind.startswith("rise") else points[:-1]
    floor = model.floors[0]
    points = points[points < floor]
    before = points
    if model.kind == "rise-plateau-decline":
        # The rise's end stays where the coarse fit placed it: only the fall is placed here.
        points = points[points > model.before[0]]
        before = np.full_like(points, model.before[0])
    family = family_at(model.kind, load, points, before, np.full_like(points, floor))
    low_end, high_end = (float(ends[0]) for ends in _ties(family, data, data.value[None, :]))
    from_start = not model.kind.startswith("rise") and low_end <= load[0] * (1 + 1e-9)
    knee = float(load[0]) if from_start else float(np.sqrt(low_end * high_end))
    if data.freedom:
        random = np.random.default_rng(SEED)
        scatter = data.residuals * np.sqrt(len(data.residuals) / data.freedom)
        values = np.empty((RESAMPLES, len(data.load)))
        for i, count in enumerate(data.blocks):
            draws = random.choice(scatter, size=(RESAMPLES, count))
            values[:, i] = data.value[i] + data.weight[i] * np.median(draws, axis=1)
        lows, highs = _ties(family, data, values)
        # The break is known to a step of the grid at best.
        low_end = max(min(low_end, float(np.quantile(lows, 0.025))) / _step(load, low_end), float(load[0]))
        high_end = min(max(high_end, float(np.quantile(highs, 0.975))) * _step(load, high_end), float(load[-1]))
    else:
        low_end = max(load[load < low_end * (1 - 1e-9)].tolist(), default=float(load[0]))
        high_end = min(load[load > high_end * (1 + 1e-9)].tolist(), default=float(load[-1]))
    ends = [knee, low_end, high_end]
    if _is_rounder(data, family):
        # To the levels on either side; never to the lowest one, as no level below it is known to hold.
        ends += load[1:][load[1:] < knee * (1 - 1e-9)][-1:].tolist() + load[load > knee * (1 + 1e-9)][:1].tolist()
    return LoadInterval(knee, min(ends), max(ends))


def _is_rounder(data: Series, family: Family) -> bool:
    """Levels deviate beyond the blocks' noise, or are too few to know (lack of fit: Draper and Smith, Regression,
    2.1)."""
    if data.freedom < 1:
        return False
    spare = len(data.load) - PARAMETERS[family.kind]
    if spare < 1:
        return True
    away = float(sums_of_squares(family, data.scale, data.value[None, :]).min()) / spare
    return away > student.quantile_of_f(ROUNDER, spare, data.freedom) * max(data.noise, NOISE_FLOOR) ** 2


def _fine(load: Floats) -> int:
    return max(1, min(FINE, MOST_FINE // len(load)))


def _step(load: Floats, near: float) -> float:
    gap = min(max(int(np.searchsorted(load, near)), 1), len(load) - 1)
    return float((load[gap] / load[gap - 1]) ** (1 / _fine(load)))


def _ties(family: Family, data: Series, values: Floats) -> tuple[Floats, Floats]:
    """Lowest and highest break of those that fit equally well; (s,)."""
    squares = sums_of_squares(family, data.scale, values)
    # A resample without a downward bend has no break: the break may then be anywhere.
    squares = np.where(np.isfinite(squares.min(axis=1, keepdims=True)), squares, 0.0)
    within = squares <= squares.min(axis=1, keepdims=True) * (1 + 1e-6) + 1e-12
    lows = family.breaks[within.argmax(axis=1)]
    highs = family.breaks[within.shape[1] - 1 - within[:, ::-1].argmax(axis=1)]
    return lows, highs
