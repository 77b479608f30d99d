"""Loadframe's own connection to a PostgreSQL server: kept open, for reading counters and asking for a reload.

The one place of the targets where psycopg is imported and its exceptions become TargetErrors.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loadframe.errors import MissingTool, TargetError
from loadframe.unix_socket import peer

if TYPE_CHECKING:
    from psycopg import Connection

TIMEOUT_S = 30
"""For a connection: a server under load may take its time. No timeout for statements: it would be a setting of ours in
what we read."""


def driver() -> Any:
    """The psycopg package. MissingTool where it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingTool(
            "The Python package psycopg is not installed, or finds no libpq", remedy="pip install 'loadframe[postgres]'"
        ) from error
    return psycopg


OURS = {"connect_timeout": TIMEOUT_S, "application_name": "loadframe"}
"""libpq's connection parameters, where nothing else is asked for."""


class Control:
    """One connection, safe to use from several threads (one at a time); reconnects once where it was lost."""

    def __init__(self, where: Mapping[str, str | int], died: Callable[[], TargetError | None]) -> None:
        """where: libpq's connection parameters. died: the TargetError that explains why the server is gone; None while
        its process lives."""
        self._psycopg = driver()
        self._where, self._died = dict(where), died
        self._connection: Connection[Any] | None = None
        self._lock = threading.Lock()

    def ping(self) -> bool:
        """Whether the server answers a statement now."""
        try:
            return self.ask("SELECT 1") == [(1,)]
        except TargetError:
            return False

    def ask(self, statement: str, values: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        """The rows of one statement. TargetError where the server refuses it, does not answer or has died."""
        rows, _ = self._asked(statement, values)
        return rows

    def row(self, statement: str) -> dict[str, Any]:
        """The one row of a statement, by the names of its columns."""
        rows, names = self._asked(statement, None)
        return dict(zip(names, rows[0], strict=True))

    def pid(self) -> int:
        """The server's process at the other end of this connection."""
        with self._lock:
            return 0 if self._connection is None else self._connection.info.backend_pid

    def listener(self) -> int | None:
        """The process that listens at the socket of this connection; None where it is out of our sight."""
        with self._lock:
            if self._connection is None:
                return None
            with socket.socket(fileno=os.dup(self._connection.fileno())) as same:
                return peer(same)

    def close(self) -> None:
        """Let go of the connection. Idempotent; never raises."""
        with self._lock:
            self._drop()

    def _asked(self, statement: str, values: Sequence[object] | None) -> tuple[list[tuple[Any, ...]], list[str]]:
        with self._lock:
            lost = self._connection is not None
            try:
                return self._ask(statement, values)
            except (self._psycopg.OperationalError, self._psycopg.InterfaceError) as error:
                lost = lost and (self._connection is None or self._connection.broken)
                self._drop()
                if (died := self._died()) is not None:
                    raise died from error
                if not lost:
                    raise _refused(statement, error) from error
            except self._psycopg.Error as error:
                raise _refused(statement, error) from error
            try:
                return self._ask(statement, values)
            except self._psycopg.Error as error:
                self._drop()
                raise self._died() or _refused(statement, error) from error

    def _ask(self, statement: str, values: Sequence[object] | None) -> tuple[list[tuple[Any, ...]], list[str]]:
        if self._connection is None:
            self._connection = self._psycopg.connect(**{**OURS, **self._where}, autocommit=True)
        with self._connection.cursor() as cursor:
            cursor.execute(statement.encode(), values)
            if cursor.description is None:
                return [], []
            return cursor.fetchall(), [column.name for column in cursor.description]

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _refused(statement: str, error: Exception) -> TargetError:
    """The first line of what the server says, without the statement where it is long."""
    shown = " ".join(statement.split())
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return TargetError(f"PostgreSQL refuses `{shown}`: {' '.join(str(error).split())}")
