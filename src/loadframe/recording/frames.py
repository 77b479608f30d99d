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
VERSION = 2
"""2 added hosts: the name in the facts, and the host record. Everything of version 1 is read as before."""
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
_SOURCE, _SAMPLE, _EVENT, _HOST = 1, 2, 3, 4
_LEVEL = 1
_BUFFER_BYTES = 512 * 1024
_FLUSH_BYTES = 384 * 1024
"""A block is written when so much is gathered: the recorder's memory stays small however much it follows."""
_CHUNK = 64 * 1024
_SMALL = 4096
_CERTAINLY_WHOLE = 3000
_DIFFERENT_FILE = "Give the recording that Loadframe wrote (raw/*.lfr in a run folder)."


@dataclass(frozen=True, slots=True)
class Facts:
    """What must be known of the recording machine to read its numbers elsewhere.

    boottime_offset_s: CLOCK_BOOTTIME - CLOCK_MONOTONIC, for start times of processes, which count suspended time.
    host: its name; times of different hosts are of different clocks.
    """

    interval_s: float
    clock_ticks_per_s: int
    cpus: int
    page_bytes: int
    boottime_offset_s: float
    started_s: float
    started_wall_s: float
    host: str = ""

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
            host=os.uname().nodename,
        )

    @classmethod
    def from_json(cls, text: bytes) -> Facts:
        """ValueError where it is not the JSON of facts with numbers where numbers belong."""
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("no object of facts")
        for name, value in fields.items():
            fits = isinstance(value, str) if name == "host" else _is_fact(value)
            if not fits:
                raise ValueError(f"{name} is {str(value)[:40]}")
        try:
            facts = cls(**fields)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if facts.interval_s <= 0 or facts.clock_ticks_per_s <= 0 or facts.cpus <= 0 or facts.page_bytes <= 0:
            raise ValueError("an interval or a count that is not positive")
        return facts


