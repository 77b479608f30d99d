"""A recording may be a stranger's: it takes so much memory and time and no more, and what is no data is left out."""

from __future__ import annotations

import random
import re
import struct
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadframe.errors import RecordingError
from loadframe.recording import frames, readers
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import (
    BLOCK_HEADER,
    BLOCK_MAGIC,
    ENTRY,
    RECORD,
    SAMPLE,
    SOURCE,
    SOURCE_ID,
    TIMES,
    Facts,
    Tick,
    scan_blocks,
)
from loadframe.recording.profiles.perf import Reading, function_name, read_samples
from loadframe.recording.readers import RecordingReader
from loadframe.recording.series import metric_series

RECORDED = Path(__file__).parents[1] / "data" / "runs" / "investigation" / "raw" / "host.lfr"
FACTS = Facts(0.1, 100, 2, 4096, 0.5, 10.0, 1e9)
NAME = RECORD.pack(SOURCE, SOURCE_ID.size + 1) + SOURCE_ID.pack(0) + b"x"


def tick(at_s: float, entries: bytes = b"") -> bytes:
    return RECORD.pack(SAMPLE, TIMES.size + len(entries)) + TIMES.pack(at_s, 1e9) + entries


def recording(path: Path, *blocks: bytes) -> Path:
    """A recording with these blocks, whatever they say: every checksum is right."""
    FrameWriter(path, FACTS).close()
    with path.open("ab") as file:
        for raw in blocks:
            frame = zstandard.ZstdCompressor(write_checksum=True).compress(raw)
            head = BLOCK_HEADER.pack(BLOCK_MAGIC, len(frame), len(raw), 0.0, 1e9, 0)[:-4]
            file.write(head + struct.pack("<I", frames.zlib.crc32(head)) + frame)
    return path


def read(path: Path) -> tuple[list[Tick], list[str]]:
    """Every tick of it, and what could not be read."""
    with RecordingReader(path) as reader:
        return reader.all_ticks(), reader.warnings


def test_a_small_file_with_much_in_it_is_read_as_far_as_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen blocks of a megabyte of zeros each, in a file of two kilobytes."""
    monkeypatch.setattr(readers, "MOST_MEMORY_BYTES", 4 << 20)
    zeros = ENTRY.pack(0, 1 << 20) + bytes(1 << 20)
    path = recording(tmp_path / "a.lfr", *(NAME + tick(number, zeros) for number in range(16)))
    assert path.stat().st_size < 4096
    ticks, warnings = read(path)
    assert [one.monotonic_s for one in ticks] == [0, 1, 2]
    assert warnings == ["It takes more than 4 MiB of memory; what comes after that is left out."]


def test_a_block_of_countless_small_records_is_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MOST_ENTRIES", 100)
    monkeypatch.setattr(frames, "MOST_RECORDS", 50)
    entries = NAME + tick(1, ENTRY.pack(0, 0) * 101)
    records = NAME + tick(2) * 51
    fine = NAME + tick(3, ENTRY.pack(0, 0) * 100) + tick(4) * 48
    ticks, warnings = read(recording(tmp_path / "a.lfr", entries, records, fine))
    assert [one.monotonic_s for one in ticks[:2]] == [3, 4]
    assert "more than 100 entries" in warnings[0] and "more than 50 records" in warnings[1]


@pytest.mark.parametrize("at_s", [float("nan"), float("inf"), float("-inf"), 1e300])
def test_a_time_that_no_clock_shows_is_damage(tmp_path: Path, at_s: float) -> None:
    ticks, warnings = read(recording(tmp_path / "a.lfr", NAME + tick(at_s), NAME + tick(1.0)))
    assert [one.monotonic_s for one in ticks] == [1.0]
    assert "a time that no clock shows" in warnings[0]


@pytest.mark.long
def test_false_beginnings_of_blocks_are_searched_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Mock(wraps=frames.BLOCK_HEADER, size=frames.BLOCK_HEADER.size)
    monkeypatch.setattr(frames, "BLOCK_HEADER", look)
    monkeypatch.setattr(frames, "MOST_SEARCHED", 1000)
    assert scan_blocks(BLOCK_MAGIC * 20_000).blocks == []
    assert look.unpack_from.call_count == 1001


def test_a_recording_is_searched_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadframe.recording.readers.PIECE_BYTES", 100)
    path = recording(tmp_path / "a.lfr", *(NAME + tick(number) for number in range(20)))
    with RecordingReader(path) as reader:
        assert [one.monotonic_s for one in reader.all_ticks()] == list(range(20))
        assert reader.warnings == []


NUMBERS = [b"9" * 5000, b"-1", b"1e400", b"nan", b"18446744073709551616", b"", b"\xff", b"\xd9\xa1"]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**9))
def test_whatever_was_recorded_is_a_table_or_left_out(tmp_path: Path, seed: int) -> None:
    """Numbers of a source replaced by what no kernel says, in a recording whose checksums are right."""
    chosen = random.Random(seed)
    ticks = read(RECORDED)[0]
    source = chosen.choice(sorted({name for one in ticks for name in one.entries}))
    path = tmp_path / "a.lfr"
    path.unlink(missing_ok=True)
    writer = FrameWriter(path, replace(ticks[0].facts, cpus=chosen.choice([1, 10**18])))
    for one in ticks[:8]:
        entries = {
            name: re.sub(rb"\d+", lambda _: chosen.choice(NUMBERS), data, count=3) if name == source else data
            for name, data in one.entries.items()
        }
        texts = [(writer.source(name), data) for name, data in entries.items()]
        writer.record(one.monotonic_s, one.wall_s, texts, sample=one.sample)
    writer.close()
    try:
        table = metric_series(path).table
    except RecordingError:
        return
    assert table is not None
    assert table["value"].is_finite().all()


def test_a_name_with_thousands_of_endings_is_named_at_once() -> None:
    """Each ending was searched from each other one: 56 kB took half a minute."""
    searched = 0

    class Counted:
        def search(self, name: str, begin: int) -> re.Match[str] | None:
            nonlocal searched
            searched += len(name) - begin
            return pattern.search(name, begin)

    from loadframe.recording.profiles import perf

    pattern = perf.APPENDED
    try:
        perf.APPENDED = Counted()  # type: ignore[assignment]
        assert function_name("work" + ".cold.1" * 400) == "work"
        assert searched <= 401 * 31
    finally:
        perf.APPENDED = pattern
    assert len(function_name("x" * 10**6)) == perf.LONGEST_SYMBOL


PRINTED = ["a 1/2 3.000000:", "\t 100 f (/x)", "\t ffffffff81000000 f (k)", "", "PERF_RECORD_LOST lost 5"]


@given(st.lists(st.sampled_from(PRINTED) | st.text(max_size=60)))
def test_whatever_perf_prints_becomes_samples_or_is_counted(lines: list[str]) -> None:
    reading = Reading()
    samples = list(read_samples(lines, reading))
    assert all(one.frames and one.command for one in samples)
    assert len(samples) + reading.damaged <= len(lines)
