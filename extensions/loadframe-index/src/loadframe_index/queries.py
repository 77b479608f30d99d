"""Answers of the database in place of du and find. A file with several names is counted once by `usage` and by the
owners, as du does, and at each name by `find`. Totals of directories (totals.py), where there are any, give `usage`.
The SQL is what SQLite, MariaDB and PostgreSQL all understand; values are numbers and hexadecimal literals. Questions
raise StoreError."""

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass

from loadframe.errors import StudyError
from loadframe_index.entries import BLOCK_BYTES, NO_PARENT, TYPES, id_of
from loadframe_index.store import LINKED, Store
from loadframe_index.totals import ENTRY, LOW_BITS, SUMS

_ADDED = ", ".join(f"coalesce(sum({name}), 0)" for name in SUMS)
_EACH = ", ".join(f"{value} AS {name}" for name, value in zip(SUMS, ENTRY, strict=True))


@dataclass(frozen=True, slots=True)
class Usage:
    """entries: names. files: each once, however many names it has. bytes_on_disk: as du. apparent_bytes: of all sizes;
    file_bytes: of files and symbolic links alone, as du -b of coreutils 9.2 and later."""

    entries: int
    files: int
    bytes_on_disk: int
    apparent_bytes: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries to find; None: any. under: a directory, itself included. type, name: as find -type, -name.
    larger_than, smaller_than: bytes, exclusive. modified_after_s, modified_before_s: since the epoch, exclusive and
    inclusive, as find -newermt."""

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
    id: bytes
    path: bytes
    size: int
    blocks: int


@dataclass(frozen=True, slots=True)
class Share:
    """Entries and bytes of an owner or of a directory. of: a user's number, or a path."""

    of: int | bytes
    entries: int
    bytes_on_disk: int


def usage(store: Store, under: bytes = b"") -> Usage:
    """As du reports it for this directory."""
    entries, linked, blocks, high, low, other = (
        _kept(store, under) if store.keeps_totals() else _added(store, f"entries WHERE {_under(store, under)}")
    )
    files = entries - linked
    if linked:
        names = "device, inode, type, max(blocks) AS blocks, max(size) AS size, 1 AS links"
        where = f"{LINKED} AND {_under(store, under)} GROUP BY device, inode, type"
        more = _added(store, f"(SELECT {names} FROM entries WHERE {where}) AS entries")
        files += more[0]
        blocks, high, low, other = blocks + more[2], high + more[3], low + more[4], other + more[5]
    in_files = (high << LOW_BITS) + low
    return Usage(entries, files, blocks * BLOCK_BYTES, in_files + other, in_files)


def _added(store: Store, rows: str) -> list[int]:
    (sums,) = store.ask(f"SELECT {_ADDED} FROM (SELECT {_EACH} FROM {rows}) AS summed")
    return list(map(int, sums))


def _kept(store: Store, under: bytes) -> list[int]:
    """From the totals of the directories, and a directory's own entry."""
    if not under:
        (sums,) = store.ask(f"SELECT {_ADDED} FROM totals")
        return list(map(int, sums))
    top = store.literal(id_of(under))
    own = _added(store, f"entries WHERE id = {top}")
    (sums,) = store.ask(
        f"WITH RECURSIVE below (id) AS (SELECT directory FROM totals WHERE directory = {top} UNION "
        f"SELECT totals.directory FROM below CROSS JOIN totals WHERE totals.above = below.id) "
        f"SELECT {_ADDED} FROM below CROSS JOIN totals WHERE totals.directory = below.id"
    )
    return [number + int(more) for number, more in zip(own, sums, strict=True)]


def find(store: Store, wanted: Wanted) -> Iterator[Found]:
    """In any order. Ask the store nothing else until all are taken."""
    pattern = matcher(wanted.name) if wanted.name is not None else None
    for key, path, size, blocks, name in store.stream(
        f"SELECT id, path, size, blocks, name FROM entries WHERE {_where(store, wanted)}"
    ):
        if pattern is None or pattern.fullmatch(name):
            yield Found(key, path, size, blocks)


def largest_files(store: Store, most: int, under: bytes = b"") -> list[Found]:
    """The largest first; of equal ones, by path."""
    files = f"FROM entries WHERE type = 'f' AND {_under(store, under)}"
    # An index finds the size of the last one; none orders those of equal size.
    sizes = store.ask(f"SELECT size {files} ORDER BY size DESC LIMIT {most:d}")
    if not sizes:
        return []
    question = f"SELECT id, path, size, blocks {files} AND size >= {int(sizes[-1][0])}"
    return [Found(*row) for row in store.ask(f"{question} ORDER BY size DESC, path LIMIT {most:d}")]


