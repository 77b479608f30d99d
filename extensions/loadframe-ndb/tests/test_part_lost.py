"""A part of a target that dies in the middle of a step: a data node of a MySQL Cluster, with and without a copy of its
data elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import loadframe
from loadframe.errors import TargetError
from loadframe.host import identity
from loadframe.model import PART_LOST, Step
from loadframe.runs.folder import RunFolder
from loadframe.study import parse

SMALL = """NoOfFragmentLogFiles = 4
FragmentLogFileSize = "4M"
SharedGlobalMemory = "32M"
LongMessageBuffer = "8M"
TimeBetweenGlobalCheckpoints = 200"""
STUDY = """
[study]
name = "cluster"
question = "What becomes of a step in which a data node dies?"
[target]
kind = "ndb"
shards = 2
[target.settings]
NoOfReplicas = {replicas}
DataMemory = "80M"
{small}
[workload]
kind = "command"
command = ["{program}", "1000", "20"]
[workload.options]
loop = "closed"
startup_s = 20
[load]
axis = "threads"
levels = [2]
[measure]
window = "4s"
warmup = "1s"
budget = "90s"
blocks = {{ min = 3, max = 3 }}
"""


OVER_SQL = """
[study]
name = "cluster"
question = "What becomes of a step in which a data node dies behind SQL nodes?"
[target]
kind = "ndb-sql"
shards = 2
sql_nodes = 2
[target.settings]
NoOfReplicas = 2
DataMemory = "80M"
{small}
[workload]
kind = "sysbench"
[workload.options]
script = "oltp_point_select"
tables = 1
table_size = 1000
[load]
axis = "threads"
levels = [2]
[measure]
window = "4s"
warmup = "1s"
budget = "150s"
blocks = {{ min = 3, max = 3 }}
"""


def arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def of_ours(program: str, argument: str = "") -> list[int]:
    """Processes of ours that run it with this argument."""
    words = {each.pid: arguments(each.pid) for each in identity.family(os.getpid())}
    runs = {pid: said for pid, said in words.items() if said and said[0].endswith(program)}
    return [pid for pid, said in runs.items() if not argument or argument in said]


@contextmanager
def killed_in_step(number: int, driver: str = "ndb_points", argument: str = "") -> Iterator[list[int]]:
    """The second data node, 2 s after the driver of this step has begun; the process that it was."""
    over, done = threading.Event(), list[int]()

    def wait() -> None:
        drivers: set[int] = set()
        while not over.is_set():
            drivers.update(of_ours(driver, argument))
            if len(drivers) == number:
                over.wait(2)
                done.extend(of_ours("ndbmtd", "--ndb-nodeid=3"))
                for pid in done:
                    os.kill(pid, signal.SIGKILL)
                return
            over.wait(0.02)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def steps_of(runs: Path) -> list[Step]:
    (folder,) = runs.iterdir()
    return list(RunFolder(folder).steps())


def study(tmp_path: Path, replicas: int) -> loadframe.Study:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(small=SMALL, replicas=replicas, program=shutil.which("ndb_points")))
    return loadframe.load_study(path)


@pytest.mark.ndb
def test_with_two_copies_the_step_is_flagged_what_failed_counted_and_the_next_goes_on(tmp_path: Path) -> None:
    with killed_in_step(2) as killed:
        found = loadframe.measure(study(tmp_path, replicas=2), tmp_path / "runs")
    assert len(killed) == 1
    steps = steps_of(tmp_path / "runs")
    assert [PART_LOST in step.flags for step in steps[:3]] == [False, True, False]
    first, lost, after = steps[:3]
    assert lost.metrics["target.parts_lost"] == 1
    assert lost.requests > 0, "the cluster went on"
    assert ("errors" in lost.flags) is (lost.errors > 0)
    assert (first.errors, after.errors) == (0, 0)
    assert after.metrics["ndb.data_nodes"] == 2, "it was started again"
    assert after.throughput > 0.2 * first.throughput
    assert any("shard2 ended once" in warning for warning in found.warnings)


@pytest.mark.ndb
def test_with_one_copy_it_says_so_and_ends_and_finished_steps_are_kept(tmp_path: Path) -> None:
    with (
        killed_in_step(2) as killed,
        pytest.raises(TargetError, match="no copy is left of the data of shard2") as caught,
    ):
        loadframe.measure(study(tmp_path, replicas=1), tmp_path / "runs")
    assert len(killed) == 1
    assert "1 finished step is kept" in caught.value.details
    (step,) = steps_of(tmp_path / "runs")
    assert PART_LOST not in step.flags
    assert of_ours("ndbmtd") == of_ours("ndb_mgmd") == of_ours("ndbinfo_select_all") == []


@pytest.mark.ndb
@pytest.mark.sqlnode
@pytest.mark.extension("loadframe_drivers")
def test_behind_sql_nodes_the_clients_go_on_too(tmp_path: Path) -> None:
    """sysbench would end at the first error that it does not know."""
    with killed_in_step(2, "sysbench", "run") as killed:
        found = loadframe.measure(parse(OVER_SQL.format(small=SMALL)), tmp_path / "runs")
    assert len(killed) == 1
    first, lost, after = steps_of(tmp_path / "runs")[:3]
    assert [PART_LOST in step.flags for step in (first, lost, after)] == [False, True, False]
    assert lost.requests > 0
    assert ("errors" in lost.flags) is (lost.errors > 0)
    assert (first.errors, after.errors) == (0, 0)
    assert after.metrics["ndb.data_nodes"] == 2
    assert any("shard2 ended once" in warning for warning in found.warnings)
