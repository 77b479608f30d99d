"""The effect of autocorrelation on the certainty of a mean: correlation of neighbours (`neighbours`, `worth`, `means`),
batch means (`batched`, `independent`), and how long rows are correlated (`autocorrelation_time`, `rows_alike`). numpy
is imported where it is used: a watch's lasting process imports this for `independent`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from loadframe.analysis.arrays import Floats

Row: TypeAlias = tuple[float, ...]
MOST_BATCHES = 20
"""Batches of a long sample (Schmeiser 1982, Operations Research 30(3): 10 to 30 suffice for any interval)."""
SEEN = 1.28
"""A correlation is seen from this many standard errors of white noise (one-sided 10 %)."""
SEEN_TREND = 3.0
"""Likewise a trend: one in 400 series without a trend shows one."""
BOUND = 1.645
"""One-sided 95 %, for the upper bound of a correlation; more below FULL_LENGTH."""
FULL_LENGTH = 14
HIGHEST = 0.99
"""A series with more correlation is a random walk without a mean."""
MOST_ALIKE = 0.9
"""A short series cannot distinguish more from a random walk."""
WINDOW = 5.0
"""Autocorrelation times after which the sum of correlations ends (Sokal 1997, Monte Carlo Methods, 3)."""
UNCORRELATED = 0.5
"""Residuals are correlated from this r sqrt(n) on, r their lag-1 correlation, whose standard error is 1 / sqrt(n)
(Bartlett 1946), plus 1 / n for each fitted parameter. By simulation (docs/mathematics.md, "Over time")."""


def neighbours(*series: Sequence[float] | Floats) -> float:
    """Lag-1 correlation of one or several series of residuals, in time order; 0 where all are zero."""
    power = sum(value * value for residuals in series for value in residuals)
    products = sum(sum(map(mul, residuals, residuals[1:])) for residuals in series)
    return float(products / power) if power > 0 else 0.0


def pooled(samples: Sequence[Floats]) -> tuple[float, int]:
    """Sum of squares of all samples, each around its own mean, and its degrees of freedom."""
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in samples)
    return squares, sum(len(values) - 1 for values in samples)


def worth(correlation: float, *, most: float = MOST_ALIKE) -> float:
    """Independent values per value; the lag-1 correlation counts as `most` at most."""
    r = min(max(correlation, 0.0), most)
    return (1 - r) / (1 + r)


def independent(
    rows: Sequence[Row], residuals: Callable[[Sequence[Row]], Sequence[float] | None], *, fitted: int, fewest: int
) -> Sequence[Row]:
    """Rows (x, y, ...) in time order, averaged over neighbours (without the oldest of an odd number) until residuals of
    a fit with `fitted` parameters are uncorrelated (batch means; Law, "Simulation Modeling and Analysis", 9.5.3). Fewer
    than `fewest` where correlation remains."""
    while len(rows) >= fewest and (left := residuals(rows)) is not None:
        if sum(value * value for value in left) <= 1e-12 * sum(row[1] * row[1] for row in rows):
            break
        if (neighbours(left) + fitted / len(left)) * math.sqrt(len(left)) <= UNCORRELATED:
            break
        pairs = zip(rows[len(rows) % 2 :: 2], rows[len(rows) % 2 + 1 :: 2], strict=True)
        rows = [tuple((a + b) / 2 for a, b in zip(first, second, strict=True)) for first, second in pairs]
    return rows


@dataclass(frozen=True, slots=True)
class Mean:
    """worth: effective number of values; (...) each."""

    value: Floats
    variance: Floats
    worth: Floats
    drift: Floats


def batched(values: Floats, reduced: Callable[..., Floats] | None = None) -> Floats:
    """Means (or `reduced`) of at most MOST_BATCHES batches, (..., n) -> (..., batches)."""
    import numpy as np

    length, reduced = values.shape[-1], np.mean if reduced is None else reduced
    if length <= MOST_BATCHES:
        return values
    edges = np.linspace(0, length, MOST_BATCHES + 1).astype(int)
    return np.stack([reduced(values[..., start:end], axis=-1) for start, end in pairwise(edges)], axis=-1)


def means(*series: Floats, fitted: int = 0, surely: bool = False) -> tuple[Mean, ...]:
    """The Mean of each of several series (..., n_i), n_i >= 3, that share their noise (docs/mathematics.md, "Verdicts
    on samples"; Bayley and Hammersley 1946, JRSS Suppl. 8(2); Tafazzoli and Wilson 2011, IIE Transactions 43(2)).
    fitted: parameters beyond the means. surely: as in `correlation`."""
    residuals = [values - values.mean(axis=-1, keepdims=True) for values in series]
    r = correlation(residuals, surely=surely)
    degrees = sum(values.shape[-1] - 1 for values in series)
    lost = degrees / max(degrees - fitted, 1)
    return tuple(_mean(values, left, r, lost) for values, left in zip(series, residuals, strict=True))


def correlation(residuals: list[Floats], *, surely: bool = False) -> Floats:
    """Lag-1 correlation pooled over series of residuals, (...), at most HIGHEST: 0 where none is SEEN; `surely`: its
    upper bound. Around its own mean it is too small by (1 + 3 r) / n (Marriott and Pope 1954, Biometrika 41)."""
    import numpy as np

    products = np.asarray(sum((values[..., 1:] * values[..., :-1]).sum(axis=-1) for values in residuals))
    squares = np.asarray(sum((values**2).sum(axis=-1) for values in residuals))
    total = sum(values.shape[-1] for values in residuals)
    r = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0)
    if not surely:
        return np.where(r > SEEN / np.sqrt(total), np.minimum(r, HIGHEST), 0.0)
    length = total / len(residuals)
    r = r + (1 + 3 * r) / length
    r = r + BOUND * max(1.0, FULL_LENGTH / length) * np.sqrt(np.maximum(1 - r**2, 0.0) / total)
    return np.asarray(np.clip(r, 0.0, HIGHEST))


def _mean(values: Floats, residuals: Floats, r: Floats, lost: float) -> Mean:
    length = values.shape[-1]
    f = (1 + r) / (1 - r) - 2 * r * (1 - r**length) / (length * (1 - r) ** 2)  # the sum
    squares = (residuals**2).sum(axis=-1) * lost
    return Mean(values.mean(axis=-1), squares / (length - f) * f / length, length / f, drift(values))


def drift(values: Floats) -> Floats:
    """How far the level of a series (..., n) may have moved: trend plus two standard errors; 0 where none is seen."""
    import numpy as np

    length = values.shape[-1]
    time = np.arange(length) - (length - 1) / 2
    spread = time @ time
    residuals = values - values.mean(axis=-1, keepdims=True)
    slope = np.abs(residuals @ time) / spread
    left = np.maximum((residuals**2).sum(axis=-1) - slope**2 * spread, 0.0) / max(length - 2, 1)
    error = np.sqrt(left / spread)
    return np.where(slope > SEEN_TREND * error, (slope + 2 * error) * length, 0.0)


def autocorrelation_time(values: Floats) -> float:
    """tau = 1 + 2 sum rho_k, at least 1; NaN left out."""
    import numpy as np

    known = values[np.isfinite(values)]
    if len(known) < 8:
        return 1.0
    away = known - known.mean()
    size = 1 << (2 * len(away) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(away, size)) ** 2
    power = np.fft.irfft(spectrum, size)[: len(away)]
    if power[0] <= 0:
        return 1.0
    tau = 2 * np.cumsum(power / power[0]) - 1
    wide = np.arange(len(tau)) >= WINDOW * tau
    return float(max(1.0, tau[int(wide.argmax()) if wide.any() else len(tau) - 1]))


def rows_alike(left: Floats) -> float:
    """Upper bound of the rows that are worth an independent one, by the variance of batches: noise may hide correlation
    over hours. left: residuals in time order, (n,). Infinite for too few rows (benchmarks/watch_intervals.py)."""
    power = float(left.var())
    if len(left) < 8 or power <= 0:
        return 1.0
    (mean,) = means(batched(left), surely=True)
    return max(1.0, len(left) * float(mean.variance) / power) if mean.worth >= 2 else math.inf
