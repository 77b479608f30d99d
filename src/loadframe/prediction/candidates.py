"""Candidate models of a throughput beyond the measured loads (docs/mathematics.md)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from loadframe.analysis import scalability
from loadframe.analysis.arrays import Floats
from loadframe.model import Observations, Scalability
from loadframe.prediction import system as systems
from loadframe.prediction.system import Kind

ALONE = ("flat", "power", "law", "line")
WITH_RESOURCES = ("flat", "law", "line", "economy", "network")
BOUNDED = ("line", "economy", "network")
NETWORKS, SEED = 40, 20261123
"""Draws: with more, the median moves by less than 1 %."""
SLOPE_SPREAD = 0.15
"""Prior standard deviation of the exponent of a resource's use, around 1."""
USE_ERROR = 0.08
"""Error of the logarithm of a utilisation, in addition to RESOLUTION."""
RESOLUTION = 0.004
RISING = 0.5
"""Least elasticity of a throughput that still rises at the highest loads."""
REGIMES = tuple(f"{kind} {way}" for kind in ("closed", "rate") for way in ("rising", "bent"))
ELASTICITY_SPREAD = 0.25
THROUGHPUT_ERROR = 0.05
SHARPNESS = 6.0
"""How sharply a line of clients turns into its ceiling: (X_line^-p + ceiling^-p)^(-1/p)."""
FURTHEST_CEILING = 10
LAW_SIGMA, LAW_KAPPA = 0.15, 0.0005
"""Prior terms of the law, per client of the lowest load, each known to a factor of e^LAW_SPREAD."""
LAW_SPREAD = 1.5
FITS = 1024


@dataclass(frozen=True, slots=True)
class Seen:
    """Medians at each load, (n,); used: each resource's utilisations. limit: the load at which one runs out, or inf."""

    kind: Kind
    loads: Floats
    throughputs: Floats
    used: Mapping[str, Floats]
    rows: Observations
    limit: float = math.inf

    def before(self, count: int) -> "Seen":
        used = {name: values[:count] for name, values in self.used.items()}
        top = self.loads[count - 1]
        rows = replace(self.rows, rows=tuple(row for row in self.rows.rows if row.load <= top))
        return Seen(self.kind, self.loads[:count], self.throughputs[:count], used, rows, self.limit)


def seen(observations: Observations, kind: Kind, resources: Sequence[str], limit: float = math.inf) -> Seen:
    rows = systems.working(observations)
    by_load: dict[float, list[int]] = {}
    for index, row in enumerate(rows):
        by_load.setdefault(row.load, []).append(index)
    loads = sorted(by_load)

    def medians(values: Sequence[float]) -> Floats:
        return np.array([np.median([values[index] for index in by_load[load]]) for load in loads])

    return Seen(
        kind,
        np.array(loads),
        medians([row.throughput for row in rows]),
        {name: medians([row.utilizations[name] for row in rows]) for name in resources},
        replace(observations, rows=tuple(rows)),
        limit,
    )


def forecasts(data: Seen, loads: Floats, names: Sequence[str]) -> dict[str, Floats]:
    """log X of each candidate at the loads, (L,), constant beyond a limit."""
    within = np.minimum(loads, max(data.limit, data.loads[-1]))
    top, last = math.log(data.throughputs[-1]), data.loads[-1]
    made: dict[str, Callable[[], Floats]] = {
        "flat": lambda: np.full(len(within), top),
        "power": lambda: np.asarray(top + elasticity(data) * np.log(within / last)),
        "law": lambda: _law(data, within),
        "line": lambda: _line(data, within, grows=False),
        "economy": lambda: _line(data, within, grows=True),
        "network": lambda: _network(data, within),
    }
    return {name: made[name]() for name in names}


def least_squares(data: Seen, loads: Floats) -> Floats:
    """The law by plain least squares, log X, (L,): no candidate, but averaged with their forecast."""
    within = np.minimum(loads, max(data.limit, data.loads[-1]))
    if len(data.loads) < scalability.FEWEST_POINTS:
        return _law(data, within)
    law = _least_squares(tuple(data.loads.tolist()), tuple(data.throughputs.tolist()))
    return np.log(np.maximum(scalability.predict(within, law.lambda_, law.sigma, law.kappa), 1e-300))


@lru_cache(maxsize=FITS)
def _least_squares(loads: tuple[float, ...], throughputs: tuple[float, ...]) -> Scalability:
    return scalability.fit(np.array(loads), np.array(throughputs))


def ceilings(data: Seen) -> dict[str, float]:
    """log of each BOUNDED model's maximum; at least what was measured."""
    furthest = data.loads[-1:] * 2.0**FURTHEST_CEILING
    most = (ceiling(data, grows=False), ceiling(data, grows=True), _network(data, furthest)[0])
    best = math.log(data.throughputs.max())
    return {name: max(value, best) for name, value in zip(BOUNDED, most, strict=True)}


def slope(data: Seen) -> float:
    half = len(data.loads) // 2
    return float(np.median(data.throughputs[half:] / data.loads[half:]))


