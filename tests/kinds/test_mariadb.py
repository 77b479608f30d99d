"""MariaDB's own ways: clamped settings, deaths, and what it takes to leave nothing behind."""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from loadframe.connections.mariadb_connection import Reach
from loadframe.errors import MissingTool, StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.leftovers import sweep
from loadframe.host.processes import Resources
from loadframe.kinds.base import Target
from loadframe.kinds.mysql.attached import Control
from loadframe.kinds.mysql.kind import MariadbTarget
from loadframe.model import TargetState
from waiting import await_that

pytestmark = pytest.mark.server


def wait_for_end(pid: int) -> None:
    """Returns when the process has ended, at once where it is gone already."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = poll.poll(30_000)
    os.close(descriptor)
    assert ended, f"process {pid} still runs"


@pytest.mark.long
def test_a_table_cache_beyond_the_open_files_is_cut_and_we_see_it(mariadb: Target) -> None:
    mariadb.start(TargetState({"table_open_cache": 12000}, {"RLIMIT_NOFILE": 2048}))
    effective = mariadb.effective()
    assert effective["RLIMIT_NOFILE"] == 2048
    assert effective["open_files_limit"] == 2048
    cut = effective["table_open_cache"]
    assert isinstance(cut, int)
    assert 400 <= cut < 2048
    assert mariadb.counters()["table_open_cache"] == cut


def test_the_same_state_gives_the_same_effective_values_whatever_came_before(mariadb: Target) -> None:
    few = TargetState({"table_open_cache": 64}, {"RLIMIT_NOFILE": 2048})
    many = TargetState({"table_open_cache": 12000}, {"RLIMIT_NOFILE": 2048})
    mariadb.start(many)
    directly = mariadb.effective()
    mariadb.apply(few)
    mariadb.apply(many)
    assert mariadb.effective() == directly


def test_limits_of_a_state_are_applied_by_a_restart(mariadb: Target) -> None:
    mariadb.start(TargetState(limits={"RLIMIT_NOFILE": 2048}))
    mariadb.apply(TargetState(limits={"RLIMIT_NOFILE": 4096}))
    assert mariadb.effective()["RLIMIT_NOFILE"] == 4096
    assert Path(f"/proc/{mariadb.pids()[0]}/limits").read_text().count("4096") == 2, "soft and hard"


@pytest.mark.long
def test_the_allowance_of_the_cage_holds_where_the_state_says_nothing(lease: Lease) -> None:
    target = MariadbTarget(lease=lease, resources=Resources(limits={"RLIMIT_NOFILE": 3000}, cpus=frozenset({0})))
    try:
        target.create()
        target.start(TargetState())
        assert target.effective()["RLIMIT_NOFILE"] == 3000
        assert os.sched_getaffinity(target.pids()[0]) == {0}
    finally:
        target.destroy()


def test_a_setting_beyond_the_catalogue_is_passed_through_and_read_back(mariadb: Target) -> None:
    mariadb.start(TargetState({"lock_wait_timeout": 77}))
    assert mariadb.effective()["lock_wait_timeout"] == 77


@pytest.mark.parametrize("name", ["datadir", "socket", "init-file", "table_cache"])
def test_what_keeps_the_instance_private_cannot_be_set(name: str) -> None:
    with pytest.raises(StudyError, match=f"{name}: a private instance sets this itself"):
        MariadbTarget.check_settings({name: "x"})


def test_a_server_that_will_not_start_shows_its_last_log_lines(mariadb: Target) -> None:
    with pytest.raises(TargetError, match="would not start") as caught:
        mariadb.start(TargetState({"innodb_page_size": 3}))
    assert "innodb_page_size=3" in caught.value.remedy
    assert "[ERROR] InnoDB" in caught.value.details
    mariadb.start(TargetState())
    assert mariadb.healthy(), "after the mistake it can be started as it should"


def test_a_data_directory_that_it_may_not_read_is_said(mariadb: Target, folder_of_mariadb: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give the folder to another user")
    data = folder_of_mariadb / "mariadb" / "data"
    before = data.stat()
    os.chown(data, os.getuid(), os.getgid())
    data.chmod(0)
    with pytest.raises(TargetError, match="would not start") as caught:
        mariadb.start(TargetState())
    assert "Permission denied" in caught.value.details
    os.chown(data, before.st_uid, before.st_gid)
    data.chmod(stat.S_IMODE(before.st_mode))


def test_a_folder_that_the_servers_user_may_not_enter_is_named(lease: Lease, scratch: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server under another user")
    scratch.chmod(0o700)
    with pytest.raises(TargetError, match=f"may not enter {scratch}"):
        MariadbTarget(lease=lease, resources=Resources()).create()


def test_a_death_in_the_middle_is_told_by_every_later_call(mariadb: Target) -> None:
    mariadb.start(TargetState())
    pid = mariadb.pids()[0]
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    assert not mariadb.healthy()
    assert mariadb.pids() == ()
    for call in (mariadb.counters, mariadb.effective, mariadb.reset, lambda: mariadb.apply(TargetState())):
        with pytest.raises(TargetError, match=r"died \(SIGKILL\)") as caught:
            call()
        assert "ready for connections" in caught.value.details
    assert "ready for connections" in mariadb.log_tail()
    mariadb.stop()
    mariadb.start(TargetState())
    assert mariadb.healthy(), "it recovers from the crash and goes on"


def test_counters_go_on_after_the_connection_was_lost(mariadb: Target) -> None:
    mariadb.start(TargetState({"max_connections": 10}))
    assert isinstance(mariadb, MariadbTarget)
    account = mariadb.control_account
    other = Control(Reach(str(mariadb.socket), user=account.user, password=account.password), mariadb.died)
    ((mine,),) = mariadb._talk().ask("SELECT CONNECTION_ID()")
    other.ask(f"KILL {mine}")
    other.close()
    assert mariadb.counters()["max_connections"] == 10


def test_high_water_marks_and_cached_tables_begin_again(mariadb: Target) -> None:
    import pymysql

    mariadb.start(TargetState())
    options = mariadb.endpoint().options
    arguments = {"unix_socket": options["socket"], "user": options["user"], "password": options["password"]}
    clients = [pymysql.connect(**arguments, database=options["schema"]) for _ in range(4)]
    for number, client in enumerate(clients):
        client.cursor().execute(f"CREATE TABLE t{number} (i INT)")
        client.cursor().execute(f"SELECT * FROM t{number}")
        client.close()
    before = mariadb.counters()
    await_that(lambda: mariadb.counters()["Threads_connected"] == 1, "the server notices the closed connections")
    mariadb.reset()
    after = mariadb.counters()
    assert before["Max_used_connections"] == 5
    assert after["Max_used_connections"] == 1
    assert after["Open_tables"] < before["Open_tables"]


def test_the_password_is_in_no_command_line_and_in_no_open_file(mariadb: Target, folder_of_mariadb: Path) -> None:
    mariadb.start(TargetState())
    secret = mariadb.endpoint().options["password"].encode()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert secret not in command.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    holders = [path for path in folder_of_mariadb.rglob("*.*") if path.is_file() and secret in path.read_bytes()]
    assert [path.name for path in holders] == ["workload.cnf"]
    assert holders[0].stat().st_mode & 0o777 == 0o600


def test_the_option_file_lets_a_client_in(mariadb: Target) -> None:
    mariadb.start(TargetState())
    option_file = mariadb.endpoint().options["option_file"]
    command = ["mariadb", f"--defaults-file={option_file}", "--batch", "-N", "-e", "SELECT DATABASE(), CURRENT_USER()"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stdout.split() == ["loadframe", "loadframe@localhost"], answer.stderr


def test_nobody_comes_in_without_a_password(mariadb: Target) -> None:
    import pymysql

    mariadb.start(TargetState())
    for user in ("root", ""):
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            pymysql.connect(unix_socket=mariadb.endpoint().address, user=user)


@pytest.mark.long
def test_it_listens_nowhere_unless_asked_and_then_on_a_free_port(lease: Lease) -> None:
    target = MariadbTarget(lease=lease, resources=Resources(), port=0)
    try:
        target.create()
        target.start(TargetState())
        host, port = target.endpoint().address.split(":")
        assert host == "127.0.0.1"
        socket.create_connection((host, int(port)), timeout=10).close()
    finally:
        target.destroy()


@pytest.mark.long
def test_a_port_that_is_taken_is_said_before_anything_starts(lease: Lease) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        target = MariadbTarget(lease=lease, resources=Resources(), port=port)
        try:
            target.create()
            with pytest.raises(TargetError, match=f"Port {port} cannot be used: Address already in use"):
                target.start(TargetState())
            assert target.pids() == ()
        finally:
            target.destroy()


def test_a_socket_path_that_the_kernel_would_cut_is_refused(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADFRAME_SCRATCH", str(scratch / ("x" * 80)))
    with Lease.acquire("a test") as lease:
        target = MariadbTarget(lease=lease, resources=Resources())
        with pytest.raises(TargetError, match="107 bytes"):
            target.create()


def test_a_missing_server_is_named_with_how_to_get_it(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadframe.kinds.private_server.installed", lambda name: None)
    with pytest.raises(MissingTool, match="mariadbd is not installed") as caught:
        MariadbTarget(lease=lease, resources=Resources()).create()
    assert caught.value.remedy == "apt-get install mariadb-server"


def test_a_missing_driver_is_named_with_how_to_get_it(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(MissingTool, match="pymysql") as caught:
        MariadbTarget(lease=lease, resources=Resources()).create()
    assert "loadframe[mariadb]" in caught.value.remedy


OWNER = """
import sys
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.model import TargetState
from loadframe.kinds import registry
lease = Lease.acquire("a study")
target = registry.kind_named("mariadb").make(lease, Resources())
target.create()
target.start(TargetState())
print(lease.folder, *target.pids(), flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_after_kill_9_the_server_is_gone_at_once_and_its_data_with_the_next_sweep(scratch: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout
    folder, pid = owner.stdout.readline().decode().split()
    owner.kill()
    owner.communicate()
    wait_for_end(int(pid))
    assert Path(folder).exists()
    (swept,) = sweep()
    assert f"removed {folder}" in swept.actions
    assert list(scratch.iterdir()) == []


@pytest.mark.server
def test_memory_that_is_not_there_is_known_before_the_start(mariadb: Target) -> None:
    """No processor's addresses go so far."""
    with pytest.raises(TargetError, match="would not start with innodb_buffer_pool_size") as caught:
        mariadb.check(TargetState({"innodb_buffer_pool_size": "1P"}))
    assert "[ERROR]" in caught.value.details
    mariadb.start(TargetState({"table_open_cache": 64}))
    assert mariadb.healthy(), "its data and accounts are as they were"
