"""The file format of a recording (docs/recording.md), and reading it. A block is a zstd frame with a checksum behind a
small header with its own, and names every source it uses: a lost block costs only its own ticks."""

import json
import os
import re
import struct
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from loadframe.errors import RecordingError

MAGIC = b"LFREC\r\n\x1a"
VERSION = 2
"""2 added hosts. Version 1 can still be read."""
BLOCK_MAGIC = b"LFB\xf1"
_MAGIC = re.compile(BLOCK_MAGIC)
LARGEST_BLOCK_BYTES = 64 * 1024 * 1024
"""Before compression; more in a header is corruption."""
LARGEST_FRAME_BYTES = LARGEST_BLOCK_BYTES + (LARGEST_BLOCK_BYTES >> 7)
"""What cannot be compressed grows by less (ZSTD_compressBound)."""
FREE_BYTES, PER_BYTE = 8 << 20, 20
"""A block holds at most FREE_BYTES, plus PER_BYTE for each of its bytes in the file."""
MOST_RECORDS, MOST_ENTRIES = 50_000, 50_000
"""In a block, which has a few dozen records and one for each source, 17 of a process: a million small ones would take
far more memory than their bytes."""
MOST_BLOCKS = 1_000_000
"""At the recorder's pace, more than a week."""
MOST_SEARCHED = 100_000
"""False beginnings of a block: a file with more was made on purpose, and its rest is ignored."""
_LATEST_S = 1e12

FILE_HEADER = struct.Struct("<8sHII")
"""magic, version, length of the facts (JSON) that follow, their crc32."""
BLOCK_HEADER = struct.Struct("<4sIIddI")
"""magic, compressed length, raw length, earliest and latest monotonic time (s), crc32 of the bytes before it."""
TASK = struct.Struct("<IHHH")
"""A thread of a `tasks` entry: its id, then the lengths of its stat, schedstat and wchan, which follow."""

RECORD = struct.Struct("<BI")
"""kind, length of the body."""
TIMES = struct.Struct("<dd")
"""of a sample or event: monotonic and wall clock (s)."""
ENTRY = struct.Struct("<II")
"""of a sample or event: source id, length of the bytes that follow."""
SOURCE_ID = struct.Struct("<I")
SOURCE, SAMPLE, EVENT, HOST = 1, 2, 3, 4
UNRECORDED = "recorder:unrecorded"
"""Source of an event: what could not be recorded and why, as a sentence."""
MACHINE = "recorder:machine"
"""Source in each tick: the kind of machine as uname(2) names it (numbers of system calls differ)."""
_DIFFERENT_FILE = "Give the recording that Loadframe wrote (raw/*.lfr in a run folder)."


@dataclass(frozen=True, slots=True)
class Facts:
    """Of the recording machine. boottime_offset_s: CLOCK_BOOTTIME - CLOCK_MONOTONIC, for start times of processes,
    which count suspended time. Times of different hosts are of different clocks."""

    interval_s: float
    clock_ticks_per_s: int
    cpus: int
    page_bytes: int
    boottime_offset_s: float
    started_s: float
    started_wall_s: float
    host: str = ""

    @classmethod
    def of_this_machine(cls, interval_s: float) -> "Facts":
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
    def from_json(cls, text: bytes) -> "Facts":
        """Raises ValueError."""
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("no object of facts")
        for name, value in fields.items():
            number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
            if not (isinstance(value, str) if name == "host" else number):
                raise ValueError(f"{name} is {str(value)[:40]}")
        try:
            facts = cls(**fields)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if min(facts.interval_s, facts.clock_ticks_per_s, facts.cpus, facts.page_bytes) <= 0:
            raise ValueError("an interval or a count that is not positive")
        return facts


Entries = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Tick:
    """sample: of the schedule; else a note or mark in between, at its own time."""

    monotonic_s: float
    wall_s: float
    entries: Entries
    facts: Facts
    sample: bool = True


class Block(NamedTuple):
    offset: int
    length: int
    raw_length: int
    first_s: float
    last_s: float


class Scan(NamedTuple):
    blocks: list[Block]
    end: int
    warnings: list[str]


def peak_rss_bytes(status: bytes) -> int:
    """From /proc/self/status: getrusage's maxrss would be inherited from the parent that forked us."""
    _, _, rest = status.partition(b"VmHWM:")
    return int(rest.split(None, 1)[0]) * 1024 if rest else 0


def parse_header(data: bytes, path: Path) -> tuple[Facts, int]:
    """Facts, and the offset of the first block. RecordingError for an empty, foreign or cut off file."""
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
            try:
                if zlib.crc32(text) != checksum:
                    raise ValueError("its checksum is wrong")
                return Facts.from_json(text), FILE_HEADER.size + length
            except (ValueError, RecursionError) as error:
                raise RecordingError(
                    f"The header of the recording {path} is corrupt: {error}.", remedy=_DIFFERENT_FILE
                ) from error
    raise RecordingError(f"The recording {path} ends within its header.", remedy="Nothing was recorded; record again.")


