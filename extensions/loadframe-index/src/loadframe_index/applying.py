"""The change log, applied: the paths of records are looked up in the tree (GET_INFO_FS) and written to the database
(DB_APPLY), a batch in one transaction with the number of its last record.

A record says that something happened at a path, not what is there now: the tree is asked. So a record that comes twice,
late, or in another order changes nothing. With a path its directory is looked up; with a file that has several names
the others; what a renamed directory contained is removed, and looked up where it is now."""

import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from loadframe_index.beneath import Beneath, Passed, below, looked_up
from loadframe_index.entries import Change, Entry, id_of, split
from loadframe_index.log_readers import Reader
from loadframe_index.store import Batch, Row, Store, as_signed, parts, rows_of

ROWS_AT_ONCE = 10_000
"""Rows of a directory that was renamed: more are written in several transactions, the last one with the number."""
IDS_AT_ONCE = 1_000


@dataclass
class Followed:
    """questions: entries that were looked up, once for all records of a path in a batch; moved: entries found below new
    or renamed directories. fs_s, db_s: spent in each stage."""

    records: int = 0
    questions: int = 0
    moved: int = 0
    batches: int = 0
    lost: list[str] = field(default_factory=list)
    fs_s: float = 0.0
    db_s: float = 0.0
    passed: Passed = field(default_factory=Passed)


