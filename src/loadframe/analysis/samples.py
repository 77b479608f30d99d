"""Comparison of two samples. In blocks, what the machine does to both sides cancels. Else another session gives other
values though nothing was changed: that is learnt from equal sessions, or a stated prior, and widens the interval; no
number of values makes it smaller."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations, pairwise

import numpy as np

from loadframe.analysis import quantity, student
from loadframe.analysis.arrays import Floats
from loadframe.analysis.comparison import (
    exp_in_range,
    grains,
    half_width,
    logarithms,
    unless_zero,
    verdict_of_logs,
)
from loadframe.analysis.quantity import Ends, TooFewError, pseudo_values
from loadframe.analysis.series import Mean, batched, drift, means
from loadframe.model import Needed, Sessions, Verdict
from loadframe.progress import counted

FEWEST = 3
"""Two values have no noise beyond their difference."""
ALPHA, AT = 0.05, "95 %"
MOST_SESSIONS = 30
ENOUGH_SESSIONS = 10
"""Fewer equal sessions may be alike by chance: they only count where they exceed the prior."""
NARROWER = 0.95
"""The `whole` width is used below this share of the other width (`benchmarks/verdicts.py --samples`); our choice."""
MOST_NEEDED = 100_000


@dataclass(frozen=True, slots=True)
class Between:
    """Half of the 95 % interval, in logarithms, of the difference of two equal sessions: `added` beyond what their
    values show, `whole` of all of it (inf: unused). seen: what the values of nine pairs in ten give at most.
    learnt_from: sessions of at least `values` values; 0: a prior. sides: sessions of each, which are averaged."""

    added: Floats | float
    whole: Floats | float = math.inf
    seen: Floats | float = 0.0
    learnt_from: int = 0
    values: int = 0
    sides: tuple[int, int] = (1, 1)

    def reach(self, alone: Floats | float, values: int) -> Floats:
        """Half of the interval. alone: what the values give. `whole`: only for as many values that scatter no more than
        `seen`."""
        share = math.sqrt((1 / self.sides[0] + 1 / self.sides[1]) / 2)
        known = np.less_equal(alone, self.seen) & np.isfinite(self.whole) & (values >= self.values)
        return np.where(known, np.multiply(self.whole, share), np.hypot(alone, np.multiply(self.added, share)))


PRIOR = Between(math.log(1.05))
"""Two sessions differ by at most 5 % in 19 of 20 cases: between published figures for dedicated and virtual servers
(docs/mathematics.md, "Sessions")."""


def unpaired(
    before: Sequence[float],
    after: Sequence[float],
    *,
    by: str = quantity.TYPICAL,
    fitted: int = 0,
    between: Between = PRIOR,
) -> Verdict:
    """Ratio after / before of a quantity (`by`: of QUANTITIES) of two samples of positive values in time order, at
    least FEWEST each, at 1 - ALPHA, the difference between sessions included (docs/mathematics.md, "Verdicts on
    samples"). fitted: as in `series.means`. ValueError for fewer values, negative ones or not finite; TooFewError for a
    quantile with too few beyond it."""
    first, second = logarithms([before, after])
    _check("value", first, second)
    what = f"{by} of {len(first)} and {len(second)} values"
    if _scatter(before, after):
        ((centre, low, high),) = _of_pairs([first, second], by, fitted, grains(before, after))
        used = "intervals of their ranks" if by in quantity.QUANTILES else "autocorrelation-corrected t"
        how = f"{used} at {AT}"
    else:
        (centre, low, high), how = _as_written(before[0], after[0]), NO_SCATTER
    values = min(len(first), len(second))
    verdict = verdict_of_logs(
        centre,
        centre - float(between.reach(centre - low, values)),
        centre + float(between.reach(high - centre, values)),
        blocks=values,
        method=f"{what}, {how}, and what two sessions differ by",
    )
    alone = Sessions(
        math.expm1(min(between.added, between.whole)), between.learnt_from, exp_in_range(low), exp_in_range(high)
    )
    return unless_zero(replace(verdict, sessions=alone), before, after)


def learnt(
    sessions: Sequence[Sequence[float]], *, by: str = quantity.TYPICAL, fitted: int = 0, sides: tuple[int, int] = (1, 1)
) -> Between:
    """What must be added to the intervals of pairs of equal sessions (the newest last) so that one in twenty calls the
    two different (negative controls; docs/mathematics.md, "Sessions")."""
    equal = [values for values in sessions if len(values) >= FEWEST and all(values)][-MOST_SESSIONS:]
    prior = replace(PRIOR, sides=sides)
    if len(equal) < FEWEST:
        return prior
    logs = logarithms(equal)
    every = [value for values in equal for value in values]
    try:
        pairs = _of_pairs(logs, by, fitted, grains(every, every))
    except TooFewError:
        return prior
    centre = np.array([pair[0] for pair in pairs])
    half = np.array([centre - low if centre > 0 else high - centre for centre, low, high in pairs])
    between = apart(centre, half, len(equal))
    if len(equal) < ENOUGH_SESSIONS:
        between = replace(between, added=max(float(between.added), PRIOR.added))
    return replace(between, values=min(map(len, equal)), sides=sides)


def apart(centre: Floats, half: Floats, sessions: int) -> Between:
    """From intervals (centre +- half) of pairs of equal sessions, (..., pairs): what they lack to hold 0 in 19 of 20,
    and within what 19 of 20 centres lie, where that is clearly narrower."""
    lacking, all_of_it = (
        np.maximum(np.quantile(squares, 0.95, axis=-1), 0.0) / 1.96**2 for squares in (centre**2 - half**2, centre**2)
    )
    if sessions < ENOUGH_SESSIONS:
        degrees, prior = sessions // 2, (PRIOR.added / student.quantile(0.975, 1)) ** 2
        variance = (degrees * lacking + prior) / (degrees + 1)
        return Between(student.quantile(0.975, degrees + 1) * np.sqrt(variance), learnt_from=sessions)
    added, whole = (student.quantile(0.975, sessions // 2 - 1) * np.sqrt(squares) for squares in (lacking, all_of_it))
    narrower = whole < NARROWER * np.hypot(half, added[..., None]).mean(axis=-1)
    return Between(added, np.where(narrower, whole, np.inf), np.quantile(half, 0.9, axis=-1), sessions)


def paired(before: Sequence[float], after: Sequence[float], *, by: str = quantity.TYPICAL) -> Verdict:
    """Ratio after / before, value i of both from block i, at least FEWEST blocks: `comparison.half_width` of
    `pseudo_values`. Raises as `unpaired`."""
    first, second = logarithms([before, after])
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} blocks; both sides of every block are needed")
    _check("block", first, second)
    if not _scatter(before, after):
        centre, low, high = _as_written(before[0], after[0])
        verdict = verdict_of_logs(centre, low, high, blocks=len(first), method=NO_SCATTER)
        return unless_zero(verdict, before, after)
    earlier, later = pseudo_values(np.array([first, second]), "mean" if by == "mean" else quantity.TYPICAL, alike=True)
    centre = (later - earlier).mean()
    rounding = sum(grain**2 for grain in grains(before, after)) / 12
    moved = drift((earlier + later) / 2) / len(earlier) / 2
    half = half_width(earlier, later, ALPHA, rounding=rounding) + moved
    verdict = verdict_of_logs(
        centre,
        centre - half,
        centre + half,
        blocks=len(first),
        method=f"paired blocks, {by if by == 'mean' else quantity.TYPICAL} log ratio, t at {AT}",
        block_logs=second - first,
    )
    return unless_zero(verdict, before, after)


def difference(before: Mean, after: Mean) -> tuple[Floats, Floats]:
    """after - before, and half of its t-interval (Welch); at least what the drift makes of successive samples."""
    variance = before.variance + after.variance
    parts = sum(mean.variance**2 / np.maximum(mean.worth - 1, 0.5) for mean in (before, after))
    degrees = np.divide(variance**2, parts, out=np.ones_like(variance), where=np.asarray(parts) > 0)
    half = student.quantile(1 - ALPHA / 2, np.maximum(degrees, 1.0)) * np.sqrt(variance)
    return after.value - before.value, np.maximum(half, (before.drift + after.drift) / 2)


def needed(verdict: Verdict, what: str, *, edge: float = 1.0) -> Needed:
    """The part of the interval that is not due to sessions shrinks with the square root of the number."""
    centre = math.log(verdict.ratio)
    above = centre > math.log(edge)
    alone = verdict.sessions or verdict
    half, whole = (abs(centre - math.log(verdicts.low if above else verdicts.high)) for verdicts in (alone, verdict))
    room = (centre - math.log(edge)) ** 2 - max(whole**2 - half**2, 0.0)
    if room <= 0 or not verdict.has_ratio or 1.0 in (verdict.low, verdict.high):  # the last: without scatter
        return Needed(None, what)
    count = verdict.blocks * half**2 / room
    return Needed(max(verdict.blocks + 1, math.ceil(min(count, MOST_NEEDED))), what)


def _of_pairs(logs: Sequence[Floats], by: str, fitted: int, known: tuple[float, float]) -> list[Ends]:
    if by in quantity.QUANTILES:
        return [_quantiles(first, second, by) for first, second in combinations(map(np.exp, logs), 2)]
    reduced = [batched(pseudo_values(side, by)) for side in logs]
    return [_of_means(first, second, by, fitted, known) for first, second in combinations(reduced, 2)]


def _of_means(first: Floats, second: Floats, by: str, fitted: int, known: tuple[float, float]) -> Ends:
    sides = means(first, second, fitted=fitted)
    earlier, later = (
        replace(mean, variance=mean.variance + grain**2 / 12 / mean.worth)
        for mean, grain in zip(sides, known, strict=True)
    )
    centre, half = (float(value) for value in difference(earlier, later))
    observed = float(second.max() - first.max()) if by == "max" else centre
    return observed, min(centre - half, observed), max(centre + half, observed)


def _quantiles(before: Floats, after: Floats, by: str) -> Ends:
    with np.errstate(divide="ignore"):
        first, second = (np.log(ends) for ends in quantity.quantile_ends(before, after, by, ALPHA))
    centre = float(second[0] - first[0])
    return (
        centre,
        centre - math.hypot(second[0] - second[1], first[2] - first[0]),
        centre + math.hypot(second[2] - second[0], first[0] - first[1]),
    )


NO_SCATTER = "no scatter: each value is known to its last digit"


def _scatter(before: Sequence[float], after: Sequence[float]) -> bool:
    return any(before) and any(after) and len({*before}) + len({*after}) > 2


def _as_written(before: float, after: float) -> Ends:
    """With the ends that the last digits leave open; 0 where one is zero."""
    if not (before and after):
        return 0.0, 0.0, 0.0
    exponents = [int(Decimal(repr(float(side))).normalize().as_tuple().exponent) for side in (before, after)]
    half = 10.0 ** min(0, *exponents) / 2
    ends = (after / before, (after - half) / (before + half), (after + half) / (before - half))
    centre, low, high = map(math.log, ends)
    return centre, low, high


def _check(what: str, *samples: Floats) -> None:
    fewest = min(len(sample) for sample in samples)
    if fewest < FEWEST:
        raise ValueError(f"{counted(fewest, what)} of one side; at least {FEWEST} are needed to show the noise")


RARE = 1.64
"""Standard deviations (one-sided 5 %) by which the runs of samples taken in turns may fall short of a random
order's."""


def taken_in_turns(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether times on one clock change sides as often as a random order (number of runs: Wald and Wolfowitz 1940,
    Annals of Mathematical Statistics 11)."""
    order = [side for _, side in sorted([(time, 0) for time in before] + [(time, 1) for time in after])]
    runs = 1 + sum(side != other for side, other in pairwise(order))
    both, product = len(order), 2 * len(before) * len(after)
    expected = product / both + 1
    deviation = math.sqrt(max((expected - 1) * (expected - 2) / (both - 1), 0.0))
    return runs >= expected - RARE * deviation