def scan_blocks(data: bytes, base: int = 0) -> Scan:
    """At `base` + their offset in data. What lies between complete blocks becomes a warning."""
    blocks: list[Block] = []
    warnings: list[str] = []
    position = 0
    while position + BLOCK_HEADER.size <= len(data) and len(blocks) < MOST_BLOCKS:
        block = _block_at(data, position)
        if block is None:
            places = islice((match.start() for match in _MAGIC.finditer(data, position + 1)), MOST_SEARCHED)
            whole = (at for at in places if at + BLOCK_HEADER.size <= len(data))
            next_at = next((at for at in whole if _block_at(data, at) is not None), -1)
            if next_at < 0:
                break
            warnings.append(f"{next_at - position} bytes at offset {base + position} are no block; skipped.")
            position = next_at
            continue
        if block.offset + block.length > len(data):
            break
        blocks.append(block._replace(offset=base + block.offset))
        position = block.offset + block.length
    return Scan(blocks, base + position, warnings)


def _block_at(data: bytes, position: int) -> Block | None:
    magic, length, raw_length, first_s, last_s, checksum = BLOCK_HEADER.unpack_from(data, position)
    if magic != BLOCK_MAGIC or raw_length > LARGEST_BLOCK_BYTES or length > LARGEST_FRAME_BYTES:
        return None
    begin = position + BLOCK_HEADER.size
    intact = zlib.crc32(data[position : begin - 4]) == checksum
    return Block(begin, length, raw_length, first_s, last_s) if intact else None


def decode_block(frame: bytes, block: Block, facts: Facts, *, samples: bool) -> list[Tick]:
    """In the order they were written; without `samples` only those in between. Unknown kinds are skipped.
    RecordingError if the block is corrupt."""
    import zstandard  # here: the process of `loadframe watch` has this module and reads no recording

    try:
        # The declared size is checked before anything is allocated: corruption must not ask for gigabytes.
        if zstandard.frame_content_size(frame) != block.raw_length:
            raise ValueError("its length is wrong")
        if block.raw_length > FREE_BYTES + PER_BYTE * len(frame):
            raise ValueError("its contents are far larger than the file")
        raw = zstandard.ZstdDecompressor().decompress(frame)
        return list(_records(raw, facts, (SAMPLE, EVENT) if samples else (EVENT,)))
    except (zstandard.ZstdError, struct.error, ValueError, KeyError, RecursionError) as error:
        raise RecordingError(f"The block at offset {block.offset} is corrupt ({error}); skipped.") from error


def _records(raw: bytes, facts: Facts, wanted: Sequence[int]) -> Iterable[Tick]:
    places = _places(raw)
    entries_left = MOST_ENTRIES
    names = {
        SOURCE_ID.unpack_from(raw, begin)[0]: raw[begin + SOURCE_ID.size : end].decode()
        for kind, begin, end in places
        if kind == SOURCE
    }
    for kind, begin, end in places:
        if kind == HOST:
            facts = Facts.from_json(raw[begin:end])
        elif kind in wanted:
            monotonic_s, wall_s = TIMES.unpack_from(raw, begin)
            if not (abs(monotonic_s) < _LATEST_S and abs(wall_s) < _LATEST_S):
                raise ValueError("a time that no clock shows")
            entries, entries_left = _entries(raw, begin + TIMES.size, end, names, entries_left)
            yield Tick(monotonic_s, wall_s, entries, facts, sample=kind == SAMPLE)


def _places(raw: bytes) -> list[tuple[int, int, int]]:
    position, places = 0, list[tuple[int, int, int]]()
    while position < len(raw):
        if len(places) == MOST_RECORDS:
            raise ValueError(f"more than {MOST_RECORDS:,} records")
        kind, length = RECORD.unpack_from(raw, position)
        begin = position + RECORD.size
        position = begin + length
        if position > len(raw):
            raise ValueError("a record runs over its end")
        places.append((kind, begin, position))
    return places


def _entries(raw: bytes, position: int, end: int, names: Mapping[int, str], left: int) -> tuple[dict[str, bytes], int]:
    entries = {}
    while position < end:
        if (left := left - 1) < 0:
            raise ValueError(f"more than {MOST_ENTRIES:,} entries")
        source, length = ENTRY.unpack_from(raw, position)
        position += ENTRY.size
        if position + length > end:
            raise ValueError("an entry runs over its tick")
        entries[names[source]] = raw[position : position + length]
        position += length
    return entries, left
