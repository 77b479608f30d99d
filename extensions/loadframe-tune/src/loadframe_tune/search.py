"""Which settings to try next: propose a trial, observe its outcome. The start comes first, then what a diagnosis
proposes, then the trial that most raises the expected best (knowledge gradient: Frazier, Powell and Dayanik 2009,
INFORMS Journal on Computing 21). The same observations and seed give the same proposals. Settings have few values each,
as finer differences drown in the noise of a measurement of seconds; all must fit into memory together."""

import math
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from loadframe.model import SettingValue
from loadframe_tune.model import TrialReason
from loadframe_tune.surrogate import PRIOR_AMPLITUDE, Belief, Numbers, Surrogate

STEPS = 7
"""Values of a range: from 128 MiB to 8 GiB each is twice the one before."""

Point = tuple[int, ...]
"""The position of each dimension's value."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """values: each once, rising where ordered. start: the position of the current value. ordered: False for words
    without an order. bytes_each: memory per unit of a value."""

    name: str
    values: tuple[SettingValue, ...]
    start: int
    ordered: bool = True
    bytes_each: float = 0.0

    def position(self, value: SettingValue) -> int:
        """The position of the nearest value, in logarithms where all are positive; of a word its own."""
        if not self.ordered or value in self.values:
            return self.values.index(value)
        numbers = [float(choice) for choice in self.values]
        scale = math.log if min(*numbers, float(value)) > 0 else float
        return min(range(len(numbers)), key=lambda place: abs(scale(numbers[place]) - scale(float(value))))


@dataclass(frozen=True, slots=True)
class Space:
    """dimensions: the most promising first. memory_bytes: for all of them together."""

    dimensions: tuple[Dimension, ...]
    memory_bytes: float = math.inf
    start: Point = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", tuple(dimension.start for dimension in self.dimensions))

    def fits(self, point: Point) -> bool:
        """Whether they fit into memory; those of the start do by definition."""
        return point == self.start or self.takes(point) <= max(self.memory_bytes, self.takes(self.start))

    def takes(self, point: Point) -> float:
        placed = zip(self.dimensions, point, strict=True)
        return math.fsum(row.bytes_each * float(row.values[place]) for row, place in placed if row.bytes_each)

    def changes(self, point: Point) -> dict[str, SettingValue]:
        placed = zip(self.dimensions, point, strict=True)
        return {row.name: row.values[place] for row, place in placed if place != row.start}

    def point(self, changes: Mapping[str, SettingValue]) -> Point:
        """The point at the nearest values, without settings that are not searched."""
        return tuple(row.position(changes[row.name]) if row.name in changes else row.start for row in self.dimensions)


def spread(low: float, high: float, *, whole: bool = True) -> tuple[float, ...]:
    """Values from low to high in equal ratios (equal steps from 0 or below), in two digits, whole MiB or KiB like
    low."""
    if low <= 0:
        values = [low + (high - low) * step / (STEPS - 1) for step in range(STEPS)]
    else:
        values = [low * (high / low) ** (step / (STEPS - 1)) for step in range(STEPS)]
    unit = next((unit for unit in (1 << 20, 1 << 10) if low >= unit and low % unit == 0), 1)
    inner = [unit * _two_digits(value / unit) if whole else value for value in values[1:-1]]
    kept = sorted({low, high, *(value for value in inner if low < value < high)})
    return tuple(int(value) if whole else value for value in kept)


def _two_digits(value: float) -> float:
    nearest = 2 ** round(math.log2(value)) if value >= 1 else 0
    if abs(nearest - value) <= 0.01 * value:
        return nearest
    return round(value, -max(0, math.floor(math.log10(value)) - 1) if value >= 1 else 0)


def dimension(
    name: str, values: Sequence[SettingValue], start: SettingValue, *, ordered: bool, bytes_each: float = 0.0
) -> Dimension:
    """ValueError where there is nothing to vary."""
    every = {*values, start}
    chosen = tuple(sorted(every, key=float)) if ordered else tuple(dict.fromkeys([start, *values]))
    if len(chosen) < 2:
        raise ValueError(f"{name} has one value, {start!r}")
    return Dimension(name, chosen, chosen.index(start), ordered, bytes_each)


def changed(point: Point, place: int, value: int) -> Point:
    """place, value: positions."""
    return (*point[:place], value, *point[place + 1 :])


STARTS = 2
"""Trials of the start: the reference of all others, and a first estimate of the noise."""
SINKS = 0.7
"""A trial further below the start (in logarithms: half) counts as this: how bad it is does not matter."""
LESS_LIKELY = 0.85
"""Expected effect of a setting, relative to the one before it: the most promising come first."""
RANDOM = 256
"""Points drawn besides those around the best one."""
CLIMBS = 10
"""Most single changes from the best tried point to the one with the highest expectation."""
FEWEST_GAIN = 0.005
SURELY = 0.25
"""A change that is expected to give less, or less than this share of its standard deviation, is not recommended."""


@dataclass(frozen=True, slots=True)
class Proposal:
    point: Point
    reason: TrialReason


@dataclass(frozen=True, slots=True)
class Outcome:
    """value: log throughput against the start; None where the target did not work. missed: the objective, so its
    settings are not recommended; the value then says how far off it is."""

    point: Point
    value: float | None
    missed: bool = False


class Search:
    """Propose and observe. tries: changes to the start that are worth trying first, in this order."""

    def __init__(self, space: Space, *, tries: Sequence[Mapping[str, SettingValue]] = (), seed: int = 0) -> None:
        self.space = space
        self.outcomes: list[Outcome] = []
        self._random = random.Random(seed)
        points = [space.point(changes) for changes in tries]
        self._first = [point for point in dict.fromkeys(points) if point != space.start and space.fits(point)]
        amplitudes = tuple(PRIOR_AMPLITUDE * LESS_LIKELY**rank for rank in range(len(space.dimensions)))
        self._belief = Belief(amplitudes)
        self._fitted: Surrogate | None = None
        self._sizes = np.array([len(dimension.values) - 1 for dimension in space.dimensions], dtype=float)

    def observe(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._fitted = None

    def forget(self) -> None:
        """Drop all trials, to observe them again against another measurement of the start."""
        self.outcomes.clear()
        self._fitted = None

    def propose(self, pending: Sequence[Point] = ()) -> Proposal:
        """pending: points being measured, which are taken to come out as expected, so that the next one adds
        information (the Kriging believer: Ginsbourger, Le Riche and Carraro 2010)."""
        known = self.outcomes
        try:
            for point in pending:
                value = float(self._means([point])[0]) if self.outcomes else 0.0
                self.outcomes = [*self.outcomes, Outcome(point, value)]
                self._fitted = None
            return self._proposed()
        finally:
            if pending:
                self.outcomes, self._fitted = known, None

    def _proposed(self) -> Proposal:
        start = self.space.start
        if self._times(start) < STARTS:
            return Proposal(start, "start")
        for point in self._first:
            if not self._times(point):
                return Proposal(point, "diagnosis")
        tried = self._ranked()
        points = [*tried, *self._untried(tried[0])]
        rises = self._surrogate().knowledge_gradient(self._scaled(points), self._scaled(tried))
        point = points[int(np.argmax(rises))]
        return Proposal(point, "again" if self._times(point) else "search")

    def best(self, failed: Collection[Point] = ()) -> Point:
        """Of the points tried the one with the highest expectation, without changes that do not pay; else the start.
        failed: points that failed a proof; they are skipped, and what reduces to one of them."""
        for point in self._ranked():
            plain = self._simplified(point, failed)
            if plain not in failed:
                return plain
        return self.space.start

    def _simplified(self, point: Point, failed: Collection[Point]) -> Point:
        refused = self._refused().difference(failed)
        for place, dimension in enumerate(self.space.dimensions):
            plain = changed(point, place, dimension.start)
            if plain == point or plain in refused or not self.space.fits(plain):
                continue
            with_it, without = self._means([point, plain])
            gain, spread = self._surrogate().gains(self._scaled([point]), self._scaled([plain])[0])
            if with_it - without < FEWEST_GAIN or gain[0] < SURELY * spread[0]:
                point = plain
        return point

    def worth(self, best: Point) -> list[tuple[int, float, float]]:
        """For each setting the position of a value, its gain over the start's value, others as in `best`, and that
        gain's standard deviation, in logarithms: of `best`'s value, or of the most promising one if that is the
        start's."""
        rows = []
        for place, dimension in enumerate(self.space.dimensions):
            start, values = dimension.start, [best[place]]
            if best[place] == start:
                values = [position for position in range(len(dimension.values)) if position != start]
            points = [changed(best, place, value) for value in (start, *values)]
            gains, spreads = self._surrogate().gains(self._scaled(points[1:]), self._scaled(points[:1])[0])
            top = int(np.argmax(gains))
            rows.append((values[top], float(gains[top]), float(spreads[top])))
        return rows

    def expected_gain(self, point: Point | None = None) -> float:
        """Throughput after shrinkage over the start's; by default of the most promising point so far."""
        here, start = self._means([self._ranked()[0] if point is None else point, self.space.start])
        return math.exp(here - start)

    def _times(self, point: Point) -> int:
        return sum(outcome.point == point for outcome in self.outcomes)

    def _refused(self) -> set[Point]:
        return {outcome.point for outcome in self.outcomes if outcome.value is None} | self._missing()

    def _missing(self) -> set[Point]:
        missed = Counter(outcome.point for outcome in self.outcomes if outcome.missed)
        return {point for point, times in missed.items() if 2 * times > self._times(point)} - {self.space.start}

    def _ranked(self) -> list[Point]:
        missing = self._missing()
        worked = (outcome.point for outcome in self.outcomes if outcome.value is not None)
        tried = [point for point in dict.fromkeys(worked) if point not in missing]
        return [tried[place] for place in np.argsort(-self._means(tried), kind="stable")]

    def _untried(self, best: Point) -> list[Point]:
        """Single changes of the best, the start and the most promising one, pairs of changes, random ones."""
        singles = [*self._singles(best), *self._singles(self.space.start)]
        pairs = []
        for _ in singles:
            places = zip(self._random.choice(singles), self._random.choice(singles), best, strict=True)
            pairs.append(tuple(second if second != base else first for first, second, base in places))
        counts = [len(dimension.values) for dimension in self.space.dimensions]
        drawn = [tuple(map(self._random.randrange, counts)) for _ in range(RANDOM)]
        tried = {outcome.point for outcome in self.outcomes}
        points = dict.fromkeys((*self._singles(self._climbed(best)), *singles, *pairs, *drawn))
        return [point for point in points if point not in tried and self.space.fits(point)]

    def _singles(self, base: Point) -> list[Point]:
        return [
            changed(base, place, value)
            for place, dimension in enumerate(self.space.dimensions)
            for value in range(len(dimension.values))
        ]

    def _climbed(self, point: Point) -> Point:
        """As far as single changes lead there."""
        refused = self._refused()
        for _ in range(CLIMBS):
            others = (other for other in self._singles(point) if other not in refused and self.space.fits(other))
            near = [point, *others]
            top = near[int(np.argmax(self._means(near)))]
            if top == point:
                break
            point = top
        return point

    def _means(self, points: Sequence[Point]) -> Numbers:
        return self._surrogate().mean(self._scaled(points))

    def _surrogate(self) -> Surrogate:
        if self._fitted is None:
            worst = min((outcome.value for outcome in self.outcomes if outcome.value is not None), default=0.0)
            values = [worst if outcome.value is None else outcome.value for outcome in self.outcomes]
            points = self._scaled([outcome.point for outcome in self.outcomes])
            ordered = [dimension.ordered for dimension in self.space.dimensions]
            self._fitted = Surrogate(points, np.maximum(values, -SINKS), ordered=ordered, belief=self._belief)
        return self._fitted

    def _scaled(self, points: Sequence[Point]) -> Numbers:
        return np.asarray(np.array(points, dtype=float) / self._sizes)
