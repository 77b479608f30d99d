"""A MariaDB that runs already is read, not changed, and no secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.cage.leases import Lease
from loadframe.cage.processes import Allowance
from loadframe.errors import StudyError, TargetError
from loadframe.model import TargetState
from loadframe.targets.attached import attach
from loadframe.targets.base import Target
from loadframe.targets.mariadb import MariadbTarget
from loadframe.targets.mariadb_attached import AttachedMariadb


def test_an_unknown_kind_and_an_impossible_port_are_refused() -> None:
    with pytest.raises(StudyError, match="does not begin with a kind"):
        attach("oracle:/x")
    for port in ("0", "65536", "x"):
        with pytest.raises(StudyError, match="no port"):
            attach(f"mariadb:db.example:{port}")


def test_a_server_that_is_not_there_is_said_with_the_way_in(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="Cannot attach to") as caught:
        attach(f"mariadb:{tmp_path}/none.sock")
    assert "--option-file" in caught.value.remedy


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


@pytest.mark.server
def test_by_the_network_with_a_password_from_the_environment(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    target = MariadbTarget(lease=lease, allowance=Allowance(), port=0)
    try:
        target.create()
        target.start(TargetState())
        options = target.endpoint().options
        address = f"{options['host']}:{options['port']}"
        monkeypatch.setenv("MYSQL_PWD", "wrong")
        with pytest.raises(TargetError, match="denied"):
            AttachedMariadb(address, user=options["user"])
        monkeypatch.setenv("MYSQL_PWD", options["password"])
        server = AttachedMariadb(address, user=options["user"])
        assert server.counters()["Threads_connected"] >= 1
        assert server.pid() == target.pids()[0], "its pid file says so, on this machine"
        server.close()
    finally:
        target.destroy()
