"""Forecasts from runs: what the steps say, what the ledger adds, and the scores that are kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from loadframe import reporting
from loadframe.analysis import exhaustion
from loadframe.bench.examination import FORESIGHT
from loadframe.cage.leases import state_directory
from loadframe.errors import RunError, SampleError
from loadframe.ledger.reading import read_limits
from loadframe.model import Calibration, Forecast, Limit, Observations, Step
from loadframe.prediction import forecasting, resources, scoring
from loadframe.prediction.system import Kind
from loadframe.runs import scores
from loadframe.runs.folder import RunFolder

FILE = "forecasts.json"
MOST_KEPT = 100


def predict(
    observations: Observations,
    at: Sequence[float] = (),
    *,
    up_to: float | None = None,
    kind: Kind | None = None,
    limits: Sequence[Limit] = (),
) -> Forecast:
    """A forecast, from the loads up to `up_to` only where that is given; what was measured at the loads forecast
    scores it, and the scores are kept on this machine. Without `at` the loads above `up_to` are forecast. SampleError
    for loads that are none, and where nothing is left to forecast from."""
    wrong = [load for load in (*at, *([up_to] if up_to is not None else [])) if not (0 < load < math.inf)]
    if wrong:
        raise SampleError(f"{wrong[0]:g} is no load", remedy="Loads are above zero: --at 4,8,12.")
    used = observations
    if up_to is not None:
        used = replace(observations, rows=tuple(row for row in observations.rows if row.load <= up_to))
        at = at or [load for load in observations.loads if load > up_to]
        if not used.rows:
            raise SampleError(
                f"{observations.name} has no load up to {up_to:g}; the lowest is {observations.loads[0]:g}",
                remedy="Choose a higher --up-to.",
            )
    found = forecasting.forecast(used, at, kind=kind, limits=limits)
    beyond = [row for row in observations.rows if row.load > used.loads[-1]]
    return remember(scoring.score(found, beyond))


def predict_run(
    run: RunFolder,
    at: Sequence[float] = (),
    *,
    treatment: str = "A",
    up_to: float | None = None,
    kind: Kind | None = None,
) -> Forecast:
    """The same from a run's steps of one treatment, with the limits of its ledger; it is added to the run's
    forecasts.json. RunError where the run has no such steps."""
    steps = [step for step in run.steps() if step.treatment == treatment]
    if not steps:
        known = ", ".join(run.treatments()) or "none"
        raise RunError(f"{run.path} has no finished step of treatment {treatment!r}", remedy=f"It has: {known}.")
    axis = str(run.study()["load"]["axis"])
    observed = resources.observe(steps, name=str(run.path.resolve()), axis=axis)
    seen = [step for step in steps if up_to is None or step.level <= up_to]
    found = predict(observed, at, up_to=up_to, kind=kind, limits=limits_of(run, treatment, seen))
    _keep(run, found)
    return found


def limits_of(run: RunFolder, treatment: str, steps: Sequence[Step]) -> list[Limit]:
    """Every limit that these steps read, with the load at which it runs out (95 %)."""
    if not steps:
        return []
    state, effective = run.treatments()[treatment].state, run.effective().get(treatment, {})
    furthest = FORESIGHT * max(step.level for step in steps)
    return [
        replace(
            one.limit,
            exhausted_at=exhaustion.exhausted_at(
                np.array(one.loads), np.array(one.uses), one.limit.ceiling, highest_load=furthest
            ),
        )
        for one in read_limits(steps, state, effective)
    ]


def remember(forecast: Forecast) -> Forecast:
    """Keep the forecast's scores on this machine."""
    if forecast.scored:
        scores.add(state_directory(), _source(forecast), forecast.scored)
    return forecast


def calibration() -> Calibration | None:
    """How often the intervals of all forecasts that were scored on this machine held; None before the first."""
    return scoring.calibrate(scores.read(state_directory()))


def _source(forecast: Forecast) -> str:
    path = Path(forecast.source)
    return str(path.resolve()) if path.exists() else forecast.source


def _keep(run: RunFolder, forecast: Forecast) -> None:
    known = (run.path / FILE).exists()
    earlier = run.document(FILE, "forecasts").get("forecasts", []) if known else []
    body = {"forecasts": [*earlier, reporting.forecast_json(forecast)][-MOST_KEPT:]}
    run.write_document(FILE, "forecasts", body)
