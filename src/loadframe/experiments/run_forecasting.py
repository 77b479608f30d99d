"""Forecasts from runs: what the steps say, and what the ledger adds; kept in the run folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadframe.experiments.forecasting import predict
from loadframe.experiments.reading import conclude, limits_up_to
from loadframe.model import Estimate, Forecast, NextLimit, Round
from loadframe.prediction import resources, saturating
from loadframe.prediction.system import Kind
from loadframe.reporting.json_shapes import forecast_json
from loadframe.runs.folder import RunFolder

FILE = "forecasts.json"
MOST_KEPT = 100


def predict_run(
    run: RunFolder,
    at: Sequence[float] = (),
    *,
    treatment: str = "A",
    up_to: float | None = None,
    kind: Kind | None = None,
    ahead: bool = False,
) -> Forecast:
    """A forecast from the steps of one state of a run, with its limits; it is added to the run's forecasts.json. What
    saturates first in a state is what the case study names there, in the last one what limits next; not so ahead: of a
    run that goes on to measure what is forecast. The rest as `predict`. RunError where no step of that state counts."""
    case = conclude(run)
    state = case.state(treatment)
    observed = resources.observe(state.steps, name=str(run.path.resolve()), axis=case.study.axis)
    limits = state.limits if up_to is None else limits_up_to(run, state, up_to)
    found = predict(observed, at, up_to=up_to, kind=kind, limits=limits, flattening=False)
    for one in case.rounds if up_to is None and not ahead else ():
        found = _with_first(found, one, state.first) if one.treatment == treatment else found
    _keep(run, found)
    return found


def _with_first(found: Forecast, one: Round, limit: NextLimit | None) -> Forecast:
    """What was measured to limit a state outranks what the demands say."""
    if limit is None or limit.load is None or found.capacity is None:
        return found
    at = one.interval_of(limit)
    ends = (limit.load, limit.load) if at is None else (at.low, at.high)
    capacity = replace(found.capacity, load=Estimate(limit.load, *ends), limited_by=limit.id)
    return replace(found, capacity=capacity, saturation=saturating.one_figure(found.saturation, capacity))


def _keep(run: RunFolder, forecast: Forecast) -> None:
    known = run.has(FILE)
    earlier = run.document(FILE, "forecasts").get("forecasts", []) if known else []
    body = {"forecasts": [*earlier, forecast_json(forecast)][-MOST_KEPT:]}
    run.write_document(FILE, "forecasts", body)
