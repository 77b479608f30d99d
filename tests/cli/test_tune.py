"""loadframe tune on SQLite, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loadframe as api
import one_truth

Command = Callable[..., Any]
SHAPE = {
    "schema", "end", "best", "settings", "trials", "expected", "verdict", "levels", "left_out", "findings", "run",
    "report", "seconds", "flags", "objective", "axis", "axis_unit", "target_kind", "file_name", "file_text",
    "resumed_from", "warnings", "failed_proofs",
}  # fmt: skip


@pytest.mark.long
def test_settings_are_searched_and_every_trial_kept(loadframe: Command, study: Path, tmp_path: Path) -> None:
    budget = "measure.budget=80s"  # of which a machine with time needs a tenth
    result = loadframe("tune", str(study), "--json", "--trials", "3", "--set", "load.levels=[1]", "--set", budget)
    found = result.json
    assert found.keys() >= SHAPE
    assert found["schema"] == "loadframe.tuning/1"
    assert len(found["trials"]) == 3 and "trial 3" in result.err
    assert "journal_mode" in {each["name"] for each in found["settings"]}
    assert "durability" in found["left_out"]["synchronous"]
    run = tmp_path / found["run"]
    lines = (run / "trials.jsonl").read_text().splitlines()
    assert {json.loads(line)["number"] for line in lines} == {1, 2, 3}, "one may have a second line"
    assert (run / "tuning.json").exists() and (run / "metrics.parquet").exists()
    again = loadframe("report", found["run"], "--json").json
    assert {**again, "run": "", "report": ""} == {**found, "run": "", "report": ""}
    page = (run / "report.html").read_text()
    assert 'id="chart-trials"' in page and "Search for settings" in page
    if found["end"] == "gained":
        assert (run / found["file_name"]).read_text() == found["file_text"]
    one_truth.check(api.open_run(run))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--set", "tune.settings=['no_such']"], "no setting 'no_such'"),
        (["--set", "tune.settings={synchronous=['OFF']}"], "may give up durability"),
        (["--resume", "nowhere"], "no run folder nowhere"),
        (["--set", "tune.trials=0"], "tune.trials"),
    ],
)
def test_what_cannot_be_tuned_is_refused(loadframe: Command, study: Path, more: list[str], words: str) -> None:
    refused = loadframe("tune", str(study), *more)
    assert refused.code == 1
    assert words in refused.err
