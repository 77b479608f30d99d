"""What every target must do, in each of its forms: of one piece, or of shards with or without something before them."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadframe.errors import StudyError, TargetError
from loadframe.host import identity
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds import registry
from loadframe.kinds.base import Cache, Target
from loadframe.metrics import METRICS
from loadframe.metrics.agreements import OF_SERVERS
from loadframe.model import Endpoint, SettingValue, TargetState

from .declaring import declared_of

State = Mapping[str, SettingValue]


@dataclass(frozen=True)
class Example:
    """States of one kind: one to start with, one that differs in what can change while it runs, one in what cannot."""

    start: State
    dynamic: State
    restart: State
    misspelt: tuple[str, str]
    wrong: State
    impossible: State = field(default_factory=dict)
    """Each value is one that its setting takes; the server would not start with them. None of a target without one."""


SMALL: State = {
    "NoOfReplicas": 2,
    "DataMemory": "80M",
    "NoOfFragmentLogFiles": 4,
    "FragmentLogFileSize": "4M",
    "SharedGlobalMemory": "32M",
    "LongMessageBuffer": "8M",
    "TimeBetweenGlobalCheckpoints": 200,
}
"""A cluster whose data nodes take little memory and restart soon."""

EXAMPLES = {
    "sqlite": Example(
        start={"journal_mode": "wal", "synchronous": "NORMAL"},
        dynamic={"journal_mode": "WAL", "synchronous": "FULL", "busy_timeout": 1234},
        restart={"journal_mode": "TRUNCATE", "page_size": 8192, "temp_store": "memory"},
        misspelt=("jurnal_mode", "journal_mode"),
        wrong={"synchronous": "sometimes"},
    ),
    "mariadb": Example(
        start={"table_open_cache": 64, "innodb_flush_log_at_trx_commit": 2},
        dynamic={"table_open_cache": 64, "innodb_flush_log_at_trx_commit": 0, "sort_buffer_size": "1M"},
        restart={"table-open-cache": 400, "table_open_cache_instances": 1, "thread_handling": "pool-of-threads"},
        misspelt=("table_open_cash", "table_open_cache"),
        wrong={"innodb_flush_log_at_trx_commit": 7},
        impossible={"innodb_checksum_algorithm": "sometimes"},
    ),
    "mysql": Example(
        start={"table_open_cache": 64, "innodb_flush_log_at_trx_commit": 2},
        dynamic={
            "table_open_cache": 64,
            "innodb_flush_log_at_trx_commit": 0,
            "sync_binlog": 7,
            "sort_buffer_size": "1M",
        },
        restart={"table-open-cache": 400, "innodb_redo_log_capacity": "16M", "log_bin": "off"},
        misspelt=("table_open_cash", "table_open_cache"),
        wrong={"innodb_flush_log_at_trx_commit": 7},
        impossible={"innodb_checksum_algorithm": "sometimes"},
    ),
    "ndb": Example(
        start=SMALL,
        dynamic={name.lower(): value for name, value in SMALL.items()},
        restart={**SMALL, "MaxNoOfConcurrentScans": 300, "api_BatchSize": 64},
        misspelt=("DataMemmory", "DataMemory"),
        wrong={"NoOfReplicas": 7},
        impossible={"MaxNoOfConcurrentTransactions": 40000, "MaxNoOfConcurrentOperations": 32},
    ),
    "ndb-sql": Example(
        start={**SMALL, "NoOfReplicas": 1, "sql_ndb_cluster_connection_pool": 2},
        dynamic={
            **SMALL,
            "NoOfReplicas": 1,
            "sql_ndb_cluster_connection_pool": 2,
            "sql_ndb_force_send": False,
            "sql_sort_buffer_size": "1M",
            "sql_cpus": "0",
        },
        restart={**SMALL, "NoOfReplicas": 1, "sql-ndb-cluster-connection-pool": 3, "MaxNoOfConcurrentScans": 300},
        misspelt=("sql_ndb_force_sent", "sql_ndb_force_send"),
        wrong={"sql_ndb_cluster_connection_pool": 64},
        impossible={"MaxNoOfConcurrentTransactions": 40000, "MaxNoOfConcurrentOperations": 32},
    ),
    "nginx": Example(
        start={"worker_connections": 64, "sendfile": True},
        dynamic={"worker_connections": 96, "worker_processes": 2, "keepalive_timeout": "5s", "listen_backlog": 100},
        restart={"worker-connections": 96, "listen_reuseport": "on", "open_file_cache_max": 10, "directio": "4M"},
        misspelt=("worker_connection", "worker_connections"),
        wrong={"aio": "sometimes"},
        impossible={"read_ahead": 10**20 - 1},
    ),
    "nginx-cache": Example(
        start={"worker_connections": 64, "sendfile": True},
        dynamic={"worker_connections": 96, "proxy_cache_valid": "10min", "proxy_buffers_size": "16k"},
        restart={"proxy-cache-keys": "1M", "proxy_cache_lock": "off", "listen_reuseport": "on"},
        misspelt=("proxy_cache_key", "proxy_cache_keys"),
        wrong={"proxy_cache_min_uses": 0},
        impossible={"proxy_buffers_number": 2, "proxy_buffers_size": "1k"},
    ),
    "squid": Example(
        start={"cache_dir_kind": "aufs", "cache_mem": "16M"},
        dynamic={"cache_dir_kind": "aufs", "cache_mem": "8M", "read_ahead_gap": "64k", "collapsed_forwarding": "on"},
        restart={"cache-dir-kind": "rock", "cache_dir_size": "20M", "memory_replacement_policy": "heap lfuda"},
        misspelt=("cache_memory", "cache_mem"),
        wrong={"cache_dir_kind": "disk"},
        impossible={"cache_mem": 10**20 - 1},
    ),
    "varnish": Example(
        start={"storage_kind": "file", "storage_size": "16M"},
        dynamic={"storage_kind": "file", "storage_size": "16M", "default_grace": 5, "http_gzip_support": "off"},
        restart={"storage-kind": "malloc", "thread_pools": 1, "vsl_space": "4M"},
        misspelt=("thread_pool", "thread_pools"),
        wrong={"storage_kind": "disk"},
        impossible={"thread_pool_min": 200, "thread_pool_max": 100},
    ),
    "postgres": Example(
        start={"shared_buffers": "16MB", "synchronous_commit": "off"},
        dynamic={"shared_buffers": "16MB", "checkpoint_timeout": "2min", "random_page_cost": 1.1, "work_mem": "1MB"},
        restart={"shared-buffers": "24MB", "max_connections": 20, "wal_buffers": "1MB"},
        misspelt=("shared_bufers", "shared_buffers"),
        wrong={"synchronous_commit": "sometimes"},
        impossible={"max_connections": 3},
    ),
    "service": Example(
        start={"pool": 2, "grain": 1},
        dynamic={"pool": 2, "grain": 3},
        restart={"pool": 4, "grain": 1, "threads": 2},
        misspelt=("pol", "pool"),
        wrong={"pool": 7},
    ),
    "bulk-loader": Example(
        start={"pool": 2, "shard_synchronous_commit": "off"},
        dynamic={"pool": 2, "shard_checkpoint_timeout": "2min", "shard_work_mem": "1MB"},
        restart={"batch_bytes": "64kB", "shard_shared_buffers": "24MB", "shard_wal_buffers": "1MB"},
        misspelt=("batch_byte", "batch_bytes"),
        wrong={"pool": -1},
        impossible={"shard_wal_level": "minimal"},
    ),
}
RATES = {"1/s", "bytes/s", "s/s"}
STARTED = [kind for kind, row in registry.KINDS.own.items() if row.by_address is None]


def test_every_registered_kind_that_we_start_has_an_example() -> None:
    assert sorted(EXAMPLES) == sorted(STARTED)


@pytest.mark.parametrize("kind", STARTED)
def test_a_kind_registers_what_its_target_is(kind: str, lease: Lease) -> None:
    """Studies are checked by the record, and carried out by the target: the two must say the same."""
    row, named = declared_of(kind), registry.components(kind, None)
    if row.before:
        with pytest.raises(StudyError, match="shards"):
            registry.kind_named(kind).make(lease, Resources())
        named = registry.components(kind, 1)
        target = registry.make_shards(
            kind, lease=lease, resources={name: Resources().run_by(lease.runs_as) for name in named}
        )
    else:
        target = row.make(lease, Resources().run_by(lease.runs_as))
    assert (row.kind, target.kind, target.embedded) == (kind, kind, row.embedded)
    assert isinstance(target, Cache) is row.cache
    assert row.catalogue.kind in (kind, row.ruled_as)
    assert row.ruled_as == "" or row.ruled_as in registry.KINDS.own
    assert target.pids() == ()


@pytest.mark.parametrize("kind", registry.attachable_kinds())
def test_what_can_be_attached_to_says_where_it_is_and_with_what_password(kind: str) -> None:
    known = registry.attachable(kind)
    assert known is not None
    assert known.host_of("db.example:1", None) == "db.example"
    assert known.host_of("/run/a.socket", None) == ""
    assert known.password.isupper()
    assert known.head == "" or known.head.endswith("]\n")


@pytest.fixture(scope="module")
def example(kind: str) -> Example:
    return EXAMPLES[kind]


@pytest.fixture
def running(shared: Target, example: Example) -> Target:
    """In its first state, with nothing stored, whatever the test before has done or failed to do."""
    if shared.healthy():
        shared.apply(TargetState(example.start))
    else:
        shared.stop()
        shared.start(TargetState(example.start))
    forget(shared.endpoint())
    return shared


@contextmanager
def connection(endpoint: Endpoint) -> Iterator[Any]:
    """As a load driver connects: with nothing but the endpoint."""
    database: Any
    if endpoint.kind == "sqlite":
        database = sqlite3.connect(endpoint.address, isolation_level=None)
        for name, value in json.loads(endpoint.options["pragmas"]).items():
            database.execute(f"PRAGMA {name} = {value}")
    elif endpoint.kind == "postgres":
        import psycopg

        given = {name: endpoint.options[name] for name in ("user", "password", "port")}
        database = psycopg.connect(host=endpoint.address, dbname=endpoint.options["database"], autocommit=True, **given)
        database.execute(f"CREATE SCHEMA IF NOT EXISTS {endpoint.options['schema']}")
    else:
        import pymysql

        options = endpoint.options
        database = pymysql.connect(
            unix_socket=endpoint.address,
            user=options["user"],
            password=options["password"],
            database=options["schema"],
            autocommit=True,
        )
    try:
        yield database.cursor()
    finally:
        database.close()


def rows(endpoint: Endpoint, statement: str) -> list[Any]:
    """What every piece that has data answers: all the same."""
    answers = []
    for piece in endpoint.shards or (endpoint,):
        with connection(piece) as cursor:
            cursor.execute(statement)
            answers.append(list(cursor.fetchall()) if cursor.description else [])
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def first_pids(target: Target, kind: str) -> dict[str, int]:
    """The process that a piece's others come from, of every piece that has data."""
    before = registry.KINDS[kind].before
    return {name: pids[0] for name, pids in target.processes().items() if pids and name not in before}


