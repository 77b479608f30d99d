"""A watch by root keeps to whose service it is: its programs run as that user whatever becomes of the service, and
another user's process in the service's place is not taken for it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import loadframe
from loadframe.errors import StudyError, TargetError
from loadframe.host.privilege import FREE, free_user, of_uid
from loadframe_watch.daemon import RealReader
from loadframe_watch.find import Finder, Ports, how_to_find, listening_users
from loadframe_watch.records import WatchPlan
from loadframe_watch.sampling import Look
from loadframe_watch.sources import DatabaseCounters, run
from loadframe_watch.starting import of_study
from loadframe_watch.unit import work_of
from waiting import await_that

SYSTEM_PYTHON = Path("/usr/bin/python3")
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or free_user() is None or not SYSTEM_PYTHON.exists(), reason="root, two more users, their Python"
)
LOADFRAME = str(Path(sys.executable).with_name("loadframe"))
ANSWERS = """
import http.server, socket, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"jobs 7\\n")
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
print(server.server_port, flush=True)
server.serve_forever()
"""
GREETS = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    os.chmod(sys.argv[1], 0o777)
    listener.listen()
    if os.fork():
        os._exit(0)
    listener.settimeout(60)
    print("ready", flush=True)
    connection, _ = listener.accept()
    greeting = (
        b"\\x0a10.11.6-MariaDB\\0" + bytes(4) + b"12345678\\0" + b"\\xff\\xf7\\x2d\\x02\\0\\xff\\x81\\x15" + bytes(10)
        + b"123456789012\\0mysql_native_password\\0"
    )
    connection.settimeout(60)
    told = b""
    try:
        connection.sendall(len(greeting).to_bytes(3, "little") + b"\\0" + greeting)
        told = connection.recv(1000)
    except ConnectionError:
        pass
    print(len(told), flush=True)
"""
STUDY = """
[study]
name = "watched"
question = "Who runs the unit of work?"
[target]
kind = "service"
listen = "127.0.0.1:{port}"
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 2]
[measure]
budget = "10s"
[watch]
every = "1s"
unit = ["/bin/sh", "-c", "id -u >> {log}"]
"""


@dataclass
class Users:
    """Who runs the service, and a stranger."""

    service: int
    stranger: int


@pytest.fixture
def users() -> Users:
    service = free_user()
    assert service is not None
    return Users(service, next(uid for uid in FREE if uid != service))


