"""`loadframe tune --fleet` on workers of dask: processes of this machine that stand in for hosts."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from stations import LOADFRAME, await_that

from loadframe.host.environment import python

SERVICE = """
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

pool, pace_s = int(os.environ.get("POOL", "4")), float(Path("pace").read_text())
workers = threading.Semaphore(pool)


class Handler(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm, wbufsize = "HTTP/1.1", True, -1

    def do_GET(self):
        if self.path == "/config":
            answer = json.dumps({"pool": pool}).encode()
        else:
            with workers:
                time.sleep(pace_s)
            answer = b"done"
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
STUDY = """
[study]
name = "pooled"
question = "How many at a time?"
[target]
kind = "service"
command = ["python3", "service.py", "{{port}}"]
ready = {{ http = "http://127.0.0.1:{{port}}/config", within = "60s" }}
[target.settings]
pool = 2
[target.setting.pool]
values = [1, 2, 8]
apply = "environment"
name = "POOL"
[workload]
kind = "http"
[[workload.request]]
path = "/"
headers = {{ X-Token = "{{ENV:LABORATORY_TOKEN}}" }}
[load]
axis = "concurrency"
levels = [8]
[measure]
warmup = "200ms"
window = "{window}"
blocks = {{ min = 3, max = 3 }}
budget = "{budget}"
profile = "off"
"""
HOST = """
[[host]]
name = "{name}"
roles = ["trial"]
worker = "{name}-worker"
authorised = true
owner = "this test"
"""
TOKEN = "not-for-the-scheduler"
AGREED = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
}


def laboratory(folder: Path, about: str = "", window: str = "1s", budget: str = "240s") -> Path:
    """A folder of this command, with the study, the service and a fleet of two hosts."""
    place(folder, 0.02)
    folder.joinpath("study.toml").write_text(STUDY.format(window=window, budget=budget))
    rows = "".join(HOST.format(name=name) for name in ("one", "two"))
    folder.joinpath("fleet.toml").write_text(f'[fleet]\nname = "laboratory"\n{about}\n{rows}')
    return folder


def place(folder: Path, pace_s: float) -> Path:
    """A folder in which the service serves at that pace."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    folder.joinpath("service.py").write_text(SERVICE)
    folder.joinpath("pace").write_text(str(pace_s))
    return folder


def begun(folder: Path, *more: str) -> subprocess.Popen[str]:
    words = [LOADFRAME, "tune", "study.toml", "--fleet", "fleet.toml", "--json", *more]
    environment = {**os.environ, "LABORATORY_TOKEN": TOKEN}
    return subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that the user of the service may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def begin() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Run `loadframe tune` in a folder; what still runs is ended."""
    processes: list[subprocess.Popen[str]] = []

    def start(folder: Path, *more: str) -> subprocess.Popen[str]:
        processes.append(begun(folder, *more))
        return processes[-1]

    yield start
    for each in processes:
        each.kill()
        each.communicate()


def attempts(folder: Path) -> list[dict[str, Any]]:
    """Those of which the whole line is written."""
    return [
        json.loads(line)
        for path in folder.glob("runs/*/fleet-trials.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.endswith("\n")
    ]


def trial_processes(folder: Path) -> list[int]:
    """Of trials that run in that folder, or below it."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
            if b"loadframe.fleet.trial" in words and (each / "cwd").readlink().is_relative_to(folder):
                found.append(int(each.name))
        except OSError:
            continue
    return found


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_worker_killed_amid_a_trial_loses_it_and_it_is_done_again(
    begin: Callable[..., subprocess.Popen[str]], open_folder: Path
) -> None:
    folder = laboratory(open_folder / "here")
    command = begin(folder, "--trials", "4")

    def tried() -> bool:
        assert command.poll() is None, command.communicate()
        return any(each["purpose"] == "trial" for each in attempts(folder)) and bool(trial_processes(folder))

    await_that(tried, "a trial has ended, and another one runs", 200)
    victim = trial_processes(folder)[0]
    os.kill(parent(victim), signal.SIGKILL)
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


@contextmanager
def engine(folder: Path, paces: dict[str, float], *, agreed: bool = True, token: str = TOKEN) -> Iterator[str]:
    """A scheduler on loopback, and a worker for each host, in a folder of its own: the address."""
    environment = {**os.environ, **(AGREED if agreed else {}), **({"LABORATORY_TOKEN": token} if token else {})}
    with ExitStack() as stack:

        def run(module: str, words: Sequence[str], place: Path) -> None:
            process = subprocess.Popen(
                python(f"distributed.cli.{module}", *words), cwd=place, env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            stack.callback(process.wait)
            stack.callback(process.kill)

        file = folder / "scheduler.json"
        own = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        run("dask_scheduler", own, folder)
        await_that(lambda: file.exists() and file.read_text(encoding="utf-8").endswith("}"), "a scheduler")
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
        for name, pace_s in paces.items():
            words = [address, "--name", f"{name}-worker", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
            run("dask_worker", [*words, "--host", "127.0.0.1"], place(folder / name, pace_s))
        yield address


@pytest.mark.alone
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


def test_a_host_without_a_secret_is_refused(begin: Callable[..., subprocess.Popen[str]], open_folder: Path) -> None:
    with engine(open_folder, {"one": 0.02, "two": 0.02}, token="") as address:
        folder = laboratory(open_folder / "here", f'scheduler = "{address}"')
        command = begin(folder)
        out, said = command.communicate(timeout=120)
    assert command.returncode == 1, f"{out}\n{said}"
    error = json.loads(out)
    assert "lacks the variables LABORATORY_TOKEN" in error["message"] and TOKEN not in out + said
    assert not list(folder.glob("runs/*")), "before anything is measured"


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
