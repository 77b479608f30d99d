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
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loadframe import lab
from loadframe.bench.attached import AttachedTarget
from loadframe.bench.bench import RealBench
from loadframe.bench.checking import check_study
from loadframe.bench.places import revert
from loadframe.cages import groups
from loadframe.changes import lists
from loadframe.changes.durable import DurableJournal
from loadframe.errors import CageError, ChangeError, StudyError, TargetError
from loadframe.experiments import limits_now, reading
from loadframe.kinds.service.discovery import find
from loadframe.kinds.service.file_settings import OwnFile
from loadframe.kinds.service.target import RunningService
from loadframe.model import TargetState
from loadframe.reporting.answers import answer
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, validate
from waiting import await_that

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
            "config": self.get("/config"),
        }


def started(folder: Path, *more: str, port: int = 0) -> Service:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        port = int(probe.getsockname()[1])
    command = [sys.executable, str(SERVING), "--port", str(port), "--data", str(folder), *more]
    service = Service(subprocess.Popen(command, stdout=subprocess.DEVNULL), port)
    await_that(lambda: answers(service), "the service answers", of=service.process)
    return service


def answers(service: Service) -> bool:
    try:
        return bool(service.get("/config"))
    except OSError:
        return False


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


def changing(service: Service, **tables: Any) -> Study:
    """A study that changes a setting of a service that is the reader's own."""
    return study_of(
        {"listen": service.port, "owned": True, "settings": {"grain": 1}, "setting": {"grain": GRAIN}},
        change=[{"name": "finer", "target": {"settings": {"grain": 3}}}],
        **tables,
    )


def test_another_process_in_its_place_is_told(tmp_path: Path) -> None:
    """Its owner deploys while it is measured, or a supervisor starts it again."""
    one = started(tmp_path)
    running = RunningService(study_of({"listen": one.port}).target)
    assert running.pids() == (one.pid,) and running.notes() == ()
    one.process.kill()
    one.process.wait()
    assert running.pids() == () and running.notes() == (), "it may come back"
    two = started(tmp_path, port=one.port)
    try:
        assert running.pids() == (two.pid,)
        (note,) = running.notes()
        assert f"ended while it was measured (pid {one.pid}), and pid {two.pid} took its place" in note
    finally:
        two.process.kill()
        two.process.wait()


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
        pids = await_that(lambda: (now := found.pids())[1:] not in ((), (worker,)) and now, "another worker")
        assert pids and pids[0] == one.pid
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


@pytest.mark.long
def test_the_quota_of_the_group_that_it_runs_in_is_the_cause(service: Service, tmp_path: Path) -> None:
    """As of a container with a CPU limit: only the port is known."""
    try:
        place = next(each for each in groups.find(["cpu"]) if "cpu" in each.controllers)
    except CageError as error:
        pytest.skip(str(error))
    file, quota = {1: ("cpu.cfs_quota_us", "5000"), 2: ("cpu.max", "5000 100000")}[place.hierarchy.version]
    folder = place.parent / f"loadframe-test-{service.pid}"
    folder.mkdir()
    try:
        (folder / file).write_text(quota, encoding="utf-8")
        (folder / "cgroup.procs").write_text(str(service.pid), encoding="utf-8")
        load = {"axis": "concurrency", "levels": [1, 2, 4]}
        study = study_of({"listen": service.port}, load=load, measure={"window": "600ms", "budget": "30s"})
        found = lab.investigate(study, tmp_path / "runs")
        assert found.rounds[0].findings[0].id == "cgroup.cpu"
        assert found.gain is None
        said = answer(found)
        assert "the CPU quota of the control group around the target is used up" in said
        assert "raise the CPU quota of that control group" in said
    finally:
        (place.hierarchy.own / "cgroup.procs").write_text(str(service.pid), encoding="utf-8")
        assert groups.remove(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="two users")
