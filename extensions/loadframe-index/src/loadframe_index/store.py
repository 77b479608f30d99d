"""The database of the entries: its tables, and how they are written. Batches that are applied twice, or in either
order, give the same rows: a row is replaced only by one of a later look (`seen_ns`), and removed only where it was not
seen since. So a killed pipeline begins again. What differs in a database is a class; MariaDB's and PostgreSQL's modules
import their clients."""

import abc
import json
import random
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from loadframe_index import totals
from loadframe_index.entries import NO_PARENT, Entry, id_of

COLUMNS = ("id", "parent", "path", *Entry._fields[2:], "seen_ns")
"""parent: the id of the directory. seen_ns: when the entry was looked at."""
SET = COLUMNS[1:]
INDEXES: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "parent": ("parent",),
    "du": ("parent", "linked"),
    "all": ("parent", "linked", "size", "mtime_ns", "uid", "name"),
}
"""Which columns have an index in addition to the key, by the workload's option. Without one of `parent`, the content of
a removed directory is looked for in the whole table."""
WITH_TOTALS = frozenset({"du", "all"})
"""Values of the option with which the database also keeps totals of each directory (totals.py)."""
LINKED = "links > 1 AND type <> 'd'"
INDEXED: Mapping[str, str] = {"linked": f"(inode) WHERE {LINKED}", "uid": "(uid, type, links, blocks)"}
"""Indexes that are not just their column. uid: for the sums of the largest owners."""
KINDS = {
    "sqlite": "store.SqliteStore",
    "mariadb": "mariadb_store.MariadbStore",
    "postgres": "postgres_store.PostgresStore",
}
"""The class of each kind of database. Its module, which imports a client, is loaded once it is needed."""
OTHER_TYPES = {"id": "id", "parent": "id", "path": "path", "name": "name", "type": "type", "mode": "mode"}
"""Keys of Store.TYPES; other columns are whole numbers of 64 bits."""
TABLES = {
    "entries": ", ".join(f"{name} {{{OTHER_TYPES.get(name, 'whole')}}} NOT NULL" for name in COLUMNS),
    "progress": "log {log} NOT NULL, number {whole} NOT NULL",
    "totals": "directory {id} NOT NULL, above {id}, " + ", ".join(f"{name} {{whole}} NOT NULL" for name in totals.SUMS),
}
"""The columns of each table; the first one is its key."""
REPLACED = (
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in SET)}"
    " WHERE excluded.seen_ns >= entries.seen_ns"
)
UPSERT = f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) {REPLACED}"
LOCKED_FOR_S = 30.0
ATTEMPTS = 8
"""How often a transaction is tried that another one made impossible (a deadlock)."""
PAUSE_S = 0.01
"""The longest pause before the second attempt, doubled before each further one; of random length, so that the same
transactions do not collide again."""
IDS_PER_QUESTION = 10_000
Row = tuple[bytes, bytes, bytes, bytes, int, int, str, int, int, int, int, int, int, int, int, int, int]
"""A row of `entries`, in the order of COLUMNS."""
Known = tuple[int, int, int, int, int]
"""inode, atime_ns, mtime_ns, ctime_ns, seen_ns."""
_SIGN = 1 << 63
T = TypeVar("T")


class StoreError(Exception):
    """The database refused, in its own words."""


class AgainError(StoreError):
    """A deadlock, or a lock that took too long: the same transaction may succeed now."""


@dataclass(frozen=True, slots=True)
class Batch:
    """rows: inserted or replaced. touched: ids of unchanged entries, seen again at seen_ns. removed: paths that were
    not found then; what is beneath them goes, too. log, number: the change log, or "", and its last acknowledged
    change."""

    rows: Sequence[Row] = ()
    touched: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()
    seen_ns: int = 0
    log: str = ""
    number: int = 0


