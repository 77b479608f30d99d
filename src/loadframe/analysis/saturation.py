"""Where a limit is used up, over the load and over time (docs/mathematics.md): least squares through the lowest loads,
and Fieller's interval of the crossing (Draper and Smith, "Applied Regression Analysis", 3.2). Only the
standard library: a watch's lasting process imports it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from loadframe.analysis import series, student
from loadframe.model import REACHED, Saturation, grouped
from loadframe.model.curve import How, Method

Rows = Sequence[tuple[float, float]]
GROWTH_SHARE = 0.02
"""Share of its ceiling by which a use must grow over all loads to run out."""
ASSUMED_ERROR = 0.1
"""Relative error of a use where two points leave no residual."""
CONFIDENCE = 0.95
FEWEST_FREEDOM = 2
FORESIGHT = 10.0
"""No result beyond this many times the highest load, or the time watched."""
FLAT, SPAN, SLOWER, MATERIAL = 0.95, 1.2, 0.25, 0.1
"""A use has levelled off from the first load at which it is FLAT of its highest, if it grows up to SPAN times that load
by less than SLOWER of its growth before, where that would have been MATERIAL."""
USED_UP = 0.9
"""Share of its ceiling: where throughput is flat, a share of time or a rate from here on is the cause."""
FEWEST_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Line:
    """y = level + slope (x - middle). spread: sum of squares of x; count: effective rows; times: standard errors in
    half of an interval."""

    level: float
    slope: float
    middle: float
    spread: float
    count: float
    deviation: float
    freedom: int
    times: float
    left: Sequence[float]

    @property
    def error(self) -> float:
        return self.deviation / math.sqrt(self.spread)

    @property
    def half(self) -> float:
        return self.times * self.error

    def at(self, x: float) -> float:
        return self.level + self.slope * (x - self.middle)

    def crossing(self, ceiling: float) -> tuple[float, float, float] | None:
        """Where y is `ceiling`, with Fieller's interval; None (unbounded) where the slope is not significant."""
        if not (self.slope > 0 and self.slope > self.half):
            return None
        # Divided by b^2, with g = t^2 s^2 / (b^2 Sxx) < 1, d = N - mean and e = N* - mean, so that units cannot
        # underflow: (1 - g) d^2 - 2 e d + e^2 - g Sxx / n = 0.
        g = (self.half / self.slope) ** 2
        away = (ceiling - self.level) / self.slope
        if not math.isfinite(away) or g >= 1:
            return None
        root = math.sqrt(g * (away**2 + (1 - g) * self.spread / self.count)) if abs(away) < 1e150 else math.inf
        if not math.isfinite(root / (1 - g)):
            return None
        return self.middle + away, self.middle + (away - root) / (1 - g), self.middle + (away + root) / (1 - g)


def line(
    x: Sequence[float],
    y: Sequence[float],
    covariate: Sequence[float] | None = None,
    *,
    worth: float = 1.0,
    confidence: float = CONFIDENCE,
) -> Line | None:
    """Least squares. covariate: at equal values of it the slope holds. worth: effective rows per row. None where x is
    constant, or collinear with the covariate."""
    away, rest, fitted = _centred(x), _centred(y), 2
    if covariate is not None:
        other, fitted = _centred(covariate), 3
        squares, both, spread = _product(other, other), _product(away, other), _product(away, away)
        if squares > 0 and both**2 >= 0.98 * spread * squares:
            return None
        if squares > 1e-12 * max(1.0, spread):
            by_x, by_y = both / squares, _product(rest, other) / squares
            away = [first - by_x * second for first, second in zip(away, other, strict=True)]
            rest = [first - by_y * second for first, second in zip(rest, other, strict=True)]
    spread = _product(away, away)
    if spread <= 0:
        return None
    slope = _product(away, rest) / spread
    left = [first - slope * second for first, second in zip(rest, away, strict=True)]
    freedom = len(x) - fitted
    if freedom > 0:
        freedom = freedom if worth == 1 else max(FEWEST_FREEDOM, round(len(x) * worth) - fitted)
        deviation = math.sqrt(_product(left, left) * worth / freedom)
        times = float(student.quantile((1 + confidence) / 2, min(freedom, student.MOST_TERMS)))
    else:
        deviation, times = ASSUMED_ERROR * math.sqrt(_product(y, y) / len(y)), 1.96
    return Line(fmean(y), slope, fmean(x), worth * spread, worth * len(x), deviation, freedom, times, left)


def over_load(
    loads: Sequence[float],
    uses: Sequence[float],
    ceiling: float,
    *,
    flat_from: float | None = None,
    furthest: float = math.inf,
    confidence: float = CONFIDENCE,
) -> Saturation | None:
    """Where use reaches `ceiling`; None where it does not, has levelled off below it, or would beyond `furthest`.
    loads, uses: one per step, use in the ceiling's unit. Measured: between the highest load below the ceiling and the
    lowest at it; with none below, low = high = the lowest load. Else extrapolated from at least two loads
    (docs/mathematics.md, "Saturation"). flat_from: for a share of time or a rate, the lowest load without growth of
    throughput, from which on levels do not count. ValueError where the ceiling is not positive or the numbers
    differ."""
    rows = _known(loads, uses, ceiling)
    levels = [(load, median(uses)) for load, uses in grouped(sorted(rows)).items()]
    plateau = math.inf if flat_from is None else flat_from
    first = next((load for load, use in levels if use >= (REACHED if load < plateau else USED_UP) * ceiling), None)
    if flat_from is None:
        flat_from = _levels_off(levels)
    below = [(load, use) for load, use in rows if use < REACHED * ceiling]
    lowest = below if flat_from is None else [(load, use) for load, use in below if load < flat_from]
    if first is None:
        saturation = None if flat_from is not None else ahead(lowest, ceiling, confidence)
    else:
        method: Method = "line"
        low = max((load for load, _ in rows if load < min(first, plateau)), default=levels[0][0])
        fitted = _line(lowest, confidence)
        if fitted is None:
            use = dict(levels)[low]
            low = min(max(low, low * ceiling / use), first) if 0 < use < ceiling else low
            method = "proportion" if low < first else "bracket"
        saturation = _within(None if fitted is None else fitted.crossing(ceiling), low, first, method, "measured")
    return saturation if saturation is not None and saturation.load <= furthest else None


