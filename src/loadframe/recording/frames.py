"""The file format of a recording (docs/recording.md shows it byte by byte), written and read.

A recording is a header followed by blocks. Each block is one zstd frame with a content checksum behind a small header
with its own checksum, and stands for itself: it names every source it uses, so that a lost block costs only its own
ticks and a reader can begin anywhere. Nothing here knows what the recorded bytes mean.

This module is imported by the recorder process and stays light: the standard library and zstandard.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import zstandard

from loadframe.errors import RecordingError

MAGIC = b"LFREC\r\n\x1a"
VERSION = 1
BLOCK_MAGIC = b"LFB\xf1"
LARGEST_BLOCK_BYTES = 64 * 1024 * 1024
"""No block holds more than this before compression; a larger number in a header is corruption, not data."""

FILE_HEADER = struct.Struct("<8sHII")
"""magic, version, length of the facts (JSON) that follow, their crc32."""
BLOCK_HEADER = struct.Struct("<4sIIddI")
"""magic, compressed length, raw length, earliest and latest monotonic time (s), crc32 of the 28 bytes before it."""
TASK = struct.Struct("<IHHH")
"""One thread in a `tasks` entry: thread id, then the lengths of its stat, schedstat and wchan, which follow."""

_RECORD = struct.Struct("<BI")
_TIMES = struct.Struct("<dd")
_ENTRY = struct.Struct("<II")
_SOURCE_ID = struct.Struct("<I")
_SOURCE, _SAMPLE, _EVENT = 1, 2, 3
_LEVEL = 1
_FLUSH_BYTES = 4 * 1024 * 1024
_DIFFERENT_FILE = "Give the recording that Loadframe wrote (raw/*.lfrec in a run folder)."


@dataclass(frozen=True, slots=True)
class Facts:
    """What must be known of the recording machine to read its numbers elsewhere.

    boottime_offset_s: CLOCK_BOOTTIME - CLOCK_MONOTONIC, for start times of processes, which count suspended time.
    """

    interval_s: float
    clock_ticks_per_s: int
    cpus: int
    page_bytes: int
    boottime_offset_s: float
    started_s: float
    started_wall_s: float

    @classmethod
    def of_this_machine(cls, interval_s: float) -> Facts:
        now_s = time.monotonic()
        return cls(
            interval_s=interval_s,
            clock_ticks_per_s=os.sysconf("SC_CLK_TCK"),
            cpus=os.cpu_count() or 1,
            page_bytes=os.sysconf("SC_PAGE_SIZE"),
            boottime_offset_s=time.clock_gettime(time.CLOCK_BOOTTIME) - now_s,
            started_s=now_s,
            started_wall_s=time.time(),
        )


@dataclass(frozen=True, slots=True)
class Tick:
    """What was recorded at one moment: the bytes of each source by its name.

    sample: True for a tick of the schedule, False for a note or mark that came in between, at its own time.
    """

    monotonic_s: float
    wall_s: float
    entries: Mapping[str, bytes]
    facts: Facts
    sample: bool = True


class Salvaged(NamedTuple):
    """All ticks that could be read, in the order of the file, and what could not, in words."""

    ticks: list[Tick]
    warnings: list[str]


class Block(NamedTuple):
    """Where a block's zstd frame lies in the file, and the earliest and latest time in it."""

    offset: int
    length: int
    raw_length: int
    first_s: float
    last_s: float


class Scan(NamedTuple):
    """The blocks found; `end` is the offset after the last complete one."""

    blocks: list[Block]
    end: int
    warnings: list[str]


# --- writing --------------------------------------------------------------------------------------------------------


