"""Loadframe's own connection to a PostgreSQL server: kept open, for reading counters and asking for a reload.

The one place of the targets where psycopg's exceptions become TargetErrors.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loadframe.bounds import MIB
from loadframe.errors import TargetError
from loadframe.host.suspended import told
from loadframe.kinds.silence import REFUSED_REMEDY, shortened, silence
from loadframe.postgres_connection import connect, driver
from loadframe.said import words
from loadframe.unix_socket import listening, peer

if TYPE_CHECKING:
    from psycopg import Connection

TIMEOUT_S = 30
"""A server under load may take its time; one that says nothing for this long counts as hung."""
ANSWER_BYTES, ANSWER_S = 16 * MIB, 30.0
"""Of a statement that reads, all of it. No timeout of the server's: it would be a setting of ours in what we read."""
GARBLED = (ValueError, TypeError, LookupError, MemoryError)
"""What psycopg makes of values that cannot be what they are said to be; UnicodeDecodeError is a ValueError."""
OURS: Mapping[str, str | int] = {"connect_timeout": TIMEOUT_S, "application_name": "loadframe"}
"""libpq's connection parameters, where nothing else is asked for."""


SHOWN = 80
"""Characters of a statement in a message."""


class Control:
    """One connection, safe to use from several threads (one at a time); reconnects once where it was lost."""

    def __init__(self, where: Mapping[str, str | int], died: Callable[[], TargetError | None]) -> None:
        """where: libpq's connection parameters. died: the TargetError that explains why the server is gone; None while
        its process lives."""
        self._psycopg = driver()
        self._where, self._died = dict(where), died
        self._connection: Connection[Any] | None = None
        self._backend = 0
        self._was_silent = False
        """As long as it is stopped, one that was silent once is not asked again."""
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
        if len(rows) != 1:
            raise _garbled(statement, f"{len(rows)} rows")
        return dict(zip(names, rows[0], strict=True))

    def one(self, statement: str, *types: type) -> tuple[Any, ...]:
        """The one row of a statement, whose columns are of these types. TargetError where it is another one."""
        rows = self.ask(statement)
        if len(rows) != 1 or [type(value) for value in rows[0]] != list(types):
            raise _garbled(statement, rows)
        return rows[0]

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
            if self._was_silent and told(self._pids()):
                raise silence("PostgreSQL", shortened(statement), TIMEOUT_S, self._pids())
            lost = self._connection is not None
            try:
                return self._ask(statement, values)
            except (self._psycopg.OperationalError, self._psycopg.InterfaceError) as error:
                if isinstance(error.__cause__, TimeoutError) or isinstance(
                    error, self._psycopg.errors.ConnectionTimeout
                ):
                    raise self._silent(statement) from error
                lost = lost and (self._connection is None or self._connection.broken)
                self._drop()
                if (died := self._died()) is not None:
                    raise died from error
                if not lost:
                    raise _refused(statement, error) from error
            except self._psycopg.Error as error:
                raise _refused(statement, error) from error
            except GARBLED as error:
                self._drop()
                raise _garbled(statement, error) from error
            try:
                return self._ask(statement, values)
            except GARBLED as error:
                self._drop()
                raise _garbled(statement, error) from error
            except self._psycopg.Error as error:
                self._drop()
                raise self._died() or _refused(statement, error) from error

    def _ask(self, statement: str, values: Sequence[object] | None) -> tuple[list[tuple[Any, ...]], list[str]]:
        if self._connection is None:
            where = {**OURS, **self._where}
            self._connection = connect(where, most_bytes=ANSWER_BYTES, within_s=ANSWER_S, silence_s=TIMEOUT_S)
            self._backend = self._connection.info.backend_pid
        with self._connection.cursor() as cursor:
            cursor.execute(statement.encode(), values)
            if cursor.description is None:
                return [], []
            return cursor.fetchall(), [column.name for column in cursor.description]

    def _silent(self, statement: str) -> TargetError:
        """It has not answered, and is asked nothing more: each further try would take as long."""
        self._was_silent = True
        self._drop()
        return self._died() or silence("PostgreSQL", shortened(statement), TIMEOUT_S, self._pids())

    def _pids(self) -> list[int]:
        """Its processes that we know of: the one at the other end, and the one that listens."""
        host = str(self._where.get("host", ""))
        if not host.startswith("/"):
            return []
        listener = listening(f"{host}/.s.PGSQL.{self._where.get('port', 5432)}")
        return [pid for pid in (self._backend, listener) if pid]

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _refused(statement: str, error: Exception) -> TargetError:
    """What the server says, without the statement where it is long."""
    return TargetError(f"PostgreSQL refused `{shortened(statement)}`: {words(error)}", remedy=REFUSED_REMEDY)


def _garbled(statement: str, said: object) -> TargetError:
    return TargetError(
        f"What answers `{shortened(statement)}` is not PostgreSQL: {words(said)}",
        remedy="See which server listens there.",
    )
