"""How many requests are in service at once where throughput no longer grows (Little's law: n <= X R); which level is
enough: no higher one gives a WORTH more; and whether a curve levels off gradually, X = a N / (1 + (N / k)^p)^(1/p)
(docs/mathematics.md)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, variance

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Flags, Floats
from loadframe.analysis.comparison import exp_in_range
from loadframe.analysis.pieces import Series
from loadframe.model import LoadInterval, More

CONFIDENCE = 0.95
OUTSIDE = 0.15
"""Share of a request's time outside what limits (connections, parsing), where its CPU time is unknown."""
LEAST_OUTSIDE = 0.05
"""The same in addition to the CPU time, where that is known: a loopback and a scheduler cost time, too."""
LONGER = 0.05
"""Share by which a request may take longer in service at a high load than at a low one."""
LARGEST = 1e9
NARROW = 0.4
"""Widest interval, as a share of the value, that distinguishes sizes."""


@dataclass(frozen=True, slots=True)
class InService:
    """value: X R. throughput: of the plateau (1/s); response_s: R. bounded: requests queued at the lowest load already,
    so at most `high` are in service."""

    value: float
    low: float
    high: float
    throughput: float
    response_s: float
    bounded: bool = False

    @property
    def known(self) -> bool:
        return not self.bounded and (self.whole is not None or self.high - self.low <= NARROW * self.value)

    @property
    def whole(self) -> int | None:
        """The only whole number in the interval; without any, the next below, as n <= X R; None for several."""
        first, last = max(1, math.ceil(self.low)), math.floor(min(self.high, LARGEST))
        return last if 1 <= last <= first and not self.bounded else None

    def holds(self, size: float) -> bool:
        return self.known and (self.low <= size <= self.high or size == self.whole)


def in_service(
    throughputs: Sequence[Sequence[float]],
    responses_s: Sequence[Sequence[float]],
    *,
    outside_s: float | None = None,
    waits_s: float = 0.0,
    grain: float = 0.0,
    bounded: bool = False,
    clients: float | None = None,
) -> InService:
    """X R from the plateau's throughputs (1/s) and all levels' mean response times, ascending, a number above zero per
    step; R is the first level's (docs/mathematics.md, "Requests in service at once"). outside_s: CPU time of target and
    driver within R and their waits for a CPU. waits_s: for a CPU, per request, on the plateau. grain: relative
    resolution of a throughput. clients: at the highest level, where each server has its own queue: then some are idle
    (mean value analysis; Reiser and Lavenberg 1980)."""
    flat = np.concatenate([np.asarray(sample, dtype=np.float64) for sample in throughputs])
    first = np.asarray(responses_s[0], dtype=np.float64)
    value = float(np.exp(np.log(flat).mean() + np.log(first).mean()))
    response_s = float(np.exp(np.log(first).mean()))
    half = _half(np.log(flat), [np.log(sample) for sample in responses_s if min(sample) > 0], grain)
    outside = OUTSIDE if outside_s is None else min(1.0, LEAST_OUTSIDE + outside_s / response_s)
    return InService(
        value=value,
        low=1.0 if bounded else value * math.exp(-half) * (1 - outside),
        high=(value if clients is None or clients <= value else value * (clients - 1) / (clients - value))
        * math.exp(half)
        * (1 + LONGER + waits_s / response_s),
        throughput=float(np.exp(np.log(flat).mean())),
        response_s=response_s,
        bounded=bounded,
    )


def _half(flat: np.ndarray, responses: Sequence[np.ndarray], grain: float) -> float:
    """Half of the t-interval of log X + log R, assumed independent (Welch 1938)."""
    first = responses[0]
    if len(flat) < 2 or len(first) < 2:
        return math.inf
    squares = sum(float(((logs - logs.mean()) ** 2).sum()) for logs in responses)
    freedom = sum(len(logs) - 1 for logs in responses)
    parts = (
        ((float(flat.var(ddof=1)) + grain**2 / 12) / len(flat), len(flat) - 1),
        (max(squares / freedom, float(first.var(ddof=1))) / len(first), freedom),
    )
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0
    worth = variance**2 / sum(part**2 / freedom for part, freedom in parts)
    return float(student.quantile((1 + CONFIDENCE) / 2, worth)) * math.sqrt(variance)


WORTH = 0.05
"""More load that gains less than this share of the throughput gains nothing."""
ERROR = 0.05
"""Probability that any comparison of two levels is wrong (Bonferroni)."""
FEWEST_LEVELS = 2


def enough(levels: Mapping[float, Sequence[float]]) -> LoadInterval | None:
    """The lowest level that is enough, from each level's blocks. Low end: the lowest for which it is not proven that a
    higher level gives more; high end: for which it is proven that none does. None where only the highest is enough,
    with fewer than two levels, or without scatter."""
    logs, freedom = _logs(levels)
    loads = sorted(logs)
    if len(loads) < FEWEST_LEVELS or freedom < 1:
        return None
    pooled = _pooled(logs, freedom)
    pairs = list(combinations(loads, 2))
    times = float(student.quantile(1 - ERROR / (2 * len(pairs)), freedom))
    gains, sides = dict[tuple[float, float], float](), dict[tuple[float, float], float]()
    for lower, higher in pairs:
        gains[lower, higher] = fmean(logs[higher]) - fmean(logs[lower])
        sides[lower, higher] = times * math.sqrt(_error(logs[lower], pooled) + _error(logs[higher], pooled))
    worth = math.log1p(WORTH)
    of = {load: [pair for pair in pairs if pair[0] == load] for load in loads}
    seen = next(load for load in loads if all(gains[pair] <= worth for pair in of[load]))
    if seen == loads[-1]:
        return None
    low = next(load for load in loads if all(gains[pair] - sides[pair] <= worth for pair in of[load]))
    high = next(load for load in loads if all(gains[pair] + sides[pair] <= worth for pair in of[load]))
    return LoadInterval(seen, low, high)


