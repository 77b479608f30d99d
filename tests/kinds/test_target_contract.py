"""Every kind of ours passes the contract suite, in each of its forms; and what the registry says of all of them."""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from loadframe.errors import StudyError
from loadframe.host.leases import Lease
from loadframe.host.processes import Resources
from loadframe.kinds import registry
from loadframe.kinds.base import Target
from loadframe.kinds.kind import KindOfTarget
from loadframe.kinds.postgres.kind import PostgresTarget
from loadframe.model import Endpoint
from loadframe.testing.targets import *  # noqa: F403
from loadframe.testing.targets import Data, Example

from .declaring import declared_of

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
}


def forms() -> list[str]:
    """The targets that there are of each kind of ours, by the words that a workload has in its target_kinds. A kind
    that is known by its address is not ours to start."""
    started = [(kind, row) for kind, row in registry.KINDS.own.items() if row.by_address is None]
    return [kind for kind, _ in started] + [f"sharded {kind}" for kind, row in started if row.make_shards is not None]


def marks(form: str) -> tuple[pytest.MarkDecorator, ...]:
    row = registry.KINDS.own[form.removeprefix("sharded ")]
    if row.kind == "mysql":
        return (pytest.mark.mysql,)
    return () if row.embedded else (pytest.mark.server,)


@pytest.fixture(scope="module", params=[pytest.param(form, marks=marks(form)) for form in forms()])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def row(kind: str) -> KindOfTarget:
    return declared_of(kind)


@pytest.fixture(scope="module")
def example(kind: str) -> Example:
    return EXAMPLES[kind]


@pytest.fixture(scope="module")
def create(request: pytest.FixtureRequest) -> Callable[[Target], None]:
    def created(target: Target) -> None:
        if isinstance(target, PostgresTarget):
            target.create(request.getfixturevalue("pristine"))
        else:
            target.create()

    return created


# --- what is left with each ---


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


class Rows:
    """A table."""

    def store(self, endpoint: Endpoint) -> None:
        rows(endpoint, "CREATE TABLE jobs (id INTEGER PRIMARY KEY)")
        rows(endpoint, "INSERT INTO jobs VALUES (1)")

    def stored(self, endpoint: Endpoint) -> bool:
        return rows(endpoint, "SELECT id FROM jobs") == [(1,)]

    def forget(self, endpoint: Endpoint) -> None:
        rows(endpoint, "DROP TABLE IF EXISTS jobs")


class OfService:
    """serving.py."""

    def store(self, endpoint: Endpoint, body: bytes = b"1") -> None:
        urllib.request.urlopen(f"http://{endpoint.address}/store", data=body, timeout=10).close()

    def stored(self, endpoint: Endpoint) -> bool:
        with urllib.request.urlopen(f"http://{endpoint.address}/stored", timeout=10) as answer:
            return bool(answer.read() == b"1")

    def forget(self, endpoint: Endpoint) -> None:
        self.store(endpoint, b"")


@pytest.fixture(scope="module")
def data(kind: str) -> Data:
    return OfService() if kind == "service" else Rows()


# --- what the registry says ---


def test_every_registered_kind_that_we_start_has_an_example() -> None:
    started = [kind for kind, row in registry.KINDS.own.items() if row.by_address is None]
    assert sorted(EXAMPLES) == sorted(started)


@pytest.mark.parametrize("kind", registry.attachable_kinds())
def test_what_can_be_attached_to_says_where_it_is_and_with_what_password(kind: str) -> None:
    known = registry.attachable(kind)
    assert known is not None
    assert known.host_of("db.example:1", None) == "db.example"
    assert known.host_of("/run/a.socket", None) == ""
    assert known.password.isupper()
    assert known.head == "" or known.head.endswith("]\n")


def test_unknown_kinds_are_refused_with_the_list(lease: Lease) -> None:
    with pytest.raises(StudyError, match="oracle") as caught:
        registry.kind_named("oracle").make(lease, Resources())
    assert ", ".join(sorted(registry.KINDS)) in caught.value.remedy
    assert {"mariadb", "postgres", "url"} <= registry.KINDS.keys()


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
