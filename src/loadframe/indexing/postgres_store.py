"""The database of the entries in a PostgreSQL. A batch is one array per column: the server unfolds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, LiteralString

import psycopg

from loadframe.indexing import totals
from loadframe.indexing.store import INDEXED, AgainError, Row, Store, StoreError, parts

ROWS_AT_ONCE = 10_000
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


def connect(database: Mapping[str, str]) -> PostgresStore:
    """See store.connect. schema: where the tables are."""
    given = {name: value for name, value in database.items() if name not in ("kind", "schema", "proof") and value}
    if database.get("schema"):
        given["options"] = f"-c search_path={database['schema']}"
    with _explained():
        return PostgresStore(psycopg.connect(autocommit=True, **given))  # type: ignore[arg-type]


class PostgresStore(Store):
    """See Store."""

    ENTRIES = """CREATE TABLE entries (
    id bytea PRIMARY KEY, parent bytea NOT NULL, path bytea NOT NULL, name bytea NOT NULL,
    device bigint NOT NULL, inode bigint NOT NULL, type text NOT NULL, size bigint NOT NULL, blocks bigint NOT NULL,
    links bigint NOT NULL, uid bigint NOT NULL, gid bigint NOT NULL, mode integer NOT NULL,
    atime_ns bigint NOT NULL, mtime_ns bigint NOT NULL, ctime_ns bigint NOT NULL, seen_ns bigint NOT NULL)"""
    PROGRESS = "CREATE TABLE progress (log text PRIMARY KEY, number bigint NOT NULL)"
    INDEXED: ClassVar[Mapping[str, str]] = {**INDEXED, "name": "(substring(name for 64))"}
    TOTALS = totals.POSTGRES
    LATER = "ON CONFLICT (log) DO UPDATE SET number = greatest(progress.number, excluded.number)"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def drop(self) -> None:
        super().drop()
        self._do(f"DROP FUNCTION IF EXISTS {', '.join(totals.FUNCTIONS)}")

    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        with _explained():
            yield from self._connection.cursor(binary=True).stream(question.encode(), size=ROWS_AT_ONCE)

    @staticmethod
    def literal(value: bytes) -> str:
        return f"'\\x{value.hex()}'::bytea"

    @classmethod
    def _text(cls, value: str) -> str:
        return f"convert_from({cls.literal(value.encode())}, 'UTF8')"

    @classmethod
    def contains(cls, column: str, value: bytes) -> str:
        return f"position({cls.literal(value)} IN {column}) > 0"

    def keeps_totals(self) -> bool:
        return bool(self._number("SELECT count(to_regclass('totals'))"))

    def close(self) -> None:
        self._connection.close()

    def _take_turns(self) -> None:
        if self.keeps_totals():
            self._do("LOCK TABLE totals IN SHARE ROW EXCLUSIVE MODE")

    def _rollback(self) -> None:
        with suppress(psycopg.Error):
            self._connection.rollback()

    def _upsert(self, rows: Sequence[Row]) -> None:
        with _explained():
            for some in parts(rows, ROWS_AT_ONCE):
                self._connection.execute(UPSERT, [list(column) for column in zip(*some, strict=True)])

    def _do(self, statement: str, values: Sequence[Any] = ()) -> int:
        with _explained():
            return self._connection.execute(statement.encode(), values or None).rowcount

    def _ask(self, asked: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with _explained():
            return self._connection.execute(asked.encode(), values or None, binary=True).fetchall()

    def _among(self, column: str, ids: Sequence[bytes]) -> tuple[str, Sequence[Any]]:
        return f"{column} = ANY(%b)", (ids,)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
        raise AgainError(str(error)) from error
    except psycopg.Error as error:
        raise StoreError(str(error)) from error
