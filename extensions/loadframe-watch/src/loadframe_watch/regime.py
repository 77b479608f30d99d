"""Whether a series has changed, row after row, with a stated time between false alarms: an e-detector on the ranks of
whitened residuals (docs/watching.md, "A regime change"). What also occurred at the same time a day or a week ago is no
change (approaching.py)."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import NormalDist, median

from loadframe_watch.approaching import Rhythm, check_rising

FEWEST, MOST = 576, 2016
"""Rows learned before any is judged, and most rows kept: two days (one shows too little) and a week of 5 min rows."""
BINS, ORDER = 8, 6
"""Ranges of load; order of the autoregression."""
SPREAD = 1.2
"""Ratio of the highest load to the lowest; with less the load counts as constant."""
SIZES = (0.7, 1.2, 2.0)
"""Shifts that are looked for, in standard deviations, in addition to the smallest one that the learned rows allow."""
SMALLEST, ERRORS = 0.35, 7.0
"""No smaller shift is looked for than SMALLEST or ERRORS / sqrt(rows learned): the mean of the scores is known to 1 /
sqrt(n), and an error of half a shift would count as that shift (3.5 standard errors)."""
GUARD = 100.0
"""Factor on A, as autoregression and ranks only hold approximately: with ten, 2 of 10 farms that only breathe gave an
alarm in a month (benchmarks/watch.py --only breathing --seed 9000). It delays the detection of a change by a fifth."""
LAG = 24
"""Rows that wait before they are learned: a change must not be learned while it is being noticed."""
STIRS, RECENT = 10.0, 12
"""Less evidence is none, as S is about 1 on quiet data; number of last rows whose median a change reports."""
WANDERS = 0.92
"""Sum of the weights from which on a series wanders: then its steps are judged, not its position."""
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Change:
    """rows: since then, about; expected, measured: at this load, of the last rows."""

    rows: int
    expected: float
    measured: float
    evidence: float
    threshold: float


@dataclass(slots=True)
class Series:
    """threshold: A without the guard, in rows: the expected time between two false alarms. ValueError where its parts
    do not fit together."""

    threshold: float
    loads: list[float | None] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    fitted: int = 0
    knots: list[tuple[float, float]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    innovations: list[float] = field(default_factory=list)
    widening: float = 1.0
    range: tuple[float, float] | None = None
    past: list[float] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)
    since: list[tuple[float | None, float]] = field(default_factory=list)
    since_s: float = 0.0
    rhythm: Rhythm = field(default_factory=Rhythm)
    waiting: list[tuple[float | None, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_rising([load for load, _ in self.knots])
        judges = self.fitted > 0
        if (
            len(self.loads) != len(self.values)
            or judges != bool(self.knots)
            or judges != bool(self.innovations)
            or len(self.past) > len(self.weights)
            or len(self.sums) != (len(self._sizes()) if judges else 0)
            or min(self.sums, default=0.0) < 0
            or self.widening < 1
        ):
            raise ValueError("its parts do not fit together")

    @property
    def needed(self) -> int:
        return max(0, FEWEST - len(self.values))

    def interrupted(self) -> None:
        self.past.clear()

    def take(self, load: float | None, value: float, t_s: float) -> Change | None:
        """On a Change, everything is learned again from that row on."""
        self.rhythm.add(t_s, load, value)
        if self.fitted == 0:
            self.loads.append(load)
            self.values.append(value)
            if len(self.values) >= FEWEST:
                self._fit()
            return None
        if load is not None and self.range is not None and not self.range[0] <= load <= self.range[1]:
            # No information on a change; the lines of the last fit are not extended to loads learned since.
            self.interrupted()
            self._keep(load, value)
            return None
        left = value - self._line(load)
        if len(self.past) < len(self.weights):
            self.past.append(left)
            return None
        score = self._score(left - _followed(self.weights, self.past)) / self.widening
        self.past = [*self.past[1:], left] if self.weights else []
        self.sums = [
            min(1e30, (1 + known) * math.exp(size * score - size * size / 2))
            for known, size in zip(self.sums, self._sizes(), strict=True)
        ]
        evidence = sum(self.sums) / len(self.sums)
        self.since_s = self.since_s if self.since else t_s
        self.since = [*self.since, (load, left)] if evidence > STIRS else []
        if evidence >= GUARD * self.threshold:
            recent = [off for _, off in self.since[-RECENT:]]
            if not self.rhythm.recurs(
                self.since_s, t_s, len(recent), median(recent), lambda load, value: value - self._line(load)
            ):
                return self._changed(evidence)
            self.sums, self.since = [0.0] * len(self.sums), []
        self._keep(load, value)
        return None

    def _keep(self, load: float | None, value: float) -> None:
        """LAG rows late; fits again whenever the number of rows has doubled, later every day or so."""
        self.waiting.append((load, value))
        if len(self.waiting) <= LAG:
            return
        load, value = self.waiting.pop(0)
        self.loads.append(load)
        self.values.append(value)
        del self.loads[:-MOST], self.values[:-MOST]
        self.fitted += 1
        if self.fitted >= 2 * FEWEST and (self.fitted & (self.fitted - 1) == 0 or self.fitted % (MOST // 7) == 0):
            self._fit()

    def _fit(self) -> None:
        known = [load for load in self.loads if load is not None]
        self.knots = _knots(self.loads, self.values)
        self.range = _range(known, self.knots) if known else None
        left = [value - self._line(load) for load, value in zip(self.loads, self.values, strict=True)]
        ordered, cut = sorted(left), len(left) // 100
        # Cut to the middle 98 %: a few outliers would hide the correlation.
        self.weights = _weights([min(max(value, ordered[cut]), ordered[-1 - cut]) for value in left])
        order = len(self.weights)
        errors = [left[at] - _followed(self.weights, left[at - order : at]) for at in range(order, len(left))]
        self.innovations = sorted(errors)
        learned = (order + len(self.knots)) / len(left)
        self.widening = widening([self._score(error) for error in errors]) * (1 + learned)
        self.fitted = max(self.fitted, len(self.values))
        self.sums = self.sums or [0.0] * len(self._sizes())
        self.past = left[len(left) - order :] if not self.past else self.past[-order:] if order else []

    def _line(self, load: float | None) -> float:
        if load is None or len(self.knots) == 1:
            return self.knots[0][1]
        at = min(max(bisect_right(self.knots, (load, math.inf)), 1), len(self.knots) - 1)
        (low, first), (high, second) = self.knots[at - 1], self.knots[at]
        return first + (second - first) * (load - low) / (high - low)

    def _score(self, innovation: float) -> float:
        low, high = bisect_left(self.innovations, innovation), bisect_right(self.innovations, innovation)
        return _NORMAL.inv_cdf(((low + high) / 2 + 0.5) / (len(self.innovations) + 1))

    def _sizes(self) -> list[float]:
        smallest = max(SMALLEST, ERRORS / math.sqrt(max(1, len(self.innovations))))
        sizes = [smallest, *(max(size, smallest) for size in SIZES)]
        return [*sizes, *(-size for size in sizes)]

    def _changed(self, evidence: float) -> Change:
        rows = self.since[-RECENT:]
        known = [load for load, _ in rows if load is not None]
        expected = self._line(median(known) if known else None)
        level = expected + median(left for _, left in rows)
        change = Change(len(self.since), expected, level, evidence, GUARD * self.threshold)
        fresh = Series(self.threshold, rhythm=self.rhythm)
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))
        return change


def autoregression(values: Sequence[float], order: int) -> list[float]:
    """An autoregression's weights, the latest last, by Levinson and Durbin's recursion on the sample autocorrelations
    (Brockwell and Davis, "Time Series: Theory and Methods", 5.2). Empty for a constant series."""
    count = len(values)
    mean = sum(values) / count
    away = [value - mean for value in values]
    power = sum(deviation * deviation for deviation in away)
    if power <= 0 or count <= 4 * order:
        return []
    correlations = [sum(map(float.__mul__, away[lag:], away[: count - lag])) / power for lag in range(order + 1)]
    weights: list[float] = []
    error = 1.0
    for lag in range(1, order + 1):
        if error <= 1e-9:
            break
        known = sum(weight * correlations[lag - 1 - at] for at, weight in enumerate(weights))
        partial = (correlations[lag] - known) / error
        weights = [weight - partial * other for weight, other in zip(weights, reversed(weights), strict=True)]
        weights.append(partial)
        error *= 1 - partial * partial
    return weights[::-1]


def widening(scores: Sequence[float]) -> float:
    """Factor by which the standard deviation of sums of neighbours exceeds that of independent scores; at least 1."""
    count = len(scores)
    worst = 1.0
    for size in (8, 16, 32, 64, 128):
        sums = [sum(scores[at : at + size]) / math.sqrt(size) for at in range(0, count - size + 1, size)]
        if len(sums) >= 6:
            mean = sum(sums) / len(sums)
            worst = max(worst, math.sqrt(sum((total - mean) ** 2 for total in sums) / (len(sums) - 1)))
    return worst


def _weights(values: Sequence[float]) -> list[float]:
    """For a series that wanders, those of its steps, as weights of its values."""
    weights = autoregression(values, ORDER)
    if sum(weights) < WANDERS:
        return weights
    steps = autoregression([second - first for first, second in pairwise(values)], ORDER - 1)
    levels = [0.0, *steps]
    return [first - second for first, second in zip(levels, [*steps, -1.0], strict=True)]


def _knots(loads: Sequence[float | None], values: Sequence[float]) -> list[tuple[float, float]]:
    """Medians in ranges of load with equally many rows; one knot for a missing or constant load."""
    rows = sorted((load, value) for load, value in zip(loads, values, strict=True) if load is not None)
    if len(rows) < len(values) or rows[-1][0] <= SPREAD * max(rows[0][0], 1e-12):
        return [(0.0, median(values))]
    parts = [rows[len(rows) * at // BINS : len(rows) * (at + 1) // BINS] for at in range(BINS)]
    knots: list[tuple[float, float]] = []
    for part in parts:
        load = median(load for load, _ in part)
        if not knots or load > knots[-1][0]:
            knots.append((load, median(value for _, value in part)))
    return knots


def _range(loads: Sequence[float], knots: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """From the lowest to the highest load, but beyond the outermost knots by at most half of their distance: a few rows
    at a distant load, as on one evening before a weekend, show little of what is usual."""
    reach = math.inf if len(knots) == 1 else (knots[-1][0] - knots[0][0]) / 2
    return max(min(loads), knots[0][0] - reach), min(max(loads), knots[-1][0] + reach)


def _followed(weights: Sequence[float], past: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, past, strict=True))
