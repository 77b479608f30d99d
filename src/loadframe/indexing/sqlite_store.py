"""The database of the entries in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from loadframe.indexing import totals
from loadframe.indexing.store import COLUMNS, SET, AgainError, Row, Store, StoreError

LOCKED_FOR_S = 30.0
UPSERT = (
    f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
    " ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in SET)
    + " WHERE excluded.seen_ns >= seen_ns"
)


def connect(database: Mapping[str, str]) -> SqliteStore:
    """path: of the file, which is there. pragmas: a JSON object, name -> value."""
    with _explained():
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
    """See Store."""

    ENTRIES = """CREATE TABLE entries (
    id BLOB PRIMARY KEY, parent BLOB NOT NULL, path BLOB NOT NULL, name BLOB NOT NULL,
    device INTEGER NOT NULL, inode INTEGER NOT NULL, type TEXT NOT NULL, size INTEGER NOT NULL, blocks INTEGER NOT NULL,
    links INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, mode INTEGER NOT NULL,
    atime_ns INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, seen_ns INTEGER NOT NULL
) WITHOUT ROWID"""
    PROGRESS = "CREATE TABLE progress (log TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID"
    TOTALS = totals.SQLITE
    LATER = "ON CONFLICT (log) DO UPDATE SET number = max(number, excluded.number)"
    GREATEST = "max"
    BEGIN = "BEGIN IMMEDIATE"
    MARK = "?"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def empty(self) -> None:
        for statement in (self.BEGIN, "DELETE FROM entries", "DELETE FROM progress", "COMMIT"):
            self._do(statement)
        # A write-ahead log that is left would be paid for by whoever writes next.
        self._ask("PRAGMA wal_checkpoint(TRUNCATE)")

    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        with _explained():
            yield from self._connection.execute(question)

    @classmethod
    def _text(cls, value: str) -> str:
        return f"CAST({cls.literal(value.encode())} AS TEXT)"

    def keeps_totals(self) -> bool:
        return bool(self._number("SELECT count(*) FROM sqlite_master WHERE name = 'totals'"))

    def refuse_to_wait(self) -> None:
        self._ask("PRAGMA busy_timeout = 0")

    def close(self) -> None:
        self._connection.close()

    def _rollback(self) -> None:
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _upsert(self, rows: Sequence[Row]) -> None:
        with _explained():
            self._connection.executemany(UPSERT, rows)

    def _do(self, statement: str, values: Sequence[Any] = ()) -> int:
        with _explained():
            return self._connection.execute(statement, values).rowcount

    def _ask(self, asked: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with _explained():
            return self._connection.execute(asked, values).fetchall()

    def _among(self, column: str, ids: Sequence[bytes]) -> tuple[str, Sequence[Any]]:
        return f"{column} IN ({', '.join('?' * len(ids))})", ids


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        in_the_way = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        raise (AgainError if in_the_way else StoreError)(str(error)) from error
    except (sqlite3.Error, OSError) as error:
        raise StoreError(str(error)) from error
