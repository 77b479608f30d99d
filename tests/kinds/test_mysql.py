"""MySQL's own ways: two logs that a commit waits for, waits that it tells, and what is MariaDB's instead."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadframe.errors import MissingTool, StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.base import Attached, ServerAddress, Target
from loadframe.kinds.mysql.attached import AttachedMariadb, AttachedMysql, Control
from loadframe.kinds.mysql.counters import MYSQL as COUNTING
from loadframe.kinds.mysql.counters import MYSQL_CATALOGUE as CATALOGUE
from loadframe.kinds.mysql.counters import MYSQL_TUNABLES as TUNABLES
from loadframe.kinds.mysql.kind import MYSQL_PACKAGE as PACKAGE
from loadframe.kinds.mysql.kind import MysqlTarget, options_of
from loadframe.kinds.registry import attach, kind_named
from loadframe.ledger.reading import derive
from loadframe.model import TargetState

VERSIONS = {"mysql": "mysqld  Ver 9.7.4 for Linux", "mariadb": "mysqld  Ver 10.11.14-MariaDB-0+deb12u2 for debian"}


# --- without a server ---


def mysqld(folder: Path, version: str) -> None:
    path = folder / "mysqld"
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)


def test_a_mysqld_that_is_mariadbs_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    mysqld(tmp_path, VERSIONS["mysql"])
    assert PACKAGE.program("mysqld") == str(tmp_path / "mysqld")
    mysqld(tmp_path, VERSIONS["mariadb"])
    assert PACKAGE.program("mysqld") is None
    assert next(each.present for each in kind_named("mysql").requirements()) is None


def test_what_is_missing_is_named_with_how_to_get_it(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadframe.kinds.mysql.kind.installed", lambda name: None)
    with pytest.raises(MissingTool, match="mysqld is not installed") as caught:
        MysqlTarget(lease=lease, resources=Resources()).create()
    assert "scripts/unpack-mysql" in caught.value.remedy
    assert (Path(__file__).parents[2] / "scripts/unpack-mysql").stat().st_mode & 0o111


def test_the_binary_log_is_a_switch_in_a_study_and_a_file_on_the_command_line() -> None:
    assert MysqlTarget.check_settings({"log_bin": "off", "sync-binlog": "7"}) == {"log_bin": False, "sync_binlog": 7}
    assert options_of({"log_bin": False, "innodb_doublewrite": "OFF"}) == ["--skip-log-bin", "--innodb_doublewrite=OFF"]
    assert options_of({"log_bin": True}) == ["--log-bin"]
    with pytest.raises(StudyError, match="log_bin"):
        MysqlTarget.check_settings({"log_bin": "/var/lib/other"})


def test_a_size_of_mariadbs_log_is_no_setting_and_ours_is_named() -> None:
    for name in ("innodb_redo_log_size", "innodb_redo_log_capacit"):
        with pytest.raises(StudyError, match=name) as caught:
            CATALOGUE.check({name: "64M"})
        assert "innodb_redo_log_capacity" in caught.value.remedy


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"innodb_flush_log_at_trx_commit": 2}, "last second of commits"),
        ({"sync_binlog": 1000}, "binary log"),
        ({"log_bin": False}, "rolled forward"),
        ({"innodb_doublewrite": "DETECT_ONLY"}, "torn"),
        ({"innodb_flush_method": "nosync"}, "power loss"),
    ],
)
def test_what_gives_up_durability_is_said(settings: dict[str, str | int | bool], word: str) -> None:
    assert word in (kind_named("mysql").gives_up(settings) or "")


def test_its_defaults_give_up_nothing_and_what_may_be_tuned_is_known() -> None:
    of_replicas = ("sync_relay_log", "sync_source_info")
    defaults = {name: value for name, value in CATALOGUE.defaults().items() if name not in of_replicas}
    assert kind_named("mysql").gives_up(defaults) is None
    for row in TUNABLES:
        for value in row.values:
            CATALOGUE.check({row.name: value})
    safe = {row.name: value for row in TUNABLES for value in row.values}
    assert kind_named("mysql").gives_up(safe) is None


def test_how_full_the_redo_log_is_follows_from_its_capacity() -> None:
    told = {"Innodb_redo_log_logical_size": "30", "Innodb_redo_log_capacity_resized": "120"}
    usable = 120 * 30 / 32 * 0.95
    assert COUNTING.counted(told)["redo_fill"] == pytest.approx(30 / usable)
    assert derive({"mysql.redo_log_capacity": 120.0}, {})[0]["mysql.checkpoint_max_age"] == pytest.approx(usable)
    assert "redo_fill" not in COUNTING.counted({"Questions": "7"})


@pytest.mark.parametrize(
    ("opened", "displaced", "kept"),
    [(0.0, 0.0, 20.0), (900.0, 880.0, 64.0), (900.0, 300.0, 20.0)],
    ids=["no table is opened", "one for one", "most had room"],
)
def test_a_table_cache_whose_instances_in_use_are_full_is_full(opened: float, displaced: float, kept: float) -> None:
    """With 5 connections and 16 instances: 20 of 64 tables were open, and thousands a second were opened again."""
    counted = {
        "open_tables": 20.0,
        "table_open_cache": 64.0,
        "opened_tables": opened,
        "table_cache_overflows": displaced,
    }
    assert derive({f"mysql.{name}": value for name, value in counted.items()}, {})[0]["mysql.tables_kept"] == kept


@pytest.mark.parametrize(("asked", "wanted"), [(0.0, 5000.0), (6000.0, 6000.0), (100.0, 755.0)])
def test_without_an_open_files_limit_it_wants_5000(asked: float, wanted: float) -> None:
    given = {"max_connections": 151.0, "table_open_cache": 64.0, "open_files_limit": asked}
    found, _ = derive({f"mysql.{name}.asked": value for name, value in given.items()}, {})
    assert found["mysql.files_wanted"] == wanted


@pytest.mark.parametrize(
    ("kind", "version", "right"),
    [(AttachedMysql, "10.11.14-MariaDB", "mariadb"), (AttachedMariadb, "9.7.4-2", "mysql")],
)
def test_the_other_one_of_the_family_is_refused(
    kind: type[AttachedMysql | AttachedMariadb], version: str, right: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Control, "one", lambda *_: (version, "elsewhere", "/data"))
    monkeypatch.setattr(Control, "direct", lambda _: True)
    with pytest.raises(TargetError, match=f"not a {kind.name}") as caught:
        kind(ServerAddress("127.0.0.1", user="me"))
    assert right in caught.value.remedy


# --- with one ---


@contextmanager
def attached(target: Target, user: str = "") -> Iterator[Attached]:
    endpoint = target.endpoint()
    where = f"mysql:{endpoint.options['socket']}"
    server = attach(where, option_file=Path(endpoint.options["option_file"]), user=user)
    try:
        yield server
    finally:
        server.close()


@pytest.mark.long
@pytest.mark.mysql
def test_its_logs_are_on_and_it_tells_what_its_threads_wait_for(mysql: MysqlTarget) -> None:
    mysql.start(TargetState())
    effective = mysql.effective()
    assert (effective["log_bin"], effective["sync_binlog"], effective["innodb_flush_log_at_trx_commit"]) == (True, 1, 1)
    before = mysql.counters()
    control = mysql._talk()
    control.ask("CREATE TABLE loadframe.t (id INT PRIMARY KEY)")
    for number in range(20):
        control.ask(f"INSERT INTO loadframe.t VALUES ({number})")
    after = mysql.counters()
    for name in ("wait/io/file/sql/binlog", "wait/io/file/innodb/innodb_log_file"):
        assert before[name] < after[name] < before[name] + 60.0, "seconds"
    assert after["Binlog_cache_use"] >= before["Binlog_cache_use"] + 20
    assert after["Innodb_os_log_fsyncs"] > before["Innodb_os_log_fsyncs"]
    mysql.apply(TargetState({"log_bin": False, "performance_schema": False}))
    assert mysql.effective()["log_bin"] is False
    told = mysql.counters().keys()
    assert told == {spec.name for spec in mysql.counter_specs if not spec.name.startswith("wait/")}
    assert control.ask("SELECT COUNT(*) FROM loadframe.t") == [(20,)] if mysql.healthy() else False


@pytest.mark.long
@pytest.mark.mysql
def test_a_dedicated_server_takes_its_redo_log_from_the_machine_and_keeps_what_is_given(mysql: MysqlTarget) -> None:
    mysql.start(TargetState({"innodb_buffer_pool_size": 64 << 20}))
    as_usual = mysql.effective()
    mysql.apply(TargetState({"innodb_buffer_pool_size": 64 << 20, "innodb_dedicated_server": True}))
    effective = mysql.effective()
    assert (as_usual["innodb_dedicated_server"], effective["innodb_dedicated_server"]) == (False, True)
    assert effective["innodb_buffer_pool_size"] == 64 << 20
    assert as_usual["innodb_redo_log_capacity"] == 100 << 20 != effective["innodb_redo_log_capacity"]


@pytest.mark.long
@pytest.mark.mysql
def test_a_load_driver_comes_in_and_no_other_does(mysql: MysqlTarget) -> None:
    import pymysql

    mysql.start(TargetState())
    options = mysql.endpoint().options
    for user in ("root", ""):
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            pymysql.connect(unix_socket=options["socket"], user=user)
    program = PACKAGE.required("mysqld")
    client = Path(program).with_name("mysql")
    if client.exists():
        command = [str(client), f"--defaults-file={options['option_file']}", "-BN", "-e", "SELECT DATABASE()"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        assert answer.stdout.split() == ["loadframe"], answer.stderr
    secret = options["password"].encode()
    holders = [
        path
        for path in Path(options["option_file"]).parent.rglob("*.*")
        if path.is_file() and secret in path.read_bytes()
    ]
    assert [path.name for path in holders] == ["workload.cnf"]


@pytest.mark.long
@pytest.mark.mysql
def test_a_server_that_runs_already_is_read_and_changed_while_it_runs(mysql: MysqlTarget) -> None:
    mysql.start(TargetState({"table_open_cache": 12000, "innodb_redo_log_capacity": "16M"}, {"RLIMIT_NOFILE": 2048}))
    with attached(mysql) as server:
        assert server.pid() == mysql.pids()[0]
        assert server.version().startswith("MySQL ")
        assert server.configured()["table_open_cache"] == 12000
        assert int(server.effective()["table_open_cache"]) < 2048
        assert {spec.name for spec in server.counter_specs} == server.counters().keys()
        assert mysql.endpoint().options["password"] not in server.describe() + repr(vars(server))
    account = mysql.control_account
    with closing_control(mysql, account.user, account.password) as server:
        assert server.read("innodb_redo_log_capacity") == 16 << 20
        server.write("innodb_redo_log_capacity", 64 << 20)
        assert server.counters()["Innodb_redo_log_capacity_resized"] == 64 << 20, "it has been carried out"
        with pytest.raises(TargetError, match="not in the catalogue"):
            server.write("innodb_log_file_size", 1 << 20)


@contextmanager
def closing_control(target: MysqlTarget, user: str, password: str) -> Iterator[Attached]:
    """With an account that may change settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYSQL_PWD", password)
        server = AttachedMysql(ServerAddress(target.endpoint().options["socket"], user=user))
        try:
            yield server
        finally:
            server.close()