def _is_fact(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


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

    What is recorded is gathered in one buffer until `write_block`; files are read straight into it (`read`, `pull`), so
    that a tick copies nothing. `sync` is write_block and fsync. Both raise RecordingError when the disk will not take
    them.
    """

    def __init__(self, path: Path, facts: Facts) -> None:
        self._path = path
        self._facts = self._first_facts = facts
        self._ids: dict[str, int] = {}
        self._next_id = 0
        self._retired: list[str] = []
        self.buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self.buffer)
        self._size = _BUFFER_BYTES
        self.end = 0
        self._record = self._entry = 0
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
        return self.end

    def source(self, name: str) -> int:
        """The id under which a source's bytes are given. Every block names the sources that are in use."""
        if name not in self._ids:
            self._ids[name] = self._next_id
            self._next_id += 1
        elif name in self._retired:
            self._retired.remove(name)
        return self._ids[name]

    def retire(self, name: str) -> None:
        """This source says nothing more; blocks after the present one do not name it."""
        if name in self._ids:
            self._retired.append(name)

    def of_host(self, facts: Facts) -> None:
        """What follows was recorded on another host: its own clock, its own sources."""
        self.write_block()
        self._facts = facts
        self.end = 0
        if facts != self._first_facts:
            text = json.dumps(asdict(facts)).encode()
            _RECORD.pack_into(self.buffer, 0, _HOST, len(text))
            self.buffer[_RECORD.size : _RECORD.size + len(text)] = text
            self.end = _RECORD.size + len(text)

    # --- whole records

    def sample(self, monotonic_s: float, wall_s: float, entries: Iterable[tuple[int, bytes]]) -> None:
        """One tick of the schedule."""
        self.begin_sample(monotonic_s, wall_s)
        for source, data in entries:
            self.put(source, data)
        self.end_record()

    def event(self, monotonic_s: float, wall_s: float, entries: Iterable[tuple[int, bytes]]) -> None:
        """A note or mark, at its own time."""
        self._begin(_EVENT, monotonic_s, wall_s)
        for source, data in entries:
            self.put(source, data)
        self.end_record()

    # --- a record in parts

    def begin_sample(self, monotonic_s: float, wall_s: float) -> None:
        """One tick of the schedule begins; `end_record` ends it."""
        self._begin(_SAMPLE, monotonic_s, wall_s)

    def _begin(self, kind: int, monotonic_s: float, wall_s: float) -> None:
        self._make_room(_SMALL)
        self._record = self.end
        _RECORD.pack_into(self.buffer, self.end, kind, 0)
        _TIMES.pack_into(self.buffer, self.end + _RECORD.size, monotonic_s, wall_s)
        self.end += _RECORD.size + _TIMES.size
        self._first_s, self._last_s = min(self._first_s, monotonic_s), max(self._last_s, monotonic_s)

    def put(self, source: int, data: bytes) -> None:
        """An entry of bytes that are at hand."""
        self._make_room(len(data) + _SMALL)
        start = self.end + _ENTRY.size
        _ENTRY.pack_into(self.buffer, self.end, source, len(data))
        self.buffer[start : start + len(data)] = data
        self.end = start + len(data)

    def read(self, source: int, descriptor: int) -> None:
        """An entry of what an open file says now. OSError leaves no entry.

        A procfs file of many records gives about a page per read: a long answer is followed up.
        """
        if self.end + _CHUNK + _SMALL > self._size:
            self._make_room(_CHUNK + _SMALL)
        start = self.end + 8
        end = start + os.preadv(descriptor, (self._view[start : start + _CHUNK],), 0)
        if end - start > _CERTAINLY_WHOLE:
            end = self._follow_up(descriptor, start, end)
        _ENTRY.pack_into(self.buffer, self.end, source, end - start)
        self.end = end

    def _follow_up(self, descriptor: int, start: int, end: int) -> int:
        while True:
            if end + _CHUNK + _SMALL > self._size:
                self.end, before = end, self.end
                self._make_room(_CHUNK + _SMALL)
                self.end = before
            got = os.preadv(descriptor, (self._view[end : end + _CHUNK],), end - start)
            if not got:
                return end
            end += got

    def begin_entry(self, source: int) -> None:
        """An entry of several parts begins; `pull` and `TASK` add to it, `end_entry` ends it."""
        self._make_room(_CHUNK)
        self._entry = self.end
        _ENTRY.pack_into(self.buffer, self.end, source, 0)
        self.end += _ENTRY.size

    def reserve_row(self) -> int:
        """Room for a row of TASK and its texts; where its head belongs."""
        if self.end + 4 * _SMALL > self._size:
            self._make_room(4 * _SMALL)
        head = self.end
        self.end += 10
        return head

    def pull(self, descriptor: int) -> int:
        """Append what a short file says now to the row; its length. OSError appends nothing."""
        end = self.end
        length = os.preadv(descriptor, (self._view[end : end + _SMALL],), 0)
        self.end = end + length
        return length

    def keep_tail(self, length: int, most: int) -> int:
        """Of the last `length` bytes keep the last `most`; how many are kept."""
        if length <= most:
            return length
        start = self.end - length
        self.buffer[start : start + most] = self.buffer[self.end - most : self.end]
        self.end = start + most
        return most

    def end_entry(self) -> None:
        source, _ = _ENTRY.unpack_from(self.buffer, self._entry)
        _ENTRY.pack_into(self.buffer, self._entry, source, self.end - self._entry - _ENTRY.size)

    def end_record(self) -> None:
        """The record is complete. RecordingError for one that no reader would take."""
        length = self.end - self._record - _RECORD.size
        if length > LARGEST_BLOCK_BYTES // 2:
            raise RecordingError(f"One tick of {length} bytes is too large for a recording.")
        _RECORD.pack_into(self.buffer, self._record, self.buffer[self._record], length)
        if self.end > _FLUSH_BYTES:
            self.write_block()

    def _make_room(self, wanted: int) -> None:
        if self.end + wanted > self._size:
            self._view.release()
            self.buffer.extend(bytes(max(wanted, self._size)))
            self._size = len(self.buffer)
            self._view = memoryview(self.buffer)

    # --- blocks

    def write_block(self) -> None:
        """Hand what is gathered to the kernel: from here on a kill -9 of the recorder cannot lose it."""
        if self._first_s > self._last_s:
            return
        self._write_names()
        frame = self._compressor.compress(self._view[: self.end])
        head = BLOCK_HEADER.pack(BLOCK_MAGIC, len(frame), self.end, self._first_s, self._last_s, 0)[:-4]
        self._write(head + zlib.crc32(head).to_bytes(4, "little") + frame)
        self.end = 0
        self._first_s, self._last_s = float("inf"), float("-inf")
        if self._facts != self._first_facts:
            self.of_host(self._facts)

    def _write_names(self) -> None:
        names = b"".join(
            _RECORD.pack(_SOURCE, _SOURCE_ID.size + len(encoded)) + _SOURCE_ID.pack(number) + encoded
            for encoded, number in ((name.encode(), number) for name, number in self._ids.items())
        )
        self._make_room(len(names))
        self.buffer[self.end : self.end + len(names)] = names
        self.end += len(names)
        for name in self._retired:
            del self._ids[name]
        self._retired.clear()

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
            return Facts.from_json(text)
        except (ValueError, RecursionError) as error:
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
    places = list(_places(raw))
    names = {
        _SOURCE_ID.unpack_from(raw, begin)[0]: raw[begin + _SOURCE_ID.size : end].decode()
        for kind, begin, end in places
        if kind == _SOURCE
    }
    for kind, begin, end in places:
        if kind == _HOST:
            facts = Facts.from_json(raw[begin:end])
        elif kind in (_SAMPLE, _EVENT):
            monotonic_s, wall_s = _TIMES.unpack_from(raw, begin)
            entries = _entries(raw, begin + _TIMES.size, end, names)
            yield Tick(monotonic_s, wall_s, entries, facts, sample=kind == _SAMPLE)


def _places(raw: bytes) -> Iterable[tuple[int, int, int]]:
    """Kind, begin and end of each record's body."""
    position = 0
    while position < len(raw):
        kind, length = _RECORD.unpack_from(raw, position)
        position += _RECORD.size
        if position + length > len(raw):
            raise ValueError("a record runs over its end")
        yield kind, position, position + length
        position += length


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
