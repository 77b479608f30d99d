"""Where a capacity search should look: the load up to which an objective can be expected to hold, from lower loads."""

from __future__ import annotations

import math

import numpy as np

from loadframe.analysis.queueing import Floats
from loadframe.model import LoadInterval, Observations
from loadframe.prediction import latency, refusal
from loadframe.prediction import system as systems
from loadframe.prediction.forecasting import DRAWS, SEED
from loadframe.prediction.saturating import DRAWN
from loadframe.prediction.system import Kind

LEAST_FACTOR = 1.15
"""No expectation is narrower than this factor to either side: the load at which an objective is missed is not quite
that of saturation."""

LOADS = 24
"""The number of loads that are tried to see where the latency passes its limit."""

FURTHEST = 16.0
"""Nothing is expected beyond this many times the highest load measured: four doublings are no forecast any more."""


def expected(
    observations: Observations, *, latency_p95_ms: float | None = None, kind: Kind | None = None
) -> LoadInterval | None:
    """The load at which the first resource saturates, or the p95 latency passes its limit, whatever comes first, with
    the interval of the network's draws; None where resources do not explain the observations, or nothing gives within
    sight. It is where to look first, not a claim: trials decide, and the interval of a forecast, which real servers
    calibrate, is too wide to aim with."""
    kind = kind or systems.kind_of(observations)
    if refusal.too_little(observations) is not None or refusal.nothing_rises(observations) is not None:
        return None
    random = np.random.default_rng(SEED)
    system = systems.draw(observations, refusal.rising(observations), kind, DRAWS, random)
    reached = np.sort(np.min([system.saturates_at(name) for name in system.demands], axis=0))
    if refusal.after(system, observations) is not None or not math.isfinite(float(np.median(reached))):
        return None
    top = observations.loads[-1]
    value, low, high = (float(reached[round(share * (DRAWS - 1))]) for share in DRAWN)
    if latency_p95_ms is not None:
        loads = np.geomspace(top, min(max(high, top), FURTHEST * top), LOADS)
        slow = latency.p95_ms(system, observations, loads, random)
        if slow is not None:
            ends = np.quantile(slow, DRAWN, axis=0, method="nearest")
            value = min(value, _passed(loads, ends[0], latency_p95_ms))
            low = min(low, _passed(loads, ends[2], latency_p95_ms))
            high = min(high, _passed(loads, ends[1], latency_p95_ms))
    if value > FURTHEST * top:
        return None
    return LoadInterval(value, min(low, value / LEAST_FACTOR), min(max(high, value * LEAST_FACTOR), 2 * FURTHEST * top))


def _passed(loads: Floats, p95_ms: Floats, limit_ms: float) -> float:
    """The first load at which the latency is above the limit; inf where it is at none."""
    slow = np.flatnonzero(p95_ms > limit_ms)
    return float(loads[slow[0]]) if len(slow) else math.inf
