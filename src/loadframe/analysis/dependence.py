"""What neighbouring values that resemble one another do to the certainty of a mean.

Arrays have the series in time order along their last axis; everything before it is a collection of series, so that a
benchmark can ask about thousands at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

BOUND = 1.645
"""The correlation is taken as its one-sided 95 % bound: taken as estimated it is too small in half of the cases, and
then ten values with correlation 0.8 err three times as often as promised (the decision journal has the counts)."""

FULL_LENGTH = 14
"""Shorter series hardly show their correlation: the bound is raised in proportion."""

HIGHEST = 0.99
"""A series that resembles itself even more is a walk; it has no mean to speak of."""

SEEN_DRIFT = 1.28
"""The number of standard errors of white noise from which on a straight trend counts as seen (two-sided 20 %): one that
is not seen passes for a difference where one sample was taken after the other."""


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean of a series, the variance of that mean, how many independent values it is worth, and the trend that is seen
    from the first value to the last (0 where none is), shape (...) each."""

    value: Numbers
    variance: Numbers
    worth: Numbers
    drift: Numbers


def means(*series: Numbers, fitted: int = 0, bound: float = BOUND) -> tuple[Mean, ...]:
    """The Mean of each of several series (..., n_i), n_i >= 3, that share one noise. fitted: how many values beyond the
    means themselves were estimated from them before. bound: as in `correlation`.

    With r the correlation of neighbours, f = 1 + 2 sum_k (1 - k/n) r^k values are worth one; the mean's variance is
    s^2 f / n, where s^2 = sum of squares / (n - f), since correlated values scatter less around their own mean
    (Bayley and Hammersley 1946, JRSS Suppl. 8(2); batch means are corrected so by Tafazzoli and Wilson 2011, IIE
    Transactions 43(2)).
    """
    residuals = [each - each.mean(axis=-1, keepdims=True) for each in series]
    r = correlation(residuals, bound)
    degrees = sum(each.shape[-1] - 1 for each in series)
    lost = degrees / max(degrees - fitted, 1)
    return tuple(_mean(each, left, r, lost) for each, left in zip(series, residuals, strict=True))


def correlation(residuals: list[Numbers], bound: float = BOUND) -> Numbers:
    """Upper bound of the correlation of neighbours, pooled over series of residuals, shape (...), 0..HIGHEST.

    bound: how many standard errors above the estimate it lies, in series of FULL_LENGTH and more. A series' correlation
    around its own mean is too small by (1 + 3 r) / n (Marriott and Pope 1954, Biometrika 41).
    """
    products = np.asarray(sum((each[..., 1:] * each[..., :-1]).sum(axis=-1) for each in residuals))
    squares = np.asarray(sum((each**2).sum(axis=-1) for each in residuals))
    total = sum(each.shape[-1] for each in residuals)
    length = total / len(residuals)
    r = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0)
    r = r + (1 + 3 * r) / length
    r = r + bound * max(1.0, FULL_LENGTH / length) * np.sqrt(np.maximum(1 - r**2, 0.0) / total)
    clipped: Numbers = np.clip(r, 0.0, HIGHEST)
    return clipped


def inflation(r: Numbers, length: int) -> Numbers:
    """f = 1 + 2 sum_k (1 - k/n) r^k: how many of n values are worth one independent one."""
    k = np.arange(1, length)
    total: Numbers = 1 + 2 * ((1 - k / length) * r[..., None] ** k).sum(axis=-1)
    return total


def _mean(values: Numbers, residuals: Numbers, r: Numbers, lost: float) -> Mean:
    length = values.shape[-1]
    f = inflation(r, length)
    squares = (residuals**2).sum(axis=-1) * lost
    return Mean(
        value=values.mean(axis=-1),
        variance=squares / (length - f) * f / length,
        worth=length / f,
        drift=_drift(residuals, squares),
    )


def _drift(residuals: Numbers, squares: Numbers) -> Numbers:
    """The straight trend over the whole series, in size; 0 where it is not seen."""
    length = residuals.shape[-1]
    time = np.arange(length) - (length - 1) / 2
    slope = residuals @ time / (time @ time)
    left = np.maximum(squares - slope**2 * (time @ time), 0.0) / max(length - 2, 1)
    error = np.sqrt(left / (time @ time))
    size: Numbers = np.where(np.abs(slope) > SEEN_DRIFT * error, np.abs(slope) * length, 0.0)
    return size