def points(endpoint: Endpoint, what: str) -> int:
    """The exit status of a program of the NDB API (tests/data/ndb/points.cpp)."""
    environment = {**os.environ, "LOADFRAME_ADDRESS": endpoint.address}
    return subprocess.run(["ndb_points", what], env=environment, check=False).returncode


def store(endpoint: Endpoint) -> None:
    """Leave something with the target, as a workload does."""
    if "files" in endpoint.options:
        (Path(endpoint.options["files"]) / "jobs").write_text("1")
        return
    if endpoint.kind == "service":
        urllib.request.urlopen(f"http://{endpoint.address}/store", data=b"1", timeout=10).close()
        return
    if endpoint.kind == "ndb":
        assert points(endpoint, "1") == 0
        return
    rows(endpoint, "CREATE TABLE jobs (id INTEGER PRIMARY KEY)")
    rows(endpoint, "INSERT INTO jobs VALUES (1)")


def forget(endpoint: Endpoint) -> None:
    """What `store` has left."""
    if "files" in endpoint.options:
        (Path(endpoint.options["files"]) / "jobs").unlink(missing_ok=True)
        return
    if endpoint.kind == "service":
        urllib.request.urlopen(f"http://{endpoint.address}/store", data=b"", timeout=10).close()
        return
    if endpoint.kind == "ndb":
        assert points(endpoint, "drop") == 0
        return
    rows(endpoint, "DROP TABLE IF EXISTS jobs")


