"""A real cluster as a target: what ndbinfo tells while a program of the NDB API works."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.model import Reading, SettingValue, TargetState
from loadframe_ndb.target import NdbTarget
from waiting import await_that

SMALL: dict[str, SettingValue] = {
    "NoOfReplicas": 1,
    "DataMemory": "20M",
    "NoOfFragmentLogFiles": 16,
    "FragmentLogFileSize": "16M",
    "SharedGlobalMemory": "32M",
    "LongMessageBuffer": "8M",
    "TimeBetweenGlobalCheckpoints": 200,
}


@pytest.fixture
def target(lease: Lease) -> Iterator[NdbTarget]:
    """Started, with one data node."""
    target = NdbTarget(lease, {"management": Resources(), "shard1": Resources()})
    target.create()
    target.start(TargetState(SMALL))
    yield target
    target.destroy()


FULL_REDO: dict[str, SettingValue] = {
    **SMALL,
    "DataMemory": "600M",
    "NoOfFragmentLogFiles": 12,
    "FragmentLogFileSize": "4M",
    "MinDiskWriteSpeed": "1M",
    "MaxDiskWriteSpeed": "1M",
}
"""4 parts of 48 MB each: to fill them takes seconds, or minutes on a busy machine, and more until a local checkpoint
has ended, which may write only so much for that."""


def points(target: NdbTarget, *words: str, seconds: str = "0") -> subprocess.CompletedProcess[str]:
    given = {"LOADFRAME_ADDRESS": target.endpoint().address, "LOADFRAME_LEVEL": "2", "LOADFRAME_DURATION_S": seconds}
    return subprocess.run(
        ["ndb_points", *words], env={**os.environ, **given}, capture_output=True, text=True, check=False
    )


def told(target: NdbTarget) -> Reading:
    """The first reading that begins from now on."""
    begin = time.monotonic()

    def found() -> list[Reading]:
        return [each for each in target.exposure.readings() if each.at_s > begin and "transactions" in each.counters]

    return await_that(found, "a reading of ndbinfo")[0]


@pytest.mark.ndb
def test_requests_of_a_driver_and_the_cpu_of_threads_are_counted(target: NdbTarget) -> None:
    before = told(target)
    done = points(target, "1000", "50", seconds="2")
    after = told(target)
    assert done.returncode == 0, done.stderr
    requests = len(done.stdout.splitlines())
    counted = {name: after.counters[name] - before.counters[name] for name in ("transactions", "writes", "ldm_cpu")}
    assert requests > 100
    assert requests <= counted["transactions"] <= requests + 50, "the table and its rows are a few more"
    assert counted["writes"] >= 0.3 * requests
    assert 0 < counted["ldm_cpu"] < after.at_s - before.at_s
    assert after.counters["api_nodes"] >= 1
    assert after.counters["data_nodes"] == 1
    assert (after.counters["most_operations"], after.counters["most_changes"]) == (32768, 32768), "the defaults"
    assert after.counters["most_transactions"] == 4096
    assert after.counters["operations_open"] >= after.counters["largest_transaction"] >= 0
    assert 0 < after.counters["transaction_memory_used"] < after.counters["transaction_memory"]
    assert after.counters["preemptions"] >= before.counters["preemptions"]
    assert 0 <= after.counters["lock_waits"] - before.counters["lock_waits"] <= requests


@pytest.mark.ndb
def test_data_memory_fills_and_its_end_is_an_error(target: NdbTarget) -> None:
    """Error 827: Out of memory in Ndb Kernel, table data (increase DataMemory)."""
    empty = told(target).counters
    assert 0.9 * 20 * 2**20 < empty["data_memory"] <= 20 * 2**20
    assert points(target, "50000").returncode == 0
    half = told(target).counters
    assert empty["data_memory_used"] + 50000 * 100 < half["data_memory_used"] < half["data_memory"]
    assert points(target, "drop").returncode == 0
    full = points(target, "500000")
    assert full.returncode != 0
    assert "827" in full.stderr
    used = told(target).counters
    assert used["data_memory_used"] > 0.9 * used["data_memory"]


@pytest.mark.ndb
def test_each_component_has_its_processes_and_the_reader_is_with_the_management_server(target: NdbTarget) -> None:
    processes = target.processes()
    assert {name: len(pids) for name, pids in processes.items()} == {"management": 2, "shard1": 1}
    reader = processes["management"][1]
    os.kill(reader, 9)
    os.waitid(os.P_PID, reader, os.WEXITED | os.WNOWAIT)
    target.reset()
    assert len(target.processes()["management"]) == 2, "the reader is started again before a step"
    assert told(target).counters["data_nodes"] == 1


@pytest.mark.ndb
def test_the_redo_log_fills_and_its_end_is_an_error(lease: Lease) -> None:
    """Error 410: REDO log files overloaded. One part of the log is full, whatever room the others have."""
    target = NdbTarget(lease, {"management": Resources(), "shard1": Resources()})
    target.create()
    try:
        target.start(TargetState(FULL_REDO))
        ceiling = told(target).counters["redo_log"]
        assert ceiling == 44 * 2**20, "error 410 comes with 4 MB left"
        full = points(target, "2500000")
        assert full.returncode != 0
        assert "410" in full.stderr
        seen = [one.counters for one in target.exposure.readings() if "redo_log_used" in one.counters]
        seen.append(told(target).counters)
        assert max(one["redo_log_used"] for one in seen) > 0.5 * ceiling, "it is read once a second, and fills in three"
    finally:
        target.destroy()


@pytest.mark.ndb
def test_at_this_moment_the_newest_of_each_counter_is_told_however_often_it_is_asked(target: NdbTarget) -> None:
    first, second = target.exposure.now(), target.exposure.now()
    assert first.keys() == second.keys()
    assert 0.9 * 20 * 2**20 < second["data_memory"] <= 20 * 2**20
    assert 0 < second["data_memory_used"] < second["data_memory"]


@pytest.mark.ndb
def test_a_node_that_died_is_started_before_the_others_restart_and_a_note_says_when_it_did(lease: Lease) -> None:
    target = NdbTarget(lease, {name: Resources() for name in ("management", "shard1", "shard2")})
    try:
        target.create()
        target.start(TargetState({**SMALL, "NoOfReplicas": 2}))
        for number, seen in enumerate((False, True), start=1):
            time.sleep(5)  # until there is an arbitrator: without one the other node ends, too
            (node,) = target.processes()["shard2"]
            os.kill(node, signal.SIGKILL)
            time.sleep(1)
            if seen:
                target.counters()
            target.apply(TargetState({**SMALL, "NoOfReplicas": 2, "MaxNoOfConcurrentTransactions": 4096 + number}))
            assert target.effective()["MaxNoOfConcurrentTransactions"] == 4096 + number
            assert target.healthy()
        idle, in_step = target.notes()
        assert idle.startswith("Data node shard2 ended once while the cluster was not loaded")
        assert in_step.startswith("Data node shard2 ended once in a step") and "part-lost" in in_step
    finally:
        target.destroy()


@pytest.mark.ndb
def test_rows_that_do_not_fit_any_more_are_lost_and_said_and_it_goes_on(target: NdbTarget) -> None:
    """200,000 rows of 100 bytes need more than 20 MiB."""
    larger, smaller = TargetState({**SMALL, "DataMemory": "80M"}), TargetState(SMALL)
    target.apply(larger)
    done = points(target, "200000", "0", seconds="1")
    assert done.returncode == 0, done.stderr
    assert told(target).counters["data_memory_used"] > 21 << 20
    assert not target.has_lost_data()
    target.apply(smaller)
    assert target.healthy()
    assert target.effective()["DataMemory"] == 20 << 20
    assert [target.has_lost_data(), target.has_lost_data()] == [True, False]
    assert "began once with empty file systems" in target.notes()[-1]
    assert points(target, "check").returncode == 3, "the table is gone"
    target.apply(larger)
    assert not target.has_lost_data(), "there is room for what is there"
