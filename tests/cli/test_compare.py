"""`loadframe compare`: samples, runs and alternatives; decisions, exit codes, and what is said of them."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest
from typer.testing import CliRunner, Result

from loadframe.cli.main import app
from loadframe.experiments import writing

Command = Callable[..., object]
RECORDED = Path(__file__).parents[1] / "data/runs/job-queue"

ALTERNATIVES = """
[[alternative]]
name = "wal"
target = { settings = { journal_mode = "wal", synchronous = "OFF" } }
[[alternative]]
name = "the-same"
"""


@pytest.fixture
def sample(tmp_path: Path) -> Callable[..., str]:
    """A CSV file of noisy values around a level; with blocks, they drift from block to block."""

    def make(name: str, level: float, *, count: int = 40, blocks: bool = False) -> str:
        chance = random.Random(name)
        values = [level * chance.gauss(1, 0.02) for _ in range(count)]
        rows = [f"{i},{value * (1 + i / 100)}" for i, value in enumerate(values)] if blocks else map(str, values)
        (tmp_path / name).write_text("\n".join(["block,value" if blocks else "value", *rows]) + "\n")
        return name

    return make


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`loadframe ARGUMENTS` in this process: samples need nothing that a process of its own would prove."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Result:
        done = CliRunner().invoke(app, arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return run


def document(done: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def two_runs(tmp_path: Path) -> list[str]:
    """A run that was recorded, and what it would be if each step had served a tenth more."""
    first, second = "before", "after"
    for name in (first, second):
        shutil.copytree(RECORDED, tmp_path / name)
    lines = [json.loads(line) for line in (tmp_path / second / "steps.jsonl").read_text().splitlines()]
    more = [json.dumps({**line, "throughput": 1.1 * line["throughput"]}) for line in lines]
    (tmp_path / second / "steps.jsonl").write_text("\n".join(more) + "\n")
    return [first, second]


def test_csv_samples_get_a_verdict(here: Callable[..., Result], sample: Callable[..., str]) -> None:
    found = document(here("compare", sample("a.csv", 100), sample("b.csv", 90), "--json"))
    assert found["schema"] == "loadframe.verdict/1"
    assert found["decision"] == "worse"
    assert found["low"] < 0.9 < found["high"]
    assert found.keys() >= {"ratio", "blocks", "method", "notes", "margin"}
    text = here("compare", "a.csv", sample("c.csv", 100)).stdout
    assert "c.csv against a.csv: no proven difference." in text


@pytest.mark.parametrize(
    ("level", "allowed", "code", "words"),
    [
        (90, "3%", 3, "proven to be worse"),
        (90, "20 %", 0, "proven not to be worse"),
        (97, "3%", 4, "do not show whether"),
        (110, "0%", 0, "proven not to be worse"),
    ],
)
def test_it_fails_where_more_than_allowed_is_proven_to_be_lost(
    here: Callable[..., Result], sample: Callable[..., str], level: float, allowed: str, code: int, words: str
) -> None:
    done = here("compare", sample("a.csv", 100), sample("b.csv", level), "--fail-if-worse", allowed)
    assert (done.exit_code, words in done.stdout) == (code, True), done.stdout


def test_what_it_would_take_is_said_where_the_data_cannot_tell(
    here: Callable[..., Result], sample: Callable[..., str]
) -> None:
    apart = here("compare", sample("a.csv", 100), sample("b.csv", 97))
    assert (apart.exit_code, "No number of values would tell" in apart.stdout) == (0, True), apart.stdout
    assert "Two sessions of this machine differ by up to 5.0 % (a prior" in apart.stdout
    blocks = sample("c.csv", 100, count=5, blocks=True), sample("d.csv", 97, count=5, blocks=True)
    few = here("compare", *blocks, "--fail-if-worse", "2%", "--json")
    assert few.exit_code == 4
    assert document(few)["needed"]["what"] == "blocks"
    assert document(few)["needed"]["count"] > 5


def test_equal_sessions_in_a_file_tell_what_sessions_differ_by(
    here: Callable[..., Result], sample: Callable[..., str], tmp_path: Path
) -> None:
    chance = random.Random(3)
    rows = [f"night-{night},{100 * chance.gauss(1, 0.005)}" for night in range(12) for _ in range(10)]
    (tmp_path / "nights.csv").write_text("\n".join(["session,value", *rows]) + "\n")
    found = document(here("compare", "nights.csv", sample("b.csv", 96), "--json"))
    assert (found["decision"], found["sessions"]["learnt_from"]) == ("worse", 12)
    (tmp_path / "one.csv").write_text("\n".join(["value", *(row.split(",")[1] for row in rows)]) + "\n")
    alone = document(here("compare", "one.csv", "b.csv", "--json"))
    assert (alone["decision"], alone["sessions"]["learnt_from"]) == ("no-proven-difference", 0)


def test_few_exact_values_are_enough(here: Callable[..., Result], tmp_path: Path) -> None:
    chance = random.Random(7)
    for name, level in (("a.csv", 100), ("b.csv", 80)):
        rows = [str(level + chance.gauss(0, 0.5)) for _ in range(30)]
        (tmp_path / name).write_text("\n".join(["value", *rows]) + "\n")
    done = here("compare", "a.csv", "b.csv", "--fail-if-worse", "3%")
    assert (done.exit_code, done.stdout.startswith("b.csv against a.csv: worse.")) == (3, True), done.stdout


def test_of_times_the_lower_are_better(here: Callable[..., Result], sample: Callable[..., str]) -> None:
    arguments = ["compare", sample("a.csv", 100), sample("b.csv", 110), "--lower-is-better", "--fail-if-worse", "3%"]
    done = here(*arguments, "--json")
    assert done.exit_code == 3
    assert (document(done)["decision"], document(done)["lower_is_better"]) == ("worse", True)
    assert document(done)["margin"] == {"allowed": 0.03, "answer": "proven-worse"}
    assert here("compare", "b.csv", "a.csv", *arguments[3:]).exit_code == 0


def test_blocks_are_compared_within(here: Callable[..., Result], sample: Callable[..., str]) -> None:
    names = [sample("a.csv", 100, count=12, blocks=True), sample("b.csv", 110, count=13, blocks=True)]
    plain = document(here("compare", *names, "--json"))
    assert (plain["blocks"], plain["decision"]) == (12, "better")
    assert "left out" in plain["notes"][0]


@pytest.fixture
def latencies(tmp_path: Path) -> list[str]:
    """What most requests take fell a little; the mean rose by 17 %, and p99 from 10 to 60 ms."""
    chance = random.Random(5)
    for name, usual, slow, share in (("a.csv", 10.0, 10.6, 0.02), ("b.csv", 9.5, 60.0, 0.045)):
        values = [(slow if chance.random() < share else usual) * chance.gauss(1, 0.02) for _ in range(4000)]
        (tmp_path / name).write_text("\n".join(["value", *map(str, values)]) + "\n")
    return ["compare", "a.csv", "b.csv", "--lower-is-better"]


def test_the_mean_decides_for_times_and_a_worse_tail_is_told(here: Callable[..., Result], latencies: list[str]) -> None:
    done = here(*latencies, "--fail-if-worse", "5%", "--json")
    found = document(done)
    assert done.exit_code == 3
    assert (found["decision"], found["by"]) == ("worse", "mean")
    assert found["low"] < 1.17 < found["high"]
    rows = {row["name"]: row for row in found["quantities"]}
    assert rows.keys() == {"p50", "p99", "p99.9", "max"}
    assert [rows[name]["verdict"] and rows[name]["verdict"]["decision"] for name in ("p50", "p99")] == [
        "better",
        "worse",
    ]
    assert rows["p99.9"]["verdict"] is None and "10000" in rows["p99.9"]["because"]
    text = here(*latencies).stdout
    assert "times the mean of the values" in text
    assert "  p99: worse, 5." in text


def test_the_user_may_name_another_quantity(here: Callable[..., Result], latencies: list[str]) -> None:
    assert document(here(*latencies, "--by", "p50", "--json"))["decision"] == "better"
    assert document(here(*latencies, "--by", "p99", "--json"))["decision"] == "worse"
    few = here(*latencies, "--by", "p99.9")
    assert (few.exit_code, "10000 of each side" in few.stderr) == (1, True)
    assert "not a statistic" in here(*latencies, "--by", "p98").stderr


@pytest.mark.parametrize("in_turns", [True, False])
def test_a_few_per_cent_are_told_only_where_values_were_taken_in_turns(
    here: Callable[..., Result], tmp_path: Path, in_turns: bool
) -> None:
    chance = random.Random(6)
    for side, (name, level) in enumerate((("a.csv", 100), ("b.csv", 104))):
        times = [2 * i + side if in_turns else 100 * side + i for i in range(10)]
        rows = [f"{time},{level * chance.gauss(1, 0.01)}" for time in times]
        (tmp_path / name).write_text("\n".join(["time,value", *rows]) + "\n")
    found = document(here("compare", "a.csv", "b.csv", "--json"))
    assert found["decision"] == ("better" if in_turns else "no-proven-difference")
    assert any("not taken in turns" in note for note in found["notes"]) is not in_turns


@pytest.mark.long
def test_one_side_from_standard_input(sample: Callable[..., str], tmp_path: Path) -> None:
    sample("a.csv", 100)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("loadframe")), "compare", "a.csv", "-"],
        input=(tmp_path / sample("b.csv", 90)).read_text(),
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("standard input against a.csv: worse.")


@pytest.mark.long
def test_two_runs(loadframe: Command, two_runs: list[str], tmp_path: Path) -> None:
    found = loadframe("compare", *two_runs, "--json").json  # type: ignore[attr-defined]
    assert found["schema"] == "loadframe.verdict/1"
    assert found["levels"] == [1, 2], "near capacity"
    assert [row["load"] for row in found["level_ratios"]] == [1, 2, 4]
    assert [row["ratio"] for row in found["level_ratios"]] == pytest.approx([1.1, 1.1, 1.1])
    assert any("one after the other" in note for note in found["notes"])
    host = tmp_path / two_runs[1] / "host.json"
    host.write_text(host.read_text().replace('"cpus":', '"cpus":1'))
    text = loadframe("compare", *two_runs).out  # type: ignore[attr-defined]
    assert "machines differ in cpus" in " ".join(text.split())


@pytest.mark.long
def test_what_nobody_has_looked_at_is_said_of_alternatives_too(
    here: Callable[..., Result], study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "unseen", lambda *_: ("Of an answer no more than its status was checked.",))
    study.write_text(study.read_text() + ALTERNATIVES)
    done = here("compare", "study.toml", "--set", "measure.budget=2s", "--set", "load.levels=[2]", "--json")
    assert done.exit_code == 0, done.stderr
    for found in json.loads(done.stdout)["comparisons"]:
        assert "Of an answer no more than its status was checked." in found["notes"]


@pytest.mark.long
def test_the_alternatives_of_a_study(loadframe: Command, study: Path, tmp_path: Path) -> None:
    study.write_text(study.read_text() + ALTERNATIVES)
    overrides = ["--set", "load.levels=[2]"]
    found = loadframe("compare", str(study), "--json", *overrides).json  # type: ignore[attr-defined]
    assert found["schema"] == "loadframe.comparison/1"
    first, second = found["comparisons"]
    assert (first["after"], second["after"]) == ("wal", "the-same")
    assert first["ratio"] > 1
    run = tmp_path / first["run"]
    assert first["run"] == second["run"]
    assert "recorder used" in " ".join(first["notes"]), "what measuring cost is said with every answer"
    for name in ("steps.jsonl", "verdicts.json", "metrics.parquet", "study.toml"):
        assert (run / name).stat().st_size > 0
    ticks = polars.read_parquet(run / "metrics.parquet").filter(polars.col("at_s").is_not_null())
    assert {"system.cpu.utilization", "target.cpu.cores"} <= set(ticks["metric"])
    assert any(name.startswith("sqlite.") for name in ticks["metric"].unique())
    assert loadframe("study", "check", str(run / "study.toml")).code == 0  # type: ignore[attr-defined]


def test_what_cannot_be_compared_is_refused(
    here: Callable[..., Result], study: Path, sample: Callable[..., str]
) -> None:
    name = sample("a.csv", 100)
    sample("short.csv", 100, count=2)
    for arguments, word in [
        (["compare", str(study)], "no alternative"),
        (["compare", name, "nowhere.csv"], "no file or run folder nowhere.csv"),
        (["compare", name, 300 * "x"], "cannot be read"),
        (["compare", name, str(study)], "`value`"),
        (["compare", name, "short.csv"], "2 values"),
        (["compare", name, "."], "no run folder"),
    ]:
        done = here(*arguments)
        assert (done.exit_code, word in done.stderr) == (1, True), (arguments, done.stderr)
    for arguments, word in [
        ([name], "alone"),
        (["-", "-"], "twice"),
        ([name, name, "--fail-if-worse", "3"], "percentage"),
        ([name, name, "--set", "a.b=1"], "--set"),
        ([name, name, "--by", "p"], "--by"),
        ([str(study), "--lower-is-better"], "CSV"),
    ]:
        done = here("compare", *arguments)
        assert (done.exit_code, word in done.stderr) == (2, True), (arguments, done.stderr)
