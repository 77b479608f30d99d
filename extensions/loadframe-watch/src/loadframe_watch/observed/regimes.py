"""When a system changed: from some moment on a column is different at equal load (a release, a neighbour). Binary
segmentation (Scott and Knott 1974; Vostrikova 1981) over BATCHES stretches of time, compared at equal load
(docs/observed.md). The standard errors include the upper bound of the correlation of neighbouring stretches (`series`),
from the residuals *within* the two sides: the change itself does not hide it, and a daily cycle is a correlation, not a
change."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import series
from loadframe.analysis.arrays import Floats, Whole
from loadframe_watch.observed.blocks import MAD, reference
from loadframe_watch.observed.records import RegimeChange

BATCHES = 48
SHORTEST = 6
"""Batches on either side of a change."""
BINS = 12
LEAST_CHANGE = 0.08
THRESHOLD = 4.5
"""The highest of about forty correlated t-values of equal batches, by simulation: benchmarks/observed.py."""
LEAST_COMMON = 0.3
"""Sides that share less than this of their loads cannot be distinguished from a curve that is not straight."""
MOST_CHANGES = 6


@dataclass(frozen=True, slots=True)
class _Sums:
    """Number of rows by batch and bin, and sum of their logarithms, (batches, BINS)."""

    number: Floats
    total: Floats

    def of(self, first: int, last: int) -> "_Sums":
        return _Sums(self.number[first:last], self.total[first:last])


def changes(time_s: Floats, load: Floats, columns: Mapping[str, Floats]) -> tuple[RegimeChange, ...]:
    """Every proven change, in time order; of columns that change together each is listed. load and columns: (n,)."""
    label, judged = _judged(load, columns)
    regime_changes: list[RegimeChange] = []
    for name, sums in judged:
        places = _split(sums, 0)
        ends = [0, *places, len(sums.number)]
        for index, at in enumerate(places, 1):
            difference, _ = _difference(sums.of(ends[index - 1], at), sums.of(at, ends[index + 1]))
            regime_changes.append(RegimeChange(_moment(time_s, label, at), name, float(np.exp(difference))))
    return tuple(sorted(regime_changes, key=lambda change: change.at_s)[:MOST_CHANGES])


def recent(time_s: Floats, load: Floats, columns: Mapping[str, Floats]) -> tuple[RegimeChange, ...]:
    """Changes so late that fewer than SHORTEST batches follow: too few to show their own scatter, so that of the rows
    before is assumed. At most one per column: the largest proven one, as a longer stretch includes rows of before."""
    label, judged = _judged(load, columns)
    regime_changes = []
    for name, sums in judged:
        batches = len(sums.number)
        proven = [
            (_difference(sums.of(0, at), sums.of(at, batches))[0], at)
            for at in range(batches - SHORTEST + 1, batches)
            if _strength(sums.of(0, at), sums.of(at, batches), few_after=True) >= THRESHOLD
        ]
        if proven:
            difference, at = max(proven, key=lambda change: abs(change[0]))
            regime_changes.append(RegimeChange(_moment(time_s, label, at), name, float(np.exp(difference))))
    return tuple(regime_changes)


def _moment(time_s: Floats, label: Whole, batch: int) -> float:
    return float(time_s[int(np.searchsorted(label, batch))])


def _judged(load: Floats, columns: Mapping[str, Floats]) -> tuple[Whole, list[tuple[str, _Sums]]]:
    """The batch of each row, and the sums of each column that can be judged; none where the rows are too few."""
    batches = min(BATCHES, len(load) // 4)
    label = np.arange(len(load)) * batches // max(len(load), 1)
    logs = {name: _logarithms(load, values) for name, values in columns.items()} if batches >= 2 * SHORTEST else {}
    return label, [(name, _sums(load, known, label, batches)) for name, known in logs.items() if known is not None]


def _logarithms(load: Floats, values: Floats) -> Floats | None:
    """Clipped far from the typical value at the load; NaN where missing. None for a column near 0."""
    typical = reference(load, values)
    scale = float(np.nanmedian(values)) if np.isfinite(values).any() else 0.0
    usable = np.isfinite(values) & (typical > 0.02 * scale) & (load > 0)
    if not scale > 0 or usable.sum() < 0.5 * len(load):
        return None
    usual = np.log(np.where(usable, typical, 1.0))
    away = np.full(len(load), np.nan)
    away[usable] = np.log(np.maximum(values[usable], 1e-3 * typical[usable])) - usual[usable]
    spread = max(5 * MAD * float(np.nanmedian(np.abs(away - np.nanmedian(away)))), 0.7)
    middle = float(np.nanmedian(away))
    return np.asarray(np.clip(away, middle - spread, middle + spread) + usual)


def _sums(load: Floats, logs: Floats, label: Whole, batches: int) -> _Sums:
    known = np.isfinite(logs)
    edges = np.unique(np.quantile(load[known], np.linspace(0, 1, BINS + 1)[1:-1]))
    cell = label[known] * BINS + np.searchsorted(edges, load[known], side="right")
    # Within a bin the load still varies: its effect by the curve is removed.
    flat = logs[known] - np.log(np.maximum(load[known], 1e-300)) * _slopes(load[known], logs[known], edges)
    number = np.bincount(cell, minlength=batches * BINS).astype(np.float64)
    total = np.bincount(cell, weights=flat, minlength=batches * BINS).astype(np.float64)
    return _Sums(number.reshape(batches, BINS), total.reshape(batches, BINS))


def _slopes(load: Floats, logs: Floats, edges: Floats) -> Floats:
    """d log value / d log load in the bin of each row."""
    bins, x = np.searchsorted(edges, load, side="right"), np.log(np.maximum(load, 1e-300))
    slopes = np.zeros(BINS)
    for bin_ in np.unique(bins):
        mine = bins == bin_
        away = x[mine] - x[mine].mean()
        spread = float((away**2).sum())
        slopes[bin_] = float(np.clip((away * logs[mine]).sum() / spread, -2, 2)) if spread > 1e-9 else 0.0
    return slopes[bins]


def _split(sums: _Sums, offset: int) -> list[int]:
    count = len(sums.number)
    places = range(SHORTEST, count - SHORTEST + 1)
    strengths = [_strength(sums.of(0, at), sums.of(at, count)) for at in places]
    if not strengths or max(strengths) < THRESHOLD:
        return []
    at = places[int(np.argmax(strengths))]
    return [*_split(sums.of(0, at), offset), offset + at, *_split(sums.of(at, count), offset + at)]


def _difference(before: _Sums, after: _Sums) -> tuple[float, float]:
    """In logarithms, of the later side at equal load; and the share (0..1) of the rows' weight at common loads."""
    first, second = before.number.sum(axis=0), after.number.sum(axis=0)
    weight = np.divide(first * second, first + second, out=np.zeros(BINS), where=(first > 0) & (second > 0))
    means = [
        np.divide(side.total.sum(axis=0), number, out=np.zeros(BINS), where=number > 0)
        for side, number in ((before, first), (after, second))
    ]
    total = float(weight.sum())
    whole = float(first.sum() * second.sum() / max(first.sum() + second.sum(), 1.0))
    if total <= 0 or whole <= 0:
        return 0.0, 0.0
    return float((weight * (means[1] - means[0])).sum()) / total, total / whole


def _strength(before: _Sums, after: _Sums, *, few_after: bool = False) -> float:
    """In standard errors; 0 where the difference is below LEAST_CHANGE, or the sides share few loads."""
    difference, common = _difference(before, after)
    if abs(difference) < LEAST_CHANGE or common < LEAST_COMMON:
        return 0.0
    left = [_residuals(side) for side in ((before,) if few_after else (before, after))]
    if min(len(residuals) for residuals in left) < SHORTEST:
        return 0.0
    sides = series.means(*left, surely=True)
    variance = float(sum(side.variance for side in sides))
    if few_after:
        worth = float(sides[0].worth)
        variance += variance * worth / max(1.0, len(after.number) * worth / len(left[0]))
    error = float(np.sqrt(variance / common))
    return abs(difference) / error if error > 0 else float("inf")


def _residuals(side: _Sums) -> Floats:
    """Mean of each batch with rows around the side's own means of the bins."""
    number = side.number.sum(axis=0)
    means = np.divide(side.total.sum(axis=0), number, out=np.zeros(BINS), where=number > 0)
    rows = side.number.sum(axis=1)
    left = (side.total - side.number * means).sum(axis=1)
    return np.asarray(left[rows > 0] / rows[rows > 0])
