"""Loadframe's own connection to a server of MySQL's family."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from loadframe.connections.bounds import MIB
from loadframe.connections.mariadb_connection import CANNOT_CONNECT, GARBLED, Reach, connect, driver
from loadframe.errors import TargetError
from loadframe.formats.said import words
from loadframe.kinds import database
from loadframe.kinds.catalogue import Catalogue
from loadframe.kinds.database import Answer
from loadframe.model import SettingValue

ANSWER_BYTES = 4 * MIB
"""A server's answers about itself have some 100 KiB."""
CONNECTION_LOST = frozenset({0, CANNOT_CONNECT, 2006, 2013, 2014})
"""pymysql: interface error; cannot connect; gone away; lost during a query; out of sync."""


class Control(database.Control):
    garbled = GARBLED

    def __init__(
        self,
        reach: Reach,
        died: Callable[[], TargetError | None],
        pids: Callable[[], Iterable[int]] = tuple,
        server: str = "MariaDB",
    ) -> None:
        super().__init__(died)
        self._reach, self._processes, self.server = reach, pids, server
        known = driver().err
        self.lost, self.errors = (known.OperationalError, known.InterfaceError), known.MySQLError

    def one(self, statement: str, columns: int) -> tuple[Any, ...]:
        """The one row of a statement, with this number of columns. TargetError for any other answer."""
        rows = self.ask(statement)
        if len(rows) != 1 or len(rows[0]) != columns:
            raise self.is_other(statement, rows)
        return rows[0]

    def direct(self) -> bool:
        """Whether the server itself answers: a proxy numbers connections differently. The lower 32 bits of the number
        are announced (MySQL protocol, Handshake V10). `+ 0` keeps a proxy from answering itself."""
        (answering,) = self.one("SELECT CONNECTION_ID() + 0", 1)
        with self._lock:
            return self._connection is None or int(answering) % (1 << 32) == self._connection.thread_id()

    def pairs(self, statement: str, names: Iterable[str]) -> dict[str, str]:
        """The answer of a SHOW statement, by name."""
        wanted = list(names)
        marks = ", ".join(["%s"] * len(wanted))
        rows = self.ask(f"{statement} WHERE Variable_name IN ({marks})", wanted)
        return {str(row[0]): str(row[1]) for row in rows if len(row) == 2 and row[0] in wanted}

    def variables(self, catalogue: Catalogue, names: Iterable[str]) -> dict[str, SettingValue]:
        wanted = list(names)
        texts = self.pairs("SHOW GLOBAL VARIABLES", wanted)
        return {name: catalogue.shown(name, texts[name]) for name in wanted if name in texts}

    def _connected(self) -> Any:
        return connect(self._reach, most_bytes=ANSWER_BYTES, within_s=self.patience_s)

    def _ask(self, statement: str, values: Sequence[Any]) -> Answer:
        if self._connection is None:
            self._connection = self._connected()
        with self._connection.cursor() as cursor:
            cursor.execute(statement, list(values) or None)
            return list(cursor.fetchall()), []

    def _is_lost(self, error: Exception) -> bool:
        return bool(error.args) and error.args[0] in CONNECTION_LOST

    def _is_late(self, error: Exception) -> bool:
        return isinstance(error.__context__, TimeoutError)

    def _pids(self) -> Iterable[int]:
        return self._processes()

    def _let_go(self, connection: Any) -> None:
        connection._force_close()  # close() would talk to a server that may be gone

    def _shown(self, error: Exception) -> str:
        number, text = (*error.args, "", "")[:2]
        return f"{words(text or error)} (error {words(number)})"
