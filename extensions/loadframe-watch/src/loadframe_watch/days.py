"""The one reader of the day files of a watch folder (docs/watching.md, loadframe.watch/1), and a table of what was
observed. A killed watcher leaves a last line without its end, which is left out. A folder may be a stranger's: the cost
of reading it is bounded by its bytes on the disk. Light: zstandard is imported only for a compacted day."""

import io
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from loadframe.errors import RecordingError
from loadframe.formats.json_text import JsonError, parse_json
from loadframe.formats.plain_numbers import is_number
from loadframe.system.files import Folder, Whose

SCHEMA = "loadframe.watch/1"
TODAY, COMPACT = ".jsonl", ".jsonl.zst"
DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(\.jsonl|\.jsonl\.zst)")
LONGEST_LINE = 1 << 18
"""Bytes. The longest of ours, a sample of a service with 2,000 counters, has some 100 KiB."""
FREE, PER_BYTE = 4 << 20, 60
"""The cost allowed per folder, and per byte on the disk, in some 20 ns of CPU time: a compacted day takes 35 a byte."""
PER_LINE, PER_VALUE = 300, 16
"""The cost of a line, and of a value in it, in addition to their bytes."""
LARGEST_WINDOW = 1 << 23
"""Bytes that a decompressor keeps; a frame of ours has 4 MiB of them."""
MOST_DAYS, MOST_LIMITS = 4000, 400
"""Loadframe itself knows 174 limits."""
PIECE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class WatchLine:
    """n: rises by one from line to line of a folder, over restarts too. kind: docs/watching.md; at_s: wall clock,
    seconds since 1970; up_s: CLOCK_BOOTTIME; data: the other fields."""

    n: int
    kind: str
    at_s: float
    up_s: float
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WatchDay:
    """Files of one day in UTC, the compacted file first; after a clock that was set back there may be both."""

    day: str
    files: tuple[Path, ...]
    bytes_on_disk: int


@dataclass(slots=True)
class Observed:
    """A row for each interval with data: all columns have one entry per row, None if missing. response_s: of units of
    work that did not fail. use: by id of a limit, share of its ceiling."""

    time_s: list[float] = field(default_factory=list)
    load: list[float | None] = field(default_factory=list)
    throughput: list[float | None] = field(default_factory=list)
    response_s: list[float | None] = field(default_factory=list)
    use: dict[str, list[float | None]] = field(default_factory=dict)

    def add(self, row: "Row | None") -> None:
        if row is None or not row.means:
            return
        for name in (name[4:] for name in row.means if name.startswith("use.")):
            if name not in self.use and len(self.use) < MOST_LIMITS:
                self.use[name] = [None] * len(self.time_s)
        self.time_s.append(row.t_s)
        for name, column in (("load", self.load), ("throughput", self.throughput), ("response_s", self.response_s)):
            column.append(row.means.get(name))
        for name, shares in self.use.items():
            shares.append(row.means.get(f"use.{name}"))


@dataclass(frozen=True, slots=True)
class Row:
    """Means of one interval, as far as known, and its middle."""

    t_s: float
    means: Mapping[str, float]


class Gathering:
    """Means over intervals of row_s, of at most MOST_LIMITS columns."""

    def __init__(self, row_s: float) -> None:
        self.row_s = row_s
        self._slot: float | None = None
        self._sums: dict[str, tuple[float, int]] = {}

    def take(self, t_s: float, known: Mapping[str, float | None]) -> Row | None:
        """Returns the row that this sample ends, without means where nothing was known in its interval."""
        slot, ended = t_s // self.row_s, None
        if slot != self._slot:
            ended = self.row()
            self._slot, self._sums = slot, {}
        for name, value in known.items():
            if value is not None and (name in self._sums or len(self._sums) < MOST_LIMITS):
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = (total + value, count + 1)
        return ended

    def row(self) -> Row | None:
        """None before the first sample."""
        means = {name: total / count for name, (total, count) in self._sums.items()}
        return None if self._slot is None else Row((self._slot + 0.5) * self.row_s, means)

    def clear(self) -> None:
        self._slot, self._sums = None, {}


