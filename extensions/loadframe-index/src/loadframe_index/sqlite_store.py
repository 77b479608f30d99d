"""The database of the entries in one SQLite file."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from loadframe_index import totals
from loadframe_index.store import COLUMNS, REPLACED, Row, Store

LOCKED_FOR_S = 30.0
UPSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) {REPLACED}"


def connect(database: Mapping[str, str]) -> "SqliteStore":
    """path: of the existing file. pragmas: a JSON object, name -> value."""
    with SqliteStore.explained():
        uri = Path(database["path"]).resolve().as_uri() + "?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=LOCKED_FOR_S, check_same_thread=False)
        try:
            for name, value in json.loads(database.get("pragmas", "{}")).items():
                connection.execute(f"PRAGMA {name} = {value}").fetchall()
        except BaseException:
            connection.close()
            raise
    return SqliteStore(connection)


class SqliteStore(Store):
    TYPES: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("id", "path", "name"), "BLOB"),
        **dict.fromkeys(("whole", "mode"), "INTEGER"),
        **dict.fromkeys(("type", "log"), "TEXT"),
        "options": "WITHOUT ROWID",
    }
    TOTALS = totals.SQLITE
    GREATEST = "max"
    LATER = "ON CONFLICT (log) DO UPDATE SET number = max(number, excluded.number)"
    BEGIN = "BEGIN IMMEDIATE"
    MARK = "?"
    ERRORS = (sqlite3.Error, OSError)

    @staticmethod
    def _in_the_way(error: Exception) -> bool:
        locked = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in locked

    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        with self.explained():
            yield from self._connection.execute(question)

    @classmethod
    def _text(cls, value: str) -> str:
        return f"CAST({cls.literal(value.encode())} AS TEXT)"

    def keeps_totals(self) -> bool:
        return bool(self._number("SELECT count(*) FROM sqlite_master WHERE name = 'totals'"))

    def refuse_to_wait(self) -> None:
        self.ask("PRAGMA busy_timeout = 0")

    def _upsert(self, rows: Sequence[Row]) -> None:
        with self.explained():
            self._connection.executemany(UPSERT, rows)

    def _run(self, statement: str, values: Sequence[Any]) -> Any:
        return self._connection.execute(statement, values)

    def _among(self, column: str, ids: Sequence[bytes]) -> tuple[str, Sequence[Any]]:
        return f"{column} IN ({', '.join('?' * len(ids))})", ids
