"""Forecasts from runs: what the steps say, and what the ledger adds; kept in the run folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadframe.experiments.forecasting import predict
from loadframe.experiments.reading import conclude, limits_up_to
from loadframe.model import Estimate, Forecast, Investigation, RunAnswer
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
    saturates first in the last state is what limits next, as the case study has it; not so ahead: of a run that goes
    on to measure what is forecast. The rest as `predict`. RunError where no step of that state counts."""
    case = conclude(run)
    state = case.state(treatment)
    observed = resources.observe(state.steps, name=str(run.path.resolve()), axis=case.study.axis)
    limits = state.limits if up_to is None else limits_up_to(run, state, up_to)
    found = predict(observed, at, up_to=up_to, kind=kind, limits=limits, flattening=False)
    if up_to is None and not ahead and treatment in {one.treatment for one in case.rounds[-1:]}:
        found = _with_next(found, case.answer)
    _keep(run, found)
    return found


def _with_next(found: Forecast, answer: RunAnswer | None) -> Forecast:
    """What was measured to limit next outranks what the demands say."""
    limit = answer.next_limit if isinstance(answer, Investigation) else None
    if limit is None or limit.load is None or found.capacity is None or not isinstance(answer, Investigation):
        return found
    at = answer.interval_of(limit)
    ends = (limit.load, limit.load) if at is None else (at.low, at.high)
    capacity = replace(found.capacity, load=Estimate(limit.load, *ends), limited_by=limit.id)
    return replace(found, capacity=capacity, saturation=saturating.one_figure(found.saturation, capacity))


def _keep(run: RunFolder, forecast: Forecast) -> None:
    known = run.has(FILE)
    earlier = run.document(FILE, "forecasts").get("forecasts", []) if known else []
    body = {"forecasts": [*earlier, forecast_json(forecast)][-MOST_KEPT:]}
    run.write_document(FILE, "forecasts", body)
