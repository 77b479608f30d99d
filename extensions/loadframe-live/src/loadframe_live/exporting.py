"""Runs in the formats of other tools: one row of FORMATS each. Also the Bencher Metric Format
(https://bencher.dev/docs/reference/bencher-metric-format/) and tables for spreadsheets, data frames and databases."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import polars
from polars import Boolean, Float32, Float64, Int64, String, UInt32

from loadframe.entry_points import EXPORTS_GROUP, usable
from loadframe.errors import RunError
from loadframe.experiments.profiling import speedscope
from loadframe.experiments.reading import conclude
from loadframe.formats.json_text import write_json
from loadframe.formats.said import words
from loadframe.model import CaseStudy, Step
from loadframe.reporting.exports import ExportFormat, OfFolders, both, exported
from loadframe.reporting.openmetrics import text
from loadframe.runs.folder import RunFolder
from loadframe.runs.histograms import begun_log, bin_latencies_ms
from loadframe.workloads import request_log
from loadframe_live.openmetrics import FAMILIES, samples_of

REQUEST = {
    "step": Int64, "treatment": String, "level": Float64, "end_s": Float64, "latency_ms": Float32,
    "waiting_ms": Float32, "operation": String, "outcome": UInt32,
}  # fmt: skip
UNTAGGED = re.compile(r"[^A-Za-z0-9_.=@-]")
"""What a tag cannot hold: commas, blanks and line ends separate the parts of a log."""
MOST_REQUESTS = 20_000_000
"""Rows of requests: as text they take about 1.5 GB."""


# --- what a run has ---


def _hdrhistogram(run: RunFolder) -> bytes:
    """One log of all steps, in rising order of their starts, which are in CLOCK_MONOTONIC."""
    middles, (log, _), empty = bin_latencies_ms(), begun_log(), True
    for step in sorted(run.steps(), key=lambda step: step.window_start_s):
        counts, payload = run.latency_counts(step.number), run.latency_payload(step.number)
        if step.counts and counts is not None and payload is not None:
            longest = float(middles[counts > 0].max(initial=0.0))
            tag = UNTAGGED.sub("_", f"{step.treatment}@{step.level:g}")
            numbers = f"{step.window_start_s:.3f},{step.window_end_s - step.window_start_s:.3f},{longest:.3f}"
            log.write(f"Tag={tag},{numbers},{payload.decode('ascii')}\n")
            empty = False
    if empty:
        raise RunError(
            f"{run.path} has no histogram of latencies", remedy="A run keeps them in latency/; measure the study again."
        )
    return log.getvalue().encode()


def _requests(run: RunFolder) -> Iterator[polars.DataFrame]:
    """A table per step of every request, including those before and after the window."""
    rows = 0
    for step in run.steps():
        requests = request_log.from_bytes(run.requests(step.number)) if step.counts else None
        if requests is None or not len(requests):
            continue
        rows += len(requests)
        if rows > MOST_REQUESTS:
            raise RunError(
                f"{run.path} has more than {MOST_REQUESTS:,} requests",
                remedy="docs/run-folder.md has the format of raw/requests-N.zst: read it step by step.",
            )
        yield _requests_of(step, requests)
    if not rows:
        raise RunError(
            f"{run.path} has no log of requests", remedy="A run keeps them in raw/; measure the study again."
        )


def _requests_of(step: Step, requests: request_log.Requests) -> polars.DataFrame:
    known = dict(enumerate(operation.name for operation in step.operations))
    numbers, positions = np.unique(requests.operation, return_inverse=True)
    names = polars.Series([known.get(int(number), str(number)) for number in numbers], dtype=String)
    columns = {
        "end_s": requests.end_s,
        "latency_ms": requests.latency_ms,
        "waiting_ms": requests.waiting_ms,
        "operation": names.gather(positions),
        "outcome": requests.outcome,
    }
    same = {"step": step.number, "treatment": step.treatment, "level": step.level}
    lit = [polars.lit(value, dtype=REQUEST[name]).alias(name) for name, value in same.items()]
    return polars.DataFrame(columns).with_columns(lit).select(*REQUEST)


def _of_case(table: Callable[[CaseStudy], polars.DataFrame]) -> Callable[[RunFolder], Iterable[polars.DataFrame]]:
    return lambda run: [table(conclude(run))]


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


Columns = Mapping[str, Any]

CURVE: Columns = {
    "treatment": String, "title": String, "load": Float64, "throughput": Float64, "throughput_low": Float64,
    "throughput_high": Float64, "latency_p95_ms": Float64, "steps": Int64, "settled": Boolean,
}  # fmt: skip
QUANTITIES = ("mean", "p50", "p95", "p99", "p999", "max")
STEP: Columns = {
    "step": Int64, "treatment": String, "level": Float64, "round": Int64, "block": Int64, "purpose": String,
    "window_start_s": Float64, "window_end_s": Float64, "requests": Int64, "errors": Int64, "throughput": Float64,
    **{f"latency_{name}_ms": Float64 for name in QUANTITIES}, "waiting_share": Float64, "closed_loop": Boolean,
    "think_s": Float64, "flags": String,
}  # fmt: skip
"""One column per metric follows, under its name."""
LIMIT: Columns = {
    "round": Int64, "treatment": String, "limit": String, "title": String, "layer": String, "unit": String,
    "ceiling": Float64, "configured": Float64, "effective": Float64, "use": Float64, "status": String,
    "loud": Boolean, "exhausted_at": Float64, "exhausted_at_low": Float64, "exhausted_at_high": Float64,
    "source": String,
}  # fmt: skip


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
    return polars.DataFrame(rows, schema={**STEP, **dict.fromkeys(metrics, Float64)}, orient="row")


def limits_table(run: CaseStudy) -> polars.DataFrame:
    """One row per round and limit; ceiling and use in the limit's own unit, loads in the unit of the axis."""
    rows = []
    for round_, limit in ((state, limit) for state in run.rounds for limit in state.limits):
        at = limit.exhausted_at
        own = {"round": round_.number, "treatment": round_.treatment, "limit": limit.id}
        for name, end in (("exhausted_at", "load"), ("exhausted_at_low", "low"), ("exhausted_at_high", "high")):
            own[name] = getattr(at, end, None)
        rows.append(tuple(own[name] if name in own else getattr(limit, name) for name in LIMIT))
    return polars.DataFrame(rows, schema=dict(LIMIT), orient="row")


