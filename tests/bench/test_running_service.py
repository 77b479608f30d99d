"""A service that runs already: found by its pid, its port or its control group, followed with all its processes, and
left bit for bit as it was, also where Loadframe is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loadframe import lab
from loadframe.bench.bench import RealBench
from loadframe.bench.checking import check_study
from loadframe.bench.places import revert
from loadframe.cages import groups
from loadframe.changes import lists
from loadframe.errors import StudyError, TargetError
from loadframe.kinds.service.finding import find
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, validate

Opened = Callable[[Study], RunFolder]
LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
SERVING = Path(__file__).parents[1] / "kinds" / "serving.py"
TELL = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10).read()"
GRAIN: dict[str, Any] = {
    "values": [1, 2, 3],
    "apply": "command",
    "command": [sys.executable, "-c", TELL, "http://127.0.0.1:{port}/set/grain={value}"],
    "read_back": {"json": "http://127.0.0.1:{port}/config", "field": "grain"},
}


@dataclass(frozen=True)
class Service:
    """One that somebody else has started."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def pid(self) -> int:
        return self.process.pid

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return bytes(answer.read())

    def state(self) -> dict[str, Any]:
        """All that Loadframe could have changed of it."""
        proc = Path(f"/proc/{self.pid}")
        tasks = sorted(int(each.name) for each in (proc / "task").iterdir())
        return {
            "environment": (proc / "environ").read_bytes(),
            "arguments": (proc / "cmdline").read_bytes(),
            "limits": (proc / "limits").read_text(encoding="utf-8"),
            "groups": (proc / "cgroup").read_text(encoding="utf-8"),
            "affinity": [sorted(os.sched_getaffinity(self.pid))],
            "nice": os.getpriority(os.PRIO_PROCESS, self.pid),
            "signals": [
                line
                for line in (proc / "status").read_text(encoding="utf-8").splitlines()
                if line.startswith(("SigBlk", "SigIgn", "SigCgt", "Uid", "Gid", "Groups"))
            ],
            "started": (proc / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19],
            "first task": tasks[0],
            "config": self.get("/config"),
        }


def started(folder: Path, *more: str) -> Service:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, str(SERVING), "--port", str(port), "--data", str(folder), *more]
    service = Service(subprocess.Popen(command, stdout=subprocess.DEVNULL), port)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            service.get("/config")
        except OSError:
            continue
        return service
    raise AssertionError("the service of the test did not start")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "set-grain").write_text("1", encoding="utf-8")
    one = started(tmp_path)
    yield one
    one.process.kill()
    one.process.wait()


def study_of(target: dict[str, Any], **tables: Any) -> Study:
    return validate(
        {
            "study": {"name": "running", "question": "What gives?"},
            "target": {"kind": "service", **target},
            "workload": {"kind": "http"},
            "load": {"axis": "concurrency", "levels": [1, 2]},
            "measure": {"window": "300ms", "blocks": {"min": 2, "max": 2}, "budget": "20s"},
            **tables,
        }
    )


def changing(service: Service) -> Study:
    """A study that changes a setting of a service that is the reader's own."""
    return study_of(
        {"listen": service.port, "owned": True, "settings": {"grain": 1}, "setting": {"grain": GRAIN}},
        change=[{"name": "finer", "target": {"settings": {"grain": 3}}}],
    )


def test_it_is_found_by_its_pid_and_by_its_port_with_all_its_processes(tmp_path: Path) -> None:
    one = started(tmp_path, "--habit", "supervisor")
    try:
        for named in ({"pid": one.pid}, {"listen": one.port}):
            found = find(study_of(named).target)
            worker = found.pids()[-1]
            assert found.address == f"127.0.0.1:{one.port}"
            assert (found.pids()[0] == one.pid) == ("pid" in named)
        found = find(study_of({"pid": one.pid}).target)
        os.kill(worker, signal.SIGKILL)
        while len(found.pids()) < 2 or found.pids()[1] == worker:
            assert found.pids()[0] == one.pid
    finally:
        os.kill(one.pid, signal.SIGSTOP)
        for pid in find(study_of({"pid": one.pid, "listen": one.port}).target).pids()[::-1]:
            os.kill(pid, signal.SIGKILL)
        one.process.wait()


@pytest.mark.parametrize(
    ("key", "name", "group"),
    [
        ("unit", "loadframe-test.service", "loadframe-test.service"),
        ("container", "loadframe-test", "loadframe-test"),
        ("container", "0123456789ab", f"docker-{'0123456789ab' * 5}.scope"),
    ],
)
def test_it_is_found_by_the_control_group_of_its_unit_or_its_container(
    service: Service, key: str, name: str, group: str
) -> None:
    """A group made by hand stands in for the one that systemd or an engine makes."""
    place = next((each for each in groups.hierarchies() if os.access(each.own, os.W_OK)), None)
    if place is None:
        pytest.skip("no control group can be made here")
    folder = place.top / group
    try:
        folder.mkdir()
        (folder / "cgroup.procs").write_text(str(service.pid), encoding="utf-8")
    except OSError as error:
        folder.rmdir() if folder.is_dir() else None
        pytest.skip(f"no control group can be made here: {error}")
    try:
        found = find(study_of({key: name}).target)
        assert found.pids() == (service.pid,)
        assert found.address == f"127.0.0.1:{service.port}"
    finally:
        (place.own / "cgroup.procs").write_text(str(service.pid), encoding="utf-8")
        folder.rmdir()


