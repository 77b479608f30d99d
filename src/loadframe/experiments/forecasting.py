"""Forecasts from observations and runs, and the scores of all that were made on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from loadframe.errors import RunError, SampleError, UsageError
from loadframe.experiments.reading import conclude, state_up_to
from loadframe.formats.plain_numbers import LARGEST, SMALLEST
from loadframe.host.state import Damaged, read_file, state_directory
from loadframe.model import Calibration, Forecast, Limit, LoadInterval, NextLimit, Observations, Scored
from loadframe.prediction import forecasting, resources, saturating
from loadframe.prediction.system import Kind
from loadframe.reporting.json_shapes import forecast_json
from loadframe.runs.folder import RunFolder
from loadframe.runs.formats import decode, encode
from loadframe.system.files import Folder, Whose


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
    """A forecast from the loads up to `up_to` (default: all), scored by measurements at the forecast loads, by default
    those above `up_to`. flattening: leave out uses that flatten below their ceiling; not for runs, on which forecasts
    were calibrated without it. UsageError for invalid loads, SampleError where no data is left."""
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
    forecast = forecasting.forecast(used, at, kind=kind, limits=limits, first=first, first_from=first_from)
    highest = used.loads[-1]
    beyond = [row for row in observations.rows if row.load > highest]
    return remember(forecasting.score(forecast, beyond))


def remember(forecast: Forecast) -> Forecast:
    if forecast.scored:
        path = Path(forecast.source)
        source = str(path.resolve()) if path.exists() else forecast.source
        add_scores(state_directory(), source, forecast.scored)
    return forecast


def calibration() -> Calibration | None:
    """How often the intervals of all forecasts scored here held; None before the first."""
    return forecasting.calibrate(read_scores(state_directory()))


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
    """A forecast from one state of a run, appended to its forecasts.json. The limit that saturates first is that of the
    case study, but not with `ahead`, for a run that goes on to measure the forecast loads. Otherwise as `predict`.
    RunError where no step of that state counts."""
    case = conclude(run)
    whole = case.state(treatment)
    observed = resources.observe(
        whole.steps, name=str(run.path.resolve()), axis=case.study.axis, unit=case.study.load_unit
    )
    state = whole if up_to is None else state_up_to(run, case, treatment, up_to)
    forecast = predict(
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
    run.write_record(FILE, "forecasts", {"forecasts": [*earlier, forecast_json(forecast)][-MOST_KEPT:]})
    return forecast


SCORES = "forecast-scores.jsonl"
MOST_SCORES_BYTES = 50_000_000
"""A quarter of a million scores."""


@dataclass(frozen=True, slots=True)
class Score:
    """source: what the forecast was made from; at: when it was scored, UTC."""

    source: str
    at: str
    score: Scored


def add_scores(folder: Path, source: str, scores: Sequence[Scored]) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    lines = b"".join(encode("score", Score(source, now, score)) + b"\n" for score in scores)
    try:
        Folder(folder, Whose.OURS).append(SCORES, lines)
    except (OSError, RunError) as error:
        why = error.fact if isinstance(error, RunError) else error.strerror or error
        raise RunError(f"{folder / SCORES} cannot be written: {why}", remedy="Set LOADFRAME_STATE.") from error


def read_scores(folder: Path) -> list[Scored]:
    """Once per forecast of the same measurement, without a torn last line. RunError."""
    path = folder / SCORES
    try:
        text = read_file(path, MOST_SCORES_BYTES)
    except FileNotFoundError:
        return []
    except Damaged as error:
        raise RunError(f"{path} cannot be read: {error}", remedy="Check the file, or remove it.") from error
    scores: dict[tuple[str, float, float], Scored] = {}
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        scored = decode("score", line.encode(), Score, where=f"{path}, line {number}")
        scores[scored.source, scored.score.load, scored.score.actual] = scored.score
    return list(scores.values())