def rows_of(entries: Sequence[Entry], ids: Sequence[bytes], seen_ns: int) -> list[Row]:
    """ids: in the order of the entries. The last one wins where an id comes twice."""
    rows: dict[bytes, Row] = {}
    at, parent = b"", id_of(b"")
    for key, (path, above, name, device, inode, *others) in zip(ids, entries, strict=True):
        if above != at:
            at, parent = above, id_of(above)
        rows[key] = (key, parent if path else NO_PARENT, path, name, device, as_signed(inode), *others, seen_ns)  # type: ignore[assignment]
    return [rows[key] for key in sorted(rows)]


def as_signed(inode: int) -> int:
    """An inode as databases have it, in 64 bits with a sign."""
    return inode if inode < _SIGN else inode - 2 * _SIGN


class Store(abc.ABC):
    """A connection to the database; all methods raise StoreError where it refuses. Not for two threads at once."""

    TYPES: ClassVar[Mapping[str, str]]
    """Values for the braces of TABLES."""
    INDEXED: ClassVar[Mapping[str, str]] = INDEXED
    TOTALS: ClassVar[Sequence[str]]
    HAS_TOTALS: ClassVar[str]
    """A question: its answer is 0 where there are none."""
    GREATEST: ClassVar[str] = "greatest"
    LATER: ClassVar[str] = "ON CONFLICT (log) DO UPDATE SET number = {}(progress.number, excluded.number)"
    """Ends an INSERT into `progress`, with GREATEST: a number never goes back."""
    BEGIN: ClassVar[str] = "BEGIN"
    WAIT_NO_MORE: ClassVar[str] = ""
    """Most databases answer from a snapshot, which no lock holds back."""
    TAKE_TURNS: ClassVar[str] = ""
    """In a repeated transaction: waits until no other one writes totals."""
    MARK: ClassVar[str] = "%s"
    """Stands for a value: a statement with a constant text is parsed once."""
    ERRORS: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    @abc.abstractmethod
    def connect(cls, database: Mapping[str, str]) -> Self:
        """See `connect` below."""

    @classmethod
    @contextmanager
    def explained(cls) -> Iterator[None]:
        try:
            yield
        except cls.ERRORS as error:
            raise (AgainError if cls._in_the_way(error) else StoreError)(" ".join(map(str, error.args))) from error

    @staticmethod
    @abc.abstractmethod
    def _in_the_way(error: Exception) -> bool:
        """Whether another transaction was."""

    def create(self, indexes: str = "parent") -> None:
        """Make the tables, in place of existing ones. indexes: of INDEXES."""
        self.drop()
        self._make("entries")
        self._make("progress")
        for name in INDEXES[indexes]:
            self._do(f"CREATE INDEX entries_{name} ON entries {self.INDEXED.get(name, f'({name})')}")
        if indexes in WITH_TOTALS:
            self._keep_totals()

    def _make(self, table: str) -> None:
        columns, key = TABLES[table].format_map(self.TYPES), TABLES[table].partition(" ")[0]
        self._do(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({key})) {self.TYPES['options']}")

    def _keep_totals(self) -> None:
        self._make("totals")
        self._do("CREATE INDEX totals_above ON totals (above)")
        for statement in self.TOTALS:
            self._do(statement)

    def drop(self) -> None:
        for table in TABLES:
            self._do(f"DROP TABLE IF EXISTS {table}")

    def known(self, ids: Sequence[bytes]) -> dict[bytes, Known]:
        """What is known of each, by id: one query for IDS_PER_QUESTION."""
        columns = "id, inode, atime_ns, mtime_ns, ctime_ns, seen_ns"
        return {key: (inode, *times) for key, inode, *times in self.having(columns, "id", ids)}

    def having(self, columns: str, column: str, ids: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
        for some in parts(ids, IDS_PER_QUESTION):
            among, values = self._among(column, some)
            yield from self.ask(f"SELECT {columns} FROM entries WHERE {among}", values)

    def ids(self) -> Iterator[bytes]:
        return (key for (key,) in self.stream("SELECT id FROM entries"))

    def rows(self) -> Iterator[Row]:
        return self.stream(f"SELECT {', '.join(COLUMNS)} FROM entries")

    def count(self) -> int:
        return self._number("SELECT count(*) FROM entries")

    def last_seen_ns(self) -> int:
        """0 where there is none."""
        return self._number("SELECT coalesce(max(seen_ns), 0) FROM entries")

    def forget_before(self, seen_ns: int) -> int:
        """Removes the entries that were not seen since; returns their number."""
        return self._do(f"DELETE FROM entries WHERE seen_ns < {seen_ns:d}")

    def acknowledged(self, log: str) -> int:
        """The last change of that log in the database; 0 where unknown."""
        return self._number(f"SELECT coalesce(max(number), 0) FROM progress WHERE log = {self.MARK}", (log,))

    def ask(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a SELECT. values: for its marks; others are literals (`literal`) in its text."""
        with self.explained():
            return list(self._run(question, values).fetchall())

    @abc.abstractmethod
    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        """As `ask`, while the database keeps the rows until they are taken. Ask nothing else meanwhile."""

    @staticmethod
    def literal(value: bytes) -> str:
        return f"x'{value.hex()}'"

    @classmethod
    def contains(cls, column: str, value: bytes) -> str:
        return f"instr({column}, {cls.literal(value)}) > 0"

    def keeps_totals(self) -> bool:
        return bool(self._number(self.HAS_TOTALS))

    def index_inodes(self) -> None:
        """Idempotent."""
        self._do("CREATE INDEX IF NOT EXISTS entries_inode ON entries (inode)")

    def refuse_to_wait(self) -> None:
        """From now on a question that waits for a lock on the whole database is an AgainError at once."""
        if self.WAIT_NO_MORE:
            self.ask(self.WAIT_NO_MORE)

    def close(self) -> None:
        with suppress(*self.ERRORS):
            self._connection.close()

    def apply(self, batch: Batch) -> None:
        """Apply it in one transaction, repeated where another one was in the way. Idempotent."""
        for attempt in range(ATTEMPTS):
            try:
                self._do(self.BEGIN)
                if attempt and self.TAKE_TURNS and self.keeps_totals():
                    self._do(self.TAKE_TURNS)
                self._write(batch)
                self._do("COMMIT")
                return
            except AgainError:
                self._rollback()
                if attempt == ATTEMPTS - 1:
                    raise
                time.sleep(random.uniform(0, PAUSE_S * 2**attempt))
            except BaseException:
                self._rollback()
                raise

    def _write(self, batch: Batch) -> None:
        if batch.removed:
            self._remove_trees(batch)
        if batch.rows:
            with self.explained():
                self._upsert(batch.rows)
        for ids in parts(sorted(batch.touched), IDS_PER_QUESTION):
            among, values = self._among("id", ids)
            seen = f"UPDATE entries SET seen_ns = {self.GREATEST}(seen_ns, {self.MARK}) WHERE {among}"
            self._do(seen, (batch.seen_ns, *values))
        if batch.log:
            later = self.LATER.format(self.GREATEST)
            values = (batch.log, batch.number)
            self._do(f"INSERT INTO progress (log, number) VALUES ({self.MARK}, {self.MARK}) {later}", values)

    def _remove_trees(self, batch: Batch) -> None:
        """Rows that were not seen later. Level by level, with statements that all databases know."""
        level = sorted({id_of(path) for path in batch.removed})
        while level:
            below = sorted(key for (key,) in self.having("id", "parent", level))
            for ids in parts(level, IDS_PER_QUESTION):
                among, values = self._among("id", ids)
                self._do(f"DELETE FROM entries WHERE seen_ns <= {self.MARK} AND {among}", (batch.seen_ns, *values))
            level = below

    def _do(self, statement: str, values: Sequence[Any] = ()) -> int:
        with self.explained():
            return int(self._run(statement, values).rowcount)

    @abc.abstractmethod
    def _run(self, statement: str, values: Sequence[Any]) -> Any:
        """The cursor with the result of a statement."""

    @abc.abstractmethod
    def _among(self, column: str, ids: Sequence[bytes]) -> tuple[str, Sequence[Any]]:
        """The condition, with the values for its marks."""

    def _number(self, asked: str, values: Sequence[Any] = ()) -> int:
        return int(self.ask(asked, values)[0][0])

    def _rollback(self) -> None:
        with suppress(*self.ERRORS):
            self._connection.rollback()

    @abc.abstractmethod
    def _upsert(self, rows: Sequence[Row]) -> None:
        """A row is replaced unless it was seen later."""


class SqliteStore(Store):
    TYPES: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("id", "path", "name"), "BLOB"),
        **dict.fromkeys(("whole", "mode"), "INTEGER"),
        **dict.fromkeys(("type", "log"), "TEXT"),
        "options": "WITHOUT ROWID",
    }
    TOTALS = totals.SQLITE
    HAS_TOTALS = "SELECT count(*) FROM sqlite_master WHERE name = 'totals'"
    GREATEST = "max"
    BEGIN = "BEGIN IMMEDIATE"
    WAIT_NO_MORE = "PRAGMA busy_timeout = 0"
    MARK = "?"
    ERRORS = (sqlite3.Error, OSError)

    @classmethod
    def connect(cls, database: Mapping[str, str]) -> Self:
        uri = Path(database["path"]).resolve().as_uri() + "?mode=rw"
        with cls.explained():
            connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, timeout=LOCKED_FOR_S, check_same_thread=False
            )
            try:
                for name, value in json.loads(database.get("pragmas", "{}")).items():
                    connection.execute(f"PRAGMA {name} = {value}").fetchall()
            except BaseException:
                connection.close()
                raise
        return cls(connection)

    @staticmethod
    def _in_the_way(error: Exception) -> bool:
        locked = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF in locked

    def stream(self, question: str) -> Iterator[tuple[Any, ...]]:
        with self.explained():
            yield from self._connection.execute(question)

    def _upsert(self, rows: Sequence[Row]) -> None:
        self._connection.executemany(UPSERT, rows)

    def _run(self, statement: str, values: Sequence[Any]) -> Any:
        return self._connection.execute(statement, values)

    def _among(self, column: str, ids: Sequence[bytes]) -> tuple[str, Sequence[Any]]:
        return f"{column} IN ({', '.join('?' * len(ids))})", ids


def connect(database: Mapping[str, str]) -> Store:
    """A connection. database: kind (a key of KINDS); path of an existing file, pragmas (JSON, name -> value); socket or
    host and port, user, password, schema; or libpq's parameters, and schema. proof: an expression that is 1 where the
    tables are ours. StoreError where it refuses, and where they are not."""
    kind = database["kind"]
    if kind not in KINDS:
        raise StoreError(f"{kind!r} is no database of this pipeline; it knows {', '.join(KINDS)}")
    module, _, name = KINDS[kind].rpartition(".")
    try:
        store: Store = getattr(import_module(f"loadframe_index.{module}"), name).connect(database)
        if proof := database.get("proof"):
            _prove(store, proof, database["schema"])
        return store
    except StoreError as error:
        place = next((database[name] for name in ("path", "socket", "host") if database.get(name)), "")
        raise StoreError(f"{error} ({kind} at {place})") from error


def _prove(store: Store, proof: str, schema: str) -> None:
    try:
        why = "" if store.ask(f"SELECT {proof}") == [(1,)] else "another one is searched"
    except StoreError as error:
        why = str(error)
    if why:
        store.close()
        raise StoreError(f"tables are not looked up in the schema {schema} of this run alone: {why}")


def parts(values: Iterable[T], most: int) -> Iterator[list[T]]:
    left = iter(values)
    while piece := list(islice(left, most)):
        yield piece
