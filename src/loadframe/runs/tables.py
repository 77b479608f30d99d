"""What a run folder has besides records: the derived tables, and a step's histogram of latencies."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import polars
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogWriter
from numpy.typing import NDArray

from loadframe.model import Limit, Step

METRIC_COLUMNS = {
    "step": polars.Int64,
    "treatment": polars.String,
    "level": polars.Float64,
    "metric": polars.String,
    "value": polars.Float64,
    "at_s": polars.Float64,
}
"""The columns of metrics.parquet."""

LONGEST_LATENCY_US = 3_600_000_000
"""One hour: the largest latency a histogram holds."""


def metric_table(steps: Sequence[Step], series: polars.DataFrame | None) -> polars.DataFrame:
    """Every metric of every step, and of every tick of a series."""
    rows = [
        (step.number, step.treatment, step.level, name, value, None)
        for step in steps
        for name, value in step.metrics.items()
    ]
    table = polars.DataFrame(rows, schema=METRIC_COLUMNS, orient="row")
    if series is None or not len(series):
        return table
    return polars.concat([table, _within_steps(series, steps)])


def limit_table(limits: Sequence[tuple[int, Limit]]) -> polars.DataFrame:
    """The limits of each round, by its number."""
    rows = [
        {
            "round": number,
            "id": limit.id,
            "layer": limit.layer,
            "ceiling": limit.ceiling,
            "configured": limit.configured,
            "effective": limit.effective,
            "use": limit.use,
            "loud": limit.loud,
            "exhausted_at": limit.exhausted_at.load if limit.exhausted_at else None,
        }
        for number, limit in limits
    ]
    return polars.DataFrame(rows, infer_schema_length=None)


def _within_steps(series: polars.DataFrame, steps: Sequence[Step]) -> polars.DataFrame:
    """The ticks' values in the columns of metrics.parquet."""
    windows = polars.DataFrame(
        [(one.window_start_s, one.window_end_s, one.number, one.treatment, one.level) for one in steps],
        schema={"from_s": polars.Float64, "until_s": polars.Float64}
        | {name: METRIC_COLUMNS[name] for name in ("step", "treatment", "level")},
        orient="row",
    )
    joined = series.sort("at_s").join_asof(windows.sort("from_s"), left_on="at_s", right_on="from_s")
    inside = polars.col("at_s") <= polars.col("until_s")
    mine = [polars.when(inside).then(polars.col(name)).alias(name) for name in ("step", "treatment", "level")]
    return joined.with_columns(mine).select(*METRIC_COLUMNS)


def histogram_log(step: Step, latencies_ms: NDArray[np.float32]) -> str:
    """The text of a histogram log: the latencies of the step's window, in microseconds."""
    histogram = HdrHistogram(1, LONGEST_LATENCY_US, 3)
    microseconds = np.clip(np.rint(latencies_ms * 1000.0), 1, LONGEST_LATENCY_US).astype(np.int64)
    for value, count in zip(*np.unique(microseconds, return_counts=True), strict=True):
        histogram.record_value(int(value), int(count))
    histogram.set_start_time_stamp(step.window_start_s * 1000)
    histogram.set_end_time_stamp(step.window_end_s * 1000)
    text = io.StringIO()
    log = HistogramLogWriter(text)
    log.output_log_format_version()
    log.output_legend()
    log.output_interval_histogram(histogram, max_value_unit_ratio=1000.0)
    return text.getvalue()
