"""A SQL node: what is missing without one, and a real one of a private cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from loadframe.bench.checking import check_study
from loadframe.errors import MissingTool, StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, Resources
from loadframe.kinds.registry import components, kind_named
from loadframe.ledger.reading import derive
from loadframe.model import Endpoint, SettingValue, TargetState
from loadframe.study import parse
from loadframe.workloads import registry as workloads
from loadframe_ndb.own_settings import SQL_CATALOGUE, checked_with_sql
from loadframe_ndb.sql_node import PACKAGE, added_up
from loadframe_ndb.target import NdbSqlTarget
from waiting import await_that

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


# --- without a server ---


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
        need.what == "mysqld" and (need.present is not None) is found for need in kind_named("ndb-sql").requirements()
    )
    if not found:
        with pytest.raises(MissingTool) as caught:
            PACKAGE.required()
        assert "scripts/unpack-mysql" in caught.value.remedy and "mysql-cluster-community-server" in caught.value.remedy


def test_settings_of_the_sql_node_have_its_name_before_them() -> None:
    given: dict[str, SettingValue] = {"SQL-ndb-cluster-connection-pool": "8", "sql_cpus": "3,0-1", "datamemory": "80M"}
    assert checked_with_sql(given) == {
        "sql_ndb_cluster_connection_pool": 8,
        "sql_cpus": "0,1,3",
        "DataMemory": 80 << 20,
    }
    for name, value in {
        "sql_cpus": "one",
        "sql_default_storage_engine": "InnoDB",
        "sql_ndb_connectstring": "x",
    }.items():
        with pytest.raises(StudyError, match=name):
            checked_with_sql({name: value})
    assert {"DataMemory", "sql_log_bin", "sql_ndb_force_send"} <= set(SQL_CATALOGUE.names())


def test_what_gives_up_durability_is_said() -> None:
    assert "half done" in (kind_named("ndb-sql").gives_up({"sql_ndb_use_transactions": False}) or "")
    assert kind_named("ndb-sql").gives_up({"sql_ndb_cluster_connection_pool": 8}) is None


def test_a_study_has_as_many_sql_nodes_as_it_says() -> None:
    assert components("ndb-sql", 2) == COMPONENTS
    assert components("ndb-sql", 1, 3) == ("management", "sql1", "sql2", "sql3", "shard1")
    assert components("ndb", 1) == ("management", "shard1")


def test_counters_of_several_are_those_of_all_and_the_worst_connected_one_counts() -> None:
    each = [
        {
            "Questions": 10.0,
            "Ndb_number_of_ready_data_nodes": 2.0,
            "ndb_cluster_connection_pool": 4.0,
            "Only_here": 1.0,
        },
        {"Questions": 5.0, "Ndb_number_of_ready_data_nodes": 1.0, "ndb_cluster_connection_pool": 4.0},
    ]
    both = {"Questions": 15.0, "Ndb_number_of_ready_data_nodes": 1.0, "ndb_cluster_connection_pool": 8.0}
    assert added_up(each) == both


def test_threads_of_several_sql_nodes_wait_on_the_connections_of_all_of_them() -> None:
    """Four on each of two connections, and each node's own; two nodes with one connection have two."""
    found, _ = derive(
        {"ndb.sql.wait": 10.0, "ndb.sql.nodes": 2.0, "ndb.sql.pool": 2.0, "ndb.sql.receive_from": 8.0}, {}
    )
    assert (found["ndb.sql.waiting"], found["ndb.sql.shared_by"], found["ndb.sql.receive_slots"]) == (8.0, 4.0, 16.0)


def test_of_several_sql_nodes_the_busiest_tells_whether_their_cpus_are_used_up() -> None:
    found, _ = derive({"sql1.cpu.utilization": 0.4, "sql2.cpu.utilization": 0.95, "sql2.cpu.cores": 0.95}, {})
    assert (found["ndb.sql.cpu"], found["ndb.sql.cores"]) == (0.95, 0.95)


STUDY = """
[study]
name = "two"
question = "How much do two take?"
[target]
kind = "{kind}"
{given}
[workload]
kind = "sysbench"
[load]
axis = "threads"
levels = [2]
"""


@pytest.mark.extension("loadframe_drivers")
def test_how_many_there_are_is_for_a_cluster_alone() -> None:
    with pytest.raises(StudyError, match=r"target\.sql_nodes is for a target of kind ndb-sql") as caught:
        check_study(parse(STUDY.format(kind="mariadb", given="sql_nodes = 2")))
    assert "Omit it" in caught.value.remedy
    with pytest.raises(StudyError, match="sql_nodes"):
        parse(STUDY.format(kind="ndb-sql", given="shards = 1\nsql_nodes = 5"))


