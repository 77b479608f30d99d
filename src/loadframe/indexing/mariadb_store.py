"""The database of the entries in a MariaDB.

Values go as hexadecimal literals: the client escapes values one by one in Python, which costs more CPU time than the
whole rest of a batch here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

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

IN_THE_WAY = frozenset({1205, 1213, 1020})
"""Errors of MariaDB: a lock took too long, a deadlock, a record has changed since it was read."""
NOT_PERMITTED = frozenset({1142, 1227, 1419})
"""To make a trigger: the account lacks TRIGGER, or the server writes a binary log and the account lacks SUPER."""
STATEMENT_BYTES = 1 << 20
"""A statement ends after the row that exceeds this; the server's max_allowed_packet is 16 MiB where it is not set."""
OTHERS = {**INDEXED, "linked": "(links, type)", "name": "(name(64))"}
"""An index has all rows, and of a long column its beginning."""
ENTRIES = """CREATE TABLE entries (
    id BINARY(16) PRIMARY KEY, parent BINARY(16) NOT NULL, path MEDIUMBLOB NOT NULL, name VARBINARY(1024) NOT NULL,
    device BIGINT NOT NULL, inode BIGINT NOT NULL, type CHAR(1) CHARACTER SET latin1 NOT NULL, size BIGINT NOT NULL,
    blocks BIGINT NOT NULL, links BIGINT NOT NULL, uid BIGINT NOT NULL, gid BIGINT NOT NULL, mode INT NOT NULL,
    atime_ns BIGINT NOT NULL, mtime_ns BIGINT NOT NULL, ctime_ns BIGINT NOT NULL, seen_ns BIGINT NOT NULL
) ENGINE = InnoDB"""
PROGRESS = "CREATE TABLE progress (log VARCHAR(64) PRIMARY KEY, number BIGINT NOT NULL) ENGINE = InnoDB"
INSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ".encode()
ROW = "(x'%s', x'%s', x'%s', x'%s', %d, %d, '%s', %d, %d, %d, %d, %d, %d, %d, %d, %d, %d)"
REPLACE = (
    " ON DUPLICATE KEY UPDATE "
    + ", ".join(f"{name} = IF(VALUES(seen_ns) >= seen_ns, VALUES({name}), {name})" for name in SET)
).encode()
"""From left to right: seen_ns, which decides, is the last."""


def connect(database: Mapping[str, str]) -> MariadbStore:
    """See store.connect."""
    given: dict[str, Any] = {"user": database.get("user", "root"), "password": database.get("password", "")}
    if database.get("socket"):
        given["unix_socket"] = database["socket"]
    else:
        given |= {"host": database["host"], "port": int(database["port"])}
    with _explained():
        connection = pymysql.connect(**given, database=database.get("schema") or None, autocommit=True)
        with connection.cursor() as cursor:
            # Two batches that meet in a gap between keys would wait for one another.
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    return MariadbStore(connection)


