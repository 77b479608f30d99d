"""Uses of measured levels that flatten below their end: a cache that fills to 80 % saturates at no load."""

from __future__ import annotations

import numpy as np

from loadframe.analysis.gradual import most
from loadframe.analysis.queueing import Floats
from loadframe.model import Observations
from loadframe.prediction import system as systems

ENDS_BELOW, SEEN = 1.0, 0.95
"""A use that may come to the first by these curves, or was seen at the second, may be used up."""

LEAST_USED = 0.5
"""Of the highest level: a lower use is far from its end, and its errors bend it."""


def flattening(observations: Observations) -> frozenset[str]:
    """The resources whose use, over the throughput, comes to less than ENDS_BELOW by all curves that the levels allow
    (analysis/gradual.py); none where a straight line is among these."""
    rows = systems.working(observations)
    loads = sorted({row.load for row in rows})
    served = np.array([float(np.median([row.throughput for row in rows if row.load == load])) for load in loads])
    rises = [at for at in range(len(loads)) if served[at] > served[:at].max(initial=0.0)]
    found = []
    for name in observations.resources if rises else ():
        each = [np.array([row.utilizations[name] for row in rows if row.load == loads[at]]) for at in rises]
        used = np.array([float(np.median(values)) for values in each])
        if not np.all(used > 0) or used[-1] < LEAST_USED:
            continue
        if max(map(np.max, each)) < SEEN and most(served[rises], used, _error(each)) < ENDS_BELOW:
            found.append(name)
    return frozenset(found)


def _error(each: list[Floats]) -> float:
    """The relative standard error of a level's median, by the scatter of all; 0 where no level has two."""
    logs = [np.log(values) for values in each if len(values) > 1 and values.min() > 0]
    freedom = sum(len(one) - 1 for one in logs)
    if not freedom:
        return 0.0
    squares = sum(float(((one - one.mean()) ** 2).sum()) for one in logs)
    return float(np.sqrt(squares / freedom / (sum(map(len, each)) / len(each))))