def test_one_that_is_not_there_is_said(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(TargetError, match="listens on port"):
            find(study_of({"listen": probe.getsockname()[1]}).target)
    for named in ({"pid": 2**22 + 1}, {"unit": "gone.service"}, {"container": "gone"}):
        with pytest.raises(TargetError, match="there is no"):
            find(study_of(named).target)


def test_its_processes_are_the_target_and_it_is_left_as_it_was(
    service: Service, opened: Opened, tmp_path: Path
) -> None:
    before = service.state()
    study = study_of({"listen": service.port, "settings": {"grain": 1}, "setting": {"grain": GRAIN}})
    check_study(study)
    measured = lab.measure(study, tmp_path / "runs")
    steps = lab.open_run(measured.run).steps()
    assert all(step.metrics["target.cpu.cores"] > 0 for step in steps)
    assert service.state() == before


def test_a_helper_that_runs_is_a_component_of_its_own(service: Service, tmp_path: Path) -> None:
    (tmp_path / "helper").mkdir()
    helper = started(tmp_path / "helper")
    try:
        beside = {"name": "database", "listen": helper.port}
        measured = lab.measure(study_of({"listen": service.port, "with": [beside]}), tmp_path / "runs")
    finally:
        helper.process.kill()
        helper.process.wait()
    steps = lab.open_run(measured.run).steps()
    assert all(0 <= step.metrics["database.cpu.cores"] < step.metrics["target.cpu.cores"] for step in steps)


@pytest.mark.parametrize(
    ("target", "tables", "said"),
    [
        ({}, {"cage": {"memory": "1GiB"}}, "control groups"),
        ({}, {"cage": {"nice": 5}}, "changes nice"),
        ({"environment": {"A": "b"}}, {}, "that Loadframe starts"),
        ({"command": ["app", "{port}"], "pid": 1}, {}, "name two services"),
        ({"config": "/etc/app.conf"}, {}, "running database"),
        ({"listen": "192.0.2.1:80"}, {}, "not this machine"),
        (
            {"settings": {"grain": 1}, "setting": {"grain": GRAIN}},
            {"change": [{"name": "finer", "target": {"settings": {"grain": 3}}}]},
            "changes grain of a running service",
        ),
        (
            {"owned": True, "settings": {"grain": 1}, "setting": {"grain": {**GRAIN, "read_back": None}}},
            {"change": [{"name": "finer", "target": {"settings": {"grain": 3}}}]},
            "has no read_back",
        ),
        (
            {"owned": True, "setting": {"pool": {"values": [1, 2], "apply": "environment"}}},
            {"change": [{"name": "more", "target": {"settings": {"pool": 2}}}]},
            'by apply = "command" only',
        ),
    ],
)
def test_what_is_not_done_to_a_running_service_is_refused(
    service: Service, target: dict[str, Any], tables: dict[str, Any], said: str
) -> None:
    with pytest.raises(StudyError, match=said):
        check_study(study_of({"listen": service.port, **target}, **tables))


def test_one_that_is_not_as_its_study_says_is_not_loaded(service: Service, opened: Opened) -> None:
    study = study_of({"listen": service.port, "settings": {"grain": 2}, "setting": {"grain": GRAIN}})
    with (
        pytest.raises(TargetError, match=r"has grain = 1, and target.settings says 2"),
        RealBench(study, opened(study)) as bench,
    ):
        bench.declare("A", "as given", bench.start_state)
        bench.use("A")


def test_one_that_is_owned_is_changed_and_put_back(service: Service, tmp_path: Path) -> None:
    before = service.state()
    found = lab.ladder(changing(service), tmp_path / "runs", keep_all=True)
    assert [rung.change for rung in found.rungs] == ["finer"]
    assert service.state() == before


def kill_amid(victim: subprocess.Popen[bytes], after_s: float, *, changed: bool) -> None:
    """Kill it after so long, from its beginning or from the moment at which something is changed; it may end before."""
    while changed and victim.poll() is None and not lists.read():
        pass
    try:
        victim.wait(after_s)
    except subprocess.TimeoutExpired:
        victim.kill()
        victim.wait()


@pytest.mark.server
@pytest.mark.timeout(900)
def test_killed_anywhere_it_goes_on_serving_and_is_as_it_was(service: Service, tmp_path: Path) -> None:
    """20 kills of a run that changes a setting again and again."""
    file, random_ = tmp_path / "study.toml", random.Random()
    file.write_text(changing(service).as_toml(), encoding="utf-8")
    command = [LOADFRAME, "ladder", str(file), "--runs", str(tmp_path / "runs")]
    before, put_back = service.state(), 0
    for number in range(20):
        victim = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        changed = number % 2 == 0
        kill_amid(victim, random_.uniform(0.0, 2.0 if changed else 6.0), changed=changed)
        assert service.get("/") == b"ok\n", f"after kill {number + 1}"
        put_back += len(revert())
        assert service.state() == before, f"after kill {number + 1}"
    assert put_back, "some of the kills were amid a change"
    assert json.loads(before["config"])["grain"] == 1
