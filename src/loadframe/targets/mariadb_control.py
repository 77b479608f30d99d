"""Loadframe's own connection to a MariaDB server: kept open, for reading counters and setting variables.

The one place where pymysql is imported and its exceptions become TargetErrors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadframe.errors import MissingTool, TargetError
from loadframe.model import SettingValue
from loadframe.unix_socket import open_socket

if TYPE_CHECKING:
    from pymysql.connections import Connection

TIMEOUT_S = 30
"""A server under load may take its time; one that does not answer for this long counts as hung."""


def driver() -> Any:
    """The pymysql package. MissingTool where it is not installed."""
    try:
        import pymysql
    except ImportError as error:
        raise MissingTool(
            "The Python package pymysql is not installed", remedy="pip install 'loadframe[mariadb]'"
        ) from error
    return pymysql


class Control:
    """One connection, safe to use from several threads (one at a time); reconnects once where it was lost."""

    def __init__(self, socket: Path, user: str, password: str, died: Callable[[], TargetError | None]) -> None:
        """died: the TargetError that explains why the server is gone; None while its process lives."""
        self._pymysql = driver()
        self._socket, self._user, self._password, self._died = socket, user, password, died
        self._connection: Connection[Any] | None = None
        self._lock = threading.Lock()

    def ping(self) -> bool:
        """Whether the server answers a statement now."""
        try:
            return self.ask("SELECT 1") == [(1,)]
        except TargetError:
            return False

    def ask(self, statement: str, values: Sequence[SettingValue] = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement. TargetError where the server refuses it, does not answer or has died."""
        with self._lock:
            try:
                return self._ask(statement, values)
            except (self._pymysql.err.OperationalError, self._pymysql.err.InterfaceError) as error:
                self._drop()
                if (died := self._died()) is not None:
                    raise died from error
                if error.args and error.args[0] in CONNECTION_LOST:
                    return self._again(statement, values)
                raise self._refused(statement, error) from error
            except self._pymysql.err.MySQLError as error:
                raise self._refused(statement, error) from error

    def pairs(self, statement: str, names: Iterable[str]) -> dict[str, str]:
        """The answer of a SHOW statement, for these names only, by name."""
        wanted = list(names)
        marks = ", ".join(["%s"] * len(wanted))
        rows = self.ask(f"{statement} WHERE Variable_name IN ({marks})", wanted)
        return {str(name): str(value) for name, value in rows}

    def close(self) -> None:
        """Let go of the connection. Idempotent; never raises."""
        with self._lock:
            self._drop()

    def _again(self, statement: str, values: Sequence[SettingValue]) -> list[tuple[Any, ...]]:
        try:
            return self._ask(statement, values)
        except self._pymysql.err.MySQLError as error:
            self._drop()
            raise self._died() or self._refused(statement, error) from error

    def _ask(self, statement: str, values: Sequence[SettingValue]) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = self._connected()
        with self._connection.cursor() as cursor:
            cursor.execute(statement, list(values) or None)
            return list(cursor.fetchall())

    def _connected(self) -> Connection[Any]:
        connection = self._pymysql.connect(
            defer_connect=True,
            user=self._user,
            password=self._password,
            autocommit=True,
            ssl_disabled=True,  # a local socket; making a TLS context takes 60 ms
            read_timeout=TIMEOUT_S,
            write_timeout=TIMEOUT_S,
        )
        try:
            connection.connect(open_socket(str(self._socket), timeout_s=TIMEOUT_S))
        except OSError as error:
            raise self._pymysql.err.OperationalError(CANNOT_CONNECT, str(error)) from error
        result: Connection[Any] = connection
        return result

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection._force_close()  # type: ignore[attr-defined]  # close() would talk to a server that may be gone

    @staticmethod
    def _refused(statement: str, error: Exception) -> TargetError:
        number, text = (*error.args, "", "")[:2]
        return TargetError(f"MariaDB refuses `{statement}`: {text or error} (error {number})")


CANNOT_CONNECT = 2003
CONNECTION_LOST = frozenset({0, CANNOT_CONNECT, 2006, 2013, 2014})
"""pymysql: interface error; cannot connect; gone away; lost during a query; out of sync."""
