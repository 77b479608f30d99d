"""How workloads reach a PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadframe.connections import postgres_connection
from loadframe.connections.postgres_connection import CARRIED, NUMBER
from loadframe.connections.unix_socket import LET_IT_GO_ON, stopped
from loadframe.errors import TargetError
from loadframe.formats.said import words
from loadframe.model import Endpoint

if TYPE_CHECKING:
    from psycopg import Connection

GARBLED = (UnicodeDecodeError, MemoryError)
APPLICATION = "loadframe-driver"
CONNECT_S = 60.0


def where(endpoint: Endpoint) -> str:
    """What libpq takes for a host: the folder of the server's socket, if there is one."""
    return endpoint.options.get("socket", endpoint.address)


def parameters(endpoint: Endpoint) -> dict[str, str]:
    """libpq's, for a driver that takes them one by one."""
    options = endpoint.options
    return {
        "host": where(endpoint),
        "port": options.get("port", "5432"),
        "user": options.get("user", "postgres"),
        "password": options.get("password", ""),
        "dbname": options.get("database", "postgres"),
    }


def schema_of(endpoint: Endpoint) -> str:
    return endpoint.options.get("schema", "loadframe")


def all_parameters(endpoint: Endpoint) -> dict[str, str]:
    """As `parameters`, with the address that was decided and the option file's settings, such as TLS."""
    others = {name: endpoint.options[name] for name in (NUMBER, *CARRIED) if endpoint.options.get(name)}
    return {**parameters(endpoint), **others}


def environment(endpoint: Endpoint) -> dict[str, str]:
    """Variables of libpq for a driver's process: names are looked up in the driver's schema only, and
    await_drivers_gone knows its connections by their name."""
    ours = {"PGOPTIONS": _search_path(endpoint), "PGAPPNAME": APPLICATION}
    return postgres_connection.environment(all_parameters(endpoint), ours)


def _search_path(endpoint: Endpoint) -> str:
    return f"-c search_path={schema_of(endpoint)}"


@contextmanager
def connected(
    endpoint: Endpoint, doing: str, *, patience_s: float = postgres_connection.SILENT_S
) -> Iterator[Connection[Any]]:
    """A connection in the driver's schema, with a transaction per statement. patience_s: of silence. TargetError."""
    psycopg = postgres_connection.driver()
    here = parameters(endpoint)
    if here["host"].startswith("/") and (why := stopped(f"{here['host']}/.s.PGSQL.{here['port']}")):
        raise TargetError(f"The server at {where(endpoint)} does not answer: {why}.", remedy=LET_IT_GO_ON)
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
            f"The server at {where(endpoint)} refused {doing}: {words(error)}",
            remedy="If disk space, connections or memory ran out, raise that limit or lower the level; if the server "
            "has gone, its log says why.",
        ) from error


def execute(connection: Connection[Any], statements: Sequence[str]) -> None:
    for statement in statements:
        connection.execute(statement.encode())


def ask(connection: Connection[Any], statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return connection.execute(statement.encode(), values or None).fetchall()


def dropping(connection: Connection[Any], endpoint: Endpoint) -> list[str]:
    """The statements that drop the schema, our tables first. TargetError for others' tables in it."""
    schema = schema_of(endpoint)
    if not endpoint.attached:
        return [DROP.format(schema)]
    if others := ask(connection, OTHERS, [schema]):
        raise TargetError(
            f"The schema {schema} at {where(endpoint)} has {others[0][0]} of {others[0][1]}, which is not dropped",
            remedy="Have its owner move it to another schema; then `loadframe changes revert`.",
        )
    tables = ask(connection, "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = %s", [schema])
    names = ", ".join(f"{schema}.{name}" for (name,) in tables)
    return [*([f"DROP TABLE {names}"] if names else []), f"DROP SCHEMA IF EXISTS {schema}"]


anywhere = connected
SYSBENCH, PACKAGE = "pgsql", ("psycopg", "postgres")
NAME, DROP, CREATE = "{}", "DROP SCHEMA IF EXISTS {} CASCADE", "CREATE SCHEMA {}"
TRANSACTIONAL = True
HERE = "(current_schemas(false) = ARRAY['{}'::name])::int"
OTHERS = (
    "SELECT relname, pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace"
    " WHERE nspname = %s) AND pg_get_userbyid(relowner) <> current_user"
)
EXISTS = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
DRIVERS = (
    f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{APPLICATION}' AND datname = current_database()"
)
"""See databases.engine_of."""
