"""Forecasts from runs: what the steps say, and what the ledger adds; kept in the run folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadframe.experiments.forecasting import predict
from loadframe.experiments.reading import conclude, limits_up_to
from loadframe.model import Estimate, Forecast
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
    limit = None if up_to is not None or ahead else state.first  # it was measured: it outranks what the demands say
    for one in case.rounds:
        if one.treatment == treatment and limit is not None and limit.load is not None and found.capacity is not None:
            load = one.interval_of(limit)
            ends = (limit.load, limit.load) if load is None else (load.low, load.high)
            capacity = replace(found.capacity, load=Estimate(limit.load, *ends), limited_by=limit.id)
            found = replace(found, capacity=capacity, saturation=saturating.one_figure(found.saturation, capacity))
    earlier = run.document(FILE, "forecasts").get("forecasts", []) if run.has(FILE) else []
    run.write_document(FILE, "forecasts", {"forecasts": [*earlier, forecast_json(found)][-MOST_KEPT:]})
    return found
