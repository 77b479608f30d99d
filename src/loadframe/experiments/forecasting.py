"""Forecasts from observations and from runs, their scores, and the scores that are kept on this machine."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadframe.errors import SampleError, UsageError
from loadframe.experiments.reading import conclude, state_up_to
from loadframe.formats.plain_numbers import LARGEST, SMALLEST
from loadframe.host.state import state_directory
from loadframe.model import Calibration, Forecast, Limit, LoadInterval, NextLimit, Observations
from loadframe.prediction import forecasting, resources, saturating, scoring
from loadframe.prediction.system import Kind
from loadframe.reporting.json_shapes import forecast_json
from loadframe.reporting.words import study_unit
from loadframe.runs import scores
from loadframe.runs.folder import RunFolder


def predict(
    observations: Observations,
    at: Sequence[float] = (),
    *,
    up_to: float | None = None,
    kind: Kind | None = None,
    limits: Sequence[Limit] = (),
    first: NextLimit | None = None,
    first_from: LoadInterval | None = None,
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
    found = forecasting.forecast(used, at, kind=kind, limits=limits, first=first, first_from=first_from)
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
    whole = case.state(treatment)
    observed = resources.observe(
        whole.steps, name=str(run.path.resolve()), axis=case.study.axis, unit=study_unit(case.study)
    )
    state = whole if up_to is None else state_up_to(run, case, treatment, up_to)
    found = predict(
        observed,
        at,
        up_to=up_to,
        kind=kind,
        limits=state.limits,
        first=None if ahead else state.first,
        first_from=None if ahead else state.first_from,
        flattening=False,
    )
    earlier = run.document(FILE, "forecasts").get("forecasts", []) if run.has(FILE) else []
    run.write_document(FILE, "forecasts", {"forecasts": [*earlier, forecast_json(found)][-MOST_KEPT:]})
    return found
