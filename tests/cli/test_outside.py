"""A server and a load driver that another distribution registers are used like our own; a broken one ends nothing.

The distribution is tests/data/outside: a package, and beside it what an installer would write, `*.dist-info`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loadframe.host import identity

SOURCES = Path(__file__).parents[1] / "data" / "outside"
LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
STUDY = """
[study]
name = "toy"
question = "How many requests does the toy serve?"
[target]
kind = "toy"
[target.settings]
delay_ms = 20
[workload]
kind = "toy-load"
[load]
axis = "concurrency"
levels = [1, 4]
[measure]
window = "300ms"
blocks = { min = 2, max = 2 }
budget = "30s"
profile = "off"
"""
OUR_OWN = """
[study]
name = "queue"
question = "?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [1]
"""


def install(folder: Path, name: str, entry_points: str) -> None:
    info = folder / f"{name}-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """Where the toy is installed: a folder that other users may read, as the load driver is one."""
    folder = Path(tempfile.mkdtemp(prefix="lf-", dir="/var/tmp"))
    folder.chmod(0o755)
    shutil.copytree(SOURCES / "loadframe_toy", folder / "loadframe_toy")
    install(
        folder,
        "loadframe_toy",
        "[loadframe.kinds]\ntoy = loadframe_toy.kind:KIND\n[loadframe.workloads]\ntoy-load = loadframe_toy.load:KIND\n",
    )
    yield folder
    for process in identity.naming(str(folder)):
        identity.end(process, 0.5)
    shutil.rmtree(folder)


Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def call(installed: Path, tmp_path: Path) -> Call:
    """Run Loadframe with the toy, and what else lies in `beside`, on its path."""

    def called(*arguments: str, beside: Path | None = None) -> subprocess.CompletedProcess[str]:
        path = [str(installed), *([str(beside)] if beside else []), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, path)), "NO_COLOR": "1"}
        done = subprocess.run(
            [LOADFRAME, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "own.toml").write_text(OUR_OWN)
    return called


def measured(call: Call, *settings: str) -> dict[str, Any]:
    done = call("measure", "study.toml", "--json", *(word for one in settings for word in ("--set", one)))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_server_from_outside_is_measured_with_the_settings_of_the_study(call: Call, tmp_path: Path) -> None:
    """One slot serves a client at a time, each for 20 ms: at most 50 requests a second. Four slots serve four."""
    one = measured(call)
    at_one, at_four = (point["throughput"] for point in one["points"])
    assert 10 < at_one < 52
    assert at_four < 52
    four = measured(call, "target.settings.slots=4")
    assert four["points"][1]["throughput"] > 1.5 * at_four
    steps = [json.loads(line) for line in (tmp_path / four["run"] / "steps.jsonl").read_text().splitlines()]
    counted = [step["metrics"]["toy.requests"] for step in steps]
    assert max(counted) > 52, "what the server counts is recorded under the metric that it names"
    assert not identity.naming("loadframe_toy.server")


def test_a_study_of_it_is_checked_like_any_other(call: Call) -> None:
    assert call("study", "check", "study.toml").returncode == 0
    misspelt = call("study", "check", "study.toml", "--set", "target.settings.slot=2")
    assert misspelt.returncode == 1
    assert "slot" in misspelt.stderr and "slots" in misspelt.stderr
    wrong = call("study", "check", "study.toml", "--set", "target.settings.slots=65")
    assert wrong.returncode == 1
    assert "slots = 65" in wrong.stderr and "64" in wrong.stderr
    loaded = call("study", "check", "study.toml", "--set", "workload.kind=job-queue")
    assert loaded.returncode == 1
    assert "cannot load a target of kind 'toy'" in loaded.stderr
    option = call("study", "check", "study.toml", "--set", "workload.options.pause=2")
    assert option.returncode == 1
    assert "pause_ms" in option.stderr


def test_the_doctor_lists_what_it_needs(call: Call) -> None:
    rows = json.loads(call("doctor", "--json").stdout)["checks"]
    assert [(row["what"], row["found"]) for row in rows if row["part"] == "toy"] == [("Python", sys.version.split()[0])]
    assert [row["found"] for row in rows if row["part"] == "toy-load"] == ["in the box"]


BROKEN = {
    "raises": "raise RuntimeError('made for another Loadframe')",
    "exits": "raise SystemExit('no')",
    "is something else": "KIND = 'toy'",
}


@pytest.mark.parametrize("how", BROKEN)
def test_one_that_is_broken_is_told_of_and_ends_no_other_command(call: Call, tmp_path: Path, how: str) -> None:
    beside = tmp_path / "site"
    beside.mkdir()
    (beside / "lf_broken.py").write_text(BROKEN[how])
    install(
        beside, "lf_broken", "[loadframe.kinds]\nbad = lf_broken:KIND\n[loadframe.workloads]\nworse = lf_broken:KIND\n"
    )
    doctor = call("doctor", "--json", beside=beside)
    assert doctor.returncode == 0
    rows = [row for row in json.loads(doctor.stdout)["checks"] if row["what"] == "entry point of lf_broken 1.5"]
    assert [(row["part"], row["found"]) for row in rows] == [("bad", None), ("worse", None)]
    assert all("uninstall it" in row["how_to_get_it"] for row in rows)
    assert call("study", "check", "own.toml", beside=beside).returncode == 0
    assert call("study", "check", "study.toml", beside=beside).returncode == 0
    for key, kind in (("target.kind", "bad"), ("workload.kind", "worse")):
        refused = call("study", "check", "own.toml", "--set", f"{key}={kind}", beside=beside)
        assert refused.returncode == 1
        assert f"{key} = '{kind}' is from lf_broken 1.5" in refused.stderr
        assert "uninstall it" in refused.stderr
    unknown = call("study", "check", "own.toml", "--set", "target.kind=nothing", beside=beside)
    assert "toy" in unknown.stderr and "bad" not in unknown.stderr, "only what can be used is offered"