class FrameWriter:
    """Writes one recording. Never overwrites: RecordingError if `path` exists or cannot be written.

    Ticks are gathered until `write_block`; `sync` is write_block and fsync. Both raise RecordingError when the disk
    will not take them.
    """

    def __init__(self, path: Path, facts: Facts) -> None:
        self._path = path
        self._ids: dict[str, int] = {}
        self._names: list[str] = []
        self._named: set[int] = set()
        self._pending = bytearray()
        self._first_s, self._last_s = float("inf"), float("-inf")
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, write_content_size=True)
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RecordingError(
                f"The recording {path} cannot be created: {error.strerror}.",
                remedy="Choose a new file in a folder that can be written.",
            ) from error
        text = json.dumps(asdict(facts)).encode()
        self._write(FILE_HEADER.pack(MAGIC, VERSION, len(text), zlib.crc32(text)) + text)

    @property
    def pending_bytes(self) -> int:
        """How much is gathered and not yet written."""
        return len(self._pending)

    def source(self, name: str) -> int:
        """The id under which a source's bytes are given to `sample` and `event`."""
        number = self._ids.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number

    def sample(self, monotonic_s: float, wall_s: float, entries: Iterable[tuple[int, bytes]]) -> None:
        """One tick of the schedule."""
        self._add(_SAMPLE, monotonic_s, wall_s, entries)

    def event(self, monotonic_s: float, wall_s: float, entries: Iterable[tuple[int, bytes]]) -> None:
        """A note or mark, at its own time."""
        self._add(_EVENT, monotonic_s, wall_s, entries)

    def _add(self, kind: int, monotonic_s: float, wall_s: float, entries: Iterable[tuple[int, bytes]]) -> None:
        body = bytearray(_TIMES.pack(monotonic_s, wall_s))
        for source, data in entries:
            if source not in self._named:
                self._name(source)
            body += _ENTRY.pack(source, len(data))
            body += data
        if len(body) > LARGEST_BLOCK_BYTES // 2:
            raise RecordingError(f"One tick of {len(body)} bytes is too large for a recording.")
        self._pending += _RECORD.pack(kind, len(body))
        self._pending += body
        self._first_s, self._last_s = min(self._first_s, monotonic_s), max(self._last_s, monotonic_s)
        if len(self._pending) > _FLUSH_BYTES:
            self.write_block()

    def _name(self, source: int) -> None:
        name = self._names[source].encode()
        self._pending += _RECORD.pack(_SOURCE, _SOURCE_ID.size + len(name)) + _SOURCE_ID.pack(source) + name
        self._named.add(source)

    def write_block(self) -> None:
        """Hand what is gathered to the kernel: from here on a kill -9 of the recorder cannot lose it."""
        if not self._pending:
            return
        frame = self._compressor.compress(bytes(self._pending))
        head = BLOCK_HEADER.pack(BLOCK_MAGIC, len(frame), len(self._pending), self._first_s, self._last_s, 0)[:-4]
        self._write(head + zlib.crc32(head).to_bytes(4, "little") + frame)
        self._pending.clear()
        self._named.clear()
        self._first_s, self._last_s = float("inf"), float("-inf")

    def sync(self) -> None:
        """Everything given so far is on the disk when this returns."""
        self.write_block()
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise self._cannot_write(error) from error

    def close(self) -> None:
        """Write what is gathered and close the file. Idempotent."""
        if self._fd >= 0:
            try:
                self.write_block()
            finally:
                os.close(self._fd)
                self._fd = -1

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except OSError as error:
                raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> RecordingError:
        return RecordingError(
            f"The recording {self._path} cannot be written: {error.strerror}.",
            remedy="Make room on the disk or choose another folder; what was written before stays readable.",
        )


# --- reading --------------------------------------------------------------------------------------------------------


