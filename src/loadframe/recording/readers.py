"""Reading a recording that is still being written: what was appended is read once, what is asked for is decoded."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from loadframe.errors import RecordingError
from loadframe.recording.frames import (
    LARGEST_FRAME_BYTES,
    MOST_BLOCKS,
    Block,
    Facts,
    Room,
    Tick,
    decode_block,
    parse_header,
    scan_blocks,
    torn_tail,
)

PIECE_BYTES = 2 * LARGEST_FRAME_BYTES
"""Read at once: whatever it begins with, it holds one block whole."""
COUNTER_MARGIN_S = 1.5
"""Notes of server counters come once per second, so those nearest to a window's edges may lie this far outside."""


class RecordingReader:
    """A recording, open for reading. RecordingError as for read_frames; corrupt blocks go to `warnings`.

    host: whose ticks are read; None for the host that began the recording. Times are of that host's clock. descriptor:
    the open file, which is closed with the reader; `path` is only its name then.
    """

    def __init__(self, path: Path, *, host: str | None = None, descriptor: int | None = None) -> None:
        self.path = path
        self.warnings: list[str] = []
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

    def all_ticks(self) -> list[Tick]:
        """Every tick of the host, in the order of their times, of a recording that no longer grows: a torn tail (the
        recorder was killed), and what there is no memory for, become warnings."""
        self.refresh()
        ticks: list[Tick] = []
        room = Room()
        for block in self._blocks:
            decoded = self._decode(block)
            if not room.for_block(block, decoded):
                self._warn(room.warning)
                break
            ticks += decoded
        self._warn(*torn_tail(os.fstat(self._fd).st_size - self._end))
        return sorted(ticks, key=lambda tick: tick.monotonic_s)

    def _decode(self, block: Block) -> list[Tick]:
        try:
            ticks = decode_block(os.pread(self._fd, block.length, block.offset), block, self.facts)
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
