"""What an entry costs as the database grows, from the windows of one load or from loads of several sizes
(docs/growth.md):
    cost(n) = a + b ln(n / n0) + d max(0, 1 - M / n)
seconds per entry at n entries; a, b, d >= 0. b: trees grow deeper, and an entry touches more pages. Each window is the
integral of the cost over its entries. M and which of the terms take part are unknown: every choice is weighted by its
fit (Schwarz 1978), with fewer effective windows for autocorrelated noise, and draws are taken from all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from loadframe.analysis import series
from loadframe.analysis.arrays import Floats
from loadframe.model import LoadInterval

PER_DOUBLING = 8
"""Windows are joined until they span an eighth of a doubling: a load in windows of equal time has most near its end."""
FEWEST = 8
"""Joined windows needed for a law of up to four terms."""
ENDS = 60
"""Sizes that are tried as the end of memory, evenly spaced in the logarithm."""
DRAWS = 2000
SEED = 20261125
ROUNDS = 4
"""Iterations: a window's noise is proportional to the fitted law. If it were to the measured value, slow windows would
count less: at a scatter of 50 % a cost came out at 0.6 of its true value, at 100 % at a sixth."""
LEAST_NOISE = 0.01
"""Relative noise of a window: timers and commits leave as much."""
LIKELY = 0.9
"""Probability from which on memory is said to end."""
LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True, slots=True)
class LoadWindow:
    """before, after: entries in the database; reads: pages or blocks read from beyond its memory, None where not
    counted."""

    before: float
    after: float
    seconds: float
    reads: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One law: terms, end of memory (entries; nan without), coefficients and covariance (seconds per entry; without the
    noise while the choices are tried), squares and residuals of the fit, and its weight among all."""

    terms: tuple[int, ...]
    end: float
    values: Floats
    covariance: Floats
    squares: float
    residuals: Floats
    weight: float = 0.0


@dataclass(frozen=True)
class SizeLaw:
    """first, last: entries between which there were windows. noise: standard deviation of a joined window around the
    law, as a share of its time. The weights of the choices add up to 1."""

    choices: tuple[Choice, ...]
    first: float
    last: float
    noise: float

    @cached_property
    def _drawn(self) -> tuple[Floats, Floats]:
        """(DRAWS, 3) coefficients, (DRAWS,) ends of memory."""
        random = np.random.default_rng(SEED)
        which = random.choice(len(self.choices), size=DRAWS, p=[choice.weight for choice in self.choices])
        values, ends = np.zeros((DRAWS, 3)), np.full(DRAWS, math.inf)
        for index in np.unique(which):
            choice, rows = self.choices[index], np.flatnonzero(which == index)
            drawn = random.multivariate_normal(choice.values, choice.covariance, len(rows), method="eigh")
            values[np.ix_(rows, choice.terms)] = np.maximum(drawn, 0.0)
            ends[rows] = choice.end if 2 in choice.terms else math.inf
        return values, ends

    def costs(self, entries: float) -> Floats:
        """Draws of the seconds that an entry takes at this size, (DRAWS,)."""
        values, ends = self._drawn
        logs = math.log(max(entries, self.first) / self.first)
        return np.asarray(values @ np.array([1.0, logs, 0.0]) + values[:, 2] * np.maximum(0.0, 1 - ends / entries))

    def seconds(self, before: float, after: float) -> Floats:
        """Draws of the seconds, (DRAWS,)."""
        values, ends = self._drawn
        spans = np.array([after - before, _logs(before, after, self.first)])
        return np.asarray(values[:, :2] @ spans + values[:, 2] * _missing(before, after, ends))

    @property
    def left_memory(self) -> float:
        """Probability that the cost rises because memory ended within the observed sizes."""
        return sum(choice.weight for choice in self.choices if 2 in choice.terms)

    @property
    def end(self) -> LoadInterval | None:
        """The end of memory, with its 90 % interval, where one is LIKELY."""
        pairs = sorted((choice.end, choice.weight) for choice in self.choices if 2 in choice.terms)
        total = sum(weight for _, weight in pairs)
        if total < LIKELY:
            return None
        ends, weights = np.array([end for end, _ in pairs]), np.cumsum([weight for _, weight in pairs]) / total
        low, middle, high = (
            float(ends[min(int(np.searchsorted(weights, p)), len(ends) - 1)]) for p in (LOW, 0.5, HIGH)
        )
        step = (self.last / self.first) ** (0.5 / ENDS)
        return LoadInterval(middle, low / step, high * step)


def fit(windows: Sequence[LoadWindow], *, of_reads: bool = False) -> SizeLaw | None:
    """The law of the seconds, or (of_reads) of the reads from beyond memory; None for fewer than FEWEST joined windows,
    and for uncounted reads. ValueError for windows that go backwards or take no time."""
    for window in windows:
        if not (
            0 <= window.before < window.after and window.seconds > 0 and math.isfinite(window.after + window.seconds)
        ):
            raise ValueError(f"a window from {window.before} to {window.after} entries in {window.seconds} s is none")
    if of_reads and any(window.reads is None for window in windows):
        return None
    bins = joined(windows)
    if len(bins) < FEWEST:
        return None
    before = np.array([window.before for window in bins])
    after = np.array([window.after for window in bins])
    values = np.array([float(window.reads or 0) if of_reads else window.seconds for window in bins])
    # Initial scale of a window's noise: its time; of reads, which may be none, a twentieth of the top rate or more.
    scale = np.maximum(values, _least_scale(after - before, values)) if of_reads else values
    return _fitted(before, after, values, scale)


