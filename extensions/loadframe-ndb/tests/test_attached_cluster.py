"""A cluster that runs already is read and loaded, and nothing of it is changed, started, stopped or restarted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

import loadframe
from loadframe import lab
from loadframe.bench.checking import check_study
from loadframe.errors import StudyError, TargetError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.mysql.kind import MysqlTarget
from loadframe.kinds.registry import again, attach
from loadframe.model import Endpoint, SettingValue, TargetState
from loadframe.study import parse
from loadframe_ndb.attached import AttachedCluster, host_of
from loadframe_ndb.target import NdbSqlTarget

SMALL: dict[str, SettingValue] = {
    "NoOfReplicas": 1,
    "DataMemory": "20M",
    "NoOfFragmentLogFiles": 4,
    "FragmentLogFileSize": "4M",
    "SharedGlobalMemory": "32M",
    "LongMessageBuffer": "8M",
    "TimeBetweenGlobalCheckpoints": 200,
    "sql_ndb_cluster_connection_pool": 2,
}
STUDY = """
[study]
name = "theirs"
question = "How much does it take?"
[target]
kind = "ndb-sql"
attach = "{attach}"
{target}
[workload]
kind = "sysbench"
[workload.options]
script = "oltp_point_select"
tables = 1
table_size = 100
[load]
axis = "threads"
levels = [2]
[measure]
window = "1s"
warmup = "1s"
blocks = {{ min = 2, max = 2 }}
budget = "20s"
{more}
"""


def study(address: str, target: str = "", more: str = "") -> str:
    return STUDY.format(attach=address, target=target, more=more)


# --- without a server ---


def test_of_several_sql_nodes_one_on_another_machine_is_what_takes_consent() -> None:
    assert host_of("/run/a.sock,/run/b.sock", None) == ""
    assert host_of("127.0.0.1:3306, 127.0.0.1:3307", None) == "127.0.0.1"
    assert host_of("127.0.0.1:3306,203.0.113.7:3306", None) == "203.0.113.7"
    with pytest.raises(StudyError, match=r"203\.0\.113\.7 is not this machine"):
        check_study(parse(study("127.0.0.1:3306,203.0.113.7:3306")))


@pytest.mark.parametrize(
    ("target", "more", "named"),
    [
        ("settings = { sql_ndb_force_send = false }", "", "target.settings.sql_ndb_force_send"),
        ("settings = { DataMemory = '1G' }", "", "target.settings.DataMemory"),
        (
            "",
            "[[alternative]]\nname = 'other'\ntarget = { settings = { sql_ndb_force_send = false } }",
            "target.settings.sql_ndb_force_send",
        ),
        ("", "[cage]\nnice = 5", "nice"),
        ("config = '/etc/x.cnf'\nrestart = ['true']", "", "target.config"),
    ],
)
@pytest.mark.extension("loadframe_drivers")
def test_a_study_that_would_change_it_is_refused_before_anything_is_asked(target: str, more: str, named: str) -> None:
    with pytest.raises(StudyError, match=f"is read and loaded, and not changed: {named}") as caught:
        check_study(parse(study("/run/nothing.sock", target, more)))
    assert "private" in caught.value.remedy


# --- with one ---


@pytest.fixture
def cluster(lease: Lease) -> Iterator[NdbSqlTarget]:
    """Started as its owner would; the schema of our load is not there."""
    target = NdbSqlTarget(lease, {name: Resources() for name in ("management", "sql1", "sql2", "shard1")})
    target.create()
    target.start(TargetState(SMALL))
    asked(target, "DROP DATABASE loadframe")
    yield target
    target.destroy()


def asked(target: NdbSqlTarget, statement: str) -> list[tuple[object, ...]]:
    return over(target.endpoint(), statement)


def over(front: Endpoint, statement: str) -> list[tuple[object, ...]]:
    import pymysql

    options: Mapping[str, str] = front.options
    connection = pymysql.connect(unix_socket=options["socket"], user=options["user"], password=options["password"])
    with closing(connection), connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def statements(front: Endpoint) -> int:
    """How many this SQL node was given."""
    return int(str(over(front, "SHOW GLOBAL STATUS LIKE 'Questions'")[0][1]))


def address(target: NdbSqlTarget) -> str:
    return ",".join(front.options["socket"] for front in target.endpoint().fronts)


@pytest.mark.ndb
@pytest.mark.sqlnode
@pytest.mark.server
@pytest.mark.extension("loadframe_drivers")
def test_it_is_read_and_loaded_and_is_after_that_as_it_was(cluster: NdbSqlTarget, tmp_path: Path) -> None:
    options = cluster.endpoint().options
    processes, effective = cluster.processes(), cluster.effective()
    server = attach(f"ndb-sql:{address(cluster)}", option_file=Path(options["option_file"]))
    try:
        assert isinstance(server, AttachedCluster)
        counters = server.counters()
        assert 0.9 * (20 << 20) < counters["data_memory"] <= 20 << 20, "less what is kept for restarts"
        assert counters["most_operations"] == 32768
        assert {"lock_waits", "preemptions", "transactions_open"} <= counters.keys()
        assert 0 < counters["data_memory_used"] < counters["data_memory"]
        assert counters["data_nodes"] == counters["Ndb_number_of_ready_data_nodes"] == 1
        assert counters["api_nodes"] >= 4, "two connections of each SQL node"
        assert counters["main_cpu"] > 0
        assert server.effective()["DataMemory"] == 20 << 20
        assert server.effective()["sql_ndb_cluster_connection_pool"] == 2
        assert server.configured()["sql_ndb_cluster_connection_pool"] == 2
        assert sorted(server.pids()) == sorted(
            pid for name, pids in processes.items() if name != "management" for pid in pids
        )
        assert server.local()
        assert not any("missing" in note for note in server.notes())
        assert server.management == cluster.connect_string
        assert options["password"] not in server.describe() + server.words + repr(server.address)
        for name, value in (("sql_ndb_force_send", False), ("DataMemory", 1 << 30)):
            with pytest.raises(TargetError, match=f"not changed: {name}"):
                server.write(name, value)
        first = options["socket"]
        with pytest.raises(TargetError, match="are one SQL node") as caught:
            attach(f"ndb-sql:{first},{first}", option_file=Path(options["option_file"]))
        assert "Name it once" in caught.value.remedy
        found = again(server.address)
        assert found.words == server.words
        found.close()
    finally:
        server.close()

    before = [statements(front) for front in cluster.endpoint().fronts]
    named = f'option_file = "{options["option_file"]}"'
    measured = lab.measure(parse(study(address(cluster), named)), tmp_path)
    assert measured.curve.points[0].throughput > 100
    (step,) = [step for step in loadframe.open_run(Path(measured.run)).steps() if step.counts][-1:]
    assert step.metrics["ndb.sql.statements"] > 100
    assert step.metrics["ndb.data_memory"] == pytest.approx(counters["data_memory"], rel=0.02)
    assert step.metrics["ndb.sql.reads_by_key"] > 100, "its tables are in the cluster"
    assert step.metrics["target.cpu.cores"] > 0
    grown = [now - then for now, then in zip(map(statements, cluster.endpoint().fronts), before, strict=True)]
    assert min(grown) > 100, "each SQL node has had a part of the load"
    assert max(grown) < 3 * min(grown)
    assert cluster.processes() == processes, "nothing was restarted"
    assert cluster.effective() == effective
    assert ("loadframe",) not in asked(cluster, "SHOW DATABASES"), "its schema is gone"

    now = loadframe.limits(server=f"ndb-sql:{address(cluster)}", option_file=Path(options["option_file"]))
    (memory,) = [limit for limit in now.limits if limit.id == "ndb.data_memory"]
    assert memory.ceiling == pytest.approx(counters["data_memory"], rel=0.02)


@pytest.mark.long
@pytest.mark.mysql
def test_a_mysql_by_itself_is_no_cluster(lease: Lease) -> None:
    mysql = MysqlTarget(lease=lease, resources=Resources())
    mysql.create()
    try:
        mysql.start(TargetState({}))
        options = mysql.endpoint().options
        with pytest.raises(TargetError, match="without a running cluster") as caught:
            attach(f"ndb-sql:{options['socket']}", option_file=Path(options["option_file"]))
        assert "kind = mysql" in caught.value.remedy
    finally:
        mysql.destroy()
