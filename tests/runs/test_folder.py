"""A run folder loses nothing that was finished, reads back what it wrote, and refuses what it does not know."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path

import numpy as np
import polars
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadframe.errors import RunError
from loadframe.model import (
    Curve,
    CurvePoint,
    Estimate,
    Forecast,
    ForecastCapacity,
    Latency,
    Limit,
    LoadInterval,
    OperationSummary,
    Peak,
    Reached,
    Round,
    Step,
    TargetState,
)
from loadframe.runs.folder import Effective, RunFolder, Treatment
from loadframe.runs.lines import read_host
from loadframe.system import files
from loadframe.workloads import request_log


def a_step(number: int) -> Step:
    return Step(
        number=number,
        round=1,
        block=2,
        treatment="A",
        level=4.0,
        started_s=100.0,
        ended_s=101.5,
        window_start_s=100.25,
        window_end_s=101.5,
        requests=1000,
        errors=1,
        throughput=800.0,
        batches=(790.0, 810.0),
        latency=Latency(1.0, 0.9, 2.0, 3.0, 40.0),
        waiting_share=0.25,
        operations=(OperationSummary("submit", 1000, 1, 1.0, 2.0),),
        metrics={"system.cpu.utilization": 0.5},
        flags=("errors",),
    )


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs", "farm")


def add(run: RunFolder, number: int) -> Step:
    step = a_step(number)
    run.add_step(step, request_log.RECORD.pack(101.0, 1.5, 0.5, 0, 0), np.array([1.5], dtype=np.float32))
    return step


def test_steps_read_back_as_they_were(run: RunFolder) -> None:
    steps = [add(run, 1), add(run, 2)]
    assert RunFolder.open(run.path).steps() == steps


def test_a_step_has_its_raw_requests_and_its_histogram(run: RunFolder) -> None:
    import zstandard
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader

    add(run, 7)
    packed = (run.path / "raw" / "requests-00007.zst").read_bytes()
    requests = request_log.from_bytes(zstandard.ZstdDecompressor().decompress(packed))
    assert requests.latency_ms.tolist() == [1.5]
    whole = HdrHistogram(1, 3_600_000_000, 3)
    log = HistogramLogReader(str(run.path / "latency" / "step-00007.hlog"), whole)
    histogram = log.get_next_interval_histogram()
    log.close()
    assert histogram.get_total_count() == 1
    assert histogram.get_max_value() == pytest.approx(1500, rel=0.001)


def test_a_torn_last_line_costs_only_the_step_in_progress(run: RunFolder) -> None:
    first = add(run, 1)
    add(run, 2)
    path = run.path / "steps.jsonl"
    whole = path.read_bytes()
    first_line_end = whole.index(b"\n") + 1
    for cut in (first_line_end, first_line_end + 1, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert run.steps() == [first]


def test_every_line_and_document_carries_its_schema(run: RunFolder) -> None:
    add(run, 1)
    run.write_record("host.json", "host", read_host())
    run.append_line("treatments.jsonl", "treatment", Treatment("A", "as given", TargetState({"x": 1})))
    for path in (
        run.path / "steps.jsonl",
        run.path / "host.json",
        run.path / "treatments.jsonl",
        run.path / "run.json",
    ):
        assert json.loads(path.read_text().splitlines()[0])["schema"].startswith("loadframe.")
    assert run.host().cpus >= 1
    assert run.treatments()["A"].state.settings == {"x": 1}


def test_a_forecast_without_an_upper_end_reads_back_as_it_was(run: RunFolder) -> None:
    assert run.forecast() is None
    beyond = ForecastCapacity(Estimate(90, 80, math.inf), Estimate(8, 6, math.inf), "loader.cpu")
    found = Forecast("x", "pipelines", "closed", (1, 2), capacity=beyond, reached=Reached(8, 80, "loader.cpu", 0.9))
    run.write_record("forecast.json", "forecast-record", found)
    assert run.forecast() == found
    assert "Infinity" not in (run.path / "forecast.json").read_text()


def test_a_newer_version_and_another_kind_are_refused(run: RunFolder) -> None:
    add(run, 1)
    path = run.path / "steps.jsonl"
    text = path.read_text()
    path.write_text(text.replace("loadframe.step/4", "loadframe.step/99"))
    with pytest.raises(RunError, match="newer Loadframe"):
        run.steps()
    path.write_text(text.replace("loadframe.step/4", "somebody.else/1"))
    with pytest.raises(RunError, match=r"schema 'somebody\.else/1'"):
        run.steps()


def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "write", write)


@pytest.mark.parametrize(("in_flight", "flags"), [(1.6, ["errors", "out-of-balance"]), (0.9, ["errors"])])
def test_latencies_that_a_step_of_an_older_version_refutes_are_none(
    run: RunFolder, in_flight: float, flags: list[str]
) -> None:
    """800/s of 1 ms each are 0.8 in flight."""
    add(run, 1)
    path = run.path / "steps.jsonl"
    line = {
        **json.loads(path.read_text()),
        "schema": "loadframe.step/3",
        "metrics": {"workload.concurrency": in_flight},
    }
    path.write_text(json.dumps(line) + "\n")
    (step,) = RunFolder(run.path).steps()
    assert list(step.flags) == flags and step.latency_known == (flags == ["errors"])


def test_a_full_disk_is_a_clear_error_and_earlier_steps_stay(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    first = add(run, 1)
    requests = run.path / "raw" / "requests-00002.zst"
    fill_the_disk(monkeypatch)
    with pytest.raises(RunError, match="No space left on device") as caught:
        add(run, 2)
    assert str(requests) in caught.value.fact
    assert "--runs" in caught.value.remedy
    monkeypatch.undo()
    assert run.steps() == [first]
    assert [path.name for path in requests.parent.iterdir()] == ["requests-00001.zst"], "no half of a file stays"


def test_a_disk_that_is_full_for_the_tables_is_a_clear_error_too(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written by polars the words would be "transport error"."""
    step = add(run, 1)
    fill_the_disk(monkeypatch)
    with pytest.raises(RunError, match=r"metrics\.parquet cannot be written: No space left"):
        run.write_tables([step], [])


