"""A request's demand for a resource, and its growth with the load: draws from the posterior (docs/mathematics.md,
"Demands", with these symbols). All but the error of U_i, which is on a grid, is normal, so that evidence and draws are
exact."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from loadframe.analysis.arrays import Floats, Whole


@dataclass(frozen=True, slots=True)
class Growth:
    """A shape h. mean: prior mean until saturation; ends: no growth beyond that."""

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
"""Economies of scale were seen to leave a quarter to an eleventh of a single request's demand."""


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
    loads: Floats, throughputs: Floats, utilizations: Floats, saturation: float, count: int, random: np.random.Generator
) -> Demand:
    """From a resource's measurements, (n,) each, throughputs above zero. saturation: N_sat."""
    low = loads.min()
    far = max(saturation, 1.5 * low)
    scale = np.hypot(utilizations, RESOLUTION)
    guess = (utilizations / throughputs).mean() or RESOLUTION / throughputs.max()  # it was never in use
    growths = [(-1, 0.0), *itertools.product(range(len(GROWTHS)), GROWTH_DEVIATIONS)]  # -1: none
    models = []
    for (index, deviation), in_background in itertools.product(growths, [False, True]):
        terms = {0: (throughputs, guess, 10 * guess)}
        chance = BACKGROUND_PRIOR if in_background else 1 - BACKGROUND_PRIOR
        if index < 0:
            chance *= STEADY_PRIOR
        else:
            way = _way(GROWTHS[index], loads, low, far)
            terms[1] = throughputs * way, GROWTHS[index].mean * guess, deviation * guess
            chance *= (1 - STEADY_PRIOR) / len(GROWTHS) * GROWTH_DEVIATIONS[deviation]
        if in_background:
            terms[2] = np.ones_like(loads), 0.0, BACKGROUND_DEVIATION
        models.append(_weigh(index, terms, utilizations, scale, chance))
    evidence = np.concatenate([model.evidence for model in models])
    weights = np.exp(evidence - evidence.max())
    chosen = random.choice(len(weights), size=count, p=weights / weights.sum())
    drawn, shape = np.zeros((count, 3)), np.zeros(count, dtype=np.int64)
    for number, model in enumerate(models):
        mine = np.flatnonzero(chosen // len(ERRORS) == number)
        drawn[mine], shape[mine] = model.coefficients(chosen[mine] % len(ERRORS), random), model.shape
    base = np.maximum(drawn[:, 0], 1e-3 * guess)
    return Demand(base, drawn[:, 1] / base, shape, drawn[:, 2], ERRORS[chosen % len(ERRORS)], low, far)


@dataclass(frozen=True, slots=True)
class _Model:
    """At every error. evidence: (E,) logarithms, prior included; mean: (E, p); root: (E, p, p), of the covariance;
    free: which of (u, u c, U0) it has."""

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
    shape: int, terms: dict[int, tuple[Floats, float, float]], utilizations: Floats, scale: Floats, chance: float
) -> _Model:
    """terms: of each free coefficient its column, prior mean and deviation. chance: prior probability."""
    columns, means, deviations = zip(*terms.values(), strict=True)
    # In units of the prior's deviation, so that the matrices are well conditioned.
    unit = np.array(deviations)
    centre = np.array(means) / unit
    design = np.column_stack(columns) * unit / scale[:, None]
    target = utilizations / scale
    precision = np.eye(len(terms)) + (design.T @ design)[None] / ERRORS[:, None, None] ** 2
    covariance = np.linalg.inv(precision)
    pull = centre + (design.T @ target)[None] / ERRORS[:, None] ** 2
    mean = np.einsum("epq,eq->ep", covariance, pull)
    misfit = ((target - mean @ design.T) ** 2).sum(axis=1) / ERRORS**2 + ((mean - centre) ** 2).sum(axis=1)
    evidence = -0.5 * (misfit + np.linalg.slogdet(precision)[1]) - len(scale) * np.log(ERRORS)
    evidence += error_prior() + np.log(chance)
    return _Model(shape, tuple(terms), evidence, mean * unit, unit[:, None] * _root(covariance))


def _root(covariance: Floats) -> Floats:
    """(E, p, p), without the negative eigenvalues of rounding (Higham, Linear Algebra 103, 1988)."""
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh((covariance + covariance.swapaxes(1, 2)) / 2)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def error_prior() -> Floats:
    return -0.5 * (np.log(ERRORS / TYPICAL_ERROR) / ERROR_SPREAD) ** 2


def _way(growth: Growth, loads: Floats, low: float, far: float) -> Floats:
    """g(N): 0 at the lowest load, 1 at saturation; 0 where the growth overflows a double."""
    with np.errstate(over="ignore"):
        ends = growth.h(np.array([low, far]))
    way = (growth.h(loads) - ends[0]) / (ends[1] - ends[0])
    return np.asarray(np.minimum(way, 1.0) if growth.ends else way)
