"""The database of the entries in a PostgreSQL. A batch is one array per column: the server unfolds them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import psycopg

from loadframe_index import totals
from loadframe_index.store import COLUMNS, INDEXED, OTHER_TYPES, REPLACED, Row, Store, parts

ROWS_AT_ONCE = 10_000
TYPES = {
    **dict.fromkeys(("id", "path", "name"), "bytea"),
    **dict.fromkeys(("type", "log"), "text"),
    "whole": "bigint",
    "mode": "integer",
    "options": "",
}
_ARRAYS = ", ".join(f"%b::{TYPES[OTHER_TYPES.get(name, 'whole')]}[]" for name in COLUMNS)
UPSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) SELECT * FROM unnest({_ARRAYS}) {REPLACED}".encode()


class PostgresStore(Store):
    TYPES = TYPES
    INDEXED: ClassVar[Mapping[str, str]] = {**INDEXED, "name": "(substring(name for 64))"}
    TOTALS = totals.POSTGRES
    HAS_TOTALS = "SELECT count(to_regclass('totals'))"
    TAKE_TURNS = "LOCK TABLE totals IN SHARE ROW EXCLUSIVE MODE"
    ERRORS = (psycopg.Error,)

    @classmethod
    def connect(cls, database: Mapping[str, str]) -> Self:
        given = {name: value for name, value in database.items() if name not in ("kind", "schema", "proof") and value}
        if database.get("schema"):
            given["options"] = f"-c search_path={database['schema']}"
        with cls.explained():
            return cls(psycopg.connect(autocommit=True, **given))  # type: ignore[arg-type]

    @staticmethod
    def _in_the_way(error: Exception) -> bool:
        return isinstance(error, psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure)

    def drop(self) -> None:
        super().drop()
        self._do(f"DROP FUNCTION IF EXISTS {', '.join(totals.FUNCTIONS)}")

    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        with self.explained():
            yield from self._connection.cursor(binary=True).stream(question.encode(), size=ROWS_AT_ONCE)

    @staticmethod
    def literal(value: bytes) -> str:
        return f"'\\x{value.hex()}'::bytea"

    @classmethod
    def contains(cls, column: str, value: bytes) -> str:
        return f"position({cls.literal(value)} IN {column}) > 0"

    def _upsert(self, rows: Sequence[Row]) -> None:
        for some in parts(rows, ROWS_AT_ONCE):
            self._connection.execute(UPSERT, [list(column) for column in zip(*some, strict=True)])

    def _run(self, statement: str, values: Sequence[Any]) -> Any:
        return self._connection.execute(statement.encode(), values or None, binary=True)

    def _among(self, column: str, ids: Sequence[bytes]) -> tuple[str, Sequence[Any]]:
        return f"{column} = ANY(%b)", (ids,)
