"""The analysis of production data and the forecast of higher loads, with its errors in words."""

from collections.abc import Sequence
from dataclasses import replace

from loadframe.analysis import observed as analysis
from loadframe.analysis.observed_rows import TooLittleError
from loadframe.errors import SampleError
from loadframe.experiments.forecasting import predict
from loadframe.model import Forecast, Learned, Observed
from loadframe.prediction.system import Kind
from loadframe.reporting.observed_report import absent, apart, growing

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
