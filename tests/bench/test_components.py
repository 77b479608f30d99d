"""A program that the target connects to works for it: it is found, named with its share of the CPUs, and no stranger.
The target's clients stay strangers."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe import lab
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.behind import Components, component_of
from loadframe.kinds.postgres.kind import PostgresTarget
from loadframe.model import OTHERS, TargetState
from loadframe.reporting.quality_words import companion_sentence
from loadframe.runs.folder import RunFolder
from loadframe.study import validate
from waiting import await_that

ASKING = Path(__file__).with_name("asking.py")


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return bool(answer.read())
    except OSError:
        return False


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a service with its own PostgreSQL, both of which run already."""
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LOADFRAME_SCRATCH", "/var/tmp")
    with Lease.acquire("the database of a service") as lease:
        database = PostgresTarget(lease=lease, resources=Resources())
        database.create()
        database.start(TargetState())
        told = database.endpoint()
        dsn = " ".join(
            f"{name}={value}"
            for name, value in {
                "host": told.address,
                "port": told.options["port"],
                "user": told.options["user"],
                "password": told.options["password"],
                "dbname": told.options["database"],
            }.items()
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            free = int(probe.getsockname()[1])
        service = subprocess.Popen([sys.executable, str(ASKING), str(free), dsn])
        try:
            await_that(lambda: answers(free), "the service answers", of=service)
            yield free
        finally:
            service.kill()
            service.wait()
            database.destroy()


@pytest.mark.long
@pytest.mark.server
def test_the_database_of_a_service_is_named_and_nothing_asks_to_end_it(port: int, tmp_path: Path) -> None:
    study = validate(
        {
            "study": {"name": "asking", "question": "What limits it?"},
            "target": {"kind": "service", "listen": port},
            "workload": {"kind": "http"},
            "load": {"axis": "concurrency", "levels": [1, 2, 4]},
            "measure": {"window": "500ms", "budget": "20s", "blocks": {"min": 2, "max": 2}},
        }
    )
    inv = lab.investigate(study, tmp_path)
    steps = [step for step in RunFolder.open(Path(inv.run)).steps() if step.level == 4]
    assert all(step.metrics["postgres.cpu.cores"] > step.metrics["target.cpu.cores"] for step in steps)
    for seen in (step.metrics for step in steps):
        strangers = seen["system.cpu.foreign"] * seen["system.cpu.count"]
        assert strangers <= seen["system.cpu.busy_cores"] - 0.9 * seen["postgres.cpu.cores"], "it is none of them"
    if not any("stranger" in step.flags for step in RunFolder.open(Path(inv.run)).steps()):
        assert OTHERS not in {finding.id for round_ in inv.rounds for finding in round_.findings}
    named = inv.quality.companions[0]
    assert named.name == "postgres" and named.load == 4
    assert "postgres, which the target connects to, used" in companion_sentence(named)


SERVES = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
server.settimeout(30)
print(server.getsockname()[1], flush=True)
taken = server.accept()
print("taken", flush=True)
time.sleep(60)
"""
CALLS = "import socket, sys, time; made = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"


def test_who_connects_to_the_target_is_no_component_of_it() -> None:
    """Seen from the server nobody works for it, from its client the server does."""
    with subprocess.Popen([sys.executable, "-c", SERVES], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            client = subprocess.Popen([sys.executable, "-c", CALLS, server.stdout.readline().strip()])
            try:
                assert server.stdout.readline() == "taken\n"
                of_server, of_client = Components(), Components()
                of_server.look([server.pid])
                of_client.look([client.pid])
                assert of_server.processes(()) == {}
                ((name, pids),) = of_client.processes(()).items()
                assert pids == (server.pid,)
                assert name.startswith("python")
            finally:
                client.kill()
                client.wait()
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("program", "name"),
    [("postgres", "postgres"), ("PM2 v5.3", "pm2-v5-3"), ("nginx", "nginx-behind"), ("7z", "z"), ("...", "program")],
)
def test_a_program_names_its_component(program: str, name: str) -> None:
    assert component_of(program, ("nginx",)) == name
