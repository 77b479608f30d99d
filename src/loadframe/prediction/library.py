"""Statistics of forecasts on real and published curves: calibration.json, computed by benchmarks/server_curves.py."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from loadframe.analysis.arrays import Floats
from loadframe.model import Limit
from loadframe.prediction import pool

FILE = "calibration.json"
LEAST_APART = 0.05
"""Added before logarithms: candidates that agree may all be wrong."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a 90 % interval as multiples of the scale; infinite where the library is too small."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Scale:
    """Likely error of a forecast, in logarithms: e^level (r + BASE)^reach (apart + LEAST_APART)^spread, r the doublings
    beyond the highest load, apart how far the candidates lie around the forecast."""

    level: float
    reach: float
    spread: float

    def of(self, doublings: Floats, apart: Floats) -> Floats:
        return np.asarray(np.exp(self.level + known(doublings, apart) @ np.array([self.reach, self.spread])))


def known(doublings: Floats, apart: Floats) -> Floats:
    """Predictors of the error, linear in the scale's parameters: (n, 2)."""
    return np.column_stack([np.log(np.maximum(doublings, 0.0) + pool.BASE), np.log(apart + LEAST_APART)])


@dataclass(frozen=True, slots=True)
class Calibrated:
    """errors: of each candidate per doubling, by regime; most_errors: of its ceiling; scale, points: of forecasts at a
    load; most_throughput, most_load: of the maximum; doublings: how far beyond the data five of the library's groups
    reach; curves: number of groups; trust: weight against a study's own backtests."""

    errors: Mapping[str, Mapping[str, float]]
    most_errors: Mapping[str, float]
    scale: Scale
    points: Bounds
    most_throughput: Bounds
    most_load: Bounds
    doublings: float
    curves: int
    trust: float = pool.TRUST


@dataclass(frozen=True, slots=True)
class Library:
    """alone: of curves without utilisations; explained: of those that resources explain."""

    alone: Calibrated
    explained: Calibrated


@cache
def shipped() -> Library:
    text = json.loads(resources.files("loadframe.prediction").joinpath(FILE).read_text(encoding="utf-8"))
    return Library(_read(text["alone"]), _read(text["explained"]))


def binds(limit: Limit) -> bool:
    """A loud limit, or a silent limit on what the server counts itself."""
    counted = bool(limit.thrash_metric) and not limit.thrash_metric.startswith("system.")
    return limit.loud or (limit.unit == "count" and counted)


def _read(entry: Mapping[str, Any]) -> Calibrated:
    ends = {}
    for name in ("points", "most_throughput", "most_load"):
        low, high = entry[name]["low"], entry[name]["high"]
        ends[name] = Bounds(-math.inf if low is None else low, math.inf if high is None else high)
    return Calibrated(**{**entry, **ends, "scale": Scale(**entry["scale"])})
