"""A trial on a worker of dask that does not end as it should: what it changed of its host is put back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import network
import pytest
from distributed import Client
from stations import BACK_WITHIN_S
from workers import engine, laboratory, trial_processes

from loadframe_fleet import dask_workers
from loadframe_fleet.wire import LEASE_S
from waiting import await_that

WORKER = Path(__file__).with_name("trial_on_worker.py")
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not network.possible(), reason="no network namespaces may be made here"),
]


COORDINATOR = """
import sys
from pathlib import Path
from loadframe_fleet.declaration import load
from loadframe_fleet.engine import DaskEngine
from loadframe_fleet.alike import steps_asked
from loadframe.study import load as study
asked = steps_asked(study(Path("study.toml")), [("A", 8.0)])
with DaskEngine(load(Path("fleet.toml"))) as engine:
    engine.begin("one", "task-1", {**asked, "within_s": 200.0})
    print("begun", flush=True)
    while (came := engine.came(1.0)) is None:
        pass
    print(came, flush=True)
"""


def trial(folder: Path, how: str) -> dict[str, Any]:
    """In a network of its own, so that the host's settings are."""
    state, scratch = folder / "state", folder / "scratch"
    state.mkdir()
    scratch.mkdir(mode=0o755)
    own = {
        "LOADFRAME_STATE": str(state),
        "LOADFRAME_SCRATCH": str(scratch),
        "PYTHONPATH": f"{WORKER.parent}:{WORKER.parents[3] / 'tests/commands'}",
    }
    own["PYTHONPATH"] += f":{os.environ.get('PYTHONPATH', '')}"
    within = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    words = [*within, sys.executable, str(WORKER), how, str(folder / "here")]
    done = subprocess.run(words, env={**os.environ, **own}, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    assert not [*scratch.iterdir(), *state.glob("*/*.json")], "nothing is left"
    return found


@pytest.mark.long
def test_the_worker_of_a_trial_that_is_killed_puts_back_what_it_changed(open_folder: Path) -> None:
    found = trial(open_folder, "killed")
    assert found["before"] != found["changed"]
    died = found["answer"]["died"]
    assert "its process has ended by signal 9" in died
    assert "net.core.somaxconn" in died and "put back" in died, "and says so"


@pytest.mark.measures
def test_a_trial_whose_coordinator_is_silent_is_over_and_all_is_put_back_within_ten_seconds(open_folder: Path) -> None:
    found = trial(open_folder, "silent")
    assert "its coordinator has said nothing for 4 s" in found["answer"]["died"]
    assert found["back_s"] < BACK_WITHIN_S


@pytest.mark.long
def test_a_coordinator_that_stands_still_keeps_no_trial_going(open_folder: Path) -> None:
    """As where its link is cut: no connection is closed, and dask would go on."""
    with engine(open_folder, {"one": 0.02, "two": 0.02}) as address:
        folder = laboratory(open_folder / "here", f'scheduler = "{address}"', window="60s")
        words = [sys.executable, "-c", COORDINATOR]
        with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "begun\n"
                await_that(lambda: trial_processes(open_folder), "a trial runs")
                until = time.monotonic() + 2 * LEASE_S
                while time.monotonic() < until:
                    assert trial_processes(open_folder), "it is wanted"
                    time.sleep(0.1)
                process.send_signal(signal.SIGSTOP)
                await_that(lambda: not trial_processes(open_folder), "its trial has ended", 30)
                process.send_signal(signal.SIGCONT)
                assert "its coordinator has said nothing for 4 s" in process.stdout.readline()
            finally:
                process.kill()


ANSWERS_LATE = """
import os, sys, time
sys.stdin.buffer.readline()
os.close(0)
print('{"failed": "said"}', flush=True)
os.close(1)
time.sleep(1)
"""


def test_an_answer_counts_also_where_the_last_beat_of_its_worker_was_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends closes its pipes first: a beat may come in between."""
    monkeypatch.setattr(dask_workers, "python", lambda *_: [sys.executable, "-c", ANSWERS_LATE])
    asked = json.dumps({"task": "late-1", "within_s": 60.0, "lease_s": 60.0})
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:  # type: ignore[no-untyped-call]
        future = client.submit(dask_workers.carry_out, asked, key="late-1", pure=False)  # type: ignore[no-untyped-call]
        assert json.loads(future.result(timeout=60))["failed"] == "said"
