"""What the library of real curves says of forecasts: data in this package, computed by benchmarks/server_curves.py.

curves.json        what real servers showed, recorded by that script: every window, every utilisation, the limits
published.json     measurements that others published, each with its source
calibration.json   what forecasts from both came to (`calibration`)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

from loadframe.json_text import write_json
from loadframe.model import Limit, Observation, Observations
from loadframe.prediction import calibration
from loadframe.prediction.calibration import Bounds, Calibrated, Curve, Scale

FILE = "calibration.json"


@dataclass(frozen=True, slots=True)
class Library:
    """alone: of curves whose utilisations are not used; explained: of those that resources explain."""

    alone: Calibrated
    explained: Calibrated


@cache
def shipped() -> Library:
    """The one in this package."""
    text = _document(FILE)
    return Library(_read(text["alone"]), _read(text["explained"]))


@cache
def curves() -> tuple[Curve, ...]:
    """Every curve of the library."""
    published = [
        Curve(name, one["group"], one["kind"], _observations(name, {"rows": [[*row, {}] for row in one["rows"]]}), {})
        for name, one in _document("published.json").items()
    ]
    return (*published, *(recorded(name, one) for name, one in _document("curves.json").items()))


def recorded(name: str, one: Mapping[str, Any]) -> Curve:
    """A curve as benchmarks/server_curves.py writes it."""
    limits: dict[float, float] = {}
    for load, found in one["limits"].items():
        binding = [limit["load"] for limit in found if limit["binds"] and limit["load"] > float(load)]
        if binding:
            limits[float(load)] = min(binding)
    return Curve(name, name, one["kind"], _observations(name, one), limits)


def build(made_of: Sequence[Curve]) -> Library:
    """The library of these curves."""
    made = {
        alone: [case for curve in made_of for case in calibration.cases(curve, alone=alone)] for alone in (True, False)
    }
    return Library(*calibration.calibrate(made[True], made[False]))


def as_json(library: Library) -> str:
    """The text of calibration.json; an infinite end is null."""
    rounded = _rounded(asdict(library))
    return write_json(rounded, indent=1) + "\n"


def binds(limit: Limit) -> bool:
    """Whether a limit that runs out ends the growth: a loud one refuses what comes; a silent one of things that the
    server counts itself makes all slower. Shares and rates are resources, and forecast as such; queues of the machine
    grow and go."""
    counted = bool(limit.thrash_metric) and not limit.thrash_metric.startswith("system.")
    return limit.loud or (limit.unit == "count" and counted)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    return value


def _read(one: Mapping[str, Any]) -> Calibrated:
    return Calibrated(
        errors=one["errors"],
        most_errors=one["most_errors"],
        scale=Scale(**one["scale"]),
        points=_bounds(one["points"]),
        most_throughput=_bounds(one["most_throughput"]),
        most_load=_bounds(one["most_load"]),
        doublings=one["doublings"],
        curves=one["curves"],
        trust=one["trust"],
    )


def _bounds(ends: Mapping[str, float | None]) -> Bounds:
    low, high = ends["low"], ends["high"]
    return Bounds(-math.inf if low is None else low, math.inf if high is None else high)


def _observations(name: str, one: Mapping[str, Any]) -> Observations:
    return Observations(
        name,
        tuple(
            Observation(load, throughput, p95_ms[0] if p95_ms else None, utilizations=used)
            for load, throughput, used, *p95_ms in one["rows"]
        ),
        axis=one.get("axis", "load"),
        servers=one.get("servers", {}),
        ceilings=frozenset(one.get("ceilings", ())),
    )


def _document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        resources.files("loadframe.prediction").joinpath("data", name).read_text(encoding="utf-8")
    )
    return found
