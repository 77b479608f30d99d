"""The database of the entries in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from loadframe.indexing import totals
from loadframe.indexing.store import (
    COLUMNS,
    IDS_PER_QUESTION,
    INDEXED,
    INDEXES,
    SET,
    TABLES,
    WITH_TOTALS,
    AgainError,
    Known,
    Row,
    Store,
    StoreError,
    parts,
)

LOCKED_FOR_S = 30.0
ROWS_AT_ONCE = 1000
ENTRIES = """CREATE TABLE entries (
    id BLOB PRIMARY KEY, parent BLOB NOT NULL, path BLOB NOT NULL, name BLOB NOT NULL,
    device INTEGER NOT NULL, inode INTEGER NOT NULL, type TEXT NOT NULL, size INTEGER NOT NULL, blocks INTEGER NOT NULL,
    links INTEGER NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, mode INTEGER NOT NULL,
    atime_ns INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, seen_ns INTEGER NOT NULL
) WITHOUT ROWID"""
PROGRESS = "CREATE TABLE progress (log TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID"
UPSERT = (
    f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
    " ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in SET)
    + " WHERE excluded.seen_ns >= seen_ns"
)
NOTE = (
    "INSERT INTO progress (log, number) VALUES (?, ?)"
    " ON CONFLICT (log) DO UPDATE SET number = max(number, excluded.number)"
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

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def create(self, indexes: str = "parent") -> None:
        self.drop()
        with _explained():
            self._connection.execute(ENTRIES)
            self._connection.execute(PROGRESS)
            for name in INDEXES[indexes]:
                self._connection.execute(f"CREATE INDEX entries_{name} ON entries {INDEXED.get(name, f'({name})')}")
            for statement in totals.SQLITE if indexes in WITH_TOTALS else ():
                self._connection.execute(statement)

    def drop(self) -> None:
        with _explained():
            for table in TABLES:
                self._connection.execute(f"DROP TABLE IF EXISTS {table}")

    def empty(self) -> None:
        with _explained():
            for statement in ("BEGIN IMMEDIATE", "DELETE FROM entries", "DELETE FROM progress", "COMMIT"):
                self._connection.execute(statement)
            # A write-ahead log that is left would be paid for by whoever writes next.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def known(self, ids: Sequence[bytes]) -> dict[bytes, Known]:
        found: dict[bytes, Known] = {}
        with _explained():
            for some in parts(ids, IDS_PER_QUESTION):
                asked = (
                    f"SELECT id, inode, atime_ns, mtime_ns, ctime_ns, seen_ns FROM entries WHERE id IN ({_marks(some)})"
                )
                found.update((key, (inode, *times)) for key, inode, *times in self._connection.execute(asked, some))
        return found

    def count(self) -> int:
        return self._number("SELECT count(*) FROM entries")

    def last_seen_ns(self) -> int:
        return self._number("SELECT coalesce(max(seen_ns), 0) FROM entries")

    def forget_before(self, seen_ns: int) -> int:
        with _explained():
            return self._connection.execute("DELETE FROM entries WHERE seen_ns < ?", (seen_ns,)).rowcount

    def acknowledged(self, log: str) -> int:
        return self._number("SELECT coalesce(max(number), 0) FROM progress WHERE log = ?", log)

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        with _explained():
            return self._connection.execute(question).fetchall()

    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        with _explained():
            yield from self._connection.execute(question)

    @staticmethod
    def literal(value: bytes) -> str:
        return f"x'{value.hex()}'"

    def keeps_totals(self) -> bool:
        return bool(self._number("SELECT count(*) FROM sqlite_master WHERE name = 'totals'"))

    def index_inodes(self) -> None:
        with _explained():
            self._connection.execute("CREATE INDEX IF NOT EXISTS entries_inode ON entries (inode)")

    def refuse_to_wait(self) -> None:
        with _explained():
            self._connection.execute("PRAGMA busy_timeout = 0").fetchall()

    def close(self) -> None:
        self._connection.close()

    def _begin(self) -> None:
        with _explained():
            self._connection.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        with _explained():
            self._connection.execute("COMMIT")

    def _rollback(self) -> None:
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _upsert(self, rows: Sequence[Row]) -> None:
        with _explained():
            self._connection.executemany(UPSERT, rows)

    def _touch(self, ids: Sequence[bytes], seen_ns: int) -> None:
        with _explained():
            statement = f"UPDATE entries SET seen_ns = max(seen_ns, ?) WHERE id IN ({_marks(ids)})"
            self._connection.execute(statement, (seen_ns, *ids))

    def _children(self, ids: Sequence[bytes]) -> list[bytes]:
        with _explained():
            asked = f"SELECT id FROM entries WHERE parent IN ({_marks(ids)})"
            return [key for (key,) in self._connection.execute(asked, ids)]

    def _delete(self, ids: Sequence[bytes], seen_ns: int) -> None:
        with _explained():
            statement = f"DELETE FROM entries WHERE seen_ns <= ? AND id IN ({_marks(ids)})"
            self._connection.execute(statement, (seen_ns, *ids))

    def _note(self, log: str, number: int) -> None:
        with _explained():
            self._connection.execute(NOTE, (log, number))

    def _number(self, asked: str, *values: str) -> int:
        with _explained():
            return int(self._connection.execute(asked, values).fetchone()[0])


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        in_the_way = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        raise (AgainError if in_the_way else StoreError)(str(error)) from error
    except (sqlite3.Error, OSError) as error:
        raise StoreError(str(error)) from error
