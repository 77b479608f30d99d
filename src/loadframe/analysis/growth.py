"""Whether a request costs more the more were served before it, or the more time has passed, whatever the load.

The levels of a sweep come in random order in each block, so what grows from step to step is not the load. The cost of a
request at level l after x is

    cost = a_l (1 + k x)

with x the requests served so far, or the time; k >= 0 is fitted by least squares of the logarithms, each level with a
height of its own. A machine drifts, too, and what drifts keeps time with x. So the growth must be proved of the levels'
own noise (F), of the changes from step to step, as if all noise were a random walk (t), at every level by itself, and
be larger than drifts are. benchmarks/growth.py has how often which noise errs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis import student

Numbers = NDArray[np.float64]
By = Literal["requests", "time"]

ERROR = 0.005
"""Of each of the two tests, of each of the two explanations."""
LEAST = 1.3
"""Machines were seen to drift by a tenth within a run; a service whose cost grows so little is not told from one."""
FEWEST_STEPS = 8
FEWEST_LEVELS = 2
APART = 4.0
"""Twice the difference in log-likelihood from which on one explanation is told from the other (Akaike: 7 to 1)."""
GRID = np.concatenate([[0.0], np.geomspace(0.02, 200.0, 160)])
"""Growths over all of x that are tried: from 2 % to 200 times."""


@dataclass(frozen=True, slots=True)
class Growth:
    """by: what the cost follows. times: the cost at the last step over that at the first. told_apart: whether the other
    explanation is much less likely. first, last: the requests served, or seconds, at the first and the last step."""

    by: By
    times: float
    told_apart: bool
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class _Fit:
    """growth: log(1 + k x) at each step; squares: of what it leaves. proved: by both tests."""

    growth: Numbers
    squares: float
    proved: bool


def growth(
    levels: Sequence[float], costs: Sequence[float], served: Sequence[float], times_s: Sequence[float]
) -> Growth | None:
    """From steps in the order in which they were taken: level, cost of a request (any unit), requests served before it,
    and when (s). None where no growth is proved, and for fewer than FEWEST_STEPS steps or FEWEST_LEVELS levels, each
    taken twice. ValueError for costs that are not positive, and where the numbers of values differ."""
    level, cost = np.asarray(levels, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    axes = {"requests": np.asarray(served, dtype=np.float64), "time": np.asarray(times_s, dtype=np.float64)}
    if not all(len(each) == len(level) for each in (cost, *axes.values())) or (cost <= 0).any():
        raise ValueError("each step needs a level, a positive cost, a count of requests and a time")
    known = [one for one in np.unique(level) if (level == one).sum() >= 2]
    if len(level) < FEWEST_STEPS or len(known) < FEWEST_LEVELS or len(known) < len(np.unique(level)):
        return None
    logs = np.log(cost)
    fits: dict[By, _Fit] = {"requests": _fit(level, logs, axes["requests"]), "time": _fit(level, logs, axes["time"])}
    best: By = "requests" if fits["requests"].squares <= fits["time"].squares else "time"
    other: By = "time" if best == "requests" else "requests"
    found = fits[best]
    times = math.exp(float(found.growth[-1] - found.growth[0]))
    if not found.proved or times < LEAST or not _at_every_level(level, logs):
        return None
    apart = len(logs) * math.log(max(fits[other].squares, 1e-12) / max(found.squares, 1e-12)) >= APART
    return Growth(best, times, apart, float(axes[best][0]), float(axes[best][-1]))


def _fit(level: Numbers, logs: Numbers, x: Numbers) -> _Fit:
    span = float(x.max() - x.min())
    if span <= 0:
        return _Fit(np.zeros_like(logs), math.inf, False)
    share = (x - x.min()) / span
    shapes = np.log1p(GRID[:, None] * share)
    left = _centred(level, logs - shapes)
    squares = (left**2).sum(axis=1)
    best = int(squares.argmin())
    freedom = len(logs) - len(np.unique(level)) - 1
    if best == 0 or freedom < 1:
        return _Fit(shapes[best], float(squares[best]), False)
    noise = max(float(squares[best]) / freedom, 1e-12)
    # Of one parameter F is the square of t, and only growth is looked for.
    explained = math.sqrt(max(float(squares[0] - squares[best]), 0.0) / noise)
    proved = explained > float(student.quantile(1 - ERROR, freedom)) and _by_changes(level, logs, shapes[best])
    return _Fit(shapes[best], float(squares[best]), proved)


def _centred(level: Numbers, values: Numbers) -> Numbers:
    """Values (..., steps) less the mean of their level."""
    left = values.copy()
    for one in np.unique(level):
        mine = level == one
        left[..., mine] -= left[..., mine].mean(axis=-1, keepdims=True)
    return left


def _by_changes(level: Numbers, logs: Numbers, shape: Numbers) -> bool:
    """Whether the changes from step to step, beside those of the level, follow the growth: least squares of
    differences, which a random walk leaves without correlation."""
    others = np.unique(level)[1:]
    design = np.column_stack([shape, *((level == one).astype(np.float64) for one in others)])
    steps, changes = np.diff(design, axis=0), np.diff(logs)
    freedom = len(changes) - steps.shape[1]
    if freedom < 2 or np.linalg.matrix_rank(steps) < steps.shape[1]:
        return False
    weights, *_ = np.linalg.lstsq(steps, changes, rcond=None)
    noise = float(((changes - steps @ weights) ** 2).sum()) / freedom
    error = math.sqrt(max(noise, 1e-12) * float(np.linalg.inv(steps.T @ steps)[0, 0]))
    return float(weights[0]) > float(student.quantile(1 - ERROR, freedom)) * error


def _at_every_level(level: Numbers, logs: Numbers) -> bool:
    """Whether the last step of each level cost more than its first."""
    return all(logs[level == one][-1] > logs[level == one][0] for one in np.unique(level))