@pytest.mark.parametrize(("key", "group"), [("unit", "shop.service"), ("container", "shop")])
def test_a_group_that_another_user_made_is_not_taken_for_the_service(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, group: str
) -> None:
    """Below user@UID.service a user makes groups of any name, and moves own processes into them."""
    top = tmp_path / "tree"
    theirs = top / f"a.slice/user@61111.service/app.slice/{group}"
    theirs.mkdir(parents=True)
    (theirs / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")
    for folder in (theirs, theirs.parent, theirs.parent.parent):
        os.chown(folder, 61111, 61111)
    hierarchy = groups.Hierarchy(2, frozenset(), top, top)
    monkeypatch.setattr(groups, "hierarchies", lambda: (hierarchy,))
    named = study_of({key: "shop" if key == "container" else group, "listen": service.port}).target
    with pytest.raises(TargetError, match="belongs to user 61111"):
        find(named)
    ours = top / f"system.slice/{group}"
    ours.mkdir(parents=True)
    (ours / "cgroup.procs").write_text(str(service.pid), encoding="utf-8")
    assert find(named).group == ours


def test_one_in_a_network_of_its_own_is_followed_where_its_address_is_said() -> None:
    """A container's network namespace, made by hand: its ports are not those of this machine."""
    if subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no network namespace can be made here")
    command = ["unshare", "--net", sys.executable, str(SERVING), "--port", "8080"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listening on 8080\n"
            with pytest.raises(TargetError, match="on no port that is seen from here") as caught:
                find(study_of({"pid": process.pid}).target)
            assert "target.listen" in caught.value.remedy
            found = find(study_of({"pid": process.pid, "listen": "127.0.0.1:18080"}).target)
            assert (found.pids(), found.address) == ((process.pid,), "127.0.0.1:18080")
        finally:
            process.kill()


def test_one_that_is_not_there_is_said(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(TargetError, match="listens on port"):
            find(study_of({"listen": probe.getsockname()[1]}).target)
    for named in ({"pid": 2**22 + 1}, {"unit": "gone.service"}, {"container": "gone"}):
        with pytest.raises(TargetError, match="there is no"):
            find(study_of(named).target)


@pytest.mark.long
def test_its_processes_are_the_target_and_it_is_left_as_it_was(
    service: Service, opened: Opened, tmp_path: Path
) -> None:
    before = service.state()
    study = study_of({"listen": service.port, "settings": {"grain": 1}, "setting": {"grain": GRAIN}})
    check_study(study)
    measured = lab.measure(study, tmp_path / "runs")
    steps = reading.open_run(measured.run).steps()
    used = [step.metrics.get("target.cpu.cores", 0.0) for step in steps]
    assert any(used), "a short one may have used less than is counted, or have no sample on a crowded machine"
    assert service.state() == before


def test_one_without_settings_is_well_while_its_port_is_open(service: Service, opened: Opened) -> None:
    """A step in which no request ended says that, and not that the server does not answer."""
    study = study_of({"listen": service.port})
    target = AttachedTarget(study, DurableJournal("a study", opened(study).path))
    assert target.healthy()
    service.process.kill()
    service.process.wait()
    assert not target.healthy()


@pytest.mark.long
def test_a_helper_that_runs_is_a_component_of_its_own(service: Service, tmp_path: Path) -> None:
    (tmp_path / "helper").mkdir()
    helper = started(tmp_path / "helper")
    try:
        beside = {"name": "database", "listen": helper.port}
        measured = lab.measure(study_of({"listen": service.port, "with": [beside]}), tmp_path / "runs")
    finally:
        helper.process.kill()
        helper.process.wait()
    steps = reading.open_run(measured.run).steps()
    assert all(0 <= step.metrics["database.cpu.cores"] < step.metrics["target.cpu.cores"] for step in steps)


RESTART = """
import os, signal, subprocess, sys, time
folder, *command = sys.argv[1:]
pid = int(open(f"{folder}/pid").read())
os.kill(pid, signal.SIGTERM)
while os.path.exists(f"/proc/{pid}") and open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z":
    time.sleep(0.01)
child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         start_new_session=True)
open(f"{folder}/pid", "w").write(str(child.pid))
"""


@dataclass(frozen=True)
class Restartable:
    """A service that reads a file of its owner when it starts, and how its owner restarts it."""

    service: Service
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "app.json"

    def study(self) -> Study:
        service = [sys.executable, str(SERVING), "--port", str(self.service.port), "--config", str(self.file)]
        depth = {
            "values": [1, 4, 9],
            "apply": "file",
            "file": str(self.file),
            "key": "depth",
            "read_back": {"json": "http://127.0.0.1:{port}/config", "field": "depth"},
        }
        return study_of(
            {
                "listen": self.service.port,
                "restart": [sys.executable, "-c", RESTART, str(self.folder), *service],
                "settings": {"depth": 1},
                "setting": {"depth": depth},
            },
            change=[{"name": "deeper", "target": {"settings": {"depth": 9}}}],
        )

    def depth(self) -> object:
        return json.loads(self.service.get("/config"))["depth"]

    def depth_now(self) -> object:
        """None while it does not answer."""
        try:
            return self.depth()
        except OSError:
            return None


@pytest.fixture
def restartable(tmp_path: Path) -> Iterator[Restartable]:
    (tmp_path / "app.json").write_text('{"depth":1,   "mine": "as I like it"}')
    (tmp_path / "app.json").chmod(0o640)
    one = Restartable(started(tmp_path, "--config", str(tmp_path / "app.json")), tmp_path)
    (tmp_path / "pid").write_text(str(one.service.pid))
    yield one
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    one.service.process.wait()


@pytest.mark.long
def test_one_that_may_be_restarted_takes_a_key_of_its_file_and_has_the_file_back(
    restartable: Restartable, tmp_path: Path
) -> None:
    text, mode = restartable.file.read_bytes(), restartable.file.stat().st_mode
    found = lab.ladder(restartable.study(), tmp_path / "runs", keep_all=True)
    run = reading.open_run(Path(found.run))
    assert {step.treatment for step in run.steps()} == {"A", "B"}
    assert not any("took its place" in one for one in found.warnings), "Loadframe restarts it itself"
    assert restartable.depth() == 1
    assert (restartable.file.read_bytes(), restartable.file.stat().st_mode) == (text, mode)
    assert not [path for path in tmp_path.rglob("*") if "loadframe" in path.name]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_file_that_a_killed_command_has_changed_is_set_back(restartable: Restartable, restarted: bool) -> None:
    """Killed before the restart, or after it."""
    text, target = restartable.file.read_bytes(), restartable.study().target
    journal = DurableJournal("a test", restartable.folder)
    server = RunningService(target)
    journal.intend(server, "depth", 9)
    OwnFile(restartable.file, "json", ["depth"]).set("depth", 9)
    if restarted:
        subprocess.run(target.restart, check=True)
        await_that(lambda: restartable.depth_now() == 9, "it has started again")
    assert json.loads(restartable.file.read_bytes())["depth"] == 9
    again = RunningService.again(server.address)
    assert again.read("depth") == 9
    (outcome,) = journal.back(server)
    assert outcome.status == "reverted"
    assert restartable.depth() == 1
    assert restartable.file.read_bytes() == text


def test_what_its_owner_changes_meanwhile_in_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "app.ini"
    path.write_text("[a]\nx = 1\n")
    file = OwnFile(path, "ini", ["a.x"])
    file.set("a.x", 2)
    path.write_text(path.read_text() + "y = 3\n")
    file.set("a.x", 1)
    file.done()
    assert path.read_text() == "[a]\nx = 1\ny = 3\n"
    with pytest.raises(ChangeError, match="no such key"):
        OwnFile(path, "ini", ["a.z"]).set("a.z", 1)
    (tmp_path / "link.ini").symlink_to(path)
    with pytest.raises(ChangeError, match="link"):
        OwnFile(tmp_path / "link.ini", "ini", ["a.x"]).set("a.x", 2)


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


def test_its_limits_are_read_as_it_runs(service: Service) -> None:
    before = service.state()
    study = study_of({"listen": service.port, "settings": {"grain": 1}, "setting": {"grain": GRAIN}})
    found = {limit.id: limit for limit in limits_now.limits(study=study, over_s=0.5).limits}
    assert 0 < found["process.open_files"].use < found["process.open_files"].ceiling
    assert service.state() == before


def test_one_that_is_not_as_its_study_says_is_not_loaded(service: Service, opened: Opened) -> None:
    study = study_of({"listen": service.port, "settings": {"grain": 2}, "setting": {"grain": GRAIN}})
    with (
        pytest.raises(TargetError, match=r"has grain = 1, and target.settings says 2"),
        RealBench(study, opened(study)) as bench,
    ):
        bench.declare("A", "as given", bench.start_state)
        bench.use("A")


def test_a_remedy_for_one_that_is_not_owned_is_refused_and_changes_nothing(service: Service, opened: Opened) -> None:
    before = service.state()
    study = study_of({"listen": service.port, "settings": {"grain": 1}, "setting": {"grain": GRAIN}})
    with RealBench(study, opened(study)) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.declare("B", "finer", TargetState({"grain": 3}))
        bench.use("A")
        with pytest.raises(TargetError, match="is not changed: the study does not say that it is yours"):
            bench.use("B")
        bench.recover("A")
        assert service.state() == before
    assert service.state() == before


@pytest.mark.long
def test_one_that_is_owned_is_changed_and_put_back(service: Service, tmp_path: Path) -> None:
    before = service.state()
    found = lab.ladder(changing(service), tmp_path / "runs", keep_all=True)
    assert [rung.change for rung in found.rungs] == ["finer"]
    assert service.state() == before


def kill_amid(victim: subprocess.Popen[bytes], after_s: float, *, changed: bool) -> None:
    """Kill it after so long, from its beginning or from the moment at which something is changed; it may end before."""
    await_that(lambda: not changed or victim.poll() is not None or lists.read(), "something is changed", 300.0)
    try:
        victim.wait(after_s)
    except subprocess.TimeoutExpired:
        victim.kill()
        victim.wait()


BRIEF = {"window": "300ms", "warmup": "50ms", "blocks": {"min": 2, "max": 2}, "profile": "off", "budget": "20s"}


@pytest.mark.long
@pytest.mark.server
@pytest.mark.timeout(900)
def test_killed_anywhere_it_goes_on_serving_and_is_as_it_was(service: Service, tmp_path: Path) -> None:
    """20 kills of a run that changes a setting again and again, in short steps: a kill may be in any part of it."""
    file, random_ = tmp_path / "study.toml", random.Random()
    study = changing(service, load={"axis": "concurrency", "levels": [1]}, measure=BRIEF)
    file.write_text(study.as_toml(), encoding="utf-8")
    command = [LOADFRAME, "ladder", str(file), "--runs", str(tmp_path / "runs")]
    before, put_back = service.state(), 0
    for number in range(20):
        victim = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        changed = number % 2 == 0
        kill_amid(victim, random_.uniform(0.0, 0.5 if changed else 3.0), changed=changed)
        assert service.get("/") == b"ok\n", f"after kill {number + 1}"
        put_back += len(revert())
        assert service.state() == before, f"after kill {number + 1}"
    assert put_back, "some of the kills were amid a change"
    assert json.loads(before["config"])["grain"] == 1
