"""A PostgreSQL that runs already is read, not changed, and no secret is shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loadframe.connections import postgres_connection
from loadframe.errors import StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.base import ServerAddress, Target
from loadframe.kinds.postgres import attached as postgres_attached
from loadframe.kinds.postgres.attached import AttachedPostgres, _where, host_of, read_service
from loadframe.kinds.postgres.kind import PostgresTarget
from loadframe.kinds.postgres.session import Control
from loadframe.kinds.registry import attach
from loadframe.model import TargetState
from loadframe.workloads import postgres as drivers
from loadframe.workloads import registry


@pytest.mark.parametrize(
    ("address", "options", "host", "port"),
    [
        ("", {}, "/var/run/postgresql", "5432"),
        ("", {"host": "db", "port": "6000"}, "db", "6000"),
        ("/run/pg", {}, "/run/pg", "5432"),
        ("/run/pg/.s.PGSQL.6001", {}, "/run/pg", "6001"),
        ("db.example", {"port": "6000"}, "db.example", "6000"),
        ("db.example:6002", {"port": "6000"}, "db.example", "6002"),
        ("::1", {}, "::1", "5432"),
    ],
)
def test_an_address_is_a_folder_a_socket_or_a_host(address: str, options: dict[str, str], host: str, port: str) -> None:
    assert _where(address, options) == {"host": host, "port": port}


@pytest.mark.parametrize("port", ["0", "65536", "x", ""])
def test_an_impossible_port_is_refused(port: str) -> None:
    with pytest.raises(StudyError, match="no port"):
        attach(f"postgres:db.example:{port}")


def test_a_server_that_is_not_there_is_said_with_the_way_in(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"attach to .*: no connection to PostgreSQL: .*No such file") as caught:
        attach(f"postgres:{tmp_path}")
    assert "--option-file" in caught.value.remedy


def test_an_option_file_is_a_service_file(tmp_path: Path) -> None:
    path = tmp_path / "service.conf"
    path.write_text("# mine\n[first]\nhost=/run/pg\npassword=a=b%c\n[second]\nhost=other\n")
    assert read_service(path) == {"host": "/run/pg", "password": "a=b%c"}
    path.write_text("host=/run/pg\n")
    with pytest.raises(TargetError, match="not a connection service file"):
        read_service(path)
    with pytest.raises(TargetError, match="Cannot read the option file"):
        read_service(tmp_path / "none")


ELSEWHERE = "203.0.113.7"


@pytest.mark.parametrize(
    ("address", "options", "words"),
    [
        ("/nonexistent,8.8.8.8", {}, "several hosts"),
        ("127.0.0.1,8.8.8.8", {}, "several hosts"),
        ("", {"host": "127.0.0.1,8.8.8.8"}, "several hosts"),
        ("", {"hostaddr": "127.0.0.1,8.8.8.8", "host": "a,b"}, "several hosts"),
        ("/run/pg", {"hostaddr": ELSEWHERE}, "hostaddr"),
        ("", {"host": "/run/pg", "hostaddr": ELSEWHERE}, "hostaddr"),
        ("db.example", {"host": "other", "hostaddr": ELSEWHERE}, "hostaddr"),
    ],
)
def test_what_would_lead_to_two_servers_is_refused(address: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        _where(address, options)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("service=other", "service cannot be given"),
        ("options=-c statement_timeout=0", "options cannot be given"),
        ("dbname=host=203.0.113.7 dbname=x", "connection string"),
        ("dbname=postgresql://203.0.113.7/x", "connection string"),
    ],
)
def test_an_option_file_that_leads_elsewhere_is_refused(tmp_path: Path, line: str, words: str) -> None:
    """pgbench takes a database's name for a whole connection string."""
    path = tmp_path / "service.conf"
    path.write_text(f"[mine]\nhost=127.0.0.1\n{line}\n")
    with pytest.raises(TargetError, match=words):
        host_of("", path)


