"""The derived tables of a run folder."""

from __future__ import annotations

from collections.abc import Sequence

import polars

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
