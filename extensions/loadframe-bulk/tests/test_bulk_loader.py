"""Files through the bulk loader into real shards: whole or not at all, nothing lost, nothing twice, whoever is
killed."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from loadframe.errors import WorkloadError
from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import TargetState
from loadframe_bulk import store
from loadframe_bulk.protocol import (
    BLOCK,
    END,
    END_BODY,
    FILE,
    FILE_BODY,
    LOADED,
    TAKEN,
    HungUpError,
    OutOfStepError,
    Stream,
)
from loadframe_bulk.store import NOTHING, Content
from loadframe_bulk.target import BulkLoaderTarget, shards_of
from loadframe_bulk.workload import BulkIngest
from waiting import await_that

pytestmark = pytest.mark.server
SOON_S = 60.0
ROWS = b"".join(b"key%d\t1\t%d\tnote\n" % (number, number) for number in range(1000))
CONTENT = Content(1000, sum(range(1000)))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BulkLoaderTarget]:
    """A loader before two shards, their tables made."""
    allowances = {name: Allowance(US) for name in ("loader", "shard1", "shard2")}
    with Lease.acquire("tests of the bulk loader") as lease:
        target = BulkLoaderTarget(lease=lease, resources=allowances)
        try:
            target.create()
            target.start(TargetState({"shard_shared_buffers": 32 << 20, "shard_synchronous_commit": "off"}))
            store.create(shards_of(target.endpoint()))
            yield target
        finally:
            target.destroy()


@pytest.fixture
def shards(target: BulkLoaderTarget) -> list[str]:
    """Empty ones."""
    found = shards_of(target.endpoint())
    store.empty(found)
    return found


class Client:
    """A client of the loader, step by step."""

    def __init__(self, target: BulkLoaderTarget, file: int) -> None:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(target.endpoint().address)
        self.stream = Stream(connection)
        self.stream.send(FILE, FILE_BODY.pack(file))

    def block(self) -> None:
        self.stream.send(BLOCK, ROWS)
        self.stream.expect(TAKEN)

    def end(self, content: Content = CONTENT) -> None:
        self.stream.send(END, END_BODY.pack(content.rows, content.amount))
        self.stream.expect(LOADED)


def holds(shards: list[str], files: list[int]) -> bool:
    """That exactly these files are there, each whole."""
    assert store.wrong(shards, lambda _: CONTENT, files) == []
    with psycopg.connect(shards[0]) as connection:
        return [file for (file,) in connection.execute("SELECT file FROM loaded_file ORDER BY 1")] == files


@pytest.mark.long
def test_a_file_is_spread_over_the_shards_and_is_there_whole(target: BulkLoaderTarget, shards: list[str]) -> None:
    client = Client(target, 7)
    with closing(client.stream):
        client.block()
        client.end()
    assert holds(shards, [7])
    for shard in shards:
        with psycopg.connect(shard) as connection:
            (rows,) = connection.execute("SELECT count(*) FROM ingested").fetchone() or (0,)
        assert 400 < rows < 600


def test_a_client_that_hangs_up_takes_its_file_back(target: BulkLoaderTarget, shards: list[str]) -> None:
    client = Client(target, 8)
    client.block()
    client.stream.close()
    assert holds(shards, [])


def test_a_file_that_is_not_what_was_sent_is_refused(target: BulkLoaderTarget, shards: list[str]) -> None:
    client = Client(target, 9)
    with closing(client.stream):
        client.block()
        with pytest.raises(OutOfStepError, match="1000 rows arrived"):
            client.end(Content(1001, 0))
    assert holds(shards, [])


def test_a_file_cannot_be_loaded_twice(target: BulkLoaderTarget, shards: list[str]) -> None:
    for attempt in (1, 2):
        client = Client(target, 10)
        with closing(client.stream):
            client.block()
            if attempt == 1:
                client.end()
            else:
                with pytest.raises(OutOfStepError, match="duplicate key"):
                    client.end()
    assert holds(shards, [10])


def test_a_client_that_is_gone_when_its_file_is_whole_gets_nothing_committed(
    target: BulkLoaderTarget, shards: list[str]
) -> None:
    """Everything was sent before the loader read any of it."""
    client = Client(target, 16)
    client.stream.send(BLOCK, ROWS)
    client.stream.send(END, END_BODY.pack(CONTENT.rows, CONTENT.amount))
    client.stream.close()
    time.sleep(0.5)
    assert holds(shards, [])


def test_a_loader_killed_in_the_middle_leaves_nothing(target: BulkLoaderTarget, shards: list[str]) -> None:
    client = Client(target, 11)
    with closing(client.stream):
        client.block()
        _, worker = target.processes()["loader"]
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(HungUpError):
            client.end()
    assert holds(shards, [])


@pytest.mark.parametrize("decided", [False, True], ids=["before the first shard commits", "after it"])
def test_a_loader_killed_while_it_commits_is_settled_by_the_first_shard(shards: list[str], decided: bool) -> None:
    """The rows are prepared on both shards; the first one has committed them, or not."""
    connections = [psycopg.connect(shard) for shard in shards]
    for connection in connections:
        connection.tpc_begin(store.transaction_of(12))
        with connection.cursor().copy(store.COPY) as copy:
            copy.write(b"12\tk\t1\t5\tn\n")
        connection.execute(store.NOTE_FILE, (12, 1, 5))
        connection.tpc_prepare()
    if decided:
        connections[0].tpc_commit()
    for connection in connections:
        connection.close()
    sent = Content(2, 10)
    assert store.wrong(shards, lambda _: sent, [12] if decided else []) == []
    with psycopg.connect(shards[1]) as connection:
        assert connection.execute("SELECT count(*) FROM ingested").fetchone() == (1 if decided else 0,)


@pytest.mark.long
def test_a_pool_ends_with_its_server_and_survives_shards_that_restart(
    target: BulkLoaderTarget, shards: list[str]
) -> None:
    state = {"shard_shared_buffers": 32 << 20, "shard_synchronous_commit": "off", "pool": 3}
    target.apply(TargetState(state))
    await_that(lambda: len(target.processes()["loader"]) == 4, "four loaders")
    target.apply(TargetState({**state, "shard_shared_buffers": 48 << 20}))
    for number in range(20, 26):
        client = Client(target, number)
        with closing(client.stream):
            client.block()
            client.end()
    assert holds(shards, list(range(20, 26)))
    await_that(lambda: len(target.processes()["loader"]) == 4, "four loaders")
    server, *pool = target.processes()["loader"]
    os.kill(server, signal.SIGKILL)
    await_that(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pool), "the pool has ended")
    target.apply(TargetState({"shard_shared_buffers": 32 << 20, "shard_synchronous_commit": "off"}))


@pytest.mark.long
def test_many_files_at_once_each_get_a_process_and_none_is_refused(target: BulkLoaderTarget, shards: list[str]) -> None:
    """Processes end while others are started: whoever waits for them is interrupted by the next one's end."""
    files = list(range(100, 180))
    for first in range(0, len(files), 20):
        clients = [Client(target, file) for file in files[first : first + 20]]
        for client in clients:
            client.block()
        for client in clients:
            client.end()
            client.stream.close()
    assert holds(shards, files)
    await_that(lambda: len(target.processes()["loader"]) == 1, "one loader")


