"""Production data of simulated queues whose truth is known: what benchmarks/observed.py --simulated prints of them.

Rates that are offered, and clients with think time, of one resource; the load wanders (random walk), follows the day,
or comes in bursts; it stays below half of the limit, or goes beyond it. The noise grows with the load, is correlated
over ten rows, has outliers, follows the day by itself; cells and hours are missing; in the middle a request's need
becomes 1.4 times as much. Simulated data find faults; they are no evidence of how good the answers are on real servers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from loadframe.prediction.forecasting import forecast
from loadframe_watch.observed.learning import learn
from loadframe_watch.observed.records import Learned, Observed
from observed import AHEAD, HEAD, Score

ROWS, STEP_S = 1500, 60.0
DAY = 1440
PEAKS = {"far": 0.5, "through": 1.4}
GROWN = 1.4
"""What a request needs after the change, of what it needed before."""

LEAST_HELD = {"demand": 0.88, "throughput": 0.85}
MOST_FALSE = {"knee": 0.05, "change": 0.05}


@dataclass(frozen=True)
class Truth:
    """One resource: seconds of a request, its use without any, think time (0: a rate is offered)."""

    demand_s: float
    background: float
    think_s: float

    @property
    def capacity(self) -> float:
        """The highest throughput."""
        return (1 - self.background) / self.demand_s

    @property
    def limit(self) -> float:
        """The load at which it is reached in proportion."""
        return self.capacity * (self.think_s + self.demand_s) if self.think_s else self.capacity

    def throughput(self, load: np.ndarray) -> np.ndarray:
        """Of a load without noise; a little round at the knee, where clients wait for each other."""
        wanted = load / (self.think_s + self.demand_s) if self.think_s else load
        if not self.think_s:
            return np.minimum(wanted, self.capacity)
        return (wanted**-12.0 + self.capacity**-12.0) ** (-1 / 12)


def ar(random: np.random.Generator, count: int, r: float) -> np.ndarray:
    """A correlated series with deviation 1."""
    shocks, series = random.normal(0, np.sqrt(1 - r**2), count), np.empty(count)
    series[0] = random.normal()
    for at in range(1, count):
        series[at] = r * series[at - 1] + shocks[at]
    return series


LOADS: Mapping[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "random walk": lambda random, count: ar(random, count, 0.995),
    "day": lambda random, count: np.sin(2 * np.pi * np.arange(count) / DAY * 3) + 0.25 * ar(random, count, 0.9),
    "bursts": lambda random, count: np.exp(0.8 * ar(random, count, 0.95)),
}
NOISES = ("white", "correlated", "outliers", "missing", "day of its own", "change")


def drawn(
    random: np.random.Generator, shape: str, noise: str, part: str, clients: bool
) -> tuple[Truth, Truth, Observed]:
    """The truth before and after the middle, and the rows."""
    demand = 10 ** random.uniform(-3, -1.5)
    before = Truth(
        demand, float(random.choice([0.0, 0.05])), float(demand * random.uniform(20, 60)) if clients else 0.0
    )
    after = Truth(demand * (GROWN if noise == "change" else 1), before.background, before.think_s)
    place = LOADS[shape](random, ROWS)
    place = (place - place.min()) / (place.max() - place.min())
    load = after.limit * PEAKS[part] * (0.08 + 0.92 * place)
    middle = np.arange(ROWS) < ROWS // 2
    exact = np.where(middle, before.throughput(load), after.throughput(load))
    r = 0.9 if noise == "correlated" else 0.0
    wave = 0.04 * np.sin(2 * np.pi * np.arange(ROWS) / DAY) if noise == "day of its own" else 0.0
    grown = 0.02 * (0.5 + place)
    throughput = exact * np.exp(grown * ar(random, ROWS, r))
    needs = np.where(middle, before.demand_s, after.demand_s)
    use = before.background + throughput * needs * np.exp(grown * ar(random, ROWS, r) + wave)
    if noise == "outliers":
        hit = random.random((2, ROWS)) < 0.02
        throughput = np.where(hit[0], throughput * random.choice([0.1, 3.0], ROWS), throughput)
        use = np.where(hit[1], random.random(ROWS), use)
    if noise == "missing":
        throughput = np.where(random.random(ROWS) < 0.1, np.nan, throughput)
        use = np.where(random.random(ROWS) < 0.1, np.nan, use)
        load = np.where((np.arange(ROWS) // 50) % 7 == 3, np.nan, load)
    cells = (tuple(STEP_S * np.arange(ROWS)), tuple(load), tuple(throughput))
    rows = Observed("simulated", *cells, use={"r": tuple(np.clip(use, 0, 1))}, axis="clients" if clients else "rate")
    return before, after, rows


def note(
    found: Learned, truth: Truth, changed: bool, random: np.random.Generator, scores: dict[str, Score], keys: list[str]
) -> None:
    """Score one series under each key."""
    (one,) = found.demands
    at = AHEAD * found.highest_load
    for key in keys:
        if one.demand_s is not None and one.low_s is not None and one.high_s is not None:
            scores.setdefault(f"demand: {key}", Score()).note(one.demand_s, one.low_s, one.high_s, truth.demand_s)
        if one.full_at is not None:
            full = one.full_at
            scores.setdefault(f"full: {key}", Score()).note(full.load, full.low, full.high, truth.limit)
        if found.curve is not None and found.curve.knee is not None and "through" in keys:
            knee = found.curve.knee
            scores.setdefault(f"knee: {key}", Score()).note(knee.load, knee.low, knee.high, truth.limit)
        if found.observations is not None and not changed:
            points = forecast(found.observations, [at]).at
            actual = float(truth.throughput(np.array([at]))[0])
            for point in points:
                ours = point.throughput
                scores.setdefault(f"throughput: {key}", Score()).note(ours.value, ours.low, ours.high, actual)


def table(count: int) -> bool:
    """Print the scores of `count` series of each kind; whether the goals are met."""
    scores: dict[str, Score] = {}
    series = knees = through = bends = changes = seen = steady = 0
    for shape in LOADS:
        for noise in NOISES:
            for part in PEAKS:
                for number in range(count):
                    seed = [list(LOADS).index(shape), NOISES.index(noise), list(PEAKS).index(part), number]
                    random = np.random.default_rng(seed)
                    _, after, rows = drawn(random, shape, noise, part, clients=number % 2 == 1)
                    found = learn(rows)
                    note(found, after, noise == "change", random, scores, ["all", shape, noise, part])
                    bent = found.curve is not None and found.curve.knee is not None
                    series += part == "far"
                    knees += bent and part == "far"
                    through += part == "through"
                    bends += bent and part == "through"
                    steady += noise != "change"
                    changes += noise != "change" and bool(found.regimes)
                    seen += noise == "change" and bool(found.regimes)
    print(HEAD)
    for name in sorted(scores):
        print(scores[name].line(name))
    changed = count * len(LOADS) * len(PEAKS)
    print(f"knee told of {knees} of {series} series that never came near, and of {bends} of {through} that went beyond")
    print(f"change told of {changes} of {steady} steady series, and of {seen} of {changed} that changed")
    held = {name: scores[f"{name}: all"].held / scores[f"{name}: all"].told for name in LEAST_HELD}
    return (
        all(held[name] >= least for name, least in LEAST_HELD.items())
        and knees <= MOST_FALSE["knee"] * series
        and changes <= MOST_FALSE["change"] * steady
    )
