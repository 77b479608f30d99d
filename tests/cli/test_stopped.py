"""Stopped in the middle (Ctrl-C, SIGTERM, kill -9, a server that dies): finished steps stay, nothing else does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadframe.cage.state import state_directory

Command = Callable[..., object]
LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
PATIENCE_S = 90.0


def leases() -> list[Path]:
    return sorted((state_directory() / "leases").glob("*.json"))


def processes_in(folder: str) -> list[int]:
    """Processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if folder.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


class Running:
    """A command in the background that has finished some steps."""

    def __init__(self, tmp_path: Path, arguments: list[str], *, steps: int) -> None:
        self.folder = tmp_path
        self.process = subprocess.Popen(
            [LOADFRAME, *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._await(lambda: bool(leases()) and self.finished_steps() >= steps)
        self.scratch = json.loads(leases()[-1].read_text())["folder"]

    def _await(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)

    def run(self) -> Path:
        return next((self.folder / "runs").iterdir())

    def finished_steps(self) -> int:
        files = list((self.folder / "runs").glob("*/steps.jsonl"))
        return files[0].read_text().count("\n") if files else 0

    def end(self, number: int) -> tuple[str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return out, err


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(*arguments: str, steps: int = 2) -> Running:
        started.append(Running(tmp_path, list(arguments), steps=steps))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


LONG = ["--set", "measure.window=500ms", "--set", "measure.blocks={min=20,max=20}", "--set", "measure.budget=10m"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_reports_what_it_measured_and_exits_130(
    start: Callable[..., Running], study: Path, number: int
) -> None:
    running = start("investigate", str(study), "--json", *LONG)
    out, err = running.end(number)
    assert running.process.returncode == 130, err
    assert "Traceback" not in err
    assert "nothing is left running" in err
    assert json.loads(out)["kind"] == "interrupted"
    assert (running.run() / "report.html").exists()
    assert running.finished_steps() >= 2
    assert leases() == []
    assert not Path(running.scratch).exists()
    assert processes_in(running.scratch) == []


@pytest.mark.parametrize("delay_s", [0.3, 0.7])
def test_stopped_while_it_still_starts_it_says_so_and_nothing_else(study: Path, tmp_path: Path, delay_s: float) -> None:
    """Wherever the signal falls: before anything runs, while modules are imported, or in the first step."""
    process = subprocess.Popen(
        [LOADFRAME, "measure", str(study), *LONG],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert "loadframe/cli" not in err, err
    assert process.returncode in (130, -signal.SIGINT), err
    assert leases() == []


def test_after_kill_9_the_next_command_cleans_up_and_the_run_is_readable(
    start: Callable[..., Running], loadframe: Command, study: Path
) -> None:
    running = start("investigate", str(study), *LONG)
    running.end(signal.SIGKILL)
    finished = running.finished_steps()
    report = loadframe("report", str(running.run()))
    assert report.code == 0, report.err  # type: ignore[attr-defined]
    assert "killed earlier" in report.err  # type: ignore[attr-defined]
    lines = (running.run() / "steps.jsonl").read_text().splitlines()
    flags = Counter(flag for line in lines for flag in json.loads(line)["flags"])
    document = json.loads(loadframe("report", str(running.run()), "--json").out)  # type: ignore[attr-defined]
    assert document["conduct"]["flags"] == flags
    assert report.out.startswith("Interrupted after")  # type: ignore[attr-defined]
    assert leases() == []
    assert not Path(running.scratch).exists()
    assert processes_in(running.scratch) == []
    curve = loadframe("curve", str(running.run()), "--json").json  # type: ignore[attr-defined]
    assert sum(point["steps"] for point in curve["points"]) == finished


def test_after_kill_9_a_search_for_settings_goes_on(
    start: Callable[..., Running], loadframe: Command, study: Path
) -> None:
    one_level = ["--set", "load.levels=[2]"]
    # At most five steps of the start, a trial, and three more of the start where that looks too good.
    running = start("tune", str(study), *one_level, "--set", "measure.budget=10m", steps=10)
    running.end(signal.SIGKILL)
    finished = (running.run() / "trials.jsonl").read_text().splitlines(keepends=True)
    lines = [json.loads(line) for line in finished if line.endswith("\n")]
    trials = list({line["number"]: line for line in lines}.values())
    assert trials
    run = str(running.run())
    more = str(len(trials) + 1)
    found = loadframe("tune", f"{run}/study.toml", "--resume", run, "--trials", more, "--json", *one_level)
    shape = found.json  # type: ignore[attr-defined]
    assert "killed earlier" in found.err  # type: ignore[attr-defined]
    assert [trial["changes"] for trial in shape["trials"]][:-1] == [trial["changes"] for trial in trials]
    assert len(shape["trials"]) == len(trials) + 1
    assert shape["resumed_from"] == run
    assert leases() == []
    assert processes_in(running.scratch) == []


FARM = ["case", "run", "render-farm", "--quick", "--set", "load.levels=[4, 8]", *LONG]


@pytest.mark.server
@pytest.mark.parametrize("steps", [0, 3])
def test_kill_9_leaves_no_server_running(start: Callable[..., Running], loadframe: Command, steps: int) -> None:
    running = start(*FARM, steps=steps)
    running.end(signal.SIGKILL)
    listed = loadframe("changes", "list")
    assert listed.code == 0  # type: ignore[attr-defined]
    assert processes_in(running.scratch) == []
    assert not Path(running.scratch).exists()
    assert leases() == []


@pytest.mark.server
def test_a_server_that_dies_in_the_middle_of_a_step_is_told_with_its_log(start: Callable[..., Running]) -> None:
    running = start(*FARM, "--json", steps=3)
    servers = [pid for pid in processes_in(running.scratch) if _name(pid) == "mariadbd"]
    assert len(servers) == 1
    os.kill(servers[0], signal.SIGKILL)
    out, err = running.process.communicate(timeout=PATIENCE_S)
    assert running.process.returncode == 1
    assert "Traceback" not in err
    assert "mariadb" in err.lower()
    assert "finished steps are kept" in err
    assert json.loads(out)["kind"] == "TargetError"
    assert leases() == []
    assert processes_in(running.scratch) == []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
