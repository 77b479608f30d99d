"""The Universal Scalability Law, fitted by plain nonlinear least squares.

X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)): Gunther (1993, 2007 "Guerrilla Capacity Planning"); the
form with lambda and the fit by R's `nls`: Schwartz, "Practical Scalability Analysis with the Universal Scalability
Law" (2015), Moeding's R package `usl`. Standard errors are those of nls: s^2 (J'J)^-1 with n - 3 degrees of freedom.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import student
from loadframe.model import Scalability

FEWEST_POINTS = 5
"""Three parameters and at least two degrees of freedom for their intervals."""

CONFIDENCE = 0.95


def predict(load: NDArray[np.float64], lambda_: float, sigma: float, kappa: float) -> NDArray[np.float64]:
    """Throughput (1/s) of the law at each load."""
    curve: NDArray[np.float64] = lambda_ * load / (1 + sigma * (load - 1) + kappa * load * (load - 1))
    return curve


def fit(load: NDArray[np.float64], throughput: NDArray[np.float64]) -> Scalability:
    """The law fitted to (n,) loads and (n,) throughputs (1/s), with 0 <= sigma <= 1 and kappa >= 0.

    Intervals are estimate -+ t(0.975, n - 3) standard errors and are not cut at the bounds, so that the standard
    errors can be had back from them; one that includes 0 says that the term is not proven. A parameter that lies on
    its bound is held there: the others' errors are those of the smaller model, its own interval that of the full one.
    peak_load = sqrt((1 - sigma) / kappa), None where kappa is 0. Raises ValueError for fewer than 5 different loads,
    or values that are not finite and positive.
    """
    load, throughput = np.asarray(load, dtype=np.float64), np.asarray(throughput, dtype=np.float64)
    if len(np.unique(load)) < FEWEST_POINTS:
        raise ValueError(f"{len(np.unique(load))} different loads; the scalability law needs {FEWEST_POINTS}")
    if not (np.isfinite(load).all() and np.isfinite(throughput).all() and (load > 0).all() and (throughput > 0).all()):
        raise ValueError("the scalability law needs loads and throughputs that are finite and above zero")
    scale = float(throughput.max())
    estimate = _least_squares(load, throughput / scale)
    errors = _standard_errors(load, throughput / scale, estimate) * np.array([scale, 1.0, 1.0])
    lambda_, sigma, kappa = float(estimate[0] * scale), float(estimate[1]), float(estimate[2])
    margin = errors * float(student.quantile((1 + CONFIDENCE) / 2, len(load) - 3))
    peak = math.sqrt((1 - sigma) / kappa) if kappa > 0 and sigma < 1 else None
    return Scalability(
        lambda_=lambda_,
        sigma=sigma,
        kappa=kappa,
        lambda_interval=(lambda_ - float(margin[0]), lambda_ + float(margin[0])),
        sigma_interval=(sigma - float(margin[1]), sigma + float(margin[1])),
        kappa_interval=(kappa - float(margin[2]), kappa + float(margin[2])),
        peak_load=peak,
    )


def _start(load: NDArray[np.float64], throughput: NDArray[np.float64]) -> NDArray[np.float64]:
    """Linear first guess: N / X = 1/lambda (1 + sigma (N - 1) + kappa N (N - 1)), coefficients not negative."""
    # Only a first guess: the throughput's floor, as a share of the largest, keeps the division finite.
    from scipy.optimize import nnls

    columns = np.column_stack([np.ones_like(load), load - 1, load * (load - 1)])
    widths = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    coefficients = nnls(columns / widths, load / np.maximum(throughput, 1e-9))[0] / widths
    if coefficients[0] <= 0:
        return np.array([float((throughput / load).max()), 0.1, 1e-4])
    return np.array(
        [1 / coefficients[0], min(coefficients[1] / coefficients[0], 1.0), coefficients[2] / coefficients[0]]
    )


def _least_squares(load: NDArray[np.float64], throughput: NDArray[np.float64]) -> NDArray[np.float64]:
    """Best (lambda, sigma, kappa) within the bounds; a parameter counts as 0 where 0 fits as well."""
    start = _start(load, throughput)
    best, best_cost = start, math.inf
    # Smaller models first: a larger one must fit better than rounding alone could make it.
    for with_sigma, with_kappa in product((False, True), repeat=2):
        free = np.array([True, with_sigma, with_kappa])
        candidate, cost = _solve(load, throughput, start, free)
        if cost < best_cost * (1 - 1e-9) - 1e-18:
            best, best_cost = candidate, cost
    return best


def _solve(
    load: NDArray[np.float64], throughput: NDArray[np.float64], start: NDArray[np.float64], free: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float]:
    from scipy.optimize import least_squares

    upper = np.array([np.inf, 1.0, np.inf])

    def residual(values: NDArray[np.float64]) -> NDArray[np.float64]:
        full = np.zeros(3)
        full[free] = values
        return predict(load, *full) - throughput

    first = np.clip(start, [1e-12, 1e-6, 1e-12], [np.inf, 1 - 1e-6, np.inf])
    solution = least_squares(
        residual,
        first[free],
        bounds=(np.zeros(3)[free], upper[free]),
        x_scale=np.maximum(first[free], 1e-9),
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
        max_nfev=2000,
    )
    values = np.zeros(3)
    values[free] = solution.x
    return values, float(solution.cost)


def _standard_errors(
    load: NDArray[np.float64], throughput: NDArray[np.float64], estimate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Standard errors of (lambda, sigma, kappa): roots of the diagonal of s^2 (J'J)^-1."""
    lambda_, sigma, kappa = (float(value) for value in estimate)
    below = 1 + sigma * (load - 1) + kappa * load * (load - 1)
    curve = lambda_ * load / below
    jacobian = np.column_stack([load / below, -curve * (load - 1) / below, -curve * load * (load - 1) / below])
    widths = np.maximum(np.linalg.norm(jacobian, axis=0), 1e-300)
    variance = float(((throughput - curve) ** 2).sum()) / (len(load) - 3)
    free = np.array([True, sigma > 0, kappa > 0])
    covariance = np.linalg.pinv((jacobian / widths).T @ (jacobian / widths)) / np.outer(widths, widths)
    full: NDArray[np.float64] = np.sqrt(np.maximum(np.diag(covariance) * variance, 0.0))
    if free.all():
        return full
    smaller = jacobian[:, free] / widths[free]
    reduced = np.linalg.pinv(smaller.T @ smaller) / np.outer(widths[free], widths[free])
    full[free] = np.sqrt(np.maximum(np.diag(reduced) * variance, 0.0))
    return full
