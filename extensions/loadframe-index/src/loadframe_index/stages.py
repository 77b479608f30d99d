"""The work of each stage, as one worker does it: SCAN lists directories, GET_INFO_DB reads what the database has of a
batch, GET_INFO_FS looks each entry up, DB_APPLY writes what is new or changed."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from loadframe.errors import MachineError
from loadframe_index.beneath import ENCODING, ERRORS, OURS, Beneath
from loadframe_index.board import (
    BLOCKED,
    BUSY,
    DONE,
    ENTRIES,
    FOUND,
    GIVEN,
    HELD,
    IDLE,
    TAKEN,
    Board,
    Directory,
    Frontier,
    Meter,
    Queue,
)
from loadframe_index.entries import Entry, entry_of, id_of
from loadframe_index.store import AgainError, Batch, Known, Store, as_signed, rows_of

DEVICE_SHIFT = 64
ACCESSED, MODIFIED, SEEN = 1, 2, 4
"""Places in Known: atime_ns, mtime_ns and ctime_ns, which also are the last ones of an Entry; and seen_ns."""
TICK_NS, WHOLE_TICK_NS = 20_000_000, 2_000_000_000
"""How long two changes of a file may have the same time: until the kernel's next tick (at least 100 a second, before
6.13); with whole seconds only, up to two of them."""
HELD_S = 0.1
"""A batch that is slower, as from a slow disk, is handed on as far as it is, where the next stage is idle."""
LOCKED_FOR_S, LOOK_AGAIN_S = 30.0, 0.0005


class Piece(NamedTuple):
    """Names in one directory, found at found_s (CLOCK_MONOTONIC). The root is the name b"" in b""."""

    directory: bytes
    names: list[bytes]
    found_s: float


@dataclass(slots=True)
class Work:
    """ids: of all its names. known: by id. entries: to write, of found_ids. touched: unchanged ids."""

    pieces: list[Piece]
    ids: list[bytes] = field(default_factory=list)
    known: dict[bytes, Known] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    found_ids: list[bytes] = field(default_factory=list)
    touched: list[bytes] = field(default_factory=list)
    seen_ns: int = 0


@dataclass(slots=True)
class Lister:
    """SCAN. size: entries of a batch."""

    tree: Beneath
    frontier: Frontier
    board: Board
    meter: Meter
    out: Queue[Work]
    size: int
    _pieces: list[Piece] = field(default_factory=list)
    _held: int = 0

    def work(self) -> None:
        """List directories until the frontier is closed. A partial batch is handed on when there is nothing to list.
        MachineError where the root cannot be listed."""
        while not self.frontier.closed:
            directory = self.frontier.take()
            if directory is None:
                self._flush()
                continue
            self.meter.turn(BUSY)
            self.meter.add(TAKEN)
            try:
                self._list(directory)
            except OSError as error:
                if not directory.path and error.errno not in OURS:  # the end of its scan would forget everything
                    raise MachineError(
                        f"The root of the tree cannot be listed: {error.strerror}.",
                        remedy="Look whether it is there and mounted; the database has what it had.",
                    ) from error
                self.board.count_passed(error)
            self.meter.add(DONE)
            self.meter.turn(IDLE)
            self.frontier.done()

    def _list(self, directory: Directory) -> None:
        listing = self.tree.listing(directory.path)
        try:
            status = os.fstat(listing)
            here = status.st_dev << DEVICE_SHIFT | status.st_ino
            if here in directory.above:
                self.board.count("loops")
            elif status.st_dev != self.tree.status.st_dev:
                self.board.count("elsewhere")
            else:
                self._names(listing, directory.path, (*directory.above, here))
        finally:
            os.close(listing)

    def _names(self, listing: int, path: bytes, above: tuple[int, ...]) -> None:
        names: list[bytes] = [] if path else [b""]  # the root is in no other directory
        prefix, found_s = path + b"/" if path else b"", self.meter.turn(BUSY)
        with os.scandir(listing) as entries:
            below: list[Directory] = []
            for entry in entries:
                name = entry.name.encode(ENCODING, ERRORS)
                names.append(name)
                if entry.is_dir(follow_symlinks=False):
                    below.append(Directory(prefix + name, above))
                if len(names) + self._held >= self.size:
                    self._hold(path, names, found_s)
                    self._flush()
                    if self.frontier.closed:  # the rest of a huge directory would be listed for nothing
                        return
                    names, found_s = [], self.meter.turn(BUSY)
        if names:
            self._hold(path, names, found_s)
            if self.out.empty() and found_s - self._pieces[0].found_s >= HELD_S:
                self._flush()
        self.meter.add(FOUND, len(below))
        self.frontier.hand_over(below)

    def _hold(self, path: bytes, names: list[bytes], found_s: float) -> None:
        self._pieces.append(Piece(path, names, found_s))
        self._held += len(names)
        self.meter.add(ENTRIES, len(names))
        self.meter.set(HELD, self._held)

    def _flush(self) -> None:
        if not self._pieces:
            return
        hand_on(self.out, Work(self._pieces), self.meter)
        self._pieces, self._held = [], 0
        self.meter.set(HELD, 0)


def hand_on(out: Queue[Work], work: Work, meter: Meter) -> None:
    """Waiting counts as blocked."""
    before = meter.state
    meter.turn(BLOCKED)
    taken = out.put(work)
    meter.turn(before)
    if taken:
        meter.add(GIVEN)


def serve(source: Queue[Work], meter: Meter, act: Callable[[Work], int], out: Queue[Work] | None) -> None:
    """act: does the work of the stage and returns the number of entries."""
    while True:
        work = source.get()
        if work is None:
            return
        meter.turn(BUSY)
        meter.add(TAKEN)
        entries = act(work)
        meter.add(ENTRIES, entries)
        if out is not None:
            hand_on(out, work, meter)
        meter.turn(IDLE)
        meter.add(DONE)


def ask_database(store: Store, work: Work, meter: Meter) -> int:
    """GET_INFO_DB. Blocked while DB_APPLY has the database locked, as at each commit of SQLite. AgainError after
    LOCKED_FOR_S."""
    ids = work.ids
    for directory, names, _ in work.pieces:
        prefix = directory + b"/" if directory else b""
        ids += [id_of(prefix + name) for name in names]
    until_s = time.monotonic() + LOCKED_FOR_S
    while True:
        try:
            with meter.in_server():
                work.known = store.known(ids)
            return len(ids)
        except AgainError:
            if meter.turn(BLOCKED) > until_s:
                raise
            time.sleep(LOOK_AGAIN_S)
            meter.turn(BUSY)


@dataclass(slots=True)
class Asker:
    """GET_INFO_FS. rewrite: unchanged entries are written again. give: called with each part of a batch. held_s: the
    time after which a part ends with its current entry."""

    tree: Beneath
    board: Board
    clock_ns: Callable[[], int]
    rewrite: bool
    give: Callable[[Work], None]
    held_s: float = HELD_S

    def act(self, work: Work) -> int:
        """In parts where the file system is slow."""
        for part in self._parts(work):
            self.give(part)
        return len(work.ids)

    def _parts(self, work: Work) -> Iterator[Work]:
        self.tree.forget()
        part, until_s, first = self._part(work), time.monotonic() + self.held_s, 0
        for directory, names, found_s in work.pieces:
            begin, at = 0, None
            try:
                at = self.tree.directory(directory)
            except OSError as error:
                for _ in names:
                    self.board.count_passed(error)
            for number, name in enumerate(names, 1):
                if at is not None:
                    self._look(part, at, directory, name, work.ids[first])
                first += 1
                if time.monotonic() >= until_s:
                    part.pieces.append(Piece(directory, names[begin:number], found_s))
                    yield self._counted(part)
                    part, until_s, begin = self._part(work), time.monotonic() + self.held_s, number
            if begin < len(names):
                part.pieces.append(Piece(directory, names[begin:], found_s))
        if part.pieces:
            yield self._counted(part)

    def _part(self, work: Work) -> Work:
        return Work([], known=work.known, seen_ns=self.clock_ns())

    def _look(self, part: Work, at: int, directory: bytes, name: bytes, key: bytes) -> None:
        try:
            status = os.stat(name, dir_fd=at, follow_symlinks=False) if name else os.fstat(self.tree.root)
        except OSError as error:
            self.board.count_passed(error)
        else:
            self._take(part, key, entry_of(directory, name, status))

    def _counted(self, part: Work) -> Work:
        new = sum(key not in part.known for key in part.found_ids)
        self.board.count("unchanged", len(part.touched))
        self.board.count("new", new)
        self.board.count("changed", len(part.found_ids) - new)
        return part

    def _take(self, work: Work, key: bytes, entry: Entry) -> None:
        """Unchanged where the database has its inode and times, and its last look was late enough to exclude a later
        change with the same time. The atime of a directory is ignored: the scan itself reads it."""
        known = None if self.rewrite else work.known.get(key)
        first = MODIFIED if entry[5] == "d" else ACCESSED
        same = known is not None and known[first:SEEN] == entry[first - SEEN :] and known[0] == as_signed(entry[4])
        tick_ns = TICK_NS if entry[-1] % 1_000_000_000 else WHOLE_TICK_NS
        if known is not None and same and entry[-1] + tick_ns < known[SEEN]:
            work.touched.append(key)
        else:
            work.entries.append(entry)
            work.found_ids.append(key)


def apply(store: Store, work: Work, meter: Meter, acknowledge: Callable[[Work], None]) -> int:
    """DB_APPLY. acknowledge: called with each committed batch."""
    rows = rows_of(work.entries, work.found_ids, work.seen_ns)
    with meter.in_server():
        store.apply(Batch(rows=rows, touched=work.touched, seen_ns=work.seen_ns))
    acknowledge(work)
    return len(rows) + len(work.touched)
