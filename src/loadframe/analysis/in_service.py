"""How many requests are in service at once where throughput no longer grows (Little's law: n <= X R); which level is
enough; and whether a curve levels off gradually (docs/mathematics.md)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, variance

import numpy as np

from loadframe.analysis import student
from loadframe.analysis.arrays import Flags, Floats
from loadframe.analysis.comparison import Blocks, exp_in_range
from loadframe.analysis.pieces import Series
from loadframe.analysis.series import pooled
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
    """value: X R. throughput: of the plateau (1/s); response_s: R. bounded: requests queue at the lowest load already,
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
        """The only whole number in the interval; the next below without any, as n <= X R; None for several."""
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
    """From the plateau's throughputs (1/s) and all levels' mean response times, ascending, above zero; R is the first
    level's (docs/mathematics.md, "Requests in service at once"). outside_s: CPU time of target and driver within R and
    their waits for a CPU. waits_s: for a CPU, per request, on the plateau. grain: relative resolution of a throughput.
    clients: at the highest level, where each server has its own queue: then some are idle (mean value analysis; Reiser
    and Lavenberg 1980)."""
    flat, first = np.log([value for sample in throughputs for value in sample]), np.log(responses_s[0])
    value = float(np.exp(flat.mean() + first.mean()))
    response_s = float(np.exp(first.mean()))
    half = _half(flat, [np.log(sample) for sample in responses_s if min(sample) > 0], grain)
    outside = OUTSIDE if outside_s is None else min(1.0, LEAST_OUTSIDE + outside_s / response_s)
    return InService(
        value=value,
        low=1.0 if bounded else value * math.exp(-half) * (1 - outside),
        high=(value if clients is None or clients <= value else value * (clients - 1) / (clients - value))
        * math.exp(half)
        * (1 + LONGER + waits_s / response_s),
        throughput=float(np.exp(flat.mean())),
        response_s=response_s,
        bounded=bounded,
    )


def _half(flat: np.ndarray, responses: Sequence[np.ndarray], grain: float) -> float:
    """Half of the t-interval of log X + log R, assumed independent (Welch 1938)."""
    first = responses[0]
    if len(flat) < 2 or len(first) < 2:
        return math.inf
    squares, freedom = pooled(responses)
    parts = (
        ((flat.var(ddof=1) + grain**2 / 12) / len(flat), len(flat) - 1),
        (max(squares / freedom, first.var(ddof=1)) / len(first), freedom),
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


def enough(levels: Blocks) -> LoadInterval | None:
    """Low end: the lowest level for which it is not proven that a higher one gives more; high end: for which it is
    proven that none does. None where only the highest is enough, for one level, or without scatter."""
    logs = _logs(levels)
    pairs = list(combinations(sorted(logs), 2))
    gains = _gains(logs, pairs)
    if not gains:
        return None
    loads, worth = sorted(logs), math.log1p(WORTH)
    seen, low, high = (
        next(load for load in loads if all(gains[pair][end] <= worth for pair in pairs if pair[0] == load))
        for end in range(3)
    )
    return None if seen == loads[-1] else LoadInterval(seen, low, high)


def more(levels: Blocks) -> More | None:
    """The best higher level over the lowest; the interval holds for all levels, as the measurements choose the best.
    None for one level, without scatter, and without throughput at the lowest."""
    logs, base = _logs(levels), min(levels)
    if base not in logs:
        return None
    gains = _gains(logs, [(base, load) for load in sorted(logs) if load != base])
    best = max(gains, key=lambda pair: fmean(logs[pair[1]]), default=None)
    return None if best is None else More(best[1], base, *map(exp_in_range, gains[best]))


def _logs(levels: Blocks) -> dict[float, list[float]]:
    return {load: [math.log(value) for value in values] for load, values in levels.items() if min(values) > 0}


def _gains(logs: Blocks, pairs: Sequence[tuple[float, float]]) -> dict[tuple[float, float], tuple[float, float, float]]:
    """Of each pair the gain and the ends of its interval, all at once (Bonferroni), in logarithms; {} without
    scatter."""
    variances = {load: variance(values) if len(values) > 1 else 0.0 for load, values in logs.items()}
    freedom = sum(len(values) - 1 for values in logs.values())
    if freedom < 1 or not pairs:
        return {}
    common = sum((len(values) - 1) * variances[load] for load, values in logs.items()) / freedom
    errors = {load: max(own, common) / len(logs[load]) for load, own in variances.items()}
    times = float(student.quantile(1 - ERROR / (2 * len(pairs)), freedom))
    gains = {}
    for lower, higher in pairs:
        gain = fmean(logs[higher]) - fmean(logs[lower])
        side = times * math.sqrt(errors[lower] + errors[higher])
        gains[lower, higher] = gain, gain - side, gain + side
    return gains


SHARE = 4.0
"""Elasticities of 4/5 and of 1/5."""
GRADUAL = 2.0
"""A curve has no corner if its ends are further apart than this factor in all that the levels allow."""
FEWEST_GRADUAL = 5
SHARPNESS = np.geomspace(0.4, 40.0, 41)
PLACES = 80
BEYOND = 4.0
"""A bend is looked for up to this factor above and below the levels."""
ALLOWED = 5.99
"""Chi squared with two degrees of freedom, 95 %."""
NOISE_FLOOR = 0.01


def gradual(data: Series, pieces: Floats, knee: LoadInterval | None) -> LoadInterval | None:
    """Where the elasticity falls from 4/5 to 1/5, clipped to the levels; around the knee. None where a corner is not
    refuted, or the straight pieces, (n,), fit better."""
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
    if squares.min() >= (weight * straight**2).sum():
        return None
    possible = _possible(squares, top, data.noise**2 * data.spread[:top].mean())
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
        return math.inf
    places, squares, scale = _fits(x, np.log(value), np.ones(len(x)))
    reached = np.exp(scale) * places
    possible = _possible(squares, len(x), error**2)
    straight = possible & (places > x[-1])  # still in proportion at the highest: its end is not seen
    return math.inf if straight.any() else float(reached[possible].max())


def _fits(load: Floats, value: Floats, weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Places k that are tried; for each sharpness and place the sum of squares and log a. value: logarithms."""
    weight = weight / weight.mean()
    places = np.geomspace(load[0] / BEYOND, BEYOND * load[-1], PLACES)
    bent = np.logaddexp(0.0, SHARPNESS[:, None, None] * np.log(load / places[:, None])) / SHARPNESS[:, None, None]
    left = value - np.log(load) + bent
    scale = (weight * left).sum(axis=2) / weight.sum()
    return places, np.asarray((weight * (left - scale[:, :, None]) ** 2).sum(axis=2)), np.asarray(scale)


def _possible(squares: Floats, levels: int, variance: float) -> Flags:
    least = squares.min()
    return np.asarray(squares <= least + ALLOWED * max(least / (levels - 3), NOISE_FLOOR**2, variance))
