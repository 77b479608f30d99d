"""`loadframe predict`: forecasts from CSV and runs, scores, calibration, refusals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from loadframe.analysis import queueing
from loadframe.cli.main import app

Command = Callable[..., Result]


@pytest.fixture(autouse=True)
def _fresh_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scores of this test only."""
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    yield


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`loadframe predict ARGUMENTS` in this process."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | None = None) -> Result:
        done = CliRunner().invoke(app, ["predict", *arguments], input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return run


@pytest.fixture
def points(tmp_path: Path) -> str:
    """A disk of 8 ms and 200 ms of think time: saturated by 26 clients, at 125 requests per second."""
    found = queueing.throughputs([0.008], 60, 0.2)
    rows = [f"{n},{found[n]},{0.008 * found[n]}" for n in (1, 2, 4, 6, 8, 12, 24, 48)]
    (tmp_path / "points.csv").write_text("\n".join(["load,throughput,util.disk", *rows]))
    return "points.csv"


def document(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["schema"] == "loadframe.forecast/1"
    return found


def test_from_csv_in_the_shape_that_others_rely_on(here: Command, points: str) -> None:
    found = document(here(points, "--at", "16,100", "--json"))
    assert [point["load"] for point in found["at"]] == [16, 100]
    assert set(found["at"][0]["throughput"]) == {"value", "low", "high"}
    assert found["at"][0]["latency_p95_ms"] is None
    assert found["capacity"]["limited_by"] == "disk"
    assert found["capacity"]["throughput"]["value"] == pytest.approx(125, rel=0.05)
    assert set(found["capacity"]["load"]) == {"value", "low", "high"}
    (disk,) = found["saturation"]
    assert (disk["resource"], disk["demand_s"]) == ("disk", pytest.approx(0.008, rel=0.01))
    assert disk["at_load"]["low"] <= 26 <= disk["at_load"]["high"]
    assert (found["refused"], found["scored"], found["calibration"]) == (None, [], None)


def test_from_standard_input(here: Command, points: str) -> None:
    text = Path(points).read_text()
    assert document(here("-", "--json", stdin=text))["source"] == "standard input"
    assert "line 2" in here("-", stdin="load,throughput\n-1,5\n").stderr


def test_a_backtest_is_scored_and_remembered(here: Command, points: str) -> None:
    found = document(here(points, "--up-to", "6", "--json"))
    assert found["measured"] == [1, 2, 4, 6]
    assert [score["load"] for score in found["scored"]] == [8, 12, 24, 48]
    assert set(found["scored"][0]) >= {"load", "predicted", "actual", "inside"}
    assert all(score["inside"] for score in found["scored"])
    assert found["calibration"]["count"] == 4
    text = here(points, "--up-to", "8").stdout
    assert "inside its interval at 3 of the 3 loads" in " ".join(text.split())
    words = " ".join(text.split())
    assert "held in 4 of 4 forecasts" in words  # the same measurements, forecast again: each counts once


def test_the_text_is_short_and_says_what_gives(here: Command, points: str) -> None:
    text = here(points, "--at", "16").stdout
    assert text.startswith("disk saturates first, at ")
    assert len(text.splitlines()) < 15


def test_a_refusal_is_an_answer(here: Command, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("load,throughput,util.cpu\n1,10,0.1\n2,20,0.2\n")
    assert "2 loads" in document(here("few.csv", "--json"))["refused"]
    assert here("few.csv").stdout.startswith("No forecast. 2 windows at 2 loads")
    (tmp_path / "bare.csv").write_text("load,throughput\n1,10\n2,20\n3,30\n")
    bare = document(here("bare.csv", "--at", "6", "--json"))
    assert (bare["refused"], bare["capacity"], bare["at_least"]) == (None, None, 30)
    assert "No utilisation" in bare["unexplained"]
    assert bare["at"][0]["throughput"]["low"] < 60 < bare["at"][0]["throughput"]["high"]
    assert here("bare.csv").stdout.startswith("The maximum is unknown; 30 requests/s were measured. No util")


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["points.csv", "--at", "four"], 2, "--at 'four'"),
        (["points.csv", "--at", "4,-8"], 2, "-8 is not a load"),
        (["points.csv", "--at", "nan"], 2, "--at 'nan' is not a list"),
        (["points.csv", "--at", "9" * 5000], 2, "...' is not a list"),
        (["points.csv", "--up-to", "0.5"], 1, "no load up to 0.5"),
        (["points.csv", "--load-is", "bricks"], 2, "clients, rate"),
        (["points.csv", "--treatment", "B"], 2, "run folders"),
        (["points.csv", "--set", "a.b=1"], 2, "--set"),
        (["nowhere.csv"], 1, "no file or run folder"),
        (["."], 1, "not a run folder"),
    ],
)
def test_what_makes_no_sense_is_refused(here: Command, points: str, arguments: list[str], code: int, word: str) -> None:
    done = here(*arguments)
    assert (done.exit_code, word in done.stderr) == (code, True), done.stderr