def stored(endpoint: Endpoint) -> bool:
    """Whether the target answers what was left with it."""
    if "files" in endpoint.options or endpoint.kind == "service":
        path = "stored" if endpoint.kind == "service" else "jobs"
        with urllib.request.urlopen(f"http://{endpoint.address}/{path}", timeout=10) as answer:
            return bool(answer.read() == b"1")
    if endpoint.kind == "ndb":
        return points(endpoint, "check") == 0
    return rows(endpoint, "SELECT id FROM jobs") == [(1,)]


def test_a_driver_can_work_with_nothing_but_the_endpoint(running: Target) -> None:
    endpoint = running.endpoint()
    assert endpoint.kind == running.kind
    store(endpoint)
    assert stored(endpoint)


def test_a_driver_is_told_of_every_piece_in_order(running: Target, components: tuple[str, ...]) -> None:
    shards = running.endpoint().shards
    if running.kind in ("ndb", "ndb-sql"):
        assert shards == (), "data nodes are reached through the management server or the SQL node"
        return
    assert len(shards) == sum(name.startswith("shard") for name in components)
    assert len({shard.options["socket"] for shard in shards}) == len(shards)
    for shard, name in zip(shards, components[-len(shards) :] if shards else (), strict=True):
        assert f"/{name}/" in f"{shard.address}/"


