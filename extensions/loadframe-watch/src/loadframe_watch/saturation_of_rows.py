"""Where a use is full, from rows in time order: of a watch, or of foreign production data (docs/observed.md). Readings
are averaged in ranges of the load with equally many of them, and each range counts as one in `saturation`.

A use flattens because each request needs less the more there are: then also over the throughput (a cache that fills).
Or fewer requests are served than the load offers: where that levels off below the ceiling, something else limits it. In
either case no load at which it is full is in sight."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadframe.analysis import saturation, series
from loadframe.analysis.arrays import Floats
from loadframe.model import REACHED, LoadInterval, Saturation

RANGES, FEWEST_IN_RANGE, FEWEST_RANGES = 24, 4, 4
SPREAD = 1.3
"""Ratio of the highest range's load to the lowest's; with less the load counts as constant."""
LEAST_USE = 0.1
"""A limit never used by this share is not reported: its line is mostly noise, and reaches far."""
FULL, NEAR = 0.9, 0.7
"""Ranges from the first use of FULL on, where growth slows, are left out. A use of NEAR may level throughput off."""
EARLY = 0.99
"""Confidence of the first hours' intervals: they are evaluated repeatedly, and the lowest one is reported first."""
FEWEST_WORTH = 4
"""Effective rows needed to report a limit: a line through them has two degrees of freedom left."""
FEWEST_CURVED = 8
"""Ranges needed to report a curve: half of them must carry a line."""
PROVEN = 4.0
"""Standard errors of the square term that make a use a curve: by chance once in many thousand straight fits."""
IN_PROPORTION = 0.9
"""Throughput per load at the highest loads over that at the lowest ones; with less it levels off."""
DRIFT = 0.1
"""Least relative width of the interval to either side: a request's demand changes by about this much within minutes on
the servers of benchmarks/observed.py, however long and even the rows are. Chosen on these servers."""
MOST_POWER = 2.5
"""The largest power b of U = a N^b, one of the forms that a use may have beyond the observed loads."""
DRAWS, SEED, EDGES = 400, 20261127, (0.025, 0.975)
Cells = Sequence[float | None] | Floats


@dataclass(frozen=True, slots=True)
class Ranges:
    """By range of load, ascending. scatter: standard error of each; errors: with the effective number of rows."""

    loads: Floats
    means: Floats
    scatter: Floats
    errors: Floats


@dataclass(frozen=True, slots=True)
class OfRows:
    """at: where it is full; None where that is not in sight. flattens: whether a proven curve is the reason. cheaper:
    whether each request needs less and less, without a visible end."""

    at: Saturation | None
    flattens: bool = False
    cheaper: bool = False


def ranges(loads: Cells, values: Cells) -> Ranges | None:
    """Means where both are known; None where the load hardly varied, or too little is known. (n,) each, in time order,
    None or NaN where missing."""
    return _ranges(_rows(loads, values))


def of_rows(
    loads: Cells, uses: Cells, served: Cells | None = None, *, fine: bool = False, last: bool = False
) -> OfRows:
    """Where a use is full. uses: shares of the ceiling. served: the throughput. fine: rows of seconds, averaged until
    neighbours are uncorrelated, as the interval rests on their scatter. last: no more rows will come: fewer than
    FEWEST_WORTH effective rows are then rounded up to that number, with as wide an interval."""
    rows = _rows(loads, uses)
    if fine:
        fewest = 2 * FEWEST_RANGES * FEWEST_IN_RANGE
        rows = np.array(series.independent(rows.tolist(), saturation.residuals, fitted=3, fewest=fewest)).reshape(-1, 2)
    averaged = _ranges(rows)
    if averaged is None or averaged.means.max() < LEAST_USE:
        return OfRows(None)
    furthest = saturation.FORESIGHT * float(averaged.loads[-1])
    if averaged.means.max() >= REACHED or fine:
        columns, confidence = (averaged.loads.tolist(), averaged.means.tolist()), EARLY if fine else 0.95
        return OfRows(saturation.over_load(*columns, 1.0, furthest=furthest, confidence=confidence))
    near = int(np.argmax(averaged.means >= FULL))
    if near >= FEWEST_CURVED:
        rows = rows[rows[:, 0] < averaged.loads[near]]
        lowest = (averaged.loads, averaged.means, averaged.scatter, averaged.errors)
        averaged = Ranges(*(column[:near] for column in lowest))
    curve = _curve(averaged.loads, averaged.means, averaged.errors)
    flattens = curve is not None and curve.flat(furthest)
    cheaper = served is not None and (_cheaper(loads, uses, served) or (flattens and not _levels_off(loads, served)))
    if flattens and (cheaper or served is None or averaged.means.max() < NEAR):
        return OfRows(None, flattens=True, cheaper=cheaper)
    straight = _straight(averaged, rows, furthest, last=last)
    if straight is not None and curve is not None and not flattens:
        if max(curve.line, curve.latest) > furthest:
            straight = None
        else:  # the interval includes that of the line through all ranges
            low, high = min(curve.soonest, straight.low, curve.line), max(curve.latest, straight.high, curve.line)
            straight = replace(straight, load=curve.line, low=low, high=high, method="curve")
    return OfRows(straight, cheaper=cheaper)


