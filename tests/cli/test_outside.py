"""A server and a load driver that another distribution registers are used like our own; a broken one ends nothing.

The distribution is tests/data/outside: a package, and beside it what an installer would write, `*.dist-info`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from forked import Result, commands, forked
from loadframe.host.state import state_directory
from outside_toy import LOADFRAME, OUR_OWN, STUDY, install, toy_installed


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    with toy_installed() as folder:
        yield folder


Call = Callable[..., Result]
MOST_OF_ONE = 60
"""Requests a second of one slot: 50, and those that a window of 300 ms has by chance, as not all take 20 ms."""


@contextmanager
def finding(*folders: Path) -> Iterator[Call]:
    """Runs Loadframe in `folder`, with these on its path."""
    path = {"PYTHONPATH": on_the_path(*folders)}
    with commands(path) as server:

        def run(*arguments: str, folder: Path) -> Result:
            said = folder / "said"
            said.mkdir(exist_ok=True)
            return forked(server, arguments, folder=str(folder), said=str(said), environment=path)

        yield run


@pytest.fixture(scope="module")
def with_toy(installed: Path) -> Iterator[Call]:
    with finding(installed) as run:
        yield run


def on_the_path(*folders: Path) -> str:
    return ":".join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH", "")])])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where commands are called: with a study of the toy, and one of our own kinds."""
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "own.toml").write_text(OUR_OWN)
    return tmp_path


@pytest.fixture
def call(with_toy: Call, place: Path) -> Call:
    return partial(with_toy, folder=place)


@pytest.mark.long
def test_the_installed_program_finds_it(installed: Path, place: Path) -> None:
    done = subprocess.run(
        [LOADFRAME, "study", "check", "study.toml"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": on_the_path(installed)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def measured(call: Call, *settings: str) -> dict[str, Any]:
    done = call("measure", "study.toml", "--json", *(word for one in settings for word in ("--set", one)))
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    return found


@pytest.mark.long
def test_a_server_from_outside_is_measured_with_the_settings_of_the_study(call: Call, tmp_path: Path) -> None:
    """One slot serves a client at a time, each for 20 ms: 50 requests a second. Four slots serve four."""
    one = measured(call)
    at_one, at_four = (point["throughput"] for point in one["points"])
    assert 10 < at_one < MOST_OF_ONE
    assert at_four < MOST_OF_ONE
    four = measured(call, "target.settings.slots=4")
    assert four["points"][1]["throughput"] > 1.5 * at_four
    steps = [json.loads(line) for line in (tmp_path / four["run"] / "steps.jsonl").read_text().splitlines()]
    counted = [step["metrics"].get("toy.requests", 0.0) for step in steps]
    assert counted and max(counted) > MOST_OF_ONE, "what the server counts is recorded under the metric that it names"
    assert list((state_directory() / "leases").glob("*.json")) == [], "and its server has ended"


@pytest.mark.long
def test_a_study_of_it_is_checked_like_any_other(call: Call) -> None:
    assert call("study", "check", "study.toml").code == 0
    misspelt = call("study", "check", "study.toml", "--set", "target.settings.slot=2")
    assert misspelt.code == 1
    assert "slot" in misspelt.err and "slots" in misspelt.err
    wrong = call("study", "check", "study.toml", "--set", "target.settings.slots=65")
    assert wrong.code == 1
    assert "slots = 65" in wrong.err and "64" in wrong.err
    loaded = call("study", "check", "study.toml", "--set", "workload.kind=job-queue")
    assert loaded.code == 1
    assert "cannot load a target of kind 'toy'" in loaded.err
    option = call("study", "check", "study.toml", "--set", "workload.options.pause=2")
    assert option.code == 1
    assert "pause_ms" in option.err


@pytest.mark.long
def test_the_doctor_lists_what_it_needs(call: Call) -> None:
    rows = call("doctor", "--json").json["checks"]
    assert [(row["what"], row["found"]) for row in rows if row["part"] == "toy"] == [("Python", sys.version.split()[0])]
    assert [row["found"] for row in rows if row["part"] == "toy-load"] == ["in the box"]


BROKEN = {
    "raises": "raise RuntimeError('made for another Loadframe')",
    "exits": "raise SystemExit('no')",
    "is something else": "KIND = 'toy'",
}


@pytest.mark.long
@pytest.mark.parametrize("how", BROKEN)
def test_one_that_is_broken_is_told_of_and_ends_no_other_command(installed: Path, place: Path, how: str) -> None:
    beside = place / "site"
    beside.mkdir()
    (beside / "lf_broken.py").write_text(BROKEN[how])
    install(
        beside, "lf_broken", "[loadframe.kinds]\nbad = lf_broken:KIND\n[loadframe.workloads]\nworse = lf_broken:KIND\n"
    )
    with finding(installed, beside) as run:
        call = partial(run, folder=place)
        doctor = call("doctor", "--json")
        assert doctor.code == 0
        rows = [row for row in doctor.json["checks"] if row["what"] == "entry point of lf_broken 1.5"]
        assert [(row["part"], row["found"]) for row in rows] == [("bad", None), ("worse", None)]
        assert all("uninstall it" in row["how_to_get_it"] for row in rows)
        assert call("study", "check", "own.toml").code == 0
        assert call("study", "check", "study.toml").code == 0
        for key, kind in (("target.kind", "bad"), ("workload.kind", "worse")):
            refused = call("study", "check", "own.toml", "--set", f"{key}={kind}")
            assert refused.code == 1
            assert f"{key} = '{kind}' is from lf_broken 1.5" in refused.err
            assert "uninstall it" in refused.err
        unknown = call("study", "check", "own.toml", "--set", "target.kind=nothing")
        assert "toy" in unknown.err and "bad" not in unknown.err, "only what can be used is offered"
