"""PostgreSQL's own ways: units, reloads, refusals, deaths, and what it takes to leave nothing behind."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loadframe.connections import postgres_connection
from loadframe.errors import MissingTool, StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.leftovers import sweep
from loadframe.host.privilege import NamedUser
from loadframe.host.processes import Resources
from loadframe.kinds import registry
from loadframe.kinds.base import Target
from loadframe.kinds.own_counts import Waited
from loadframe.kinds.postgres import kind as postgres_kind
from loadframe.kinds.postgres.counters import CATALOGUE, WAITING, counted, statement
from loadframe.kinds.postgres.kind import PostgresTarget
from loadframe.kinds.postgres.session import Control, in_our_units
from loadframe.kinds.private_server import PrivateServer
from loadframe.model import Endpoint, TargetState
from waiting import await_that

# --- without a server ---


@pytest.mark.parametrize(
    ("name", "setting", "unit", "read"),
    [
        ("shared_buffers", "16384", "8kB", 2**27),
        ("work_mem", "4096", "kB", 2**22),
        ("max_wal_size", "1024", "MB", 2**30),
        ("wal_buffers", "-1", "8kB", -1),
        ("checkpoint_timeout", "300", "s", 300),
        ("deadlock_timeout", "1000", "ms", 1000),
        ("random_page_cost", "4", None, 4.0),
        ("fsync", "on", None, True),
        ("commit_delay", "0", None, 0),
        ("synchronous_commit", "off", None, "off"),
    ],
)
def test_what_the_server_shows_is_brought_into_our_units(name: str, setting: str, unit: str | None, read: Any) -> None:
    found = in_our_units(CATALOGUE.get(name), setting, unit)
    assert found == read
    assert type(found) is type(read)


def test_waits_are_added_up_between_the_looks() -> None:
    at_s = iter([10.0, 10.5, 11.0, 30.0])
    waited = Waited(WAITING, clock=lambda: next(at_s))
    assert counted({"waiting_lock": 4}, waited)["waiting_lock"] == 0
    assert counted({"waiting_lock": 4}, waited)["waiting_lock"] == 2
    assert counted({"waiting_lock": 0}, waited)["waiting_lock"] == 2
    assert counted({"waiting_lock": 9}, waited)["waiting_lock"] == 2, "of 19 seconds one look says nothing"


def test_the_statement_fits_the_version() -> None:
    assert "pg_stat_checkpointer" in statement(170001)
    assert "pg_stat_checkpointer" not in statement(150018)
    assert "- reserved_connections" in statement(160000)
    assert "- reserved_connections" not in statement(150018)


def test_refused_connections_are_counted_in_whole_lines_of_the_log(lease: Lease) -> None:
    server = PostgresTarget(lease, Resources())
    server.folder.mkdir()

    def refused() -> int:
        return server._log_counts.read()[postgres_kind.REFUSED]

    assert refused() == 0
    line = "2026-11-22 05:00:00.000 GMT [7] 53300 FATAL:  sorry, too many clients already\n"
    server.log.write_text(line + "2026-11-22 05:00:00.000 GMT [7] 00000 LOG:  checkpoint\n" + line[:40])
    assert refused() == 1
    with server.log.open("a") as log:
        log.write(line[40:] + line)
    assert refused() == 3


@pytest.mark.parametrize("name", ["data_directory", "port", "Log-Line-Prefix", "listen_addresses"])
def test_what_keeps_the_instance_private_cannot_be_set(name: str) -> None:
    with pytest.raises(StudyError, match=f"{name}: a private instance sets this itself"):
        PostgresTarget.check_settings({name: "x"})


def test_a_missing_server_is_named_with_how_to_get_it(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_kind, "program", lambda name: None)
    with pytest.raises(MissingTool, match="postgres is not installed") as caught:
        PostgresTarget(lease=lease, resources=Resources()).create()
    assert caught.value.remedy == "apt-get install postgresql"


def test_a_missing_driver_is_named_with_how_to_get_it(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingTool, match="psycopg") as caught:
        PostgresTarget(lease=lease, resources=Resources()).create()
    assert "loadframe[postgres]" in caught.value.remedy


def test_the_newest_version_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_connection, "PACKAGED", tmp_path)
    for version in ("9.6", "15", "9", "17"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        (folder / "postgres").write_text("")
        (folder / "postgres").chmod(0o755)
    assert postgres_connection.program("postgres") == str(tmp_path / "17/bin/postgres")


# --- with one ---


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


@contextmanager
def client(endpoint: Endpoint) -> Iterator[Any]:
    """A load driver's connection."""
    import psycopg

    options = endpoint.options
    given = {name: options[name] for name in ("user", "password", "port")}
    with psycopg.connect(host=options["socket"], dbname=options["database"], autocommit=True, **given) as connection:
        yield connection


