"""Where the warm-up ends: MSER-5 on a binned throughput series, guarded against noise and slow climbs
(docs/mathematics.md)."""

import math
from dataclasses import dataclass

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.analysis.series import neighbours, worth
from loadframe.analysis.student import quantile

BATCH = 5
"""Bins per batch, as in MSER-5."""
SHORTEST_BATCHES = 6
"""Fewer batches (after the floor) cannot show whether the series has settled."""
SHORTEST_TAIL = 3
WINDOW = 3
"""Batches that must agree with the settled part."""
MEANINGFUL_SHARE = 0.02
"""A head that differs from the tail by less than this share is kept."""
STANDARD_ERRORS, BOUND_ERRORS, LATE_ERRORS = 3.0, 4.0, 7.0
"""Standard errors by which a head must differ from the tail; beyond the bound; for a later change, whose place was
searched for."""
CLIMBS = 0.99
"""A series climbs if its line rises more steeply than by chance with this probability: MSER misses a slow approach."""
MISSING = 0.05
"""Share of the final level that the mean after a cut may lack, by the best exponential approach."""
PACES = np.geomspace(0.05, 3, 13)
"""Time constants that are tried, in lengths of the series."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    warmup_s: float
    settled: bool


def mser(values: Floats) -> Floats:
    """MSER(d) = sum over i >= d of (z_i - mean_d)^2 / (k - d)^2, for every truncation d of the k values."""
    left = np.arange(len(values), 0, -1, dtype=np.float64)
    centred = values - values.mean()
    tail_sum = np.cumsum(centred[::-1])[::-1]
    tail_square = np.cumsum(centred[::-1] ** 2)[::-1]
    return np.maximum(tail_square - tail_sum**2 / left, 0.0) / left**2


def detect(throughput: Floats, bin_s: float, *, floor_s: float) -> WarmUp:
    """The warm-up: at least `floor_s`, at most half of the series (1/s per bin of `bin_s` seconds). Not settled where
    the level changes, or MSER-5's minimum lies, beyond that bound, where a climb leaves too much to be reached, or with
    fewer than 30 bins after the floor. What is like the settled part is kept: MSER alone cuts flat noise anywhere."""
    series = np.asarray(throughput, dtype=np.float64)
    floor_bins = int(np.ceil(floor_s / bin_s - 1e-9))
    batches = max(len(series) - floor_bins, 0) // BATCH
    if batches < SHORTEST_BATCHES:
        return WarmUp(floor_s, settled=False)
    # Batches are counted from the floor; the incomplete last one is left out.
    means = series[floor_bins : floor_bins + batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    cut = int(np.argmin(mser(means)[: batches - SHORTEST_TAIL + 1]))
    tail = means[min(cut, batches // 2) :]
    time = np.arange(len(tail), dtype=np.float64)
    time -= time.mean()
    residuals = tail - tail.mean() - time * (time @ tail) / (time @ time)
    steady = _Steady(float(tail.mean()), _long_run_variance(residuals), len(tail))
    batch_s = BATCH * bin_s
    bound_s = max(floor_s, len(series) * bin_s / 2)
    bound = min(int((bound_s - floor_s) / batch_s + 1e-9), batches - SHORTEST_TAIL)
    late = any(_changes(means, at) for at in range(bound + 1, batches - SHORTEST_TAIL + 1))
    if late or (cut > bound and steady.differs(means[bound : bound + WINDOW], BOUND_ERRORS)):
        return WarmUp(bound_s, settled=False)
    last = min(cut, bound)
    # MSER overshoots where noise makes a later start look calmer; the first calm window is early enough.
    windows = ((d, (means[d : d + 1], means[d : d + WINDOW])) for d in range(last))
    first = next((d for d, both in windows if not any(map(steady.differs, both))), last)
    after = series[floor_bins:]
    if straight(after[np.newaxis]).rises(CLIMBS) and missing(after, first * BATCH) > MISSING:
        return WarmUp(bound_s, settled=False)
    return WarmUp(floor_s + first * batch_s, settled=True)


def missing(values: Floats, cut: int) -> float:
    """The share of the level, approached exponentially from below, that the mean of values[cut:] lacks; else 0."""
    time = np.linspace(0, 1, len(values))
    shapes = np.exp(-time / PACES[:, np.newaxis])
    centred = shapes - shapes.mean(axis=1, keepdims=True)
    sizes = (centred @ (values - values.mean())) / (centred**2).sum(axis=1)
    best = int(np.argmax(sizes**2 * (centred**2).sum(axis=1)))
    lacking = -float(sizes[best]) * float(shapes[best, cut:].mean())
    level = float(values[cut:].mean()) + lacking
    return max(lacking / level, 0.0) if level > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """rise: from end to end; error: its standard error, with `freedom`; level: the mean."""

    rise: float
    error: float
    freedom: float
    level: float

    def rises(self, probability: float) -> bool:
        if self.freedom < 1:
            return False
        return self.rise > max(float(quantile(probability, self.freedom)) * self.error, MEANINGFUL_SHARE * self.level)


def straight(series: Floats) -> Line:
    """The common line of series, each around its own level: (s, n), n at least 8; errors count the correlation of
    neighbours (docs/mathematics.md, "Warm-up")."""
    count, length = series.shape
    time = np.linspace(-0.5, 0.5, length)
    squares = float(time @ time)
    centred = series - series.mean(axis=1, keepdims=True)
    rise = float((centred @ time).mean()) / squares
    residuals = centred - centred @ time[:, np.newaxis] / squares * time
    power = float((residuals**2).sum())
    level = float(series.mean())
    if power <= 0:
        return Line(rise, 0.0, float(count * (length - 2)), level)
    repeats = 1 / worth((length * neighbours(*residuals) + 2) / max(length - 4, 1))
    freedom = count * (length / repeats - 2)
    variance = power / max(count * (length - 2 * repeats), 1.0) * repeats
    return Line(rise, math.sqrt(variance / (count * squares)), freedom, level)


@dataclass(frozen=True, slots=True)
class _Steady:
    level: float
    variance: float
    count: int

    def differs(self, window: Floats, errors: float = STANDARD_ERRORS) -> bool:
        """By the window's median, so that one stall does not decide."""
        difference = abs(float(np.median(window)) - self.level)
        error = math.sqrt(self.variance * (1 / len(window) + 1 / self.count))
        return difference > max(errors * error, MEANINGFUL_SHARE * abs(self.level))


def _changes(means: Floats, at: int) -> bool:
    after = means[at:]
    before = means[max(at - max(len(after), 2 * WINDOW), 0) : at]
    residuals = np.concatenate([before - before.mean(), after - after.mean()])
    variance = _long_run_variance(residuals)
    error = math.sqrt(variance * (1 / len(before) + 1 / len(after)))
    level = float(after.mean())
    return abs(level - float(before.mean())) > max(LATE_ERRORS * error, MEANINGFUL_SHARE * abs(level))


def _long_run_variance(residuals: Floats) -> float:
    correlation = neighbours(residuals)
    # Short series around their own mean hide some of it (Marriott and Pope 1954, Biometrika 41).
    correlation += (1 + 3 * correlation) / len(residuals)
    return float((residuals**2).sum()) / max(len(residuals) - 2, 1) / worth(correlation)
