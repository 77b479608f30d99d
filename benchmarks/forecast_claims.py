"""Forecasts of real servers from loads far below what they can do, beside three simpler ones.

Every study is forecast from its loads up to a quarter of the one with the highest throughput, or from its three lowest
where those are fewer, at all that were measured above. Its own kind of server is taken out of the library first
(published MySQL counts as MariaDB): what a kind gave never foretells that kind. A published curve is foretold without
those of the same servers and work. Beside it, from the same loads:

    law        the Universal Scalability Law, plain least squares (at least 5 loads, as `analysis.scalability` has it;
               with fewer, its logarithms by the same squares with a wide prior)
    straight   in proportion to the load
    limit      the same up to the first resource that is used up at what a request needs of it now
    flat       what the highest load gave
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import median

import numpy as np

import forecast_library
from forecast_library import Case, Curve
from loadframe.analysis import scalability
from loadframe.model import Limit, LoadInterval, Observations
from loadframe.prediction import candidates, refusal
from loadframe.prediction import system as systems
from loadframe.prediction.forecasting import forecast
from loadframe.prediction.library import Library

QUARTER, FEWEST = 0.25, 3
HELD = (0.85, 0.95)
RIVALS = ("law", "straight", "limit", "flat")
FAMILIES = {"nginx-cache": "nginx", "sharded bulk-loader": "bulk-loader"}


@dataclass
class Outcome:
    """What came of one study. errors: |log (forecast / measured)| by who forecast; inside: of the intervals. most: the
    same of the highest throughput, None where it was not told; below: forecasts of the most below what was seen; slow:
    errors of the p95 latencies; passed: forecasts that a limit of the ledger does not end."""

    name: str
    kind: str
    trained: tuple[float, ...]
    errors: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    inside: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    missing: int = 0
    most: tuple[float, bool] | None = None
    below: bool = False
    said: str = ""
    slow: list[float] = field(default_factory=list)


@cache
def _cases() -> tuple[tuple[str, bool, Case], ...]:
    """(family, alone, case) of every curve of the library."""
    return tuple(
        (family(curve.kind), alone, case)
        for curve in forecast_library.curves()
        for alone in (True, False)
        for case in forecast_library.cases(curve, alone=alone)
    )


def family(kind: str) -> str:
    """The kind of server, whatever it serves as."""
    return FAMILIES.get(kind, kind)


@cache
def without(left_out: str) -> Library:
    """The library without this family, or this group."""
    made = {
        wanted: [case for kind, alone, case in _cases() if alone is wanted and left_out not in (kind, case.group)]
        for wanted in (True, False)
    }
    return Library(*forecast_library.calibrate(made[True], made[False]))


def training(curve: Curve) -> tuple[float, ...]:
    """The loads to forecast from."""
    medians = {load: _median(curve.observations, load) for load in curve.observations.loads}
    peak = max(medians, key=lambda load: medians[load])
    low = [load for load in curve.observations.loads if load <= QUARTER * peak]
    return tuple(low if len(low) >= FEWEST else curve.observations.loads[:FEWEST])


def judge(curve: Curve, *, alone: bool = False) -> Outcome:
    """One study, forecast and held against what it gave."""
    observed, published = curve.observations, not curve.observations.resources
    if alone:
        observed = replace(observed, rows=tuple(replace(row, utilizations={}) for row in observed.rows))
    loads = training(curve)
    below = replace(observed, rows=tuple(row for row in observed.rows if row.load <= loads[-1]))
    later = [load for load in observed.loads if load > loads[-1]]
    limits = [limit_at(curve.limits[loads[-1]])] if not alone and loads[-1] in curve.limits else []
    found = forecast(below, later, limits=limits, library=without(curve.group if published else family(curve.kind)))
    outcome = Outcome(curve.name, family(curve.kind), loads)
    outcome.missing = len(later) - len(found.at)
    rivals = simpler(below, [point.load for point in found.at])
    for index, point in enumerate(found.at):
        actual = _median(observed, point.load)
        if actual <= 0:
            continue
        outcome.errors["forecast"].append(abs(math.log(point.throughput.value / actual)))
        outcome.inside.append(point.throughput.low <= actual <= point.throughput.high)
        outcome.widths.append(point.throughput.high / max(point.throughput.low, 1e-9))
        if point.latency_p95_ms is not None and (p95_ms := _p95_ms(observed, point.load)):
            outcome.slow.append(abs(math.log(point.latency_p95_ms.value / p95_ms)))
        for name, values in rivals.items():
            outcome.errors[name].append(abs(math.log(values[index] / actual)))
    seen = max(_median(observed, load) for load in loads)
    peak = max(_median(observed, load) for load in observed.loads)
    if found.capacity is not None:
        most = found.capacity.throughput
        outcome.most = (abs(math.log(most.value / peak)), most.low <= peak <= most.high)
        outcome.below = min(most.low, most.value) < seen
        outcome.said = found.capacity.limited_by
    return outcome


def simpler(below: Observations, loads: Sequence[float]) -> dict[str, list[float]]:
    """What the rivals say at these loads."""
    if not loads:
        return {}
    at = np.array(loads)
    kind = systems.kind_of(below)
    data = candidates.seen(below, kind, refusal.rising(below) if below.resources else ())
    made = {name: np.exp(values) for name, values in candidates.forecasts(data, at, ("flat", "law", "line")).items()}
    law = made["law"]
    if len(data.loads) >= scalability.FEWEST_POINTS:
        fitted = scalability.fit(data.loads, data.throughputs)
        law = scalability.predict(at, fitted.lambda_, fitted.sigma, fitted.kappa)
    straight = candidates.slope(data) * at
    limit = made["line"] if data.used else straight
    return {"law": list(law), "straight": list(straight), "limit": list(limit), "flat": list(made["flat"])}


def _median(observed: Observations, load: float) -> float:
    return median(row.throughput for row in observed.rows if row.load == load)


def _p95_ms(observed: Observations, load: float) -> float | None:
    told = [row.latency_p95_ms for row in observed.rows if row.load == load and row.latency_p95_ms is not None]
    return median(told) if told else None


def limit_at(load: float) -> Limit:
    """A limit of the ledger that runs out at this load and ends the growth."""
    return Limit(
        "limit of the ledger", "", 1.0, None, 1.0, 0.0, 1.0, True, "", LoadInterval(load, load, load), unit="count"
    )


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each study, then for each kind, then for all."""
    head = f"{'study':28} {'from':>12} {'loads':>5} {'inside':>7} {'width':>6} {'error':>7}"
    lines = [head + "".join(f" {name:>9}" for name in RIVALS) + f" {'most':>7} {'inside':>7} {'p95':>7}  first"]
    lines += [_line(one.name, [one], f"{one.trained[0]:g}-{one.trained[-1]:g}") + f"  {one.said}" for one in outcomes]
    lines += [
        _line(f"all of {kind}", [one for one in outcomes if one.kind == kind], "")
        for kind in sorted({one.kind for one in outcomes})
    ]
    return [*lines, _line("all", outcomes, "")]