def elasticity(data: Seen) -> float:
    """Each load counts half as much as the next, prior around 1."""
    x, y = np.log(data.loads / data.loads[-1]), np.log(data.throughputs / data.throughputs[-1])
    weight = 0.5 ** np.arange(len(x))[::-1] / THROUGHPUT_ERROR**2
    return _held_near_1(x, y, np.asarray(weight, dtype=np.float64), ELASTICITY_SPREAD)[2]


def _held_near_1(x: Floats, y: Floats, weight: Floats, spread: float) -> tuple[float, float, float]:
    centre, level = (weight * x).sum() / weight.sum(), (weight * y).sum() / weight.sum()
    squares, product = (weight * (x - centre) ** 2).sum(), (weight * (x - centre) * (y - level)).sum()
    return centre, level, (product + 1 / spread**2) / (squares + 1 / spread**2)


def offered(data: Seen, loads: Floats) -> Floats:
    """log X of the most that can be served: of a rate what is offered; of clients inf."""
    if data.kind != "rate":
        return np.full(len(loads), math.inf)
    share = max(1.0, np.median(data.throughputs / data.loads))
    return np.log(share * loads) + systems.AS_OFFERED


def regime(data: Seen) -> str:
    """One of REGIMES."""
    return f"{data.kind} {'rising' if elasticity(data) >= RISING else 'bent'}"


def _law(data: Seen, loads: Floats) -> Floats:
    terms = _law_terms(tuple(data.loads.tolist()), tuple(data.throughputs.tolist()))
    return _law_at(np.array(terms), loads / data.loads[0])


def _law_at(values: Floats, n: Floats) -> Floats:
    return np.asarray(values[0] + np.log(n) - np.log1p(np.exp(values[1]) * (n - 1) + np.exp(values[2]) * n * (n - 1)))


@lru_cache(maxsize=FITS)
def _law_terms(loads: tuple[float, ...], throughputs: tuple[float, ...]) -> tuple[float, ...]:
    """Logarithms, in n = N / N_low, by Levenberg and Marquardt's method with a normal prior."""
    n, y = np.array(loads) / loads[0], np.log(throughputs)
    prior = np.array([y[0], math.log(LAW_SIGMA), math.log(LAW_KAPPA)])
    spread = np.array([3.0, LAW_SPREAD, LAW_SPREAD])

    def residuals(values: Floats) -> Floats:
        return np.concatenate([(_law_at(values, n) - y) / THROUGHPUT_ERROR, (values - prior) / spread])

    values, damping = prior.copy(), 1e-2
    cost = (residuals(values) ** 2).sum()
    for _ in range(60):
        now = residuals(values)
        slopes = np.column_stack([(residuals(values + step) - now) / 1e-5 for step in 1e-5 * np.eye(3)])
        matrix = slopes.T @ slopes
        moved = values - np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), slopes.T @ now)
        next_cost = (residuals(np.clip(moved, -40, 40)) ** 2).sum()
        if next_cost < cost:
            done = cost - next_cost < 1e-9 * cost
            values, cost, damping = np.clip(moved, -40, 40), next_cost, damping / 10
            if done:
                break
        else:
            damping *= 10
            if damping > 1e8:
                break
    return tuple(values.tolist())


def need(data: Seen, name: str, *, grows: bool) -> tuple[float, float]:
    """(log u, b) of a resource's U = u X^b: b = 1, or fitted with a prior around 1."""
    used, x = np.maximum(data.used[name], RESOLUTION / 4), np.log(data.throughputs)
    error = np.hypot(USE_ERROR, RESOLUTION / used)
    weight = 0.5 ** np.arange(len(x))[::-1] / error**2
    y = np.log(used)
    if not grows:
        return (weight * (y - x)).sum() / weight.sum(), 1.0
    centre, level, b = _held_near_1(x, y, weight, SLOPE_SPREAD)
    b = max(b, 0.2)
    return level - b * centre, b


def used_up(data: Seen, name: str, *, grows: bool) -> float:
    log_u, b = need(data, name, grows=grows)
    return -log_u / b


def ceiling(data: Seen, *, grows: bool) -> float:
    return min((used_up(data, name, grows=grows) for name in data.used), default=math.inf)


def _line(data: Seen, loads: Floats, *, grows: bool) -> Floats:
    line = np.log(slope(data) * loads)
    most = max(ceiling(data, grows=grows), np.log(data.throughputs.max()))
    if data.kind == "rate" or not math.isfinite(most):
        return np.asarray(np.minimum(line, most))
    return np.asarray(-np.logaddexp(-SHARPNESS * line, -SHARPNESS * most) / SHARPNESS)


def _network(data: Seen, loads: Floats) -> Floats:
    drawn = systems.draw(data.rows, tuple(data.used), data.kind, NETWORKS, np.random.default_rng(SEED))
    return np.log(np.maximum(np.median(drawn.throughput(loads), axis=0), 1e-300))
