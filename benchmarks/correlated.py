"""Simulated servers for benchmarks/sceptic.py whose noise resembles itself from trial to trial."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import search
from loadframe.analysis.capacity import CapacitySearch, Outcome, Settings

MOST_TRIALS = 200
"""Then the budget is used up, as it would be."""


@dataclass
class Remembering(search.Server):
    """A server whose capacity is an AR(1) series from trial to trial."""

    correlation: float = 0.0
    state: float | None = None

    def load(self, load: float, seconds: float, *, cut: bool) -> tuple[float, float]:
        """As search.Server.load."""
        drawn = float(self.random.standard_normal())
        fresh = math.sqrt(1 - self.correlation**2)
        self.state = drawn if self.state is None else self.correlation * self.state + fresh * drawn
        capacity = self.capacity * math.exp(self.noise * self.state)
        lost = 0.0 if load <= capacity else max(1 - capacity / load, 0.0)
        took = min(seconds, search.FAR_BEHIND * seconds / lost) if cut and lost > 0 else seconds
        self.trials += 1
        self.load_s += took
        return lost, took


@dataclass(frozen=True, slots=True)
class Found:
    """What a search said: whether its bracket holds the capacity, its stated error, its trials."""

    held: bool
    stated: float
    trials: int


def search_it(noise: float, correlation: float, seed: int) -> Found:
    """One search on a server that holds its capacity."""
    random = np.random.default_rng(seed)
    capacity = 600 * math.exp(random.uniform(-0.5, 0.5))
    server = Remembering("holding", capacity, noise, random, correlation=correlation)
    settings = Settings(search.LOW, search.HIGH, precision=search.WIDTH, trial_s=search.TRIAL_S, hold_s=search.HOLD_S)
    found = CapacitySearch(settings)
    while (trial := found.propose()) is not None and server.trials < MOST_TRIALS:
        lost, seconds = server.load(trial.load, trial.seconds, cut=True)
        found.observe(Outcome(lost <= search.LOSS_RATIO, seconds, trial.load * (1 - lost)))
    low, high = found.low or 0.0, found.high or math.inf
    return Found(low <= server.answer < high, found.error_probability, server.trials)
