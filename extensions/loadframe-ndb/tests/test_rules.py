"""The rules of a config.ini: the story's configuration keeps them, and each mistake that is planted in it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadframe_ndb.config import cluster_of, read_config
from loadframe_ndb.config_rules import RULES, Case, Hosts, SqlNode, check
from loadframe_ndb.records import NdbFinding
from loadframe_ndb.settings import SETTINGS

STORY = (Path(__file__).with_name("data") / "story.ini").read_text()
BOUND = {"mysqld": frozenset(range(6, 12)), "sysbench": frozenset(range(12, 16))}
HOST = Hosts(frozenset(range(16)), 16 * 2**30, BOUND, None)
POOL = "ndb_cluster_connection_pool"
ALL = "ndbd default"


def found(
    text: str, *, hosts: Hosts = HOST, servers: Sequence[Mapping[str, str]] = ({POOL: "8"},)
) -> tuple[NdbFinding, ...]:
    nodes = [SqlNode(f"my{number}.cnf", options) for number, options in enumerate(servers, start=1)]
    return check(Case(cluster_of(read_config(text)), hosts, nodes), "config.ini")


def changed(*changes: tuple[str, str, str]) -> str:
    config = read_config(STORY)
    for change in changes:
        config = config.changed(*change)
    return config.text


def last_line(text: str, beginning: str) -> int:
    return max(number for number, line in enumerate(text.split("\n"), start=1) if line.startswith(beginning))


def test_the_storys_configuration_has_one_copy_of_the_data_and_no_other_fault() -> None:
    (only,) = found(STORY)
    assert (only.rule, only.severity, only.line) == ("durability", "warning", last_line(STORY, "NoOfReplicas"))


@pytest.mark.parametrize(
    ("changes", "rule", "severity", "at", "words"),
    [
        # the lists of CPUs
        ([(ALL, "LockMaintThreadsToCPU", "5")], "cpus", "warning", "LockMaint", "CPU 5 is both in LockExecuteThread"),
        ([(ALL, "LockExecuteThreadToCPU", "1-6")], "cpus", "warning", "LockEx", "mysqld and data node 2 are both"),
        ([(ALL, "LockExecuteThreadToCPU", "0-4,16")], "cpus", "error", "LockEx", "CPU 16, and localhost has 0-15"),
        ([(ALL, "LockExecuteThreadToCPU", "0-3")], "cpus", "warning", "LockEx", "4 LDM threads share CPU 1-3"),
        ([(ALL, "MaxNoOfExecutionThreads", "4")], "cpus", "warning", "LockEx", "names CPU 5, for which"),
        ([(ALL, "ThreadConfig", "ldm={cpubind=3},main={cpubind=3}")], "cpus", "warning", "LockEx", "LDM and main"),
        # threads that do not add up
        ([(ALL, "MaxNoOfExecutionThreads", "12")], "threads", "error", "LockEx", "12 execution threads for 6 CPUs"),
        ([(ALL, "ThreadConfig", "ldm={count=4,cpubind=0-2}")], "threads", "error", "ThreadC", "to 3 CPUs"),
        ([(ALL, "ThreadConfig", "ldm={count=4}")], "threads", "warning", "MaxNoOfEx", "no effect next to ThreadConfig"),
        ([(ALL, "AutomaticThreadConfig", "1")], "threads", "warning", "MaxNoOfEx", "next to AutomaticThreadConfig"),
        ([(ALL, "NoOfFragmentLogParts", "20")], "threads", "error", "NoOfFrag", "20 does not fit 4 LDM threads"),
        ([(ALL, "MaxNoOfExecutionThreads", "16"), (ALL, "LockExecuteThreadToCPU", "0-15")], "threads", "warning",
         "[ndbd]", "NoOfFragmentLogParts = 4 does not fit 8 LDM threads"),
        # what does not fit
        ([(ALL, "DataMemory", "16G")], "memory", "error", "DataM", "at least 16.4 GiB of memory, and localhost has 16"),
        ([(ALL, "NoOfReplicas", "2")], "replicas", "error", "NoOfReplicas", "1 [ndbd] cannot hold 2 copies"),
        ([(ALL, "MaxNoOfConcurrentOperations", "1K")], "limits", "error", "MaxNoOfConc", "4096 is more than MaxNoOfC"),
        ([(ALL, "MaxNoOfFiredTriggers", "9"), (ALL, "TransactionMemory", "1G")], "limits", "error", "MaxNoOfF", "excl"),
        ([("ndb_mgmd", "NodeId", "2"), ("ndbd", "NodeId", "2")], "nodes", "error", "NodeId", "two nodes have the numb"),
        ([("ndb_mgmd", "HostName", "a.example")], "nodes", "error", "HostName", "localhost, others are on a.example"),
        # names and values
        ([(ALL, "NoOfReplica", "1")], "settings", "error", "NoOfReplica=1", "no setting NoOfReplica"),
        ([("ndb_mgmd", "SendBufferMemory", "2M")], "settings", "error", "SendB", "[ndb_mgmd] has no setting"),
        ([(ALL, "DataMemory", "512m")], "settings", "error", "DataMemory", "does not accept DataMemory = 512m"),
        ([(ALL, "IndexMemory", "1G")], "settings", "warning", "IndexMemory", "deprecated"),
        ([(ALL, "__ndbmt_classic", "1")], "settings", "warning", "__ndbmt", "internal setting"),
        # durability
        ([(ALL, "Diskless", "1")], "durability", "warning", "Diskless", "no table and no row survives"),
        ([(ALL, "TimeBetweenGlobalCheckpoints", "9000")], "durability", "warning", "TimeBetween", "so long is lost"),
        ([(ALL, "Arbitration", "Disabled")], "durability", "warning", "Arbitration", "may go on as two"),
    ],
)  # fmt: skip
def test_a_planted_mistake_is_told_with_its_line_and_what_to_do(
    changes: list[tuple[str, str, str]], rule: str, severity: str, at: str, words: str
) -> None:
    text = changed(*changes)
    told = [one for one in found(text) if one.rule == rule and words in one.fact]
    assert [(one.severity, one.line) for one in told] == [(severity, last_line(text, at))], found(text)
    assert told[0].remedy
    assert told[0].source


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("NoOfReplica", "Did you mean NoOfReplicas?"),
        ("MaxNoOfExecutionThread", "Did you mean MaxNoOfExecutionThreads?"),
        ("LockExecuteThreadsToCPU", "Did you mean LockExecuteThreadToCPU"),
        ("SendBufferMemory", "It belongs in [tcp] or [shm]."),
        ("Id", "Did you mean NodeId?"),
        ("Colour", "Omit it."),
    ],
)
def test_what_was_meant_is_guessed(name: str, remedy: str) -> None:
    (told,) = (one for one in found(changed(("ndbd", name, "1"))) if one.rule == "settings")
    assert remedy in told.remedy


@pytest.mark.parametrize(
    ("servers", "severity", "words"),
    [
        ([{POOL: "9"}], "warning", "take all 9 API slots"),
        ([{POOL: "8"}, {POOL: "8"}], "error", "want 16 connections (8 + 8), and there are 9 API slots"),
        ([{POOL: "2"}, {POOL: "8"}], "error", "want 10 connections (2 + 8), and there are 9 API slots"),
        ([{POOL: "64"}], "error", "mysqld does not accept"),
        ([{POOL: "many"}], "error", "mysqld does not accept"),
        ([{}], "note", "one connection to the cluster"),
        ([{POOL: "2", f"{POOL}_nodeids": "4,5,6"}], "error", "3 numbers for 2 connections"),
        ([{POOL: "2", "ndb_connectstring": "nodeid=4,localhost"}], "error", "has a nodeid"),
    ],
)
def test_connections_are_held_against_api_slots(servers: list[dict[str, str]], severity: str, words: str) -> None:
    (told,) = (one for one in found(STORY, servers=servers) if words in one.fact)
    assert (told.rule, told.severity) == ("api_slots", severity)


def test_more_connections_than_cpus_are_told() -> None:
    (told,) = (one for one in found(STORY, hosts=Hosts(frozenset(range(8)), None, {}, None)) if one.rule == "api_slots")
    assert (told.severity, told.file) == ("warning", "my1.cnf")


def test_a_host_of_which_nothing_is_known_is_not_judged() -> None:
    text = STORY.replace("localhost", "db1.example").replace("DataMemory=1G", "DataMemory=900G")
    here = Hosts(frozenset({0}), 2**30, {}, frozenset({"localhost"}))
    assert {one.rule for one in found(text, hosts=here)} == {"durability"}
    assert {one.rule for one in found(text)} == {"durability", "memory"}


TWO = """[ndbd default]
NoOfReplicas=2
MaxNoOfExecutionThreads=4
DataMemory=1G
[ndb_mgmd]
[ndbd]
LockExecuteThreadToCPU=0-4
[ndbd]
LockExecuteThreadToCPU=4-8
DataMemory=13G
[mysqld]
"""


def test_two_data_nodes_on_one_host_share_what_it_has() -> None:
    told = {one.rule: one for one in found(TWO, hosts=Hosts(frozenset(range(16)), 14 * 2**30, {}, None), servers=())}
    assert "are bound to CPU 4" in told["cpus"].fact
    assert told["cpus"].line == 9
    assert told["memory"].line == 10
    assert "same data" in told["replicas"].fact


PLAIN = "[ndbd default]\nNoOfReplicas=1\n[ndb_mgmd]\n[ndbd]\n[mysqld]\n[mysqld]\n"


@pytest.mark.parametrize(
    ("added", "cpus", "severity", "words"),
    [
        ("", 16, "note", "one LDM thread, the default"),
        ("MaxNoOfExecutionThreads=8", 16, "note", "are not bound to CPUs"),
        ("MaxNoOfExecutionThreads=8", 4, "warning", "7 execution threads for the 4 CPUs of localhost"),
        ("ThreadConfig=ldm={count=4},tc", 4, "warning", "8 execution threads for the 4 CPUs of localhost"),
    ],
)
def test_threads_are_held_against_cpus(added: str, cpus: int, severity: str, words: str) -> None:
    text = PLAIN.replace("=1\n", f"=1\n{added}\n")
    (told,) = (
        one
        for one in found(text, hosts=Hosts(frozenset(range(cpus)), None, {}, None), servers=())
        if one.rule == "threads"
    )
    assert (told.severity, words in told.fact) == (severity, True)


def test_of_a_node_that_may_be_ndbd_no_threads_are_supposed() -> None:
    text = PLAIN.replace("=1\n", "=1\nLockExecuteThreadToCPU=1\nLockMaintThreadsToCPU=0\n")
    told = found(text, hosts=Hosts(frozenset({0, 1}), None, {}, None), servers=())
    assert {one.rule for one in told} == {"durability"}


def test_two_processes_on_the_same_cpus_are_told() -> None:
    hosts = Hosts(None, None, {"mysqld": frozenset({8, 9}), "sysbench": frozenset({9})}, None)
    (told,) = (one for one in found(STORY, hosts=hosts) if one.rule == "cpus")
    assert told.fact == "mysqld and sysbench are both bound to CPU 9"


def test_kinds_of_node_that_are_missing_are_told() -> None:
    assert {one.fact for one in found("", servers=())} == {
        "there is no [ndbd]", "there is no [ndb_mgmd]", "there is no [mysqld]",
    }  # fmt: skip


def test_a_node_without_a_number_gets_the_next_free_one() -> None:
    cluster = cluster_of(read_config("[ndb_mgmd]\nNodeId=3\n[ndbd]\nNodeId=2\n[ndbd]\n[mysqld]\n[mysqld]\nNodeId=9"))
    assert [node.node_id for node in cluster.nodes] == [3, 2, 4, 5, 9]
    assert not cluster.twice


def test_errors_come_first_and_in_the_order_of_the_lines() -> None:
    told = found(STORY.replace("=1\n", "=9\n").replace("1G", "1g").replace("0-5", "0;5") + "\nDiskless=1")
    order = ["error", "warning", "note"]
    assert [(order.index(one.severity), one.line or 0) for one in told] == sorted(
        (order.index(one.severity), one.line or 0) for one in told
    )
    assert len(told) > 3


WORDS = st.sampled_from([one.name for table in SETTINGS.values() for one in table.values()])
LINES = st.one_of(
    st.sampled_from(["[ndbd default]", "[ndbd]", "[mysqld]", "[ndb_mgmd]", "[tcp default]", "[shm]", "[nothing]"]),
    st.builds("{}={}".format, WORDS, st.one_of(st.text(max_size=6), st.integers(0, 2**40).map(str))),
    st.builds("{}={}".format, st.just("NodeId"), st.integers(0, 300)),
    st.builds(
        "ThreadConfig={}".format, st.sampled_from(["ldm", "tc,tc", "ldm={cpuset=1-3,count=4}", "main={count=0}"])
    ),
    st.builds("LockExecuteThreadToCPU={}-{}".format, st.integers(0, 9), st.integers(0, 9)),
)


@pytest.mark.long
@settings(max_examples=150)
@given(st.lists(LINES, max_size=14))
def test_any_file_is_judged(lines: list[str]) -> None:
    for one in found("\n".join(lines)):
        assert one.fact
        assert one.remedy
        assert one.source
        assert one.line is None or 1 <= one.line <= len("\n".join(lines).split("\n"))


def test_every_rule_has_been_seen_to_find_something() -> None:
    everything = (
        "[ndbd] #\nNodeId=2\nDiskless=1\nDataMemory=99G\nNoOfReplicas=2\nThreadConfig=x\nLockExecuteThreadToCPU=1\n"
    )
    everything += "LockMaintThreadsToCPU=1\nMaxNoOfConcurrentOperations=32\nColour=1\n"
    assert {one.rule for one in found(everything)} == {rule.__name__ for rule in RULES}