@contextmanager
def answering(uid: int, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process of this user that answers by HTTP, and its port."""
    command = [str(SYSTEM_PYTHON), "-I", "-S", "-c", ANSWERS, str(port)]
    with subprocess.Popen(
        command, user=uid, group=uid, extra_groups=[], cwd="/", stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter."""
    folder = Path(tempfile.mkdtemp(prefix="lf-watch-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.long
@pytest.mark.timeout(150)
def test_a_unit_of_work_runs_as_the_service_user_also_once_the_service_is_gone(open_folder: Path, users: Users) -> None:
    log, study = open_folder / "log", open_folder / "study.toml"
    log.touch()
    os.chown(log, users.service, users.service)
    command = [LOADFRAME, "watch", str(study), "--interval", "1s", "--folder", str(open_folder / "w")]
    with ExitStack() as stack:
        service, port = stack.enter_context(answering(users.service))
        study.write_text(STUDY.format(port=port, log=log), encoding="utf-8")
        watch = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        stack.callback(watch.kill)
        await_that(lambda: len(log.read_text().splitlines()) >= 2, "runs of the unit of work")
        service.kill()
        service.wait()
        before = len(log.read_text().splitlines())
        await_that(lambda: len(log.read_text().splitlines()) >= before + 3, "runs of the unit of work")
        watch.send_signal(signal.SIGTERM)
        watch.wait(20)
    assert set(log.read_text().split()) == {str(users.service)}


def test_where_the_user_is_not_known_root_runs_nothing(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="not run: who runs the service is not known"):
        run(["touch", str(tmp_path / "ran")], None, within_s=20.0)
    assert not (tmp_path / "ran").exists()
    text = STUDY.format(port=1, log=tmp_path / "log").replace(
        'kind = "service"\nlisten = "127.0.0.1:1"', 'kind = "url"\n[target.settings]\nurl = "http://127.0.0.1:1"'
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match="would be run as root"):
        of_study(loadframe.load_study(tmp_path / "study.toml", []), interval_s=1.0)


def plan_of(pid: int, port: int) -> WatchPlan:
    source = {"form": "prometheus", "url": f"http://127.0.0.1:{port}/", "host": "127.0.0.1", "port": None, "path": "/",
              "select": [], "counters": []}  # fmt: skip
    unit = {"form": "http", "host": "127.0.0.1", "port": port, "path": "/", "headers": [], "expect": None}
    return WatchPlan(
        "a service", "", find={**how_to_find(pid), "listen": ["", port]}, sources=(source,), unit=unit, interval_s=10.0,
        port_users={str(port): tuple(listening_users(port))},
    )  # fmt: skip


def test_another_users_process_at_the_port_is_not_taken_for_the_service(
    users: Users, capfd: pytest.CaptureFixture[str]
) -> None:
    with answering(users.service) as (service, port):
        plan = plan_of(service.pid, port)
        ports = Ports(plan.port_users, plan.find)
        work = work_of(plan.unit, of_uid(users.service), ports)
        reader = RealReader(plan)
        values, there = reader.read(1e4)
        assert there and values["service.jobs"] == 7 and work() == ""
    with answering(users.stranger, port) as (other, _):
        values, there = reader.read(2e4)
        assert not there and reader.pids() == () and "service.jobs" not in values
        said = capfd.readouterr().err
        assert f"port {port} is held by process {other.pid}" in said and f"user {users.stranger}" in said
        with pytest.raises(TargetError, match=f"is held by user {users.stranger} now"):
            work()
    with answering(users.service, port) as (again, _):
        values, there = reader.read(3e4)
        assert there and reader.pids() == (again.pid,) and values["service.jobs"] == 7 and work() == ""
    reader.close()
    ports.close()


def test_a_port_taken_from_a_service_that_still_runs_is_not_asked(
    users: Users, capfd: pytest.CaptureFixture[str]
) -> None:
    """It has closed its socket, and another user has bound the port."""
    with answering(users.stranger) as (_, port), subprocess.Popen(["sleep", "60"], user=users.service) as service:
        plan = plan_of(service.pid, port)
        reader = RealReader(WatchPlan(**{**plan.as_record(), "port_users": {str(port): [users.service]}}))
        values, there = reader.read(100.0)
        reader.close()
        service.kill()
    assert there and "service.jobs" not in values
    assert f"port {port} is held by user {users.stranger} now, before by user {users.service}" in capfd.readouterr().err


def test_a_database_socket_of_another_user_is_told_no_password(open_folder: Path, users: Users) -> None:
    """Who has begun to listen there has ended, and a child of that process answers."""
    path = open_folder / "run" / "mysqld.sock"
    path.parent.mkdir()
    os.chown(path.parent, users.stranger, users.stranger)
    address = {"kind": "mariadb", "address": str(path), "option_file": "", "user": "watch", "number": ""}
    counters = DatabaseCounters(address, Ports({}, {"uids": (users.service,) * 3}))
    command = [str(SYSTEM_PYTHON), "-I", "-S", "-c", GREETS, str(path)]
    with subprocess.Popen(
        command, user=users.stranger, group=users.stranger, extra_groups=[], cwd="/", stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "ready\n"
        with pytest.raises(TargetError) as refused:
            counters.look(Look(0.0))
        counters.close()
        assert other.stdout.readline() == "0\n", "bytes that it was told"
    assert f"is held by user {users.stranger}, and the service is that of user {users.service}" in str(refused.value)


def test_the_same_command_line_of_another_user_is_not_the_service(users: Users) -> None:
    with subprocess.Popen(["sleep", "61.5"], user=users.service) as service:
        finder = Finder(how_to_find(service.pid))
        assert finder.pids() == (service.pid,)
        service.kill()
    with subprocess.Popen(["sleep", "61.5"], user=users.stranger) as other:
        assert finder.pids() == ()
        other.kill()


def test_of_another_program_of_its_user_it_is_said_which_one_it_was(users: Users) -> None:
    with answering(users.service) as (service, port):
        find = {**how_to_find(service.pid), "pid": None, "listen": ["", port]}
        same, other = Finder(find), Finder({**find, "program": "/usr/sbin/before"})
        assert same.pids() == other.pids() == (service.pid,)
    assert same.words == ""
    assert other.words == f"The service is process {service.pid} of {find['program']} now, before of /usr/sbin/before."


def test_the_users_of_the_sockets_at_a_port_are_told(users: Users) -> None:
    with answering(users.stranger) as (_, port):
        assert listening_users(port) == {users.stranger}
    with socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))
        assert listening_users(ours.getsockname()[1]) == frozenset()
        ours.listen()
        assert listening_users(ours.getsockname()[1]) == {0}