@pytest.fixture(scope="module")
def running(pristine: PostgresTarget) -> Iterator[PostgresTarget]:
    """One for the tests that leave it as it is."""
    pristine_folder = pristine.folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADFRAME_STATE", str(pristine_folder.parent / "state"))
        patch.setenv("LOADFRAME_SCRATCH", str(pristine_folder.parent))
        with Lease.acquire("tests that look") as lease:
            patch.undo()
            target = PostgresTarget(lease=lease, resources=Resources())
            target.create(pristine)
            target.start(TargetState())
            yield target
            target.destroy()


@pytest.mark.long
@pytest.mark.server
def test_the_catalogue_says_what_the_server_says(running: PostgresTarget) -> None:
    """Bounds, defaults, units and what takes a restart, for every setting that this version has as the table has it."""
    rows = running._talk().ask("SELECT name, context, vartype, unit, min_val, max_val, boot_val FROM pg_settings")
    found = {name: rest for name, *rest in rows}
    kinds = {"bool": ["boolean"], "enum": ["text"], "real": ["number", "duration"]}
    kinds["integer"] = ["integer", "bytes", "duration"]
    if not running.version().startswith("PostgreSQL 15."):
        pytest.skip(f"the table is that of PostgreSQL 15; here is {running.version()}")
    for spec in CATALOGUE.specs:
        context, vartype, unit, low, high, default = found[spec.name]
        assert spec.kind in kinds[vartype], spec.name
        assert spec.dynamic is (context != "postmaster"), spec.name
        assert in_our_units(spec, default, unit) == spec.default, spec.name
        if spec.kind in ("integer", "bytes", "duration", "number"):
            assert in_our_units(spec, low, unit) == spec.low, spec.name
            assert float(in_our_units(spec, high, unit)) == pytest.approx(spec.high), spec.name


@pytest.mark.server
def test_a_setting_beyond_the_catalogue_is_passed_through_and_read_back(postgres: Target) -> None:
    postgres.start(TargetState({"cursor_tuple_fraction": 0.5, "vacuum_cost_limit": 300}))
    assert postgres.effective()["vacuum_cost_limit"] == 300
    with pytest.raises(StudyError, match="vacuum_cost_limits") as caught:
        postgres.apply(TargetState({"vacuum_cost_limits": 3}))
    assert "vacuum_cost_limit" in caught.value.remedy


@pytest.mark.long
@pytest.mark.server
def test_limits_of_a_state_and_of_the_cage_are_applied(lease: Lease) -> None:
    target = PostgresTarget(lease=lease, resources=Resources(limits={"RLIMIT_NOFILE": 3000}, cpus=frozenset({0})))
    try:
        target.create()
        target.start(TargetState())
        assert target.effective()["RLIMIT_NOFILE"] == 3000
        target.apply(TargetState(limits={"RLIMIT_NOFILE": 2000}))
        assert target.effective()["RLIMIT_NOFILE"] == 2000
        assert {pid for pid in target.pids() if os.sched_getaffinity(pid) != {0}} == set()
    finally:
        target.destroy()


