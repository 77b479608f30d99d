"""What is used up first, and the most that can be had: resources as far as they explain the load, and the ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadframe.analysis.queueing import Floats
from loadframe.model import Estimate, ForecastCapacity, Limit, Observations, Saturation
from loadframe.prediction import candidates, pool
from loadframe.prediction.candidates import Seen
from loadframe.prediction.library import Bounds, Calibrated
from loadframe.prediction.pool import Weighed
from loadframe.prediction.system import System

DRAWN = (0.5, 0.05, 0.95)


def estimated(bounds: Bounds, log_x: float, scale: float, least: float = 0.0) -> Estimate:
    """The conformal interval; no part of it below `least`."""
    value, low, high = bounds.around(log_x, scale)
    return Estimate(max(value, least), max(low, least), max(high, least))


def of_draws(draws: Floats) -> Estimate:
    """Median and central 90 % of the draws."""
    return Estimate(*(float(share) for share in np.quantile(draws, DRAWN)))


def saturations(system: System, observations: Observations, data: Seen, library: Calibrated) -> tuple[Saturation, ...]:
    """Every resource, the first to be used up first; at_load None beyond what the library's curves reach."""
    top = float(data.loads[-1])
    slope = math.log(candidates.slope(data))
    laws = {law: library.most_errors[law] for law in ("line", "economy")}
    weighed = Weighed(pool.shares(laws), laws)
    found = []
    for name in data.used:
        each = {law: np.array([candidates.used_up(data, name, grows=law == "economy") - slope]) for law in laws}
        middle = pool.pooled(each, np.zeros(1), weighed).log_x[0]
        doublings = (middle - math.log(top)) / math.log(2)
        guess = pool.pooled(each, np.array([doublings]), weighed)
        servers = observations.servers.get(name, 1.0)
        demand = of_draws(system.demands[name].at(np.array([top]))[:, 0] * servers)
        in_sight = doublings <= library.doublings
        at_load = estimated(library.most_load, float(guess.log_x[0]), float(guess.scale[0])) if in_sight else None
        until = at_load.value if at_load else top
        found.append(
            Saturation(
                resource=name,
                demand_s=demand.value,
                demand_low_s=demand.low,
                demand_high_s=demand.high,
                servers=servers,
                utilization=float(data.used[name][-1]),
                growth=of_draws(system.demands[name].grown(np.array([until]))[:, 0]),
                at_load=at_load,
            )
        )
    return tuple(sorted(found, key=lambda one: one.at_load.value if one.at_load else math.inf))


def by_resources(
    data: Seen, saturation: Sequence[Saturation], library: Calibrated, least: float
) -> ForecastCapacity | None:
    """The most that the resources allow; None where none is used up within what the library's curves reach."""
    first = saturation[0]
    if first.at_load is None:
        return None
    most, at, scale = pool.most(data, library.most_errors)
    return ForecastCapacity(
        estimated(library.most_throughput, most, scale, least),
        estimated(library.most_load, at, scale),
        first.resource,
    )


def by_limit(limit: Limit, throughput: Estimate) -> ForecastCapacity:
    """A limit that runs out ends the growth: what is had there. throughput: forecast at that load."""
    at = limit.exhausted_at
    if at is None:
        raise ValueError(f"{limit.id} does not run out")
    return ForecastCapacity(throughput, Estimate(at.load, at.low, at.high), limit.id)


def first_limit(limits: Sequence[Limit], data: Seen) -> Limit | None:
    """The first that runs out beyond the loads measured, of those that end the growth; one that had run out within them
    did not end it."""
    top = float(data.loads[-1])
    found = [limit for limit in limits if limit.exhausted_at is not None and limit.exhausted_at.load > top]
    return min(found, key=lambda limit: limit.exhausted_at.load if limit.exhausted_at else math.inf, default=None)
