"""Observations in, a forecast out: what saturates first and at which load, throughput and latency at any load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loadframe.analysis import scalability
from loadframe.analysis.queueing.laws import Floats
from loadframe.model import (
    Estimate,
    Forecast,
    ForecastCapacity,
    ForecastPoint,
    Limit,
    Observations,
    Saturation,
)
from loadframe.prediction import latency, refusal
from loadframe.prediction import system as systems
from loadframe.prediction.system import Kind, System

CONFIDENCE = 0.9
DRAWS = 400
SEED = 20260401

MODEL_ERROR = 0.01
"""Per doubling of the load beyond the highest one measured, a forecast is off by about so much more: no server is quite
a network of queues."""

PEAK_SPAN = (0.5, 4.0)
"""The highest throughput is looked for between these shares of the load of saturation."""

PEAK_LOADS = 8
FURTHER = (2.0, 4.0)
"""Where no loads are asked for: these times the highest one measured."""

SOON = 2.0
"""What saturates beyond this many times the load of the first saturation matters to nobody yet."""

LAW_LEVELS = 5
"""The scalability law needs as many."""

LAW_APART = 0.25
"""The scalability law disagrees when it lies outside the interval and this far from the forecast."""


def forecast(
    observations: Observations,
    at: Sequence[float] = (),
    *,
    kind: Kind | None = None,
    limits: Sequence[Limit] = (),
) -> Forecast:
    """The forecast for the loads `at`, or the reason why there is none.

    kind: what the load is; found out where it is not said. limits: of the ledger, with the load at which they run out.
    Computed from DRAWS systems that the observations may come from, seeded: the same data give the same forecast.
    ValueError for loads that are not finite and above zero.
    """
    if not all(math.isfinite(load) and load > 0 for load in at):
        raise ValueError(f"loads to forecast must be finite and above zero, got {list(at)}")
    kind = kind or systems.kind_of(observations)
    running_out = sorted(
        (limit for limit in limits if limit.exhausted_at is not None),
        key=lambda limit: limit.exhausted_at.load if limit.exhausted_at else math.inf,
    )
    found = Forecast(observations.name, observations.axis, kind, observations.loads, exhaustion=tuple(running_out))
    if (reason := refusal.before(observations)) is not None:
        return replace(found, refused=reason)
    random = np.random.default_rng(SEED)
    system = systems.draw(observations, refusal.rising(observations), kind, DRAWS, random)
    if (reason := refusal.after(system, observations)) is not None:
        return replace(found, refused=reason)
    reached = {name: system.saturates_at(name) for name in system.demands}
    if (reason := refusal.out_of_sight(reached, observations)) is not None:
        return replace(found, refused=reason)
    loads = np.array(sorted(set(at)) or [times * observations.loads[-1] for times in FURTHER], dtype=np.float64)
    points = _points(system, observations, loads, random)
    saturation = _saturations(system, observations, reached)
    capacity = _capacity(system, reached, observations.loads[-1], random)
    return replace(
        found,
        at=points,
        capacity=capacity,
        saturation=saturation,
        notes=tuple(_notes(system, observations, points, saturation, capacity)),
    )


def estimate(draws: Floats) -> Estimate:
    """Median and central 90 % of the draws."""
    ordered = np.sort(draws)  # no interpolation: beyond sight some are infinite
    shares = (0.5, (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    return Estimate(*(float(ordered[round(share * (len(ordered) - 1))]) for share in shares))


def _points(
    system: System, observations: Observations, loads: Floats, random: np.random.Generator
) -> tuple[ForecastPoint, ...]:
    """One window at each load: the error of a window belongs to the interval."""
    top = observations.loads[-1]
    throughput = _as_measured(system.throughput(loads), loads / top, system, random)
    p95 = latency.p95_ms(system, observations, loads, random)
    points = []
    for index, load in enumerate(loads):
        slow = None if p95 is None else p95[:, index]
        known = slow is not None and np.isfinite(np.median(slow))
        points.append(
            ForecastPoint(
                float(load), estimate(throughput[:, index]), estimate(slow) if known and slow is not None else None
            )
        )
    return tuple(points)


def _as_measured(values: Floats, further: Floats, system: System, random: np.random.Generator) -> Floats:
    """What a window would show, (S, L): with the error of a window, and that of the model. further: how many times the
    highest load measured."""
    doublings = np.maximum(np.log2(further), 0.0)
    error = np.hypot(system.error[:, None], MODEL_ERROR * doublings)
    return np.asarray(values * np.exp(error * random.standard_normal(values.shape)))


def _saturations(system: System, observations: Observations, reached: dict[str, Floats]) -> tuple[Saturation, ...]:
    """Every resource, the first to saturate first."""
    top = observations.loads[-1]
    found = []
    for name, loads in reached.items():
        servers = observations.servers.get(name, 1.0)
        demand = estimate(system.demands[name].at(np.array([top]))[:, 0] * servers)
        used = [row.utilizations[name] for row in observations.rows if row.load == top]
        in_sight = bool(np.isfinite(np.median(loads)))
        middle = float(np.median(loads)) if in_sight else system.saturation
        growth = estimate(system.demands[name].grown(np.array([middle]))[:, 0])
        found.append(
            Saturation(
                resource=name,
                demand_s=demand.value,
                demand_low_s=demand.low,
                demand_high_s=demand.high,
                servers=servers,
                utilization=float(np.median(used)),
                growth=growth,
                at_load=estimate(loads) if in_sight else None,
            )
        )
    return tuple(sorted(found, key=lambda one: one.at_load.value if one.at_load else math.inf))


def _capacity(system: System, reached: dict[str, Floats], top: float, random: np.random.Generator) -> ForecastCapacity:
    names = list(reached)
    loads = np.stack([reached[name] for name in names])
    first = loads.min(axis=0)
    middle = float(np.median(first))
    around = middle * np.geomspace(*PEAK_SPAN, PEAK_LOADS)
    around = np.maximum(np.round(around), 1) if system.kind == "closed" and middle > PEAK_LOADS else around
    highest = system.throughput(around).max(axis=1)
    votes = np.bincount(loads.argmin(axis=0), minlength=len(names))
    return ForecastCapacity(
        throughput=estimate(_as_measured(highest[:, None], np.array([middle / top]), system, random)[:, 0]),
        load=estimate(first),
        limited_by=names[int(votes.argmax())],
    )


def _notes(
    system: System,
    observations: Observations,
    points: Sequence[ForecastPoint],
    saturation: Sequence[Saturation],
    capacity: ForecastCapacity,
) -> list[str]:
    """What a reader must know to trust it."""
    notes = []
    close = [one.resource for one in saturation if one.at_load and one.at_load.low <= capacity.load.high]
    if len(close) > 1:
        notes.append(f"Which of {', '.join(close)} saturates first cannot be told apart.")
    soon = [one for one in saturation if one.at_load and one.at_load.value <= SOON * capacity.load.value]
    grown = [one for one in soon if one.growth and one.growth.low > 1]
    notes += [
        f"A request needs more of {one.resource} the higher the load is: {one.growth.value:.2g} times as much at its "
        f"saturation ({one.growth.low:.2g} to {one.growth.high:.2g})."
        for one in grown
        if one.growth
    ]
    left = [name for name in observations.resources if name not in system.demands]
    if left:
        notes.append(f"Not seen rising with the throughput, and left out: {', '.join(left)}.")
    notes += _law_note(observations, points)
    return notes


def _law_note(observations: Observations, points: Sequence[ForecastPoint]) -> list[str]:
    """The scalability law at the highest load asked for, where it disagrees."""
    loads = [load for load in observations.loads if load > 0]
    medians = [float(np.median([row.throughput for row in observations.rows if row.load == load])) for load in loads]
    if len(loads) < LAW_LEVELS or min(medians) <= 0 or not points:
        return []
    law = scalability.fit(np.array(loads), np.array(medians))
    last = points[-1]
    says = float(scalability.predict(np.array([last.load]), law.lambda_, law.sigma, law.kappa)[0])
    if last.throughput.low <= says <= last.throughput.high or abs(says / last.throughput.value - 1) <= LAW_APART:
        return []
    return [
        f"The scalability law, fitted to the same throughputs, says {says:.3g}/s at {last.load:g}: the two disagree. "
        "The law knows nothing of the resources; far beyond what was measured it is often wrong."
    ]
