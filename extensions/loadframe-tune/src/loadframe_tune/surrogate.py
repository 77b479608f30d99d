"""What trials show of settings: a Gaussian process over them.

The covariance is additive (Duvenaud, Nickisch and Rasmussen 2011, NIPS 24): every setting has an effect of its own, and
pairs of settings that have one may have another together,
    k(x, x') = sum_i a_i^2 k_i + c^2 sum_{i<j} a_i a_j k_i k_j,     k_i = (1 + sqrt(3) r) exp(-sqrt(3) r)
(Matern 3/2) with r = |x_i - x_i'| / LENGTH and x_i from 0 to 1, so that a few trials which change several settings at
once separate the effects. On top come a drift, exp(-|t - t'| / DRIFT) in the number of the trial, and noise.

Values are log throughput against the start: what adds up there multiplies the throughput. Amplitudes, noise and drift
have the highest posterior density over the grids below. The posterior mean is shrunken towards the start, the more the
fewer trials it rests on, against the winner's curse."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

LENGTH = 1.0
"""Length scale of a setting, as a share of the range of its values."""
DRIFT = 12.0
"""Length scale of the machine's own changes, in trials."""
AMPLITUDES = (0.01, 0.05, 0.12, 0.25, 0.5)
"""A setting's effect (standard deviation of log throughput); without evidence PRIOR_AMPLITUDE."""
GRIDS = {"interaction": (0.3, 1.0, 2.0), "noise": (0.01, 0.02, 0.04, 0.08, 0.15, 0.3), "drift": (0.0, 0.03, 0.1)}
PRIOR_AMPLITUDE, PRIOR_NOISE = 0.2, 0.05
SPREAD = 1.0
"""Standard deviation of the logarithms of amplitudes and noise around these, before any trial."""
PASSES = 2
DEVIATIONS = np.linspace(-8, 8, 65)
SHARES = np.exp(-(DEVIATIONS**2) / 2) / np.exp(-(DEVIATIONS**2) / 2).sum()
"""Quadrature of a trial's outcome: standard deviations from its expectation, and their probabilities."""


@dataclass(frozen=True, slots=True)
class Belief:
    """amplitudes: of each setting; interaction: c; noise, drift: standard deviations of log throughput."""

    amplitudes: tuple[float, ...]
    interaction: float = 1.0
    noise: float = PRIOR_NOISE
    drift: float = 0.03


class Surrogate:
    """Fitted to trials. points: positions from 0 to 1, shape (n, d); any two values of a setting without an order are
    equally far apart (`ordered`). values: log throughput against the start, shape (n,). belief: the initial one."""

    def __init__(self, points: Numbers, values: Numbers, *, ordered: Sequence[bool], belief: Belief) -> None:
        self._points, self._values = points, values
        self._ordered = np.array(ordered)
        self._parts = self._alike(points, points)
        trials = np.arange(len(values))
        self._lag = np.exp(-np.abs(trials[:, None] - trials[None, :]) / DRIFT)
        self.belief = self._fit(belief)
        self._factor = self._cholesky(self.belief)
        self._weights = np.linalg.solve(self._factor.T, self._half(values))

    def mean(self, points: Numbers) -> Numbers:
        """Log throughput against the start, shape (m,)."""
        return np.asarray(self._between(points) @ self._weights)

    def gains(self, points: Numbers, incumbent: Numbers) -> tuple[Numbers, Numbers]:
        """Expected gain of each point over the incumbent, and its standard deviation, in logarithms."""
        both = np.vstack([incumbent[None, :], points])
        mean, variance, covariance = self._posterior(both, incumbent[None, :])
        difference = np.maximum(variance + variance[0] - 2 * covariance[:, 0], 0.0)
        return (mean - mean[0])[1:], np.sqrt(difference)[1:]

    def knowledge_gradient(self, points: Numbers, tried: Numbers) -> Numbers:
        """Expected rise of the highest mean, of the tried points and the point itself, by a trial at each point, shape
        (m,): Frazier, Powell and Dayanik 2009, INFORMS Journal on Computing 21(4)."""
        mean, variance, covariance = self._posterior(points, tried)
        shown = np.sqrt(variance + self.belief.noise**2)
        before = self.mean(tried)
        moved = before[:, None] + (covariance / shown[:, None])[:, :, None] * DEVIATIONS
        own = mean[:, None] + (variance / shown)[:, None] * DEVIATIONS
        rises = np.maximum(moved.max(axis=1), own) - moved[:, np.argmax(before)]
        return np.asarray(rises @ SHARES)

    def _posterior(self, points: Numbers, others: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Mean and variance of the points, shape (m,), and their covariance with the others, (m, k)."""
        cross = self._between(points)
        half = self._half(cross.T)
        own = self._covariance(self._alike(points[:1], points[:1]), self.belief)[0]
        variance = np.maximum(own - (half**2).sum(axis=0), 0.0)
        before = self._covariance(self._alike(points, others), self.belief)
        return cross @ self._weights, variance, before - half.T @ self._half(self._between(others).T)

    def _half(self, right: Numbers) -> Numbers:
        return np.asarray(np.linalg.solve(self._factor, right))

    def _alike(self, points: Numbers, other: Numbers) -> Numbers:
        """k_i for each setting, shape (d, n, m)."""
        apart = np.abs(points.T[:, :, None] - other.T[:, None, :])
        apart = np.where(self._ordered[:, None, None], apart, (apart > 0).astype(float))
        scaled = math.sqrt(3) * apart / LENGTH
        return np.asarray((1 + scaled) * np.exp(-scaled))

    @staticmethod
    def _covariance(parts: Numbers, belief: Belief) -> Numbers:
        amplitudes = np.array(belief.amplitudes)
        alone = np.tensordot(amplitudes**2, parts, axes=1)
        squares = np.tensordot(amplitudes**2, parts**2, axes=1)
        pairs = (np.tensordot(amplitudes, parts, axes=1) ** 2 - squares) / 2
        return np.asarray(alone + belief.interaction**2 * pairs)

    def _between(self, points: Numbers) -> Numbers:
        return self._covariance(self._alike(points, self._points), self.belief)

    def _cholesky(self, belief: Belief) -> Numbers:
        own = belief.drift**2 * self._lag + belief.noise**2 * np.eye(len(self._values))
        return np.asarray(np.linalg.cholesky(self._covariance(self._parts, belief) + own), dtype=np.float64)

    def _fit(self, belief: Belief) -> Belief:
        density = self._density(belief)
        for part in PASSES * (*GRIDS, *range(len(belief.amplitudes))):
            for other in _others(belief, part):
                other_density = self._density(other)
                if other_density > density:
                    belief, density = other, other_density
        return belief

    def _density(self, belief: Belief) -> float:
        factor = self._cholesky(belief)
        half = np.linalg.solve(factor, self._values)
        likelihood = -0.5 * float(half @ half) - float(np.log(np.diag(factor)).sum())
        logarithms = [math.log(amplitude / PRIOR_AMPLITUDE) for amplitude in belief.amplitudes]
        logarithms.append(math.log(belief.noise / PRIOR_NOISE))
        return likelihood - 0.5 * sum((logarithm / SPREAD) ** 2 for logarithm in logarithms)


def _others(belief: Belief, part: int | str) -> list[Belief]:
    if isinstance(part, str):
        return [replace(belief, **{part: value}) for value in GRIDS[part]]  # type: ignore[arg-type]
    before, after = belief.amplitudes[:part], belief.amplitudes[part + 1 :]
    return [replace(belief, amplitudes=(*before, value, *after)) for value in AMPLITUDES]
