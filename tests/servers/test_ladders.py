"""Ladders on real servers: what is measured is what was asked for, and a run that was killed keeps its rungs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import loadframe
from loadframe.bench.bench import RealBench
from loadframe.changes import journal
from loadframe.experiments.answer_kinds import save_ladder
from loadframe.experiments.climbing import Climbed
from loadframe.model import Ladder, StepRequest, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.runs.lines import read_host
from loadframe.study import Study, parse

QUEUE = """
[study]
name = "modes"
question = "Which setting gives what?"
[target]
kind = "sqlite"
[target.settings]
journal_mode = "delete"
synchronous = "FULL"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [2]
[measure]
warmup = "150ms"
window = "300ms"
blocks = { min = 3, max = 3 }
budget = "2m"
[remedies]
durability = "relax"
[[change]]
name = "wal"
target = { settings = { journal_mode = "wal" } }
[[change]]
name = "unsafe"
target = { settings = { synchronous = "OFF" } }
"""


@pytest.mark.long
def test_a_ladder_is_climbed_written_down_and_read_again(tmp_path: Path) -> None:
    """That the changes are worth something is SQLite's business and the disk's; all of them are kept here."""
    found = loadframe.ladder(parse(QUEUE), tmp_path, keep_all=True)
    assert found.finished
    assert [rung.change for rung in found.kept] == ["wal", "unsafe"]
    assert found.total is not None and found.total.reported.blocks == 3
    run = loadframe.open_run(Path(found.run))
    titles = {one.title for one in run.treatments().values()}
    assert titles == {"as given", "wal", "wal + unsafe", "unsafe"}
    states = {one.title: one.state.settings for one in run.treatments().values()}
    assert states["wal + unsafe"]["journal_mode"] == "WAL"
    assert loadframe.conclude(run).answer == found
    shape = json.loads(json.dumps(loadframe.ladder_json(found), allow_nan=False))
    assert shape["steps"][1]["gives_up"]
    assert "which change" not in loadframe.render_text(found).lower()
    assert 'id="chart-waterfall"' in Path(found.report).read_text()


def new_run(tmp_path: Path, study: Study) -> RunFolder:
    run = RunFolder.create(tmp_path, study.study.name)
    run.write_record("study.json", "study", study.resolved())
    run.write_record("host.json", "host", read_host())
    return run


def test_of_a_run_that_was_killed_the_rungs_are_shown(tmp_path: Path) -> None:
    study = parse(QUEUE)
    run = new_run(tmp_path, study)
    with RealBench(study, run) as bench:
        run.write_record("bench.json", "bench", {"seed": 1, "version": "SQLite", "axis_unit": "workers"})
        bench.declare("A", "as given", bench.start_state)
        bench.take_step(StepRequest("A", 2, 1, 1))
        save_ladder(run, Climbed(()), keeps_all=False)
    again = loadframe.open_run(run.path)
    found = loadframe.write_answer(again, loadframe.conclude(again))
    assert isinstance(found, Ladder) and not found.finished
    assert found.quality is not None and found.quality.steps == 1
    assert loadframe.render_text(found).startswith("Stopped after 0 changes")
    assert (run.path / "report.html").exists()


BOUND = """
[study]
name = "apart"
question = "Does it help to keep server and driver apart?"
[target]
kind = "mariadb"
[workload]
kind = "sysbench"
[workload.options]
script = "oltp_point_select"
table_size = 100
[load]
axis = "threads"
levels = [2]
[measure]
window = "800ms"
budget = "60s"
"""


@pytest.mark.long
@pytest.mark.server
def test_server_and_driver_are_bound_in_the_steps_of_a_state_and_in_no_others(tmp_path: Path) -> None:
    """Seen from outside: the CPUs of the server's threads, and the CPU time that two bound to one have together."""
    cpu = min(os.sched_getaffinity(0))
    study = parse(BOUND)
    with RealBench(study, new_run(tmp_path, study)) as bench:
        start = bench.start_state
        both = {"cage.cpus": str(cpu), "cage.driver.cpus": str(cpu)}
        bench.declare("A", "as given", start)
        bench.declare("B", "together on one", TargetState(start.settings, start.limits, cpus=both))
        steps = {}
        for name in ("A", "B", "A"):
            steps[name] = bench.take_step(StepRequest(name, 2, 1, 1))
            effective = bench.use(name)
            server = bench._target.pids()[0]
            threads = {frozenset(os.sched_getaffinity(int(one.name))) for one in Path(f"/proc/{server}/task").iterdir()}
            expected = {cpu} if name == "B" else os.sched_getaffinity(0)
            assert threads == {frozenset(expected)}
            assert ("cage.cpus" in effective) == (name == "B")
        used = steps["B"].metrics["target.cpu.cores"] + steps["B"].metrics["driver.cpu.cores"]
        assert used < 1.2, "two that share one CPU have no more than it, whatever else the machine does"
        run = bench.run.path
    changes = [(entry.setting, entry.status, entry.after) for entry in journal.read(run)]
    assert ("cage.cpus", "applied", str(cpu)) in changes
    assert ("cage.driver.cpus", "intent", str(cpu)) in changes
    assert journal.not_reverted(journal.read(run)) == []
