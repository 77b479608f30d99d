"""A request's demand for a resource, and its growth with the load: draws from the posterior (docs/mathematics.md). For
one resource (U: share of its servers in use, u = D / m) the utilisation law with a background and growth is
    U_i = U0 + u X_i (1 + c g(N_i)),          g(N) = (h(N) - h(N_low)) / (h(N_sat) - h(N_low))
Several models are weighted by their evidence (Bayesian model averaging). All but the error of U_i, which is on a grid,
is normal, so that evidence and draws are exact. Far below saturation c keeps its prior: the interval carries a growth
that the data cannot exclude."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from loadframe.analysis.arrays import Floats, Whole


@dataclass(frozen=True, slots=True)
class Growth:
    """A shape h of growth. mean: prior mean until saturation; ends: no growth beyond that."""

    h: Callable[[Floats], Floats]
    mean: float
    ends: bool = False


GROWTHS = (
    Growth(np.log, 0.1),
    Growth(np.asarray, 0.1),
    Growth(np.square, -0.2, ends=True),
    Growth(lambda loads: -1 / np.sqrt(loads), -0.3),
)
STEADY_PRIOR = 0.35
"""Prior probability that a request needs the same at every load."""
GROWTH_DEVIATIONS = {0.25: 0.8, 1.0: 0.2}
"""If it grows: deviation of the growth around its mean -> its prior. Group commit makes growth negative; more than a
half is rare."""
BACKGROUND_PRIOR, BACKGROUND_DEVIATION = 0.25, 0.02
"""Prior probability that a resource is used without requests, and its utilisation then."""
RESOLUTION = 0.003
"""No utilisation is known better: they are counted in ticks and rounded."""
ERRORS = np.geomspace(0.003, 0.3, 24)
TYPICAL_ERROR, ERROR_SPREAD = 0.035, 0.7
"""Prior median of a window's error, and the deviation of its logarithm: three windows hardly show their own."""
LEAST_LEFT = 0.08
"""Floor: economies of scale were seen to leave a quarter to an eleventh of a single request's demand."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Draws of u(N) = U / X beyond the background, seconds of the whole resource per request. base, growth, background:
    (S,); shape: (S,), index of the growth's shape, -1 for none. error: (S,), relative, of one window. low, saturation:
    N_low and N_sat."""

    base: Floats
    growth: Floats
    shape: Whole
    background: Floats
    error: Floats
    low: float
    saturation: float

    def at(self, loads: Floats) -> Floats:
        return self.base[:, None] * self.grown(loads)

    def grown(self, loads: Floats) -> Floats:
        """u at these loads as a share of u at the lowest load."""
        shares = np.ones((len(self.base), len(loads)))
        for index, growth in enumerate(GROWTHS):
            mine = self.shape == index
            way = _way(growth, np.asarray(loads, dtype=np.float64), self.low, self.saturation)
            shares[mine] += self.growth[mine, None] * way
        return np.maximum(shares, LEAST_LEFT)