def _line(name: str, outcomes: Sequence[Outcome], loads: str) -> str:
    errors = pooled(outcomes)
    inside = [held for one in outcomes for held in one.inside]
    widths = [width for one in outcomes for width in one.widths]
    most = [one.most for one in outcomes if one.most is not None]
    text = f"{name:28} {loads:>12} {len(inside):>5}"
    if not inside:
        return text
    text += f" {np.mean(inside):>7.0%} {np.median(widths):>5.1f}x {off(errors['forecast']):>7.1%}"
    text += "".join(f" {off(errors[rival]):>9.1%}" for rival in RIVALS)
    text += f" {off([error for error, _ in most]):>7.1%}" if most else f" {'':>7}"
    text += f" {sum(held for _, held in most):>3}/{len(most):<3}" if most else f" {'':>7}"
    slow = [error for one in outcomes for error in one.slow]
    return text + (f" {off(slow):>7.1%}" if slow else f" {'':>7}")


def pooled(outcomes: Sequence[Outcome]) -> Mapping[str, list[float]]:
    """Errors of all of them by who forecast."""
    found: dict[str, list[float]] = defaultdict(list)
    for one in outcomes:
        for name, errors in one.errors.items():
            found[name] += errors
    return found


def off(errors: Sequence[float]) -> float:
    """The median error as a share."""
    return math.expm1(median(errors))


def met(outcomes: Sequence[Outcome]) -> bool:
    """Whether 85 to 95 % of the intervals held, the error is at most that of the better of law and straight line, and
    no most lies below what was seen."""
    errors = pooled(outcomes)
    held = float(np.mean([inside for one in outcomes for inside in one.inside]))
    best = min(off(errors["law"]), off(errors["straight"]))
    return HELD[0] <= held <= HELD[1] and off(errors["forecast"]) <= best and not any(one.below for one in outcomes)
