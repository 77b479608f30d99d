"""`loadframe curve` and `predict` on files of monitoring: answers in the shapes that other tools rely on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import producing
from loadframe.cli.main import app

Command = Callable[..., Result]
RANGE = (
    "range.json", "--load", "jobs_active", "--throughput", 'requests_total{job="api"}', "--response",
    "seconds_sum / seconds_count", "--use", "cpu=cpu_seconds_total / 4",
)  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`loadframe ARGUMENTS` in this process, in a folder with the files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    producing.write(tmp_path)
    (tmp_path / "sar.txt").write_text("Linux 6.1.0-18-amd64 (web1) \t11/25/2025 \t_x86_64_\t(4 CPU)\n")

    def run(*arguments: str) -> Result:
        done = CliRunner().invoke(app, [*arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return run


def found(done: Result, schema: str) -> dict[str, Any]:
    assert done.exit_code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["schema"] == schema
    return document


@pytest.mark.parametrize("arguments", [("production.csv",), RANGE])
def test_a_day_far_from_the_limit_has_a_demand_and_no_knee(here: Command, arguments: tuple[str, ...]) -> None:
    curve = found(here("curve", *arguments, "--json"), "loadframe.curve/1")
    assert curve["knee"] is None and curve["shape"] == "linear"
    assert not curve["observed"]["came_near"] and curve["observed"]["rows"] == producing.ROWS
    cpu = next(one for one in curve["observed"]["demands"] if one["resource"] == "cpu")
    assert cpu["low_s"] <= 0.98 / producing.CAPACITY <= cpu["high_s"]
    assert cpu["full_at"]["low"] <= producing.CAPACITY <= cpu["full_at"]["high"]
    said = " ".join(here("curve", *arguments).stdout.split())
    assert "never came near a limit" in said and "cpu would be full first" in said


def test_without_throughput_and_response_no_bend_is_denied(here: Command, tmp_path: Path) -> None:
    file = tmp_path / "uses.csv"
    rows = "".join(f"{1764000000 + 600 * at},{20 + at % 41},0.{3 + at % 2}\n" for at in range(300))
    file.write_text(f"time,jobs,util.cpu\n{rows}", encoding="utf-8")
    said = " ".join(here("curve", str(file), "--load", "jobs").stdout.split())
    assert "is not known: there is neither a throughput nor a response" in said and "no bend" not in said


def test_a_reset_of_a_counter_is_told(here: Command) -> None:
    assert "was reset 1 time." in here("curve", *RANGE).stdout


def test_another_file_is_joined_by_its_times(here: Command) -> None:
    arguments = ("production.csv", "--also", "sa24.txt", "--use", 'machine=busy{cpu="all"} / 100', "--json")
    demands = found(here("curve", *arguments), "loadframe.curve/1")["observed"]["demands"]
    assert {one["resource"] for one in demands} == {"cpu", "disk", "machine"}


@pytest.mark.long
def test_higher_loads_are_forecast_with_the_same_shape(here: Command) -> None:
    forecast = found(here("predict", "production.csv", "--at", "300", "--json"), "loadframe.forecast/1")
    (point,) = forecast["at"]
    assert point["throughput"]["low"] <= 300 <= point["throughput"]["high"]
    assert any("blocks of time" in note for note in forecast["notes"])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("curve", "range.json"), 1, "the load is not known"),
        (("curve", "production.csv", "--use", "cpu"), 2, "has no name"),
        (("curve", "production.csv", "--use", "cpu=a", "--use", "cpu=b"), 2, "names the same again"),
        (("curve", "production.csv", "--response-is", "max"), 2, "mean or p95"),
        (("curve", "production.csv", "--within-latency-p95-ms", "50"), 1, "no p95 latency"),
        (("curve", "production.csv", "--load", "jobs"), 1, "matches no series"),
        (("curve", ".", "--load", "jobs"), 2, "is a folder"),
        (("curve", "sar.txt"), 1, "what sar prints"),
    ],
)
def test_what_is_not_clear_is_refused(here: Command, arguments: tuple[str, ...], code: int, words: str) -> None:
    done = here(*arguments)
    assert done.exit_code == code and words in done.stderr, done.stderr


@pytest.mark.long
def test_without_a_throughput_there_is_no_forecast_and_the_reason(here: Command) -> None:
    answer = found(here("predict", *RANGE[:3], *RANGE[5:], "--json"), "loadframe.forecast/1")
    assert "No throughput was observed" in answer["refused"]