def test_what_was_configured_is_effective(running: Target, kind: str, example: Example) -> None:
    assert declared_of(kind).check_settings(example.start).items() <= running.effective().items()


@pytest.mark.parametrize("change", ["dynamic", "restart"])
def test_a_change_is_effective_the_data_stay_and_it_can_be_taken_back(
    running: Target, kind: str, example: Example, change: str
) -> None:
    before = running.effective()
    store(running.endpoint())
    wanted: State = getattr(example, change)
    running.apply(TargetState(wanted))
    assert declared_of(kind).check_settings(wanted).items() <= running.effective().items()
    running.apply(TargetState(example.start))
    assert running.effective() == before, "settings that are no longer asked for go back to their defaults"
    assert stored(running.endpoint())
    assert running.healthy()


def test_only_what_needs_a_restart_restarts(running: Target, kind: str, example: Example) -> None:
    """Of what has data: what is in front of it holds nothing but connections, and may start again."""
    before = first_pids(running, kind)  # the others may be processes of connections, which come and go
    running.apply(TargetState(example.dynamic))
    assert first_pids(running, kind) == before
    running.apply(TargetState(example.restart))
    after = first_pids(running, kind)
    assert after.keys() == before.keys()
    assert all(after[name] != before[name] for name in before)


def test_every_counter_is_answered_and_known(running: Target) -> None:
    assert running.counters().keys() == {spec.name for spec in running.counter_specs}
    assert all(spec.metric in METRICS for spec in running.counter_specs)
    assert all(METRICS[spec.metric].unit in RATES for spec in running.counter_specs if spec.cumulative)
    running.reset()
    assert running.counters() or not running.counter_specs


def test_its_processes_are_known_and_none_of_a_server_is_root(
    running: Target, kind: str, components: tuple[str, ...]
) -> None:
    """What is in front of shards is our own program, and runs as we do."""
    assert bool(running.pids()) is not running.embedded
    processes = running.processes()
    assert running.embedded or tuple(processes) == components
    assert running.embedded or all(processes.values())
    assert {pids[0] for pids in processes.values()} <= set(running.pids())
    for name in components:
        for pid in () if name in registry.KINDS[kind].before else processes.get(name, ()):
            assert os.geteuid() != 0 or os.stat(f"/proc/{pid}").st_uid != 0  # noqa: PTH116


def test_it_stops_keeps_its_data_and_starts_again(running: Target, example: Example) -> None:
    store(running.endpoint())
    running.stop()
    running.stop()
    assert not running.healthy()
    assert running.pids() == ()
    with pytest.raises(TargetError):
        running.counters()
    running.start(TargetState(example.start))
    assert stored(running.endpoint())


def test_destroy_leaves_nothing_and_can_be_repeated(target: Target, example: Example, lease: Lease) -> None:
    target.start(TargetState(example.start))
    target.destroy()
    target.destroy()
    assert list(lease.folder.iterdir()) == []
    assert identity.naming(lease.folder.name) == ()
    assert not target.healthy()


