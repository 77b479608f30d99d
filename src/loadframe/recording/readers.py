"""Reading a recording, also one that is still being written."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from loadframe.errors import RecordingError
from loadframe.recording.frames import (
    LARGEST_FRAME_BYTES,
    MOST_BLOCKS,
    Block,
    Tick,
    decode_block,
    parse_header,
    scan_blocks,
)

PIECE_BYTES = 2 * LARGEST_FRAME_BYTES
"""Holds one whole block."""
COUNTER_MARGIN_S = 1.5
"""Notes of server counters come once per second: those nearest to a window's edges may lie this far outside."""

MOST_MEMORY_BYTES, FREE_BYTES, PER_BYTE = 2 << 30, 4 << 20, 20
"""Memory for the ticks held at once: FREE_BYTES plus PER_BYTE times the recording's size on the disk, at most
MOST_MEMORY_BYTES, whatever its blocks decompress to. Our recordings hold 6 to 14 times their size."""
_TICK_BYTES, _ENTRY_BYTES = 500, 200
"""As Python objects, in addition to their bytes."""
MOST_HELD_BYTES = 128 << 20
"""Memory for a recording whose every tick is read; a larger one is thinned."""
FEW_BLOCKS = 10
"""Sampled to estimate how much a recording holds."""


class RecordingReader:
    """RecordingError if the file cannot be read, is empty, is no recording, or ends within its header; corrupt blocks
    go to `warnings`. Ticks are those of the host that began it. descriptor: the open file, closed with the reader;
    `path` is only its name then."""

    def __init__(self, path: Path, *, descriptor: int | None = None) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.thinned = False
        self._blocks: list[Block] = []
        self._fd = -1
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if descriptor is None else descriptor
            self.facts, self._end = parse_header(os.pread(self._fd, 64 * 1024, 0), path)
        except OSError as error:  # a folder opens like a file, but cannot be read
            self.close()
            raise RecordingError(
                f"The recording {path} cannot be read: {error.strerror}.", remedy="Start the recorder first."
            ) from error
        except RecordingError:
            self.close()
            raise

    def refresh(self) -> None:
        """An incomplete block is left for the next time."""
        size = os.fstat(self._fd).st_size
        while self._end < size and len(self._blocks) < MOST_BLOCKS:
            data = os.pread(self._fd, min(size - self._end, PIECE_BYTES), self._end)
            scan = scan_blocks(data, base=self._end)
            self._blocks += scan.blocks
            self.warnings += scan.warnings
            if scan.end == self._end:
                return
            self._end = scan.end

    def ticks_between(self, start_s: float, end_s: float) -> list[Tick]:
        """In time order, with COUNTER_MARGIN_S before and after."""
        self.refresh()
        first_s, last_s = start_s - COUNTER_MARGIN_S, end_s + COUNTER_MARGIN_S
        return self._gathered(
            (block, [tick for tick in self._decode(block) if first_s <= tick.monotonic_s <= last_s])
            for block in self._blocks
            if block.first_s <= last_s and block.last_s >= first_s
        )

    def all_ticks(self, *, most_entries: int | None = None) -> list[Tick]:
        """In time order, of a recording that no longer grows: a torn tail (the recorder was killed), and what exceeds
        the memory, become warnings. most_entries: one with more is thinned: of evenly spaced blocks the first text of
        each source is kept."""
        self.refresh()
        every = self._apart(most_entries) if most_entries is not None else 1
        self.thinned = every > 1
        # A server's counters are noted once per second: two in a row show how they grow.
        chosen = [(block, place % every == 0) for place, block in enumerate(self._blocks) if place % every <= 1]
        decoded = ((block, self._decode(block, samples=samples)) for block, samples in chosen)
        ticks = self._gathered((block, _first_of_each(ticks) if self.thinned else ticks) for block, ticks in decoded)
        if torn := os.fstat(self._fd).st_size - self._end:
            self._warn(f"The last {torn} bytes are no complete block (the recorder was killed); left out.")
        return ticks

    def _gathered(self, blocks: Iterable[tuple[Block, list[Tick]]]) -> list[Tick]:
        most = min(MOST_MEMORY_BYTES, FREE_BYTES + PER_BYTE * os.fstat(self._fd).st_size)
        left, gathered = most, list[Tick]()
        for block, ticks in blocks:
            held = _TICK_BYTES * len(ticks) + _ENTRY_BYTES * sum(len(tick.entries) for tick in ticks)
            left -= block.raw_length + (held or block.raw_length)  # an empty result takes time as well
            if left < 0:
                self._warn(f"It takes more than {most >> 20:,} MiB of memory; what comes after that is left out.")
                break
            gathered += ticks
        return sorted(gathered, key=lambda tick: tick.monotonic_s)

    def _apart(self, most_entries: int) -> int:
        """N, to read one of N blocks. Decoding an examined block costs as much again as what is read of it."""
        chosen = self._blocks[:: max(1, len(self._blocks) // FEW_BLOCKS)]
        entries = once = once_bytes = 0
        for block in chosen:
            ticks = self._decode(block)
            entries += sum(len(tick.entries) for tick in ticks)
            first = [text for tick in _first_of_each(ticks) for text in tick.entries.values()]
            once, once_bytes = once + len(first), once_bytes + sum(map(len, first))
        held = sum(block.raw_length for block in self._blocks)
        if entries / max(1, len(chosen)) * len(self._blocks) <= most_entries and held <= MOST_HELD_BYTES:
            return 1
        share = 2 * max(once / most_entries, once_bytes / MOST_HELD_BYTES) / len(chosen)
        every = max(2, math.ceil(len(self._blocks) * share))
        apart_s = every * (self._blocks[-1].last_s - self._blocks[0].first_s) / len(self._blocks)
        self._warn(
            f"It is too long for a table of every tick: metrics.parquet has a moment every {apart_s:.0f} s, and what "
            "the recorder could not record in between is not reported. The steps' own values are from all ticks."
        )
        return every

    def _decode(self, block: Block, *, samples: bool = True) -> list[Tick]:
        try:
            frame = os.pread(self._fd, block.length, block.offset)
            ticks = decode_block(frame, block, self.facts, samples=samples)
            return [tick for tick in ticks if tick.facts.host == self.facts.host]
        except RecordingError as error:
            self._warn(error.fact)
            return []

    def _warn(self, fact: str) -> None:
        if fact not in self.warnings:
            self.warnings.append(fact)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _first_of_each(ticks: Sequence[Tick]) -> list[Tick]:
    seen: set[str] = set()
    first_ticks = []
    for tick in ticks:
        entries = tick.entries
        if tick.sample:
            entries = {name: text for name, text in entries.items() if name not in seen}
            seen |= entries.keys()
        if entries:
            first_ticks.append(replace(tick, entries=entries))
    return first_ticks
