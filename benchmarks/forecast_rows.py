"""Rows of benchmarks/sceptic.py on forecasts: the library's real curves without their own kind of server, and faults.

Every curve is forecast as forecast_claims.py has it: from its loads up to a quarter of the peak's, weights and interval
from all other kinds of server. What `forecasts.py --live --save` kept in live_curves.json beside this file has the same
rows, and so has what `--later --save` kept in later_curves.json: nobody had seen these when the model was last changed.
"""

from __future__ import annotations

import json
import math
from functools import cache, partial
from pathlib import Path

import numpy as np

import forecast_claims
import forecast_library
import forecast_systems
from claims import Figure, rate, row
from forecast_claims import Outcome
from forecast_library import Curve

RECORDED = {
    name: Path(__file__).with_name(file)
    for name, file in (("seen", "live_curves.json"), ("later", "later_curves.json"))
}
SYSTEMS = 60
"""Of simulated ones, for a row."""


def _recorded(source: str) -> list[Curve]:
    return [forecast_library.recorded(name, one) for name, one in json.loads(RECORDED[source].read_text()).items()]


@cache
def outcomes(source: str) -> tuple[Outcome, ...]:
    """What came of the library's curves (with utilisations), of the published ones (without), or of those recorded."""
    if source in RECORDED:
        chosen = _recorded(source)
    else:
        chosen = [one for one in forecast_library.curves() if bool(one.observations.resources) == (source == "library")]
    return tuple(forecast_claims.judge(one, alone=source == "published") for one in chosen)


def held(source: str, _series: int) -> Figure:
    """How many of the intervals held; chance: as far as curves count, not their points."""
    found = outcomes(source)
    inside = [one for each in found for one in each.inside]
    width = float(np.median([one for each in found for one in each.widths]))
    figure = rate(sum(inside), len(inside), goal=90, rival=f"{len(inside)} loads, median high / low {width:.2g}")
    return Figure(figure.value, 196 * math.sqrt(0.9 * 0.1 / len(found)), figure.rival)


def error(source: str, _series: int) -> Figure:
    """The median error over that of the better of law and straight line."""
    errors = forecast_claims.pooled(outcomes(source))
    off = {name: 100 * forecast_claims.off(values) for name, values in errors.items()}
    words = ", ".join(f"{name} {off[name]:.0f}" for name in forecast_claims.RIVALS)
    rival = min(off["law"], off["straight"])
    return Figure(off["forecast"] / rival, 0.0, f"error {off['forecast']:.0f} %; {words} %")


def below(source: str, _series: int) -> Figure:
    """How many forecasts of the most lie below what was seen."""
    told = [one for one in outcomes(source) if one.most is not None]
    return Figure(sum(one.below for one in told), 0.0, f"of {len(told)}; their own error {_most_off(told):.0f} %")


def _most_off(told: list[Outcome]) -> float:
    return 100 * forecast_claims.off([one.most[0] for one in told if one.most is not None])


SOURCES = {
    "library": "the library's 24 servers, each without its own kind",
    "published": "15 published curves, without utilisations",
    "seen": "18 studies that nothing was chosen by, seen before the model's last change",
    "later": "14 studies written down and measured after it",
}
for _source, _words in SOURCES.items():
    _about = f"forecasts: {_source}"
    row(f"{_about}, held", f"90 % intervals that hold, {_words}", section=3, goal=85, most=False)(
        partial(held, _source)
    )
    row(f"{_about}, too wide", f"the same: no more than they say, {_words}", section=3, goal=95)(partial(held, _source))
    row(f"{_about}, error", f"median error over the better of law and line, {_words}", section=3, goal=1, unit="x")(
        partial(error, _source)
    )
    if _source != "published":
        row(f"{_about}, below", f"the most below what was seen, {_words}", section=3, goal=0, unit="")(
            partial(below, _source)
        )


@row("forecasts: limit passed", "limits of the ledger not named, or passed, simulated", section=3, goal=0, unit="")
def limit_passed(_series: int) -> Figure:
    """A limit that runs out before the resources do."""
    return Figure(forecast_systems.limits_passed(SYSTEMS), 0.0, f"of {SYSTEMS}")


@row("forecasts: not seen", "a most told that no utilisation can tell, simulated", section=3, goal=0, unit="")
def not_seen(_series: int) -> Figure:
    """A bottleneck that is not measured, and resources that do not follow the load."""
    told = [forecast_systems.most_told(name, SYSTEMS) for name in ("hidden", "idle")]
    return Figure(sum(told), 0.0, f"of {len(told) * SYSTEMS}")
