"""p95 latency from mean values: the mean and the variance of the time at each station, then a gamma distribution.

A request that waits for j others at a station waits for j services; with exponential services and j nearly geometric,
cut by the number of clients, that gives the variance. The quantile of the gamma distribution is Wilson and Hilferty's
(PNAS 17, 1931). What was measured decides the rest: a constant is added to meet the p95 latencies seen, or, where they
are lower already, everything is scaled to them.
"""

from __future__ import annotations

import numpy as np

from loadframe.analysis.queueing import Floats
from loadframe.model import Observations
from loadframe.prediction.system import System

NORMAL_95 = 1.645

MODEL_ERROR = 0.1
"""Per doubling of the latency, an error of this share is added: service times are not exponential, queues not fair."""

LEAST_MS = 1e-12
"""Less is no latency, and its ratios are beyond what numbers hold."""


def between_ms(observations: Observations, loads: Floats) -> Floats:
    """The p95 latency within the loads at which one was measured, on the line between their medians in logarithms, as
    the throughput is; NaN at other loads: (L,)."""
    by_load: dict[float, list[float]] = {}
    for row in observations.rows:
        if row.latency_p95_ms is not None:
            by_load.setdefault(row.load, []).append(max(row.latency_p95_ms, LEAST_MS))
    if not by_load:
        return np.full(len(loads), np.nan)
    measured = sorted(by_load)
    medians = np.log([np.median(by_load[load]) for load in measured])
    log_ms = np.interp(np.log(loads), np.log(measured), medians, left=np.nan, right=np.nan)
    return np.asarray(np.exp(log_ms))


def p95_ms(system: System, observations: Observations, loads: Floats, random: np.random.Generator) -> Floats | None:
    """Draws of the p95 latency at each load, (S, L), inf where a rate is more than can be served; None where no
    latency was measured."""
    rows = [row for row in observations.rows if row.latency_p95_ms is not None and row.throughput > 0]
    if not rows:
        return None
    measured = np.array([row.latency_p95_ms for row in rows])
    levels, where = np.unique([row.load for row in rows], return_inverse=True)
    seen = 1000 * _p95_s(system, levels)[:, where]
    asked = 1000 * _p95_s(system, loads)
    usable = np.isfinite(seen) & (seen > 0) & (measured > 0)
    if not usable.all(axis=1).any():
        return None
    lacking = np.where(usable, measured - seen, 0.0).sum(axis=1) / np.maximum(usable.sum(axis=1), 1)
    ratio = np.log(np.where(usable, measured, 1.0)) - np.log(np.where(usable, seen, 1.0))  # a quotient underflows
    scale = np.exp(ratio.sum(axis=1) / np.maximum(usable.sum(axis=1), 1))
    found = np.where(lacking[:, None] >= 0, asked + lacking[:, None], asked * scale[:, None])
    top = float(np.median(measured[levels[where] == levels[-1]]))
    doublings = np.abs(np.log2(np.maximum(np.nan_to_num(found, posinf=top), LEAST_MS) / max(top, LEAST_MS)))
    error = system.error[:, None] + MODEL_ERROR * doublings
    return np.asarray(found * np.exp(error * random.standard_normal((len(found), 1))))


def _p95_s(system: System, loads: Floats) -> Floats:
    """p95 of the time at the stations: (S, L)."""
    solved = system.stations_at(loads)
    served, waiting = solved.work, solved.waiting_s
    unit = served / system.servers
    ahead = np.divide(waiting, unit, out=np.zeros_like(waiting), where=unit > 0)
    with np.errstate(invalid="ignore"):
        left = 1.0 if system.kind == "rate" else np.maximum(1 - ahead / loads[:, None], 0.0) ** 2
        variance = (served**2 + unit**2 * (ahead + ahead * (1 + ahead) * left)).sum(axis=-1)
        mean = (served + waiting).sum(axis=-1)
        shape = np.maximum(mean**2 / variance, 0.3)
        quantile = mean * (1 - 1 / (9 * shape) + NORMAL_95 / (3 * np.sqrt(shape))) ** 3
    return np.where(np.isfinite(mean), quantile, np.inf)
