"""How workloads reach a PostgreSQL: a connection, a schema of their own, and waiting until other drivers are gone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadframe.errors import TargetError
from loadframe.model import Endpoint

if TYPE_CHECKING:
    from psycopg import Connection

DRIVERS_GONE_WITHIN_S = 5.0
LOOK_EVERY_S = 0.01


def host_of(endpoint: Endpoint) -> str:
    """What libpq takes for a host: the folder of the server's socket, where there is one."""
    return endpoint.options.get("socket", endpoint.address)


def parameters(endpoint: Endpoint) -> dict[str, str]:
    """libpq's connection parameters; for a driver that is told them one by one."""
    options = endpoint.options
    return {
        "host": host_of(endpoint),
        "port": options.get("port", "5432"),
        "user": options.get("user", "postgres"),
        "password": options.get("password", ""),
        "dbname": options.get("database", "postgres"),
    }


@contextmanager
def connected(endpoint: Endpoint, doing: str) -> Iterator[Connection[Any]]:
    """A connection in which each statement is a transaction of its own. TargetError, saying what was being done, where
    the server refuses."""
    import psycopg

    try:
        with psycopg.connect(**parameters(endpoint), autocommit=True) as connection:  # type: ignore[arg-type]
            yield connection
    except psycopg.Error as error:
        raise TargetError(
            f"The server at {host_of(endpoint)} refused {doing}: {' '.join(str(error).split())}",
            remedy="If disk space, connections or memory ran out, raise that limit or lower the level; if the server "
            "has gone, its log says why.",
        ) from error


def execute(connection: Connection[Any], statements: Sequence[str]) -> None:
    """Statements without results, one after the other."""
    for statement in statements:
        connection.execute(statement.encode())


def new_schema(endpoint: Endpoint) -> list[str]:
    """Statements that make an empty schema of the driver's own, which its connections use by default. What was there
    before is dropped."""
    name = endpoint.options.get("schema", "loadframe").replace('"', '""')
    return [f'DROP SCHEMA IF EXISTS "{name}" CASCADE', f'CREATE SCHEMA "{name}"']


def await_drivers_gone(connection: Connection[Any]) -> None:
    """A killed driver's last statement may still run in the server; wait until its connections are closed."""
    until = time.monotonic() + DRIVERS_GONE_WITHIN_S
    others = "SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()"
    while time.monotonic() < until:
        if connection.execute(others).fetchone() == (0,):
            return
        time.sleep(LOOK_EVERY_S)
