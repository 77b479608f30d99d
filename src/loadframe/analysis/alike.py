"""How many rows of a short series are worth one independent row: surely not fewer, where a day is all that there is.

The integrated autocorrelation time of what is left of a fit is too low on few rows: the fit and the mean take away what
lasts longest, and the lag correlation of n values is too small by about (1 + 4 rho) / n (Kendall 1954, Biometrika 41;
2 / n more for the line). So it is looked for in batch means of several lengths, as what lasts for hours may stand
behind noise from row to row, it is made larger by that and by a part of its own standard error, and the longest counts.
Of 60 simulated days each, with deviations that last for a quarter of an hour, 0.8 or 2.7 hours, intervals of 95 % held
in 96 to 100 % of those told, and with the time as it is in 68 to 88 % (benchmarks/watch_intervals.py --seed 5000).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from loadframe.analysis.observed_blocks import autocorrelation_time

BATCHES = (24, 48, 96)
"""How many means the series is cut into, in turn."""
SURELY = 0.5
"""Standard errors of the lag correlation that are added."""
MOST = 0.98
"""From this correlation on no time can be told: the series may wander."""


def rows_alike(left: NDArray[np.float64]) -> float:
    """How many rows are worth one independent row. left: (n,), in time order, what a straight line leaves of each row,
    none of it missing. At least 1; infinite where the rows cannot tell."""
    power = float(left.var())
    if len(left) < 8 or power <= 0:
        return 1.0
    found = autocorrelation_time(left)
    for count in BATCHES:
        size = max(1, len(left) // count)
        means = left[len(left) % size :].reshape(-1, size).mean(axis=1)
        found = max(found, size * float(means.var()) / power * _time(means))
    return found


def _time(means: NDArray[np.float64]) -> float:
    """(1 + rho) / (1 - rho) of an autoregression of order one."""
    total, count = float(means @ means), len(means)
    if total <= 0:
        return 1.0
    rho = float(means[1:] @ means[:-1]) / total
    rho = max(0.0, rho + (3 + 4 * max(0.0, rho)) / count)
    rho += SURELY * math.sqrt(max(0.0, 1 - rho**2) / count)
    return math.inf if rho >= MOST else (1 + rho) / (1 - rho)
