"""The database of the entries in a PostgreSQL. A batch is one array per column: the server unfolds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, LiteralString

import psycopg

from loadframe.indexing import totals
from loadframe.indexing.store import (
    IDS_PER_QUESTION,
    INDEXED,
    INDEXES,
    TABLES,
    WITH_TOTALS,
    AgainError,
    Known,
    Row,
    Store,
    StoreError,
    parts,
)

OTHERS = {**INDEXED, "name": "(substring(name for 64))"}
ROWS_AT_ONCE = 10_000
ENTRIES: LiteralString = """CREATE TABLE entries (
    id bytea PRIMARY KEY, parent bytea NOT NULL, path bytea NOT NULL, name bytea NOT NULL,
    device bigint NOT NULL, inode bigint NOT NULL, type text NOT NULL, size bigint NOT NULL, blocks bigint NOT NULL,
    links bigint NOT NULL, uid bigint NOT NULL, gid bigint NOT NULL, mode integer NOT NULL,
    atime_ns bigint NOT NULL, mtime_ns bigint NOT NULL, ctime_ns bigint NOT NULL, seen_ns bigint NOT NULL)"""
PROGRESS: LiteralString = "CREATE TABLE progress (log text PRIMARY KEY, number bigint NOT NULL)"
ALL: LiteralString = (
    "id, parent, path, name, device, inode, type, size, blocks, links, uid, gid, mode, atime_ns, mtime_ns, ctime_ns,"
    " seen_ns"
)
"""As COLUMNS."""
UPSERT: LiteralString = f"""INSERT INTO entries ({ALL})
    SELECT * FROM unnest(%b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bigint[], %b::bigint[], %b::text[],
        %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::integer[],
        %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[])
    ON CONFLICT (id) DO UPDATE SET (parent, path, name, device, inode, type, size, blocks, links, uid, gid, mode,
        atime_ns, mtime_ns, ctime_ns, seen_ns) = (excluded.parent, excluded.path, excluded.name, excluded.device,
        excluded.inode, excluded.type, excluded.size, excluded.blocks, excluded.links, excluded.uid, excluded.gid,
        excluded.mode, excluded.atime_ns, excluded.mtime_ns, excluded.ctime_ns, excluded.seen_ns)
    WHERE excluded.seen_ns >= entries.seen_ns"""
KNOWN: LiteralString = "SELECT id, inode, atime_ns, mtime_ns, ctime_ns, seen_ns FROM entries WHERE id = ANY(%b)"
NOTE: LiteralString = """INSERT INTO progress (log, number) VALUES (%s, %s)
    ON CONFLICT (log) DO UPDATE SET number = greatest(progress.number, excluded.number)"""


def connect(database: Mapping[str, str]) -> PostgresStore:
    """See store.connect. schema: where the tables are."""
    given = {name: value for name, value in database.items() if name not in ("kind", "schema", "proof") and value}
    if database.get("schema"):
        given["options"] = f"-c search_path={database['schema']}"
    with _explained():
        return PostgresStore(psycopg.connect(autocommit=True, **given))  # type: ignore[arg-type]


class PostgresStore(Store):
    """See Store."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def create(self, indexes: str = "parent") -> None:
        self.drop()
        with _explained():
            self._connection.execute(ENTRIES)
            self._connection.execute(PROGRESS)
            for name in INDEXES[indexes]:
                key = f"CREATE INDEX entries_{name} ON entries {OTHERS.get(name, f'({name})')}"
                self._connection.execute(key.encode())
            for statement in totals.POSTGRES if indexes in WITH_TOTALS else ():
                self._connection.execute(statement)

    def drop(self) -> None:
        with _explained():
            self._connection.execute(f"DROP TABLE IF EXISTS {', '.join(TABLES)}".encode())
            self._connection.execute(f"DROP FUNCTION IF EXISTS {', '.join(totals.FUNCTIONS)}".encode())

    def empty(self) -> None:
        there = TABLES if self.keeps_totals() else TABLES[:-1]
        with _explained():
            self._connection.execute(f"TRUNCATE {', '.join(there)}".encode())  # for which no trigger fires

    def known(self, ids: Sequence[bytes]) -> dict[bytes, Known]:
        found: dict[bytes, Known] = {}
        with _explained():
            for some in parts(ids, IDS_PER_QUESTION):
                rows = self._connection.execute(KNOWN, (some,), binary=True)
                found.update((key, (inode, *times)) for key, inode, *times in rows)
        return found

    def count(self) -> int:
        return self._number("SELECT count(*) FROM entries")

    def last_seen_ns(self) -> int:
        return self._number("SELECT coalesce(max(seen_ns), 0) FROM entries")

    def forget_before(self, seen_ns: int) -> int:
        with _explained():
            return self._connection.execute("DELETE FROM entries WHERE seen_ns < %s", (seen_ns,)).rowcount

    def acknowledged(self, log: str) -> int:
        return self._number("SELECT coalesce(max(number), 0) FROM progress WHERE log = %s", log)

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        with _explained():
            return self._connection.execute(question.encode(), binary=True).fetchall()

    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        with _explained():
            yield from self._connection.cursor(binary=True).stream(question.encode(), size=ROWS_AT_ONCE)

    @staticmethod
    def literal(value: bytes) -> str:
        return f"'\\x{value.hex()}'::bytea"

    @classmethod
    def contains(cls, column: str, value: bytes) -> str:
        return f"position({cls.literal(value)} IN {column}) > 0"

    def keeps_totals(self) -> bool:
        return bool(self._number("SELECT count(to_regclass('totals'))"))

    def index_inodes(self) -> None:
        with _explained():
            self._connection.execute("CREATE INDEX IF NOT EXISTS entries_inode ON entries (inode)")

    def refuse_to_wait(self) -> None:
        """Nothing: what is asked here reads a snapshot, which no lock holds back."""

    def close(self) -> None:
        self._connection.close()

    def _begin(self) -> None:
        with _explained():
            self._connection.execute("BEGIN")

    def _take_turns(self) -> None:
        if self.keeps_totals():
            with _explained():
                self._connection.execute("LOCK TABLE totals IN SHARE ROW EXCLUSIVE MODE")

    def _commit(self) -> None:
        with _explained():
            self._connection.execute("COMMIT")

    def _rollback(self) -> None:
        with suppress(psycopg.Error):
            self._connection.rollback()

    def _upsert(self, rows: Sequence[Row]) -> None:
        with _explained():
            for some in parts(rows, ROWS_AT_ONCE):
                self._connection.execute(UPSERT, [list(column) for column in zip(*some, strict=True)])

    def _touch(self, ids: Sequence[bytes], seen_ns: int) -> None:
        with _explained():
            statement: LiteralString = "UPDATE entries SET seen_ns = greatest(seen_ns, %b) WHERE id = ANY(%b)"
            self._connection.execute(statement, (seen_ns, ids))

    def _children(self, ids: Sequence[bytes]) -> list[bytes]:
        with _explained():
            found = self._connection.execute("SELECT id FROM entries WHERE parent = ANY(%b)", (ids,), binary=True)
            return [key for (key,) in found]

    def _delete(self, ids: Sequence[bytes], seen_ns: int) -> None:
        with _explained():
            self._connection.execute("DELETE FROM entries WHERE seen_ns <= %b AND id = ANY(%b)", (seen_ns, ids))

    def _note(self, log: str, number: int) -> None:
        with _explained():
            self._connection.execute(NOTE, (log, number))

    def _number(self, asked: LiteralString, *values: str) -> int:
        with _explained():
            row = self._connection.execute(asked, values).fetchone()
            return int(row[0]) if row else 0


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
        raise AgainError(str(error)) from error
    except psycopg.Error as error:
        raise StoreError(str(error)) from error