def test_settling_waits_for_who_loads(
    target: BulkLoaderTarget, shards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(target, 13)
    client.block()
    monkeypatch.setattr(store, "PATIENCE", "200ms")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        store.wrong(shards, lambda _: CONTENT, [])
    client.end()
    client.stream.close()
    monkeypatch.setattr(store, "PATIENCE", "60s")
    assert holds(shards, [13])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ("DELETE FROM ingested WHERE key = 'key1'", "were noted"),
        ("INSERT INTO ingested SELECT * FROM ingested WHERE key = 'key1'", "were noted"),
        ("DELETE FROM ingested; DELETE FROM loaded_file", "is on 1 of 2 shards"),
        ("UPDATE loaded_file SET rows = rows - 1; DELETE FROM ingested WHERE key = 'key1'", "999 rows on the shards"),
        (
            "DELETE FROM ingested WHERE key = 'key1'; INSERT INTO ingested VALUES (15, 'key1', 1, 1, '')",
            "rows of file 15; 0 were noted",
        ),
    ],
)
def test_a_lost_row_and_one_that_is_there_twice_are_noticed(
    target: BulkLoaderTarget, shards: list[str], spoil: str, said: str
) -> None:
    client = Client(target, 14)
    with closing(client.stream):
        client.block()
        client.end()
    with_key = next(shard for shard in shards if _has(shard, "key1"))
    with psycopg.connect(with_key) as connection:
        connection.execute(spoil)
    assert any(said in each for each in store.wrong(shards, lambda _: CONTENT, [14]))
    assert store.wrong(shards, lambda _: CONTENT, [14, 15])[-1] == "file 15 was said to be loaded and is not there"


def _has(shard: str, key: str) -> bool:
    with psycopg.connect(shard) as connection:
        return connection.execute("SELECT 1 FROM ingested WHERE key = %s", (key,)).fetchone() is not None


@pytest.mark.long
@pytest.mark.parametrize("pool", [0, 3])
def test_a_step_loads_files_and_every_row_is_accounted_for(target: BulkLoaderTarget, tmp_path: Path, pool: int) -> None:
    target.apply(TargetState({"shard_shared_buffers": 32 << 20, "shard_synchronous_commit": "off", "pool": pool}))
    workload = BulkIngest({"file_size_kb": 256}, Allowance(US))
    endpoint = target.endpoint()
    (tmp_path / "step").mkdir()
    workload.set_level(endpoint, 3)
    driver = workload.start(endpoint, 3, tmp_path / "step", 1.0)
    assert driver.wait(SOON_S)
    requests = driver.requests()
    files, blocks = ((requests.operation == index).sum() for index in (1, 0))
    assert files > 0
    assert blocks >= 4 * files
    workload.after_step(endpoint)
    with psycopg.connect(shards_of(endpoint)[0]) as connection:
        assert connection.execute("SELECT count(*) FROM loaded_file").fetchone() == (files,)


def test_clients_killed_in_the_middle_lose_only_what_they_had_begun(target: BulkLoaderTarget, tmp_path: Path) -> None:
    workload, endpoint = BulkIngest({"file_size_kb": 512}, Allowance(US)), target.endpoint()
    (tmp_path / "step").mkdir()
    workload.set_level(endpoint, 4)
    driver = workload.start(endpoint, 4, tmp_path / "step", 60.0)
    first = shards_of(endpoint)[0]
    await_that(lambda: _files(first) >= 3, "three files")
    driver.kill()
    workload.after_step(endpoint)
    with psycopg.connect(first) as connection:
        connection.execute("DELETE FROM loaded_file")
        connection.execute("DELETE FROM ingested")
    with pytest.raises(WorkloadError, match="not what was sent"):
        workload.after_step(endpoint)


def _files(shard: str) -> int:
    with psycopg.connect(shard) as connection:
        return int((connection.execute("SELECT count(*) FROM loaded_file").fetchone() or (0,))[0])


def test_nothing_holds_nothing() -> None:
    assert Content(1, 2) + NOTHING == Content(1, 2)
