"""The candidates' weights, and the likely error of their common forecast (docs/mathematics.md, "Weights" and
"Forecast"). Errors are per doubling."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.prediction import candidates
from loadframe.prediction.candidates import Seen

BASE = 0.3
FLOOR = 0.03
"""No forecast is known better than the difference of two windows."""
LEAST_ERROR = 0.01
POWER = 3.0
TRUST = 6.0
"""The library counts as this many of the study's own forecasts."""
BACKTESTS, FEWEST = 3, 2
"""This many of the last loads are forecast, from FEWEST loads or more."""


@dataclass(frozen=True, slots=True)
class Weighed:
    weights: Mapping[str, float]
    errors: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Pooled:
    """apart: the candidates' weighted deviation; scale: of the maximum's error: (L,)."""

    log_x: Floats
    apart: Floats
    scale: Floats


def backtests(data: Seen, names: Sequence[str]) -> dict[str, list[float]]:
    """Errors per doubling of forecasts of the last loads from those before."""
    errors: dict[str, list[float]] = {name: [] for name in names}
    count = len(data.loads)
    for cut in range(max(FEWEST, count - BACKTESTS), count):
        foretold = candidates.forecasts(data.before(cut), data.loads[cut:], names)
        doublings = np.log2(data.loads[cut:] / data.loads[cut - 1])
        for name in names:
            wrong = np.abs(foretold[name] - np.log(data.throughputs[cut:]))
            errors[name] += (wrong / (doublings + BASE)).tolist()
    return errors


def weigh(own: Mapping[str, Sequence[float]], library: Mapping[str, float], trust: float = TRUST) -> Weighed:
    errors = {
        name: math.exp(
            (trust * math.log(library[name] + LEAST_ERROR) + sum(math.log(error + LEAST_ERROR) for error in mine))
            / (trust + len(mine))
        )
        for name, mine in own.items()
    }
    return Weighed(shares(errors), errors)


def shares(errors: Mapping[str, float]) -> dict[str, float]:
    weights = {name: (error + LEAST_ERROR) ** -POWER for name, error in errors.items()}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def pooled(
    estimates: Mapping[str, Floats], doublings: Floats, weighed: Weighed, least_squares: Floats | None = None
) -> Pooled:
    """estimates: log X of every candidate; doublings: r; least_squares: log X of the law, to average the median with,
    None for a maximum; (L,)."""
    names = [name for name in estimates if name in weighed.weights]
    weight = np.array([weighed.weights[name] for name in names])
    weight = weight / weight.sum()
    values = np.stack([estimates[name] for name in names])
    order = np.argsort(values, axis=0)
    ordered, mine = np.take_along_axis(values, order, 0), weight[order]
    middles = np.cumsum(mine, axis=0) - mine / 2
    log_x = np.array([np.interp(0.5, middles[:, at], ordered[:, at]) for at in range(values.shape[1])])
    if least_squares is not None:
        log_x = (log_x + least_squares) / 2
    apart = np.sqrt(weight @ (values - log_x) ** 2)
    error = weight @ np.array([weighed.errors[name] for name in names])
    return Pooled(log_x, apart, FLOOR + error * (np.maximum(doublings, 0.0) + BASE) + apart)


def most(data: Seen, errors: Mapping[str, float]) -> tuple[float, float, float]:
    """(log of the highest throughput, log of the load that reaches it in proportion, scale of both). errors: of the
    ceilings, in the library."""
    ceilings = {name: np.array([value]) for name, value in candidates.ceilings(data).items() if math.isfinite(value)}
    weighed = Weighed(shares({name: errors[name] for name in ceilings}), errors)
    slope, top = math.log(candidates.slope(data)), math.log(data.loads[-1])
    middle = pooled(ceilings, np.zeros(1), weighed).log_x[0]
    doublings = np.array([(middle - slope - top) / math.log(2)])
    guess = pooled(ceilings, doublings, weighed)
    return middle, middle - slope, guess.scale[0]
