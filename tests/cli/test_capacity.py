"""loadframe capacity on SQLite, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
SHAPE = {
    "schema", "axis", "axis_unit", "capacity", "end", "objective", "error_probability", "precision", "trials", "levels",
    "load_seconds", "seconds_above_share", "held_s", "open_loop", "run", "warnings",
}  # fmt: skip


@pytest.mark.long
def test_a_capacity_is_searched_and_its_run_kept(loadframe: Command, study: Path, tmp_path: Path) -> None:
    """Any latency is within an hour: two workers, the most there are, still meet."""
    result = loadframe("capacity", str(study), "--json", "--set", "objective.within.latency_p95_ms=3600000")
    found = result.json
    assert found.keys() >= SHAPE
    assert (found["schema"], found["end"]) == ("loadframe.capacity/1", "above-range")
    assert found["capacity"] == {"load": 2, "low": 2, "high": None}
    assert found["error_probability"] <= 0.05
    assert "concurrency 1 to 2" in result.err and "met" in result.err
    run = tmp_path / found["run"]
    flags = {step["number"]: step["flags"] for step in map(json.loads, (run / "steps.jsonl").read_text().splitlines())}
    trials = [trial["step"] for trial in found["trials"]]
    assert flags.keys() >= {*trials} and len({*trials}) == len(trials)
    assert all(flags[number] for number in flags.keys() - {*trials}), "those that were disturbed are taken again"
    assert (run / "capacity.json").exists() and (run / "metrics.parquet").exists()
    assert loadframe("curve", str(run)).code == 0


@pytest.mark.long
def test_a_level_that_misses_is_told_to_people(loadframe: Command, study: Path) -> None:
    shown = loadframe("capacity", str(study), "--set", "objective.within.latency_p95_ms=0.0001", "--guess", "1..2")
    assert shown.code == 0
    assert "below 1 worker, the lowest level" in shown.out
    assert "Closed loop" in shown.out


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ([], 1, "no objective"),
        (["--set", "objective.within.latency_p95_ms=9", "--set", "load.levels=[3]"], 1, "3 alone"),
        (["--hold", "60"], 2, "'60' is not a duration"),
        (["--guess", "7..3"], 2, "'7..3' is neither a load"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    loadframe: Command, study: Path, more: list[str], code: int, words: str
) -> None:
    refused = loadframe("capacity", str(study), *more)
    assert refused.code == code
    assert words in refused.err
