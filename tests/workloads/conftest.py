"""Real targets for the workloads: an SQLite file, and one private MariaDB for the whole session."""

from __future__ import annotations

import json
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from loadframe.host.leases import Lease
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance, Resources, spawn
from loadframe.kinds import registry as targets
from loadframe.kinds.mysql.kind import MariadbTarget, MysqlTarget
from loadframe.kinds.postgres.kind import PostgresTarget
from loadframe.kinds.registry import attach
from loadframe.model import Endpoint, SettingValue, TargetState
from loadframe.workloads import databases, mariadb
from waiting import await_that


@pytest.fixture(params=["delete", "wal"])
def queue_file(request: pytest.FixtureRequest, tmp_path: Path) -> Endpoint:
    """An empty SQLite database in each of the two journal modes that matter."""
    path = tmp_path / "queue folder" / "queue?#1.db"
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {request.param}").fetchall()
    connection.close()
    return Endpoint("sqlite", str(path), {"pragmas": json.dumps({"synchronous": "OFF", "busy_timeout": 5000})})


@pytest.fixture(scope="session")
def farm_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A MariaDB of its own, with a small table cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("LOADFRAME_STATE", str(tmp_path_factory.mktemp("state")))
    with Lease.acquire("tests of the render farm") as lease:
        target = MariadbTarget(lease=lease, resources=Resources())
        try:
            target.create()
            target.start(TargetState({"table_open_cache": 64, "innodb_buffer_pool_size": 32 << 20}))
            yield target.endpoint()
        finally:
            target.destroy()
    patch.undo()


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A MySQL of its own, that does not wait for the disk."""
    patch = pytest.MonkeyPatch()
    patch.setenv("LOADFRAME_STATE", str(tmp_path_factory.mktemp("state")))
    with Lease.acquire("tests of workloads on MySQL") as lease:
        target = MysqlTarget(lease=lease, resources=Resources())
        try:
            target.create()
            target.start(TargetState({"innodb_flush_log_at_trx_commit": 2, "sync_binlog": 0}))
            yield target.endpoint()
        finally:
            target.destroy()
    patch.undo()


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A PostgreSQL of its own, that does not wait for the disk."""
    patch = pytest.MonkeyPatch()
    patch.setenv("LOADFRAME_STATE", str(tmp_path_factory.mktemp("state")))
    with Lease.acquire("tests of workloads on PostgreSQL") as lease:
        target = PostgresTarget(lease=lease, resources=Resources())
        try:
            target.create()
            target.start(TargetState({"shared_buffers": 32 << 20, "synchronous_commit": "off"}))
            yield target.endpoint()
        finally:
            target.destroy()
    patch.undo()


@pytest.fixture(scope="session")
def web_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """An nginx of its own."""
    yield from _serving("nginx", tmp_path_factory.mktemp("state"), {"sendfile": True})


@pytest.fixture(scope="session")
def foreign_site(web_server: Endpoint) -> Endpoint:
    """The same nginx as one that is known by its address alone."""
    for name, size in (("one", 5000), ("two", 200)):
        (Path(web_server.options["files"]) / name).write_bytes(name.encode() * size)
    return Endpoint("url", web_server.address, {"paths": "/one /two"}, attached=True)


@pytest.fixture(scope="session")
def foreign_service(foreign_site: Endpoint) -> Endpoint:
    """The same one as a service."""
    return Endpoint("service", foreign_site.address, {"paths": "/"})


@pytest.fixture(scope="session")
def own_service(web_server: Endpoint) -> Endpoint:
    """The same nginx as a service of the user's own."""
    return Endpoint("service", web_server.address)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A Redis of its own, that writes nothing to the disk."""
    folder = tmp_path_factory.mktemp("redis")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = spawn(command, Allowance(US), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    ping = ["redis-cli", "-p", str(port), "ping"]
    try:
        await_that(lambda: subprocess.run(ping, capture_output=True).stdout == b"PONG\n", "Redis answers", of=process)
        yield Endpoint("service", f"127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()


def _serving(kind: str, state: Path, settings: Mapping[str, SettingValue] = MappingProxyType({})) -> Iterator[Endpoint]:
    """A web server, or a cache before an origin of its own."""
    pytest.importorskip("loadframe_caches", reason="needs loadframe_caches")
    patch = pytest.MonkeyPatch()
    patch.setenv("LOADFRAME_STATE", str(state))
    with Lease.acquire(f"tests of workloads on {kind}") as lease:
        target = targets.kind_named(kind).make(lease, Resources())
        try:
            target.create()
            target.start(TargetState(settings))
            yield target.endpoint()
        finally:
            target.destroy()
    patch.undo()


@pytest.fixture(scope="session")
def nginx_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    yield from _serving("nginx-cache", tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session")
def varnish_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    yield from _serving("varnish", tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session")
def loader_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A bulk loader before two shards."""
    pytest.importorskip("loadframe_bulk", reason="needs loadframe_bulk")
    patch = pytest.MonkeyPatch()
    patch.setenv("LOADFRAME_STATE", str(tmp_path_factory.mktemp("state")))
    with Lease.acquire("tests of workloads on a bulk loader") as lease:
        resources = dict.fromkeys(("loader", "shard1", "shard2"), Allowance(US))
        target = targets.make_shards("bulk-loader", lease=lease, resources=resources)
        try:
            target.create()
            target.start(TargetState({"shard_shared_buffers": 32 << 20, "shard_synchronous_commit": "off"}))
            yield target.endpoint()
        finally:
            target.destroy()
    patch.undo()


@pytest.fixture(scope="session")
def farm_attached(farm_server: Endpoint) -> Endpoint:
    """The same server as one that we were only told of."""
    with closing(
        attach(f"mariadb:{mariadb.where(farm_server)}", option_file=Path(farm_server.options["option_file"]))
    ) as server:
        return databases.marked(server.endpoint(), databases.new_mark())


@pytest.fixture(scope="session")
def postgres_attached(postgres_server: Endpoint) -> Endpoint:
    """The same server as one that we were only told of."""
    with closing(attach("postgres", option_file=Path(postgres_server.options["option_file"]))) as server:
        return databases.marked(server.endpoint(), databases.new_mark())


@pytest.fixture
def attached_mariadb(farm_server: Endpoint, farm_attached: Endpoint) -> Endpoint:
    """It, without a database of drivers."""
    databases.drop_schema(farm_server)
    return databases.marked(farm_attached, databases.new_mark())


@pytest.fixture
def attached_postgres(postgres_server: Endpoint, postgres_attached: Endpoint) -> Endpoint:
    """It, without a schema of drivers."""
    databases.drop_schema(postgres_server)
    return databases.marked(postgres_attached, databases.new_mark())


@pytest.fixture
def ask(farm_server: Endpoint) -> Callable[..., list[tuple[Any, ...]]]:
    """Ask the farm's server something and get all rows."""
    import pymysql

    def answer(sql: str) -> list[tuple[Any, ...]]:
        connection = pymysql.connect(
            unix_socket=farm_server.address,
            user=farm_server.options["user"],
            password=farm_server.options["password"],
            database=farm_server.options["schema"],
            autocommit=True,
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    return answer
