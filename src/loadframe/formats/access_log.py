"""Access logs of web servers, as nginx and Apache write them: the common and the combined format, and custom formats
that have a time and a request line in quotes. Times are those of `[10/Oct/2000:13:55:36 -0700]` (whole seconds;
Apache's may have a fraction), of nginx's `$msec` (seconds since 1970 with milliseconds) and of `$time_iso8601`."""

import errno
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from loadframe.connections.http_words import wrong_path
from loadframe.formats.named_files import regular

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
    """One request. at_s: its time (s since 1970). whole: the time is in whole seconds. path: with its query; of a
    request to a proxy without the host."""

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
        try:
            parts = urlsplit(target)
        except ValueError:
            return None
        if parts.scheme not in ("http", "https") or not parts.netloc:
            return None
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    escaped = "\\x" in target or '\\"' in target
    return None if escaped or wrong_path(target) is not None else target


def lines(path: Path) -> Iterator[str | None]:
    """The lines of a log, also a gzipped one; None for one longer than LONGEST_LINE. Raises OSError."""
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
