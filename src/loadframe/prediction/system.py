"""The system of a forecast: resources with drawn demands, a delay for all that was not measured, and its load, closed
(N clients) or a rate: docs/mathematics.md. The delay Z is what is left of the cycle N / X; negative where requests use
several resources at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from loadframe.analysis import queueing
from loadframe.analysis.arrays import Floats
from loadframe.model import CLIENT_AXES, RATE_AXES, Observation, Observations, grouped
from loadframe.prediction import demands
from loadframe.prediction.demands import Demand

Kind = Literal["closed", "rate"]
AS_OFFERED = 0.05
"""A throughput within this share of the load at every level is an offered rate, not clients."""
LARGEST_EXACT = 300
"""With more clients Schweitzer's approximation is used: its error is then at most 0.3 %."""
APPROXIMATE = 1e-6
IRREGULAR = 0.5
"""Prior: every second system is as irregular as mean value analysis assumes, the others between that and regular."""
UNSATURATED = 0.8
"""The delay is fitted below this share of saturation."""
DELAY_ROUNDS, CLOSE = 12, 1e-3
"""Most rounds of fitting the delay; tolerance, as a share of the shortest cycle."""
REACH = 64.0
GRID = 120
NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class System:
    """S draws. demands: by resource, stations and ceilings; delay_s: Z, (S,); offered: X / N for rates, (S,); error: of
    one window's throughput, (S,); saturation: first guess of its load. regular: 0 for mean value analysis, 1 for the
    asymptotic bound, (S,)."""

    kind: Kind
    demands: dict[str, Demand]
    stations: tuple[str, ...]
    servers: Floats
    delay_s: Floats
    offered: Floats
    error: Floats
    saturation: float
    regular: Floats

    def throughput(self, loads: Floats) -> Floats:
        most = np.min([1 / demand.at(loads) for demand in self.demands.values()], axis=0)
        wanted = self.offered[:, None] * loads if self.kind == "rate" else self._closed(loads)
        return np.asarray(np.minimum(wanted, most))

    def saturates_at(self, name: str) -> Floats:
        """Where requests keep a resource busy, if none had to wait: (S,). Closed: N* u = Z + sum D, at N*."""
        loads = self.saturation * np.geomspace(1 / REACH, REACH, GRID)
        if self.kind == "rate":
            wanted = 1 / self.offered[:, None]
        else:  # Z + sum D, without waiting
            longest = np.max([demand.at(loads) for demand in self.demands.values()], axis=0)
            wanted = np.maximum(self.delay_s[:, None] + self._work_s(loads).sum(axis=-1), longest)
        over = np.log(loads * self.demands[name].at(loads) / np.maximum(wanted, 1e-300))
        crossed = over >= 0
        first = crossed.argmax(axis=1)
        rows, before = np.arange(len(over)), np.maximum(first - 1, 0)
        rise = over[rows, first] - over[rows, before]
        share = np.where(rise > 0, -over[rows, before] / np.where(rise > 0, rise, 1), 0.0)
        crossing = np.exp(np.log(loads[before]) + np.clip(share, 0, 1) * np.log(loads[first] / loads[before]))
        return np.where(crossed.any(axis=1), crossing, np.inf)

    def _work_s(self, loads: Floats) -> Floats:
        work_s = [
            self.demands[name].at(loads) * count for name, count in zip(self.stations, self.servers, strict=False)
        ]
        return np.stack(work_s, axis=-1) if work_s else np.zeros((len(self.delay_s), len(loads), 1))

    def stations_at(self, loads: Floats) -> tuple[Floats, Floats]:
        """Seconds of work and of waiting of a request at each station (inf beyond the highest rate), (S, L, K)."""
        work = self._work_s(loads)
        if self.kind == "rate":
            used = (self.offered[:, None] * loads)[..., None] * work / self.servers
            below = np.minimum(used, 1 - 1e-12)
            waiting = work / self.servers * below ** (np.sqrt(2 * (self.servers + 1)) - 1) / (1 - below)
            return work, np.where(used < 1, waiting, np.inf)
        solved = queueing.schweitzer(work, loads, self._delay(work), self.servers, APPROXIMATE)
        return work, np.maximum(solved.residence_s - work, 0.0)

    def _delay(self, work: Floats) -> Floats:
        """A negative delay leaves at least the longest station."""
        whole = work.sum(axis=-1)
        some_s = 1e-9  # less than anything that is measured
        least = np.where(whole > 0, (work / self.servers).max(axis=-1) - whole, some_s)
        return np.maximum(self.delay_s[:, None], least)

    def _closed(self, loads: Floats) -> Floats:
        """(S, L): Schweitzer for every draw, corrected by the exact result at their middle."""
        work = self._work_s(loads)
        delay = self._delay(work)
        near = queueing.schweitzer(work, loads, delay, self.servers, APPROXIMATE).throughput
        middle, think = np.median(work, axis=0), np.median(delay, axis=0)
        once = queueing.schweitzer(middle, loads, think, self.servers, APPROXIMATE).throughput
        right = [_exact(middle[at], load, think[at], self.servers) or once[at] for at, load in enumerate(loads)]
        waiting = near * (np.array(right) / once)
        longest = (work / self.servers).max(axis=-1)
        ceiling = np.where(longest > 0, 1 / np.where(longest > 0, longest, 1.0), np.inf)
        bound = np.minimum(loads / (delay + work.sum(axis=-1)), ceiling)
        share = self.regular[:, None]
        return np.asarray((1 - share) * waiting + share * np.maximum(bound, waiting))


