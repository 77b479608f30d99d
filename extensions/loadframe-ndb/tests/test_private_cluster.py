"""A real cluster: a management server and two data nodes, each with a copy of the data, on this machine alone."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadframe.errors import MissingTool, StudyError, TargetError
from loadframe.host import identity
from loadframe.host.leases import Lease
from loadframe.host.leftovers import sweep
from loadframe.model import SettingValue
from loadframe_ndb.nodes import read_threads
from loadframe_ndb.own_settings import shape_of
from loadframe_ndb.private_cluster import PrivateCluster
from waiting import await_that

SMALL: dict[str, SettingValue] = {
    "DataMemory": "80M",
    "NoOfFragmentLogFiles": 4,
    "FragmentLogFileSize": "4M",
    "SharedGlobalMemory": "32M",
    "LongMessageBuffer": "8M",
    "TimeBetweenGlobalCheckpoints": 200,
}
"""Restarts wait for several global checkpoints."""
NODES = ("management", "shard1", "shard2")
BY_ITSELF = """
import sys, time
from loadframe.host.leases import Lease
from loadframe_ndb.own_settings import shape_of
from loadframe_ndb.private_cluster import PrivateCluster
lease = Lease.acquire("a test")
cluster = PrivateCluster(lease, {}, shape_of(data_nodes=1, api_slots=1))
cluster.create()
cluster.start({"NoOfReplicas": 1, "DataMemory": "80M"})
print(*(pid for pids in cluster.processes().values() for pid in pids), flush=True)
time.sleep(600)
"""


def made(lease: Lease, data_nodes: int = 2) -> PrivateCluster:
    cluster = PrivateCluster(lease, {}, shape_of(data_nodes, api_slots=2))
    cluster.create()
    return cluster


@pytest.fixture
def cluster(lease: Lease) -> Iterator[PrivateCluster]:
    """Created, not started."""
    cluster = made(lease)
    yield cluster
    cluster.destroy()


def healthy(cluster: PrivateCluster) -> bool:
    return set(cluster.states().values()) == {"started"}


def pids(cluster: PrivateCluster) -> dict[str, int]:
    return {name: one[0] for name, one in cluster.processes().items() if one}


def memory_mb(cluster: PrivateCluster) -> set[int]:
    """DataMemory as each data node says it: in pages of 32 KiB, less one or two that it keeps for itself."""
    said = cluster.management.carry_out("ALL REPORT MEMORY")
    pages = [int(found) for found in re.findall(r"Data usage is .* of total (\d+)\)", said)]
    assert len(pages) == len(cluster.data)
    return {math.ceil(each / 32) for each in pages}


def listening(pid: int) -> set[str]:
    """The addresses at which a process listens, as the kernel writes them (proc_net_tcp(5))."""
    links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]  # noqa: PTH115, PTH208
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in links:
                found.add(fields[1].partition(":")[0])
    return found


def die(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


# --- without the programs ---


def test_without_its_programs_it_says_which_and_how_to_have_them(
    lease: Lease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match="ndbmtd is not installed") as caught:
        made(lease)
    assert "scripts/build-mysql-cluster" in caught.value.remedy
    assert "mysql-cluster-community-data-node" in caught.value.remedy
    assert (Path(__file__).parents[3] / "scripts/build-mysql-cluster").stat().st_mode & 0o111


def test_data_nodes_that_are_no_multiple_of_the_copies_are_refused(lease: Lease) -> None:
    cluster = PrivateCluster(lease, {}, shape_of(3, api_slots=1))
    with pytest.raises(StudyError, match="3 data nodes") as caught:
        cluster.start({"NoOfReplicas": 2})
    assert "NoOfReplicas = 1" in caught.value.remedy


def test_before_its_start_it_is_not_well_and_cannot_be_changed(lease: Lease) -> None:
    cluster = PrivateCluster(lease, {}, shape_of(2, api_slots=1))
    assert not cluster.answers()
    assert pids(cluster) == {}
    for call in (lambda: cluster.apply({}), cluster.heal):
        with pytest.raises(TargetError, match="not running"):
            call()
    cluster.stop()


@pytest.mark.parametrize(
    ("data_nodes", "replicas", "dead", "ended"),
    [
        (2, 2, ["shard1"], False),
        (2, 2, ["shard1", "shard2"], True),
        (4, 2, ["shard1", "shard3"], False),
        (4, 2, ["shard3", "shard4"], True),
        (2, 1, ["shard2"], True),
    ],
)
def test_a_cluster_lives_while_each_group_has_a_node(
    lease: Lease, data_nodes: int, replicas: int, dead: list[str], ended: bool
) -> None:
    cluster = PrivateCluster(lease, {}, shape_of(data_nodes, api_slots=1))
    why = cluster.lost(dead, {"NoOfReplicas": replicas})
    assert (why is not None) is ended
    assert why is None or "no copy is left" in why


# --- with them ---


@pytest.mark.ndb
def test_it_starts_is_private_restarts_as_little_as_it_may_and_ends(cluster: PrivateCluster, lease: Lease) -> None:
    cluster.start(SMALL)
    first = pids(cluster)
    assert tuple(first) == NODES
    assert cluster.states() == {"shard1": "started", "shard2": "started"}
    assert healthy(cluster)
    for pid in first.values():
        assert listening(pid) == {"0100007F"}, "127.0.0.1 and nothing else"
        assert os.geteuid() != 0 or os.stat(f"/proc/{pid}").st_uid != 0  # noqa: PTH116
    assert memory_mb(cluster) == {80}

    cluster.apply(SMALL)
    assert pids(cluster) == first, "the same settings restart nothing"

    cluster.apply({**SMALL, "DataMemory": "96M"})
    second = pids(cluster)
    assert all(second[name] != first[name] for name in NODES)
    assert memory_mb(cluster) == {96}

    cluster.stop()
    cluster.stop()
    assert pids(cluster) == {}
    assert not healthy(cluster)
    cluster.start(SMALL)
    assert healthy(cluster)
    cluster.destroy()
    cluster.destroy()
    assert list(lease.folder.iterdir()) == []
    assert identity.naming(lease.folder.name) == ()


@pytest.mark.ndb
def test_other_execution_threads_are_there_after_a_restart_of_all_with_the_data(cluster: PrivateCluster) -> None:
    """ConfigInfo.cpp says that it takes an empty file system, the manual that it does not."""

    def ldm() -> list[int]:
        nodes = [(node.pid, node.logged_threads()) for node in cluster.data.values()]
        return [sum(each.kind == "ldm" for each in read_threads(pid or 0, told)) for pid, told in nodes]

    cluster.start({**SMALL, "MaxNoOfExecutionThreads": 2})
    assert ldm() == [1, 1]
    cluster.apply({**SMALL, "MaxNoOfExecutionThreads": 4})
    assert healthy(cluster)
    assert ldm() == [2, 2]
    assert not any("--initial" in node.command for node in cluster.data.values())


@pytest.mark.ndb
def test_a_data_node_that_dies_comes_back_and_the_other_one_goes_on(cluster: PrivateCluster) -> None:
    cluster.start(SMALL)
    assert cluster.heal() == ()
    before = pids(cluster)
    time.sleep(3)  # until an arbitrator is chosen, the other one ends with it
    die(before["shard1"])
    assert not healthy(cluster)
    assert cluster.heal() == ("shard1",)
    after = pids(cluster)
    assert healthy(cluster)
    assert after["shard1"] != before["shard1"]
    assert {name: after[name] for name in ("management", "shard2")} == {
        name: before[name] for name in ("management", "shard2")
    }


@pytest.mark.ndb
def test_with_one_copy_it_says_that_the_data_are_lost(lease: Lease) -> None:
    cluster = made(lease, data_nodes=1)
    try:
        cluster.start({**SMALL, "NoOfReplicas": 1})
        die(pids(cluster)["shard1"])
        with pytest.raises(TargetError, match=r"no copy is left of the data of shard1 \(NoOfReplicas = 1\)") as caught:
            cluster.heal()
        assert caught.value.details
    finally:
        cluster.destroy()


@pytest.mark.ndb
def test_a_config_ini_that_it_would_not_take_is_known_before_the_start_and_leaves_it_alone(
    cluster: PrivateCluster,
) -> None:
    cluster.check(SMALL)
    assert pids(cluster) == {}
    cluster.start(SMALL)
    before = pids(cluster)
    with pytest.raises(TargetError, match="would not start with"):
        cluster.check({**SMALL, "MaxNoOfConcurrentTransactions": 40000, "MaxNoOfConcurrentOperations": 32})
    assert pids(cluster) == before
    assert healthy(cluster)


@pytest.mark.ndb
def test_memory_that_there_is_not_ends_the_start_with_the_nodes_own_words(cluster: PrivateCluster) -> None:
    with pytest.raises(TargetError, match="would not start") as caught:
        cluster.start({**SMALL, "DataMemory": "8192G"})
    assert "emory" in caught.value.details


@pytest.mark.ndb
def test_killed_with_its_owner_no_node_is_left(scratch: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", BY_ITSELF], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        nodes = [int(word) for word in owner.stdout.readline().split()]
        known = [each for each in map(identity.identify, nodes) if each is not None]
        assert len(known) == 2
        owner.kill()
        owner.wait()
    await_that(lambda: not any(map(identity.alive, known)), "the nodes have ended")
    sweep()
    assert list(scratch.iterdir()) == []