@pytest.mark.ndb
@pytest.mark.sqlnode
@pytest.mark.server
@pytest.mark.extension("loadframe_drivers")
def test_there_is_a_cage_for_each_of_them_and_for_no_other() -> None:
    with pytest.raises(StudyError, match="no component 'sql3'") as caught:
        check_study(parse(STUDY.format(kind="ndb-sql", given="shards = 1\nsql_nodes = 2\n[cage.sql3]\ncpus = '0'")))
    assert "[cage.sql2]" in caught.value.remedy


# --- with one ---


@pytest.fixture
def target(lease: Lease) -> Iterator[NdbSqlTarget]:
    """Started, with two data nodes that have the same data."""
    target = NdbSqlTarget(lease, {name: Resources() for name in COMPONENTS})
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
@pytest.mark.extension("loadframe_drivers")
def test_its_tables_are_in_the_cluster_and_survive_a_data_node_and_the_sql_node(target: NdbSqlTarget) -> None:
    rows = ", ".join(f"({number}, '{'x' * 100}')" for number in range(1000))
    workloads.make("sysbench", {"tables": 1, "table_size": 100}, Allowance(US)).install(target.endpoint())
    assert "ENGINE=ndbcluster" in ask(target, "SHOW CREATE TABLE sbtest1")[0][1], "its script would name InnoDB"
    made = ask(target, "CREATE TABLE t (id INT PRIMARY KEY, word CHAR(100))", "SHOW CREATE TABLE t")
    assert "ENGINE=ndbcluster" in made[0][1]
    before = target.counters()
    ask(target, f"INSERT INTO t VALUES {rows}", "COMMIT")
    after = target.counters()
    assert after["Ndb_api_pk_op_count"] >= before["Ndb_api_pk_op_count"] + 1000
    assert 0 < after["Ndb_api_wait_nanos_count"] - before["Ndb_api_wait_nanos_count"] < 60, "seconds"
    assert after["ndb_cluster_connection_pool"] == 2
    assert after["ndb_recv_thread_activation_threshold"] == 8, "from as many waiting threads on, one receives for all"
    assert after["Ndb_number_of_ready_data_nodes"] == 2

    (node,) = target.processes()["shard2"]
    os.kill(node, 9)
    os.waitid(os.P_PID, node, os.WEXITED | os.WNOWAIT)
    await_that(lambda: target.counters()["Ndb_number_of_ready_data_nodes"] == 1, "one data node is left")
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
    with pytest.raises(TargetError, match="SQL node sql1 died"):
        target.counters()


@pytest.mark.ndb
@pytest.mark.sqlnode
@pytest.mark.server
@pytest.mark.extension("loadframe_drivers")
def test_two_of_them_have_the_same_tables_and_share_the_load_out(lease: Lease, tmp_path: Path) -> None:
    names = ("management", "sql1", "sql2", "shard1")
    target = NdbSqlTarget(lease, {name: Resources() for name in names})
    given: dict[str, SettingValue] = {**SMALL, "NoOfReplicas": 1, "sql_ndb_cluster_connection_pool": 2}
    target.create()
    try:
        target.start(TargetState(given))
        endpoint = target.endpoint()
        first, second = endpoint.fronts
        assert first.address == endpoint.address != second.address
        load = workloads.make(
            "sysbench", {"script": "oltp_point_select", "tables": 1, "table_size": 100}, Allowance(US)
        )
        load.install(endpoint)
        assert ask(target, "SELECT COUNT(*) FROM sbtest1") == [(100,)]
        before = [asked(one) for one in endpoint.fronts]
        load.set_level(endpoint, 4)
        driver = load.start(endpoint, 4, tmp_path, 1.0)
        assert driver.wait(20)
        after = [asked(one) for one in endpoint.fronts]
        each = [now - then for now, then in zip(after, before, strict=True)]
        assert min(each) > 100, "each of them has had a part"
        assert max(each) < 3 * min(each)
        assert target.counters()["Questions"] > sum(after)
        assert target.counters()["Ndb_number_of_ready_data_nodes"] == 1

        processes = target.processes()
        target.apply(TargetState({**given, "sql_ndb_cluster_connection_pool": 3}))
        assert all(target.processes()[name] != processes[name] for name in ("sql1", "sql2"))
        assert target.processes()["shard1"] == processes["shard1"]
        (sql,) = target.processes()["sql2"]
        os.kill(sql, 9)
        os.waitid(os.P_PID, sql, os.WEXITED | os.WNOWAIT)
        assert not target.healthy()
        with pytest.raises(TargetError, match="SQL node sql2 died"):
            target.counters()
    finally:
        target.destroy()


def asked(front: Endpoint) -> int:
    """How many statements this SQL node was given."""
    import pymysql

    options = front.options
    connection = pymysql.connect(
        unix_socket=options["socket"], user=options["user"], password=options["password"], database=options["schema"]
    )
    with closing(connection), connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Questions'")
        return int(cursor.fetchall()[0][1])
