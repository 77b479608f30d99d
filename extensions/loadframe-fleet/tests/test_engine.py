"""dask as the engine of trials: workers of this machine, one of which is killed. No server is started."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from workers import CLOSED
from workers import engine as started

from loadframe.errors import FleetError
from loadframe_fleet.declaration import Fleet, load
from loadframe_fleet.engine import DaskEngine
from loadframe_fleet.on_hosts import Came
from waiting import await_that

HOST = '[[host]]\nname = "{name}"\nroles = ["trial"]\nworker = "{name}"\n'
ASKED: dict[str, Any] = {
    "study": {"no": "study"}, "states": [], "order": [["A", 1.0]], "floors": [], "block": 1, "round": None,
    "step": "trial", "number": 1, "within_s": 60.0,
}  # fmt: skip
"""Its answer is an error, after the second or two in which its process begins."""


def fleet(folder: Path, *names: str) -> Fleet:
    path = folder / "fleet.toml"
    path.write_text('[fleet]\nname = "laboratory"\n' + "".join(HOST.format(name=name) for name in names))
    return load(path)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[DaskEngine]:
    with DaskEngine(fleet(tmp_path, "one", "two")) as entered:
        yield entered


def next_of(engine: DaskEngine) -> Came:
    came = await_that(lambda: engine.came(1.0), "a task ends")
    assert came is not None
    return came


def trials_of(worker: int | None = None) -> dict[int, int]:
    """Processes of trials that our own workers have, and their workers."""
    found = {}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
            fields = (each / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if b"loadframe_fleet.trial" in words and worker in (None, int(fields[1])):
            found[int(each.name)] = int(fields[1])
    return found


def ours(worker: int) -> bool:
    """Whether a process descends from this one."""
    while worker > 1:
        if worker == os.getpid():
            return True
        try:
            worker = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def worker_of_a_trial() -> int:
    return next((worker for worker in trials_of().values() if ours(worker)), 0)


@pytest.mark.long
def test_a_task_is_answered_by_its_host_alone(engine: DaskEngine) -> None:
    assert engine.present() == {"one", "two"}
    engine.begin("two", "a-task", ASKED)
    assert engine.present() == {"one"}, "one slot per host"
    came = next_of(engine)
    assert (came.task, came.host, came.lost) == ("a-task", "two", "")
    assert came.answer is not None and "study" in came.answer["error"]
    assert engine.present() == {"one", "two"}


@pytest.mark.long
def test_a_killed_worker_loses_its_task_once_and_comes_again(engine: DaskEngine) -> None:
    engine.begin("one", "lost", ASKED)
    await_that(worker_of_a_trial, "a trial begins")
    victim = worker_of_a_trial()
    os.kill(victim, signal.SIGKILL)
    came = next_of(engine)
    assert came.task == "lost" and came.answer is None and "its worker has gone" in came.lost
    await_that(lambda: not trials_of(victim) and not worker_of_a_trial(), "its trial has ended itself")
    await_that(lambda: engine.present() == {"one", "two"}, "the worker has come again")
    engine.begin("one", "again", ASKED)
    came = next_of(engine)
    assert (came.task, came.host, came.lost) == ("again", "one", ""), "the lost one does not come again"
    assert engine.came(1.0) is None


class Worker:
    """One that a user has started, always at one port."""

    def __init__(self, folder: Path, scheduler: str, name: str) -> None:
        self._folder, self._scheduler, self._name = folder, scheduler, name
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = str(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, before: str = "pass", threads: str = "1") -> None:
        """In place of the one that runs. before: Python that it runs first."""
        self.end()
        own = ["--name", self._name, "--nthreads", threads, "--worker-port", self._port, "--no-nanny", *CLOSED]
        code = f"{before}; from distributed.cli.dask_worker import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code, self._scheduler, *own], cwd=self._folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


OLDER = "import loadframe_fleet.looking as l; l.__version__ = '0.0.1'"


@pytest.mark.long
def test_a_worker_that_returns_is_looked_at_as_at_first(tmp_path: Path) -> None:
    """Also at the address that it had."""
    said: list[str] = []
    with ExitStack() as stack:
        address = stack.enter_context(started(tmp_path, {}))
        one, two = (Worker(tmp_path, address, name) for name in ("one", "two"))
        for each in (one, two):
            stack.callback(each.end)
            each.start()
        rows = "".join(f'{HOST.format(name=name)}authorised = true\nowner = "this test"\n' for name in ("one", "two"))
        path = tmp_path / "fleet.toml"
        path.write_text(f'[fleet]\nname = "laboratory"\nscheduler = "{address}"\n{rows}')
        engine = stack.enter_context(DaskEngine(load(path), say=said.append))
        assert engine.present() == {"one", "two"}
        for given, told in (
            ({"before": OLDER}, "host 'one': Loadframe is 0.0.1 there"),
            ({"threads": "2"}, "the worker one takes 2 tasks at a time"),
        ):
            one.start(**given)
            await_that(lambda told=told: not engine.present() & {"one"} and told in said[-1], told)  # type: ignore[misc]
            assert "The worker one has returned, and is not used" in said[-1]
            assert engine.present() == {"two"}
        one.start()
        await_that(lambda: engine.present() == {"one", "two"}, "one that is as it was is used again")


@pytest.mark.long
def test_what_is_closed_leaves_no_process(tmp_path: Path) -> None:
    with DaskEngine(fleet(tmp_path, "one", "two")) as engine:
        engine.begin("one", "cut-short", ASKED)
        await_that(worker_of_a_trial, "a trial begins")
        worker = worker_of_a_trial()
    await_that(lambda: not Path(f"/proc/{worker}").exists() and not worker_of_a_trial(), "nothing is left")


@pytest.mark.long
def test_a_worker_that_prints_is_not_held_up(engine: DaskEngine) -> None:
    more_than_a_pipe_takes = b"x" * 200_000
    assert engine._client.submit(os.write, 1, more_than_a_pipe_takes).result(timeout=60) == len(more_than_a_pipe_takes)


@pytest.mark.long
def test_a_stranger_gets_nothing(engine: DaskEngine) -> None:
    """Whatever listens does so on loopback, and tells one without a certificate nothing."""
    me = psutil.Process()
    own = [me, *me.children(recursive=True)]
    ends = [each.laddr for one in own for each in one.net_connections() if each.status == psutil.CONN_LISTEN]
    assert len(ends) >= 5 and {end.ip for end in ends} == {"127.0.0.1"}
    for end in ends:
        for page in (b"/health", b"/info/main/workers.html"):
            assert b"200" not in told(end.port, b"GET %b HTTP/1.0\r\n\r\n" % page).partition(b"\r\n")[0]
        assert told(end.port, b"hello", tls=True) == b""


def told(port: int, asked: bytes, *, tls: bool = False) -> bytes:
    """What comes back, without a certificate of ours."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=2) as stranger:
        try:
            with context.wrap_socket(stranger) if tls else stranger as spoken:
                spoken.sendall(asked)
                return spoken.recv(1 << 12)
        except OSError:
            return b""


def test_one_host_is_no_fleet_for_trials(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="it takes two") as refused:
        DaskEngine(fleet(tmp_path, "one"))
    assert refused.value.remedy
