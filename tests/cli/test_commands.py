"""Every verb does its job from the command line, for people and with --json for programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., object]


@pytest.mark.long
def test_measure_curve_and_report_on_one_run(loadframe: Command, study: Path, tmp_path: Path) -> None:
    measured = loadframe("measure", str(study), "--json").json  # type: ignore[attr-defined]
    assert measured["schema"] == "loadframe.curve/1"
    assert [point["load"] for point in measured["points"]] == [1, 2]
    run = tmp_path / measured["run"]
    again = loadframe("curve", str(run), "--json").json  # type: ignore[attr-defined]
    assert again["points"] == measured["points"]
    shown = loadframe("curve", str(run)).out  # type: ignore[attr-defined]
    assert "requests/s" in shown
    assert "recorder used" in shown
    assert again["conduct"] == measured["conduct"]
    report = loadframe("report", str(run), "--json").json  # type: ignore[attr-defined]
    assert report["schema"] == "loadframe.investigation/1"
    assert report["outcome"]["kind"] != "interrupted"
    assert not (run / "changes.jsonl").exists()
    assert (run / "report.html").read_text().startswith("<!doctype html>")
    for name in ("study.toml", "study.json", "host.json", "steps.jsonl", "metrics.parquet", "raw/host.lfr"):
        assert (run / name).stat().st_size > 0, name
    rerun = loadframe("study", "check", str(run / "study.toml"))
    assert rerun.code == 0  # type: ignore[attr-defined]


@pytest.mark.measures
def test_investigate_finds_proves_and_writes_the_case_study(loadframe: Command, study: Path, tmp_path: Path) -> None:
    """The small study is durable: the write-ahead log is tried, what gives up durability is only shown."""
    found = loadframe(
        "investigate",
        str(study),
        "--json",
        "--set",
        "measure.blocks={min=3,max=4}",
        "--set",
        "measure.budget=60s",
        "--set",
        "measure.profile=auto",
    ).json  # type: ignore[attr-defined]
    assert found["schema"] == "loadframe.investigation/1"
    changed = [change["setting"] for trial in found["rounds"][0]["tried"] for change in trial["remedy"]["changes"]]
    assert changed == ["journal_mode"]
    assert "synchronous" not in changed
    shown = [one["remedy"]["id"] for round_ in found["rounds"] for one in round_["untried"]]
    if found["rounds"][0]["tried"][0]["kept"]:
        assert "sqlite.synchronous.normal" in shown
    assert "Where the time goes" in Path(tmp_path / found["report"]).read_text()
    assert found["profiles"], found["profile_missing"]
    assert loadframe("report", found["run"], "--speedscope", "stacks.json").code == 0  # type: ignore[attr-defined]
    assert "speedscope" in (tmp_path / "stacks.json").read_text()
    journal = loadframe("changes", "list", "--json").json  # type: ignore[attr-defined]
    phases = {change["phase"] for change in journal["changes"]}
    assert {"intent", "applied"} <= phases
    assert loadframe("changes", "revert").out.startswith("Nothing is changed")  # type: ignore[attr-defined]


@pytest.mark.long
def test_the_case_commands(loadframe: Command) -> None:
    names = {case["name"] for case in loadframe("case", "list", "--json").json["cases"]}  # type: ignore[attr-defined]
    assert {"job-queue", "render-farm"} <= names
    assert "job-queue" in loadframe("case", "list").out  # type: ignore[attr-defined]
    assert "known answer" in loadframe("case", "show", "render-farm").out  # type: ignore[attr-defined]
    shown = loadframe("case", "show", "job-queue", "--json").json  # type: ignore[attr-defined]
    assert shown["studies"]["study"]["target"]["kind"] == "sqlite"


@pytest.mark.long
def test_doctor_names_what_is_there_and_what_is_missing(loadframe: Command) -> None:
    checks = loadframe("doctor", "--json").json["checks"]  # type: ignore[attr-defined]
    whats = {check["what"] for check in checks}
    assert "profiles" in {check["part"] for check in checks}
    assert {"SQLite", "mariadbd", "sysbench", "pressure stall information"} <= whats
    without = loadframe("doctor", PATH="/nonexistent").out  # type: ignore[attr-defined]
    assert "MISSING" in without
    assert "sysbench" in without


def test_study_schema_and_check(loadframe: Command, study: Path) -> None:
    schema = loadframe("study", "schema", "--json").json["json_schema"]  # type: ignore[attr-defined]
    assert set(schema["required"]) >= {"study", "target", "workload", "load"}
    checked = loadframe("study", "check", str(study), "--set", "load.levels=[3]", "--json").json  # type: ignore[attr-defined]
    assert checked["load"]["levels"] == [3]


def test_a_check_finds_what_only_the_target_and_the_workload_know(loadframe: Command, study: Path) -> None:
    for override in ("target.settings.journal_mode=wall", "load.levels=[1000000]"):
        assert loadframe("study", "check", str(study), "--set", override).code == 1  # type: ignore[attr-defined]


def test_changes_without_any_run(loadframe: Command) -> None:
    assert loadframe("changes", "list").out == "No run has changed anything.\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["case", "run", "--help"]])
def test_help(loadframe: Command, arguments: list[str]) -> None:
    assert loadframe(*arguments).code == 0  # type: ignore[attr-defined]
