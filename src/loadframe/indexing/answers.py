"""What the database answers in place of du and find: the use of a tree or of a part of it, entries by size, age, owner
and name, and the largest of each sort.

A file with several names is counted once by `usage` and by the owners, as du does, and at each name by `find`. The
questions are SQL that SQLite, MariaDB and PostgreSQL all understand; their values are numbers and hexadecimal literals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loadframe.errors import StudyError
from loadframe.indexing.entries import BLOCK_BYTES, TYPES
from loadframe.indexing.globs import longest_literal, matcher
from loadframe.indexing.store import Store

ROWS_AT_ONCE = 20_000
"""Of entries that are found: the others stay in the database meanwhile."""
ONE_NAME = "(links = 1 OR type = 'd')"
_OF_FILES = "CASE WHEN type IN ('f', 'l') THEN size ELSE 0 END"
_SUMS = f"count(*), coalesce(sum(blocks), 0), coalesce(sum(size), 0), coalesce(sum({_OF_FILES}), 0)"


@dataclass(frozen=True, slots=True)
class Usage:
    """entries: names. files: each of them once, however many names it has. bytes_on_disk: blocks of 512 bytes, as du
    counts. apparent_bytes: of all sizes; of which those of files and symbolic links are file_bytes (POSIX leaves the
    size of others open: du -b of coreutils 9.2 and later counts these alone)."""

    entries: int
    files: int
    bytes_on_disk: int
    apparent_bytes: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries are looked for; what is None does not matter. under: the path of a directory, which is looked at,
    too. type: as find -type has it. name: a pattern, as find -name has it. larger_than, smaller_than: bytes, exclusive.
    modified_after_s, modified_before_s: seconds since the epoch, exclusive and inclusive, as find -newermt and its
    opposite."""

    under: bytes = b""
    type: str | None = None
    name: bytes | None = None
    larger_than: int | None = None
    smaller_than: int | None = None
    modified_after_s: int | None = None
    modified_before_s: int | None = None
    uid: int | None = None

    def __post_init__(self) -> None:
        if self.type is not None and self.type not in TYPES.values():
            raise StudyError(
                f"{self.type!r} is no type of an entry", remedy=f"Use one of {', '.join(sorted(TYPES.values()))}."
            )


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that was looked for."""

    id: bytes
    path: bytes
    size: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Share:
    """Of an owner or of a directory. of: a number of a user, or a path."""

    of: int | bytes
    entries: int
    bytes_on_disk: int


def usage(store: Store, under: bytes = b"") -> Usage:
    """As du tells it of this directory. StoreError."""
    where = _under(store, under)
    # Grouped by the first columns of the index `used`, so that it is read in order, and no row of the table.
    rows = store.ask(
        "SELECT type, links, count(*), coalesce(sum(blocks), 0), coalesce(sum(size), 0) FROM entries "
        f"WHERE {where} GROUP BY type, links"
    )
    entries, totals = 0, [0, 0, 0, 0]
    for kind, links, count, blocks, size in rows:
        entries += int(count)
        if int(links) == 1 or kind == "d":
            of_files = int(size) if kind in ("f", "l") else 0
            totals = [one + int(more) for one, more in zip(totals, (count, blocks, size, of_files), strict=True)]
    if entries > totals[0]:
        columns = "device, inode, type, max(blocks) AS blocks, max(size) AS size"
        each = f"SELECT {columns} FROM entries WHERE NOT {ONE_NAME} AND {where} GROUP BY device, inode, type"
        (row,) = store.ask(f"SELECT {_SUMS} FROM ({each}) AS linked")
        totals = [one + int(more) for one, more in zip(totals, row, strict=True)]
    files, blocks, size, of_files = totals
    return Usage(entries, files, blocks * BLOCK_BYTES, size, of_files)


def find(store: Store, wanted: Wanted) -> Iterator[Found]:
    """The entries, in the order of their ids. StoreError."""
    pattern = matcher(wanted.name) if wanted.name is not None else None
    where, last = _where(store, wanted), b""
    while True:
        after = f"id > {store.literal(last)}" if last else "1 = 1"
        question = f"SELECT id, path, size, blocks, name FROM entries WHERE {after} AND {where}"
        rows = store.ask(f"{question} ORDER BY id LIMIT {ROWS_AT_ONCE}")
        for key, path, size, blocks, name in rows:
            if pattern is None or pattern.fullmatch(name):
                yield Found(key, path, size, blocks)
        if len(rows) < ROWS_AT_ONCE:
            return
        last = rows[-1][0]


def largest_files(store: Store, most: int, under: bytes = b"") -> list[Found]:
    """By size, the largest first; of equal ones, by path. StoreError."""
    question = f"SELECT id, path, size, blocks FROM entries WHERE type = 'f' AND {_under(store, under)}"
    return [Found(*row) for row in store.ask(f"{question} ORDER BY size DESC, path LIMIT {most:d}")]


def largest_owners(store: Store, most: int) -> list[Share]:
    """By bytes on the disk, the largest first; of equal ones, by number. A file with several names counts as one entry.
    StoreError."""
    linked = f"SELECT uid, max(blocks) AS blocks FROM entries WHERE NOT {ONE_NAME} GROUP BY uid, device, inode"
    single = f"SELECT uid, count(*) AS entries, sum(blocks) AS blocks FROM entries WHERE {ONE_NAME} GROUP BY uid"
    every = f"{single} UNION ALL SELECT uid, count(*), sum(blocks) FROM ({linked}) AS linked GROUP BY uid"
    question = f"SELECT uid, sum(entries), sum(blocks) AS used FROM ({every}) AS owners GROUP BY uid"
    return [
        Share(int(uid), int(entries), int(blocks) * BLOCK_BYTES)
        for uid, entries, blocks in store.ask(f"{question} ORDER BY used DESC, uid LIMIT {most:d}")
    ]


def fullest_directories(store: Store, most: int) -> list[Share]:
    """By the number of entries directly in them; bytes_on_disk: of these. Of equal ones, by id. StoreError."""
    rows = store.ask(
        "SELECT parent, count(*) AS entries, sum(blocks) FROM entries WHERE path <> "
        f"{store.literal(b'')} GROUP BY parent ORDER BY entries DESC, parent LIMIT {most:d}"
    )
    paths = _paths(store, [row[0] for row in rows])
    return [
        Share(paths[parent], int(entries), int(blocks) * BLOCK_BYTES)
        for parent, entries, blocks in rows
        if parent in paths
    ]


def _paths(store: Store, ids: list[bytes]) -> dict[bytes, bytes]:
    if not ids:
        return {}
    listed = ", ".join(map(store.literal, ids))
    return dict(store.ask(f"SELECT id, path FROM entries WHERE id IN ({listed})"))


def _where(store: Store, wanted: Wanted) -> str:
    second = 1_000_000_000
    conditions = {
        "size > {}": wanted.larger_than,
        "size < {}": wanted.smaller_than,
        "mtime_ns > {}": None if wanted.modified_after_s is None else wanted.modified_after_s * second,
        "mtime_ns <= {}": None if wanted.modified_before_s is None else wanted.modified_before_s * second,
        "uid = {}": wanted.uid,
    }
    told = [condition.format(int(value)) for condition, value in conditions.items() if value is not None]
    if wanted.type is not None:
        told.append(f"type = '{wanted.type}'")
    if wanted.name is not None:
        told.append(f"path <> {store.literal(b'')}")  # the root has no name here
    if wanted.name is not None and (literal := longest_literal(wanted.name)):
        told.append(store.contains("name", literal))
    return " AND ".join([_under(store, wanted.under), *told])


def _under(store: Store, path: bytes) -> str:
    """This directory and all below it."""
    if not path:
        return "1 = 1"
    first, after = path + b"/", path + b"0"  # the byte after "/"
    literal = store.literal
    return f"(path = {literal(path)} OR (path >= {literal(first)} AND path < {literal(after)}))"
