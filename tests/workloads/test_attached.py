"""A server that Loadframe did not start: a schema of our own, nobody else's touched, nothing left behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from loadframe.errors import TargetError, WorkloadError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import databases, mariadb, postgres, registry

Ask = Callable[[str], list[tuple[Any, ...]]]


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


@pytest.mark.long
@pytest.mark.server
def test_it_is_attached_and_its_schema_is_there_only_between_install_and_remove(endpoint: Endpoint, ask: Ask) -> None:
    assert endpoint.attached
    before = schemas(ask)
    workload = registry.make("oltp", {"rows": 10, "tables": 1}, Allowance(US))
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
    workload = registry.make("oltp", {"rows": 10, "tables": 1}, Allowance(US))
    with pytest.raises(TargetError, match="'loadframe' already") as caught:
        workload.install(endpoint)
    assert "DROP" in caught.value.remedy
    workload.remove(endpoint)
    assert ask("SELECT id FROM loadframe.precious") == [(7,)]
    ask("DROP TABLE loadframe.precious")
    ask("DROP SCHEMA loadframe")


@pytest.mark.server
def test_only_the_run_that_made_it_drops_it(endpoint: Endpoint, ask: Ask) -> None:
    """Whatever runs or has ended: the mark alone says whose a schema is."""
    workload = registry.make("oltp", {"rows": 10, "tables": 1}, Allowance(US))
    workload.install(endpoint)
    other = databases.marked(endpoint, databases.new_mark())
    with pytest.raises(TargetError, match="'loadframe' already"):
        workload.install(other)
    workload.remove(other)
    assert databases.has_own_schema(endpoint) and not databases.has_own_schema(other)
    workload.remove(endpoint)
    assert not databases.has_own_schema(endpoint)


@pytest.mark.server
def test_an_empty_one_that_a_killed_run_may_have_begun_is_named_and_left(attached_mariadb: Endpoint) -> None:
    """MariaDB cannot make a database and its mark at once."""
    with mariadb.connected(attached_mariadb, "a test", schema=False) as connection:
        mariadb.execute(connection, ["CREATE DATABASE loadframe"])
        databases.drop_schema(attached_mariadb)
        with pytest.raises(TargetError, match="empty schema 'loadframe'"):
            databases.has_own_schema(attached_mariadb)
        mariadb.execute(connection, ["CREATE TABLE loadframe.precious (id INTEGER)"])
        assert not databases.has_own_schema(attached_mariadb)
        mariadb.execute(connection, ["DROP DATABASE loadframe"])
    assert not databases.has_own_schema(attached_mariadb)


@pytest.mark.server
def test_what_another_user_keeps_in_it_is_not_dropped(attached_postgres: Endpoint, postgres_server: Endpoint) -> None:
    workload = registry.make("oltp", {"rows": 10, "tables": 1}, Allowance(US))
    workload.install(attached_postgres)
    with postgres.connected(postgres_server, "a test") as owner:
        for statement in ("CREATE SCHEMA theirs", "CREATE VIEW theirs.seen AS SELECT id FROM loadframe.oltp_1"):
            owner.execute(statement.encode())
        with pytest.raises(TargetError, match=r"view theirs\.seen depends on table"):
            workload.remove(attached_postgres)
        assert owner.execute("SELECT count(*) FROM theirs.seen").fetchall() == [(10,)]
        owner.execute("DROP SCHEMA theirs CASCADE")
    workload.remove(attached_postgres)
    assert not databases.has_own_schema(attached_postgres)


@pytest.mark.server
@pytest.mark.extension("loadframe_drivers")
def test_pgbench_touches_no_table_of_the_same_name(attached_postgres: Endpoint) -> None:
    """pgbench drops and fills pgbench_accounts; somebody may have one."""
    with postgres.connected(attached_postgres, "a test") as connection:
        connection.execute("CREATE SCHEMA others")
        connection.execute("CREATE TABLE others.pgbench_accounts AS SELECT 7 AS aid")
        connection.execute("ALTER ROLE CURRENT_USER SET search_path = others")
    workload = registry.make("pgbench", {"scale": 1}, Allowance(US))
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


@pytest.mark.server
@pytest.mark.parametrize("kind", ["pgbench", "sysbench"])
@pytest.mark.extension("loadframe_drivers")
def test_a_driver_whose_own_connections_lead_to_other_tables_is_not_started(
    kind: str, attached_postgres: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where something on its way drops what it sends."""
    options: dict[str, SettingValue] = {"scale": 1} if kind == "pgbench" else {"table_size": 10}
    workload = registry.make(kind, options, Allowance(US))
    workload.install(attached_postgres)
    try:
        environment = postgres.environment
        monkeypatch.setattr(postgres, "environment", lambda where: {**environment(where), "PGOPTIONS": ""})
        with pytest.raises(WorkloadError, match=f"{kind}, connected to .* is not started"):
            workload.start(attached_postgres, 1, tmp_path, 0.3)
    finally:
        workload.remove(attached_postgres)
