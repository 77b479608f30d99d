"""What is changed for a cause in a MySQL Cluster, which restart it takes, and where nothing can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from loadframe.knowledge.remedy import Situation
from loadframe.model import Remedy, SettingValue, TargetState
from loadframe_ndb.own_settings import SQL_CATALOGUE, checked_with_sql
from loadframe_ndb.remedies import BUILDERS, restart_of

GIB, MIB = 1 << 30, 1 << 20
EFFECTIVE: dict[str, SettingValue] = {
    "NoOfReplicas": 2,
    "MaxNoOfExecutionThreads": 2,
    "MaxNoOfConcurrentOperations": 32,
    "MaxNoOfConcurrentTransactions": 32,
    "DataMemory": 20 * MIB,
    "RedoBuffer": 32 * MIB,
    "SharedGlobalMemory": 32 * MIB,
    "NoOfFragmentLogFiles": 4,
    "TimeBetweenLocalCheckpoints": 20,
    "tcp_SendBufferMemory": 2 * MIB,
    "sql_ndb_cluster_connection_pool": 1,
    "LockExecuteThreadToCPU": "0",
}
CEILINGS = {
    "system.memory": 8.0 * GIB,
    "cpu.saturated": 4.0,
    "ndb.operations": 32.0,
    "ndb.transaction_size": 32.0,
    "ndb.transactions": 32.0,
}


def situation(
    kind: str = "ndb-sql",
    *,
    cpus: float = 4.0,
    demands: Any = None,
    given: Mapping[str, SettingValue] | None = None,
    **other: SettingValue,
) -> Situation:
    """given: by the study; all others are in effect without it."""
    ceilings, state = {**CEILINGS, "cpu.saturated": cpus}, given or {}
    return Situation(kind, TargetState(state), {**EFFECTIVE, **other, **state}, demands or {}, ceilings)


def remedies(cause: str, there: Situation) -> list[Remedy]:
    return [found for build in BUILDERS[cause] if (found := build(there)) is not None]


def changed(cause: str, there: Situation) -> Mapping[str, SettingValue]:
    return {change.setting: change.after for one in remedies(cause, there) for change in one.changes}


@pytest.mark.parametrize(
    ("cause", "setting", "after"),
    [
        ("ndb.sql_pool", "sql_ndb_cluster_connection_pool", 8),
        ("ndb.ldm_threads", "MaxNoOfExecutionThreads", 4),
        ("ndb.send_buffers", "tcp_SendBufferMemory", 16 * MIB),
        ("ndb.data_memory", "DataMemory", 80 * MIB),
        ("ndb.redo_buffer", "RedoBuffer", 128 * MIB),
        ("ndb.operations", "MaxNoOfConcurrentOperations", 130),
        ("ndb.transaction_size", "MaxNoOfConcurrentOperations", 130),
        ("ndb.transaction_memory", "SharedGlobalMemory", 128 * MIB),
    ],
)
def test_one_thing_is_changed_to_a_value_that_the_cluster_takes(cause: str, setting: str, after: SettingValue) -> None:
    assert changed(cause, situation()) == {setting: after}
    assert SQL_CATALOGUE.get(setting) is not None
    assert all(", ," not in one.source for one in remedies(cause, situation()))
    assert checked_with_sql({setting: after}) == {setting: after}
    (remedy,) = remedies(cause, situation())
    assert remedy.addresses == (cause,)
    assert "restart" in remedy.price.note, "what it takes is said"


@pytest.mark.parametrize("cause", BUILDERS)
def test_another_kind_of_server_has_none_of_them(cause: str) -> None:
    assert remedies(cause, situation("mysql")) == []
    assert all(one.price.durability is None for one in remedies(cause, situation()))


def test_the_restart_is_that_of_the_catalogue() -> None:
    assert restart_of("sql_ndb_cluster_connection_pool") == "the SQL node restarts"
    assert "one after the other" in restart_of("DataMemory")
    assert "empty file system" in restart_of("NoOfFragmentLogFiles")
    assert restart_of("ThreadConfig") == restart_of("tcp_SendBufferMemory") == "the whole cluster restarts"


def test_without_a_sql_node_there_is_no_pool_and_one_at_its_end_stays() -> None:
    assert not remedies("ndb.sql_pool", situation("ndb"))
    assert not remedies("ndb.sql_pool", situation(sql_ndb_cluster_connection_pool=32))
    assert changed("ndb.sql_pool", situation(sql_ndb_cluster_connection_pool=8)) == {
        "sql_ndb_cluster_connection_pool": 32
    }


def test_a_longer_redo_log_takes_a_second_copy_of_the_data() -> None:
    assert changed("ndb.redo_log", situation()) == {"NoOfFragmentLogFiles": 16, "TimeBetweenLocalCheckpoints": 6}
    assert changed("ndb.redo_log", situation(NoOfReplicas=1)) == {"TimeBetweenLocalCheckpoints": 6}


def test_no_more_data_threads_than_cpus_are_made() -> None:
    assert not remedies("ndb.ldm_threads", situation(cpus=1.0))
    assert not remedies("ndb.tc_threads", situation()), "MaxNoOfExecutionThreads makes none of them alone"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("main,ldm={count=1},recv,rep", "main,ldm={count=2},recv,rep"),
        ("main,ldm,recv,rep", "main,ldm={count=2},recv,rep"),
        ("main,recv,rep", "main,recv,rep,ldm={count=2}"),
        ("main, ldm, ldm={count = 1}, recv", "main,ldm={count=4}, recv"),
        ("main,ldm={count=4},recv,rep", None),
        ("main,ldm={count=1,cpubind=1},recv,rep", None),
    ],
)
def test_threads_that_are_written_down_are_changed_there(before: str, after: str | None) -> None:
    """Not where they are more than the CPUs, nor where they are bound: which CPUs others have is not known."""
    there = situation(given={"ThreadConfig": before})
    assert changed("ndb.ldm_threads", there) == ({"ThreadConfig": after} if after else {})


def test_what_ndb_mgmd_writes_of_a_number_of_threads_is_not_taken_as_given() -> None:
    """It prints a ThreadConfig whatever the study says, and 0 where it gives no number."""
    there = situation(MaxNoOfExecutionThreads=0, ThreadConfig="main,ldm,recv,rep")
    assert changed("ndb.ldm_threads", there) == {"MaxNoOfExecutionThreads": 4}


def test_numbers_that_may_not_be_more_than_others_are_raised_with_them() -> None:
    both = {"MaxNoOfConcurrentOperations": 130, "MaxNoOfConcurrentTransactions": 130}
    assert changed("ndb.transactions", situation()) == both
    enough = situation(MaxNoOfConcurrentOperations=32768)
    assert changed("ndb.transactions", enough) == {"MaxNoOfConcurrentTransactions": 130}
    own = situation(MaxNoOfConcurrentOperations=32768, MaxDMLOperationsPerTransaction=32)
    assert changed("ndb.transaction_size", own) == {"MaxDMLOperationsPerTransaction": 130}, "never less operations"


def test_memory_of_each_link_and_each_part_of_the_log_counts() -> None:
    (buffers,) = remedies("ndb.send_buffers", situation())
    assert "for each of its 18 links" in buffers.price.note
    small = {**CEILINGS, "system.memory": 0.25 * GIB}
    there = Situation("ndb", TargetState(), EFFECTIVE, {}, small)
    assert changed("ndb.send_buffers", there) == {"tcp_SendBufferMemory": 7 * MIB}, "an eighteenth of half of it"
    assert changed("ndb.redo_buffer", there) == {}, "32 MiB for each of four parts are more than half already"


def test_threads_that_share_a_cpu_may_have_all_but_not_where_each_of_two_nodes_would_bind_its_own_there() -> None:
    assert changed("ndb.threads_share_cpu", situation(NoOfReplicas=1)) == {"LockExecuteThreadToCPU": "0-3"}
    assert not remedies("ndb.threads_share_cpu", situation())


def test_threads_that_have_all_cpus_are_not_unbound() -> None:
    assert not remedies("ndb.threads_share_cpu", situation(NoOfReplicas=1, LockExecuteThreadToCPU="0-3"))
    assert not remedies("ndb.threads_share_cpu", situation(NoOfReplicas=1, LockExecuteThreadToCPU=""))
    assert not remedies("ndb.threads_share_cpu", situation(NoOfReplicas=1, cpus=1.0))


def test_what_the_highest_level_needs_and_a_fifth_more_is_asked_for() -> None:
    needed = situation(demands={"ndb.operations": 1000.0})
    assert changed("ndb.operations", needed) == {"MaxNoOfConcurrentOperations": 1200}
