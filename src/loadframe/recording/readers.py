"""Reading a recording that is still being written: what was appended is read once, what is asked for is decoded."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from loadframe.errors import RecordingError
from loadframe.recording.frames import (
    LARGEST_FRAME_BYTES,
    MOST_BLOCKS,
    Block,
    Facts,
    Tick,
    decode_block,
    parse_header,
    scan_blocks,
)

PIECE_BYTES = 2 * LARGEST_FRAME_BYTES
"""Read at once: whatever it begins with, it holds one block whole."""
COUNTER_MARGIN_S = 1.5
"""Notes of server counters come once per second, so those nearest to a window's edges may lie this far outside."""

MOST_MEMORY_BYTES = 2 << 30
"""For the ticks of a whole recording that are held at once; one of a small server grows by 0.2 MB/s."""
_TICK_BYTES, _ENTRY_BYTES = 500, 200
"""What a tick and an entry take besides their bytes, as Python objects."""
MOST_HELD_BYTES = 128 << 20
"""Of a recording of which every tick is read where it may be thinned."""
FEW_BLOCKS = 10
"""Are looked at to tell how much a recording holds."""


class RecordingReader:
    """A recording, open for reading. RecordingError where the file cannot be read, is empty, is no recording, or ends
    within its header; corrupt blocks go to `warnings`.

    host: whose ticks are read; None for the host that began the recording. Times are of that host's clock. descriptor:
    the open file, which is closed with the reader; `path` is only its name then.
    """

    def __init__(self, path: Path, *, host: str | None = None, descriptor: int | None = None) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.thinned = False
        self._blocks: list[Block] = []
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if descriptor is None else descriptor
        except OSError as error:
            raise self._unreadable(error) from error
        try:
            self.facts, self._end = self._read_header()
        except OSError as error:  # a folder opens like a file, and cannot be read
            self.close()
            raise self._unreadable(error) from error
        except RecordingError:
            self.close()
            raise
        self.host = self.facts.host if host is None else host

    def _unreadable(self, error: OSError) -> RecordingError:
        return RecordingError(
            f"The recording {self.path} cannot be read: {error.strerror}.", remedy="Start the recorder first."
        )

    def _read_header(self) -> tuple[Facts, int]:
        return parse_header(os.pread(self._fd, 64 * 1024, 0), self.path)

    def refresh(self) -> None:
        """Take in the blocks that were appended since. A block not yet complete is left for the next time."""
        size = os.fstat(self._fd).st_size
        while self._end < size and len(self._blocks) < MOST_BLOCKS:
            data = os.pread(self._fd, min(size - self._end, PIECE_BYTES), self._end)
            scan = scan_blocks(data, 0, base=self._end)
            self._blocks += scan.blocks
            self.warnings += scan.warnings
            if scan.end == self._end:
                return
            self._end = scan.end

    def ticks_between(self, start_s: float, end_s: float, *, margin_s: float = COUNTER_MARGIN_S) -> list[Tick]:
        """The ticks with start_s - margin_s <= monotonic_s <= end_s + margin_s, in the order of their times.

        The margin is there for the notes of server counters; window_metrics takes ticks of the schedule from within
        the window only.
        """
        self.refresh()
        first_s, last_s = start_s - margin_s, end_s + margin_s
        ticks: list[Tick] = []
        for block in self._blocks:
            if block.first_s <= last_s and block.last_s >= first_s:
                ticks += [tick for tick in self._decode(block) if first_s <= tick.monotonic_s <= last_s]
        return sorted(ticks, key=lambda tick: tick.monotonic_s)

    def all_ticks(self, *, most_entries: int | None = None) -> list[Tick]:
        """Every tick of the host, in the order of their times, of a recording that no longer grows: a torn tail (the
        recorder was killed), and what there is no memory for, become warnings. most_entries: of a recording that has
        more, blocks evenly apart are read, and `thinned` is set: of the ticks of each what every source said first."""
        self.refresh()
        ticks: list[Tick] = []
        room_bytes = MOST_MEMORY_BYTES
        every = self._apart(most_entries) if most_entries is not None else 1
        self.thinned = every > 1
        for place, block in enumerate(self._blocks):
            if place % every > 1:
                continue
            # A server's counters are noted once per second: two in a row tell how they grow.
            decoded = self._decode(block, samples=place % every == 0)
            decoded = _first_of_each(decoded) if self.thinned else decoded
            entries = sum(len(tick.entries) for tick in decoded)
            room_bytes -= block.raw_length + _TICK_BYTES * len(decoded) + _ENTRY_BYTES * entries
            if room_bytes < 0:
                most = MOST_MEMORY_BYTES >> 20
                self._warn(f"It takes more than {most:,} MiB of memory; what comes after that is left out.")
                break
            ticks += decoded
        if torn := os.fstat(self._fd).st_size - self._end:
            self._warn(f"The last {torn} bytes are no complete block (the recorder was killed); left out.")
        return sorted(ticks, key=lambda tick: tick.monotonic_s)

    def _apart(self, most_entries: int) -> int:
        """One of how many blocks may be read, from what a few of them hold. To decode a block that is looked at once
        costs as much again as what is read of it."""
        chosen = self._blocks[:: max(1, len(self._blocks) // FEW_BLOCKS)]
        looked_at = [self._decode(block) for block in chosen]
        entries = sum(len(tick.entries) for ticks in looked_at for tick in ticks) / max(1, len(chosen))
        held = sum(block.raw_length for block in self._blocks)
        if entries * len(self._blocks) <= most_entries and held <= MOST_HELD_BYTES:
            return 1
        once = [tick.entries for ticks in looked_at for tick in _first_of_each(ticks)]
        share = 2 * max(sum(map(len, once)) / most_entries, sum(map(_size, once)) / MOST_HELD_BYTES) / len(chosen)
        every = max(2, math.ceil(len(self._blocks) * share))
        apart_s = every * (self._blocks[-1].last_s - self._blocks[0].first_s) / len(self._blocks)
        self._warn(
            f"It is too long for a table of every tick: metrics.parquet has a moment every {apart_s:.0f} s, and what "
            "the recorder could not record in between is not told. The steps' own values are from all ticks."
        )
        return every

    def _decode(self, block: Block, *, samples: bool = True) -> list[Tick]:
        try:
            frame = os.pread(self._fd, block.length, block.offset)
            ticks = decode_block(frame, block, self.facts, samples=samples)
            return [tick for tick in ticks if tick.facts.host == self.host]
        except RecordingError as error:
            self._warn(error.fact)
            return []

    def _warn(self, *facts: str) -> None:
        """Each is told once."""
        self.warnings += [fact for fact in facts if fact not in self.warnings]

    def close(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


def _size(entries: Mapping[str, bytes]) -> int:
    return sum(map(len, entries.values()))


def _first_of_each(ticks: Sequence[Tick]) -> list[Tick]:
    """What each source said first, at the ticks at which it did; all that came in between."""
    seen: set[str] = set()
    found = []
    for tick in ticks:
        entries = (
            {name: text for name, text in tick.entries.items() if name not in seen} if tick.sample else tick.entries
        )
        if entries:
            found.append(replace(tick, entries=entries))
        if tick.sample:
            seen |= entries.keys()
    return found
