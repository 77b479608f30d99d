"""How workloads reach a MariaDB: a connection, a database of their own, and waiting until other drivers are gone."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadframe.errors import TargetError
from loadframe.model import Endpoint
from loadframe.unix_socket import open_socket
from loadframe.workloads import ownership

if TYPE_CHECKING:
    import pymysql

    Connection = pymysql.connections.Connection[Any]

ENGINES = ("MyISAM", "Aria", "InnoDB")
STATEMENTS_PER_ROUND_TRIP = 100
DRIVER_GONE_WITHIN_S = 5.0
CONNECT_TIMEOUT_S = 10.0


def where(endpoint: Endpoint) -> str:
    """The server's socket, or HOST:PORT where it has none here. One that also listens on a port has the socket as an
    option."""
    return endpoint.options.get("socket", endpoint.address)


def parameters(endpoint: Endpoint) -> dict[str, str]:
    """How to reach it, by the words of its own clients: socket, or host and port; user, password, db."""
    options = endpoint.options
    place = where(endpoint)
    host, _, port = place.rpartition(":")
    return {
        **({"socket": place} if place.startswith("/") else {"host": host.strip("[]"), "port": port}),
        "user": options.get("user", "root"),
        "password": options.get("password", ""),
        "db": options.get("schema", "loadframe"),
    }


@contextmanager
def connected(endpoint: Endpoint, doing: str, *, schema: bool = True) -> Iterator[Connection]:
    """A connection that accepts several statements at once. TargetError, saying what was being done, where the server
    refuses."""
    import pymysql
    from pymysql.constants import CLIENT

    given = parameters(endpoint)
    try:
        connection = pymysql.connect(
            defer_connect=True,
            user=given["user"],
            password=given["password"],
            database=given["db"] if schema else None,
            autocommit=True,
            ssl_disabled=True,  # a local socket; making a TLS context takes 60 ms
            client_flag=CLIENT.MULTI_STATEMENTS,
        )
        connection.connect(
            open_socket(given["socket"])
            if "socket" in given
            else socket.create_connection((given["host"], int(given["port"])), timeout=CONNECT_TIMEOUT_S)
        )
        try:
            yield connection
        finally:
            connection.close()
    except OSError as error:
        raise TargetError(
            f"No server answers at {where(endpoint)}: {error.strerror or error}.",
            remedy="Its log says why it is not running.",
        ) from error
    except pymysql.err.MySQLError as error:
        number, *words = error.args or (0,)
        raise TargetError(
            f"The server at {where(endpoint)} refused {doing}: {' '.join(map(str, words))} (error {number}).",
            remedy="If disk space, open files or tables ran out, raise that limit or lower the level; "
            "if the server has gone, its log says why.",
        ) from error


def execute(connection: Connection, statements: Sequence[str]) -> None:
    """Statements without results, many per round trip."""
    with connection.cursor() as cursor:
        for first in range(0, len(statements), STATEMENTS_PER_ROUND_TRIP):
            cursor.execute(";".join(statements[first : first + STATEMENTS_PER_ROUND_TRIP]))
            while cursor.nextset():
                pass


def make_schema(connection: Connection, endpoint: Endpoint) -> None:
    """Make an empty database of the driver's own, and use it. What was there before is dropped, if it is ours to drop;
    TargetError where it is not."""
    schema = parameters(endpoint)["db"]
    if endpoint.attached and _exists(connection, schema) and not ownership.may_drop(_note(connection, schema)):
        raise refusal(endpoint)
    execute(connection, [_drop(schema), f"CREATE DATABASE `{schema}`", f"USE `{schema}`"])
    if endpoint.attached:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {ownership.TABLE} ({ownership.COLUMNS})")
            cursor.execute(f"INSERT INTO {ownership.TABLE} VALUES (%s, %s, %s)", ownership.own_note())


def drop_schema(endpoint: Endpoint, *, begun: bool = False) -> None:
    """Drop the database that make_schema made; one that is not ours stays. begun: it is ours, but make_schema may have
    been killed before it could say so; then there is nothing in it."""
    schema = parameters(endpoint)["db"]
    with connected(endpoint, "to drop the driver's database", schema=False) as connection:
        note = _note(connection, schema)
        unsaid = begun and note is None and not _tables(connection, schema) - {ownership.TABLE}
        if not endpoint.attached or unsaid or ownership.may_drop(note):
            execute(connection, [_drop(schema)])


def has_schema(endpoint: Endpoint) -> bool:
    """Whether there is a database of the driver's name."""
    with connected(endpoint, "to look for the driver's database", schema=False) as connection:
        return _exists(connection, parameters(endpoint)["db"])


def refusal(endpoint: Endpoint) -> TargetError:
    """That there is one, and it is not ours."""
    schema = parameters(endpoint)["db"]
    return ownership.refusal(where(endpoint), schema, _drop(schema))


def _drop(schema: str) -> str:
    return f"DROP DATABASE IF EXISTS `{schema}`"


def _tables(connection: Connection, schema: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (schema,))
        return {str(name) for (name,) in cursor.fetchall()}


def _exists(connection: Connection, schema: str) -> bool:
    with connection.cursor() as cursor:
        return bool(cursor.execute("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", (schema,)))


def _note(connection: Connection, schema: str) -> ownership.Note | None:
    """Who made the database; None where it does not say."""
    with connection.cursor() as cursor:
        noted = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
        if not cursor.execute(noted, (schema, ownership.TABLE)):
            return None
        cursor.execute(f"SELECT boot, pid, started_ticks FROM `{schema}`.{ownership.TABLE}")
        row: ownership.Note | None = cursor.fetchone()
        return row


def await_drivers_gone(connection: Connection) -> None:
    """A killed driver's last statement may still run in the server; wait until its connections are closed."""
    until = time.monotonic() + DRIVER_GONE_WITHIN_S
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
            )
            row = cursor.fetchone()
            if row is None or row[0] == 0:
                return
            time.sleep(0.01)