def _exact(work: Floats, load: float, think_s: float, servers: Floats) -> float | None:
    if load > LARGEST_EXACT or think_s < 0:
        return None
    below = math.floor(load)
    around = queueing.throughputs(work, below + 1, think_s, servers)
    return float(around[below] + (load - below) * (around[below + 1] - around[below]))


def working(observations: Observations) -> list[Observation]:
    highest = max((row.throughput for row in observations.rows), default=0.0)
    return [row for row in observations.rows if row.throughput > NOTHING * highest]


def kind_of(observations: Observations) -> Kind:
    """A rate where the throughput equals the load at the lowest loads, else clients."""
    if observations.axis in RATE_AXES | CLIENT_AXES:
        return "rate" if observations.axis in RATE_AXES else "closed"
    loads = observations.loads
    lowest = [row for row in observations.rows if row.load <= loads[len(loads) // 2]]
    return "rate" if all(abs(row.throughput / row.load - 1) <= AS_OFFERED for row in lowest) else "closed"


def draw(
    observations: Observations, resources: Sequence[str], kind: Kind, count: int, random: np.random.Generator
) -> System:
    rows = working(observations)
    loads = np.array([row.load for row in rows])
    throughputs = np.array([row.throughput for row in rows])
    used = {name: np.array([row.utilizations[name] for row in rows]) for name in resources}
    # The load at which the first resource would be used up if throughput went on as at the lowest load, and no demand
    # grew.
    lowest = loads == loads.min()
    per_load = float(np.median(throughputs[lowest] / loads[lowest]))
    guess = 1 / (per_load * max(float(values.sum() / throughputs.sum()) for values in used.values()))
    # The same random numbers for all: what makes one grow (colder caches, a busier machine) makes the others grow, and
    # the unluckiest draw of eight shards that are alike is not what they will do.
    luck = int(random.integers(2**32))
    drawn = {
        name: demands.draw(loads, throughputs, values, guess, count, np.random.default_rng(luck))
        for name, values in used.items()
    }
    stations = tuple(name for name in resources if name not in observations.ceilings)
    system = System(
        kind=kind,
        demands=drawn,
        stations=stations,
        servers=np.array([observations.servers.get(name, 1.0) for name in stations] or [1.0]),
        delay_s=np.zeros(count),
        offered=np.full(count, np.median(throughputs / loads)),
        error=np.zeros(count),
        saturation=guess,
        regular=np.where(random.random(count) < IRREGULAR, 0.0, random.random(count)),
    )
    return fitted(system, loads, throughputs, random)


def fitted(system: System, loads: Floats, throughputs: Floats, random: np.random.Generator) -> System:
    low = loads <= max(UNSATURATED * system.saturation, loads.min())
    loads, throughputs = loads[low], throughputs[low]
    levels, where = np.unique(loads, return_inverse=True)
    count = len(system.delay_s)
    if system.kind == "rate":
        misfit = np.log(throughputs / loads)
        centre, residuals = np.full(count, misfit.mean()), np.broadcast_to(misfit - misfit.mean(), (count, len(loads)))
        error = _errors(residuals, random)
        moved = centre + error / np.sqrt(len(loads)) * random.standard_normal(count)
        return replace(system, offered=np.exp(moved), error=error)
    cycle = loads / throughputs
    delay = np.full(count, np.median(cycle))
    weight = 1 / cycle**2  # each window knows the cycle to the same share of itself
    for _ in range(DELAY_ROUNDS):
        now = replace(system, delay_s=delay).throughput(levels)[:, where]
        step = ((cycle - loads / now) * weight).sum(axis=1) / weight.sum()
        delay = delay + step
        if np.abs(step).max() <= CLOSE * cycle.min():
            break
    residuals = np.log(throughputs / replace(system, delay_s=delay).throughput(levels)[:, where])
    error = _errors(residuals, random)
    spread = error * random.standard_normal(count) / np.sqrt(weight.sum())
    return replace(system, delay_s=delay + spread, error=error)


def _errors(residuals: Floats, random: np.random.Generator) -> Floats:
    squares = (residuals**2).sum(axis=1, keepdims=True)
    freedom = residuals.shape[1] - 1
    weight = demands.error_prior() - freedom * np.log(demands.ERRORS) - squares / (2 * demands.ERRORS**2)
    cumulative = np.cumsum(np.exp(weight - weight.max(axis=1, keepdims=True)), axis=1)
    chance = random.random((len(residuals), 1)) * cumulative[:, -1:]
    return np.asarray(demands.ERRORS[(cumulative < chance).sum(axis=1)])


NORMAL_95 = 1.645
MODEL_ERROR = 0.1
"""Relative error per doubling of the latency: service times are not exponential, queues not fair."""
LEAST_MS = 1e-12
"""Less is no latency, and its ratios overflow."""


def between_ms(observations: Observations, loads: Floats) -> Floats:
    """p95, interpolated in logarithms between the loads' medians; NaN beyond: (L,)."""
    known = ((row.load, row.latency_p95_ms) for row in observations.rows)
    by_load = grouped((load, max(p95_ms, LEAST_MS)) for load, p95_ms in known if p95_ms is not None)
    if not by_load:
        return np.full(len(loads), np.nan)
    measured = sorted(by_load)
    medians = np.log([np.median(by_load[load]) for load in measured])
    log_ms = np.interp(np.log(loads), np.log(measured), medians, left=np.nan, right=np.nan)
    return np.exp(log_ms)


def p95_ms(system: System, observations: Observations, loads: Floats, random: np.random.Generator) -> Floats | None:
    """Draws, (S, L), inf beyond the highest rate; None where none was measured."""
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
    latencies = np.where(lacking[:, None] >= 0, asked + lacking[:, None], asked * scale[:, None])
    top = np.median(measured[levels[where] == levels[-1]])
    doublings = np.abs(np.log2(np.maximum(np.nan_to_num(latencies, posinf=top), LEAST_MS) / max(top, LEAST_MS)))
    error = system.error[:, None] + MODEL_ERROR * doublings
    return np.asarray(latencies * np.exp(error * random.standard_normal((len(latencies), 1))))


def _p95_s(system: System, loads: Floats) -> Floats:
    served, waiting = system.stations_at(loads)
    unit = served / system.servers
    ahead = np.divide(waiting, unit, out=np.zeros_like(waiting), where=unit > 0)
    with np.errstate(invalid="ignore"):
        left = 1.0 if system.kind == "rate" else np.maximum(1 - ahead / loads[:, None], 0.0) ** 2
        variance = (served**2 + unit**2 * (ahead + ahead * (1 + ahead) * left)).sum(axis=-1)
        mean = (served + waiting).sum(axis=-1)
        shape = np.maximum(mean**2 / variance, 0.3)
        quantile = mean * (1 - 1 / (9 * shape) + NORMAL_95 / (3 * np.sqrt(shape))) ** 3
    return np.where(np.isfinite(mean), quantile, np.inf)
