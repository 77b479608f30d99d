"""From which level on more of the load gives no more throughput: how many threads are enough, and what more of them
give.

A level is enough where no higher one gives a WORTH more. The knee says where a curve bends, which is another question:
a curve that falls from its first level on bends where it falls fastest, and was enough at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean, variance

from loadframe.analysis import student
from loadframe.analysis.comparison import exp_in_range
from loadframe.model import LoadInterval, More

WORTH = 0.05
"""Of the throughput: more of the load that gives less than this more gives nothing."""
ERROR = 0.05
"""That any comparison of two levels is told wrongly (Bonferroni)."""
FEWEST_LEVELS = 2


def enough(levels: Mapping[float, Sequence[float]]) -> LoadInterval | None:
    """The lowest level that is enough, from the throughputs of each level's blocks. Its low end is the lowest level of
    which it is not proven that a higher one gives more, its high end the lowest one of which it is proven that none
    does, else the highest level. None where the highest level alone is enough, so that more was never seen not to help,
    and for less than two levels or no scatter to tell from."""
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
    """Throughput at the best of the higher levels over that at the lowest one, by the mean logarithm; the interval
    holds for all of the higher levels at once (Bonferroni), as the best one is chosen by what is measured. None for
    less than two levels, nothing done at the lowest, or no scatter to tell from."""
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
    """The logarithms of each level at which something was done, and their degrees of freedom."""
    logs = {load: [math.log(value) for value in values] for load, values in levels.items() if min(values) > 0}
    return logs, sum(len(values) - 1 for values in logs.values())


def _pooled(logs: Mapping[float, Sequence[float]], freedom: int) -> float:
    return sum((len(one) - 1) * variance(one) for one in logs.values() if len(one) > 1) / freedom


def _error(values: Sequence[float], pooled: float) -> float:
    """The square of a mean's standard error: no level is taken to scatter less than all together."""
    own = variance(values) if len(values) > 1 else 0.0
    return max(own, pooled) / len(values)
