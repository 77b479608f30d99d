"""What is used up first, and the maximum, by resources and limits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.analysis.in_service import most
from loadframe.analysis.series import pooled
from loadframe.model import Estimate, ForecastCapacity, Limit, LoadInterval, Observations, ResourceForecast, grouped
from loadframe.prediction import candidates, pool, resources
from loadframe.prediction import system as systems
from loadframe.prediction.candidates import Seen
from loadframe.prediction.demands import Demand
from loadframe.prediction.library import Bounds, Calibrated
from loadframe.prediction.pool import Weighed
from loadframe.prediction.refusal import NEAR
from loadframe.prediction.system import System

DRAWN = (0.5, 0.05, 0.95)
LEAST_BASE = 0.25
"""A smaller share of the use at the lowest load shows no growth of a demand."""
IN_PROPORTION = 0.9
"""A throughput with this share of its best ratio to the load has not levelled off."""


def estimated(bounds: Bounds, log_x: float, scale: float, least: float = 0.0) -> Estimate:
    """Conformal, cut at `least`, which was measured; the high end of an interval wholly below that is unknown."""
    most = 700.0  # exp of more overflows
    low = math.exp(log_x + bounds.low * scale) if math.isfinite(bounds.low) else 0.0
    high = math.exp(min(log_x + bounds.high * scale, most)) if math.isfinite(bounds.high) else math.inf
    return Estimate(max(math.exp(min(log_x, most)), least), max(low, least), high if high > least else math.inf)


def least_load(data: Seen, used: float) -> float:
    """Below it a resource with this use at the highest load does not saturate."""
    least = float(data.throughputs.max() / (data.throughputs / data.loads).max())
    top = float(data.loads[-1])
    return top if used < NEAR and least >= IN_PROPORTION * top else least


def saturations(
    system: System, observations: Observations, data: Seen, library: Calibrated, full: Mapping[str, LoadInterval]
) -> tuple[ResourceForecast, ...]:
    """The first to be used up first; at_load None beyond the library's curves. full: resources seen to be used up, and
    where."""
    top = data.loads[-1]
    slope = math.log(candidates.slope(data))
    laws = {law: library.most_errors[law] for law in ("line", "economy")}
    weighed = Weighed(pool.shares(laws), laws)
    forecasts = []
    for name in data.used:
        by_law = {law: np.array([candidates.used_up(data, name, grows=law == "economy") - slope]) for law in laws}
        middle = pool.pooled(by_law, np.zeros(1), weighed).log_x[0]
        doublings = (middle - math.log(top)) / math.log(2)
        guess = pool.pooled(by_law, np.array([doublings]), weighed)
        servers = observations.servers.get(name, 1.0)
        draws = system.demands[name].at(np.array([top]))[:, 0] * servers
        demand = Estimate(*map(float, np.quantile(draws, DRAWN)))
        in_sight = doublings <= library.doublings
        log_x, scale = guess.log_x[0], guess.scale[0]
        least = least_load(data, data.used[name][-1])
        ahead = estimated(library.most_load, log_x, scale, least) if in_sight else None
        at_load = measured(full[name]) if name in full else ahead
        forecasts.append(
            ResourceForecast(
                resource=name,
                demand_s=demand.value,
                demand_low_s=demand.low,
                demand_high_s=demand.high,
                servers=servers,
                utilization=float(data.used[name][-1]),
                growth=_growth(system.demands[name], data, name, at_load),
                at_load=at_load,
            )
        )
    return tuple(sorted(forecasts, key=lambda forecast: forecast.at_load.value if forecast.at_load else math.inf))


def _growth(demand: Demand, data: Seen, name: str, at_load: Estimate | None) -> Estimate | None:
    if np.median(demand.base) * data.throughputs[0] < LEAST_BASE * data.used[name][0]:
        return None
    ends = [at_load.value, at_load.low, at_load.high] if at_load else [float(data.loads[-1])]
    values, lows, highs = np.quantile(demand.grown(np.array([end for end in ends if end < math.inf])), DRAWN, axis=0)
    return Estimate(float(values[0]), float(lows.min()), float(highs.max()))


def measured(at: LoadInterval) -> Estimate:
    return Estimate(at.load, at.low, at.high)


def one_figure(
    saturation: Sequence[ResourceForecast], capacity: ForecastCapacity, full: Mapping[str, LoadInterval]
) -> tuple[ResourceForecast, ...]:
    """The first at the capacity's load, which is calibrated; none comes before it but those in `full`."""
    first, forecasts = capacity.load, []
    for resource in saturation:
        at = first if resource.resource == capacity.limited_by else resource.at_load
        if at is not None and at.value < first.value and resource.resource not in full:
            at = Estimate(first.value, at.low, at.high if at.high > first.value else math.inf)
        forecasts.append(replace(resource, at_load=at))
    return tuple(forecasts)


def by_resources(
    data: Seen, saturation: Sequence[ResourceForecast], library: Calibrated, least: float
) -> ForecastCapacity | None:
    first = saturation[0]
    if first.at_load is None:
        return None
    most, at, scale = pool.most(data, library.most_errors)
    return ForecastCapacity(
        estimated(library.most_throughput, most, scale, least),
        estimated(library.most_load, at, scale, least_load(data, max(used[-1] for used in data.used.values()))),
        first.resource,
    )


def seen_full(limits: Sequence[Limit], data: Seen) -> dict[str, LoadInterval]:
    """What is used up within the measured loads, and where. limits: in order."""
    by_resource = {resources.of_limit(limit): limit.exhausted_at for limit in reversed(limits)}
    return {name: at for name, at in by_resource.items() if name and at is not None and at.load <= data.loads[-1]}


ENDS_BELOW, SEEN = 1.0, 0.95
"""A use that may reach ENDS_BELOW by these curves, or was seen at SEEN, may be used up."""
LEAST_USED = 0.5
"""At the highest level: a lower use is far from its end."""


def flattening(observations: Observations) -> frozenset[str]:
    """Resources whose use over the throughput stays below ENDS_BELOW by all curves that the levels allow
    (analysis/in_service.py)."""
    rows = systems.working(observations)
    levels = [mine for _, mine in sorted(grouped((row.load, row) for row in rows).items())]
    served = np.array([np.median([row.throughput for row in level]) for level in levels])
    rises = [at for at in range(len(levels)) if served[at] > served[:at].max(initial=0.0)]
    flattened = []
    for name in observations.resources if rises else ():
        uses = [np.array([row.utilizations[name] for row in levels[at]]) for at in rises]
        used = np.array([np.median(values) for values in uses])
        if not np.all(used > 0) or used[-1] < LEAST_USED:
            continue
        if max(map(np.max, uses)) < SEEN and most(served[rises], used, _error(uses)) < ENDS_BELOW:
            flattened.append(name)
    return frozenset(flattened)


def _error(levels: list[Floats]) -> float:
    squares, freedom = pooled([np.log(values) for values in levels if values.min() > 0])
    return math.sqrt(squares / freedom / (sum(map(len, levels)) / len(levels))) if freedom else 0.0