def more(levels: Mapping[float, Sequence[float]]) -> More | None:
    """Throughput at the best higher level over that at the lowest, by the mean logarithm; the interval holds for all
    levels at once (Bonferroni), as the measurements choose the best. None as for `enough`, and without throughput at
    the lowest."""
    logs, freedom = _logs(levels)
    if len(logs) < FEWEST_LEVELS or freedom < 1 or min(levels) not in logs:
        return None
    base, *higher = sorted(logs)
    pooled = _pooled(logs, freedom)
    best = max(higher, key=lambda load: fmean(logs[load]))
    gain = fmean(logs[best]) - fmean(logs[base])
    times = float(student.quantile(1 - ERROR / (2 * len(higher)), freedom))
    side = times * math.sqrt(_error(logs[base], pooled) + _error(logs[best], pooled))
    return More(best, base, exp_in_range(gain), exp_in_range(gain - side), exp_in_range(gain + side))


def _logs(levels: Mapping[float, Sequence[float]]) -> tuple[dict[float, list[float]], int]:
    logs = {load: [math.log(value) for value in values] for load, values in levels.items() if min(values) > 0}
    return logs, sum(len(values) - 1 for values in logs.values())


def _pooled(logs: Mapping[float, Sequence[float]], freedom: int) -> float:
    return sum((len(sample) - 1) * variance(sample) for sample in logs.values() if len(sample) > 1) / freedom


def _error(values: Sequence[float], pooled: float) -> float:
    own = variance(values) if len(values) > 1 else 0.0
    return max(own, pooled) / len(values)


SHARE = 4.0
"""Elasticities of 4/5 and of 1/5."""
GRADUAL = 2.0
"""A curve has no corner if its ends are further apart than this factor, for every curve that the levels allow."""
FEWEST_GRADUAL = 5
SHARPNESS = np.geomspace(0.4, 40.0, 41)
PLACES = 80
BEYOND = 4.0
"""A bend is looked for up to this factor above and below the levels."""
ALLOWED = 5.99
"""Chi squared with two degrees of freedom, 95 %."""
NOISE_FLOOR = 0.01


def gradual(data: Series, pieces: Floats, knee: LoadInterval | None) -> LoadInterval | None:
    """The loads between which the elasticity falls from 4/5 to 1/5, clipped to the levels; around the knee. None where
    a corner is not refuted, or the straight pieces, (n,), fit better."""
    if knee is None:
        return None
    top = int(data.value.argmax()) + 1
    if top < FEWEST_GRADUAL or not np.all(data.value[:top] > 0):
        return None
    load, value, weight = data.load[:top], np.log(data.value[:top]), 1 / (data.spread[:top] + 1e-12)
    places, squares, _ = _fits(load, value, weight)
    weight = weight / weight.mean()
    straight = value - np.log(np.maximum(pieces[:top], 1e-12))
    straight -= (weight * straight).sum() / weight.sum()
    if squares.min() >= float((weight * straight**2).sum()):
        return None
    possible = _possible(squares, top, data.noise**2 * float(data.spread[:top].mean()))
    if not (SHARE ** (2 / SHARPNESS[possible.any(axis=1)]) > GRADUAL).all():
        return None
    apart = SHARE ** (1 / SHARPNESS[:, None])
    low, high = float((places / apart)[possible].min()), float((places * apart)[possible].max())
    return LoadInterval(
        knee.load, min(max(low, float(load[0])), knee.low), max(min(high, float(data.load[-1])), knee.high)
    )


def most(x: Floats, value: Floats, error: float) -> float:
    """The largest asymptote of the curves that the levels allow; inf where a straight line is among them. x, value:
    (n,), ascending x. error: relative, of each value; 0 where unknown."""
    if len(x) < FEWEST_GRADUAL:
        return float("inf")
    places, squares, scale = _fits(x, np.log(value), np.ones(len(x)))
    reached = np.exp(scale) * places
    possible = _possible(squares, len(x), error**2)
    straight = possible & (places > x[-1])  # still in proportion at the highest: its end is not seen
    return float("inf") if straight.any() else float(reached[possible].max())


def _fits(load: Floats, value: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Places k that are tried; for each sharpness and place the sum of squares and log a. value: logarithms."""
    weight = weight / weight.mean()
    places = np.geomspace(load[0] / BEYOND, BEYOND * load[-1], PLACES)
    bent = np.logaddexp(0.0, SHARPNESS[:, None, None] * np.log(load / places[:, None])) / SHARPNESS[:, None, None]
    left = value - np.log(load) + bent
    scale = (weight * left).sum(axis=2) / weight.sum()
    return places, np.asarray((weight * (left - scale[:, :, None]) ** 2).sum(axis=2)), np.asarray(scale)


def _possible(squares: Floats, levels: int, variance: float) -> Flags:
    least = float(squares.min())
    return np.asarray(squares <= least + ALLOWED * max(least / (levels - 3), NOISE_FLOOR**2, variance))
