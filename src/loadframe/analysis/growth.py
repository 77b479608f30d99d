"""Whether a request costs more the more were served before, or the more time has passed: a_l (1 + k x) at level l, x
the requests served, or the time (docs/mathematics.md)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Floats

By = Literal["requests", "time"]
Of = Literal["response", "cpu"]
ERROR = 0.025
"""Error of each of the two explanations, one-sided."""
LEAST = 1.5
"""Shared machines drifted by a fifth within a run: less growth than half is not distinguished from that."""
FEWEST_STEPS = 8
FEWEST_LEVELS = 2
APART = 4.0
"""Least difference that separates the explanations, in twice the log-likelihood (Akaike: 7 to 1)."""
POWERS = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Powers of x that are tried: searching what is kept may take less than linear time, or more."""
WALKS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 30.0)
"""Variances of a random walk's step that are tried, relative to the white noise."""
PLAUSIBLE = 1.5
"""Log-likelihood below that of the likeliest mixture of noise."""
LEAST_NOISE = 1e-4
"""Least noise of a logarithm: what rounding leaves."""
GRID = np.concatenate([[0.0], np.geomspace(0.05, 100.0, 60)])
"""Growths over all of x that are tried: from 5 % to 100 times."""


@dataclass(frozen=True, slots=True)
class Growth:
    """times: last step's cost over the first's. distinct: the other explanation is much less likely. of: the kind of
    cost, a request's response time or CPU time."""

    by: By
    times: float
    distinct: bool
    first: float
    last: float
    of: Of = "response"


def growth(
    levels: Sequence[float], costs: Sequence[float], served: Sequence[float], times_s: Sequence[float]
) -> Growth | None:
    """From steps in the order taken: level, cost of a request (above zero, any unit), requests served before it, time
    (s). None where no growth is proved, and for fewer than FEWEST_STEPS steps or FEWEST_LEVELS levels, each taken
    twice."""
    level, cost = np.asarray(levels, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    axes: dict[By, Floats] = {
        "requests": np.asarray(served, dtype=np.float64),
        "time": np.asarray(times_s, dtype=np.float64),
    }
    known = [load for load in np.unique(level) if (level == load).sum() >= 2]
    if len(level) < FEWEST_STEPS or len(known) < FEWEST_LEVELS or len(known) < len(np.unique(level)):
        return None
    logs = np.log(cost)
    left = {by: _freely(level, logs, x) for by, x in axes.items()}
    best, other = sorted(axes, key=lambda by: left[by])
    grown, design = _fitted(level, logs, axes[best])
    times = math.exp(grown[-1] - grown[0])
    dearer = all(logs[level == load][-1] > logs[level == load][0] for load in known)  # at each level, in the end
    if times < LEAST or not dearer or not _proved(design, logs):
        return None
    freedom = max(1, len(logs) - 2 * len(known) - 1)
    apart = freedom * math.log(max(left[other], 1e-12) / max(left[best], 1e-12)) >= APART
    return Growth(best, times, apart, float(axes[best][0]), float(axes[best][-1]))


def _shapes(x: Floats, power: float = 1.0) -> Floats:
    """(GRID, n); no growth where x does not change."""
    span = np.ptp(x) or math.inf
    return np.asarray(np.log1p(GRID[:, None] * ((x - x.min()) / span) ** power))


def _fitted(level: Floats, logs: Floats, x: Floats) -> tuple[Floats, Floats]:
    """The growth of the logarithm at each step, at the mean level, and its design."""
    far = np.log(level) - np.log(level).mean()
    heights = [(level == load).astype(np.float64) for load in np.unique(level)]
    tried = []
    for shape in _shapes(x)[1:]:
        # The growth, more of it at higher levels (requests wait for others'), and each level's height.
        design = np.column_stack([shape, far * shape, *heights])
        weights, *_ = np.linalg.lstsq(design, logs, rcond=None)
        tried.append((float(((logs - design @ weights) ** 2).sum()), weights[0] * shape, design))
    _, grown, design = min(tried, key=itemgetter(0))
    return grown, design


def _freely(level: Floats, logs: Floats, x: Floats) -> float:
    if np.ptp(x) <= 0:
        return math.inf
    sums = []
    for power in POWERS:
        rest = logs - _shapes(x, power)
        of_levels = [rest[:, level == load] for load in np.unique(level)]
        sums.append(sum(((of - of.mean(axis=1, keepdims=True)) ** 2).sum(axis=1).min() for of in of_levels))
    return float(min(sums))


def _proved(design: Floats, logs: Floats) -> bool:
    """In every mixture of white noise and random walk that the residuals allow."""
    count, columns = design.shape
    if count - columns < 2 or np.linalg.matrix_rank(design) < columns:
        return False
    walk = np.minimum.outer(np.arange(1, count + 1), np.arange(1, count + 1)).astype(np.float64)
    judged = [_under(np.eye(count) + share * walk, design, logs) for share in WALKS]
    likeliest = max(likelihood for likelihood, _ in judged)
    quantile = student.quantile(1 - ERROR, count - columns)
    return all(t > quantile for likelihood, t in judged if likelihood >= likeliest - PLAUSIBLE)


def _under(covariance: Floats, design: Floats, logs: Floats) -> tuple[float, float]:
    """Restricted log-likelihood of noise with this covariance up to its scale, and t of the first weight."""
    root = np.linalg.cholesky(covariance)
    white, values = np.linalg.solve(root, design), np.linalg.solve(root, logs)
    inner = white.T @ white
    weights = np.linalg.solve(inner, white.T @ values)
    freedom = len(values) - design.shape[1]
    noise = max(((values - white @ weights) ** 2).sum() / freedom, LEAST_NOISE**2)
    likelihood = -np.log(np.diag(root)).sum() - np.linalg.slogdet(inner)[1] / 2
    likelihood -= freedom / 2 * math.log(noise)
    return likelihood, float(weights[0]) / math.sqrt(noise * np.linalg.inv(inner)[0, 0])
