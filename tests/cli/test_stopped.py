"""Stopped in the middle (Ctrl-C, SIGTERM, kill -9, a server that dies): finished steps stay, nothing else does."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from loadframe.host import identity
from waiting import await_that

Command = Callable[..., Any]
Start = Callable[..., Any]


LONG = ["--set", "measure.window=500ms", "--set", "measure.blocks={min=20,max=20}", "--set", "measure.budget=10m"]


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_command_reports_what_it_measured_and_exits_130(start: Start, study: Path, number: int) -> None:
    running = start("investigate", str(study), "--json", *LONG)
    out, err = running.end(number)
    assert running.process.returncode == 130, err
    assert "Traceback" not in err
    assert "nothing is left running" in err
    assert json.loads(out)["kind"] == "interrupted"
    assert (running.run() / "report.html").exists()
    assert running.finished() >= 2
    assert running.leases() == []
    assert not Path(running.scratch).exists()
    assert running.processes() == []


@pytest.mark.long
@pytest.mark.parametrize("verb", ["investigate", "measure"])
def test_ctrl_c_twice_while_the_recorder_is_asked_is_no_error(start: Start, study: Path, verb: str) -> None:
    """The answer to the question that is given up comes before that to the next one."""
    running = start(verb, str(study), *LONG)
    (recorder,) = [each.pid for each in identity.naming(str(running.run()))]
    os.kill(recorder, signal.SIGSTOP)
    try:
        await_that(lambda: not running.workers(), "the driver has ended, and the recording is asked for")
        for _ in range(2):
            running.process.send_signal(signal.SIGINT)
    finally:
        os.kill(recorder, signal.SIGCONT)
    _, err = running.end()
    assert running.process.returncode == 130, err
    assert "nothing is left running" in err and "recorder" not in err
    assert running.leases() == [] and running.processes() == []
    assert identity.identify(recorder) is None


@pytest.mark.parametrize("delay_s", [0.3, 0.7])
def test_stopped_while_it_still_starts_it_says_so_and_nothing_else(start: Start, study: Path, delay_s: float) -> None:
    """Wherever the signal falls: before anything runs, while modules are imported, or in the first step."""
    running = start("measure", str(study), *LONG, steps=None)
    time.sleep(delay_s)
    _, err = running.end(signal.SIGINT, signal.SIGINT)
    assert "loadframe/cli" not in err, err
    assert running.process.returncode in (130, -signal.SIGINT), err  # -2: before a line of ours has run
    assert running.leases() == []


@pytest.mark.long
def test_after_kill_9_the_next_command_cleans_up_and_the_run_is_readable(
    start: Start, loadframe: Command, study: Path
) -> None:
    running = start("investigate", str(study), *LONG)
    running.end(signal.SIGKILL)
    finished = running.finished()
    report = loadframe("report", str(running.run()))
    assert report.code == 0, report.err
    assert "command was killed" in report.err
    lines = (running.run() / "steps.jsonl").read_text().splitlines()
    flags = Counter(flag for line in lines for flag in json.loads(line)["flags"])
    document = json.loads(loadframe("report", str(running.run()), "--json").out)
    assert document["conduct"]["flags"] == flags
    assert report.out.startswith("Interrupted after")
    assert running.leases() == []
    assert not Path(running.scratch).exists()
    assert running.processes() == []
    curve = loadframe("curve", str(running.run()), "--json").json
    assert sum(point["steps"] for point in curve["points"]) == finished


@pytest.mark.long
@pytest.mark.parametrize("loaded", [True, False])
def test_kill_9_in_a_step_and_between_two_ends_its_workers_at_once(start: Start, study: Path, loaded: bool) -> None:
    """And what they are forked from, which waits between steps: before the next command cleans up."""
    running = start("investigate", str(study), *LONG)
    await_that(lambda: bool(running.workers()) is not loaded, "a step ends, or begins")
    await_that(lambda: bool(running.workers()) is loaded, "the next one begins, or it ends")
    with ExitStack() as stack:
        descriptors = [os.pidfd_open(pid) for pid in (running.fork_server(), *running.workers())]
        for descriptor in descriptors:
            stack.callback(os.close, descriptor)
        running.end(signal.SIGKILL)
        for descriptor in descriptors:
            assert select.select([descriptor], [], [], 10)[0], "it has ended"


@pytest.mark.long
def test_after_kill_9_a_search_for_settings_is_shown_and_goes_on(start: Start, loadframe: Command, study: Path) -> None:
    one_level = ["--set", "load.levels=[2]"]
    running = start("tune", str(study), *one_level, "--set", "measure.budget=10m", steps=1, file="trials.jsonl")
    running.end(signal.SIGKILL)
    finished = (running.run() / "trials.jsonl").read_text().splitlines(keepends=True)
    lines = [json.loads(line) for line in finished if line.endswith("\n")]
    trials = list({line["number"]: line for line in lines}.values())
    assert trials
    run = str(running.run())
    document = loadframe("report", run, "--json").json
    assert (document["end"], document["verdict"], document["best"]) == ("stopped", None, {})
    assert len(document["trials"]) == len(trials) and document["settings"]
    page = (running.run() / "report.html").read_text()
    assert "Stopped after " in page and 'id="chart-trials"' in page
    more = str(len(trials) + 1)
    short = ["--set", "measure.budget=30s"]  # enough for the next trial, not for every proof that there may be
    found = loadframe("tune", f"{run}/study.toml", "--resume", run, "--trials", more, "--json", *one_level, *short)
    shape = found.json
    assert [trial["changes"] for trial in shape["trials"]][:-1] == [trial["changes"] for trial in trials]
    assert len(shape["trials"]) == len(trials) + 1
    assert shape["resumed_from"] == run
    assert running.leases() == []
    assert running.processes() == []


FARM = ["case", "run", "render-farm", "--quick", "--set", "load.levels=[4, 8]", *LONG]


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("steps", [0, 3])
def test_kill_9_leaves_no_server_running(start: Start, loadframe: Command, steps: int) -> None:
    running = start(*FARM, steps=steps)
    running.end(signal.SIGKILL)
    listed = loadframe("changes", "list")
    assert listed.code == 0
    assert running.processes() == []
    assert not Path(running.scratch).exists()
    assert running.leases() == []


@pytest.mark.long
@pytest.mark.server
def test_a_server_that_dies_in_the_middle_of_a_step_is_told_with_its_load(start: Start) -> None:
    """It is started again, and lower loads are measured."""
    running = start(*FARM, "--json", "--set", "measure.blocks={min=2,max=2}", "--set", "measure.budget=40s", steps=3)
    (server,) = [pid for pid in running.processes() if _name(pid) == "mariadbd"]
    os.kill(server, signal.SIGKILL)
    out, err = running.end()
    assert "Traceback" not in err
    assert "MariaDB died (SIGKILL)" in err
    assert running.process.returncode == 0
    assert json.loads(out)["stop"]["died"] == "SIGKILL"
    assert running.leases() == []
    assert running.processes() == []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