class Budget:
    """The cost left for reading one folder; it grows with what is read from the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._left = folder, float(FREE)

    def read_from_disk(self, size: int) -> None:
        self._left += PER_BYTE * size

    def take(self, text: bytes) -> None:
        """RecordingError if it is more than such a folder may have."""
        self._left -= len(text) + PER_LINE + PER_VALUE * text.count(b",")
        if self._left < 0:
            raise RecordingError(
                f"The days in {self._folder} hold far more than their size on the disk: no more of them is read.",
                remedy="Remove the compacted days (*.zst) that are larger once they are decompressed than a watch's.",
            )


def opened(folder: Path) -> Folder:
    return Folder(folder, Whose.NAMED, RecordingError, what="watch folder")


def days(folder: Path) -> tuple[WatchDay, ...]:
    """In time order. RecordingError if it cannot be read, or holds no day."""
    return _days(opened(folder))


def _days(files: Folder) -> tuple[WatchDay, ...]:
    of_days = by_day(files.names(2 * MOST_DAYS))
    if not of_days:
        raise RecordingError(
            f"{files.path} has no day of a watch (YYYY-MM-DD{TODAY}).", remedy="Name the folder of `loadframe watch`."
        )
    return tuple(
        WatchDay(day, tuple(files.path / name for name in names), sum(files.state_of(name)[0] for name in names))
        for day, names in list(of_days.items())[-MOST_DAYS:]
    )


def by_day(names: Iterable[str]) -> dict[str, list[str]]:
    """Day files by day, in time order, the compacted file of a day first."""
    of_days: dict[str, list[str]] = {}
    for name in sorted(filter(DAY.fullmatch, names), key=lambda name: (name[:10], name.endswith(TODAY))):
        of_days.setdefault(name[:10], []).append(name)
    return of_days


def lines(folder: Path, *, kinds: Collection[str] = (), since_s: float | None = None) -> Iterator[WatchLine]:
    """Of all days, in the order in which they were written on each day. kinds: empty: all. since_s: wall clock; earlier
    days and lines are skipped. RecordingError for any other folder, a file that cannot be read, one of another schema,
    and for more than a Budget has."""
    files, budget = opened(folder), Budget(folder)
    for day in _days(files):
        if since_s is not None and _end_of(day.day) < since_s:
            continue
        highest = 0
        for file in day.files:
            for text in DayText(files, file.name, budget):
                if (line := parse_line(text)) is None:
                    continue
                if line.kind not in ("sample", "unit"):  # what others say may be kept as text: it counts three times
                    budget.take(text)
                    budget.take(text)
                if line.n <= highest:  # a day that was compacted just when the machine failed has its lines twice
                    continue
                highest = line.n
                if kinds and line.kind not in kinds:
                    continue
                if since_s is None or line.at_s >= since_s:
                    yield line


class DayText:
    """The lines of one file, with their ends; of one longer than LONGEST_LINE, pieces. at: how many of its decompressed
    bytes were passed; those before `start` are skipped. RecordingError."""

    def __init__(self, files: Folder, name: str, budget: Budget, start: int = 0) -> None:
        self._files, self._name, self._budget, self._start = files, name, budget, start
        self.at = 0
        self._damage: type[Exception] = OSError
        """What is raised at a damaged frame."""

    def __iter__(self) -> Iterator[bytes]:
        try:
            with self._stream() as stream:
                while self.at < self._start and (text := stream.read(min(PIECE_BYTES, self._start - self.at))):
                    self.at += len(text)
                while text := stream.readline(LONGEST_LINE):
                    self._budget.take(text)
                    self.at += len(text)
                    yield text
        except (OSError, self._damage) as error:
            why = (error.strerror or error) if isinstance(error, OSError) else f"a damaged zstd frame: {error}"
            path = self._files.path / self._name
            raise RecordingError(f"{path} cannot be read: {why}.", remedy="Check it.") from error

    def _stream(self) -> io.BufferedReader:
        descriptor = self._files.descriptor(self._name)
        size, stream = os.fstat(descriptor).st_size, os.fdopen(descriptor, "rb")
        if not self._name.endswith(COMPACT):
            self.at = stream.seek(min(self._start, size))
            self._budget.read_from_disk(size - self.at)
            return stream
        import zstandard

        self._budget.read_from_disk(size)
        self._damage = zstandard.ZstdError
        unpacking = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        reader: Any = unpacking.stream_reader(stream, read_across_frames=True, closefd=True)
        return io.BufferedReader(reader)


def parse_line(text: bytes) -> WatchLine | None:
    """None for a line that is torn, or not of a watch. RecordingError for a later version."""
    if not text.endswith(b"\n"):
        return None
    try:
        data = parse_json(text)
    except JsonError:
        return None
    if not isinstance(data, dict):
        return None
    n, kind, at_s, up_s = (data.pop(name, None) for name in ("n", "kind", "at_s", "up_s"))
    if not (isinstance(n, int) and isinstance(kind, str) and is_number(at_s) and is_number(up_s)):
        return None
    if kind == "head" and data.get("schema") != SCHEMA:
        raise RecordingError(
            f"The watch is of schema {str(data.get('schema'))[:40]!r}; this Loadframe reads {SCHEMA}.",
            remedy="Use the Loadframe that wrote it, or a later one.",
        )
    return WatchLine(n, kind, float(at_s), float(up_s), data)


def observed(folder: Path, *, every_s: float = 60.0, since_s: float | None = None) -> Observed:
    """Averaged over intervals of every_s. RecordingError."""
    table, gathering = Observed(), Gathering(every_s)
    for line in lines(folder, kinds=("sample", "unit"), since_s=since_s):
        table.add(gathering.take(line.at_s, numbers_of(line.data)))
    table.add(gathering.row())
    return table


def numbers_of(data: Mapping[str, Any]) -> dict[str, float]:
    """Load, throughput, response_s and use.LIMIT of a sample or a unit of work, as far as they are numbers."""
    response_s = None if data.get("error") else data.get("response_s")  # the time to a refusal is none
    own = {"load": data.get("load"), "throughput": data.get("throughput"), "response_s": response_s}
    numbers = {**own, **{f"use.{name}": share for name, share in table_in(data.get("use")).items()}}
    return {name: float(value) for name, value in numbers.items() if is_number(value)}


def table_in(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def tables_in(value: object) -> list[Mapping[Any, Any]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _end_of(day: str) -> float:
    """Unix time; infinite for a date that does not exist, so that its file is read."""
    try:
        return datetime.fromisoformat(f"{day}T00:00:00Z").timestamp() + 86400.0
    except ValueError:
        return math.inf