@pytest.mark.server
def test_a_server_that_will_not_start_shows_its_last_log_lines(postgres: Target) -> None:
    with pytest.raises(TargetError, match="would not start") as caught:
        postgres.start(TargetState({"wal_level": "minimal", "max_wal_senders": 10}))
    assert "max_wal_senders" in caught.value.details
    postgres.start(TargetState())
    assert postgres.healthy(), "after the mistake it can be started as it should"


@pytest.mark.server
@pytest.mark.skipif(os.geteuid() != 0, reason="it has a user of its own where root starts it")
def test_what_listens_at_its_socket_must_be_its_user(running: PostgresTarget, tmp_path: Path) -> None:
    """A link in its folder, which is that user's, leads to no server of another user."""
    server = running
    stranger = tmp_path / "stranger"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(stranger))
        listener.listen()
        own = server.socket.with_name("own")
        server.socket.rename(own)
        try:
            server.socket.symlink_to(stranger)
            with pytest.raises(TargetError, match="requirepeer specifies"):
                Control({**running._reach()._where}, lambda: None).ask("SELECT 1")
        finally:
            own.replace(server.socket)


def test_a_process_for_each_connection_is_known(running: PostgresTarget) -> None:
    with client(running.endpoint()) as connection:
        assert connection.info.backend_pid in running.pids()
        assert running.counters()["connections"] == 2, "this one and our own"
    data = Path(running.describe()["data"].split()[0])
    assert running.pids()[0] == int((data / "postmaster.pid").read_text().split()[0])


@pytest.mark.long
@pytest.mark.server
def test_refused_connections_waits_for_locks_and_the_log_are_counted(postgres: Target) -> None:
    import psycopg

    postgres.start(TargetState({"max_connections": 6, "superuser_reserved_connections": 3}))
    before = postgres.counters()
    assert (before["max_connections"], before["connections_allowed"]) == (6, 3)
    with client(postgres.endpoint()) as one, client(postgres.endpoint()) as two:
        with pytest.raises(psycopg.OperationalError, match="connection slots"), client(postgres.endpoint()):
            pass
        one.execute("SELECT pg_advisory_lock(1)")
        two.pgconn.send_query(b"SELECT pg_advisory_lock(1)")
        await_that(lambda: postgres.counters()["lock_waiters"], "one waits for the lock")
        waiting = postgres.counters()
        later = postgres.counters()
        assert later["waiting_lock"] > waiting["waiting_lock"]
        assert later["active"] == 1
        one.execute("SELECT pg_advisory_unlock(1)")
        await_that(lambda: two.pgconn.get_result() is None, "it has the lock")
        after = postgres.counters()
    assert after["connections_refused"] == before["connections_refused"] + 1
    assert after["wal_bytes"] >= before["wal_bytes"]


@pytest.mark.long
@pytest.mark.server
def test_a_death_in_the_middle_is_told_by_every_later_call(postgres: Target) -> None:
    postgres.start(TargetState())
    pid = postgres.pids()[0]
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    assert not postgres.healthy()
    assert postgres.pids() == ()
    for call in (postgres.counters, postgres.effective, postgres.reset, lambda: postgres.apply(TargetState())):
        with pytest.raises(TargetError, match=r"died \(SIGKILL\)") as caught:
            call()
        assert "ready to accept connections" in caught.value.details
    postgres.stop()
    postgres.start(TargetState())
    assert postgres.healthy(), "it recovers from the crash and goes on"


@pytest.mark.long
@pytest.mark.server
def test_counters_go_on_after_the_connection_was_lost(postgres: Target) -> None:
    postgres.start(TargetState({"max_connections": 10}))
    assert isinstance(postgres, PostgresTarget)
    account = postgres.control_account
    where = {"host": postgres.endpoint().address, "user": account.user, "password": account.password}
    other = Control({**where, "dbname": "postgres"}, lambda: None)
    other.ask("SELECT pg_terminate_backend(%s, 5000)", [postgres._talk().pid()])
    other.close()
    assert postgres.counters()["max_connections"] == 10


