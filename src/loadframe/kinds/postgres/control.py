"""Loadframe's own connection to a PostgreSQL server."""

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loadframe.connections.bounds import MIB
from loadframe.connections.postgres_connection import connect, driver
from loadframe.connections.unix_socket import listening, peer
from loadframe.errors import TargetError
from loadframe.kinds import database
from loadframe.kinds.database import BUSY_REMEDY, Answer

PORT = 5432
ANSWER_BYTES, ANSWER_S = 16 * MIB, 30.0
"""Bounds of a whole statement that reads. No timeout of the server's: it would be a setting of ours in what we read."""
OURS: Mapping[str, str | int] = {"connect_timeout": 30, "application_name": "loadframe"}


class Control(database.Control):
    server = "PostgreSQL"
    garbled = (ValueError, TypeError, LookupError, MemoryError)
    """What psycopg raises for impossible values; UnicodeDecodeError is a ValueError."""

    def __init__(self, where: Mapping[str, str | int], died: Callable[[], TargetError | None]) -> None:
        super().__init__(died)
        self._psycopg = driver()
        self.lost = (self._psycopg.OperationalError, self._psycopg.InterfaceError)
        self.errors = self._psycopg.Error
        self._where = dict(where)
        self._backend = 0

    def row(self, statement: str) -> dict[str, Any]:
        """The one row of a statement, by the names of its columns. TargetError for any other number of rows."""
        rows, names = self.asked(statement)
        if len(rows) != 1:
            raise self.is_other(statement, f"{len(rows)} rows")
        return dict(zip(names, rows[0], strict=True))

    def one(self, statement: str, *types: type) -> tuple[Any, ...]:
        """The one row of a statement, with columns of these types. TargetError for any other answer."""
        rows = self.ask(statement)
        if len(rows) != 1 or [type(value) for value in rows[0]] != list(types):
            raise self.is_other(statement, rows)
        return rows[0]

    def reload(self, who: str, within_s: float, log: Callable[[], str] = str) -> None:
        """Have the server read its configuration, and return once the postmaster has. TargetError after within_s. who:
        the server, in messages. log: its log, for details."""
        loaded, until = "SELECT pg_conf_load_time()", time.monotonic() + within_s
        before = self.ask(loaded)
        self.ask("SELECT pg_reload_conf()")
        while self.ask(loaded) == before:
            if time.monotonic() > until:
                fact = f"{who} has not read its configuration after {within_s:.0f} s"
                raise TargetError(fact, remedy=BUSY_REMEDY, details=log())
            time.sleep(0.005)

    def pid(self) -> int:
        """The server's process at the other end of this connection."""
        with self._lock:
            return 0 if self._connection is None else self._connection.info.backend_pid

    def listener(self) -> int | None:
        """The process that listens at the socket of this connection; None where it is not visible."""
        with self._lock:
            if self._connection is None:
                return None
            with socket.socket(fileno=os.dup(self._connection.fileno())) as same:
                return peer(same)

    def _connected(self) -> Any:
        where = {**OURS, **self._where}
        return connect(where, most_bytes=ANSWER_BYTES, within_s=ANSWER_S, silence_s=self.patience_s)

    def _ask(self, statement: str, values: Sequence[Any]) -> Answer:
        if self._connection is None:
            self._connection = self._connected()
            self._backend = self._connection.info.backend_pid
        with self._connection.cursor() as cursor:
            cursor.execute(statement.encode(), values or None)
            if cursor.description is None:
                return [], []
            return cursor.fetchall(), [column.name for column in cursor.description]

    def _is_lost(self, error: Exception) -> bool:
        return bool(self._connection.broken)

    def _is_late(self, error: Exception) -> bool:
        return isinstance(error.__cause__, TimeoutError) or isinstance(error, self._psycopg.errors.ConnectionTimeout)

    def _pids(self) -> list[int]:
        host = str(self._where.get("host", ""))
        if not host.startswith("/"):
            return []
        listener = listening(f"{host}/.s.PGSQL.{self._where.get('port', PORT)}")
        return [pid for pid in (self._backend, listener) if pid]

    def _let_go(self, connection: Any) -> None:
        connection.close()
