"""Short records of a run for its report."""

from collections.abc import Collection, Mapping, Sequence

import polars

from loadframe.knowledge.families import FAMILIES
from loadframe.model import Limit, Steps, StudySummary
from loadframe.runs.lines import BenchFacts
from loadframe.study import Study

ALWAYS = (
    "system.cpu.utilization",
    "target.cpu.cores",
    "driver.cpu.cores",
    "target.memory.rss",
    "system.disk.busy",
    "workload.silence_ms",
    "system.stall.longest_ms",
)
"""Metrics in every report, besides those that are evidence."""
BEYOND_P999 = 1000
"""A request in 1,000 lies beyond p99.9."""
OF_EACH_PIECE = ("cpu.cores", "memory.rss", "io.read_bytes", "io.write_bytes")
"""What pieces of a target, and the driver, used."""


def describe_study(study: Study, bench: BenchFacts) -> StudySummary:
    failed = study.objective.within.error_ratio
    within, lost = study.objective.within.latency_p95_ms, study.objective.within.loss_ratio
    return StudySummary(
        name=study.study.name,
        question=study.study.question,
        target_kind=study.target.kind,
        target_version=bench.version,
        workload_kind=study.workload.kind,
        axis=study.load.axis,
        axis_unit=bench.axis_unit,
        levels=study.levels,
        objective=study.objective.maximise
        + "".join(
            f", {name.removesuffix('_ms').replace('p999', 'p99.9')} latency within {limit:g} ms"
            for name, limit in study.objective.within.latencies_ms.items()
        )
        + (f", at most {100 * failed:g} % of the requests failed" if failed is not None else "")
        + (f", p95 latency within {within:g} ms" if within is not None else "")
        + (f", at most {100 * lost:g} % of the requests lost" if lost is not None else ""),
        durability=study.remedies.durability,
        cage=_cage(study),
        story=study.study.story,
        work_unit=bench.work_unit,
    )


def _cage(study: Study) -> dict[str, str]:
    """By component: "memory" for the target, "driver's cpus" for others."""
    tables = {"": study.cage, **{f"{name}'s ": cage for name, cage in study.cage.components.items()}}
    return {
        f"{owner}{key.replace('_', ' ')}": str(value)
        for owner, cage in tables.items()
        for key, value in cage.model_dump(mode="json", exclude_none=True).items()
        if not isinstance(value, dict)
    }


def footprint(steps: Steps, metrics: Collection[str]) -> tuple[Mapping[str, float], ...]:
    """A row per step: p95 latency where known, p99.9 where a request lies beyond it, these metrics where measured, and
    all of families."""
    kinds = set(FAMILIES)
    of_families = sorted({name for step in steps for name in step.metrics if name.partition(".")[0] in kinds})
    measured = {name.partition(".")[::2] for step in steps for name in step.metrics}
    pieces = {component for component, rest in measured if rest in OF_EACH_PIECE} - {"target", "recorder"}
    if pieces <= {"driver"}:
        pieces = set()
    of_pieces = [f"{component}.{what}" for what in OF_EACH_PIECE for component in sorted(pieces)]
    wanted = list(dict.fromkeys([*ALWAYS, *of_pieces, *metrics, *of_families]))
    return tuple(
        {
            "step": float(step.number),
            "level": step.level,
            **({} if step.block is None else {"block": float(step.block)}),
            "throughput": step.throughput,
            **({"latency_p95_ms": step.latency.p95_ms} if step.latency_known else {}),
            "errors": float(step.errors),
            **(
                {"latency_p999_ms": step.latency.p999_ms}  # not of runs before it was recorded
                if step.requests >= BEYOND_P999 and step.latency.p999_ms > 0
                else {}
            ),
            **{name: step.metrics[name] for name in wanted if name in step.metrics},
        }
        for step in steps
    )


METRIC_COLUMNS = {
    "step": polars.Int64,
    "treatment": polars.String,
    "level": polars.Float64,
    "metric": polars.String,
    "value": polars.Float64,
    "at_s": polars.Float64,
}
"""Of metrics.parquet."""


def metric_table(steps: Steps, series: polars.DataFrame | None) -> polars.DataFrame:
    rows = [
        (step.number, step.treatment, step.level, name, value, None)
        for step in steps
        for name, value in step.metrics.items()
    ]
    table = polars.DataFrame(rows, schema=METRIC_COLUMNS, orient="row")
    if series is None or not len(series):
        return table
    windows = polars.DataFrame(
        [(step.window_start_s, step.window_end_s, step.number, step.treatment, step.level) for step in steps],
        schema={"from_s": polars.Float64, "until_s": polars.Float64}
        | {name: METRIC_COLUMNS[name] for name in ("step", "treatment", "level")},
        orient="row",
    )
    joined = series.sort("at_s").join_asof(windows.sort("from_s"), left_on="at_s", right_on="from_s")
    inside = polars.col("at_s") <= polars.col("until_s")
    mine = [polars.when(inside).then(polars.col(name)).alias(name) for name in ("step", "treatment", "level")]
    return polars.concat([table, joined.with_columns(mine).select(*METRIC_COLUMNS)])


def limit_table(limits: Sequence[tuple[int, Limit]]) -> polars.DataFrame:
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