def _straight(averaged: Ranges, rows: Floats, furthest: float, *, last: bool) -> Saturation | None:
    """None where fewer than FEWEST_WORTH rows are independent, or these do not prove that the use rises."""
    alike, top = series.rows_alike(_left(rows, 1)), float(averaged.loads[-1])
    alike = min(alike, len(rows) / FEWEST_WORTH) if last else alike
    straight = saturation.ahead(list(zip(averaged.loads.tolist(), averaged.means.tolist(), strict=True)), 1.0)
    if straight is None or straight.load > furthest or len(rows) / alike < FEWEST_WORTH:
        return None
    by_rows = saturation.line(rows[:, 0].tolist(), rows[:, 1].tolist(), worth=1 / alike)
    wide = None if by_rows is None else by_rows.crossing(1.0)
    if wide is None:
        return None
    forms = [end for end in _forms(averaged) if end <= furthest]
    low = min(straight.low, straight.load - (wide[0] - wide[1]), straight.load / (1 + DRIFT), *forms)
    high = max(straight.high, straight.load + (wide[2] - wide[0]), straight.load * (1 + DRIFT), *forms)
    return replace(straight, low=min(max(low, top), straight.load), high=high)


def _forms(averaged: Ranges) -> list[float]:
    """Ends of where the line through the upper half of the ranges reaches 1, and of where a power law does: one of the
    forms is assumed right, but not which."""
    upper = slice(len(averaged.loads) // 2, None)
    load, use = averaged.loads[upper], averaged.means[upper]
    straight = saturation.line(load.tolist(), use.tolist())
    ends = [*((straight and straight.crossing(1.0)) or ())]
    if load[0] > 0 < use.min():
        power = saturation.line(np.log(load).tolist(), np.log(use).tolist())
        if power is not None and power.slope <= MOST_POWER:
            ends += [math.exp(min(end, 700.0)) for end in power.crossing(0.0) or ()]
    return ends


def _levels_off(loads: Cells, served: Cells) -> bool:
    """Whether throughput is clearly less than in proportion at the highest loads: a use that flattens may follow it."""
    averaged = ranges(loads, served)
    if averaged is None or len(averaged.loads) < FEWEST_CURVED or averaged.loads[0] <= 0:
        return True
    per_load = averaged.means / averaged.loads
    quarter = len(per_load) // 4
    return float(per_load[-quarter:].mean()) < IN_PROPORTION * float(per_load[:quarter].mean())


def _cheaper(loads: Cells, uses: Cells, served: Cells) -> bool:
    """Whether the use flattens over the throughput. Both are means by range of the load, which has no error: ranges of
    the throughput itself would collect its errors at both ends, and any use would seem to flatten."""
    load, use, given = (np.asarray(cells, dtype=np.float64) for cells in (loads, uses, served))
    load = np.where(np.isfinite(use) & np.isfinite(given), load, np.nan)
    of_use, of_served = ranges(load, use), ranges(load, given)
    if of_use is None or of_served is None:
        return False
    order = np.argsort(of_served.means, kind="stable")
    x, means = of_served.means[order], of_use.means[order]
    if not x[0] > 0 or not x[-1] > SPREAD * x[0]:
        return False
    errors = np.hypot(of_use.errors, float(np.ptp(means) / np.ptp(x)) * of_served.errors)
    curve = _curve(x, means, errors[order])
    return curve is not None and curve.flat(saturation.FORESIGHT * float(x[-1]))


def _rows(loads: Cells, values: Cells) -> Floats:
    rows = np.column_stack([np.asarray(cells, dtype=np.float64) for cells in (loads, values)])
    return rows[np.isfinite(rows).all(axis=1)]


def _ranges(rows: Floats) -> Ranges | None:
    if len(rows) < FEWEST_RANGES * FEWEST_IN_RANGE:
        return None
    parts = np.array_split(rows[np.argsort(rows[:, 0], kind="stable")], min(RANGES, len(rows) // FEWEST_IN_RANGE))
    loads, means = np.array([part.mean(axis=0) for part in parts]).T
    scatter = np.array([part[:, 1].std(ddof=1) / math.sqrt(len(part)) for part in parts])
    if not loads[-1] > SPREAD * max(loads[0], 1e-12):
        return None
    alike = series.rows_alike(_left(rows, 2))
    errors = scatter * math.sqrt(alike) if alike < math.inf else np.full_like(scatter, alike)
    return Ranges(loads, means, scatter, errors)


def _left(rows: Floats, degree: int) -> Floats:
    x = (rows[:, 0] - rows[:, 0].mean()) / max(float(np.ptp(rows[:, 0])), 1e-300)
    powers = np.vander(x, degree + 1)
    return np.asarray(rows[:, 1] - powers @ np.linalg.lstsq(powers, rows[:, 1], rcond=None)[0])


@dataclass(frozen=True, slots=True)
class _Curve:
    """A use with a proven curve over the load is full between where the parabola through its means may be (soonest,
    latest) and where the straight line of the upper half of them is (line)."""

    line: float
    soonest: float
    latest: float
    falls: bool

    def flat(self, furthest: float) -> bool:
        """Whether it flattens, and is not sure to be full up to there."""
        return self.falls and max(self.line, self.latest) > furthest


def _curve(x: Floats, means: Floats, errors: Floats) -> _Curve | None:
    """x: ascending. None unless the square term is proven."""
    if len(x) < FEWEST_CURVED or not np.all(np.isfinite(errors) & (errors > 0)):
        return None
    lowest, span = float(x[0]), float(np.ptp(x))
    share = (x - lowest) / span
    design = np.vander(share, 3, increasing=True) / errors[:, None]
    spread = np.linalg.inv(design.T @ design)
    terms = spread @ design.T @ (means / errors)
    if abs(terms[2]) < PROVEN * math.sqrt(spread[2, 2]):
        return None
    draws = np.random.default_rng(SEED).multivariate_normal(terms, spread, size=DRAWS)
    soonest, latest = np.quantile([_full_at(*draw) for draw in draws.tolist()], EDGES, method="nearest")
    upper = share >= np.median(share)
    slope, level = np.polyfit(share[upper], means[upper], 1, w=1 / errors[upper])
    line = max(1.0, float((1 - level) / slope)) if slope > 0 else math.inf
    line, soonest, latest = (lowest + span * float(end) for end in (line, soonest, latest))
    return _Curve(line, soonest, latest, falls=bool(terms[2] < 0))


def _full_at(level: float, slope: float, square: float) -> float:
    """At or above the highest share, 1; infinite where the parabola never reaches 1."""
    if level + slope + square >= 1:
        return 1.0
    above = [
        float(root.real) for root in np.roots([square, slope, level - 1]) if abs(root.imag) < 1e-9 and root.real >= 1
    ]
    return min(above, default=math.inf)


BENT = 1.5
"""Multiple of the response time at the lowest loads from which on it counts as bent, if also at all higher loads."""
ERRORS = 3.0


def bend(loads: Cells, responses: Cells) -> LoadInterval | None:
    """The load from which the response time exceeds that of the lowest third of loads: between the last range that does
    not and the first one that does. None where no range does, or it begins within that third."""
    averaged = ranges(loads, responses)
    if averaged is None:
        return None
    third = max(1, len(averaged.means) // 3)
    flat = float(np.median(averaged.means[:third]))
    error = float(np.median(averaged.scatter[:third]))
    above = (averaged.means > BENT * flat) & (averaged.means - flat > ERRORS * np.hypot(averaged.scatter, error))
    if not above[-1]:
        return None
    first = int(len(above) - np.argmin(above[::-1])) if not above.all() else 0
    if first < third:
        return None
    low, high = float(averaged.loads[first - 1]), float(averaged.loads[first])
    return LoadInterval((low + high) / 2, low, high)
