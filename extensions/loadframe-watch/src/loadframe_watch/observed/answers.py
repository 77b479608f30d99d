"""The answers of `loadframe curve` and `loadframe predict` from production data, as the extension registers them
(`loadframe.data`)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal

import loadframe
from loadframe.cli.data import SeriesOptions
from loadframe.model import Curve, Forecast
from loadframe.reporting.json_shapes import Json, curve_json, json_object
from loadframe_watch.observed.learning import learn
from loadframe_watch.observed.reading import named_series, rows_of
from loadframe_watch.observed.records import Learned, Observed, ObservedMapping
from loadframe_watch.observed.report import absent, apart, growing, render_learned

NO_THROUGHPUT = (
    "No throughput was observed, and a forecast is one of throughput. `loadframe curve` says at which load each "
    "resource would be full; for a forecast add --throughput."
)
NO_ROWS = "No row has a throughput and the use of every resource at once; leave out the resource that is missing."


def predict_observed(
    observed: Observed,
    at: Sequence[float] = (),
    *,
    up_to: float | None = None,
    kind: Literal["closed", "rate"] | None = None,
) -> Forecast:
    """SampleError as `learn` and `predict`."""
    learned = learn(observed)
    rows = learned.observations
    if rows is None or not rows.rows:
        highest = () if learned.highest_load <= 0 else (learned.highest_load,)
        refused = NO_THROUGHPUT if rows is None else NO_ROWS
        return Forecast(observed.name, "load", kind or "closed", highest, refused=refused, notes=learned.notes)
    forecast = loadframe.predict(rows, at, up_to=up_to, kind=kind, flattening=False)
    notes = (
        *forecast.notes,
        f"Learnt from {learned.data.used:,} rows in {learned.data.blocks:,} blocks of time.",
        *absent(learned.data.missing),
        *map(apart, learned.apart),
        *map(growing, learned.growing),
        *learned.notes,
    )
    return replace(forecast, notes=notes)


def learned_json(learned: Learned) -> Json:
    """loadframe.curve/1, with the rest under `observed`. basis: "response" where the points are 1 / response time.
    Without throughput and response times there are no points."""
    empty = {field.name: None for field in fields(Curve)} | {"axis": "load", "points": (), "warnings": ()}
    shape = {"schema": "loadframe.curve/1", **empty} if learned.curve is None else curve_json(learned.curve)
    observed = asdict(replace(learned, curve=None, observations=None)) | asdict(learned.data)
    for name in ("curve", "data", "observations"):
        del observed[name]
    return json_object({**shape, "observed": observed})


@dataclass(frozen=True, slots=True)
class Production:
    """For the verbs of the core. observed: rows in time order."""

    observed: Observed

    def curve(self, within_latency_p95_ms: float | None, unit: str) -> tuple[Json, str]:
        learned = learn(self.observed, within_latency_p95_ms=within_latency_p95_ms)
        return learned_json(learned), render_learned(learned, unit=unit)

    def predict(self, at: Sequence[float], up_to: float | None, kind: Literal["closed", "rate"] | None) -> Forecast:
        return predict_observed(self.observed, at, up_to=up_to, kind=kind)


def production(files: Sequence[tuple[str, str]], series: SeriesOptions) -> Production:
    """files: texts and names. UsageError for a --use without a name, SampleError as `import_observed`."""
    mapping = ObservedMapping(
        load=series.load,
        throughput=series.throughput,
        response=series.response,
        use=named_series("--use", series.use, "Write it as --use cpu=SERIES."),
        counters=series.counters,
        response_is=series.response_is,
    )
    return Production(rows_of(files, mapping))