def test_a_misspelt_setting_is_refused_and_the_right_one_named(unstarted: Target, example: Example) -> None:
    wrong, right = example.misspelt
    with pytest.raises(StudyError, match=wrong) as caught:
        unstarted.start(TargetState({wrong: 1}))
    assert right in caught.value.remedy
    assert unstarted.pids() == ()


def test_a_value_that_cannot_be_is_refused_and_what_can_be_named(unstarted: Target, example: Example) -> None:
    ((name, value),) = example.wrong.items()
    with pytest.raises(StudyError, match=f"{name} = {value!r}") as caught:
        unstarted.start(TargetState(example.wrong))
    assert "Give" in caught.value.remedy


def test_a_state_that_would_not_start_is_known_before_and_while_it_runs(target: Target, example: Example) -> None:
    impossible = TargetState({**example.start, **(example.impossible or example.wrong)})
    refused = TargetError if example.impossible else StudyError

    def look() -> None:
        target.check(TargetState(example.restart))
        with pytest.raises(refused) as caught:
            target.check(impossible)
        assert any(name.removeprefix("shard_") in caught.value.fact for name in example.impossible or example.wrong)
        assert "Give" in caught.value.remedy
        assert bool(caught.value.details) is bool(example.impossible)

    look()
    assert target.pids() == ()
    target.start(TargetState(example.start))
    before, pids = target.effective(), first_pids(target, target.kind)
    look()
    assert target.effective() == before
    assert first_pids(target, target.kind) == pids
    assert target.healthy()


def test_a_refused_change_leaves_it_as_it_was(running: Target, example: Example) -> None:
    before = running.effective()
    with pytest.raises(StudyError):
        running.apply(TargetState(example.wrong))
    assert running.effective() == before


def test_it_says_what_it_is(running: Target) -> None:
    name = running.version().split()[0].lower()
    assert name.startswith(running.kind) or running.kind.startswith(f"{name}-")
    assert running.version().split()[1][0].isdigit() or running.kind == "service", "which has no version of ours"
    assert {"data", "started"} <= running.describe().keys()
    endpoint = running.endpoint()
    secrets = [piece.options["password"] for piece in (endpoint, *endpoint.shards) if "password" in piece.options]
    assert not any(secret in " ".join(running.describe().values()) for secret in secrets)


def test_asking_before_the_start_is_a_clear_error(unstarted: Target) -> None:
    for ask in (unstarted.effective, unstarted.counters, unstarted.reset):
        with pytest.raises(TargetError):
            ask()
    assert not unstarted.healthy()


def test_the_requests_that_it_counts_are_held_against_those_of_the_driver(unstarted: Target) -> None:
    told = {spec.metric for spec in unstarted.counter_specs}
    requests = [row for row in OF_SERVERS if row.witnesses == (("throughput",),) and told.issuperset(row.counter)]
    assert unstarted.embedded or requests or not told


def test_unknown_kinds_are_refused_with_the_list(lease: Lease) -> None:
    with pytest.raises(StudyError, match="oracle") as caught:
        registry.kind_named("oracle").make(lease, Resources())
    assert ", ".join(sorted(registry.KINDS)) in caught.value.remedy
    assert {"mariadb", "nginx-cache", "url"} <= registry.KINDS.keys()


def test_a_cluster_says_how_many_data_nodes_it_has(lease: Lease) -> None:
    with pytest.raises(StudyError, match="does not say how many") as caught:
        registry.kind_named("ndb").make(lease, Resources())
    assert "target.shards" in caught.value.remedy


def test_the_doctor_is_told_what_each_kind_needs() -> None:
    requirements = registry.check()
    assert {requirement.kind for requirement in requirements} == set(registry.KINDS) - {
        "bulk-loader",
        "nginx-cache",
        "service",
        "url",
    }, "as postgres, as nginx"
    assert len(set(requirements)) == len(requirements)
    assert all(requirement.how_to_get_it for requirement in requirements)


@pytest.fixture
def closed_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_it_starts_whatever_our_umask(closed_umask: None, target: Target) -> None:
    """What we write for a server of another user was readable for us alone."""
    target.start(TargetState({}))
    assert target.endpoint()