def ahead(rows: Rows, ceiling: float, confidence: float = CONFIDENCE) -> Saturation | None:
    """Where the line through (load, use) reaches the ceiling; None unless it grows significantly, by GROWTH_SHARE."""
    fitted = _line(rows, confidence)
    crossing = None if fitted is None else fitted.crossing(ceiling)
    loads = [load for load, _ in rows]
    if fitted is None or crossing is None or fitted.slope * (max(loads) - min(loads)) < GROWTH_SHARE * ceiling:
        return None
    return _within(crossing, max(loads), math.inf, "line", "extrapolated")


def demand_at(loads: Sequence[float], uses: Sequence[float], ceiling: float, load: float) -> float | None:
    """The use expected at `load` without a ceiling: on the line through the uses below it, their mean if that does not
    grow; of a single load in proportion. None for no load below it."""
    below = [(at, use) for at, use in _known(loads, uses, ceiling) if use < REACHED * ceiling]
    fitted = _line(below)
    if fitted is None:
        return median(use for _, use in below) * load / below[0][0] if below else None
    return max(fitted.level if abs(fitted.slope) <= fitted.half else fitted.at(load), 0.0)


def _known(loads: Sequence[float], uses: Sequence[float], ceiling: float) -> list[tuple[float, float]]:
    if not ceiling > 0 or not math.isfinite(ceiling):
        raise ValueError(f"the ceiling is {ceiling}; it must be finite and above zero")
    if len(loads) != len(uses):
        raise ValueError(f"{len(loads)} loads and {len(uses)} uses; one use per load is needed")
    return [(float(x), float(y)) for x, y in zip(loads, uses, strict=True) if math.isfinite(x) and math.isfinite(y)]


def _levels_off(levels: Rows) -> float | None:
    most = max((use for _, use in levels), default=0.0)
    at = next((at for at, (_, use) in enumerate(levels) if use >= FLAT * most), 0)
    if at == 0 or levels[-1][0] < SPAN * levels[at][0]:
        return None
    (lowest, least), (load, use), (highest, last) = levels[0], levels[at], levels[-1]
    expected = (use - least) / (load - lowest) * (highest - load)
    return load if expected >= MATERIAL * most and last - use < SLOWER * expected else None


def _line(rows: Rows, confidence: float = CONFIDENCE, worth: float = 1.0) -> Line | None:
    return line([x for x, _ in rows], [y for _, y in rows], confidence=confidence, worth=worth) if rows else None


def _within(
    crossing: tuple[float, float, float] | None, low: float, high: float, method: Method, how: How
) -> Saturation | None:
    """Cut to the observed bracket; the bracket itself where one outside refutes the line."""
    if crossing is None or crossing[2] < low or crossing[1] > high:
        middle = math.sqrt(low) * math.sqrt(high) if low > 0 else (low + high) / 2
        middle, method = min(max(middle, low), high), method if method == "proportion" else "bracket"
        return Saturation(middle, low, high, how, method) if middle < math.inf else None
    load = min(max(crossing[0], low), high)
    return Saturation(load, min(max(crossing[1], low), load), max(min(crossing[2], high), load), how, method)


def over_time(times_s: Sequence[float], uses: Sequence[float], ceiling: float) -> Saturation | None:
    """Seconds from the last reading until use reaches `ceiling`, 95 %; 0 where that is REACHED. None without
    significant growth, for too few readings, where the ceiling was touched and left again, and beyond FORESIGHT.
    ValueError as `over_load`."""
    rows: Sequence[series.Row] = _known([time_s - times_s[-1] for time_s in times_s], uses, ceiling)
    if rows and rows[-1][1] >= REACHED * ceiling:
        return Saturation(0.0, 0.0, 0.0, "measured", "bracket")
    if len(rows) < FEWEST_BATCHES or any(use >= REACHED * ceiling for _, use in rows):
        return None
    watched_s = -rows[0][0]
    rows = series.independent(rows, residuals, fitted=2, fewest=FEWEST_BATCHES)
    saturation = ahead([(time_s, use) for time_s, use in rows], ceiling) if len(rows) >= FEWEST_BATCHES else None
    if saturation is None or saturation.load > FORESIGHT * watched_s:
        return None
    return replace(saturation, low=max(saturation.low, 0.0))


def residuals(rows: Sequence[series.Row]) -> Sequence[float] | None:
    x, y, *covariate = ([row[at] for row in rows] for at in range(len(rows[0])))
    fitted = line(x, y, *covariate)
    return None if fitted is None else fitted.left


def _centred(values: Sequence[float]) -> list[float]:
    mean = fmean(values)
    return [value - mean for value in values]


def _product(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(map(float.__mul__, first, second))