class MariadbStore(Store):
    """See Store."""

    def __init__(self, connection: pymysql.connections.Connection[Any]) -> None:
        self._connection = connection

    def create(self, indexes: str = "parent") -> None:
        self.drop()
        keys = [f"CREATE INDEX entries_{name} ON entries {OTHERS.get(name, f'({name})')}" for name in INDEXES[indexes]]
        self._execute(ENTRIES, PROGRESS, *keys)
        if indexes in WITH_TOTALS:
            self._keep_totals()

    def _keep_totals(self) -> None:
        """Where the account may not make triggers there are none: answers are summed up then."""
        with _explained():
            try:
                with self._connection.cursor() as cursor:
                    for statement in totals.MARIADB:
                        cursor.execute(statement)
            except pymysql.err.MySQLError as error:
                if error.args[0] not in NOT_PERMITTED:
                    raise
                self._execute("DROP TABLE IF EXISTS totals")

    def drop(self) -> None:
        self._execute(*(f"DROP TABLE IF EXISTS {table}" for table in TABLES))

    def empty(self) -> None:
        there = TABLES if self.keeps_totals() else TABLES[:-1]
        self._execute(*(f"TRUNCATE TABLE {table}" for table in there))  # for which no trigger fires

    def known(self, ids: Sequence[bytes]) -> dict[bytes, Known]:
        asked = "SELECT id, inode, atime_ns, mtime_ns, ctime_ns, seen_ns FROM entries WHERE id IN ({})"
        found = (row for some in parts(ids, IDS_PER_QUESTION) for row in self._ask(asked.format(_listed(some))))
        return {key: (inode, *times) for key, inode, *times in found}

    def count(self) -> int:
        return self._number("SELECT count(*) FROM entries")

    def last_seen_ns(self) -> int:
        return self._number("SELECT coalesce(max(seen_ns), 0) FROM entries")

    def forget_before(self, seen_ns: int) -> int:
        return self._execute(f"DELETE FROM entries WHERE seen_ns < {seen_ns:d}")

    def acknowledged(self, log: str) -> int:
        return self._number(f"SELECT coalesce(max(number), 0) FROM progress WHERE log = x'{log.encode().hex()}'")

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        return self._ask(question)

    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        with _explained(), self._connection.cursor(SSCursor) as cursor:
            cursor.execute(question)
            yield from cursor.fetchall_unbuffered()

    @staticmethod
    def literal(value: bytes) -> str:
        return f"x'{value.hex()}'"

    def keeps_totals(self) -> bool:
        there = "table_schema = DATABASE() AND table_name = 'totals'"
        return bool(self._number(f"SELECT count(*) FROM information_schema.tables WHERE {there}"))

    def index_inodes(self) -> None:
        self._execute("CREATE INDEX IF NOT EXISTS entries_inode ON entries (inode)")

    def refuse_to_wait(self) -> None:
        """Nothing: what is asked here reads a snapshot, which no lock holds back."""

    def close(self) -> None:
        with suppress(pymysql.err.MySQLError):
            self._connection.close()

    def _begin(self) -> None:
        with _explained():
            self._connection.begin()

    def _commit(self) -> None:
        with _explained():
            self._connection.commit()

    def _rollback(self) -> None:
        with suppress(pymysql.err.MySQLError, OSError):
            self._connection.rollback()

    def _upsert(self, rows: Sequence[Row]) -> None:
        for values in _values(rows):
            self._execute(INSERT + values + REPLACE)

    def _touch(self, ids: Sequence[bytes], seen_ns: int) -> None:
        self._execute(f"UPDATE entries SET seen_ns = greatest(seen_ns, {seen_ns:d}) WHERE id IN ({_listed(ids)})")

    def _children(self, ids: Sequence[bytes]) -> list[bytes]:
        return [key for (key,) in self._ask(f"SELECT id FROM entries WHERE parent IN ({_listed(ids)})")]

    def _delete(self, ids: Sequence[bytes], seen_ns: int) -> None:
        self._execute(f"DELETE FROM entries WHERE seen_ns <= {seen_ns:d} AND id IN ({_listed(ids)})")

    def _note(self, log: str, number: int) -> None:
        values = f"(x'{log.encode().hex()}', {number:d})"
        self._execute(
            f"INSERT INTO progress (log, number) VALUES {values}"
            " ON DUPLICATE KEY UPDATE number = greatest(number, VALUES(number))"
        )

    def _execute(self, *statements: str | bytes) -> int:
        """How many rows the last statement changed."""
        with _explained(), self._connection.cursor() as cursor:
            changed: list[int] = [cursor.execute(statement) for statement in statements]
            return changed[-1]

    def _ask(self, asked: str) -> list[tuple[Any, ...]]:
        with _explained(), self._connection.cursor() as cursor:
            cursor.execute(asked)
            return list(cursor.fetchall())

    def _number(self, asked: str) -> int:
        return int(self._ask(asked)[0][0])


def _values(rows: Sequence[Row]) -> Iterator[bytes]:
    """The rows as literals, in pieces that a statement may have."""
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


def _listed(ids: Sequence[bytes]) -> str:
    return ", ".join([f"x'{key.hex()}'" for key in ids])


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (pymysql.err.MySQLError, OSError) as error:
        number = error.args[0] if error.args else 0
        raise (AgainError if number in IN_THE_WAY else StoreError)(" ".join(map(str, error.args))) from error
