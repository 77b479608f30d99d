"""Whether a reader of a change log follows: its lag does not grow. One that falls behind applies as fast as it can."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

import numpy as np

from loadframe.analysis import series, student
from loadframe.analysis.saturation import FEWEST_BATCHES, line, residuals
from loadframe.model import LoadInterval

Verdict = Literal["followed", "behind", "not proven"]
CONFIDENCE = 0.95
SLOW = 0.02
"""A lag that grows by less than this share of the offered rate (the interval's high end) counts as not growing: a
window of seconds cannot distinguish less from none."""
STRICT = 2.0
"""Times the half-width: a lag that is summed over slices keeps the noise of all before. Simulated with 12 slices: of
readers that are 3 % and more behind, up to 6 % seem to follow; of those with a tenth to spare 71 % do (without: 16)."""


@dataclass(frozen=True, slots=True)
class Following:
    """slope: of the lag, changes/s, with its 95 % interval; infinite where too few readings are independent."""

    offered: float
    slope: float
    low: float
    high: float
    verdict: Verdict

    @property
    def applied(self) -> float:
        return self.offered - self.slope


@dataclass(frozen=True, slots=True)
class Followed:
    """up_to: the highest offered rate (changes/s) that is proved to be followed, as all below it; 0 for none.
    behind_from: the lowest rate proved not to be followed. rate: what a reader that is behind applies, with a 95 %
    interval: the highest rate that can be followed."""

    up_to: float
    behind_from: float | None
    rate: LoadInterval | None


def following(times_s: Sequence[float], lags: Sequence[float], offered: float) -> Following:
    """One step: times of the readings (s, ascending), the lag (changes), and the rate at which changes were made
    (1/s)."""
    rows = series.independent(list(zip(times_s, lags, strict=True)), residuals, fitted=2, fewest=FEWEST_BATCHES)
    fitted = line(*zip(*rows, strict=True)) if len(rows) >= FEWEST_BATCHES else None
    return _judged(offered, 0.0, math.inf) if fitted is None else _judged(offered, fitted.slope, fitted.half)


def by_rates(applied: Sequence[float], offered: float) -> Following:
    """From the rates at which changes were applied in equal slices of a step (1/s, in time order). Where the lag only
    swings, the interval of their mean is too wide; then the line through the lag itself may prove it. ValueError unless
    offered is above zero."""
    if not offered > 0:
        raise ValueError(f"{offered} changes/s were offered; a rate above zero is needed")
    missing = offered - np.asarray(applied, dtype=np.float64)
    if len(missing) < FEWEST_BATCHES:
        return _judged(offered, 0.0, math.inf)
    slope = float(missing.mean())
    error = float(missing.std(ddof=1)) / math.sqrt(len(missing))
    half = float(student.quantile(1 - (1 - CONFIDENCE) / 2, len(missing) - 1)) * error
    by_mean = _judged(offered, slope, half)
    # Each slice makes up for the one before: their autocorrelation is below what independent slices show by chance once
    # in forty times (Bartlett, 1946). Only then a line through the lag is better than the mean: through the sum of
    # independent slices, a random walk, it fits far too well.
    swings = series.neighbours(missing - missing.mean()) <= -2.0 / math.sqrt(len(missing))
    if by_mean.verdict == "not proven" and swings:
        slices = range(1, len(missing) + 1)  # the unit of time
        by_lag = following(slices, missing.cumsum().tolist(), offered)
        if by_lag.slope + STRICT * (by_lag.high - by_lag.slope) <= SLOW * offered:
            return by_lag
    return by_mean


def _judged(offered: float, slope: float, half: float) -> Following:
    low, high = slope - half, slope + half
    verdict: Verdict = "followed" if high <= SLOW * offered else "behind" if low > 0 else "not proven"
    return Following(offered, slope, low, high, verdict)


def followed(steps: Sequence[Following]) -> Followed:
    """All steps of a sweep over the change rate. A rate is followed where every step of it and of lower ones is; it is
    not followed where most of its steps are behind."""
    by_rate: dict[float, list[Following]] = {}
    for step in sorted(steps, key=lambda step: step.offered):
        by_rate.setdefault(step.offered, []).append(step)
    as_followed = takewhile(lambda rate: all(step.verdict == "followed" for step in by_rate[rate]), by_rate)
    up_to = max(as_followed, default=0.0)
    late = {rate: [step for step in at_rate if step.verdict == "behind"] for rate, at_rate in by_rate.items()}
    behind = [rate for rate, at_rate in by_rate.items() if 2 * len(late[rate]) > len(at_rate)]
    above = [step for rate in behind for step in late[rate]]
    if not above:
        return Followed(up_to, behind[0] if behind else None, None)
    rates, middle = sorted(step.applied for step in above), float(np.median([step.applied for step in above]))
    own = float(np.median([step.high - step.low for step in above])) / 2
    # The interval covers the scatter of the steps and each one's own.
    return Followed(up_to, behind[0], LoadInterval(middle, max(0.0, min(rates[0], middle - own)), rates[-1] + own))
