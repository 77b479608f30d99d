"""How workloads reach a MariaDB: a connection, a database of their own, and waiting until other drivers are gone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadframe import mariadb_connection
from loadframe.address import Place
from loadframe.errors import TargetError
from loadframe.mariadb_connection import Reach
from loadframe.model import Endpoint
from loadframe.said import words
from loadframe.unix_socket import LET_IT_GO_ON, stopped
from loadframe.workloads import ownership

if TYPE_CHECKING:
    import pymysql

    Connection = pymysql.connections.Connection[Any]

ENGINES = ("MyISAM", "Aria", "InnoDB")
STATEMENTS_PER_ROUND_TRIP = 100
DRIVER_GONE_WITHIN_S = 5.0
QUICK_S, LONG_S = 60.0, 3600.0
"""As in postgres.py."""


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
def connected(
    endpoint: Endpoint, doing: str, *, schema: bool = True, patience_s: float = LONG_S
) -> Iterator[Connection]:
    """A connection that accepts several statements at once. patience_s: how long the server may take for each.
    TargetError, saying what was being done, where it refuses or says nothing."""
    pymysql = mariadb_connection.driver()
    given = parameters(endpoint)
    place = Place(given["host"], given["host"], int(given["port"]), here=False) if "host" in given else None
    reach = Reach(given.get("socket", ""), place, given["user"], given["password"])
    if "socket" in given and (why := stopped(given["socket"])):
        raise TargetError(f"The server at {where(endpoint)} does not answer: {why}.", remedy=LET_IT_GO_ON)
    try:
        connection = mariadb_connection.connect(
            reach, database=given["db"] if schema else "", several=True, within_s=patience_s
        )
        try:
            yield connection
        finally:
            connection.close()
    except pymysql.err.MySQLError as error:
        number, *said = error.args or (0,)
        if number == mariadb_connection.CANNOT_CONNECT:
            raise TargetError(
                f"No server answers at {where(endpoint)}: {words(' '.join(map(str, said)))}.",
                remedy="Its log says why it is not running.",
            ) from error
        raise TargetError(
            f"The server at {where(endpoint)} refused {doing}: {words(' '.join(map(str, said)))} "
            f"(error {words(number)}).",
            remedy="If disk space, open files or tables ran out, raise that limit or lower the level; "
            "if the server has gone, its log says why.",
        ) from error
    except (UnicodeDecodeError, MemoryError) as error:
        raise TargetError(
            f"What the server at {where(endpoint)} says, asked {doing}, is no text: {words(error)}",
            remedy="See which server listens there.",
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
    with connected(endpoint, "to look for the driver's database", schema=False, patience_s=QUICK_S) as connection:
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
