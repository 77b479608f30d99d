"""Where to look: the same metrics below the bend, past it, and where throughput is highest."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median_high

from loadframe.knowledge.signature import Condition
from loadframe.metrics.agreements import names_of
from loadframe.model import REACHED, Bend, BlindCounter, Curve, Finding, Limit, LoadInterval, Round, Step, Steps

FALLING = ("cliff", "decline")


@dataclass(frozen=True, slots=True)
class Window:
    """Averages of the metrics over some levels. halves: what half of the steps reached: a server that switches between
    two states has an average that no step had. most: of any step."""

    words: str
    levels: tuple[float, ...]
    metrics: Mapping[str, float]
    halves: Mapping[str, float]
    most: Mapping[str, float]

    def get(self, metric: str) -> float | None:
        return self.metrics.get(metric)

    def judged(self, condition: Condition) -> float | None:
        return condition.of(self.halves if condition.by_half else self.metrics)

    def use_of(self, limit: Limit) -> float:
        """What half of the steps reached; of a loud limit the most. -inf where not measured."""
        return (self.most if limit.loud else self.halves).get(limit.use_metric, -math.inf)

    def fills(self, limit: Limit) -> bool:
        return self.use_of(limit) >= REACHED * limit.ceiling


@dataclass(frozen=True, slots=True)
class Windows:
    """below, past: of the bend. top: the level with the most throughput and all above. levels: each, rising. bend: the
    last load that held; bend_ranges: where it may be, and the cliff. falls: past the bend."""

    below: Window
    past: Window
    top: Window
    levels: tuple[Window, ...]
    whole: Window
    bend: float | None
    bend_ranges: tuple[LoadInterval, ...]
    falls: bool

    @property
    def place(self) -> Window:
        return self.past if self.bend is not None else self.top


def look(curve: Curve, steps: Steps) -> Windows:
    if not steps:
        raise ValueError("a diagnosis needs at least one step")
    levels = sorted({step.level for step in steps})
    top = [level for level in levels if level >= curve.peak.load]
    knee, cliff = curve.knee, curve.cliff
    known = [knee.load] if knee is not None and knee.low > curve.points[0].load else []
    known += [cliff.from_load] if cliff is not None else []
    bend = min(known, default=None)
    falls = bend is not None and curve.shape in FALLING
    below = [level for level in levels if bend is not None and level <= bend] or levels[:1]
    past = [level for level in levels if bend is not None and level > bend] or top
    return Windows(
        below=_window("below the bend" if bend is not None else "at the lowest level", below, steps),
        past=_window("past the bend" if bend is not None else "where throughput stays", past, steps),
        top=_window("from the peak on", top, steps),
        levels=tuple(_window("at one level", [level], steps) for level in levels),
        whole=_window("over the whole curve", levels, steps),
        bend=bend,
        bend_ranges=bend_intervals(curve),
        falls=falls,
    )


def bend_intervals(curve: Curve) -> tuple[LoadInterval, ...]:
    """The knee, and from the last level before the cliff to the first after it."""
    intervals = [] if curve.knee is None else [curve.knee]
    if (cliff := curve.cliff) is not None:
        intervals.append(LoadInterval((cliff.from_load + cliff.to_load) / 2, cliff.from_load, cliff.to_load))
    return tuple(intervals)


ENOUGH = 0.25
"""Probability that a cause begins before a bend, our choice: about a half between the same two levels."""
SHARES = [(number + 0.5) / 16 for number in range(16)]


def explains(acts: LoadInterval, bend: LoadInterval) -> float:
    """0 to 1: what begins to act later cannot have made the bend; what begins sooner explains it less the further apart
    they are."""
    before = fmean(load <= other for load in _anywhere(acts) for other in _anywhere(bend))
    return min(1.0, before / ENOUGH, acts.high / bend.low)


def _anywhere(at: LoadInterval) -> list[float]:
    """Equally likely loads, geometrically spaced, as levels are."""
    sides = [(at.low, at.load, 2 * share) if share < 0.5 else (at.load, at.high, 2 * share - 1) for share in SHARES]
    return [low ** (1 - share) * high**share for low, high, share in sides]


def _window(words: str, levels: Sequence[float], steps: Steps) -> Window:
    chosen = [step for step in steps if step.level in levels]
    names = {name for step in chosen for name in step.metrics}
    values = {name: [step.metrics[name] for step in chosen if name in step.metrics] for name in names}
    values["throughput"] = [step.throughput for step in chosen]
    span = f"{levels[0]:,.12g}" if len(levels) == 1 else f"{levels[0]:,.12g} to {levels[-1]:,.12g}"
    return Window(
        f"{words}, at {span}",
        tuple(levels),
        {name: fmean(seen) for name, seen in values.items()},
        {name: median_high(seen) for name, seen in values.items()},
        {name: max(seen) for name, seen in values.items()},
    )


def explains_bend(finding: Finding) -> bool:
    return finding.score > 0.5


def bend_of(round_: Round) -> Bend | None:
    """Where a limit begins to act, if the best finding is a limit that overlaps the knee: it comes from a counter in
    every step, a knee lies between levels."""
    knee, limits = round_.curve.knee, {limit.id for limit in round_.limits}
    first = next((finding for finding in round_.findings if finding.status != "refuted"), None)
    if knee is None or first is None or first.id not in limits or not explains_bend(first):
        return None
    at = first.reached_at
    return Bend(at, knee, first.id) if at is not None and at.meets(knee) else None


def explained(round_: Round) -> Curve:
    bend = bend_of(round_)
    return round_.curve if bend is None else replace(round_.curve, knee=bend.load)


def acts_from(round_: Round, finding: Finding) -> LoadInterval | None:
    """The bend, where the cause's own evidence agrees, else where this begins."""
    reached, explained = finding.reached_at, bend_of(round_)
    bends = (explained and explained.load, round_.curve.knee)
    return next((bend for bend in bends if bend and reached and reached.meets(bend)), reached)


TRUSTED = 0.5
"""Share of steps with contradictions from which on a counter is not trusted in the rest."""


def sighted(steps: Steps) -> list[Step]:
    often = Counter(name for step in steps for name in names_of(step.blind))
    gone = {name for name, count in often.items() if count >= TRUSTED * len(steps)}
    return [
        replace(step, metrics={name: value for name, value in step.metrics.items() if name not in gone})
        for step in steps
    ]


def blind_counters(steps: Steps) -> tuple[BlindCounter, ...]:
    often = Counter(blind.counter for step in steps for blind in step.blind)
    words = {blind.counter: blind.because for step in reversed(steps) for blind in step.blind}
    return tuple(BlindCounter(name, count, words[name]) for name, count in often.most_common())