@pytest.mark.parametrize("name", ["PGHOSTADDR", "PGSERVICE"])
def test_an_environment_that_leads_elsewhere_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libpq goes to PGHOSTADDR also where it is given the path of a socket."""
    monkeypatch.setenv(name, ELSEWHERE)
    with pytest.raises(TargetError, match=f"{name} = '{ELSEWHERE}' is set"):
        attach(f"postgres:{tmp_path}")


def test_load_drivers_are_given_the_address_that_was_decided_and_its_tls(
    tmp_path: Path, names: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    names("db.example", ("127.0.0.1",), (ELSEWHERE,))
    monkeypatch.setattr(Control, "one", lambda *_: (150_000, "15.0", True, 7, "5432"))
    monkeypatch.setattr(postgres_attached, "refuse_pooler", lambda *_: None)
    monkeypatch.setenv("PGHOSTADDR", ELSEWHERE)
    monkeypatch.setenv("PGSERVICE", "other")
    path = tmp_path / "service.conf"
    path.write_text("[mine]\nhost=db.example\nuser=me\nsslmode=verify-full\nsslrootcert=roots.pem\n")
    endpoint = AttachedPostgres(ServerAddress(option_file=path)).endpoint()
    assert drivers.all_parameters(endpoint) == {
        "host": "db.example",
        "hostaddr": "127.0.0.1",
        "port": "5432",
        "user": "me",
        "password": "",
        "dbname": "postgres",
        "sslmode": "verify-full",
        "sslrootcert": str(Path("roots.pem").absolute()),
    }
    given = drivers.environment(endpoint)
    assert given["PGHOSTADDR"] == "127.0.0.1" and "PGSERVICE" not in given
    assert (given["PGSSLMODE"], given["PGSSLROOTCERT"]) == ("verify-full", str(Path("roots.pem").absolute()))


def test_a_file_may_begin_with_a_tilde_that_names_no_user() -> None:
    given = postgres_connection.check_parameters({"sslrootcert": "~no-such-user/roots.pem"}, "option_file")
    assert given == {"sslrootcert": str(Path("~no-such-user/roots.pem").absolute())}


@pytest.mark.long
@pytest.mark.server
def test_drivers_go_to_the_number_and_not_to_the_name(
    lease: Lease, names: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pgbench and sysbench resolve names themselves, and this one is known to our own name server alone."""
    target = PostgresTarget(lease=lease, resources=Resources(), port=0)
    try:
        target.create()
        target.start(TargetState())
        options = target.endpoint().options
        names("db.invalid", ("127.0.0.1",), (ELSEWHERE,))
        path = tmp_path / "service.conf"
        path.write_text(
            f"[mine]\ndbname={options['database']}\nuser={options['user']}\npassword={options['password']}\n"
        )
        server = AttachedPostgres(ServerAddress(f"db.invalid:{options['port']}", option_file=path))
        endpoint = replace(server.endpoint(), attached=False)
        for kind, given in (("pgbench", {"scale": 1}), ("oltp", {"tables": 1, "rows": 10})):
            workload = registry.make(kind, given, Allowance(US))
            workload.install(endpoint)
            workload.set_level(endpoint, 1)
            (folder := tmp_path / kind).mkdir()
            driver = workload.start(endpoint, 1, folder, 0.3)
            try:
                driver.wait(30)
                assert len(driver.requests())
            finally:
                driver.kill()
                workload.remove(endpoint)
        server.close()
    finally:
        target.destroy()


@pytest.mark.long
@pytest.mark.server
def test_settings_asked_for_and_in_use_by_the_socket(postgres: Target) -> None:
    postgres.start(TargetState({"shared_buffers": "24MB"}))
    endpoint = postgres.endpoint()
    server = attach(f"postgres:{endpoint.address}", option_file=Path(endpoint.options["option_file"]))
    try:
        assert server.pid() == postgres.pids()[0]
        assert set(server.pids()) <= set(postgres.pids())
        assert server.local()
        assert server.version() == postgres.version()
        assert server.configured() == {"shared_buffers": 24 << 20}
        assert server.effective()["shared_buffers"] == 24 << 20
        assert {spec.name for spec in server.counter_specs} == server.counters().keys(), "this server tells them all"
        assert endpoint.options["password"] not in server.describe()
    finally:
        server.close()


@pytest.mark.long
@pytest.mark.server
def test_by_the_network_with_a_password_from_the_environment(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    target = PostgresTarget(lease=lease, resources=Resources(), port=0)
    try:
        target.create()
        target.start(TargetState())
        options = target.endpoint().options
        address = f"{options['host']}:{options['port']}"
        monkeypatch.setenv("PGPASSWORD", "wrong")
        with pytest.raises(TargetError, match="password"):
            AttachedPostgres(ServerAddress(address, user=options["user"]))
        monkeypatch.setenv("PGPASSWORD", options["password"])
        server = AttachedPostgres(ServerAddress(address, user=options["user"]))
        assert server.counters()["connections"] >= 1
        assert server.pid() == target.pids()[0], "its address is this machine's own"
        assert os.path.exists(f"/proc/{server.pid()}")  # noqa: PTH110
        server.close()
    finally:
        target.destroy()


@pytest.mark.long
@pytest.mark.server
def test_an_account_that_sees_only_itself_is_told_what_it_needs(postgres: Target) -> None:
    postgres.start(TargetState())
    assert isinstance(postgres, PostgresTarget)
    options = postgres.endpoint().options
    postgres._talk().ask(f"REVOKE pg_monitor FROM {options['user']}")
    with pytest.raises(TargetError, match="may not see what others do") as caught:
        attach(f"postgres:{postgres.endpoint().address}", option_file=Path(options["option_file"]))
    assert "GRANT pg_monitor" in caught.value.remedy