class Following:
    """Keeps a database equal to a tree. Not for two threads at once."""

    def __init__(
        self,
        store: Store,
        root: Path,
        reader: Reader,
        *,
        batch: int = 1_000,
        rows: int = ROWS_AT_ONCE,
        applied: Callable[[Sequence[Change]], object] = lambda _: None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """batch: records at most in a transaction. rows: of directories that appear, at most in one. applied: called
        with the records of each batch once it is committed. MachineError, StoreError."""
        self.done = Followed()
        self._store, self._reader, self._batch, self._rows = store, reader, batch, rows
        self._clock_ns, self._applied = clock_ns, applied
        self._seen_ns = store.last_seen_ns()
        self._waiting: list[Change] = []
        self._newest_s = 0.0
        self._drained = True
        self._refused: set[bytes] = set()
        store.index_inodes()
        self._tree = Beneath(root)

    @property
    def drained(self) -> bool:
        return self._drained and not self._waiting

    @property
    def pending(self) -> int:
        return len(self._waiting) + self._reader.waiting

    def lag_s(self) -> float:
        """The age of the newest applied record; 0 where no record waits."""
        return 0.0 if self.drained or not self._newest_s else max(0.0, self._clock_ns() / 1e9 - self._newest_s)

    def start(self) -> None:
        """Scan the tree, unless the log goes on from an acknowledged record. Open the reader before."""
        if not (self._reader.resumes and self._store.acknowledged(self._reader.name)):
            self._scan()

    def step(self, timeout_s: float) -> int:
        """Waits for a batch's first record for at most this time. Returns the number of its records."""
        if not self._waiting:
            read = self._reader.read(timeout_s)
            self._drained = read.drained
            self._waiting.extend(read.changes)
            if read.lost:
                self.done.lost.append(read.lost)
                self._scan()
        some, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
        if some:
            self._apply(some)
        return len(some)

    def _look(self) -> int:
        """Before the tree is asked. It grows with each batch, even if the clock was set back."""
        self._seen_ns = max(self._clock_ns(), self._seen_ns + 1)
        return self._seen_ns

    def _apply(self, changes: Sequence[Change]) -> None:
        began, spent_s = time.monotonic(), self.done.db_s
        seen_ns, wanted = self._look(), _Wanted(changes)
        self._tree.forget()
        self._refused.clear()
        by_path = {path: self._looked_up(path) for path in sorted(wanted.paths | self._unknown(wanted.above))}
        entries = [entry for entry in by_path.values() if entry is not None]
        again = [entry for entry in entries if entry.path in wanted.walked and entry.type == "d"]
        replaced = wanted.replaced | {entry.path for entry in again}
        gone = (path for path, entry in by_path.items() if entry is None or path in replaced)
        removed = [path for path in gone if path not in self._refused]
        inodes = self._linked(removed) | _linked_now(entries) | self._elsewhere(wanted, by_path)
        others = self._other_names(inodes, by_path)
        entries += [entry for entry in others.values() if entry is not None]
        removed += [path for path, entry in others.items() if entry is None and path not in self._refused]
        self._write(
            entries, again, Batch(removed=removed, seen_ns=seen_ns, log=self._reader.name, number=changes[-1].number)
        )
        self._applied(changes)
        self._newest_s = changes[-1].time_s
        self.done.records += len(changes)
        self.done.batches += 1
        self.done.questions += len(by_path) + len(others)
        self.done.fs_s += time.monotonic() - began - (self.done.db_s - spent_s)

    def _unknown(self, directories: set[bytes]) -> set[bytes]:
        """Directories that the database lacks: a row without its directory's would outlive a removal further up."""
        ids = {id_of(path): path for path in directories}
        with self._in_database():
            known = self._store.known(list(ids))
        return {path for key, path in ids.items() if key not in known}

    def _looked_up(self, path: bytes) -> Entry | None:
        """None where nothing is, or where it may not be looked up (`_refused`)."""
        try:
            return looked_up(self._tree, path, self.done.passed)
        except OSError as error:
            self.done.passed.count(error)
            self._refused.add(path)
            return None

    def _write(self, entries: list[Entry], directories: Sequence[Entry], last: Batch) -> None:
        """The first transaction removes, the last one has the number."""
        removed = last.removed
        moved = parts(self._below(directories), self._rows)
        while some := next(moved, None):
            self.done.moved += len(some)
            others = self._other_names(_linked_now(some), {entry.path: entry for entry in chain(entries, some)})
            some += [entry for entry in others.values() if entry is not None]
            self._commit(Batch(_rows(entries + some, last.seen_ns), removed=removed, seen_ns=last.seen_ns))
            entries, removed = [], ()
        self._commit(replace(last, rows=_rows(entries, last.seen_ns), removed=removed))

    def _below(self, directories: Sequence[Entry]) -> Iterator[Entry]:
        """Once: a directory within another comes with it."""
        tops: list[bytes] = []
        for entry in sorted(directories, key=lambda entry: entry.path.split(b"/") if entry.path else []):
            if tops and (not tops[-1] or entry.path == tops[-1] or entry.path.startswith(tops[-1] + b"/")):
                continue
            tops.append(entry.path)
            yield from below(self._tree, entry, self.done.passed)

    def _commit(self, batch: Batch) -> None:
        with self._in_database():
            self._store.apply(batch)

    @contextmanager
    def _in_database(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.done.db_s += time.monotonic() - began

    def _linked(self, removed: Sequence[bytes]) -> set[int]:
        """As the database has them, at and below these paths."""
        inodes: set[int] = set()
        column, level = "id", [id_of(path) for path in removed]
        while level:
            with self._in_database():
                rows = list(self._store.having("id, inode, type, links", column, level))
            inodes.update(inode for _, inode, type_, links in rows if type_ != "d" and links > 1)
            column, level = "parent", [key for key, _, type_, _ in rows if type_ == "d"]
        return inodes

    def _elsewhere(self, wanted: "_Wanted", entries: Mapping[bytes, Entry | None]) -> set[int]:
        """Of the records' files: one name is gone, or stood for several files."""
        unsure = [files for path, files in wanted.files.items() if len(files) > 1 or entries.get(path) is None]
        inodes = {self._reader.inode_of(file) for files in unsure for file in files}
        return {inode for inode in inodes if inode is not None}

    def _other_names(self, inodes: set[int], known: Container[bytes]) -> dict[bytes, Entry | None]:
        """Except for the known ones."""
        by_path: dict[bytes, Entry | None] = {}
        for some in parts(sorted(map(as_signed, inodes)), IDS_AT_ONCE):
            listed = ", ".join(map(str, some))
            with self._in_database():
                rows = self._store.ask(f"SELECT path FROM entries WHERE inode IN ({listed}) AND type <> 'd'")
            by_path |= {path: self._looked_up(path) for (path,) in rows if path not in known}
        return by_path

    def _scan(self) -> None:
        seen_ns, failed = self._look(), self.done.passed.failed
        self._tree.forget()
        top = self._looked_up(b"")
        if top is not None:
            self._write([top], [top], Batch(seen_ns=seen_ns))
            if self.done.passed.failed == failed:
                self._store.forget_before(seen_ns)
        self._seen_ns = max(self._seen_ns, self._store.last_seen_ns())

    def close(self) -> None:
        """The reader and the store are the caller's. Idempotent."""
        self._tree.close()


class _Wanted:
    """paths: to look up. above: directories further up. replaced: rows there and below are outdated. walked: what is
    below a directory is looked up, too. files: by path, the files of its records."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self.paths: set[bytes] = set()
        self.replaced: set[bytes] = set()
        self.walked: set[bytes] = set()
        self.above: set[bytes] = set()
        self.files: dict[bytes, set[bytes]] = {}
        all_readable = os.geteuid() == 0
        for change in changes:
            places = {change.path, change.to} if change.kind == "rename" else {change.path}
            parents = {split(path)[0] for path in places}
            self.paths |= places | parents
            self.above |= parents
            if change.file:
                self.files.setdefault(change.to or change.path, set()).add(change.file)
            if change.kind in ("unlink", "rename"):
                self.replaced |= places
            if change.kind in ("unlink", "rename", "create") or (change.kind == "setattr" and not all_readable):
                self.walked |= places
        self.above = {above for path in self.above for above in _above(path)} - self.paths


def _above(path: bytes) -> Iterator[bytes]:
    while path:
        path, _ = split(path)
        yield path


def _linked_now(entries: Iterable[Entry]) -> set[int]:
    return {entry.inode for entry in entries if entry.links > 1 and entry.type != "d"}


def _rows(entries: Sequence[Entry], seen_ns: int) -> list[Row]:
    return rows_of(entries, [id_of(entry.path) for entry in entries], seen_ns)
