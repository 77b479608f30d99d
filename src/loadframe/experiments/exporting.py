"""Export a run in the formats of other tools: one row of FORMATS each."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import polars

from loadframe.entry_points import EXPORTS_GROUP, usable
from loadframe.errors import RunError, UsageError
from loadframe.experiments.profiling import speedscope
from loadframe.experiments.reading import conclude
from loadframe.formats.json_text import write_json
from loadframe.formats.said import words
from loadframe.model import CaseStudy, Step
from loadframe.panics import ROOM_BYTES, in_words
from loadframe.reporting import exports as tables
from loadframe.reporting import openmetrics
from loadframe.runs.folder import RunFolder
from loadframe.runs.histograms import Interval, bin_latencies_ms, combined_log
from loadframe.workloads import request_log

Source = TypeVar("Source")
REQUEST = {
    "step": polars.Int64,
    "treatment": polars.String,
    "level": polars.Float64,
    "end_s": polars.Float64,
    "latency_ms": polars.Float32,
    "waiting_ms": polars.Float32,
    "operation": polars.String,
    "outcome": polars.UInt32,
}
MOST_REQUESTS = 20_000_000
"""Rows of the table of requests: as text they take about 1.5 GB."""


# --- the formats ---


def _hdrhistogram(run: RunFolder) -> bytes:
    middles, intervals = bin_latencies_ms(), list[Interval]()
    for step in sorted(run.steps(), key=lambda step: step.window_start_s):
        counts, payload = run.latency_counts(step.number), run.latency_payload(step.number)
        if step.counts and counts is not None and payload is not None:
            longest = float(middles[counts > 0].max(initial=0.0))
            length_s, title = step.window_end_s - step.window_start_s, f"{step.treatment}@{step.level:g}"
            intervals.append(Interval(title, step.window_start_s, length_s, longest, payload))
    if not intervals:
        raise RunError(
            f"{run.path} has no histogram of latencies", remedy="A run keeps them in latency/; measure the study again."
        )
    return combined_log(intervals).encode()


def _requests(run: RunFolder) -> Iterator[polars.DataFrame]:
    """A table per step of every request that its driver logged, including those before and after the window."""
    rows = 0
    for step in run.steps():
        requests = request_log.from_bytes(run.requests(step.number)) if step.counts else None
        if requests is None or not len(requests):
            continue
        rows += len(requests)
        if rows > MOST_REQUESTS:
            raise RunError(
                f"{run.path} has more than {MOST_REQUESTS:,} requests",
                remedy="docs/run-folder.md tells the format of raw/requests-N.zst: read it step by step.",
            )
        yield _requests_of(step, requests)
    if not rows:
        raise RunError(
            f"{run.path} has no log of requests", remedy="A run keeps them in raw/; measure the study again."
        )


def _requests_of(step: Step, requests: request_log.Requests) -> polars.DataFrame:
    known = dict(enumerate(operation.name for operation in step.operations))
    numbers, positions = np.unique(requests.operation, return_inverse=True)
    names = polars.Series([known.get(int(number), str(number)) for number in numbers], dtype=polars.String)
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


@dataclass(frozen=True, slots=True)
class ExportFormat(Generic[Source]):
    """suffix: of its files. what: its content. read_by: the program that reads it. binary: not text."""

    name: str
    suffix: str
    what: str
    read_by: str
    make: Callable[[Source], bytes]
    binary: bool = False


@dataclass(frozen=True, slots=True)
class OfFolders:
    """The formats of folders that are no runs, of an extension. is_one: if a path is such a folder. of: appended to "is
    not a format"."""

    is_one: Callable[[Path], bool]
    formats: tuple[ExportFormat[Path], ...]
    of: str


def of_folders() -> tuple[OfFolders, ...]:
    """Those that are installed and can be used."""
    return tuple(usable(EXPORTS_GROUP, lambda found: isinstance(found, OfFolders)))


def both(
    name: str, what: str, make: Callable[[Source], Iterable[polars.DataFrame]]
) -> tuple[ExportFormat[Source], ExportFormat[Source]]:
    """The CSV and the Parquet format of the same tables."""
    return (
        ExportFormat(
            f"{name}.csv", ".csv", what, "spreadsheets", lambda source: tables.csv_bytes([*make(source)])
        ),
        ExportFormat(
            f"{name}.parquet", ".parquet", what, "data frames", lambda source: tables.parquet_bytes([*make(source)]),
            binary=True,
        ),
    )  # fmt: skip


FORMATS: tuple[ExportFormat[RunFolder], ...] = (
    ExportFormat(
        "openmetrics",
        ".prom",
        "curve, limits, findings and gain",
        "Prometheus",
        lambda run: openmetrics.of_runs([conclude(run)]).encode(),
    ),
    ExportFormat(
        "bencher",
        ".json",
        "throughput and latency at each load",
        "Bencher",
        lambda run: (write_json(tables.bencher_json(conclude(run)), indent=2) + "\n").encode(),
    ),
    ExportFormat("hdrhistogram", ".hlog", "the latencies of each step", "HdrHistogram", _hdrhistogram),
    ExportFormat("speedscope", ".speedscope.json", "the sampled stacks", "speedscope", speedscope),
    *both("curve", "throughput and latency at each load, with intervals", _of_case(tables.curve_table)),
    *both("steps", "every step with its metrics", _of_case(tables.steps_table)),
    *both("limits", "every limit with its use and the load at which it runs out", _of_case(tables.limits_table)),
    *both("requests", "every request", _requests),
)
"""The formats of `loadframe export`."""


def exports() -> tuple[ExportFormat[RunFolder], ...]:
    return FORMATS


def export(run: RunFolder, name: str) -> bytes:
    """A run in a format. UsageError where there is no such format, RunError where the run has no data for it."""
    return exported(FORMATS, run, run.path, name)


def exported(formats: Iterable[ExportFormat[Source]], source: Source, path: Path, name: str, of: str = "") -> bytes:
    """What is at this path in a format. of: appended to "is not a format". UsageError, RunError."""
    known = {export_format.name: export_format for export_format in formats}
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(f"--format {words(name)!r} is not a format{of}", remedy=f"{hint}One of {', '.join(known)}.")
    with in_words(f"{path} cannot be exported", RunError, polars.exceptions.PolarsError, room_bytes=ROOM_BYTES):
        return known[name].make(source)
