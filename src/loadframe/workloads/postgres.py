"""How workloads reach a PostgreSQL: a connection, a schema of their own, and waiting until other drivers are gone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadframe import postgres_connection
from loadframe.errors import TargetError
from loadframe.model import Endpoint
from loadframe.postgres_connection import CARRIED, NUMBER
from loadframe.said import words
from loadframe.unix_socket import LET_IT_GO_ON, stopped
from loadframe.workloads import ownership

if TYPE_CHECKING:
    from psycopg import Connection

GARBLED = (UnicodeDecodeError, MemoryError)
"""What psycopg makes of bytes that are no text, and of more than there is memory for."""
APPLICATION = "loadframe-driver"
DROP = "DROP SCHEMA IF EXISTS"
DRIVERS_GONE_WITHIN_S = 5.0
LOOK_EVERY_S = 0.01
QUICK_S, LONG_S = 60.0, 3600.0
"""How long a server may say nothing: to a question, and while it makes or drops data, which nobody knows beforehand."""
CONNECT_S = 60.0


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


def _socket(endpoint: Endpoint) -> str:
    """The path of the server's socket; of a server that is reached by network one that is not there."""
    given = parameters(endpoint)
    return f"{given['host']}/.s.PGSQL.{given['port']}" if given["host"].startswith("/") else ""


def schema_of(endpoint: Endpoint) -> str:
    """The schema that the driver works in."""
    return endpoint.options.get("schema", "loadframe")


def all_parameters(endpoint: Endpoint) -> dict[str, str]:
    """The same, with the address that was decided and what the option file says of TLS and the like."""
    others = {name: endpoint.options[name] for name in (NUMBER, *CARRIED) if endpoint.options.get(name)}
    return {**parameters(endpoint), **others}


def environment(endpoint: Endpoint) -> dict[str, str]:
    """For a driver's process: what libpq takes from there. It connects to the address that was decided, as securely as
    we do; names are looked up in the driver's schema and nowhere else, and its connections have a name by which
    await_drivers_gone knows them."""
    ours = {"PGOPTIONS": _search_path(endpoint), "PGAPPNAME": APPLICATION}
    return postgres_connection.environment(all_parameters(endpoint), ours)


def _search_path(endpoint: Endpoint) -> str:
    return f"-c search_path={schema_of(endpoint)}"


@contextmanager
def connected(endpoint: Endpoint, doing: str, *, patience_s: float = LONG_S) -> Iterator[Connection[Any]]:
    """A connection in which each statement is a transaction of its own, in the driver's schema. patience_s: how long
    the server may say nothing. TargetError, saying what was being done, where it refuses or says nothing."""
    psycopg = postgres_connection.driver()
    if (why := stopped(_socket(endpoint))) != "":
        raise TargetError(f"The server at {host_of(endpoint)} does not answer: {why}.", remedy=LET_IT_GO_ON)
    try:
        given = {
            "connect_timeout": str(round(CONNECT_S)),
            **all_parameters(endpoint),
            "options": _search_path(endpoint),
        }
        with postgres_connection.connect(given, silence_s=patience_s) as connection:
            yield connection
    except (psycopg.Error, *GARBLED) as error:
        raise TargetError(
            f"The server at {host_of(endpoint)} refused {doing}: {words(error)}",
            remedy="If disk space, connections or memory ran out, raise that limit or lower the level; if the server "
            "has gone, its log says why.",
        ) from error


def execute(connection: Connection[Any], statements: Sequence[str]) -> None:
    """Statements without results, one after the other."""
    for statement in statements:
        connection.execute(statement.encode())


def make_schema(connection: Connection[Any], endpoint: Endpoint) -> None:
    """Make an empty schema of the driver's own. What was there before is dropped, if it is ours to drop; TargetError
    where it is not."""
    name = schema_of(endpoint)
    with connection.transaction():
        if endpoint.attached and _exists(connection, name) and not ownership.may_drop(_note(connection, name)):
            raise refusal(endpoint)
        execute(connection, [f"{DROP} {name} CASCADE", f"CREATE SCHEMA {name}"])
        if endpoint.attached:
            execute(connection, [f"CREATE TABLE {ownership.TABLE} ({ownership.COLUMNS})"])
            connection.execute(f"INSERT INTO {ownership.TABLE} VALUES (%s, %s, %s)", ownership.own_note())


def drop_schema(endpoint: Endpoint) -> None:
    """Drop the schema that make_schema made; one that is not ours stays."""
    name = schema_of(endpoint)
    with connected(endpoint, "to drop the driver's schema") as connection:
        if not endpoint.attached or ownership.may_drop(_note(connection, name)):
            execute(connection, [f"{DROP} {name} CASCADE"])


def has_schema(endpoint: Endpoint) -> bool:
    """Whether there is a schema of the driver's name."""
    with connected(endpoint, "to look for the driver's schema", patience_s=QUICK_S) as connection:
        return _exists(connection, schema_of(endpoint))


def refusal(endpoint: Endpoint) -> TargetError:
    """That there is one, and it is not ours."""
    name = schema_of(endpoint)
    return ownership.refusal(host_of(endpoint), name, f"{DROP} {name} CASCADE")


def _exists(connection: Connection[Any], schema: str) -> bool:
    return connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", [schema]).fetchone() is not None


def _note(connection: Connection[Any], schema: str) -> ownership.Note | None:
    """Who made the schema; None where it does not say."""
    noted = "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = %s"
    if connection.execute(noted, [schema, ownership.TABLE]).fetchone() is None:
        return None
    return connection.execute(f"SELECT boot, pid, started_ticks FROM {ownership.TABLE}").fetchone()


def vacuum(connection: Connection[Any], endpoint: Endpoint) -> None:
    """Look at tables that were just filled, so that the server does not do it by itself in the midst of a step."""
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema_of(endpoint)])
    execute(connection, [f"VACUUM ANALYZE {name}" for (name,) in tables.fetchall()])


def await_drivers_gone(connection: Connection[Any]) -> None:
    """A killed driver's last statement may still run in the server; wait until its connections are closed."""
    until = time.monotonic() + DRIVERS_GONE_WITHIN_S
    drivers = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()"
    while time.monotonic() < until:
        if connection.execute(drivers, [APPLICATION]).fetchone() == (0,):
            return
        time.sleep(LOOK_EVERY_S)
