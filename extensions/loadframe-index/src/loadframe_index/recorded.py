"""Change logs that are not the kernel's: a file of records, one a line as JSON from any source, and generated records.

    {"number": 7, "time_s": 1764032094.25, "kind": "rename", "path": "a/b", "to": "c", "inode": 1234}

Paths are relative to the root of the tree, as os.fsdecode gives them; numbers grow (docs/metadata-index.md)."""

import json
import os
import random
import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadframe.errors import MachineError
from loadframe.system.files import regular_file
from loadframe_index.entries import KINDS, Change
from loadframe_index.log_readers import Reader, Records

LONGEST_LINE = 1 << 20
"""Bytes: two paths of any length that a file system gives back, and some."""
AT_ONCE = 1 << 20
_AGAIN_S = 0.01
"""How long a file that has not grown is left alone."""


class UnreadableRecordError(ValueError):
    """A line that is no record."""


def record_of(line: bytes) -> Change:
    """UnreadableRecordError says what is wrong."""
    if len(line) > LONGEST_LINE:
        raise UnreadableRecordError(f"a line of more than {LONGEST_LINE:,} bytes")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableRecordError("the line is no JSON") from error
    if not isinstance(record, dict) or record.get("kind") not in KINDS:
        raise UnreadableRecordError(f"the line is no object whose kind is one of {', '.join(KINDS)}")
    number, time_s = _whole(record, "number", 1 << 63), record.get("time_s")
    if not isinstance(time_s, int | float) or isinstance(time_s, bool) or not 0 <= time_s < 1e12:
        raise UnreadableRecordError("its time_s is no time since 1970")
    renamed = record["kind"] == "rename"
    path, to = _path(record, "path"), _path(record, "to") if renamed else b""
    file = b"%d" % _whole(record, "inode", 1 << 64) if "inode" in record else b""
    return Change(record["kind"], path, to, number, float(time_s), file)


def _whole(record: dict[str, Any], key: str, end: int) -> int:
    number = record.get(key)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < end:
        raise UnreadableRecordError(f"its {key} is no whole number of at least 0")
    return number


def _path(record: dict[str, Any], key: str) -> bytes:
    text = record.get(key)
    if not isinstance(text, str):
        raise UnreadableRecordError(f"its {key} is no text")
    try:
        path = os.fsencode(text)
    except UnicodeEncodeError as error:
        raise UnreadableRecordError(f"its {key} is no name of a file") from error
    if b"\0" in path or any(name in (b"", b".", b"..") for name in path.split(b"/") if path):
        raise UnreadableRecordError(f"its {key} is not relative to the root of the tree, or not plain")
    return path


class Recorded(Reader):
    """The file is not changed: its writer may truncate it."""

    name = "recorded"
    resumes = True

    def __init__(self, log: Path, *, after: int = 0) -> None:
        """after: the last acknowledged record's number, 0: read all. MachineError where the log cannot be opened."""
        try:
            self._file = os.fdopen(regular_file(log), "rb", buffering=0)
        except OSError as error:
            raise MachineError(
                f"The change log {log} cannot be read: {error.strerror}", remedy="Name a file of change records."
            ) from error
        self._log, self._after = log, after or -1
        self._line, self._rest = 0, b""

    def read(self, timeout_s: float) -> Records:
        """An incomplete last line is waited for. MachineError for an invalid line."""
        until = time.monotonic() + timeout_s
        while True:
            data = self._file.read(AT_ONCE)
            if data or time.monotonic() >= until:
                break
            select.select([], [], [], min(_AGAIN_S, max(0.0, until - time.monotonic())))
        changes = list(self._records(data))
        return Records(changes, drained=len(data) < AT_ONCE)

    def _records(self, data: bytes) -> Iterator[Change]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
        for line in lines:
            self._line += 1
            try:
                change = record_of(line)
            except UnreadableRecordError as error:
                raise MachineError(
                    f"Line {self._line:,} of the change log {self._log} cannot be read: {error}",
                    remedy="Mend the line, or scan the tree again and begin a new log.",
                ) from error
            if change.number > self._after:
                self._after = change.number
                yield change

    def close(self) -> None:
        with suppress(OSError):
            self._file.close()


SHARES = {"create": 0.4, "close_write": 0.3, "setattr": 0.2, "unlink": 0.1}
"""Shares of the records. A rename would cause a walk through what it names."""
RECORDS_AT_ONCE = 10_000
"""The most records of one reading: one that has fallen behind catches up in several."""


class Injected(Reader):
    """Generated records, which name no files and are not kept."""

    name = "injected"

    def __init__(
        self,
        paths: Sequence[bytes],
        rate_per_s: float,
        *,
        seed: int = 0,
        first: int = 1,
        count: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """paths: of existing entries. count: the most records. MachineError without paths, or a rate."""
        if not paths or rate_per_s <= 0:
            raise MachineError(
                f"Records cannot be injected over {len(paths)} entries at {rate_per_s:g}/s",
                remedy="Give a tree with entries, and a change_rate above 0.",
            )
        self._paths, self._rate, self._first, self._count = paths, rate_per_s, first, count
        self._rng = random.Random(seed)
        self._clock, self._wall = clock, wall
        self._made = 0
        self._start: float | None = None
        self._start_wall = 0.0

    def read(self, timeout_s: float) -> Records:
        """The first reading is the start. A record has the time at which it was due: a late reader sees its lag."""
        until = self._clock() + timeout_s
        if self._start is None:
            self._start, self._start_wall = self._clock(), self._wall()
        while not (due := self.waiting) and (now := self._clock()) < until and self._made != self._count:
            next_s = self._start + (self._made + 1) / self._rate
            select.select([], [], [], max(0.0, min(until, next_s) - now))
        changes = []
        for _ in range(min(due, RECORDS_AT_ONCE)):
            self._made += 1
            kind = self._rng.choices(tuple(SHARES), tuple(SHARES.values()))[0]
            time_s = self._start_wall + self._made / self._rate
            changes.append(
                Change(kind, self._rng.choice(self._paths), number=self._first + self._made - 1, time_s=time_s)
            )
        return Records(changes, drained=due <= RECORDS_AT_ONCE)

    @property
    def waiting(self) -> int:
        if self._start is None:
            return 0
        so_far = int((self._clock() - self._start) * self._rate)
        return (so_far if self._count is None else min(so_far, self._count)) - self._made
