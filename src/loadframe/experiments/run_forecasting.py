"""Forecasts from runs: what the steps say, and what the ledger adds; kept in the run folder."""

from __future__ import annotations

from collections.abc import Sequence

from loadframe.analysis import curve
from loadframe.diagnosis.plateau import flat_levels
from loadframe.errors import RunError
from loadframe.experiments.examination import with_saturation
from loadframe.experiments.forecasting import predict
from loadframe.ledger.declared_rules import rules_for
from loadframe.ledger.reading import read_limits
from loadframe.model import Forecast, Limit, Step
from loadframe.prediction import resources
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
) -> Forecast:
    """A forecast from a run's steps of one treatment, with the limits of its ledger; it is added to the run's
    forecasts.json. The rest as `predict`. RunError where the run has no such steps."""
    steps = [step for step in run.steps() if step.treatment == treatment and step.counts]
    if not steps:
        known = ", ".join(run.treatments()) or "none"
        raise RunError(f"{run.path} has no finished step of treatment {treatment!r}", remedy=f"It has: {known}.")
    axis = run.declared().load.axis
    observed = resources.observe(steps, name=str(run.path.resolve()), axis=axis)
    seen = [step for step in steps if up_to is None or step.level <= up_to]
    limits = limits_of(run, treatment, seen)
    found = predict(observed, at, up_to=up_to, kind=kind, limits=limits, flattening=False)
    _keep(run, found)
    return found


def limits_of(run: RunFolder, treatment: str, steps: Sequence[Step]) -> list[Limit]:
    """Every limit that these steps read, with the load at which it runs out (95 %)."""
    if not steps:
        return []
    state, effective = run.treatment(treatment).state, run.effective().get(treatment, {})
    highest = max(step.level for step in steps)
    rules = rules_for(run.declared().target.limit, steps)
    flat = flat_levels(curve.of(resources.observe(steps, name=treatment, axis=run.declared().load.axis)))
    return [with_saturation(series, highest, flat) for series in read_limits(steps, state, effective, rules)]


def _keep(run: RunFolder, forecast: Forecast) -> None:
    known = run.has(FILE)
    earlier = run.document(FILE, "forecasts").get("forecasts", []) if known else []
    body = {"forecasts": [*earlier, forecast_json(forecast)][-MOST_KEPT:]}
    run.write_document(FILE, "forecasts", body)
