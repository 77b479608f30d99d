"""Loadframe's own connection to a MariaDB server: kept open, for reading counters and setting variables.

The one place of the targets where pymysql's exceptions become TargetErrors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from loadframe.bounds import MIB
from loadframe.errors import TargetError
from loadframe.host.suspended import told
from loadframe.kinds.silence import REFUSED_REMEDY, shortened, silence
from loadframe.mariadb_connection import CANNOT_CONNECT, GARBLED, Reach, connect, driver
from loadframe.model import SettingValue
from loadframe.said import words

if TYPE_CHECKING:
    from pymysql.connections import Connection

TIMEOUT_S, ANSWER_BYTES = 30.0, 4 * MIB
"""A server under load may take its time; one that does not answer for this long counts as hung. What it says of itself
has some 100 KiB."""


class Control:
    """One connection, safe to use from several threads (one at a time); reconnects once where it was lost."""

    def __init__(
        self, reach: Reach, died: Callable[[], TargetError | None], pids: Callable[[], Iterable[int]] = tuple
    ) -> None:
        """died: the TargetError that explains why the server is gone; None while its process lives. pids: its
        processes, as far as they are in sight."""
        self._pymysql = driver()
        self._reach, self._died, self._pids = reach, died, pids
        self._silent = False
        """It was once: as long as it is stopped it is not asked again."""
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
            if self._silent and told(self._pids()):
                raise silence("MariaDB", shortened(statement), TIMEOUT_S, self._pids())
            was_there = self._connection is not None
            try:
                return self._ask(statement, values)
            except (self._pymysql.err.OperationalError, self._pymysql.err.InterfaceError) as error:
                self._drop()
                if (died := self._died()) is not None:
                    raise died from error
                if isinstance(error.__context__, TimeoutError):  # each further try would take as long
                    self._silent = True
                    raise silence("MariaDB", shortened(statement), TIMEOUT_S, self._pids()) from error
                if was_there and error.args and error.args[0] in CONNECTION_LOST:
                    return self._again(statement, values)
                raise self._refused(statement, error) from error
            except self._pymysql.err.MySQLError as error:
                raise self._refused(statement, error) from error
            except GARBLED as error:
                self._drop()
                raise self._garbled(statement, error) from error

    def one(self, statement: str, columns: int) -> tuple[Any, ...]:
        """The one row of a statement. columns: the number it has. TargetError where the answer is another one."""
        rows = self.ask(statement)
        if len(rows) != 1 or len(rows[0]) != columns:
            raise self._garbled(statement, rows)
        return rows[0]

    def pairs(self, statement: str, names: Iterable[str]) -> dict[str, str]:
        """The answer of a SHOW statement, for these names only, by name."""
        wanted = list(names)
        marks = ", ".join(["%s"] * len(wanted))
        rows = self.ask(f"{statement} WHERE Variable_name IN ({marks})", wanted)
        return {str(row[0]): str(row[1]) for row in rows if len(row) == 2 and row[0] in wanted}

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
        except GARBLED as error:
            self._drop()
            raise self._garbled(statement, error) from error

    def _ask(self, statement: str, values: Sequence[SettingValue]) -> list[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = self._connected()
        with self._connection.cursor() as cursor:
            cursor.execute(statement, list(values) or None)
            return list(cursor.fetchall())

    def _connected(self) -> Connection[Any]:
        return connect(self._reach, most_bytes=ANSWER_BYTES, within_s=TIMEOUT_S)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection._force_close()  # type: ignore[attr-defined]  # close() would talk to a server that may be gone

    @staticmethod
    def _refused(statement: str, error: Exception) -> TargetError:
        number, text = (*error.args, "", "")[:2]
        return TargetError(
            f"MariaDB refused `{shortened(statement)}`: {words(text or error)} (error {words(number)})",
            remedy=REFUSED_REMEDY,
        )

    @staticmethod
    def _garbled(statement: str, said: object) -> TargetError:
        return TargetError(
            f"What answers `{shortened(statement)}` is not MariaDB: {words(said) or type(said).__name__}",
            remedy="See which server listens there.",
        )


CONNECTION_LOST = frozenset({0, CANNOT_CONNECT, 2006, 2013, 2014})
"""pymysql: interface error; cannot connect; gone away; lost during a query; out of sync."""
