"""Replays the requests of an access log of nginx or Apache in an open loop at its own times: the common and the
combined format, and custom formats that have a time and a request line in quotes. Times are those of
`[10/Oct/2000:13:55:36 -0700]` (whole seconds; Apache's may have a fraction), of nginx's `$msec` (seconds since 1970
with milliseconds) and of `$time_iso8601`."""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from loadframe.connections.http_words import wrong_path
from loadframe.errors import StudyError
from loadframe.formats.named_files import regular
from loadframe.workloads.arrivals import Schedule
from loadframe.workloads.common import HIGHEST_RATE, registration
from loadframe.workloads.http_driver import MOST_CONNECTIONS, Ask, Order, requirements
from loadframe.workloads.options import switch, text, whole
from loadframe_drivers.recorded import Recorded, http_parts, left_out_sentences

FASTEST = 1000


@dataclass(frozen=True)
class AccessLogOptions:
    file: str = text("", "path of the log, as it is or packed by gzip")
    minutes: int = whole(10, 1, 1440, "how much of the log is replayed; where a step is longer, from the begin again")
    skip_minutes: int = whole(0, 0, 525_600, "how much of its begin is left out")
    connections: int = whole(64, 1, MOST_CONNECTIONS, "number of client connections that serve the requests")
    keep_alive: bool = switch(True, "connections stay open; false: a new one for each request")
    writes: bool = switch(False, "methods that change data are sent too, without a body, which no log has")
    seed: int = whole(1, 0, 2**32 - 1, "where in their second requests begin, if the log has whole seconds")


class AccessLog(Recorded[AccessLogOptions]):
    kind = "access-log"
    axes = frozenset({"speed"})
    axis_unit = "times the recorded speed"
    operations: tuple[str, ...] = ("read", "write")
    model = AccessLogOptions
    levels = (1, FASTEST)
    order: Order = "replay"

    def check_level(self, level: float) -> int:
        """The speed. StudyError also where requests would come faster than any driver sends them."""
        speed = super().check_level(level)
        if self.options.file and (rate := speed * len(self._stretch.numbers) / self._stretch.span_s) > HIGHEST_RATE:
            raise StudyError(
                f"At the level {speed} on the axis speed {rate:,.0f} requests a second would begin.",
                remedy=f"The most is {HIGHEST_RATE:,}: lower the level, which is a whole number.",
            )
        return speed

    def clients(self, level: int) -> int:
        return self.options.connections

    def recalled(self) -> Sequence[Ask]:
        return self._recalled

    def schedule(self, level: int, duration_s: float) -> Schedule:
        stretch = self._stretch
        once = stretch.span_s / level
        times = max(1, int(np.ceil(duration_s / once)))  # the recording is repeated once it is over
        offsets = (np.arange(times)[:, None] * once + stretch.offsets_s[None, :] / level).ravel()
        inside = offsets < duration_s
        return Schedule(offsets[inside], np.tile(stretch.numbers, times)[inside])

    def unchecked(self, target_kind: str) -> str:
        return (
            "Of the answers to the log's requests no more than the status was checked: below 400 where it was so in "
            "the log, below 500 otherwise."
        )

    def notes(self) -> tuple[str, ...]:
        stretch, options = self._stretch, self.options
        rate = len(stretch.numbers) / stretch.span_s
        notes = [
            f"access-log: {len(stretch.numbers):,} requests of {stretch.span_s:,.0f} s are replayed, {rate:,.3g}/s at "
            "speed 1, without headers and bodies, which the log does not have"
        ]
        if stretch.unread:
            notes.append(f"access-log: {stretch.unread:,} of {stretch.lines:,} lines have no request that can be read")
        notes += [f"access-log: {sentence}" for sentence in left_out_sentences(stretch.left_out)]
        if stretch.cut:
            notes.append(f"access-log: the stretch ends before {options.minutes} minutes, at {stretch.cut}")
        return tuple(notes)

    @cached_property
    def _stretch(self) -> Stretch:
        options = self.options
        return read_stretch(self.file, 60.0 * options.skip_minutes, 60.0 * options.minutes, options.seed, self.not_sent)

    @cached_property
    def _recalled(self) -> tuple[Ask, ...]:
        return tuple(
            Ask(method, path, operation=method not in ("GET", "OPTIONS"), highest=399 if status < 400 else 499)
            for method, path, status in self._stretch.distinct
        )