@pytest.mark.long
@pytest.mark.mysql
def test_without_a_right_to_the_performance_schema_its_waits_are_missing(mysql: MysqlTarget) -> None:
    mysql.start(TargetState())
    mysql._talk().ask("CREATE USER 'poor'@'localhost' IDENTIFIED BY 'pass'")
    with closing_control(mysql, "poor", "pass") as server:
        told = server.counters().keys()
        assert told == {spec.name for spec in server.counter_specs if not spec.name.startswith("wait/")}


@pytest.mark.long
@pytest.mark.mysql
def test_a_table_cache_beyond_the_open_files_is_cut_and_we_see_it(mysql: MysqlTarget) -> None:
    mysql.start(TargetState({"table_open_cache": 12000}, {"RLIMIT_NOFILE": 2048}))
    effective = mysql.effective()
    assert effective["open_files_limit"] == effective["RLIMIT_NOFILE"] == 2048
    assert int(effective["table_open_cache"]) < 2048
    few = TargetState({"table_open_cache": 64}, {"RLIMIT_NOFILE": 2048})
    many = TargetState({"table_open_cache": 12000}, {"RLIMIT_NOFILE": 2048})
    mysql.apply(few)
    mysql.apply(many)
    assert mysql.effective() == effective, "whatever came before"


@pytest.mark.long
@pytest.mark.mysql
def test_a_server_that_will_not_start_says_why(mysql: MysqlTarget) -> None:
    with pytest.raises(TargetError, match="would not start") as caught:
        mysql.start(TargetState({"innodb_page_size": "8k"}))
    assert "[ERROR]" in caught.value.details
    mysql.start(TargetState())
    assert mysql.healthy(), "after the mistake it can be started as it should"
