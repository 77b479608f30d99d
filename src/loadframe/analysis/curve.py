"""The curve over the levels: knee, cliff, peak, capacity, scalability law (docs/mathematics.md)."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis import in_service, pieces, segments, student
from loadframe.analysis import scalability as law
from loadframe.analysis.comparison import exp_in_range
from loadframe.analysis.series import pooled
from loadframe.model import Cliff, Curve, CurvePoint, LoadInterval, Observations, Peak, Scalability, Shape
from loadframe.progress import counted

CONFIDENCE = 0.95
CLIFF_KEPT = 0.6
"""A level that keeps less than this share of the throughput of the level before is a cliff."""
CLIFF_SPAN = 2.5
"""Levels up to this factor apart are neighbours for a cliff, so that bisection does not hide it; usual ladders grow by
2 to 2.5."""
PROPORTIONAL = 0.5
"""Least elasticity (d log throughput / d log load) at the end of a curve that grows in proportion."""
WIDE_INTERVAL = 0.2
FEW_BLOCKS = 3
MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class LevelSample:
    """A level: throughputs (1/s) and p95 latencies, by block; a latency is inf where waits kept growing."""

    load: float
    throughputs: tuple[float, ...]
    latencies_p95_ms: tuple[float, ...]


def fit(
    samples: Sequence[LevelSample],
    *,
    axis: str,
    treatment: str,
    within_latency_p95_ms: float | None = None,
    scalability: bool = False,
    gradually: bool = False,
) -> Curve:
    """Levels in any order (docs/mathematics.md, "Curve"). gradually: also test whether it levels off gradually; the
    knee's interval is then that whole range. capacity: the highest load up to which every level meets
    `within_latency_p95_ms`. What the data cannot determine is None, with a warning. ValueError for no level, a level
    without a throughput or given twice, loads not above 0, throughputs negative or not finite."""
    ordered = _checked(samples)
    squares, freedom = pooled([np.log(sample.throughputs) for sample in ordered if min(sample.throughputs) > 0])
    deviation = math.sqrt(squares / freedom) if freedom else 0.0
    points = tuple(_point(sample, deviation, freedom) for sample in ordered)
    peak_point = max(points, key=lambda point: point.throughput)
    peak = Peak(peak_point.load, peak_point.throughput)
    warnings = _measuring_warnings(ordered, points)
    cliff: Cliff | None = None
    knee: LoadInterval | None = None
    between: LoadInterval | None = None
    shape: Shape = "plateau"
    if peak.throughput > 0:
        data = pieces.series([point.load for point in points], [sample.throughputs for sample in ordered])
        cliff = _cliff(data)
        before = data if cliff is None else data.upto(cliff.from_load)
        top, last = int(before.value.argmax()), len(before.load) - 1
        fallen = cliff is not None and bool(before.value[last] < CLIFF_KEPT * before.value[top])
        bend = segments.first_bend(before, proven=fallen and _proven_fall(before, top, last))
        knee = _knee(bend, cliff, points)
        shape = "cliff" if cliff is not None else _shape(bend, data)
        if knee is not None and knee.low <= points[0].load and knee.high >= points[-1].load:
            knee = None
            warnings.append("The throughput bends, but these levels do not show where: measure more blocks.")
        elif gradually and cliff is None:
            between = in_service.gradual(data, bend.fitted, knee)
            knee = between or knee
        warnings += _shape_warnings(shape, points, knee)
    capacity, capacity_warnings = _capacity(ordered, within_latency_p95_ms)
    usl, usl_warnings = _law(points) if scalability else (None, [])
    levels = {sample.load: sample.throughputs for sample in ordered}
    return Curve(
        axis=axis,
        treatment=treatment,
        points=points,
        shape=shape,
        peak=peak,
        knee=knee,
        cliff=cliff,
        capacity=capacity,
        usl=usl,
        warnings=tuple(warnings + capacity_warnings + usl_warnings),
        enough=in_service.enough(levels),
        more=in_service.more(levels),
        gradual=between,
    )


def of(observations: Observations, *, within_latency_p95_ms: float | None = None) -> Curve:
    """A level for each load, its rows as blocks. Raises as `fit`."""
    samples = []
    for load in observations.loads:
        at_load = [row for row in observations.rows if row.load == load]
        latencies = tuple(row.latency_p95_ms for row in at_load if row.latency_p95_ms is not None)
        samples.append(LevelSample(load, tuple(row.throughput for row in at_load), latencies))
    return fit(
        samples,
        axis=observations.axis,
        treatment="A",
        within_latency_p95_ms=within_latency_p95_ms,
        scalability=sum(max(sample.throughputs) > 0 for sample in samples) >= law.FEWEST_POINTS,
        gradually=True,
    )


def _checked(samples: Sequence[LevelSample]) -> list[LevelSample]:
    ordered = sorted(samples, key=lambda sample: sample.load)
    if not ordered:
        raise ValueError("a curve needs at least one level")
    for sample in ordered:
        if not (math.isfinite(sample.load) and sample.load > 0):
            raise ValueError(f"load {sample.load} must be finite and above zero")
        if not sample.throughputs or not all(math.isfinite(value) and value >= 0 for value in sample.throughputs):
            raise ValueError(f"level {sample.load} needs finite throughputs of at least 0, got {sample.throughputs}")
    for before, after in itertools.pairwise(ordered):
        if before.load == after.load:
            raise ValueError(f"level {before.load} comes twice; give its blocks together")
    return ordered


def _point(sample: LevelSample, deviation: float, freedom: int) -> CurvePoint:
    values, median = sample.throughputs, float(np.median(sample.throughputs))
    low, high = min(values), max(values)
    if len(values) > 1 and low > 0:
        logs = np.log(values)
        quantile = student.quantile((1 + CONFIDENCE) / 2, freedom)
        half = quantile * max(logs.std(ddof=1), deviation) / math.sqrt(len(values))
        low, high = exp_in_range(logs.mean() - half), exp_in_range(logs.mean() + half)
    known = [value for value in sample.latencies_p95_ms if math.isfinite(value)]
    refuted = sample.latencies_p95_ms.count(math.inf)
    return CurvePoint(
        load=sample.load,
        throughput=median,
        throughput_low=min(low, median),
        throughput_high=max(high, median),
        latency_p95_ms=float(np.median(known)) if len(known) > refuted else None,
        steps=len(values),
    )


def _cliff(data: pieces.Series) -> Cliff | None:
    for fallen in range(1, len(data.load)):
        near = [i for i in range(fallen) if i == fallen - 1 or data.load[fallen] <= CLIFF_SPAN * data.load[i]]
        held = max(near, key=lambda i: (data.value[i], i))
        if _falls(data, held, fallen) and _proven_fall(data, held, fallen):
            return _tightest(data, held, fallen)
    return None


def _falls(data: pieces.Series, held: int, fallen: int) -> bool:
    """Further apart than CLIFF_SPAN, the share is lost once for each such factor."""
    spans = max(1.0, math.log(data.load[fallen] / data.load[held]) / math.log(CLIFF_SPAN))
    return bool(data.value[fallen] < CLIFF_KEPT**spans * data.value[held])


def _proven_fall(data: pieces.Series, held: int, fallen: int) -> bool:
    """True for single blocks, which have no noise estimate."""
    if data.freedom == 0:
        return True
    # Bonferroni over all pairs of neighbours.
    tests = len(data.load) - 1
    quantile = student.quantile(1 - (1 - CONFIDENCE) / (2 * tests), data.freedom)
    error = data.noise * math.hypot(data.scale[held], data.scale[fallen])
    return bool(data.value[held] - data.value[fallen] > quantile * error)


def _tightest(data: pieces.Series, held: int, fallen: int) -> Cliff:
    between = itertools.combinations(range(held, fallen + 1), 2)
    pairs = [(low, high) for low, high in between if _falls(data, low, high) and _proven_fall(data, low, high)]
    low, high = min(pairs, key=lambda pair: (data.load[pair[1]] / data.load[pair[0]], pair))
    return Cliff(
        from_load=float(data.load[low]),
        to_load=float(data.load[high]),
        throughput_kept=float(data.value[high] / data.value[low]),
    )


def _knee(bend: segments.Bend, cliff: Cliff | None, points: tuple[CurvePoint, ...]) -> LoadInterval | None:
    if bend.knee is not None or cliff is None:
        return bend.knee
    if cliff.from_load == points[0].load:
        # No level held before it: the knee is at the lowest level or below.
        return LoadInterval(cliff.from_load, cliff.from_load, cliff.to_load)
    middle = math.sqrt(cliff.from_load) * math.sqrt(cliff.to_load)
    return LoadInterval(min(max(middle, cliff.from_load), cliff.to_load), cliff.from_load, cliff.to_load)


def _shape(bend: segments.Bend, data: pieces.Series) -> Shape:
    fitted = bend.fitted
    top, last = int(fitted.argmax()), len(fitted) - 1
    falls = bend.knee is not None and fitted[last] < fitted[top] * (1 - segments.SMALLEST_BEND)
    # Where only the bend is proved (the end of a rise), the fall after it needs a proof of its own.
    if falls and (bend.kind.startswith("plateau") or _proven_fall(data, top, last)):
        return "decline"
    if bend.kind in ("flat", "rise-plateau") or last == 0:
        return "plateau"
    elasticity = (fitted[-1] - fitted[-2]) / fitted[-1] / (1 - data.load[-2] / data.load[-1])
    return "linear" if elasticity >= PROPORTIONAL else "plateau"


def _capacity(samples: list[LevelSample], limit_ms: float | None) -> tuple[LoadInterval | None, list[str]]:
    if limit_ms is None:
        return None, []
    latencies = {
        sample.load: [latency_ms for latency_ms in sample.latencies_p95_ms if not math.isnan(latency_ms)]
        for sample in samples
    }
    levels = [sample for sample in samples if latencies[sample.load] or max(sample.throughputs) <= 0]
    if not levels:
        return None, ["No latency was measured, so the capacity under the objective is unknown."]
    loads = [sample.load for sample in levels]
    # A level at which nothing succeeded misses any objective.
    rows = [latencies[sample.load] if max(sample.throughputs) > 0 else [math.inf] for sample in levels]
    middle = _crossing(loads, [float(np.median(row)) for row in rows], limit_ms)
    if middle is None:
        return None, [f"Even the lowest level, {loads[0]:g}, misses the objective of {limit_ms:g} ms; start lower."]
    low = _crossing(loads, [max(row) for row in rows], limit_ms) or loads[0]
    high = _crossing(loads, [min(row) for row in rows], limit_ms) or middle
    if max(len(row) for row in rows) == 1:
        low = max(load for load in loads if load <= middle)
        high = min((load for load in loads if load > middle), default=middle)
    further = f"The highest level, {loads[-1]:g}, still meets {limit_ms:g} ms; load further for the capacity."
    warnings = [further] if middle >= loads[-1] else []
    return LoadInterval(middle, min(low, middle), max(high, middle)), warnings


def _crossing(loads: list[float], latencies_ms: list[float], limit_ms: float) -> float | None:
    missed = next((i for i, latency in enumerate(latencies_ms) if latency > limit_ms), None)
    if missed is None:
        return loads[-1]
    if missed == 0:
        return None
    below, above = latencies_ms[missed - 1], latencies_ms[missed]
    if not math.isfinite(above) or below <= 0:
        return loads[missed - 1]
    share = math.log(limit_ms / below) / math.log(above / below)
    step = math.log(loads[missed] / loads[missed - 1])
    return min(loads[missed - 1] * math.exp(share * step), loads[missed])


def _law(points: tuple[CurvePoint, ...]) -> tuple[Scalability | None, list[str]]:
    usable = [point for point in points if point.throughput > 0]
    if len(usable) < law.FEWEST_POINTS:
        known = counted(len(usable), "level")
        return None, [f"The scalability law needs {law.FEWEST_POINTS} levels with throughput; {known} had any."]
    load = np.array([point.load for point in usable])
    return law.fit(load, np.array([point.throughput for point in usable])), []


def _measuring_warnings(samples: list[LevelSample], points: tuple[CurvePoint, ...]) -> list[str]:
    warnings = []
    single = [point.load for point in points if point.steps == 1]
    fewest = min(point.steps for point in points)
    if single:
        warnings.append(f"Only one block at {_listed(single)}: there is no interval, and noise may look like a shape.")
    elif fewest < FEW_BLOCKS:
        warnings.append(f"Only {fewest} blocks at some levels: the intervals are wide. Measure {FEW_BLOCKS} or more.")
    wide = [
        point.load
        for point in points
        if point.throughput_high - point.throughput_low > 2 * WIDE_INTERVAL * point.throughput
    ]
    if wide:
        warnings.append(f"The interval is wider than ±{100 * WIDE_INTERVAL:.0f} % at {_listed(wide)}.")
    failed = [sample.load for sample in samples if max(sample.throughputs) <= 0]
    if failed:
        warnings.append(f"No request succeeded at {_listed(failed)}.")
    return warnings


def _shape_warnings(shape: Shape, points: tuple[CurvePoint, ...], knee: LoadInterval | None) -> list[str]:
    warnings = []
    if len(points) < 3:
        said = "One level has" if len(points) == 1 else "Two levels have"
        warnings.append(f"{said} no bend; measure at least 3.")
    top = max(points, key=lambda point: point.throughput)
    if shape == "linear" and knee is None and top is points[-1]:
        warnings.append(f"The throughput still grows at the highest level, {points[-1].load:g}; load further.")
    if knee is not None and shape in ("decline", "cliff") and knee.load <= points[0].load:
        warnings.append(f"The throughput falls from the lowest level on; the knee is at {points[0].load:g} or below.")
    return warnings


def _listed(loads: list[float]) -> str:
    if len(loads) > MOST_LISTED:
        return f"{len(loads)} levels"
    return "level " + ", ".join(f"{load:g}" for load in loads)


LARGEST_DROP = 0.25
"""A larger relative fall between neighbouring levels may hide a cliff's edge."""
RESOLUTION = 0.15
"""Share by which the levels around a bisected cliff may lie apart."""


def next_probe(curve: Curve) -> float | None:
    """A level that bisects the cliff, or a decline's largest fall; None where resolved, or no whole level is left."""
    low, high = _bracket(curve)
    if low <= 0 or high <= low * (1 + RESOLUTION):
        return None
    middle = math.sqrt(low) * math.sqrt(high)
    inside = [level for level in (math.floor(middle), math.ceil(middle)) if low < level < high]
    return float(min(inside, key=lambda level: abs(math.log(level / middle)))) if inside else None


def _bracket(curve: Curve) -> tuple[float, float]:
    if curve.cliff is not None:
        return curve.cliff.from_load, curve.cliff.to_load
    steps = [
        (after.throughput / before.throughput, before.load, after.load)
        for before, after in itertools.pairwise(curve.points)
        if before.throughput > 0
    ]
    kept, low, high = min(steps, default=(1.0, 0.0, 0.0))
    return (low, high) if curve.shape == "decline" and kept <= 1 - LARGEST_DROP else (0.0, 0.0)
