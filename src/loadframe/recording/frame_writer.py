"""Writing a recording, in the layout of frames: files are read straight into one buffer, which is compressed."""

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
"""Keeps the recorder's memory small."""
_CHUNK = 64 * 1024
_SMALL = 4096
_CERTAINLY_WHOLE = 3000
"""A procfs file of many records gives about a page per read: anything shorter is complete."""


class FrameWriter:
    """Never overwrites: RecordingError if `path` exists or cannot be written, or the disk refuses later. descriptor:
    the new file, open for appending; `path` is only its name then."""

    def __init__(self, path: Path, facts: Facts, descriptor: int | None = None) -> None:
        self._path = path
        self._ids: dict[str, int] = {}
        self._named: dict[str, bytes] = {}
        self._next_id = 0
        self._retired: list[str] = []
        self.buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self.buffer)
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
        if name not in self._ids:
            self._ids[name] = self._next_id
            encoded = SOURCE_ID.pack(self._next_id) + name.encode()
            self._named[name] = RECORD.pack(SOURCE, len(encoded)) + encoded
            self._next_id += 1
        elif name in self._retired:
            self._retired.remove(name)
        return self._ids[name]

    def retire(self, name: str) -> None:
        """Blocks after the present one do not name it."""
        if name in self._ids:
            self._retired.append(name)

    def record(
        self, monotonic_s: float, wall_s: float, entries: Iterable[tuple[int, bytes]], *, sample: bool = True
    ) -> None:
        self.begin(monotonic_s, wall_s, sample=sample)
        for source, data in entries:
            self.put(source, data)
        self.end_record()

    def begin(self, monotonic_s: float, wall_s: float, *, sample: bool = True) -> None:
        self._make_room(_SMALL)
        self._record = self.end
        RECORD.pack_into(self.buffer, self.end, SAMPLE if sample else EVENT, 0)
        TIMES.pack_into(self.buffer, self.end + RECORD.size, monotonic_s, wall_s)
        self.end += RECORD.size + TIMES.size
        self._first_s, self._last_s = min(self._first_s, monotonic_s), max(self._last_s, monotonic_s)

    def put(self, source: int, data: bytes) -> None:
        self._make_room(len(data) + _SMALL)
        ENTRY.pack_into(self.buffer, self.end, source, len(data))
        self.end += ENTRY.size
        self.append(data)

    def read(self, source: int, descriptor: int) -> None:
        """Add an open file's text; OSError leaves no entry."""
        if self.end + _CHUNK + _SMALL > len(self.buffer):  # a call less, thousands of times a second
            self._make_room(_CHUNK + _SMALL)
        start = self.end + ENTRY.size
        end = start + os.preadv(descriptor, (self._view[start : start + _CHUNK],), 0)
        got = end - start
        while got and end - start > _CERTAINLY_WHOLE:
            self._make_room(end - self.end + _CHUNK + _SMALL)
            got = os.preadv(descriptor, (self._view[end : end + _CHUNK],), end - start)
            end += got
        ENTRY.pack_into(self.buffer, self.end, source, end - start)
        self.end = end

    def begin_entry(self, source: int) -> None:
        """Begin an entry: `pull` and `TASK` add to it, `end_entry` ends it."""
        self._entry = self.end
        self.put(source, b"")

    def reserve_row(self) -> int:
        """For TASK and its texts; returns the offset of its head."""
        if self.end + 4 * _SMALL > len(self.buffer):
            self._make_room(4 * _SMALL)
        head = self.end
        self.end += TASK.size
        return head

    def pull(self, descriptor: int) -> int:
        """Append a short file's text; returns its length. OSError appends nothing."""
        end = self.end
        length = os.preadv(descriptor, (self._view[end : end + _SMALL],), 0)
        self.end = end + length
        return length

    def append(self, data: bytes) -> int:
        self.buffer[self.end : self.end + len(data)] = data
        self.end += len(data)
        return len(data)

    def end_entry(self) -> None:
        source, _ = ENTRY.unpack_from(self.buffer, self._entry)
        ENTRY.pack_into(self.buffer, self._entry, source, self.end - self._entry - ENTRY.size)

    def end_record(self) -> None:
        """RecordingError if it is too large for any reader."""
        length = self.end - self._record - RECORD.size
        if length > LARGEST_BLOCK_BYTES // 2:
            raise RecordingError(f"One tick of {length} bytes is too large for a recording.")
        RECORD.pack_into(self.buffer, self._record, self.buffer[self._record], length)
        if self.end > _FLUSH_BYTES:
            self.write_block()

    def _make_room(self, wanted: int) -> None:
        size = len(self.buffer)
        if self.end + wanted > size:
            self._view.release()
            self.buffer.extend(bytes(max(wanted, size)))
            self._view = memoryview(self.buffer)

    def write_block(self) -> None:
        """From here on a kill -9 of the recorder cannot lose it."""
        if self._first_s > self._last_s:
            return
        names = b"".join(self._named.values())
        self._make_room(len(names))
        self.append(names)
        for name in self._retired:
            del self._ids[name], self._named[name]
        self._retired.clear()
        frame = self._compressor.compress(self._view[: self.end])
        head = BLOCK_HEADER.pack(BLOCK_MAGIC, len(frame), self.end, self._first_s, self._last_s, 0)[:-4]
        self._write(head + zlib.crc32(head).to_bytes(4, "little") + frame)
        self.end = 0
        self._first_s, self._last_s = float("inf"), float("-inf")

    def sync(self) -> None:
        self.write_block()
        with self._writing():
            os.fsync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            try:
                self.write_block()
            finally:
                os.close(self._fd)
                self._fd = -1

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        with self._writing():
            while view:
                view = view[os.write(self._fd, view) :]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RecordingError(
                f"The recording {self._path} cannot be written: {error.strerror}.",
                remedy="Free some space on the disk or choose another folder; what was written before stays readable.",
            ) from error