def joined(windows: Sequence[LoadWindow]) -> list[LoadWindow]:
    """Neighbours joined until they span 1 / PER_DOUBLING of a doubling. Overlapping ones (loads of several sizes, each
    from empty) stay separate."""
    ordered = sorted(windows, key=lambda window: (window.before, window.after))
    result: list[LoadWindow] = []
    for window in ordered:
        last = result[-1] if result else None
        if last is None or window.before < last.after or _wide(last):
            result.append(window)
        else:
            result[-1] = _together(last, window)
    if len(result) > 1 and result[-1].before >= result[-2].after and not _wide(result[-1]):
        result[-2:] = [_together(*result[-2:])]
    return result


def _together(first: LoadWindow, last: LoadWindow) -> LoadWindow:
    reads = None if first.reads is None or last.reads is None else first.reads + last.reads
    return LoadWindow(first.before, last.after, first.seconds + last.seconds, reads)


def _wide(window: LoadWindow) -> bool:
    return window.before == 0 or window.after >= window.before * 2 ** (1 / PER_DOUBLING)


def _least_scale(entries: Floats, values: Floats) -> Floats:
    return np.asarray(0.05 * entries * max(float((values / entries).max()), 1e-9))


def _logs(before: float, after: float, first: float) -> float:
    """The integral of ln(n / first) from before to after, 0 below first."""
    low, high = max(before, first), max(after, first)
    return high * (math.log(high / first) - 1) - low * (math.log(low / first) - 1)


def _missing(before: float, after: float, ends: Floats) -> Floats:
    """The integral of 1 - M / n from before to after, where n > M, for each M."""
    low, high = np.maximum(before, ends), np.maximum(after, ends)
    with np.errstate(invalid="ignore"):
        integral = high - low - ends * np.log(high / low)
    return np.where(np.isfinite(ends), integral, 0.0)


def _fitted(before: Floats, after: Floats, values: Floats, scale: Floats) -> SizeLaw:
    first, last = float((before + after)[0]) / 2, float(after[-1])
    grid = np.geomspace(first, last, ENDS + 1)[:-1]
    plain = np.column_stack(
        [after - before, [_logs(low, high, first) for low, high in zip(before, after, strict=True)]]
    )
    missing = np.array([_missing(low, high, grid) for low, high in zip(before, after, strict=True)])
    least = np.minimum(scale, _least_scale(after - before, values))
    for _ in range(ROUNDS):
        target = values / scale
        tried = [_least(plain / scale[:, None], target, terms, math.nan) for terms in ((0,), (0, 1))]
        for column, end in enumerate(grid):  # with each end of memory also d
            design = np.column_stack([plain, missing[:, column]]) / scale[:, None]
            tried += [_least(design, target, terms, float(end)) for terms in ((0, 2), (0, 1, 2))]
        candidates = [candidate for candidate in tried if candidate is not None]
        best = min(candidates, key=lambda candidate: candidate.squares + 1e-9 * len(candidate.terms))
        scale = np.maximum(scale * (target - best.residuals), least)
    worth = series.worth(series.neighbours(best.residuals)) * len(target)
    noise = max(math.sqrt(best.squares / max(len(target) - len(best.terms) - 1, 1)), LEAST_NOISE)
    logs = np.empty(len(candidates))
    for at, candidate in enumerate(candidates):  # log likelihood less the penalty of its terms (Schwarz 1978)
        climbs = 2 in candidate.terms  # the ends of memory share one choice
        fits = -worth / len(target) * candidate.squares / (2 * noise**2)
        penalty = (len(candidate.terms) + climbs) / 2 * math.log(worth)
        logs[at] = fits - penalty - (math.log(ENDS) if climbs else 0.0)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    stretch = noise**2 * len(target) / worth
    kept = [pair for pair in zip(candidates, weights.tolist(), strict=True) if pair[1] > 1e-6]
    total = sum(weight for _, weight in kept)
    choices = tuple(
        replace(candidate, weight=weight / total, covariance=candidate.covariance * stretch)
        for candidate, weight in kept
    )
    return SizeLaw(choices, first, last, noise)


def _least(design: Floats, target: Floats, terms: tuple[int, ...], end: float) -> Choice | None:
    """Least squares; None where a term is negative: the choice without it is tried as well."""
    chosen = design[:, terms]
    inner = chosen.T @ chosen
    if np.linalg.matrix_rank(chosen) < len(terms):
        return None
    try:
        inverse: Floats = np.asarray(np.linalg.inv(inner), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    values = inverse @ (chosen.T @ target)
    if (values < 0).any():
        return None
    residuals: Floats = target - chosen @ values
    return Choice(terms, end, values, inverse, float((residuals**2).sum()), residuals)
