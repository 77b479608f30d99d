"""Where a server stops meeting its objective, from trials that met it or missed it: docs/mathematics.md, "Capacity
search"."""

import math
from collections.abc import Sequence

import numpy as np

from loadframe.analysis import series
from loadframe.analysis.arrays import Floats
from loadframe.model import LoadInterval

LAPSE = 0.02
"""Share of trials with the wrong outcome however far the load is: no single trial decides."""
SPREADS = tuple(0.002 * 2.0**i for i in range(6))
"""0.2 % to 6.4 %, as scale s of the logistic curve."""
CALM = 0.5
"""Prior weight of a spread s: s^-CALM. With 0 a calm server takes a fifth more trials, with 1 brackets of noisy ones
are wrong twice as often: benchmarks/search.py."""
BEYOND = 2.0
"""The capacity may lie outside the searched range by up to this factor."""
NEGLIGIBLE = 1e-7
CELLS = 2
GUESS_TRUST = 0.8
"""Weight of a first guess; the rest is uniform."""
OPEN = 0.1
FEWEST_OPEN = 8
"""From this many trials with a chance to meet between OPEN and 1 - OPEN, they show the correlation of neighbours
(benchmarks/sceptic.py)."""
NORMAL_90 = 1.645
"""Standard deviations in half of a 90 % interval."""


class Threshold:
    """Weights on a grid of log capacities, (cells,), and of spreads. worth: independent trials per trial ("Correlated
    trials"; tetrachoric: Sheppard 1899)."""

    def __init__(self, low: float, high: float, *, step: float, guess: LoadInterval | None = None) -> None:
        """Uniform between low and high (and a little beyond), or with a guess. step: of the ladder, in log load."""
        begin, end = math.log(low / BEYOND), math.log(high * BEYOND)
        cells = math.ceil((end - begin) / step * CELLS)
        self._cell: float = (end - begin) / cells
        self.log_capacity: Floats = begin + (np.arange(cells, dtype=np.float64) + 0.5) * self._cell
        self._spread = np.array(SPREADS)
        prior: Floats = np.full(cells, 1 / cells)
        if guess is not None:
            deviation = max(math.log(guess.high / guess.low) / 2 / NORMAL_90, step)
            bell = np.exp(-0.5 * ((self.log_capacity - math.log(guess.load)) / deviation) ** 2)
            if bell.sum() > 0:
                prior = GUESS_TRUST * bell / bell.sum() + (1 - GUESS_TRUST) * prior
        self._prior = np.log(prior)[:, None] - CALM * np.log(self._spread)
        self._evidence = np.zeros_like(self._prior)
        self._trials: list[tuple[float, bool]] = []
        self._settle()

    def update(self, load: float, met: bool) -> None:
        chance = _chance(self.log_capacity, np.log([load]), self._spread)[0]
        self._evidence += np.log(chance if met else 1 - chance)
        self._trials.append((load, met))
        self._settle()

    def _resemblance(self) -> float:
        loads = sorted({load for load, _ in self._trials})
        chances = np.einsum("lcs,cs->l", _chance(self.log_capacity, np.log(loads), self._spread), self._joint)
        known = dict(zip(loads, chances.tolist(), strict=True))  # the posterior chance to meet at each load
        open_ = [
            (met - p) / math.sqrt(p * (1 - p)) for load, met in self._trials if OPEN < (p := known[load]) < 1 - OPEN
        ]
        if len(open_) < FEWEST_OPEN:
            return 0.0
        return math.sin(math.pi / 2 * min(max(series.neighbours(open_), 0.0), series.MOST_ALIKE))

    def below(self, loads: Sequence[float]) -> Floats:
        edges = self.log_capacity + self._cell / 2
        return np.asarray(np.interp(np.log(loads), edges, self.weight.cumsum(), left=0.0))

    def at(self, probability: float) -> float:
        cell = int(np.searchsorted(self.weight.cumsum(), probability))
        return math.exp(self.log_capacity[min(cell, len(self.log_capacity) - 1)])

    def information(self, loads: Sequence[float]) -> Floats:
        """Expected information on the capacity (nats) from a trial at each load, (loads,)."""
        likely = self.weight > NEGLIGIBLE
        weight = self.weight[likely]
        chance = _chance(self.log_capacity[likely], np.log(loads), self._spread)
        met = np.einsum("lcs,cs->lc", chance, self._joint[likely]) / weight
        return _entropy(met @ weight) - _entropy(met) @ weight

    def _settle(self) -> None:
        self._believe(1.0)
        if len(self._trials) >= FEWEST_OPEN and (alike := self._resemblance()) > 0:
            self._believe(series.worth(alike, most=1.0))

    def _believe(self, worth: float) -> None:
        self.worth = worth
        log_weight = self._prior + worth * self._evidence
        joint = np.maximum(np.exp(log_weight - log_weight.max()), 1e-300)
        self._joint = joint / joint.sum()
        self.weight: Floats = self._joint.sum(axis=1)


def _chance(log_capacity: Floats, log_load: Floats, spread: Floats) -> Floats:
    """P(met), shape (loads, cells, spreads)."""
    distance = (log_capacity[None, :, None] - log_load[:, None, None]) / spread
    return LAPSE + (1 - 2 * LAPSE) / (1 + np.exp(-np.clip(distance, -500, 500)))


def _entropy(chance: Floats) -> Floats:
    return -chance * np.log(chance) - (1 - chance) * np.log1p(-chance)