KIND = registration(AccessLog, requirements, tables=frozenset({"login"}), required=("file",))


MOST_REQUESTS = 300_000
"""Requests of a stretch: 16 bytes each, plus the distinct ones."""
MOST_DISTINCT_BYTES = 32 << 20
"""Bytes of the paths of a stretch, each counted once."""
SHORTEST_S = 1.0
"""The shortest stretch: a single request has no rate."""
LATE_S = 60.0
"""A server logs a request when it ends, so a line may come this much later than others that began with it."""
Key = tuple[str, str, int]
REQUEST_FIELDS = [("since_s", "<f8"), ("whole", "?"), ("number", "<i8")]


@dataclass
class Stretch:
    """distinct: the requests, each once, with their numbers. offsets_s: since the first request, ascending; numbers: of
    the requests then. span_s: with the mean gap after the last request. lines: read; unread: those without a request.
    left_out: reason -> requests not replayed. cut: why it is shorter than asked for, or ""."""

    lines: int = 0
    unread: int = 0
    cut: str = ""
    span_s: float = SHORTEST_S
    left_out: Counter[str] = field(default_factory=Counter)
    distinct: dict[Key, int] = field(default_factory=dict)
    offsets_s: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def requests(
        self, log: Iterable[str | None], skip_s: float, span_s: float, leave_out: Callable[[str], str]
    ) -> Iterator[tuple[float, bool, int]]:
        """The time since the begin of the stretch (s), whether that is in whole seconds, and the number of each
        request. Ends where no later line can belong to the stretch."""
        begin_s: float | None = None
        path_bytes = kept = 0
        for line in log:
            self.lines += 1
            request = None if line is None else parse_line(line)
            if request is None:
                self.unread += bool(line is None or line.strip())
                continue
            if begin_s is None:
                begin_s = request.at_s + skip_s
            since_s = request.at_s - begin_s
            if since_s >= span_s + LATE_S:
                return
            if not 0 <= since_s < span_s:
                continue
            if why := leave_out(request.method):
                self.left_out[why] += 1
                continue
            key = (request.method, request.path, request.status)
            path_bytes += 0 if key in self.distinct else len(request.path)
            if kept == MOST_REQUESTS:
                self.cut = f"{MOST_REQUESTS:,} requests"
            elif path_bytes > MOST_DISTINCT_BYTES:
                self.cut = f"{MOST_DISTINCT_BYTES >> 20} MiB of distinct paths"
            if self.cut:
                return
            kept += 1
            yield since_s, request.whole, self.distinct.setdefault(key, len(self.distinct))


def read_stretch(path: Path, skip_s: float, span_s: float, seed: int, leave_out: Callable[[str], str]) -> Stretch:
    """Requests from skip_s after the log's first line, for span_s. If it has only whole seconds, the place of each
    request within its second is drawn from the seed. leave_out: why a method is not replayed, "" if it is. StudyError
    if the log cannot be read or has no request there."""
    stretch = Stretch()
    try:
        requests = np.array(list(stretch.requests(lines(path), skip_s, span_s, leave_out)), dtype=REQUEST_FIELDS)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"The access log {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}.",
            remedy="Give a log of nginx or Apache, as it is or packed by gzip (workload.options.file).",
        ) from error
    if not len(requests):
        left = "; ".join(f"{count:,} {why}" for why, count in stretch.left_out.items())
        raise StudyError(
            f"The access log {str(path)!r} has no request to replay: {stretch.unread:,} of {stretch.lines:,} lines "
            f"have none that can be read{f'; left out: {left}' if left else ''}.",
            remedy="Give a log in the common or combined format, or one with $msec, and another skip_minutes.",
        )
    moments = requests["since_s"] + requests["whole"] * np.random.default_rng(seed).random(len(requests))
    order = np.argsort(moments, kind="stable")
    stretch.offsets_s = moments[order] - moments.min()
    stretch.numbers = requests["number"][order]
    stretch.span_s = max(SHORTEST_S, float(stretch.offsets_s[-1]) * (1 + 1 / len(requests)))
    return stretch


