"""Rows in time order as independent observations (blocks), and what a request needs of a resource (the utilisation law
U = U0 + D X on block means): docs/observed.md. Huber's weights (1964, Annals of Mathematical Statistics 35) keep a
disturbed block from tilting the line; the jackknife's interval over blocks (MacKinnon and White 1985, Journal of
Econometrics 29: HC3) holds for noise that grows with the load, and is never narrower than the observed drift of a
request's demand (DRIFT)."""

import math
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import series, student
from loadframe.analysis.arrays import Floats, Whole
from loadframe_watch.observed.records import MissingRows
from loadframe_watch.saturation_of_rows import DRIFT

BLOCK = 2.0
MOST_BLOCKS = 400
"""More add no information, and each is left out in turn."""
FEWEST_BLOCKS = 20
"""The least, also where rows are correlated over a twentieth of the data or more; a note then calls the intervals too
narrow."""
SHORTEST = 4
"""Rows of a block, where there are enough rows: counts at the edge of one window belong to the next."""
REFERENCE_BINS, END_PIECES = 24, 4
FAR = 5.0
"""Rows over this many robust standard deviations from their neighbours at equal load are outliers, and left out."""
MAD = 1.4826
"""Standard deviation of normal values over their median absolute deviation."""
GAP = 5.0
"""A pause this many times the usual one is a gap."""
MISSED = 1.5
"""A pause this many times the usual one lacks at least a row."""
EVEN = 1.2
"""Rows are evenly spaced where the pauses' quartiles differ by less than this factor."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """label: block of each row, (n,), from 0 in time order. rows: of each. tau: in rows."""

    label: Whole
    count: int
    rows: int
    tau: float


def reference(load: Floats, value: Floats) -> Floats:
    """The typical value at the load of each row, (n,): medians of bins of equal count, finer at both ends, joined by
    straight lines. NaN cells are ignored."""
    at, typical = _knots(load, value)
    return np.asarray(np.interp(load, at, typical)) if len(at) else np.full_like(load, np.nan)


def _knots(load: Floats, value: Floats) -> tuple[Floats, Floats]:
    known = np.isfinite(load) & np.isfinite(value)
    order = np.argsort(load[known], kind="stable")
    sorted_load, sorted_value = load[known][order], value[known][order]
    bins = int(np.clip(len(order) // 8, 1, REFERENCE_BINS))
    pieces = [piece for piece in np.array_split(np.arange(len(order)), bins) if len(piece)]
    if len(pieces) > 2:
        ends = [np.array_split(piece, min(END_PIECES, len(piece) // 4 or 1)) for piece in (pieces[0], pieces[-1])]
        pieces = [*ends[0], *pieces[1:-1], *ends[1]]
    at = np.array([np.median(sorted_load[piece]) for piece in pieces])
    typical = np.array([np.median(sorted_value[piece]) for piece in pieces])
    places, first = np.unique(at, return_index=True)
    return places, typical[first] if len(first) else typical


def standardised(load: Floats, value: Floats) -> Floats:
    """Each row's distance from the typical value at its load, in robust standard deviations at that load, (n,), NaN
    where the cell is missing. 0 beyond the outermost loads with a typical value."""
    at, typical = _knots(load, value)
    if not len(at):
        return np.full_like(load, np.nan)
    away = value - np.interp(load, at, typical)
    spread = MAD * reference(load, np.abs(away))
    usual = float(np.nanmedian(spread)) if np.isfinite(spread).any() else 0.0
    least = max(0.1 * usual, 1e-9 * float(np.nanmax(np.abs(value), initial=0.0)), 1e-300)
    inside = (load >= at[0]) & (load <= at[-1])
    return np.asarray(np.where(inside | ~np.isfinite(value), away / np.maximum(spread, least), 0.0))


def blocks(residuals: list[Floats], count: int) -> Blocks:
    """Blocks as long as the most correlated column requires, but at least FEWEST_BLOCKS of them. residuals:
    `standardised` columns, (count,) each."""
    tau = max((series.autocorrelation_time(np.clip(column, -FAR, FAR)) for column in residuals), default=1.0)
    most = max(1, count // FEWEST_BLOCKS)
    rows = int(np.clip(np.ceil(BLOCK * tau), max(min(SHORTEST, most), -(-count // MOST_BLOCKS)), most))
    label = np.arange(count) // rows
    if count % rows and count > rows:  # the remainder at the end belongs to the last whole block
        label = np.minimum(label, count // rows - 1)
    return Blocks(label, int(label[-1]) + 1 if count else 0, rows, tau)


def means(value: Floats, label: Whole, count: int) -> tuple[Floats, Floats]:
    """Mean and number of the known cells of each block, (count,) each; NaN where a block has none."""
    known = np.isfinite(value)
    number = np.bincount(label[known], minlength=count).astype(np.float64)
    total = np.bincount(label[known], weights=value[known], minlength=count)
    return np.divide(total, number, out=np.full(count, np.nan), where=number > 0), number


def missing(time_s: Floats) -> MissingRows:
    """Missing rows between evenly spaced ones; none where rows are not evenly spaced."""
    usual, _ = pauses(time_s)
    between = np.diff(time_s)
    quarters = np.quantile(between, (0.25, 0.75)) if len(between) else np.zeros(2)
    if usual <= 0 or quarters[1] > EVEN * max(float(quarters[0]), 1e-9):
        return MissingRows(usual)
    late = between > MISSED * usual
    if not late.any():
        return MissingRows(usual)
    longest = int(between.argmax())
    return MissingRows(
        usual,
        rows=int(np.round(between[late] / usual - 1).sum()),
        pauses=int(late.sum()),
        seconds=float((between[late] - usual).sum()),
        longest_s=float(between[longest] - usual),
        longest_at_s=float(time_s[longest] + usual),
    )


def pauses(time_s: Floats) -> tuple[float, int]:
    if len(time_s) < 2:
        return 0.0, 0
    between = np.diff(time_s)
    usual = float(np.median(between))
    return usual, int((between > GAP * usual).sum()) if usual > 0 else 0


HUBER = 1.5
ROUNDS = 20
CONFIDENCE = 0.95
FEWEST = 8
"""Blocks with both columns; fewer have no useful interval."""
LEAST_SPREAD = 0.05
"""Block throughputs that vary by less than this share of their mean show no slope."""
LEAST_RISE = 0.003
"""Changes in use by less than this over all throughputs are not attributed to requests: no counter is finer."""


@dataclass(frozen=True, slots=True)
class Line:
    """y = background + slope x with the slope's interval, and the half-width of it that is due to chance."""

    background: float
    slope: float
    low: float
    high: float
    chance: float


