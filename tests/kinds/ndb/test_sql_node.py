"""A SQL node: what is missing without one, and a real one of a private cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loadframe.errors import MissingTool, StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Allowance
from loadframe.kinds.ndb.sql_node import PACKAGE
from loadframe.kinds.ndb.sql_settings import CATALOGUE, checked
from loadframe.kinds.ndb.with_sql import NdbSqlTarget
from loadframe.kinds.registry import kind_named
from loadframe.model import SettingValue, TargetState
from loadframe.workloads import registry as workloads

SMALL: dict[str, SettingValue] = {
    "NoOfReplicas": 2,
    "DataMemory": "20M",
    "NoOfFragmentLogFiles": 4,
    "FragmentLogFileSize": "4M",
    "SharedGlobalMemory": "32M",
    "LongMessageBuffer": "8M",
    "TimeBetweenGlobalCheckpoints": 200,
}
COMPONENTS = ("management", "sql1", "shard1", "shard2")


# --- without a server -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("ndb-cluster-connection-pool 1", True),
        ("innodb-page-size 16384", False),
    ],
)
def test_a_mysqld_without_ndb_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, found: bool) -> None:
    """Its own help tells: the packages mysql-community-server have a mysqld without NDB."""
    program = tmp_path / "mysqld"
    program.write_text(
        f"#!/bin/sh\necho 'mysqld  Ver 9.7.4'; printf '\\nVariables (--variable-name=value)\\n{said}\\n'\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert (PACKAGE.program("mysqld") == str(program)) is found
    assert any(
        need.what == "mysqld" and (need.found is not None) is found for need in kind_named("ndb-sql").requirements()
    )
    if not found:
        with pytest.raises(MissingTool) as caught:
            PACKAGE.required()
        assert "scripts/unpack-mysql" in caught.value.remedy and "mysql-cluster-community-server" in caught.value.remedy


def test_settings_of_the_sql_node_have_its_name_before_them() -> None:
    given: dict[str, SettingValue] = {"SQL-ndb-cluster-connection-pool": "8", "sql_cpus": "3,0-1", "datamemory": "80M"}
    assert checked(given) == {"sql_ndb_cluster_connection_pool": 8, "sql_cpus": "0,1,3", "DataMemory": 80 << 20}
    for name, value in {
        "sql_cpus": "one",
        "sql_default_storage_engine": "InnoDB",
        "sql_ndb_connectstring": "x",
    }.items():
        with pytest.raises(StudyError, match=name):
            checked({name: value})
    assert {"DataMemory", "sql_log_bin", "sql_ndb_force_send"} <= set(CATALOGUE.names())


def test_what_gives_up_durability_is_said() -> None:
    assert "half done" in (kind_named("ndb-sql").gives_up({"sql_ndb_use_transactions": False}) or "")
    assert kind_named("ndb-sql").gives_up({"sql_ndb_cluster_connection_pool": 8}) is None


# --- with one ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def target(lease: Lease) -> Iterator[NdbSqlTarget]:
    """Started, with two data nodes that have the same data."""
    target = NdbSqlTarget(lease, {name: Allowance() for name in COMPONENTS})
    target.create()
    target.start(TargetState({**SMALL, "sql_ndb_cluster_connection_pool": 2}))
    yield target
    target.destroy()


def ask(target: NdbSqlTarget, *statements: str) -> list[Any]:
    """The rows of the last one, over a connection as a load driver has it."""
    import pymysql

    options = target.endpoint().options
    connection = pymysql.connect(
        unix_socket=options["socket"], user=options["user"], password=options["password"], database=options["schema"]
    )
    with closing(connection), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


@pytest.mark.ndb
@pytest.mark.sqlnode
@pytest.mark.server
def test_its_tables_are_in_the_cluster_and_survive_a_data_node_and_the_sql_node(target: NdbSqlTarget) -> None:
    rows = ", ".join(f"({number}, '{'x' * 100}')" for number in range(1000))
    workloads.make("sysbench", {"tables": 1, "table_size": 100}).install(target.endpoint())
    assert "ENGINE=ndbcluster" in ask(target, "SHOW CREATE TABLE sbtest1")[0][1], "its script would name InnoDB"
    made = ask(target, "CREATE TABLE t (id INT PRIMARY KEY, word CHAR(100))", "SHOW CREATE TABLE t")
    assert "ENGINE=ndbcluster" in made[0][1]
    before = target.counters()
    ask(target, f"INSERT INTO t VALUES {rows}", "COMMIT")
    after = target.counters()
    assert after["Ndb_api_pk_op_count"] >= before["Ndb_api_pk_op_count"] + 1000
    assert 0 < after["Ndb_api_wait_nanos_count"] - before["Ndb_api_wait_nanos_count"] < 60, "seconds"
    assert after["ndb_cluster_connection_pool"] == 2
    assert after["Ndb_number_of_ready_data_nodes"] == 2

    (node,) = target.processes()["shard2"]
    os.kill(node, 9)
    os.waitid(os.P_PID, node, os.WEXITED | os.WNOWAIT)
    deadline = time.monotonic() + 30
    while target.counters()["Ndb_number_of_ready_data_nodes"] != 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert ask(target, "SELECT COUNT(*) FROM t") == [(1000,)], "the other one has the same data"
    target.reset()
    assert "shard2 ended once" in " ".join(target.notes())

    (sql,) = target.processes()["sql1"]
    target.apply(TargetState({**SMALL, "sql_ndb_cluster_connection_pool": 3}))
    assert target.processes()["sql1"] != (sql,)
    assert target.effective()["sql_ndb_cluster_connection_pool"] == 3
    assert ask(target, "SELECT COUNT(*) FROM t") == [(1000,)]


@pytest.mark.ndb
@pytest.mark.sqlnode
def test_what_takes_no_restart_of_the_sql_node_restarts_nothing_and_its_end_is_told(target: NdbSqlTarget) -> None:
    processes = target.processes()
    other: dict[str, SettingValue] = {"sql_cpus": "0", "sql_ndb_force_send": False}
    target.apply(TargetState({**SMALL, "sql_ndb_cluster_connection_pool": 2, **other}))
    assert target.processes() == processes
    effective = target.effective()
    assert (effective["sql_cpus"], effective["sql_ndb_force_send"]) == ("0", False)
    (sql,) = processes["sql1"]
    assert {str(os.sched_getaffinity(int(thread.name))) for thread in Path(f"/proc/{sql}/task").iterdir()} == {"{0}"}
    os.kill(sql, 9)
    os.waitid(os.P_PID, sql, os.WEXITED | os.WNOWAIT)
    assert not target.healthy()
    with pytest.raises(TargetError, match="SQL node died"):
        target.counters()
