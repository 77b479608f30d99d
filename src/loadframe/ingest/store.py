"""The shards' tables, and what must hold of them: a file is there whole or not at all, nothing lost, nothing twice.

Files are loaded by two-phase commit: every shard prepares its part, then the first one commits, which decides, then the
others (Gray and Lamport, Consensus on Transaction Commit, 2006). `settle` finishes what a killed process left. A shard
is told by its connection string (PostgreSQL documentation, libpq, Connection Strings).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import psycopg

SCHEMA = (
    "CREATE TABLE ingested (file bigint NOT NULL, key text NOT NULL, stamp bigint NOT NULL, amount bigint NOT NULL,"
    " note text NOT NULL)",
    "CREATE TABLE loaded_file (file bigint PRIMARY KEY, rows bigint NOT NULL, amount bigint NOT NULL)",
)
COPY = "COPY ingested (file, key, stamp, amount, note) FROM STDIN"
NOTE_FILE = "INSERT INTO loaded_file (file, rows, amount) VALUES (%s, %s, %s)"
LOADING = 0x4C4F4144
"""The advisory lock of the first shard that everybody who loads a file shares; whoever settles has it alone."""
PATIENCE = "60s"


@dataclass(frozen=True, slots=True)
class Content:
    """Rows, and the sum of their amounts: of a file, or of many."""

    rows: int
    amount: int

    def __add__(self, other: Content) -> Content:
        return Content(self.rows + other.rows, self.amount + other.amount)


NOTHING = Content(0, 0)


def transaction_of(file: int) -> str:
    """The name of the transaction that loads this file, on every shard."""
    return f"loadframe-file-{file}"


def create(shards: Sequence[str]) -> None:
    """Make the tables. psycopg.Error where a shard refuses."""
    for shard in shards:
        with psycopg.connect(shard) as connection:
            for statement in SCHEMA:
                connection.execute(statement)


def empty(shards: Sequence[str]) -> None:
    """Remove every row, once whoever still loads has ended. psycopg.Error where a shard refuses."""
    settle(shards)
    for shard in shards:
        with psycopg.connect(shard) as connection:
            connection.execute("TRUNCATE ingested, loaded_file")


def settle(shards: Sequence[str]) -> int:
    """Wait for those who load, then finish what killed ones left prepared: committed where the first shard has
    committed it, else taken back. How many files that were. psycopg.Error where a shard refuses, or somebody still
    loads after PATIENCE."""
    with ExitStack() as stack:
        connections = [stack.enter_context(psycopg.connect(shard, autocommit=True)) for shard in shards]
        first = connections[0]
        first.execute(f"SET lock_timeout = '{PATIENCE}'")
        first.execute("SELECT pg_advisory_lock(%s)", (LOADING,))
        held = [{xid.gtrid for xid in each.tpc_recover()} for each in connections]
        unsettled = set().union(*held)
        for name in unsettled:
            file = int(name.rpartition("-")[2])
            decided = first.execute("SELECT 1 FROM loaded_file WHERE file = %s", (file,)).fetchone()
            for connection, names in zip(connections, held, strict=True):
                if name in names:
                    (connection.tpc_commit if decided else connection.tpc_rollback)(name)
        return len(unsettled)


def wrong(shards: Sequence[str], sent: Callable[[int], Content], committed: Sequence[int]) -> list[str]:
    """What does not hold of the settled shards, in sentences; none where all is well.

    sent: what the file of a number holds. committed: the files whose clients were told that they are.
    """
    noted: dict[int, list[Content]] = {}
    said = []
    for number, shard in enumerate(shards, 1):
        with psycopg.connect(shard) as connection:
            files = connection.execute("SELECT file, rows, amount FROM loaded_file").fetchall()
            rows, amount = connection.execute("SELECT count(*), coalesce(sum(amount), 0) FROM ingested").fetchone() or (
                0,
                0,
            )
        for file, *content in files:
            noted.setdefault(file, []).append(Content(*content))
        there, told = Content(rows, int(amount)), sum((Content(*content) for _, *content in files), NOTHING)
        if there != told:
            said.append(f"shard {number} has {there.rows} rows; the files that it has noted have {told.rows}")
    for file, parts in sorted(noted.items()):
        if len(parts) != len(shards):
            said.append(f"file {file} is on {len(parts)} of {len(shards)} shards")
        elif sum(parts, NOTHING) != sent(file):
            said.append(f"file {file} has {sum(parts, NOTHING).rows} rows on the shards; {sent(file).rows} were sent")
    said += [f"file {file} was said to be loaded and is not there" for file in committed if file not in noted]
    return said