def law(x: Floats, y: Floats, weight: Floats) -> Line | None:
    """The line through block means, (n,) each, weight: rows of each. None for few blocks, or where x hardly varies."""
    known = np.isfinite(x) & np.isfinite(y) & (weight > 0)
    x, y, weight = x[known], y[known], weight[known]
    if len(x) < FEWEST or not float(np.std(x)) > LEAST_SPREAD * abs(float(np.mean(x))):
        return None
    robust = weight * _huber(x, y, weight)
    slope, background = map(float, _slopes(x, y, robust))
    left_out = _slopes(x, y, robust[None, :] * (1 - np.eye(len(x))))[0]
    chance = float(student.quantile((1 + CONFIDENCE) / 2, len(x) - 2)) * jackknife_error(left_out)
    half = math.hypot(chance, DRIFT * abs(slope))
    return Line(background, slope, slope - half, slope + half, chance)


def jackknife_error(left_out: Floats) -> float:
    """Standard error of an estimate, from those without each part in turn, (n,)."""
    count = len(left_out)
    return math.sqrt(float(((left_out - left_out.mean()) ** 2).sum()) * (count - 1) / count)


@dataclass(frozen=True, slots=True)
class Growing:
    """Slope of the upper half over that of the lower half; high is infinite where the latter may be 0."""

    ratio: float
    low: float
    high: float


def growing(x: Floats, y: Floats, weight: Floats) -> Growing | None:
    """None unless it is proven that the slope differs between the halves of x."""
    known = np.isfinite(x) & np.isfinite(y) & (weight > 0)
    x, y, weight = x[known], y[known], weight[known]
    if len(x) < 2 * FEWEST:
        return None
    middle = float(np.median(x))
    lower, upper = (law(x[side], y[side], weight[side]) for side in (x <= middle, x >= middle))
    if lower is None or upper is None or lower.slope <= 0 or upper.slope <= 0:
        return None
    if abs(upper.slope - lower.slope) <= math.hypot(upper.chance, lower.chance):
        return None
    # Fieller's interval: all r with (upper - r lower)^2 within the chance of both. 1 is outside, as it was tested.
    square = lower.slope**2 - lower.chance**2
    middle, level = upper.slope * lower.slope, upper.slope**2 - upper.chance**2
    root = math.sqrt(max(middle**2 - square * level, 0.0))
    ratio = upper.slope / lower.slope
    low = level / (middle + root)
    high = (middle + root) / square if square > 0 else math.inf
    return Growing(ratio, max(min(low, ratio), 0.0), max(high, ratio))


def _slopes(x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted least squares by each row of weights, (..., n): slopes and intercepts, (...)."""
    total = np.maximum(weights.sum(axis=-1), 1e-300)
    mean_x, mean_y = weights @ x / total, weights @ y / total
    spread = weights @ x**2 / total - mean_x**2
    product = weights @ (x * y) / total - mean_x * mean_y
    slope = np.divide(product, spread, out=np.zeros_like(total), where=spread > 1e-12 * mean_x**2 + 1e-300)
    return slope, mean_y - slope * mean_x


def _huber(x: Floats, y: Floats, weight: Floats) -> Floats:
    """At most 1, less in proportion for a block further than HUBER robust deviations from the line. Noise is assumed to
    grow with the fit."""
    robust = np.ones(len(x))
    for _ in range(ROUNDS):
        slope, background = map(float, _slopes(x, y, weight * robust))
        fitted = background + slope * x
        size = np.maximum(np.abs(fitted), 0.1 * float(np.abs(fitted).max()) + 1e-12)
        away = np.abs(y - fitted) / size * np.sqrt(weight / weight.mean())
        scale = max(MAD * float(np.median(away)), 1e-9)
        moved = np.minimum(1.0, HUBER * scale / np.maximum(away, 1e-300))
        if np.abs(moved - robust).max() < 1e-4:
            break
        robust = moved
    return robust
