"""A run in the formats of other tools: the reader of each finds the values of the run, whatever its names are."""

from __future__ import annotations

import csv
import io
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

import loadframe
from loadframe.errors import RunError, UsageError
from loadframe.model import OperationSummary, Step
from loadframe.runs.folder import RunFolder, Treatment
from loadframe.workloads import request_log
from loadframe_live.exporting import FORMATS, export

RECORDED = Path(__file__).parents[3] / "tests/data/runs"
HOSTILE = 'a,"b"\n=1+1 ::error::<x> \\ é\u2028\x1b[2J'


@pytest.fixture(scope="module")
def recorded() -> RunFolder:
    return RunFolder.open(RECORDED / "investigation")


@pytest.fixture
def logged(tmp_path: Path) -> RunFolder:
    """A recorded run with two more steps, which have their requests and histograms."""
    shutil.copytree(RECORDED / "job-queue", tmp_path / "job-queue")
    for folder in ("raw", "latency"):
        (tmp_path / "job-queue" / folder).mkdir(exist_ok=True)
    run = RunFolder.open(tmp_path / "job-queue")
    first = run.steps()[0]
    for number in (901, 902):
        start_s = first.window_end_s + number
        latencies = np.array([1.5, 2.5, 40.0], dtype=np.float32) * (number - 900)
        log = b"".join(
            request_log.RECORD.pack(start_s, latency, 0.25, at % 2, at // 2) for at, latency in enumerate(latencies)
        )
        run.add_step(_step(first, number, start_s), log, latencies)
    return run


def _step(like: Step, number: int, start_s: float) -> Step:
    operations = (OperationSummary(HOSTILE, 2, 0, 1.0, 1.0),)
    times = {"started_s": start_s - 1, "window_start_s": start_s, "window_end_s": start_s + 1, "ended_s": start_s + 1}
    return replace(like, number=number, operations=operations, **times)


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


# --- each format, by its reader ---


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Metric(Strict):
    """A metric of the Bencher Metric Format: https://bencher.dev/bmf.json."""

    value: float
    lower_value: float | None = None
    upper_value: float | None = None


def test_bencher_reads_the_curve_with_its_interval(recorded: RunFolder) -> None:
    found = TypeAdapter(dict[str, dict[str, Metric]]).validate_json(export(recorded, "bencher"))
    run = loadframe.conclude(recorded)
    points = [(name, point) for name, state in run.states.items() for point in state.curve.points]
    assert len(found) == len(points)
    for name, point in points:
        measures = found[f"{run.study.name}/{name}/{run.study.axis}={point.load:g}"]
        told = measures["throughput"]
        assert (told.value, told.lower_value, told.upper_value) == (
            point.throughput,
            point.throughput_low,
            point.throughput_high,
        )
        p95_ms = measures.get("latency-p95-ms")
        assert (p95_ms and p95_ms.value) == point.latency_p95_ms


def test_the_log_of_latencies_is_read_by_hdrhistogram(logged: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "run.hlog").write_bytes(export(logged, "hdrhistogram"))
    reader = HistogramLogReader(str(tmp_path / "run.hlog"), HdrHistogram(1, 3_600_000_000, 3))
    found = []
    while (one := reader.get_next_interval_histogram()) is not None:
        found.append(one)
    reader.close()
    level = f"{logged.steps()[0].level:g}"
    assert [one.get_tag() for one in found] == [f"A@{level}", f"A@{level}"]
    assert [one.get_total_count() for one in found] == [3, 3]
    assert found[0].get_max_value() == pytest.approx(40_000, rel=0.001)
    assert found[1].get_value_at_percentile(30) == pytest.approx(3_000, rel=0.001)
    assert found[1].get_start_time_stamp() - found[0].get_start_time_stamp() == pytest.approx(1000)


@pytest.mark.parametrize("name", ["curve", "steps", "limits"])
def test_csv_and_parquet_hold_the_same(recorded: RunFolder, name: str) -> None:
    table = polars.read_parquet(io.BytesIO(export(recorded, f"{name}.parquet")))
    assert len(table) > 0
    again = rows(export(recorded, f"{name}.csv"))
    assert list(again[0]) == table.columns
    for row, line in zip(table.to_dicts(), again, strict=True):
        for column, value in row.items():
            if isinstance(value, float) and value == value:
                assert float(line[column]) == value, column
            elif isinstance(value, str):
                assert line[column] == value


def test_the_table_of_the_curve_is_the_curve(recorded: RunFolder) -> None:
    points = [point for state in loadframe.conclude(recorded).states.values() for point in state.curve.points]
    table = polars.read_parquet(io.BytesIO(export(recorded, "curve.parquet")))
    for column in ("load", "throughput", "throughput_low", "throughput_high", "latency_p95_ms"):
        assert table[column].to_list() == [getattr(point, column) for point in points]


def test_the_table_of_steps_has_a_column_for_each_metric(recorded: RunFolder) -> None:
    table = polars.read_parquet(io.BytesIO(export(recorded, "steps.parquet")))
    steps = [step for step in recorded.steps() if step.counts]
    assert table["step"].to_list() == [step.number for step in steps]
    for name in {name for step in steps for name in step.metrics}:
        assert table[name].to_list() == [step.metrics.get(name) for step in steps]


def test_requests_are_told_one_by_one(logged: RunFolder) -> None:
    table = polars.read_parquet(io.BytesIO(export(logged, "requests.parquet")))
    assert table["step"].to_list() == [901] * 3 + [902] * 3
    assert table["latency_ms"].to_list() == [1.5, 2.5, 40.0, 3.0, 5.0, 80.0]
    assert table["operation"].to_list() == [HOSTILE, "1", HOSTILE] * 2
    assert table["outcome"].to_list() == [0, 0, 1] * 2
    assert [row["operation"] for row in rows(export(logged, "requests.csv"))] == table["operation"].to_list()


class SampledProfile(Strict):
    """Of speedscope's file format: https://www.speedscope.app/file-format-schema.json."""

    type: Literal["sampled"]
    name: str
    unit: Literal["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"]
    startValue: float  # noqa: N815 - its name there
    endValue: float  # noqa: N815
    samples: list[list[int]]
    weights: list[float]


class Frame(Strict):
    name: str


class Shared(Strict):
    frames: list[Frame]


class SpeedscopeFile(Strict):
    schema_: Literal["https://www.speedscope.app/file-format-schema.json"] = Field(alias="$schema")
    name: str
    exporter: str
    activeProfileIndex: int  # noqa: N815
    profiles: list[SampledProfile]
    shared: Shared


def test_speedscope_has_every_stack_with_its_count(recorded: RunFolder) -> None:
    document = SpeedscopeFile.model_validate_json(export(recorded, "speedscope"))
    sources = [source for step in recorded.profiled() for source in step.sources]
    assert len(document.profiles) == len(sources) > 0
    names = [frame.name for frame in document.shared.frames]
    told = {
        (";".join(names[at] for at in stack), round(weight / profile.weights[0], 6))
        for profile in document.profiles
        for stack, weight in zip(profile.samples, profile.weights, strict=True)
    }
    for source in sources:
        lines = [line.rpartition(" ") for line in recorded.stacks_text(source.file).splitlines()]
        for stack, _, count in lines:
            assert (stack, round(int(count) / int(lines[0][2]), 6)) in told


# --- what is not there, and what others wrote ---


def test_an_unknown_format_is_told_all_that_there_are(recorded: RunFolder) -> None:
    with pytest.raises(UsageError, match="openmetric' is not a format") as refused:
        export(recorded, "openmetric")
    assert refused.value.remedy.startswith("Did you mean openmetrics?")
    assert all(one.name in refused.value.remedy for one in FORMATS)


@pytest.mark.parametrize("name", ["hdrhistogram", "requests.csv", "requests.parquet"])
def test_what_a_run_does_not_have_is_told(recorded: RunFolder, name: str) -> None:
    with pytest.raises(RunError, match="has no"):
        export(recorded, name)


@pytest.mark.parametrize("form", FORMATS, ids=lambda one: one.name)
def test_every_format_takes_names_of_strangers(logged: RunFolder, form: Any) -> None:
    first = next(iter(logged.treatments().values()))
    logged.append_line("treatments.jsonl", "treatment", Treatment("B", HOSTILE, first.state))
    named = replace(_step(logged.steps()[0], 903, 5e5), treatment="B", metrics={HOSTILE: 1.0}, flags=("errors",))
    logged.add_step(named, request_log.RECORD.pack(5e5, 1.0, 0.0, 0, 0), np.array([1.0], dtype=np.float32))
    shutil.copytree(RECORDED / "investigation/profiles", logged.path / "profiles")
    data = export(logged, form.name)
    assert data
    if not form.binary:
        assert "\x1b" not in data.decode() or form.suffix == ".csv"


@pytest.mark.parametrize("form", FORMATS, ids=lambda one: one.name)
def test_a_run_is_only_read(logged: RunFolder, form: Any) -> None:
    shutil.copytree(RECORDED / "investigation/profiles", logged.path / "profiles")
    (logged.path / "conduct.json").unlink()
    (logged.path / "investigation.json").unlink()  # as if it had been killed
    before = {path: path.read_bytes() for path in logged.path.rglob("*") if path.is_file()}
    export(logged, form.name)
    assert {path: path.read_bytes() for path in logged.path.rglob("*") if path.is_file()} == before


def test_a_damaged_log_of_requests_is_refused(logged: RunFolder) -> None:
    (logged.path / "raw/requests-00901.zst").write_bytes(b"no zstd")
    with pytest.raises(RunError, match="is no log of requests"):
        export(logged, "requests.csv")