def test_rounds_and_effective_values_are_kept_as_they_come(run: RunFolder) -> None:
    assert (run.rounds(), run.effective()) == ([], {})
    points = (CurvePoint(4.0, 10.0, 9.0, 11.0, 1.0),)
    curve = Curve("active_jobs", "A", points, "plateau", Peak(4.0, 10.0), None, None, None, None)
    one = Round(1, "A", TargetState({"table_open_cache": 64}), {"table_open_cache": 64}, curve, (), (), (), ())
    run.save_rounds([one])
    run.append_line("effective.jsonl", "effective", Effective("A", {"table_open_cache": 64}))
    again = RunFolder.open(run.path)
    assert again.rounds() == [one]
    assert again.effective() == {"A": {"table_open_cache": 64}}


def test_what_is_no_run_folder_is_named(tmp_path: Path, run: RunFolder) -> None:
    with pytest.raises(RunError, match="no run folder"):
        RunFolder.open(tmp_path / "none")
    with pytest.raises(RunError, match=r"has no run\.json"):
        RunFolder.open(tmp_path)
    with pytest.raises(RunError, match=r"no study\.json"):
        run.study()
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(RunError, match="cannot be made"):
        RunFolder.create(blocked, "farm")


def test_two_runs_in_one_second_get_two_folders(tmp_path: Path) -> None:
    paths = {RunFolder.create(tmp_path, "farm").path for _ in range(3)}
    assert len(paths) == 3


def test_tables_hold_every_metric_and_limit(run: RunFolder) -> None:
    limit = Limit("x", "server", 64, None, 64, 60, 4, False, "", LoadInterval(12, 11, 13))
    run.write_tables([a_step(1), a_step(2)], [(1, limit)])
    metrics = polars.read_parquet(run.path / "metrics.parquet")
    limits = polars.read_parquet(run.path / "limits.parquet")
    assert metrics.height == 2
    assert metrics["metric"].to_list() == ["system.cpu.utilization"] * 2
    assert limits["exhausted_at"].to_list() == [12]


def test_the_table_has_every_tick_with_the_step_it_belongs_to(run: RunFolder) -> None:
    step = a_step(1)
    times = [step.window_start_s - 1, step.window_start_s, step.window_end_s + 1]
    series = polars.DataFrame({"host": "", "at_s": times, "wall_s": times, "metric": "x", "value": [1.0, 2.0, 3.0]})
    run.write_tables([step], [], series=series)
    metrics = polars.read_parquet(run.path / "metrics.parquet").filter(polars.col("metric") == "x")
    assert metrics["at_s"].to_list() == times
    assert metrics["step"].to_list() == [None, 1, None]
    assert metrics["treatment"].to_list() == [None, step.treatment, None]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(garbage=st.binary(max_size=300))
def test_garbage_in_a_journal_is_salvaged_or_refused(run: RunFolder, garbage: bytes) -> None:
    (run.path / "steps.jsonl").write_bytes(garbage)
    try:
        assert run.steps() == []
    except RunError as error:
        assert "steps.jsonl" in error.fact
