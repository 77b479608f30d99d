"""A MariaDB that runs already is read, not changed, and no secret is shown."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from loadframe.connections.address import is_here
from loadframe.errors import StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import ServerAddress, Target
from loadframe.kinds.mysql.attached import AttachedMariadb, Control, host_of
from loadframe.kinds.mysql.kind import MariadbTarget
from loadframe.kinds.registry import again, attach
from loadframe.model import TargetState
from loadframe.workloads import mariadb as drivers
from peers import peer


def test_an_unknown_kind_and_an_impossible_port_are_refused() -> None:
    with pytest.raises(StudyError, match="does not begin with a kind"):
        attach("oracle:/x")
    for port in ("0", "65536", "x"):
        with pytest.raises(StudyError, match="no port"):
            attach(f"mariadb:db.example:{port}")


def test_a_server_that_is_not_there_is_said_with_the_way_in(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"Cannot attach to .*: no connection to MariaDB: .*No such file") as caught:
        attach(f"mariadb:{tmp_path}/none.sock")
    assert "--option-file" in caught.value.remedy


ELSEWHERE = "203.0.113.7"


def test_load_drivers_and_reverts_go_to_the_address_that_was_decided(
    names: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    names("db.example", ("127.0.0.1",), (ELSEWHERE,))
    monkeypatch.setattr(Control, "one", lambda *_: ("10.11.6-MariaDB", "elsewhere", "/data"))
    monkeypatch.setattr(Control, "direct", lambda _: True)
    server = AttachedMariadb(ServerAddress("db.example:3307", user="me"))
    assert server.endpoint().address == "127.0.0.1:3307"
    assert drivers.parameters(server.endpoint())["host"] == "127.0.0.1"
    names("db.example", (ELSEWHERE,))
    assert is_here("db.example", afresh=True) is False
    assert again(server.address).endpoint().address == "127.0.0.1:3307", "it is put back where it was changed"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("ssl-crl=x.pem", "ssl_crl of the option file cannot be carried over"),
        ("tls-version=TLSv1.3", "tls_version of the option file"),
        ("protocol=pipe", "protocol = pipe"),
    ],
)
def test_an_option_file_that_asks_for_what_we_cannot_do_is_refused(tmp_path: Path, options: str, words: str) -> None:
    path = tmp_path / "client.cnf"
    path.write_text(f"[client]\nhost=127.0.0.1\n{options}\n")
    with pytest.raises(TargetError, match=words):
        AttachedMariadb(ServerAddress(option_file=path))


def test_a_protocol_says_which_of_a_socket_and_a_host_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "client.cnf"
    for protocol, host in (("", ""), ("protocol=socket", ""), ("protocol=tcp", ELSEWHERE)):
        path.write_text(f"[client]\nsocket=/run/x.sock\nhost={ELSEWHERE}\n{protocol}\n")
        assert host_of("", path) == host


def test_a_server_without_tls_is_not_talked_to_where_the_option_file_asks_for_it(tmp_path: Path) -> None:
    path = tmp_path / "client.cnf"
    path.write_text("[client]\nuser=me\npassword=a-password\nssl\n")
    with peer("mariadb", "silent after login") as hostile, pytest.raises(TargetError, match=r"(?i)ssl|tls"):
        AttachedMariadb(ServerAddress(f"127.0.0.1:{hostile.port}", option_file=path))


@pytest.mark.parametrize("said", ["/dev/zero", "/dev/stdin", "/etc/passwd", "../../../../dev/zero"])
def test_no_file_is_read_without_an_end_at_a_servers_word(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Control, "one", lambda *_: ("10.11.6-MariaDB", "elsewhere", "/data"))
    monkeypatch.setattr(Control, "direct", lambda _: True)
    server = AttachedMariadb(ServerAddress("127.0.0.1", user="me"))
    monkeypatch.setattr(Control, "one", lambda *_: (socket.gethostname(), said, "/dev"))
    assert server.pid() is None


@pytest.mark.long
@pytest.mark.server
def test_settings_asked_for_and_in_use_by_the_socket(mariadb: Target) -> None:
    mariadb.start(TargetState({"table_open_cache": 12000}, {"RLIMIT_NOFILE": 2048}))
    endpoint = mariadb.endpoint()
    server = attach(f"mariadb:{endpoint.address}", option_file=Path(endpoint.options["option_file"]))
    try:
        assert server.pid() == mariadb.pids()[0]
        assert server.local()
        assert "MariaDB" in server.version()
        assert server.configured()["table_open_cache"] == 12000
        assert int(server.effective()["table_open_cache"]) < 2048
        assert {spec.name for spec in server.counter_specs} == server.counters().keys(), "this server tells them all"
        assert endpoint.options["password"] not in server.describe() + repr(vars(server))
    finally:
        server.close()


@pytest.mark.long
@pytest.mark.server
def test_by_the_network_with_a_password_from_the_environment(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    target = MariadbTarget(lease=lease, resources=Resources(), port=0)
    try:
        target.create()
        target.start(TargetState())
        options = target.endpoint().options
        address = f"{options['host']}:{options['port']}"
        monkeypatch.setenv("MYSQL_PWD", "wrong")
        with pytest.raises(TargetError, match="denied"):
            AttachedMariadb(ServerAddress(address, user=options["user"]))
        monkeypatch.setenv("MYSQL_PWD", options["password"])
        server = AttachedMariadb(ServerAddress(address, user=options["user"]))
        assert server.counters()["Threads_connected"] >= 1
        assert server.pid() == target.pids()[0], "its pid file says so, on this machine"
        server.close()
    finally:
        target.destroy()
