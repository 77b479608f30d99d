"""Search for the highest load that meets an objective, from below (docs/mathematics.md)."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.analysis.curve import CLIFF_KEPT
from loadframe.analysis.threshold import Threshold
from loadframe.model import CapacityEnd, CapacityLevel, LevelClass, LoadInterval, grouped

OVER_COST = 6.5
"""A trial above the capacity costs as much as this many below it. With 4 up to an eighth of the load-seconds lie above
that of a collapsing server, with 10 noise takes a third more trials: benchmarks/search.py."""
GROWTH = 4.0
"""No trial is above this many times the highest load that has met."""
BEYOND_MISS = 2.0
"""How far a trial may be above a likely miss, in units of the precision. With 0 single misses cost a sixth more
trials."""
LIKELY = 0.5
STEPS = 4
"""Levels in a bracket as wide as the precision allows."""
STRICT = 0.6
"""A class needs this share of its allowed error probability, as trials stop at the first success. With 1, every tenth
bracket was wrong at 5 % noise."""
MOST_CANDIDATES = 20
SURELY = 0.001
"""Levels on a known side of the capacity but for this probability are no candidates."""
RECOVERY_TRIALS = 3
"""Trials of a collapsed server at a load that it meets; then it is restarted."""
RECOVERY_SHARE = 0.2
SAFE = 0.01
"""The server surely meets a load if the capacity is below that with at most this probability."""


@dataclass(frozen=True, slots=True)
class Settings:
    """precision: relative distance of the answer's ends. error: probability that the answer is wrong. hold_s: time for
    which the lower end, or loads above it, must have met. guess: with a 90 % interval."""

    low: float
    high: float
    integer: bool = True
    precision: float = 0.05
    error: float = 0.05
    trial_s: float = 3.0
    hold_s: float = 0.0
    guess: LoadInterval | None = None

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < math.inf:
            raise ValueError(f"a capacity is searched between two positive loads, not from {self.low} to {self.high}")
        if not (0 < self.precision < 1 and 0 < self.error < 1 and self.trial_s > 0 and self.hold_s >= 0):
            raise ValueError(f"precision and error lie between 0 and 1, a trial takes time: {self}")
        if self.guess is not None and not 0 < self.guess.low <= self.guess.load <= self.guess.high < math.inf:
            raise ValueError(f"a guess is a positive load inside its interval, not {self.guess}")


@dataclass(frozen=True, slots=True)
class Proposal:
    """recovery: of a collapsed server; restart: it has not recovered, and must be restarted first."""

    load: float
    seconds: float
    recovery: bool = False
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """seconds: of load, fewer than proposed where the trial ended early."""

    met: bool
    seconds: float
    throughput: float


class CapacitySearch:
    """Call `propose`, load the server, call `observe`, until nothing is proposed or time is up."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        step = math.log1p(settings.precision) / STEPS
        self.levels: tuple[float, ...] = _ladder(settings, step)
        self._brackets = _brackets(self.levels, settings.precision)
        self._step = step
        self._counted: list[tuple[Proposal, Outcome]] = []
        self._allowed = STRICT * settings.error / 2
        self._next: Proposal | None = None
        self._recovering = 0
        self.expect(settings.guess)

    def propose(self) -> Proposal | None:
        """The same until its outcome is observed; None once the capacity is known."""
        return self._next

    def observe(self, outcome: Outcome) -> bool:
        """False for a recovery trial, which is no evidence. ValueError if no trial is proposed."""
        trial = self._next
        if trial is None:
            raise ValueError("no trial is proposed whose outcome could be observed")
        if trial.recovery:
            self._recovering = 0 if outcome.met or trial.restart else self._recovering + 1
        else:
            self._counted.append((trial, outcome))
            self._threshold.update(trial.load, outcome.met)
            best = max((known.throughput for _, known in self._counted if known.met), default=None)
            # While nothing has met, every miss above the lowest level may be a cliff.
            fell = trial.load > self.levels[0] if best is None else outcome.throughput < CLIFF_KEPT * best
            self._recovering = int(fell and not outcome.met)
        self._settle()
        if self._recovering and self._next is not None:
            # At the highest level that the server surely meets, then at half of it, ..., at last after a restart.
            met = (level.load for level in self.known() if level.met and self._below(level.load) <= SAFE)
            safe = max(met, default=0.0)
            lower = safe / 2 ** (self._recovering - 1)
            load = max((level for level in self.levels if level <= lower), default=self.levels[0])
            restart = self._recovering > RECOVERY_TRIALS or not safe
            self._next = Proposal(load, RECOVERY_SHARE * self.settings.trial_s, recovery=True, restart=restart)
        return not trial.recovery

    def expect(self, guess: LoadInterval | None) -> None:
        """Replace the prior; outcomes count as before."""
        self._threshold = Threshold(self.settings.low, self.settings.high, step=self._step, guess=guess)
        for trial, outcome in self._counted:
            self._threshold.update(trial.load, outcome.met)
        if not self._recovering:
            self._settle()

    @property
    def low(self) -> float | None:
        """Highest level that met, with the capacity below it with at most half of the error probability."""
        return max((level.load for level in self.known() if level.classified == "meets"), default=None)

    @property
    def high(self) -> float | None:
        return min((level.load for level in self.known() if level.classified == "misses"), default=None)

    @property
    def end(self) -> CapacityEnd:
        low, high = self.low, self.high
        if low is None and high == self.levels[0]:
            return "below-range"
        if high is None and low == self.levels[-1]:
            return "above-range"
        if low is None or high is None:
            return "undecided"
        neighbours = self.settings.integer and high <= low + 1
        narrow = neighbours or high <= low * (1 + self.settings.precision) * (1 + 1e-9)
        return "found" if narrow else "undecided"

    @property
    def estimate(self) -> float:
        """Posterior median, within what is shown; a level of the axis."""
        value = self._threshold.at(0.5)
        value = min(max(value, self.low or self.levels[0]), self.high or self.levels[-1])
        if not self.settings.integer:
            return value
        whole = float(math.floor(value))
        return whole - 1 if self.high is not None and whole >= self.high > self.levels[0] else whole

    @property
    def error_probability(self) -> float:
        low, high = self.low, self.high
        return self._below(low) + (1 - self._below(high) if high is not None else 0.0)

    @property
    def held_s(self) -> float:
        low = self.low
        if low is None:
            return 0.0
        return sum(outcome.seconds for trial, outcome in self._counted if outcome.met and trial.load >= low)

    def known(self) -> list[CapacityLevel]:
        allowed = self._allowed
        levels = []
        for load, mine in sorted(grouped((trial.load, outcome) for trial, outcome in self._counted).items()):
            met = sum(outcome.met for outcome in mine)
            below = self._below(load)
            classified: LevelClass = "undecided"
            if below <= allowed and met:
                classified = "meets"
            elif 1 - below <= allowed and met < len(mine):
                classified = "misses"
            seconds = sum(outcome.seconds for outcome in mine)
            levels.append(CapacityLevel(load, len(mine), met, seconds, classified, min(below, 1 - below)))
        return levels

    def _settle(self) -> None:
        below, allowed = self._threshold.below(self.levels), self._allowed
        known = [
            (low, high)
            for low, high in self._brackets
            if (low < 0 or below[low] <= allowed) and (high == len(below) or 1 - below[high] <= allowed)
        ]
        self._next = self._confirm(known) if known else self._explore(below)

    def _confirm(self, brackets: Sequence[tuple[int, int]]) -> Proposal | None:
        shown = {(level.load, level.classified) for level in self.known()}
        unseen = min(  # ends that were tried already cost nothing more
            (
                [
                    self.levels[at]
                    for at, end in zip(pair, ("meets", "misses"), strict=True)
                    if 0 <= at < len(self.levels) and (self.levels[at], end) not in shown
                ]
                for pair in brackets
            ),
            key=lambda unseen: (len(unseen), unseen),
        )
        if unseen:
            return Proposal(min(unseen[0], self._highest_allowed()), self.settings.trial_s)
        missing_s = self.settings.hold_s - self.held_s
        if self.low is not None and missing_s > 0:
            return Proposal(self.low, max(missing_s, self.settings.trial_s))
        return None

    def _explore(self, below: Floats) -> Proposal:
        highest = self._highest_allowed()
        doubtful = [
            (load, p) for load, p in zip(self.levels, below, strict=True) if SURELY < p < 1 - SURELY and load <= highest
        ]
        last, most = len(doubtful) - 1, MOST_CANDIDATES
        if last >= most:
            doubtful = [doubtful[round(i * last / (most - 1))] for i in range(most)]
        candidates = doubtful or [(highest, 0.0)]
        information = self._threshold.information([load for load, _ in candidates])
        worth = information / np.array([1 + (OVER_COST - 1) * p for _, p in candidates])
        return Proposal(candidates[int(worth.argmax())][0], self.settings.trial_s)

    def _highest_allowed(self) -> float:
        known, guess = self.known(), self.settings.guess
        met = max((level.load for level in known if level.met), default=self.levels[0])
        missed = min(
            (level.load for level in known if 2 * level.met < level.trials and self._below(level.load) > LIKELY),
            default=math.inf,
        )
        highest = max(GROWTH * met, guess.low if guess is not None else 0.0)
        highest = min(highest, missed * (1 + BEYOND_MISS * self.settings.precision))
        return max((level for level in self.levels if level <= highest), default=self.levels[0])

    def _below(self, load: float | None) -> float:
        return 0.0 if load is None else float(self._threshold.below([load])[0])


def _ladder(settings: Settings, step: float) -> tuple[float, ...]:
    low, high = settings.low, settings.high
    if settings.integer:
        low, high = math.ceil(low), math.floor(high)
        if low >= high:
            raise ValueError(f"there are no two whole levels from {settings.low} to {settings.high}")
    steps = math.ceil(math.log(high / low) / step)
    levels = [low * (high / low) ** (i / steps) for i in range(steps + 1)]
    return tuple(sorted({float(round(level)) for level in levels} if settings.integer else levels))


def _brackets(levels: Sequence[float], precision: float) -> list[tuple[int, int]]:
    pairs = []
    for low, high in itertools.pairwise(range(len(levels))):
        while high + 1 < len(levels) and levels[high + 1] <= levels[low] * (1 + precision) * (1 + 1e-9):
            high += 1
        pairs.append((low, high))
    return [(-1, 0), *pairs, (len(levels) - 1, len(levels))]