def draw(
    loads: Floats,
    throughputs: Floats,
    utilizations: Floats,
    saturation: float,
    count: int,
    random: np.random.Generator,
) -> Demand:
    """`count` draws for a resource from its measurements, (n,) each, throughputs above zero. saturation: N_sat."""
    low = float(loads.min())
    far = max(saturation, 1.5 * low)
    scale = np.hypot(utilizations, RESOLUTION)
    guess = float((utilizations / throughputs).mean()) or RESOLUTION / float(throughputs.max())  # it was never in use
    growths = [(-1, 0.0), *itertools.product(range(len(GROWTHS)), GROWTH_DEVIATIONS)]  # -1: none
    models = [
        _weigh(loads, throughputs, utilizations, scale, guess, shape, deviation, background, low, far)
        for (shape, deviation), background in itertools.product(growths, [False, True])
    ]
    weights = np.exp(np.concatenate([model.evidence for model in models]) - max(m.evidence.max() for m in models))
    chosen = random.choice(len(weights), size=count, p=weights / weights.sum())
    base, growth, background, shape = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64)
    for index, model in enumerate(models):
        mine = np.flatnonzero(chosen // len(ERRORS) == index)
        drawn = model.coefficients(chosen[mine] % len(ERRORS), random)
        base[mine] = np.maximum(drawn[:, 0], 1e-3 * guess)
        growth[mine] = drawn[:, 1] / base[mine]
        background[mine] = drawn[:, 2]
        shape[mine] = model.shape
    return Demand(base, growth, shape, background, ERRORS[chosen % len(ERRORS)], low, far)


@dataclass(frozen=True, slots=True)
class _Model:
    """At every error of the grid. evidence: (E,) logarithms, prior included; mean: (E, p); root: (E, p, p), of the
    covariance; free: which of (u, u c, U0) it has."""

    shape: int
    free: tuple[int, ...]
    evidence: Floats
    mean: Floats
    root: Floats

    def coefficients(self, errors: Whole, random: np.random.Generator) -> Floats:
        """Draws of (u, u c, U0), one for each index of an error: (len(errors), 3)."""
        noise = random.standard_normal((len(errors), len(self.free)))
        drawn = np.zeros((len(errors), 3))
        drawn[:, self.free] = self.mean[errors] + np.einsum("npq,nq->np", self.root[errors], noise)
        return drawn


def _weigh(
    loads: Floats,
    throughputs: Floats,
    utilizations: Floats,
    scale: Floats,
    guess: float,
    shape: int,
    deviation: float,
    background: bool,
    low: float,
    far: float,
) -> _Model:
    columns, prior_mean, prior_deviation, free = [throughputs], [guess], [10 * guess], [0]
    if shape >= 0:
        way = _way(GROWTHS[shape], loads, low, far)
        columns.append(throughputs * way)
        prior_mean.append(GROWTHS[shape].mean * guess)
        prior_deviation.append(deviation * guess)
        free.append(1)
    if background:
        columns.append(np.ones_like(loads))
        prior_mean.append(0.0)
        prior_deviation.append(BACKGROUND_DEVIATION)
        free.append(2)
    # In units of the prior's deviation, so that the matrices are well conditioned.
    unit = np.array(prior_deviation)
    centre = np.array(prior_mean) / unit
    design = np.column_stack(columns) * unit / scale[:, None]
    target = utilizations / scale
    precision = np.eye(len(free)) + (design.T @ design)[None] / ERRORS[:, None, None] ** 2
    covariance = np.linalg.inv(precision)
    pull = centre + (design.T @ target)[None] / ERRORS[:, None] ** 2
    mean = np.einsum("epq,eq->ep", covariance, pull)
    misfit = ((target - mean @ design.T) ** 2).sum(axis=1) / ERRORS**2 + ((mean - centre) ** 2).sum(axis=1)
    evidence = -0.5 * (misfit + np.linalg.slogdet(precision)[1]) - len(loads) * np.log(ERRORS)
    prior = STEADY_PRIOR if shape < 0 else (1 - STEADY_PRIOR) / len(GROWTHS) * GROWTH_DEVIATIONS[deviation]
    evidence += error_prior() + np.log(prior * (BACKGROUND_PRIOR if background else 1 - BACKGROUND_PRIOR))
    return _Model(shape, tuple(free), evidence, mean * unit, unit[:, None] * _root(covariance))


def _root(covariance: Floats) -> Floats:
    """Roots of covariances, (E, p, p), without the negative eigenvalues of rounding (Higham, Linear Algebra 103,
    1988)."""
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh((covariance + covariance.swapaxes(1, 2)) / 2)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def error_prior() -> Floats:
    return np.asarray(-0.5 * (np.log(ERRORS / TYPICAL_ERROR) / ERROR_SPREAD) ** 2)


def _way(growth: Growth, loads: Floats, low: float, far: float) -> Floats:
    """g(N): 0 at the lowest load, 1 at saturation; 0 where the growth overflows a double."""
    with np.errstate(over="ignore"):
        ends = growth.h(np.array([low, far]))
    way = (growth.h(loads) - ends[0]) / (ends[1] - ends[0])
    return np.asarray(np.minimum(way, 1.0) if growth.ends else way)