def recorded(here: Command, tmp_path: Path, run: str, *arguments: str) -> str:
    shutil.copytree(Path(__file__).parents[1] / "data/runs" / run, tmp_path / run, dirs_exist_ok=True)
    return " ".join(here(run, *arguments).stdout.split())


@pytest.mark.parametrize(("arguments", "top", "short"), [([], 256, 27), (["--up-to", "64"], 64, 23)])
def test_what_limits_a_run_within_its_loads_is_named_before_what_comes_later(
    here: Command, tmp_path: Path, arguments: list[str], top: int, short: int
) -> None:
    """Seen: "mariadb.table_definition_cache runs out first, at 79.16 active jobs (79.07 to 79.24); that allows 10,200
    requests/s (10,200 to 10,200)" above a table cache that is full at 10; and "at load 256 ... full at 64"."""
    said = recorded(here, tmp_path, "render-farm", *arguments)
    assert said.startswith(
        f"At most 10,200 requests/s were measured. At {top} active jobs throughput is {short} % below what the "
        "resources that rise with it would allow; the most used of them, target.cpu, is at 7"
    )
    answer = said.partition(" Forecast: ")[0]
    assert "Likely cause: the table cache is full at 64 (mariadb.table_open_cache), from 10 active jobs (" in answer
    assert "definition" not in answer
    rows = said.partition(" Mind: ")[0]
    full = f"{400 if top == 256 else 325} of 400; saturates at: 79 active jobs{' (79 to 130)' * (top == 256)}"
    assert rows.endswith(f"the table definition cache (mariadb.table_definition_cache): in use: {full}")


def test_a_cause_and_a_limit_of_a_run_are_told_by_their_titles(here: Command, tmp_path: Path) -> None:
    said = recorded(here, tmp_path, "job-queue", "--at", "8,16")
    assert said.startswith(
        "What limits: every commit waits for the disk (disk.fsync), from 1 worker on; that allows 1,4"
    )
    assert "the lock that only one writer can hold (lock.writer) 97 % at 4 0.736 ms 2 workers (1 to 2)" in said


@pytest.mark.long
def test_from_a_run_it_is_kept_and_verified(study: Path, tmp_path: Path, here: Command) -> None:
    run = "recorded"
    shutil.copytree(Path(__file__).parents[1] / "data/runs/job-queue", tmp_path / run)
    found = document(here(run, "--at", "6", "--verify", str(study), "--json"))
    kept = json.loads((tmp_path / run / "forecasts.json").read_text())
    assert kept["schema"] == "loadframe.forecasts/1"
    assert kept["forecasts"][0]["source"].endswith(Path(run).name)
    assert kept["forecasts"][0]["measured"] == [1, 2, 4]
    assert found["refused"] is None
    assert [score["load"] for score in found["scored"]] == [6]
    assert (tmp_path / found["run"] / "steps.jsonl").exists()
    assert here(run, "--treatment", "D").exit_code == 2
    assert len(json.loads((tmp_path / run / "forecasts.json").read_text())["forecasts"]) == 1