@pytest.mark.server
def test_the_password_is_in_no_command_line_and_in_no_open_file(running: PostgresTarget) -> None:
    secret = running.endpoint().options["password"].encode()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert secret not in command.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    outside = [path for path in running.folder.rglob("*.*") if path.is_file() and "/data/" not in str(path)]
    holders = [path for path in outside if secret in path.read_bytes()]
    assert [path.name for path in holders] == ["service.conf"]
    assert holders[0].stat().st_mode & 0o777 == 0o600


@pytest.mark.server
def test_the_option_file_lets_a_client_in_and_nobody_comes_in_without_a_password(running: PostgresTarget) -> None:
    import psycopg

    endpoint = running.endpoint()
    environment = {**os.environ, "PGSERVICEFILE": endpoint.options["option_file"]}
    psql = postgres_connection.program("psql") or "psql"
    command = [psql, "service=loadframe", "-Atc", "SELECT current_database(), current_user"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert answer.stdout.split() == ["loadframe|loadframe"], answer.stderr
    for user in ("postgres", "loadframe", "loadframe_control"):
        with pytest.raises(psycopg.OperationalError, match=r"password|role"):
            psycopg.connect(host=endpoint.address, user=user, dbname="postgres", password="")


@pytest.mark.long
@pytest.mark.server
def test_it_listens_nowhere_unless_asked_and_then_on_a_free_port(lease: Lease) -> None:
    target = PostgresTarget(lease=lease, resources=Resources(), port=0)
    try:
        target.create()
        target.start(TargetState())
        host, port = target.endpoint().address.split(":")
        assert host == "127.0.0.1"
        socket.create_connection((host, int(port)), timeout=10).close()
        with client(target.endpoint()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        target.destroy()


OWNER = """
import sys
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.model import TargetState
from loadframe.kinds import registry
lease = Lease.acquire("a study")
target = registry.kind_named("postgres").make(lease, Resources())
target.create()
target.start(TargetState())
import psycopg
options = target.endpoint().options
connection = psycopg.connect(host=options["socket"], user=options["user"], password=options["password"],
                             dbname=options["database"], autocommit=True)
connection.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 100000000000)")
print(lease.folder, *target.pids(), flush=True)
sys.stdin.read()
"""


@pytest.mark.long
@pytest.mark.server
def test_after_kill_9_all_its_processes_are_gone_at_once_and_its_data_with_the_next_sweep(scratch: Path) -> None:
    """Also the one of a connection that is at work: the postmaster is ended so that it ends its children."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout
    folder, *pids = owner.stdout.readline().decode().split()
    owner.kill()
    owner.communicate()
    assert len(pids) > 5
    for pid in pids:
        wait_for_end(int(pid))
    assert Path(folder).exists()
    (swept,) = sweep()
    assert f"removed {folder}" in swept.actions
    assert list(scratch.iterdir()) == []


@pytest.mark.long
@pytest.mark.server
def test_the_shared_memory_of_one_that_was_killed_itself_goes_with_the_next_sweep(scratch: Path) -> None:
    """Nobody was left to remove it: its postmaster was killed, and its children, stopped, did not see it."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout
    folder, *pids = owner.stdout.readline().decode().split()
    maps = [line.split() for pid in pids for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    pieces = {Path(row[5]) for row in maps if len(row) > 5 and row[5].startswith("/dev/shm/PostgreSQL.")}
    segments = {row[4] for row in maps if len(row) > 5 and row[5].startswith("/SYSV")}
    assert pieces and all(piece.exists() for piece in pieces)
    assert segments & _segments()
    postmaster = int((Path(folder) / "postgres/data/postmaster.pid").read_text().split()[0])
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL if int(pid) == postmaster else signal.SIGSTOP)
    owner.kill()
    owner.communicate()
    (swept,) = sweep()
    for pid in pids:
        wait_for_end(int(pid))
    assert f"removed {len(pieces) + 1} pieces of a PostgreSQL's shared memory" in swept.actions
    assert [piece for piece in pieces if piece.exists()] == []
    assert not segments & _segments()


@pytest.mark.long
@pytest.mark.server
def test_the_shared_memory_of_one_that_was_killed_goes_with_its_data(lease: Lease) -> None:
    """Seen: two pieces and a segment stayed of each; the data that say which they are were removed before."""
    target = registry.kind_named("postgres").make(lease, Resources())
    target.create()
    target.start(TargetState())
    (pid_file,) = lease.folder.glob("*/data/postmaster.pid")
    segment = pid_file.read_text().split("\n")[6].split()[1]
    assert segment in _segments()
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
    target.destroy()
    assert segment not in _segments()


def _segments() -> set[str]:
    return {row.split()[1] for row in Path("/proc/sysvipc/shm").read_text().splitlines()}


# --- several ---


@pytest.mark.long
@pytest.mark.server
def test_shards_are_servers_of_their_own_with_the_same_state(lease: Lease) -> None:
    allowances = {"shard1": Resources(), "shard2": Resources(cpus=frozenset({0}))}
    target = registry.make_shards("postgres", lease=lease, resources=allowances)
    try:
        target.create()
        target.start(TargetState({"shared_buffers": "16MB"}))
        endpoint = target.endpoint()
        assert len(endpoint.shards) == 2
        assert endpoint.address == endpoint.shards[0].address
        for number, shard in enumerate(endpoint.shards):
            with client(shard) as connection:
                connection.execute("CREATE SCHEMA loadframe")
                connection.execute(f"CREATE TABLE t AS SELECT {number} AS n")
                assert connection.execute("SELECT n FROM t").fetchone() == (number,)
                assert connection.execute("SHOW shared_buffers").fetchone() == ("16MB",)
        processes = target.processes()
        assert list(processes) == ["shard1", "shard2"]
        assert not set(processes["shard1"]) & set(processes["shard2"])
        assert os.sched_getaffinity(processes["shard2"][0]) == {0}
        assert target.counters()["max_connections"] == 100, "of each, not of both"
        target.apply(TargetState({"shared_buffers": "24MB"}))
        assert target.effective()["shared_buffers"] == 24 << 20
        target.stop()
        assert target.pids() == ()
    finally:
        target.destroy()
    assert list(lease.folder.iterdir()) == []


def test_of_other_kinds_there_is_only_one(lease: Lease) -> None:
    with pytest.raises(StudyError, match="a mariadb cannot have several pieces") as caught:
        registry.make_shards("mariadb", lease=lease, resources=[Resources(), Resources()])
    assert "postgres" in caught.value.remedy


@pytest.mark.long
@pytest.mark.server
def test_memory_that_is_not_there_is_known_before_the_start(postgres: Target) -> None:
    with pytest.raises(TargetError, match="would not start with shared_buffers") as caught:
        postgres.check(TargetState({"shared_buffers": "4GB"}, {"RLIMIT_AS": 1 << 30}))
    assert "Cannot allocate memory" in caught.value.details
    with pytest.raises(TargetError, match="would not start with max_connections"):
        postgres.check(TargetState({"max_connections": 10, "superuser_reserved_connections": 10}))
    postgres.start(TargetState({"max_connections": 10}))


def test_a_server_that_may_start_no_process_is_not_waited_for(lease: Lease) -> None:
    server = PostgresTarget(lease, Resources())
    server.folder.mkdir()
    server.log.write_text("2026-11-23 10:00:00 UTC [1]  LOG:  database system is ready to accept connections\n")
    assert not server.given_up()
    with server.log.open("a") as log:
        log.write("[1] 53200 LOG:  could not fork new process for connection: Resource temporarily unavailable\n")
    assert server.given_up()


def test_a_user_who_is_not_in_our_namespace_is_told(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    server = PrivateServer(lease, "postgres", NamedUser("nobody"), None)
    server.folder.mkdir()
    monkeypatch.setattr(os, "chown", refused)
    with pytest.raises(TargetError, match="this user namespace does not map that user") as told:
        server.give(server.folder)
    assert "--map-auto" in told.value.remedy
