"""Databases of the entries: an SQLite file, a private MariaDB, a private PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds.mysql.kind import MariadbTarget
from loadframe.kinds.postgres.kind import PostgresTarget
from loadframe.model import TargetState
from loadframe.workloads import databases
from loadframe.workloads.postgres import parameters
from loadframe_index.store import Store, connect

Database = dict[str, str]


@pytest.fixture(scope="session")
def sqlite_database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    path = tmp_path_factory.mktemp("database") / "entries.db"
    path.touch()
    return {"kind": "sqlite", "path": str(path), "pragmas": '{"journal_mode": "wal", "synchronous": "OFF"}'}


@pytest.fixture(scope="session")
def mariadb_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    patch = pytest.MonkeyPatch()
    patch.setenv("LOADFRAME_STATE", str(tmp_path_factory.mktemp("state")))
    with Lease.acquire("tests of the index in MariaDB") as lease:
        target = MariadbTarget(lease=lease, resources=Resources())
        try:
            target.create()
            target.start(TargetState({"innodb_buffer_pool_size": 32 << 20}))
            endpoint = target.endpoint()
            databases.make_schema(endpoint)
            names = ("user", "password", "schema")
            yield {"kind": "mariadb", "socket": endpoint.address, **{name: endpoint.options[name] for name in names}}
        finally:
            target.destroy()
    patch.undo()


@pytest.fixture(scope="session")
def postgres_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    patch = pytest.MonkeyPatch()
    patch.setenv("LOADFRAME_STATE", str(tmp_path_factory.mktemp("state")))
    with Lease.acquire("tests of the index in PostgreSQL") as lease:
        target = PostgresTarget(lease=lease, resources=Resources())
        try:
            target.create()
            target.start(TargetState({"shared_buffers": 32 << 20, "synchronous_commit": "off"}))
            endpoint = target.endpoint()
            databases.make_schema(endpoint)
            yield {"kind": "postgres", "schema": endpoint.options.get("schema", "loadframe"), **parameters(endpoint)}
        finally:
            target.destroy()
    patch.undo()


@pytest.fixture(
    params=[
        "sqlite_database",
        pytest.param("mariadb_database", marks=pytest.mark.server),
        pytest.param("postgres_database", marks=pytest.mark.server),
    ]
)
def database(request: pytest.FixtureRequest) -> Database:
    """Each of the databases, with empty tables."""
    found: Database = request.getfixturevalue(request.param)
    with closing(connect(found)) as store:
        store.create("all")
    return found


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    with closing(connect(database)) as store:
        yield store


@pytest.fixture
def another(database: Database) -> Iterator[Callable[[], Store]]:
    """Further connections to the same database."""
    made: list[Store] = []

    def make() -> Store:
        made.append(connect(database))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / "tree"
    path.mkdir()
    return path
