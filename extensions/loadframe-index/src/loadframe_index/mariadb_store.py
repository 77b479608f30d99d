"""The database of the entries in a MariaDB. Values are hexadecimal literals: escaping them costs the most CPU time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import pymysql
from pymysql.cursors import SSCursor

from loadframe_index import totals
from loadframe_index.store import COLUMNS, INDEXED, SET, Row, Store, StoreError

IN_THE_WAY = frozenset({1205, 1213, 1020})
"""A lock took too long, a deadlock, a record has changed since it was read."""
NOT_PERMITTED = frozenset({1142, 1227, 1419})
"""No trigger may be made: the account lacks TRIGGER, or the server writes a binary log and the account lacks SUPER."""
STATEMENT_BYTES = 1 << 20
"""A statement ends after the row that exceeds this; max_allowed_packet is 16 MiB by default."""
INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ".encode()
ROW = "(x'%s', x'%s', x'%s', x'%s', %d, %d, '%s', %d, %d, %d, %d, %d, %d, %d, %d, %d, %d)"
REPLACE = (
    " ON DUPLICATE KEY UPDATE "
    + ", ".join(f"{name} = IF(VALUES(seen_ns) >= seen_ns, VALUES({name}), {name})" for name in SET)
).encode()
"""Assignments take effect from left to right: seen_ns, which decides, is the last."""


class MariadbStore(Store):
    TYPES: ClassVar[Mapping[str, str]] = {
        "id": "BINARY(16)",
        "path": "MEDIUMBLOB",
        "name": "VARBINARY(1024)",
        "type": "CHAR(1) CHARACTER SET latin1",
        "whole": "BIGINT",
        "mode": "INT",
        "log": "VARCHAR(64)",
        "options": "ENGINE = InnoDB",
    }
    INDEXED: ClassVar[Mapping[str, str]] = {**INDEXED, "linked": "(links, type)", "name": "(name(64))"}
    """An index has all rows, and of a long column its beginning."""
    TOTALS = totals.MARIADB
    HAS_TOTALS = (
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'totals'"
    )
    LATER = "ON DUPLICATE KEY UPDATE number = {}(number, VALUES(number))"
    ERRORS = (pymysql.err.MySQLError, OSError)

    @classmethod
    def connect(cls, database: Mapping[str, str]) -> Self:
        given: dict[str, Any] = {"user": database.get("user", "root"), "password": database.get("password", "")}
        if database.get("socket"):
            given["unix_socket"] = database["socket"]
        else:
            given |= {"host": database["host"], "port": int(database["port"])}
        with cls.explained():
            connection = pymysql.connect(**given, database=database.get("schema") or None, autocommit=True)
            with connection.cursor() as cursor:
                # Two batches that meet in a gap between keys would wait for one another.
                cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return cls(connection)

    @staticmethod
    def _in_the_way(error: Exception) -> bool:
        return bool(error.args) and error.args[0] in IN_THE_WAY

    def _keep_totals(self) -> None:
        """Go on without triggers where the account may not make them: answers are summed up then."""
        try:
            super()._keep_totals()
        except StoreError as error:
            if not isinstance(error.__cause__, pymysql.err.MySQLError) or error.__cause__.args[0] not in NOT_PERMITTED:
                raise
            self._do("DROP TABLE IF EXISTS totals")

    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        with self.explained(), self._connection.cursor(SSCursor) as cursor:
            cursor.execute(question)
            yield from cursor.fetchall_unbuffered()

    def _upsert(self, rows: Sequence[Row]) -> None:
        for values in _values(rows):
            self._run(INSERT + values + REPLACE, ())

    def _run(self, statement: str | bytes, values: Sequence[Any]) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(statement, values or None)
        return cursor

    def _among(self, column: str, ids: Sequence[bytes]) -> tuple[str, Sequence[Any]]:
        return f"{column} IN ({', '.join([self.literal(key) for key in ids])})", ()


def _values(rows: Sequence[Row]) -> Iterator[bytes]:
    piece: list[str] = []
    size = 0
    for key, parent, path, name, *others in rows:
        piece.append(ROW % (key.hex(), parent.hex(), path.hex(), name.hex(), *others))
        size += len(piece[-1])
        if size >= STATEMENT_BYTES:
            yield ", ".join(piece).encode()
            piece, size = [], 0
    if piece:
        yield ", ".join(piece).encode()
