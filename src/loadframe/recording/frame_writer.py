"""Writing a recording: everything is gathered in one buffer, in the layout of frames, and compressed from there. Light,
as part of the recorder process."""

import os
import zlib
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import zstandard

from loadframe.errors import RecordingError
from loadframe.formats.json_text import write_json
from loadframe.recording.frames import (
    BLOCK_HEADER,
    BLOCK_MAGIC,
    ENTRY,
    EVENT,
    FILE_HEADER,
    LARGEST_BLOCK_BYTES,
    MAGIC,
    RECORD,
    SAMPLE,
    SOURCE,
    SOURCE_ID,
    TASK,
    TIMES,
    VERSION,
    Facts,
)

_LEVEL = 1
_BUFFER_BYTES = 512 * 1024
_FLUSH_BYTES = 384 * 1024
"""A block is written at this size, so that the recorder's memory stays small."""
_CHUNK = 64 * 1024
_SMALL = 4096
_CERTAINLY_WHOLE = 3000
"""A procfs file of many records gives about a page per read: anything shorter is complete."""


class FrameWriter:
    """Writes one recording. Never overwrites: RecordingError if `path` exists or cannot be written. descriptor: the new
    file, open for appending; `path` is only its name then.

    What is recorded is gathered in one buffer until `write_block`; files are read straight into it (`read`, `pull`).
    `sync` is write_block and fsync. Both raise RecordingError if the disk refuses."""

    def __init__(self, path: Path, facts: Facts, descriptor: int | None = None) -> None:
        self._path = path
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
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._fd = os.open(path, flags, 0o644) if descriptor is None else descriptor
        except OSError as error:
            raise RecordingError(
                f"The recording {path} cannot be created: {error.strerror}.",
                remedy="Choose a new file in a folder that can be written.",
            ) from error
        text = write_json(asdict(facts)).encode()
        self._write(FILE_HEADER.pack(MAGIC, VERSION, len(text), zlib.crc32(text)) + text)

    def source(self, name: str) -> int:
        """The id under which a source's bytes are given. Every block names the sources in use."""
        if name not in self._ids:
            self._ids[name] = self._next_id
            self._next_id += 1
        elif name in self._retired:
            self._retired.remove(name)
        return self._ids[name]

    def retire(self, name: str) -> None:
        """End a source: blocks after the present one do not name it."""
        if name in self._ids:
            self._retired.append(name)

    def sample(self, monotonic_s: float, wall_s: float, entries: Iterable[tuple[int, bytes]]) -> None:
        self.begin_sample(monotonic_s, wall_s)
        for source, data in entries:
            self.put(source, data)
        self.end_record()

    def event(self, monotonic_s: float, wall_s: float, entries: Iterable[tuple[int, bytes]]) -> None:
        self._begin(EVENT, monotonic_s, wall_s)
        for source, data in entries:
            self.put(source, data)
        self.end_record()

    def begin_sample(self, monotonic_s: float, wall_s: float) -> None:
        """Begin a tick of the schedule; `end_record` ends it."""
        self._begin(SAMPLE, monotonic_s, wall_s)

    def _begin(self, kind: int, monotonic_s: float, wall_s: float) -> None:
        self._make_room(_SMALL)
        self._record = self.end
        RECORD.pack_into(self.buffer, self.end, kind, 0)
        TIMES.pack_into(self.buffer, self.end + RECORD.size, monotonic_s, wall_s)
        self.end += RECORD.size + TIMES.size
        self._first_s, self._last_s = min(self._first_s, monotonic_s), max(self._last_s, monotonic_s)

    def put(self, source: int, data: bytes) -> None:
        self._make_room(len(data) + _SMALL)
        start = self.end + ENTRY.size
        ENTRY.pack_into(self.buffer, self.end, source, len(data))
        self.buffer[start : start + len(data)] = data
        self.end = start + len(data)

    def read(self, source: int, descriptor: int) -> None:
        """Add an entry of an open file's text. OSError leaves no entry."""
        if self.end + _CHUNK + _SMALL > self._size:
            self._make_room(_CHUNK + _SMALL)
        start = self.end + ENTRY.size
        end = start + os.preadv(descriptor, (self._view[start : start + _CHUNK],), 0)
        if end - start > _CERTAINLY_WHOLE:
            end = self._follow_up(descriptor, start, end)
        ENTRY.pack_into(self.buffer, self.end, source, end - start)
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
        """Begin an entry of several parts: `pull` and `TASK` add to it, `end_entry` ends it."""
        self._make_room(_CHUNK)
        self._entry = self.end
        ENTRY.pack_into(self.buffer, self.end, source, 0)
        self.end += ENTRY.size

    def reserve_row(self) -> int:
        """Make room for a row of TASK and its texts; returns the offset of its head."""
        if self.end + 4 * _SMALL > self._size:
            self._make_room(4 * _SMALL)
        head = self.end
        self.end += TASK.size
        return head

    def pull(self, descriptor: int) -> int:
        """Append the text of a short file to the row; returns its length. OSError appends nothing."""
        end = self.end
        length = os.preadv(descriptor, (self._view[end : end + _SMALL],), 0)
        self.end = end + length
        return length

    def append(self, data: bytes) -> int:
        self.buffer[self.end : self.end + len(data)] = data
        self.end += len(data)
        return len(data)

    def keep_tail(self, length: int, most: int) -> int:
        """Keep the last `most` of the last `length` bytes; returns how many are kept."""
        if length <= most:
            return length
        start = self.end - length
        self.buffer[start : start + most] = self.buffer[self.end - most : self.end]
        self.end = start + most
        return most

    def end_entry(self) -> None:
        source, _ = ENTRY.unpack_from(self.buffer, self._entry)
        ENTRY.pack_into(self.buffer, self._entry, source, self.end - self._entry - ENTRY.size)

    def end_record(self) -> None:
        """Complete the record. Raises RecordingError if it is too large for any reader."""
        length = self.end - self._record - RECORD.size
        if length > LARGEST_BLOCK_BYTES // 2:
            raise RecordingError(f"One tick of {length} bytes is too large for a recording.")
        RECORD.pack_into(self.buffer, self._record, self.buffer[self._record], length)
        if self.end > _FLUSH_BYTES:
            self.write_block()

    def _make_room(self, wanted: int) -> None:
        if self.end + wanted > self._size:
            self._view.release()
            self.buffer.extend(bytes(max(wanted, self._size)))
            self._size = len(self.buffer)
            self._view = memoryview(self.buffer)

    def write_block(self) -> None:
        """Hand what is gathered to the kernel: from here on a kill -9 of the recorder cannot lose it."""
        if self._first_s > self._last_s:
            return
        names = b"".join(
            RECORD.pack(SOURCE, SOURCE_ID.size + len(encoded)) + SOURCE_ID.pack(number) + encoded
            for encoded, number in ((name.encode(), number) for name, number in self._ids.items())
        )
        self._make_room(len(names))
        self.buffer[self.end : self.end + len(names)] = names
        self.end += len(names)
        for name in self._retired:
            del self._ids[name]
        self._retired.clear()
        frame = self._compressor.compress(self._view[: self.end])
        head = BLOCK_HEADER.pack(BLOCK_MAGIC, len(frame), self.end, self._first_s, self._last_s, 0)[:-4]
        self._write(head + zlib.crc32(head).to_bytes(4, "little") + frame)
        self.end = 0
        self._first_s, self._last_s = float("inf"), float("-inf")

    def sync(self) -> None:
        self.write_block()
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise self._cannot_write(error) from error

    def close(self) -> None:
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
            remedy="Free some space on the disk or choose another folder; what was written before stays readable.",
        )
