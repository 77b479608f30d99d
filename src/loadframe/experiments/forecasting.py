"""Forecasts from observations and from runs, their scores, and the scores that are kept on this machine."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadframe.errors import SampleError, UsageError
from loadframe.experiments.reading import conclude, limits_up_to
from loadframe.formats.plain_numbers import LARGEST, SMALLEST
from loadframe.host.state import state_directory
from loadframe.model import Calibration, Estimate, Forecast, Limit, Observations
from loadframe.prediction import forecasting, refusal, resources, saturating, scoring
from loadframe.prediction.system import Kind
from loadframe.reporting.json_shapes import forecast_json
from loadframe.runs import scores
from loadframe.runs.folder import RunFolder


def predict(
    observations: Observations,
    at: Sequence[float] = (),
    *,
    up_to: float | None = None,
    kind: Kind | None = None,
    limits: Sequence[Limit] = (),
    flattening: bool = True,
) -> Forecast:
    """A forecast, from the loads up to `up_to` only where that is given; what was measured at the loads forecast
    scores it, and the scores are kept on this machine. Without `at` the loads above `up_to` are forecast. UsageError
    for loads that are none, SampleError where nothing is left to forecast from. flattening: ask for uses that flatten
    below their end over these levels, which are left out, with a word why; it is asked of rows in time order elsewhere,
    and not of a run, whose forecasts are calibrated as they are."""
    wrong = [load for load in (*at, *([up_to] if up_to is not None else [])) if not SMALLEST <= load <= LARGEST]
    if wrong:
        raise UsageError(f"{wrong[0]:g} is not a load", remedy="Give loads above zero: --at 4,8,12.")
    used = observations
    if up_to is not None:
        used = replace(observations, rows=tuple(row for row in observations.rows if row.load <= up_to))
        at = at or [load for load in observations.loads if load > up_to]
        if not used.rows:
            raise SampleError(
                f"{observations.name} has no load up to {up_to:g}; the lowest is {observations.loads[0]:g}",
                remedy="Choose a higher --up-to.",
            )
    if flattening:
        used = replace(used, flattening=used.flattening | saturating.flattening(used))
    found = forecasting.forecast(used, at, kind=kind, limits=limits)
    highest = used.loads[-1]
    beyond = [row for row in observations.rows if row.load > highest]
    return remember(scoring.score(found, beyond))


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
    saturates first in a state is what the case study names there; not so ahead: of a run that goes on to measure what
    is forecast. The rest as `predict`. RunError where no step of that state counts."""
    case = conclude(run)
    state = case.state(treatment)
    observed = resources.observe(state.steps, name=str(run.path.resolve()), axis=case.study.axis)
    limits = state.limits if up_to is None else limits_up_to(run, state, up_to)
    found = predict(observed, at, up_to=up_to, kind=kind, limits=limits, flattening=False)
    limit = None if up_to is not None or ahead else state.first  # it was measured: it outranks what the demands say
    if limit is not None and limit.load is not None and found.capacity is not None:
        ends = (limit.load, limit.load) if state.first_from is None else (state.first_from.low, state.first_from.high)
        capacity = replace(found.capacity, load=Estimate(limit.load, *ends), limited_by=limit.id)
        found = replace(found, capacity=capacity, saturation=saturating.one_figure(found.saturation, capacity))
    if limit is not None and limit.load is not None and limit.load <= found.measured[-1] and found.unexplained:
        found = replace(found, unexplained=found.unexplained.replace(refusal.UNMEASURED, limit.title))
    earlier = run.document(FILE, "forecasts").get("forecasts", []) if run.has(FILE) else []
    run.write_document(FILE, "forecasts", {"forecasts": [*earlier, forecast_json(found)][-MOST_KEPT:]})
    return found
