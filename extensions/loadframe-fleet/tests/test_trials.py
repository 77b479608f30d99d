"""`loadframe tune --fleet` on workers of dask: processes of this machine that stand in for hosts."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from workers import TOKEN, attempts, engine, laboratory, parent, trial_processes

from waiting import await_that


@pytest.mark.measures
@pytest.mark.timeout(600)
def test_a_worker_killed_amid_a_trial_loses_it_and_it_is_done_again(
    begin: Callable[..., subprocess.Popen[str]], open_folder: Path
) -> None:
    folder = laboratory(open_folder / "here")
    command = begin(folder, "--trials", "4")

    workers: list[int] = []

    def tried() -> bool:
        assert command.poll() is None, command.communicate()
        if any(each["purpose"] == "trial" for each in attempts(folder)):
            with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
                workers.extend(parent(trial) for trial in trial_processes(folder))
        return bool(workers)

    await_that(tried, "a trial has ended, and another one runs", 200)
    os.kill(workers[0], signal.SIGKILL)
    out, said = command.communicate(timeout=250)
    assert command.returncode == 0, f"{out}\n{said}"
    found = json.loads(out)
    (lost,) = [each for each in attempts(folder) if each["lost"]]
    assert lost["purpose"] == "trial" and not lost["counted"] and lost["steps"] == []
    counted = [each for each in attempts(folder) if each["purpose"] == "trial" and each["counted"]]
    assert sorted(each["number"] for each in counted) == [1, 2, 3, 4]
    (again,) = [each for each in counted if each["number"] == lost["number"]]
    assert again["attempt"] == 2
    assert [each["number"] for each in found["trials"]].count(lost["number"]) == 1
    assert any(f"Trial {lost['number']} was lost on {lost['host']}" in words for words in found["warnings"])
    assert found["best"] == {"pool": 8} and found["end"] == "gained"
    assert not trial_processes(folder), "the trial of the killed worker has ended itself"
    assert "Traceback" not in said


@pytest.mark.measures
@pytest.mark.timeout(600)
def test_a_host_at_half_speed_is_refused(begin: Callable[..., subprocess.Popen[str]], open_folder: Path) -> None:
    with engine(open_folder, {"one": 0.02, "two": 0.04}) as address:
        folder = laboratory(open_folder / "here", f'scheduler = "{address}"')
        command = begin(folder)
        asked: set[bytes] = set()

        def tasks_at(dask_scheduler: Any) -> list[bytes]:
            return [pickle.dumps(task.run_spec) for task in dask_scheduler.tasks.values()]

        with Client(address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            while command.poll() is None:
                asked |= set(client.run_on_scheduler(tasks_at))
                time.sleep(0.5)
        out, said = command.communicate(timeout=250)
    assert command.returncode == 1, f"{out}\n{said}"
    together = b"".join(asked)
    assert b"{ENV:LABORATORY_TOKEN}" in together and TOKEN.encode() not in together, "secrets are in no task"
    error = json.loads(out)
    assert error["kind"] == "FleetError" and "trials on these hosts cannot be compared" in error["message"]
    assert "host one serves" in error["message"] or "host two serves" in error["message"]
    assert error["remedy"], "in company it may be that it is not known; then it is refused, too"
    taken = attempts(folder)
    assert {each["purpose"] for each in taken} == {"alone", "together"}, "nothing was compared"
    speeds = {
        name: max(step["throughput"] for each in taken if each["host"] == name for step in each["steps"])
        for name in ("one", "two")
    }
    assert 1.3 < speeds["one"] / speeds["two"] < 3


@pytest.mark.long
def test_a_host_without_a_secret_is_refused(begin: Callable[..., subprocess.Popen[str]], open_folder: Path) -> None:
    with engine(open_folder, {"one": 0.02, "two": 0.02}, token="") as address:
        folder = laboratory(open_folder / "here", f'scheduler = "{address}"')
        command = begin(folder)
        out, said = command.communicate(timeout=120)
    assert command.returncode == 1, f"{out}\n{said}"
    error = json.loads(out)
    assert "lacks the variables LABORATORY_TOKEN" in error["message"] and TOKEN not in out + said
    assert not list(folder.glob("runs/*")), "before anything is measured"


@pytest.mark.long
def test_nothing_stays_of_a_coordinator_that_was_killed(
    begin: Callable[..., subprocess.Popen[str]], open_folder: Path
) -> None:
    folder = laboratory(open_folder / "here")
    command = begin(folder)
    await_that(lambda: trial_processes(folder), "a task runs", 200)
    worker = parent(trial_processes(folder)[0])
    command.kill()
    command.communicate()
    await_that(lambda: not trial_processes(folder), "its trial has ended")
    await_that(lambda: not Path(f"/proc/{worker}").exists(), "its worker has ended")


@pytest.mark.long
def test_a_scheduler_that_would_try_again_is_refused(
    begin: Callable[..., subprocess.Popen[str]], open_folder: Path
) -> None:
    with engine(open_folder, {}, agreed=False) as address:
        folder = laboratory(open_folder / "here", f'scheduler = "{address}"')
        command = begin(folder)
        out, said = command.communicate(timeout=120)
    assert command.returncode == 1, f"{out}\n{said}"
    error = json.loads(out)
    assert "allowed-failures is 3 and work stealing is on" in error["message"]
    assert "ALLOWED_FAILURES=0" in error["remedy"]
    assert not list(folder.glob("runs/*")), "before anything is measured"
