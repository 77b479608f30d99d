"""The shards' tables and their invariants: a file is there whole or not at all, nothing lost, nothing twice.

Files are loaded by two-phase commit: every shard prepares its part, then the first one commits, which decides, then the
others (Gray and Lamport, Consensus on Transaction Commit, 2006). What a killed process left is finished. A shard is
given by its connection string (PostgreSQL documentation, libpq, Connection Strings).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, LiteralString

if TYPE_CHECKING:  # an extra: the registry imports all workloads
    import psycopg

DROP: LiteralString = "DROP TABLE IF EXISTS ingested, loaded_file"
SCHEMA = (
    DROP,
    "CREATE TABLE ingested (file bigint NOT NULL, key text NOT NULL, stamp bigint NOT NULL, amount bigint NOT NULL,"
    " note text NOT NULL)",
    "CREATE TABLE loaded_file (file bigint PRIMARY KEY, rows bigint NOT NULL, amount bigint NOT NULL)",
)
COPY = "COPY ingested (file, key, stamp, amount, note) FROM STDIN"
NOTE_FILE = "INSERT INTO loaded_file (file, rows, amount) VALUES (%s, %s, %s)"
NOTED = "SELECT file, rows, amount FROM loaded_file"
COUNTED = "SELECT file, count(*), sum(amount) FROM ingested GROUP BY file"
LOADING = 0x4C4F4144
"""The advisory lock of each shard that all loaders of files share; settling takes it exclusively."""
PATIENCE = "60s"


@dataclass(frozen=True, slots=True)
class Content:
    """Rows, and the sum of their amounts: of a file, or of many."""

    rows: int
    amount: int

    def __add__(self, other: "Content") -> "Content":
        return Content(self.rows + other.rows, self.amount + other.amount)


NOTHING = Content(0, 0)


def transaction_of(file: int) -> str:
    return f"loadframe-file-{file}"


def _connected(shard: str, *, autocommit: bool = False) -> "psycopg.Connection":
    import psycopg

    return psycopg.connect(shard, autocommit=autocommit)


def create(shards: Sequence[str]) -> None:
    """Existing tables are dropped. psycopg.Error where a shard refuses."""
    for shard in shards:
        with _connected(shard) as connection:
            for statement in SCHEMA:
                connection.execute(statement)


def drop(shards: Sequence[str]) -> None:
    """Once all loaders have ended. psycopg.Error where a shard refuses."""
    empty(shards)
    for shard in shards:
        with _connected(shard) as connection:
            connection.execute(DROP)


def empty(shards: Sequence[str]) -> None:
    """Of every row, once all loaders have ended. psycopg.Error where a shard refuses."""
    with _alone(shards) as connections:
        _settle(connections)
        for connection in connections:
            connection.execute("TRUNCATE ingested, loaded_file")


def wrong(shards: Sequence[str], sent: Callable[[int], Content | None], committed: Sequence[int]) -> list[str]:
    """Settle the shards, count their rows, and report violations, in sentences. sent: the content of a file by its
    number. committed: the files acknowledged to clients. psycopg.Error, also for a loader that outlasts PATIENCE."""
    said: list[str] = []
    loaded: dict[int, list[Content]] = {}
    with _alone(shards) as connections:
        _settle(connections)
        for number, connection in enumerate(connections, 1):
            noted, there = _contents(connection, NOTED), _contents(connection, COUNTED)
            for file in sorted(noted.keys() | there.keys()):
                rows, expected = there.get(file, NOTHING), noted.get(file, NOTHING)
                if rows != expected:
                    said.append(f"shard {number} has {rows.rows} rows of file {file}; {expected.rows} were noted")
            for file, content in noted.items():
                loaded.setdefault(file, []).append(content)
    for file, parts in sorted(loaded.items()):
        whole, whole_sent = sum(parts, NOTHING), sent(file)
        if len(parts) != len(shards):
            said.append(f"file {file} is on {len(parts)} of {len(shards)} shards")
        elif whole_sent is not None and whole != whole_sent:
            said.append(f"file {file} has {whole.rows} rows on the shards; {whole_sent.rows} were sent")
    said += [f"file {file} was said to be loaded and is not there" for file in committed if file not in loaded]
    return said


def _contents(connection: "psycopg.Connection", query: LiteralString) -> dict[int, Content]:
    return {file: Content(rows, int(amount)) for file, rows, amount in connection.execute(query).fetchall()}


@contextmanager
def _alone(shards: Sequence[str]) -> Iterator[list["psycopg.Connection"]]:
    """Connections to the shards while no loader uses any of them. A loader has the lock of each shard in the session in
    which it works there: a killed one keeps it until its work there has ended."""
    with ExitStack() as stack:
        connections = [stack.enter_context(_connected(shard, autocommit=True)) for shard in shards]
        for connection in connections:
            connection.execute(f"SET lock_timeout = '{PATIENCE}'")
            connection.execute("SELECT pg_advisory_lock(%s)", (LOADING,))
        yield connections


def _settle(connections: Sequence["psycopg.Connection"]) -> None:
    """What killed loaders left prepared: commit where the first shard has committed, else roll back."""
    first = connections[0]
    held = [{xid.gtrid for xid in shard.tpc_recover()} for shard in connections]
    for name in set().union(*held):
        file = int(name.rpartition("-")[2])
        decided = first.execute("SELECT 1 FROM loaded_file WHERE file = %s", (file,)).fetchone()
        for connection, names in zip(connections, held, strict=True):
            if name in names:
                (connection.tpc_commit if decided else connection.tpc_rollback)(name)
