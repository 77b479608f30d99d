"""A server that Loadframe did not start: a schema of our own, nobody else's touched, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from loadframe.errors import TargetError
from loadframe.host.identity import boot_id
from loadframe.model import Endpoint
from loadframe.workloads import databases, mariadb, ownership, postgres, registry
from loadframe.workloads.ownership import may_drop, own_note

Ask = Callable[[str], list[tuple[Any, ...]]]


def test_only_what_this_process_or_one_that_has_ended_made_may_be_dropped() -> None:
    boot, pid, ticks = own_note()
    assert may_drop((boot, pid, ticks))
    assert may_drop((boot, pid, ticks + 1)), "another process had this pid"
    assert not may_drop(None)
    parent = ownership.identify(os.getppid())
    assert parent is not None
    assert not may_drop((boot, parent.pid, parent.started_ticks)), "it runs"
    assert boot_id() in boot
    assert not may_drop(("another boot", pid, ticks + 1)), "nobody knows whether it runs"


@pytest.fixture(params=["attached_mariadb", "attached_postgres"])
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    found: Endpoint = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def ask(endpoint: Endpoint) -> Ask:
    """Ask the server something, outside of any schema."""

    def answer(statement: str) -> list[tuple[Any, ...]]:
        connected: AbstractContextManager[Any]
        if endpoint.kind == "postgres":
            connected = postgres.connected(endpoint, "a test")
        else:
            connected = mariadb.connected(endpoint, "a test", schema=False)
        with connected as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    return answer


def schemas(ask: Ask) -> set[str]:
    return {name for (name,) in ask("SELECT schema_name FROM information_schema.schemata")}


@pytest.mark.server
def test_it_is_attached_and_its_schema_is_there_only_between_install_and_remove(endpoint: Endpoint, ask: Ask) -> None:
    assert endpoint.attached
    before = schemas(ask)
    workload = registry.make("oltp", {"rows": 10, "tables": 1})
    workload.install(endpoint)
    workload.install(endpoint)
    assert schemas(ask) == before | {"loadframe"}
    workload.remove(endpoint)
    workload.remove(endpoint)
    assert schemas(ask) == before


@pytest.mark.server
def test_a_schema_of_this_name_that_is_not_ours_is_left_alone(endpoint: Endpoint, ask: Ask) -> None:
    ask("CREATE SCHEMA loadframe")
    ask("CREATE TABLE loadframe.precious (id INTEGER)")
    ask("INSERT INTO loadframe.precious VALUES (7)")
    workload = registry.make("oltp", {"rows": 10, "tables": 1})
    with pytest.raises(TargetError, match="'loadframe' already") as caught:
        workload.install(endpoint)
    assert "DROP" in caught.value.remedy
    workload.remove(endpoint)
    assert ask("SELECT id FROM loadframe.precious") == [(7,)]
    ask("DROP TABLE loadframe.precious")
    ask("DROP SCHEMA loadframe")


@pytest.mark.server
def test_one_that_was_only_begun_is_dropped_by_whoever_knows_that_it_is_ours(attached_mariadb: Endpoint) -> None:
    """MariaDB cannot make a database and say whose it is at once."""
    server = attached_mariadb

    def there(*statements: str) -> bool:
        with mariadb.connected(server, "a test", schema=False) as connection:
            mariadb.execute(connection, statements)
        return databases.has_schema(server)

    assert there("CREATE DATABASE loadframe")
    databases.drop_schema(server)
    assert there("CREATE TABLE loadframe.precious (id INTEGER)")
    databases.drop_schema(server, begun=True)
    assert there("DROP TABLE loadframe.precious")
    databases.drop_schema(server, begun=True)
    assert not there()


INSTALL_AND_DIE = """
import os, signal, sys
from loadframe.model import Endpoint
from loadframe.workloads import registry
kind, address = sys.argv[1:]
options = dict(pair.split("=", 1) for pair in sys.stdin.read().splitlines())
registry.make("oltp", {"rows": 10, "tables": 1}).install(Endpoint(kind, address, options, attached=True))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.server
def test_what_a_killed_run_left_is_dropped_by_the_next_one(endpoint: Endpoint, ask: Ask) -> None:
    before = schemas(ask)
    ended = subprocess.run(
        [sys.executable, "-c", INSTALL_AND_DIE, endpoint.kind, endpoint.address],
        input="\n".join(f"{name}={value}" for name, value in endpoint.options.items()),
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    assert schemas(ask) == before | {"loadframe"}
    workload = registry.make("oltp", {"rows": 10, "tables": 1})
    workload.install(endpoint)
    workload.remove(endpoint)
    assert schemas(ask) == before


@pytest.mark.server
def test_pgbench_touches_no_table_of_the_same_name(attached_postgres: Endpoint) -> None:
    """pgbench drops and fills pgbench_accounts; somebody may have one."""
    with postgres.connected(attached_postgres, "a test") as connection:
        connection.execute("CREATE SCHEMA others")
        connection.execute("CREATE TABLE others.pgbench_accounts AS SELECT 7 AS aid")
        connection.execute("ALTER ROLE CURRENT_USER SET search_path = others")
    workload = registry.make("pgbench", {"scale": 1})
    try:
        workload.install(attached_postgres)
        workload.set_level(attached_postgres, 1)
        workload.remove(attached_postgres)
        with postgres.connected(attached_postgres, "a test") as connection:
            assert connection.execute("SELECT aid FROM others.pgbench_accounts").fetchall() == [(7,)]
    finally:
        with postgres.connected(attached_postgres, "a test") as connection:
            connection.execute("ALTER ROLE CURRENT_USER RESET search_path")
            connection.execute("DROP SCHEMA others CASCADE")
