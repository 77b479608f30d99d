"""A watch in the formats of other tools: what is exported is what the day files say."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import polars
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from loadframe.errors import RecordingError, UsageError
from loadframe.reporting.exports import exported
from loadframe_watch.days import lines
from loadframe_watch.exporting import OF_WATCHES, WATCH_FORMATS, is_watch_folder
from watch_farm import Farm, watching

LOADFRAME = str(Path(sys.executable).with_name("loadframe"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A watch of a farm whose unit of work fails, with a gap."""
    found = tmp_path_factory.mktemp("watched")
    farm = Farm(1, 100.0, error='status "503", \x1b[2J')
    with watching(farm, found, 10.0, every_s=20.0) as watcher:
        for _ in range(12):
            watcher.tick()
            farm.clocks.advance(10.0)
        farm.clocks.boot_s += 3600
        farm.clocks.wall_s += 3600
        watcher.tick()
    return found


def export_watch(folder: Path, name: str) -> bytes:
    return exported(WATCH_FORMATS, folder, folder, name, OF_WATCHES.of)


def frame(folder: Path, name: str) -> tuple[polars.DataFrame, polars.DataFrame]:
    """As CSV and as Parquet."""
    text, parquet = export_watch(folder, f"{name}.csv"), export_watch(folder, f"{name}.parquet")
    return polars.read_csv(io.BytesIO(text), infer_schema_length=None), polars.read_parquet(io.BytesIO(parquet))


def test_samples_have_every_value_of_the_day_files(folder: Path) -> None:
    text, parquet = frame(folder, "samples")
    assert text.columns == parquet.columns and len(text) == len(parquet)
    said = list(lines(folder, kinds=("sample", "unit")))
    assert parquet["n"].to_list() == [line.n for line in said]
    for row, line in zip(parquet.iter_rows(named=True), said, strict=True):
        assert row["kind"] == line.kind and row["load"] == line.data.get("load")
        assert row["response_s"] == line.data.get("response_s") and row["error"] == line.data.get("error")
        for name, value in line.data.get("values", {}).items():
            assert row[name] == value
        for name, value in line.data.get("use", {}).items():
            assert row[f"use.{name}"] == value


def test_alarms_and_gaps(folder: Path) -> None:
    alarms, _ = frame(folder, "alarms")
    assert alarms["alarm"].to_list() == ["unit-fails"] and "The last one: status" in alarms["evidence"][0]
    gaps, parquet = frame(folder, "gaps")
    assert gaps["reason"].to_list() == ["suspended"] and parquet["seconds"].to_list() == [3610.0]


def test_openmetrics_is_read_by_the_parser_of_prometheus(folder: Path) -> None:
    families = {one.name: one for one in text_string_to_metric_families(export_watch(folder, "openmetrics").decode())}
    assert families["loadframe_watch_unit_failed"].samples[0].value == 1
    assert {one.labels["watch"] for family in families.values() for one in family.samples} == {folder.name}


@pytest.mark.long
def test_the_command_takes_the_folder_of_a_watch_like_that_of_a_run(folder: Path, tmp_path: Path) -> None:
    to = tmp_path / "gaps.csv"
    words = [LOADFRAME, "export", str(folder), "--format", "gaps.csv", "--to", str(to), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] == to.stat().st_size
    assert to.read_bytes() == export_watch(folder, "gaps.csv")
    assert not is_watch_folder(tmp_path) and is_watch_folder(folder)


def test_what_cannot_be_exported_is_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a format of a watch") as refused:
        export_watch(folder, "sample.csv")
    assert "samples.csv" in str(refused.value.remedy)
    (tmp_path / "2026-11-25.jsonl").write_text('{"n":1,"kind":"head","at_s":1,"up_s":1,"schema":"loadframe.watch/9"}\n')
    with pytest.raises(RecordingError, match=r"loadframe\.watch/9"):
        export_watch(tmp_path, "samples.csv")


@pytest.mark.parametrize("form", [one.name for one in WATCH_FORMATS])
def test_lines_of_another_form_are_left_out_and_nothing_falls_over(tmp_path: Path, form: str) -> None:
    hostile = [
        {"kind": "sample", "values": [1], "use": 7, "load": "x"},
        {"kind": "sample", "values": {"a": True, "b": None, "c": "1", "n": 3}, "use": {"u": {}}, "load": 1e300},
        {"kind": "unit", "response_s": [], "error": 7, "late": "soon"},
        {"kind": "alarm", "alarm": 3, "evidence": "no", "try": {}, "at_load": [1], "ends_s": {"value": "x"}},
        {"kind": "gap", "seconds": "long", "reason": None},
        {"kind": "model", "limits": [7, {"id": 3}], "leaks": {}},
        {"kind": "cost", "cpu_s": "1"},
    ]
    with (tmp_path / "2026-11-25.jsonl").open("w") as stream:
        for n, one in enumerate(hostile, 1):
            stream.write(json.dumps({"n": n, "at_s": 1764000000.0 + n, "up_s": 1.0, **one}) + "\n")
        stream.write("\x00\xff not a line\n{")
    assert export_watch(tmp_path, form)