def largest_owners(store: Store, most: int) -> list[Share]:
    """Owners by bytes on disk, the largest first; of equal ones, by number. A file with several names counts once."""
    linked = f"SELECT uid, max(blocks) AS blocks FROM entries WHERE {LINKED} GROUP BY uid, device, inode"
    single = f"SELECT uid, count(*) AS entries, sum(blocks) AS blocks FROM entries WHERE NOT ({LINKED}) GROUP BY uid"
    every = f"{single} UNION ALL SELECT uid, count(*), sum(blocks) FROM ({linked}) AS linked GROUP BY uid"
    question = f"SELECT uid, sum(entries), sum(blocks) AS used FROM ({every}) AS owners GROUP BY uid"
    return [
        Share(int(uid), int(entries), int(blocks) * BLOCK_BYTES)
        for uid, entries, blocks in store.ask(f"{question} ORDER BY used DESC, uid LIMIT {most:d}")
    ]


def fullest_directories(store: Store, most: int) -> list[Share]:
    """Directories by the number of entries directly in them; bytes_on_disk: of these. Of equal ones, by id."""
    of_root = f"<> {store.literal(NO_PARENT)}"
    counts = f"SELECT parent, count(*) AS entries FROM entries WHERE parent {of_root} GROUP BY parent"
    if store.keeps_totals():
        counts = f"SELECT directory AS parent, entries FROM totals WHERE directory {of_root}"
    rows = store.ask(f"{counts} ORDER BY entries DESC, parent LIMIT {most:d}")
    if not rows:
        return []
    listed = ", ".join(store.literal(parent) for parent, _ in rows)
    blocks = dict(store.ask(f"SELECT parent, sum(blocks) FROM entries WHERE parent IN ({listed}) GROUP BY parent"))
    paths = dict(store.ask(f"SELECT id, path FROM entries WHERE id IN ({listed})"))
    return [
        Share(paths[parent], int(entries), int(blocks[parent]) * BLOCK_BYTES)
        for parent, entries in rows
        if parent in paths and parent in blocks
    ]


def _where(store: Store, wanted: Wanted) -> str:
    second = 1_000_000_000
    conditions = {
        "size > {}": wanted.larger_than,
        "size < {}": wanted.smaller_than,
        "mtime_ns > {}": None if wanted.modified_after_s is None else wanted.modified_after_s * second,
        "mtime_ns <= {}": None if wanted.modified_before_s is None else wanted.modified_before_s * second,
        "uid = {}": wanted.uid,
    }
    clauses = [condition.format(int(value)) for condition, value in conditions.items() if value is not None]
    if wanted.type is not None:
        clauses.append(f"type = '{wanted.type}'")
    if wanted.name is not None:
        clauses.append(f"path <> {store.literal(b'')}")  # the root has no name here
    if wanted.name is not None and (literal := longest_literal(wanted.name)):
        clauses.append(store.contains("name", literal))
    return " AND ".join([_under(store, wanted.under), *clauses])


def _under(store: Store, path: bytes) -> str:
    if not path:
        return "1 = 1"
    first, after = path + b"/", path + b"0"  # the byte after "/"
    literal = store.literal
    return f"(path = {literal(path)} OR (path >= {literal(first)} AND path < {literal(after)}))"


_SPECIAL = re.compile(rb"[*?\[\\]")
_SPELT_OTHERWISE = re.compile(rb"\\(.)|\[([!^]?+)(.[^\]]*)\]|\[", re.DOTALL)
"""What find and fnmatch spell differently: an escaped byte; a bracket, whether it is negated, and its inside; one
without end."""


def matcher(glob: bytes) -> re.Pattern[bytes]:
    """Use its `fullmatch`. StudyError for classes such as [:alpha:], which depend on the locale."""
    pattern = fnmatch.translate(_SPELT_OTHERWISE.sub(_as_fnmatch, glob).decode("latin-1"))
    return re.compile(pattern.encode("latin-1"))


def _as_fnmatch(match: re.Match[bytes]) -> bytes:
    escaped, negated, inside = match.groups()
    if escaped:
        return b"[" + escaped + b"]" if escaped in b"*?[" else bytes(escaped)
    if inside is None:
        return b"[[]"
    if re.search(rb"\[[:.=]", inside) or b"\\" in inside:
        named = (negated + inside).decode("utf-8", "backslashreplace")
        raise StudyError(
            f"The name pattern has [{named}], which depends on the locale",
            remedy="Name the bytes or ranges of them, for instance [a-z0-9].",
        )
    return b"[" + (b"!" if negated else b"") + inside + b"]"


def longest_literal(glob: bytes) -> bytes:
    """Bytes that every matching name contains, for the database to look for first; b"" where there are none."""
    return b"" if b"[" in glob or b"\\" in glob else max(_SPECIAL.split(glob), key=len)
