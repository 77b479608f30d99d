"""The Universal Scalability Law (docs/mathematics.md): Gunther (1993, 2007); the form with lambda and the fit by R's
`nls`: Schwartz (2015), Moeding's R package `usl`."""

import math
from itertools import product

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Flags, Floats
from loadframe.model import Scalability

FEWEST_POINTS = 5
"""Three parameters, and two degrees of freedom for their intervals."""
CONFIDENCE = 0.95
MOST_STEPS = 500
LARGEST, LARGEST_KAPPA = 1e12, 1e6
"""Bounds of lambda in units of the highest throughput, of its reciprocal, and of kappa."""


def predict(load: Floats, lambda_: float, sigma: float, kappa: float) -> Floats:
    return lambda_ * load / (1 + sigma * (load - 1) + kappa * load * (load - 1))


def fit(load: Floats, throughput: Floats) -> Scalability:
    """From (n,) loads, FEWEST_POINTS different ones or more, and throughputs (1/s), above zero, with 0 <= sigma <= 1
    and kappa >= 0. Intervals (docs/mathematics.md) are not cut at the bounds; one that includes 0: the term is not
    proven. A parameter on its bound is held there: the others' errors are those of the smaller model. peak_load: None
    where kappa is 0."""
    scale = throughput.max()
    units = np.array([scale, 1.0, 1.0])
    estimate = _least_squares(load, throughput / scale)
    margin = _standard_errors(load, throughput / scale, estimate) * units
    margin *= student.quantile((1 + CONFIDENCE) / 2, len(load) - 3)
    lambda_, sigma, kappa = values = (estimate * units).tolist()
    peak = math.sqrt((1 - sigma) / kappa) if kappa > 0 and sigma < 1 else None
    of_lambda, of_sigma, of_kappa = (
        (value - half, value + half) for value, half in zip(values, margin.tolist(), strict=True)
    )
    return Scalability(lambda_, sigma, kappa, of_lambda, of_sigma, of_kappa, peak)


def _terms(load: Floats) -> Floats:
    """N / X is linear in a = 1 / lambda, b = sigma / lambda, c = kappa / lambda: their factors, (n, 3)."""
    return np.column_stack([np.ones_like(load), load - 1, load * (load - 1)])


def _start(load: Floats, throughput: Floats, free: Flags) -> Floats:
    # A floor on the throughput, as a share of the largest, keeps the division finite; the guess need not be exact.
    terms = _terms(load)[:, free]
    widths = np.maximum(np.abs(terms).max(axis=0), 1e-300)
    guess = np.zeros(3)
    guess[free] = np.linalg.lstsq(terms / widths, load / np.maximum(throughput, 1e-9), rcond=None)[0] / widths
    guess[0] = guess[0] if guess[0] > 0 else 1 / (throughput / load).max()
    return _within_bounds(guess)


def _within_bounds(values: Floats) -> Floats:
    first = min(max(values[0], 1 / LARGEST), LARGEST)
    return np.asarray(np.clip([first, *values[1:]], 0.0, [first, first, LARGEST_KAPPA * first]))


def _least_squares(load: Floats, throughput: Floats) -> Floats:
    """A parameter counts as 0 where 0 fits as well."""
    best, best_cost = np.zeros(3), math.inf
    # Smaller models first: a larger one must fit better than rounding alone could make it.
    for with_sigma, with_kappa in product((False, True), repeat=2):
        free = np.array([True, with_sigma, with_kappa])
        candidate, cost = _solve(load, throughput, free)
        if cost < best_cost * (1 - 1e-9) - 1e-18:
            best, best_cost = candidate, cost
    return best


def _solve(load: Floats, throughput: Floats, free: Flags) -> tuple[Floats, float]:
    """By Levenberg and Marquardt's method: (lambda, sigma, kappa) and half the sum of squares."""
    terms = _terms(load)
    values = _start(load, throughput, free)
    damping, cost = 1e-3, _cost(terms, values, load, throughput)
    for _ in range(MOST_STEPS):
        below = terms @ values
        slopes = -(load / below**2)[:, None] * terms[:, free]
        widths = np.maximum(np.linalg.norm(slopes, axis=0), 1e-300)
        scaled = slopes / widths
        matrix = scaled.T @ scaled
        step = np.linalg.solve(matrix + damping * np.eye(len(matrix)), scaled.T @ (throughput - load / below))
        moved = values.copy()
        moved[free] += step / widths
        moved[0] = moved[0] if moved[0] > 0 else values[0] / 2
        moved = _within_bounds(moved)
        next_cost = _cost(terms, moved, load, throughput)
        if next_cost < cost:
            done = cost - next_cost <= 1e-16 * cost and damping <= 1e-9
            values, cost, damping = moved, next_cost, max(damping / 10, 1e-12)
            if done:
                break
        else:
            damping *= 10
            if damping > 1e12:
                break
    return np.array([1.0, *values[1:]]) / values[0], cost


def _cost(terms: Floats, values: Floats, load: Floats, throughput: Floats) -> float:
    return 0.5 * float(((load / (terms @ values) - throughput) ** 2).sum())


def _standard_errors(load: Floats, throughput: Floats, estimate: Floats) -> Floats:
    lambda_, sigma, kappa = estimate
    below = 1 + sigma * (load - 1) + kappa * load * (load - 1)
    curve = lambda_ * load / below
    jacobian = np.column_stack([load / below, -curve * (load - 1) / below, -curve * load * (load - 1) / below])
    widths = np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
    variance = ((throughput - curve) ** 2).sum() / (len(load) - 3)
    errors = np.empty(3)
    for free in ([True] * 3, [True, sigma > 0, kappa > 0]):
        columns = jacobian[:, free] / widths[free]
        covariance = np.linalg.pinv(columns.T @ columns) / np.outer(widths[free], widths[free])
        errors[free] = np.sqrt(np.maximum(np.diag(covariance) * variance, 0.0))
    return errors
