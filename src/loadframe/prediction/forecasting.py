"""Observations in, a forecast out (docs/mathematics.md). Where no resources explain the load, only the curve counts,
and the maximum is a bound."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.analysis.segments import SMALLEST_BEND
from loadframe.model import (
    Calibration,
    Curve,
    Estimate,
    Forecast,
    ForecastCapacity,
    ForecastPoint,
    Limit,
    LoadInterval,
    NextLimit,
    Observation,
    Observations,
    Reached,
    ResourceForecast,
    Scored,
)
from loadframe.prediction import candidates, pool, refusal, saturating
from loadframe.prediction import library as libraries
from loadframe.prediction import system as systems
from loadframe.prediction.candidates import Seen
from loadframe.prediction.library import Calibrated, Library
from loadframe.prediction.pool import Weighed
from loadframe.prediction.saturating import DRAWN
from loadframe.prediction.system import Kind, System

DRAWS = 400
SEED = 20260401
FURTHER = (2.0, 4.0)
SOON = 2.0
"""Beyond this many times the load of the first saturation nothing matters yet."""
NO_INTERVAL = "Latencies have no interval: no curve of the library shows how far such forecasts are off."
MORE_BY_THE_CURVE = (
    "More is forecast than what saturates first is expected to allow, but no more than the high end of that: the shape "
    "of the curve promises more, and the forecast is halfway."
)
FLATTENING = (
    "The use flattens as the throughput rises, so where it would be full is not in sight from here; that may be before "
    "the first limit."
)
VAGUE = 4.0
"""Of a growth whose ends are further apart than this factor only the nearer end is reported."""
LEAST_WEIGHT = 0.02
WORDS = {
    "flat": "what the highest load gave",
    "power": "its last slope",
    "law": "the scalability law",
    "line": "a straight line to the first limit",
    "economy": "a need that changes with the load",
    "network": "a network of queues",
}


def forecast(
    observations: Observations,
    at: Sequence[float] = (),
    *,
    kind: Kind | None = None,
    limits: Sequence[Limit] = (),
    first: NextLimit | None = None,
    first_from: LoadInterval | None = None,
    library: Library | None = None,
) -> Forecast:
    """The forecast for the loads `at`, or the reason for none. kind: default: inferred. limits: with the load at which
    they run out; what was seen to be full outranks the demands. first, first_from: the known limit. Seeded."""
    kind = kind or systems.kind_of(observations)
    library = library or libraries.shipped()
    running_out = sorted(
        (limit for limit in limits if limit.exhausted_at is not None),
        key=lambda limit: limit.exhausted_at.load if limit.exhausted_at else math.inf,
    )
    if first is not None and first.load is not None:
        first_from = first_from or LoadInterval(first.load, first.load, first.load)
    foretold = Forecast(
        observations.name,
        observations.axis,
        kind,
        observations.loads,
        exhaustion=tuple(running_out),
        first=first,
        first_from=first_from,
    )
    if (reason := refusal.too_little(observations)) is not None:
        return replace(foretold, refused=reason)
    system, unexplained = _explained(observations, kind)
    if unexplained is not None and (reason := refusal.too_few_alone(observations)) is not None:
        return replace(foretold, refused=f"{unexplained} {reason}")
    resources = tuple(system.demands) if system is not None else ()
    data = candidates.seen(observations, kind, resources)
    # The first to run out beyond the measured loads, of those that end the growth; one within them did not end it.
    binding = ((limit, limit.exhausted_at) for limit in running_out if libraries.binds(limit))
    limit, end = next(((limit, at) for limit, at in binding if at and at.load > data.loads[-1]), (None, None))
    if end is not None:
        data = replace(data, limit=end.load)
    calibrated = library.alone if system is None else library.explained
    names = candidates.ALONE if system is None else candidates.WITH_RESOURCES
    errors = calibrated.errors[candidates.regime(data)]
    weighed = pool.weigh(pool.backtests(data, names), errors, calibrated.trust)
    asked = np.array(sorted(set(at)) or [times * observations.loads[-1] for times in FURTHER], dtype=np.float64)
    near = np.log2(asked / data.loads[-1]) <= calibrated.doublings
    loads = asked[near & (asked >= data.loads[0])]
    least = float(data.throughputs.max())
    full = saturating.seen_full(running_out, data)
    saturation = () if system is None else saturating.saturations(system, observations, data, calibrated, full)
    capacity = _capacity(data, saturation, weighed, calibrated, None if foretold.limited else limit, least)
    served = throughput(data, loads, weighed, calibrated) if len(loads) else []
    points = _points(system, observations, loads, served)
    if capacity is not None:
        if first is not None and first_from is not None:
            capacity = replace(capacity, load=saturating.measured(first_from), limited_by=first.id)
        elif capacity.limited_by in full:
            capacity = replace(capacity, load=saturating.measured(full[capacity.limited_by]))
        saturation = saturating.one_figure(saturation, capacity, full)
        most = capacity.throughput
        points = tuple(replace(point, throughput=held_back(point.throughput, most)) for point in points)
    elif system is not None:
        used = max(used[-1] for used in data.used.values())
        unexplained = (
            f"At {refusal.load(observations)} the most used resource is at {100 * used:.0f} %.{refusal.OUT_OF_SIGHT}"
        )
    if unexplained is not None and foretold.limited:
        unexplained = unexplained.removesuffix(refusal.UNMEASURED).removesuffix(refusal.OUT_OF_SIGHT)
    notes = _notes(observations, saturation, capacity, weighed, asked[~near], calibrated)
    if below := ", ".join(f"{load:g}" for load in asked[asked < data.loads[0]]):
        notes.append(f"No forecast at {below}: {data.loads[0]:g} is the lowest load that was measured.")
    if capacity is not None and any(point.throughput.value > capacity.throughput.value for point in points):
        notes.append(MORE_BY_THE_CURVE)
    if any(point.latency_p95_ms is not None for point in points):
        notes.append(NO_INTERVAL)
    return replace(
        foretold,
        at=points,
        capacity=capacity,
        saturation=saturation,
        notes=tuple(notes),
        at_least=least,
        unexplained=unexplained,
        curves=calibrated.curves,
    )


def _explained(observations: Observations, kind: Kind) -> tuple[System | None, str | None]:
    if (reason := refusal.nothing_rises(observations)) is not None:
        return None, reason
    system = systems.draw(observations, refusal.rising(observations), kind, DRAWS, np.random.default_rng(SEED))
    if (reason := refusal.after(system, observations)) is not None:
        return None, reason
    return system, None


STEP = 0.25
"""Doublings between the loads beyond the data at which a forecast is made: others are interpolated."""
MISSED = 0.2
"""A law that misses the highest load by more, in logarithms, is ignored: a cliff follows no law."""


def throughput(data: Seen, loads: Floats, weighed: Weighed, calibrated: Calibrated) -> list[Estimate]:
    """Interpolated within the measured loads. Beyond them it falls only if it fell by SMALLEST_BEND from half of the
    highest load on, and is never below the measured maximum without such a fall; of a rate no more than is offered."""
    top, measured = data.loads[-1], np.log(data.throughputs)
    doublings = np.arange(0.0, calibrated.doublings + STEP, STEP)
    doublings = np.union1d(doublings, np.log2(np.clip(data.limit / top, 1.0, 2 ** doublings[-1])))
    beyond, asked = top * 2**doublings, np.log2(loads / top)
    foretold = candidates.forecasts(data, beyond, tuple(weighed.weights))
    law, bend = candidates.least_squares(data, beyond), math.log1p(-SMALLEST_BEND)
    pooled = pool.pooled(foretold, doublings, weighed, law if abs(law[0] - measured[-1]) <= MISSED else None)
    between = np.interp(np.log([top / 2, *loads]), np.log(data.loads), measured)
    log_x = pooled.log_x
    if measured[-1] >= between[0] + bend:
        least = measured[-1] if measured[-1] < measured.max() + bend else measured.max()
        log_x = np.maximum.accumulate(np.maximum(log_x, least))
    apart = np.interp(asked, doublings, pooled.apart)
    log_x = np.where(loads <= top, between[1:], np.interp(asked, doublings, log_x))
    scale = np.where(loads <= top, pool.FLOOR, calibrated.scale.of(asked, apart))
    return [
        _at_most(saturating.estimated(calibrated.points, value, wide), float(most))
        for value, wide, most in zip(log_x, scale, np.exp(candidates.offered(data, loads)), strict=True)
    ]


def _at_most(expected: Estimate, most: float) -> Estimate:
    return Estimate(*(min(end, most) for end in (expected.value, expected.low, expected.high)))


def held_back(expected: Estimate, most: Estimate) -> Estimate:
    """Beyond the maximum the mean of both, in logarithms; nothing exceeds its high end."""
    ended = _at_most(expected, most.high)
    if ended.value <= most.value:
        return ended
    return replace(ended, value=max(math.sqrt(ended.value * most.value), ended.low))


def _points(
    system: System | None, observations: Observations, loads: Floats, served: Sequence[Estimate]
) -> tuple[ForecastPoint, ...]:
    drawn = None
    if system is not None and served:
        drawn = systems.p95_ms(system, observations, loads, np.random.default_rng(SEED))
    beyond = np.full(len(loads), math.inf) if drawn is None else np.median(drawn, axis=0)
    between = systems.between_ms(observations, loads)
    slow = np.where(loads > observations.loads[-1], beyond, between)
    return tuple(
        ForecastPoint(float(load), expected, Estimate(float(p95_ms), 0.0, math.inf) if math.isfinite(p95_ms) else None)
        for load, expected, p95_ms in zip(loads, served, slow, strict=True)
    )


def _capacity(
    data: Seen,
    saturation: Sequence[ResourceForecast],
    weighed: Weighed,
    calibrated: Calibrated,
    limit: Limit | None,
    least: float,
) -> ForecastCapacity | None:
    resources = saturating.by_resources(data, saturation, calibrated, least) if saturation else None
    at = None if limit is None else limit.exhausted_at
    if limit is None or at is None or (resources is not None and resources.load.value <= at.load):
        return resources
    if math.log2(at.load / data.loads[-1]) > calibrated.doublings:
        return resources
    (there,) = throughput(data, np.array([at.load]), weighed, calibrated)
    most = Estimate(*(max(end, least) for end in (there.value, there.low, there.high)))
    return ForecastCapacity(most, saturating.measured(at), limit.id)


def _notes(
    observations: Observations,
    saturation: Sequence[ResourceForecast],
    capacity: ForecastCapacity | None,
    weighed: Weighed,
    beyond: Floats,
    calibrated: Calibrated,
) -> list[str]:
    notes = []
    if len(beyond):
        doublings = f"{calibrated.doublings:.2g} doublings of the highest load"
        notes.append(
            f"No forecast at {', '.join(f'{load:g}' for load in beyond)}: the curves that intervals rest on reach no "
            f"further than {doublings} that was measured."
        )
    if capacity is not None:
        notes += _apart(saturation, capacity)
    known = {resource.resource for resource in saturation}
    left = [name for name in observations.resources if name not in known] if saturation else []
    flat = [name for name in left if name in observations.flattening]
    hourly = [name for name in left if name in observations.by_the_hour and name not in flat]
    if still := [name for name in left if name not in (*flat, *hourly)]:
        notes.append(f"Left out, because they do not rise with the throughput: {', '.join(still)}.")
    if hourly:
        notes.append(f"Left out, because the hour of the day drives them rather than the load: {', '.join(hourly)}.")
    if flat:
        notes.append(f"Left out: {', '.join(flat)}. {FLATTENING}")
    weights = sorted(weighed.weights.items(), key=lambda item: -item[1])
    counted = [f"{WORDS[name]} {100 * weight:.0f} %" for name, weight in weights if weight >= LEAST_WEIGHT]
    said = "The mean of the scalability law and of models weighed by how well each foretold"
    notes.append(f"{said}: {', '.join(counted)}.")
    return notes


def _apart(saturation: Sequence[ResourceForecast], capacity: ForecastCapacity) -> list[str]:
    notes, first = [], capacity.load
    close = [resource.resource for resource in saturation if resource.at_load and resource.at_load.low <= first.high]
    if len(close) > 1 and capacity.limited_by in close:
        notes.append(f"Which of {', '.join(close)} saturates first is not distinguishable.")
    for resource in saturation:
        soon, growth = resource.at_load and resource.at_load.value <= SOON * first.value, resource.growth
        if soon and growth is not None and (growth.low > 1 or growth.high < 1):
            notes.append(_grown(resource.resource, growth))
    return notes


def _grown(resource: str, growth: Estimate) -> str:
    more = growth.low > 1
    for digits in (2, 3, 4):
        texts = tuple(f"{float(f'{number:.{digits}g}'):,.15g}" for number in (growth.value, growth.low, growth.high))
        if len(set(texts)) == len({growth.value, growth.low, growth.high}):
            break
    value, low, high = texts
    times = f"{value} times as much at its saturation ({low} to {high})"
    if growth.high > VAGUE * growth.low:
        times = f"{'at least' if more else 'at most'} {low if more else high} times as much at its saturation"
    return f"A request needs {'more' if more else 'less'} of {resource} the higher the load is: {times}."


LEAST_FACTOR = 1.15
"""No expectation is narrower than this factor to either side: objectives are missed near, not at, saturation."""
LOADS = 24
FURTHEST = 16.0


def expected(observations: Observations, *, latency_p95_ms: float | None = None) -> LoadInterval | None:
    """Where the first resource saturates or the p95 latency passes its limit, with the interval of the network's draws;
    None where resources do not explain the observations, or no limit is in sight."""
    if refusal.too_little(observations) is not None:
        return None
    system, _ = _explained(observations, systems.kind_of(observations))
    if system is None:
        return None
    reached = np.sort(np.min([system.saturates_at(name) for name in system.demands], axis=0))
    if not math.isfinite(np.median(reached)):
        return None
    top = observations.loads[-1]
    value, low, high = (float(reached[round(share * (DRAWS - 1))]) for share in DRAWN)
    if latency_p95_ms is not None:
        loads = np.geomspace(top, min(max(high, top), FURTHEST * top), LOADS)
        slow = systems.p95_ms(system, observations, loads, np.random.default_rng(SEED))
        if slow is not None:
            middle, fast, slowest = np.quantile(slow, DRAWN, axis=0, method="nearest")
            passed = [min(loads[end > latency_p95_ms].tolist(), default=math.inf) for end in (middle, slowest, fast)]
            value, low, high = map(min, (value, low, high), passed)
    if value > FURTHEST * top:
        return None
    return LoadInterval(value, min(low, value / LEAST_FACTOR), min(max(high, value * LEAST_FACTOR), 2 * FURTHEST * top))


USED_UP = 0.95
"""A resource is used up from this use on."""


def score(forecast: Forecast, measured: Sequence[Observation]) -> Forecast:
    scores = []
    for point in forecast.at:
        actual = [row.throughput for row in measured if row.load == point.load]
        if actual:
            value, expected = median(actual), point.throughput
            inside = expected.low <= value <= expected.high
            scores.append(Scored(point.load, expected.value, expected.low, expected.high, value, inside))
    return replace(forecast, scored=tuple(scores))


def came(forecast: Forecast, measured: Observations, curve: Curve) -> Forecast:
    if forecast.capacity is None:
        return forecast
    lowest = measured.loads[0]
    rise = median(row.throughput for row in measured.rows if row.load == lowest) / lowest
    peak = curve.peak
    at_peak = [row for row in measured.rows if row.load == peak.load]
    used = {
        resource.resource: median(row.utilizations[resource.resource] for row in at_peak)
        for resource in forecast.saturation
        if resource.resource in measured.resources
    }
    most = max(used, key=lambda name: used[name], default="")
    reached = Reached(peak.load, peak.throughput, most, used.get(most, 0.0))
    if curve.shape != "linear" or reached.utilization >= USED_UP:
        at, capacity = peak.throughput / rise, forecast.capacity
        reached = replace(
            reached,
            saturated_at=at,
            load_inside=capacity.load.low <= at <= capacity.load.high,
            throughput_inside=capacity.throughput.low <= peak.throughput <= capacity.throughput.high,
        )
    return replace(forecast, reached=reached)


def calibrate(scores: Sequence[Scored]) -> Calibration | None:
    """None without scores."""
    if not scores:
        return None
    errors = [abs(scored.predicted / scored.actual - 1) for scored in scores if scored.actual > 0]
    return Calibration(sum(scored.inside for scored in scores), len(scores), median(errors) if errors else 0.0)