def read_frames(path: Path) -> Salvaged:
    """Every tick that can be read. A torn tail (the recorder was killed) and corrupt blocks become warnings.

    RecordingError where the file cannot be read, is empty, is no recording, or ends within its header.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(
            f"The recording {path} cannot be read: {error.strerror}.", remedy=_DIFFERENT_FILE
        ) from error
    facts, start = parse_header(data, path)
    scan = scan_blocks(data, start)
    ticks: list[Tick] = []
    warnings = list(scan.warnings)
    for block in scan.blocks:
        try:
            ticks += decode_block(data[block.offset : block.offset + block.length], block, facts)
        except RecordingError as error:
            warnings.append(error.fact)
    if scan.end < len(data):
        warnings.append(
            f"The last {len(data) - scan.end} bytes are no complete block (the recorder was killed); left out."
        )
    return Salvaged(ticks, warnings)


def parse_header(data: bytes, path: Path) -> tuple[Facts, int]:
    """The facts of a recording and the offset of its first block. RecordingError as for read_frames."""
    if not data:
        raise RecordingError(f"The recording {path} is empty.", remedy="Its recorder never started; record again.")
    if not data.startswith(MAGIC[: len(data)]):
        raise RecordingError(f"{path} is not a recording: it begins with {data[:8]!r}.", remedy=_DIFFERENT_FILE)
    if len(data) >= FILE_HEADER.size:
        _, version, length, checksum = FILE_HEADER.unpack_from(data)
        if version > VERSION:
            raise RecordingError(
                f"The recording {path} has format version {version}; this Loadframe reads up to {VERSION}.",
                remedy="Update Loadframe.",
            )
        text = data[FILE_HEADER.size : FILE_HEADER.size + length]
        if len(text) == length:
            return _parse_facts(text, checksum, path), FILE_HEADER.size + length
    raise RecordingError(f"The recording {path} ends within its header.", remedy="Nothing was recorded; record again.")


def _parse_facts(text: bytes, checksum: int, path: Path) -> Facts:
    if zlib.crc32(text) == checksum:
        try:
            return Facts(**json.loads(text))
        except (ValueError, TypeError) as error:
            reason = str(error)
    else:
        reason = "its checksum is wrong"
    raise RecordingError(f"The header of the recording {path} is corrupt: {reason}.", remedy=_DIFFERENT_FILE)


def scan_blocks(data: bytes, start: int, base: int = 0) -> Scan:
    """Find the complete blocks of data[start:]; offsets in the result count from `base` + the beginning of data.

    Where a header's checksum is wrong, the next valid header is searched and what lies between becomes a warning.
    """
    blocks: list[Block] = []
    warnings: list[str] = []
    position = start
    while position + BLOCK_HEADER.size <= len(data):
        block = _block_at(data, position)
        if block is None:
            found = _next_block(data, position + 1)
            if found < 0:
                break
            warnings.append(f"{found - position} bytes at offset {base + position} are no block; skipped.")
            position = found
            continue
        if block.offset + block.length > len(data):
            break
        blocks.append(block._replace(offset=base + block.offset))
        position = block.offset + block.length
    return Scan(blocks, base + position, warnings)


def _block_at(data: bytes, position: int) -> Block | None:
    magic, length, raw_length, first_s, last_s, checksum = BLOCK_HEADER.unpack_from(data, position)
    if magic != BLOCK_MAGIC or raw_length > LARGEST_BLOCK_BYTES:
        return None
    if zlib.crc32(data[position : position + BLOCK_HEADER.size - 4]) != checksum:
        return None
    return Block(position + BLOCK_HEADER.size, length, raw_length, first_s, last_s)


def _next_block(data: bytes, position: int) -> int:
    while (position := data.find(BLOCK_MAGIC, position)) >= 0:
        if position + BLOCK_HEADER.size > len(data):
            return -1
        if _block_at(data, position) is not None:
            return position
        position += 1
    return -1


def decode_block(frame: bytes, block: Block, facts: Facts) -> list[Tick]:
    """The ticks of one block, in the order they were written. RecordingError where the block is corrupt.

    Records of a kind that this version does not know are passed over, so that later versions may add some.
    """
    try:
        # The declared size is checked before anything is allocated: corruption must not ask for gigabytes.
        if zstandard.frame_content_size(frame) != block.raw_length:
            raise ValueError("its length is wrong")
        raw = zstandard.ZstdDecompressor().decompress(frame)
        return list(_records(raw, facts))
    except (zstandard.ZstdError, struct.error, ValueError, KeyError) as error:
        raise RecordingError(f"The block at offset {block.offset} is corrupt ({error}); skipped.") from error


def _records(raw: bytes, facts: Facts) -> Iterable[Tick]:
    names: dict[int, str] = {}
    position = 0
    while position < len(raw):
        kind, length = _RECORD.unpack_from(raw, position)
        position += _RECORD.size
        end = position + length
        if end > len(raw):
            raise ValueError("a record runs over its end")
        if kind == _SOURCE:
            (source,) = _SOURCE_ID.unpack_from(raw, position)
            names[source] = raw[position + _SOURCE_ID.size : end].decode()
        elif kind in (_SAMPLE, _EVENT):
            monotonic_s, wall_s = _TIMES.unpack_from(raw, position)
            entries = _entries(raw, position + _TIMES.size, end, names)
            yield Tick(monotonic_s, wall_s, entries, facts, sample=kind == _SAMPLE)
        position = end


def _entries(raw: bytes, position: int, end: int, names: Mapping[int, str]) -> dict[str, bytes]:
    entries = {}
    while position < end:
        source, length = _ENTRY.unpack_from(raw, position)
        position += _ENTRY.size
        if position + length > end:
            raise ValueError("an entry runs over its tick")
        entries[names[source]] = raw[position : position + length]
        position += length
    return entries
