"""`loadframe curve` on CSV: published curves give their published answers, from a file and from standard input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from loadframe.cli.main import app

CURVES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "curves.json").read_text())
Command = Callable[..., Result]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`loadframe curve ARGUMENTS` in this process."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, text: str | None = None) -> Result:
        if text is not None:
            (tmp_path / "points.csv").write_text(text)
        done = CliRunner().invoke(app, ["curve", *arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return run


def csv(loads: list[float], throughputs: list[float]) -> str:
    return "load,throughput\n" + "".join(f"{n},{x}\n" for n, x in zip(loads, throughputs, strict=True))


def found(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["schema"] == "loadframe.curve/1"
    return document


@pytest.mark.parametrize("name", ["specsdm91", "raytracer_first6"])
def test_published_laws_are_reproduced_to_their_digits(here: Command, name: str) -> None:
    data = CURVES[name]
    law = found(here("points.csv", "--json", text=csv(data["N"], data["X"])))["usl"]
    for parameter in ("sigma", "kappa", "lambda"):
        printed = f"{data['published_fit'][parameter]:.10f}".rstrip("0")
        digits = max(1, len(printed.partition(".")[2]))
        assert round(law[parameter], digits) == data["published_fit"][parameter]
    if "peak_load" in data["published_fit"]:
        assert round(law["peak_load"], 2) == data["published_fit"]["peak_load"]


def test_many_loads_in_any_order_are_a_curve_with_its_law(here: Command) -> None:
    random = np.random.default_rng(1)
    loads = random.permutation(np.arange(1, 361))
    throughputs = 100 * loads / (1 + 0.441 * (loads - 1) + 0.0453 * loads * (loads - 1))
    noisy = throughputs * np.exp(0.02 * random.standard_normal(360))
    curve = found(here("points.csv", "--json", text=csv(loads.tolist(), noisy.tolist())))
    assert len(curve["points"]) == 360
    assert curve["usl"]["sigma"] == pytest.approx(0.441, rel=0.05)
    assert curve["usl"]["kappa"] == pytest.approx(0.0453, rel=0.05)
    assert "Only one block at 360 levels: there is no interval" in " ".join(curve["warnings"])


@pytest.mark.parametrize("name", CURVES["mariadb_threadpool"]["curves"])
def test_published_cliffs_are_reproduced(here: Command, name: str) -> None:
    data = CURVES["mariadb_threadpool"]
    curve = found(here("points.csv", "--json", text=csv(data["clients"], data["curves"][name]["X"])))
    cliff = curve["cliff"]
    assert (cliff and [cliff["from"], cliff["to"]]) == data["curves"][name]["cliff"]
    assert curve["usl"]["kappa"] >= 0


def test_capacity_under_an_objective(here: Command) -> None:
    text = "load,throughput,latency_p95_ms\n1,10,10\n10,100,10\n100,100,1000\n"
    capacity = found(here("points.csv", "--within-latency-p95-ms", "100", "--json", text=text))["capacity"]
    assert capacity == {"load": pytest.approx(1000**0.5), "low": 10, "high": 100}
    assert found(here("points.csv", "--json"))["capacity"] is None
    assert "Capacity within the objective" in here("points.csv", "--within-latency-p95-ms", "100").stdout


def test_four_levels_have_no_scalability_law(here: Command) -> None:
    assert found(here("points.csv", "--json", text=csv([1, 2, 3, 4], [10, 19, 27, 34])))["usl"] is None


def test_rows_of_one_load_are_blocks(here: Command) -> None:
    curve = found(here("points.csv", "--json", text=csv([1, 2, 1, 2, 1], [10, 20, 11, 21, 12])))
    assert [(point["throughput"], point["steps"]) for point in curve["points"]] == [(11, 3), (20.5, 2)]


@pytest.mark.long
def test_from_standard_input(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("loadframe")), "curve", "-", "--json"],
        input=csv([1, 2, 4, 8, 16], [10, 20, 40, 41, 41]),
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["shape"] == "plateau"


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["points.csv"], 1, "line 3"),
        (["nowhere.csv"], 1, "no file or run folder"),
        (["points.csv", "--treatment", "B"], 2, "run folders"),
        (["points.csv", "--within-latency-p95-ms", "0"], 2, "objective"),
        (["."], 1, "not a run folder"),
    ],
)
def test_what_is_no_curve_is_refused(here: Command, arguments: list[str], code: int, word: str) -> None:
    done = here(*arguments, text="load,throughput\n1,10\n-2,20\n")
    assert (done.exit_code, word in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("time,load,throughput\n1,1,10\n2,2,20\n", []),
        ('\ufeff"Timestamp",load\n1,1\n', []),
        ('{"status": "success"}', []),
        ("# hostname;interval;timestamp;CPU\n", []),
        ("load,throughput\n1,10\n2,20\n", ["--use", "cpu=busy"]),
    ],
)
def test_production_data_name_the_extension_that_reads_them(
    here: Command, monkeypatch: pytest.MonkeyPatch, text: str, arguments: list[str]
) -> None:
    monkeypatch.setattr("loadframe.entry_points.distributions", lambda: ())
    done = here("points.csv", *arguments, text=text)
    assert done.exit_code == 1 and "(points.csv) needs the extension loadframe-watch" in done.stderr, done.stderr
