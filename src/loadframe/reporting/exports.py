"""A run for other tools: the Bencher Metric Format (https://bencher.dev/docs/reference/bencher-metric-format/),
profiles for speedscope (https://www.speedscope.app), tables for spreadsheets, data frames and databases."""

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars

from loadframe.formats.said import words
from loadframe.model import CaseStudy, Stack
from loadframe.version import __version__

LONGEST_NAME = 1024
THROUGHPUT, LATENCY = "throughput", "latency-p95-ms"
"""The first is a measure of Bencher's own (operations per second); its own `latency` counts nanoseconds."""


def bencher_json(run: CaseStudy) -> dict[str, Any]:
    """One benchmark per state and load: its throughput with the 95 % interval, and the p95 latency in ms."""
    axis = run.study.axis
    benchmarks: dict[str, Any] = {}
    for treatment, state in run.states.items():
        for point in state.curve.points:
            name = words(f"{run.study.name}/{treatment}/{axis}={point.load:.15g}", LONGEST_NAME)
            ends = {"lower_value": point.throughput_low, "upper_value": point.throughput_high}
            known = {end: value for end, value in ends.items() if math.isfinite(value)}
            benchmarks[name] = {THROUGHPUT: {"value": point.throughput, **known}}
            if point.latency_p95_ms is not None and math.isfinite(point.latency_p95_ms):
                benchmarks[name][LATENCY] = {"value": point.latency_p95_ms}
    return benchmarks


SCHEMA = "https://www.speedscope.app/file-format-schema.json"


@dataclass(frozen=True, slots=True)
class TitledStacks:
    """One profile. weight: CPU-seconds, or average threads, that one sample stands for."""

    title: str
    stacks: Sequence[Stack]
    weight: float
    seconds: bool


def speedscope_json(name: str, profiles: Sequence[TitledStacks]) -> dict[str, Any]:
    """All profiles of a run as one document; equal frames are written once."""
    frames: dict[str, int] = {}
    return {
        "$schema": SCHEMA,
        "name": name,
        "exporter": f"loadframe {__version__}",
        "activeProfileIndex": 0,
        "profiles": [_sampled(profile, frames) for profile in profiles],
        "shared": {"frames": [{"name": frame} for frame in frames]},
    }


def _sampled(profile: TitledStacks, frames: dict[str, int]) -> dict[str, Any]:
    weights = [stack.count * profile.weight for stack in profile.stacks]
    return {
        "type": "sampled",
        "name": profile.title,
        "unit": "seconds" if profile.seconds else "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[frames.setdefault(frame, len(frames)) for frame in stack.frames] for stack in profile.stacks],
        "weights": weights,
    }


FORMULA, NUMBER = r"^[=+\-@\t\r]", r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
"""What a spreadsheet may evaluate (OWASP, "CSV Injection"), except numbers."""
Columns = Mapping[str, Any]

CURVE: Columns = {
    "treatment": polars.String,
    "title": polars.String,
    "load": polars.Float64,
    "throughput": polars.Float64,
    "throughput_low": polars.Float64,
    "throughput_high": polars.Float64,
    "latency_p95_ms": polars.Float64,
    "steps": polars.Int64,
    "settled": polars.Boolean,
}
QUANTITIES = ("mean", "p50", "p95", "p99", "p999", "max")
STEP: Columns = {
    "step": polars.Int64,
    "treatment": polars.String,
    "level": polars.Float64,
    "round": polars.Int64,
    "block": polars.Int64,
    "purpose": polars.String,
    "window_start_s": polars.Float64,
    "window_end_s": polars.Float64,
    "requests": polars.Int64,
    "errors": polars.Int64,
    "throughput": polars.Float64,
    **{f"latency_{name}_ms": polars.Float64 for name in QUANTITIES},
    "waiting_share": polars.Float64,
    "closed_loop": polars.Boolean,
    "think_s": polars.Float64,
    "flags": polars.String,
}
"""Columns of every step: its fields or derived from them; one column per metric follows, under its name."""
LIMIT: Columns = {
    "round": polars.Int64,
    "treatment": polars.String,
    "limit": polars.String,
    "title": polars.String,
    "layer": polars.String,
    "unit": polars.String,
    "ceiling": polars.Float64,
    "configured": polars.Float64,
    "effective": polars.Float64,
    "use": polars.Float64,
    "status": polars.String,
    "loud": polars.Boolean,
    "exhausted_at": polars.Float64,
    "exhausted_at_low": polars.Float64,
    "exhausted_at_high": polars.Float64,
    "source": polars.String,
}


def curve_table(run: CaseStudy) -> polars.DataFrame:
    """One row per state and load: throughput in 1/s with its 95 % interval, latency in ms."""
    rows = [
        (treatment, state.title, *asdict(point).values())
        for treatment, state in run.states.items()
        for point in state.curve.points
    ]
    return polars.DataFrame(rows, schema=dict(CURVE), orient="row")


def steps_table(run: CaseStudy) -> polars.DataFrame:
    """One row per step that is a measurement, with all its metrics. Times are CLOCK_MONOTONIC seconds."""
    metrics = sorted({name for step in run.steps for name in step.metrics} - set(STEP))
    rows = []
    for step in run.steps:
        latency = step.latency if step.latency_known else None
        own = {f"latency_{name}_ms": getattr(latency, f"{name}_ms", None) for name in QUANTITIES}
        own |= {"step": step.number, "flags": " ".join(step.flags)}
        cells = (own[name] if name in own else getattr(step, name) for name in STEP)
        rows.append((*cells, *(step.metrics.get(name) for name in metrics)))
    return polars.DataFrame(rows, schema={**STEP, **dict.fromkeys(metrics, polars.Float64)}, orient="row")


def limits_table(run: CaseStudy) -> polars.DataFrame:
    """One row per round and limit; ceiling and use in the limit's own unit, loads in the unit of the axis."""
    rows = []
    for round_, limit in ((state, limit) for state in run.rounds for limit in state.limits):
        at = limit.exhausted_at
        load, low, high = (None, None, None) if at is None else (at.load, at.low, at.high)
        own = {"round": round_.number, "treatment": round_.treatment, "limit": limit.id}
        own |= {"exhausted_at": load, "exhausted_at_low": low, "exhausted_at_high": high}
        rows.append(tuple(own[name] if name in own else getattr(limit, name) for name in LIMIT))
    return polars.DataFrame(rows, schema=dict(LIMIT), orient="row")


def csv_bytes(tables: Sequence[polars.DataFrame]) -> bytes:
    """UTF-8 text (RFC 4180) with one header; the tables have equal columns. Unknown values are empty cells; a text that
    a spreadsheet would take for a formula gets a leading apostrophe."""
    data = io.BytesIO()
    for number, table in enumerate(tables):
        plain = table.fill_nan(None).rename(lambda name: f"'{name}" if re.match(FORMULA, name) else name)
        text = (polars.col(name) for name, kind in plain.schema.items() if kind == polars.String)
        plain.with_columns(map(_plain, text)).write_csv(data, include_header=number == 0)
    return data.getvalue()


def _plain(cell: polars.Expr) -> polars.Expr:
    formula = cell.str.contains(FORMULA) & ~cell.str.contains(NUMBER)
    return polars.when(formula).then("'" + cell).otherwise(cell).name.keep()


def parquet_bytes(tables: Sequence[polars.DataFrame]) -> bytes:
    data = io.BytesIO()
    polars.concat(tables).write_parquet(data)
    return data.getvalue()