# --- the formats ---


def of_folders() -> tuple[OfFolders, ...]:
    return tuple(usable(EXPORTS_GROUP, lambda kind: isinstance(kind, OfFolders)))


FORMATS: tuple[ExportFormat[RunFolder], ...] = (
    ExportFormat(
        "openmetrics",
        ".prom",
        "curve, limits, findings and gain",
        "Prometheus",
        lambda run: text(samples_of(conclude(run)), FAMILIES).encode(),
    ),
    ExportFormat(
        "bencher",
        ".json",
        "throughput and latency at each load",
        "Bencher",
        lambda run: (write_json(bencher_json(conclude(run)), indent=2) + "\n").encode(),
    ),
    ExportFormat("hdrhistogram", ".hlog", "the latencies of each step", "HdrHistogram", _hdrhistogram),
    ExportFormat("speedscope", ".speedscope.json", "the sampled stacks", "speedscope", speedscope),
    *both("curve", "throughput and latency at each load, with intervals", _of_case(curve_table)),
    *both("steps", "every step with its metrics", _of_case(steps_table)),
    *both("limits", "every limit with its use and the load at which it runs out", _of_case(limits_table)),
    *both("requests", "every request", _requests),
)


def export(run: RunFolder, name: str) -> bytes:
    """UsageError where there is no such format, RunError where the run has no data for it."""
    return exported(FORMATS, run, run.path, name)
