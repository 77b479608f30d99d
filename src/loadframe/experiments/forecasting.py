"""Forecasts from observations, runs and production data, and their scores, which are kept on this machine; what
production data says by itself; and how a bulk load goes on."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from loadframe.analysis import observed as analysis
from loadframe.analysis.following import Followed, Following, by_rates, followed
from loadframe.analysis.observed_rows import TooLittleError
from loadframe.analysis.size_law import FEWEST
from loadframe.errors import RunError, SampleError, UsageError
from loadframe.experiments.reading import conclude, state_up_to
from loadframe.experiments.side_by_side import START
from loadframe.formats.plain_numbers import LARGEST, SMALLEST
from loadframe.host.state import state_directory
from loadframe.model import (
    Calibration,
    Forecast,
    GrowthForecast,
    Learned,
    Limit,
    LoadInterval,
    LoadWindow,
    Memories,
    NextLimit,
    Observations,
    Observed,
    Step,
)
from loadframe.prediction import forecasting, resources, saturating, size_forecast
from loadframe.prediction.system import Kind
from loadframe.reporting.json_shapes import forecast_json
from loadframe.reporting.observed_report import absent, apart, growing
from loadframe.runs import machine
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
    """A forecast from the loads up to `up_to` (default: all); measurements at the forecast loads, by default those
    above `up_to`, score it. flattening: leave out uses that flatten below their ceiling; not for runs, on which
    forecasts were calibrated without it. UsageError for invalid loads, SampleError where no data is left."""
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
        machine.add_scores(state_directory(), source, forecast.scored)
    return forecast


def calibration() -> Calibration | None:
    """How often the intervals of all forecasts scored on this machine held; None before the first."""
    return forecasting.calibrate(machine.read_scores(state_directory()))


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


# --- from production data ---

LONGER = "Export a longer range, in which the load is low and high at times."
NO_THROUGHPUT = (
    "No throughput was observed, and a forecast is one of throughput. `loadframe curve` says at which load each "
    "resource would be full; for a forecast add --throughput."
)
NO_ROWS = "No row has a throughput and the use of every resource at once; leave out the resource that is missing."


def learn(observed: Observed, *, within_latency_p95_ms: float | None = None) -> Learned:
    """The curve, needs per request, saturation and changes from rows in time order. SampleError for too few."""
    if within_latency_p95_ms is not None and observed.response_is != "p95":
        raise SampleError(
            f"{observed.name} has no p95 latency, so the capacity within an objective is unknown",
            remedy="Name one: a column latency_p95_ms, or --response with --response-is p95.",
        )
    try:
        learned = analysis.learn(observed, within_latency_p95_ms=within_latency_p95_ms)
    except TooLittleError as error:
        raise SampleError(f"{observed.name} says too little: {error}", remedy=LONGER) from None
    return replace(learned, notes=(*observed.notes, *learned.notes))


def predict_observed(
    observed: Observed, at: Sequence[float] = (), *, up_to: float | None = None, kind: Kind | None = None
) -> Forecast:
    """The forecast of higher loads from rows in time order. SampleError as `learn` and `predict`."""
    learned = learn(observed)
    rows = learned.observations
    if rows is None or not rows.rows:
        highest = () if learned.highest_load <= 0 else (learned.highest_load,)
        refused = NO_THROUGHPUT if rows is None else NO_ROWS
        return Forecast(observed.name, observed.axis, kind or "closed", highest, refused=refused, notes=learned.notes)
    forecast = predict(rows, at, up_to=up_to, kind=kind, flattening=False)
    return replace(forecast, notes=(*forecast.notes, *_learnt(learned)))


def _learnt(learned: Learned) -> tuple[str, ...]:
    data = learned.data
    said = f"Learnt from {data.used:,} rows in {data.blocks:,} blocks of time."
    return (
        said,
        *absent(data.missing),
        *(apart(peak) for peak in learned.apart),
        *(growing(growth) for growth in learned.growing),
        *learned.notes,
    )


# --- of a bulk load: from its windows or from the steps of a run, scored by its later ones ---

AXIS, CHANGES = "entries", "change_rate"
READS = ("mariadb.pool_reads", "mysql.pool_reads", "postgres.blocks_read")
"""Reads from beyond each database's own memory, 1/s."""