LONGEST_LINE = 64 << 10
"""Bytes; a longer line is skipped, and counted as unread."""
MOST_BYTES, FREE_BYTES, PER_BYTE, PER_LINE = 2 << 30, 4 << 20, 24, 64
"""Bytes of an unpacked log that are read, each line counting PER_LINE more. A packed log is damaged if it holds more
than FREE_BYTES plus PER_BYTE times its size."""
GZIP = b"\x1f\x8b"
REQUEST = re.compile(r'"([A-Z]{3,16}) (\S+) HTTP/\d(?:\.\d)?" (\d{3})(?: |$)')
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_COMMON = re.compile(r"\[(\d{2})/([A-Z][a-z]{2})/(\d{4}):(\d{2}:\d{2}:\d{2})(\.\d{1,9})?(?: ([+-]\d{4}))?\]", re.ASCII)
_MSEC = re.compile(r"(?<![\d.])(\d{9,10}\.\d{3,9})(?![\d.])", re.ASCII)
_ISO = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Logged:
    """at_s: its time (s since 1970). whole: that is in whole seconds. path: with its query, without a host."""

    at_s: float
    whole: bool
    method: str
    path: str
    status: int


def parse_line(line: str) -> Logged | None:
    """None if a line has no time, no request line, or a path with blanks or the log's escapes."""
    request = REQUEST.search(line)
    if request is None:
        return None
    around = f"{line[: request.start()]} {line[request.end() :]}"
    moment = _moment(around)
    path = _path(request[2])
    if moment is None or path is None or not 100 <= int(request[3]) <= 599:
        return None
    return Logged(*moment, request[1], path, int(request[3]))


def _moment(text: str) -> tuple[float, bool] | None:
    """The time (s since 1970), and whether it is in whole seconds."""
    if match := _MSEC.search(text):
        return float(match[1]), False
    if match := _COMMON.search(text):
        day, month, year, clock, fraction, zone = match.groups()
        if month not in _MONTHS:
            return None
        moment = f"{year}-{_MONTHS.index(month) + 1:02}-{day}T{clock}"
    elif match := _ISO.search(text):
        moment, fraction, zone = match.groups()
    else:
        return None
    moment = moment[:-2] + min(moment[-2:], "59")  # 60 is a leap second
    try:
        return datetime.fromisoformat(moment + (zone or "Z")).timestamp() + float(fraction or 0), fraction is None
    except ValueError:
        return None


def _path(target: str) -> str | None:
    if not target.startswith("/"):
        if (address := http_parts(target)) is None:
            return None
        _, target = address
    escaped = "\\x" in target or '\\"' in target
    return None if escaped or wrong_path(target) is not None else target


def lines(path: Path) -> Iterator[str | None]:
    """The lines of a log, gzipped or not; None for a line longer than LONGEST_LINE. OSError."""
    with os.fdopen(regular(path), "rb") as raw:
        packed = raw.peek(len(GZIP))[: len(GZIP)] == GZIP
        file: IO[bytes] = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if packed else raw
        try:
            size = os.fstat(raw.fileno()).st_size
            yield from _lines(file, FREE_BYTES + PER_BYTE * size if packed else MOST_BYTES)
        except (EOFError, zlib.error) as error:
            raise OSError(f"it is damaged: {error}") from error


def _lines(file: IO[bytes], most: int) -> Iterator[str | None]:
    taken, torn = 0, False
    while taken < MOST_BYTES and (line := file.readline(LONGEST_LINE)):
        taken += len(line) + PER_LINE
        if taken > most:
            raise OSError(errno.EFBIG, f"it holds more than {most >> 20:,} MiB, far more than its size")
        whole = line.endswith(b"\n") or len(line) < LONGEST_LINE
        if not torn:
            yield line.decode("utf-8", "replace") if whole else None
        torn = not whole
