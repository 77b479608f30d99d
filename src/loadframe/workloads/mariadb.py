"""How workloads reach a MariaDB or a MySQL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from loadframe.connections import mariadb_connection
from loadframe.connections.address import Place
from loadframe.connections.mariadb_connection import Reach
from loadframe.connections.unix_socket import LET_IT_GO_ON, stopped
from loadframe.errors import TargetError
from loadframe.formats.said import words
from loadframe.model import Endpoint

if TYPE_CHECKING:
    import pymysql

    Connection = pymysql.connections.Connection[Any]

ENGINES = ("MyISAM", "Aria", "InnoDB")
MARIADB_ALONE = "Aria"
STATEMENTS_PER_ROUND_TRIP = 100
SYSBENCH, PACKAGE = "mysql", ("pymysql", "mariadb")
NAME, DROP, CREATE = "`{}`", "DROP DATABASE IF EXISTS {}", "CREATE DATABASE {}"
TRANSACTIONAL = False
HERE = "(DATABASE() = '{}')"
EXISTS = "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s"
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
DRIVERS = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{}' AND id <> CONNECTION_ID()"
"""See databases.engine_of."""


def where(endpoint: Endpoint) -> str:
    """The server's socket, or HOST:PORT if it has none here."""
    return endpoint.options.get("socket", endpoint.address)


def parameters(endpoint: Endpoint) -> dict[str, str]:
    """How to reach it, in the terms of its own clients: socket, or host and port; user, password, db."""
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
    endpoint: Endpoint, doing: str, *, schema: bool = True, patience_s: float = mariadb_connection.LONGEST_S
) -> Iterator[Connection]:
    """A connection that accepts several statements at once. patience_s: for each of them. TargetError."""
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
    """Many per round trip; without results."""
    with connection.cursor() as cursor:
        for first in range(0, len(statements), STATEMENTS_PER_ROUND_TRIP):
            cursor.execute(";".join(statements[first : first + STATEMENTS_PER_ROUND_TRIP]))
            while cursor.nextset():
                pass


def ask(connection: Connection, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, tuple(values) or None)
        return list(cursor.fetchall())


anywhere = partial(connected, schema=False)


def schema_of(endpoint: Endpoint) -> str:
    return parameters(endpoint)["db"]


def dropping(_: Connection, endpoint: Endpoint) -> list[str]:
    return [DROP.format(NAME.format(schema_of(endpoint)))]


def environment(_: Endpoint) -> dict[str, str]:
    return dict(os.environ)