def windows_of_run(run: RunFolder) -> tuple[LoadWindow, ...]:
    """The loads of a run over the axis `entries`. RunError for another axis, and without a finished step."""
    axis = run.declared().load.axis
    if axis != AXIS:
        raise RunError(
            f"{run.path} has the load axis {axis!r}; growth is told from the axis {AXIS!r}",
            remedy="Measure a study whose steps load ever more entries: loadframe case show metadata-index.",
        )
    steps = [step for step in conclude(run).state(START).steps if step.throughput > 0]
    if not steps:
        raise RunError(f"{run.path} has no step of treatment {START!r} that loaded anything", remedy="Measure it.")
    return windows_of_steps(steps)


def following_of_run(run: RunFolder) -> tuple[tuple[Following, ...], Followed]:
    """How each step over the axis `change_rate` followed, and the highest rate that is. RunError for another axis."""
    axis = run.declared().load.axis
    if axis != CHANGES:
        raise RunError(
            f"{run.path} has the load axis {axis!r}; a change log is judged on the axis {CHANGES!r}",
            remedy="Measure a study whose load is a rate of changes.",
        )
    steps = conclude(run).state(START).steps
    following = tuple(by_rates(step.batches, step.level) for step in sorted(steps, key=lambda step: step.level))
    return following, followed(following)


def windows_of_steps(steps: Sequence[Step]) -> tuple[LoadWindow, ...]:
    """Steps as windows of a load: one each where there are enough sizes for a law, else slices of the largest."""
    if len({step.level for step in steps}) >= FEWEST:
        windows = []
        for step in sorted(steps, key=lambda step: step.level):
            seconds = step.level / step.throughput
            rate = next((step.metrics[name] for name in READS if name in step.metrics), None)
            windows.append(LoadWindow(0.0, step.level, seconds, None if rate is None else rate * seconds))
        return tuple(windows)
    most = max(step.level for step in steps)
    return tuple(window for step in steps if step.level == most for window in _slices(step))


def _slices(step: Step) -> list[LoadWindow]:
    """Batches take equal times, so each has entries in proportion to its rate. The time of those without an entry
    belongs to the next one, after the last entry to the last one: a commit took it."""
    seconds, total = step.level / step.throughput / len(step.batches), sum(step.batches)
    windows, before, passed_s = list[LoadWindow](), 0.0, 0.0
    for rate, after in zip(step.batches, accumulate(rate * step.level / total for rate in step.batches), strict=True):
        passed_s += seconds
        if rate > 0 and after > before:
            windows.append(LoadWindow(before, after, passed_s))
            before, passed_s = after, 0.0
    if windows and passed_s > 0:
        windows[-1] = replace(windows[-1], seconds=windows[-1].seconds + passed_s)
    return windows


def forecast_growth(
    windows: Sequence[LoadWindow],
    at: Sequence[float] = (),
    *,
    memories: Memories | None = None,
    up_to: float | None = None,
) -> GrowthForecast:
    """Rate and time at the sizes `at` (entries; default: the load's end, else 2 and 4 times what was seen), from the
    windows up to `up_to`, scored by later ones. SampleError where no window is left."""
    windows = sorted(windows, key=lambda window: (window.after, window.before))
    seen = [window for window in windows if up_to is None or window.after <= up_to]
    if not seen:
        raise SampleError(
            f"the load has no window up to {up_to:,.0f} entries; the first ends at {windows[0].after:,.0f}"
            if windows and up_to is not None
            else "a load without windows tells nothing",
            remedy="Choose a higher --up-to.",
        )
    if up_to is not None and not at and windows[-1].after > seen[-1].after:
        at = [windows[-1].after]
    return size_forecast.score(size_forecast.forecast(seen, at, memories), windows)
