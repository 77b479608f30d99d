"""A recording gives back what was recorded, and loses no more than what is damaged."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadframe.errors import RecordingError
from loadframe.recording.frames import BLOCK_HEADER, FILE_HEADER, MAGIC, Facts, FrameWriter, Tick, read_frames

FACTS = Facts(0.1, 100, 2, 4096, 0.5, 10.0, 1e9)

Entries = dict[str, bytes]


def write(path: Path, blocks: list[list[tuple[float, Entries, bool]]]) -> list[Tick]:
    """Write these blocks of (time, entries, is a sample) and return the ticks that must come back."""
    writer = FrameWriter(path, FACTS)
    ticks = []
    for block in blocks:
        for at_s, entries, sample in block:
            add = writer.sample if sample else writer.event
            add(at_s, at_s + 1e9, [(writer.source(name), data) for name, data in entries.items()])
            ticks.append(Tick(at_s, at_s + 1e9, entries, FACTS, sample))
        writer.write_block()
    writer.close()
    return ticks


def three_blocks(path: Path) -> list[Tick]:
    return write(path, [[(block + tick / 10, {"system:/proc/stat": b"cpu %d" % tick}, True) for tick in range(4)]
                        for block in range(3)])  # fmt: skip


def block_starts(data: bytes) -> list[int]:
    starts = []
    position = FILE_HEADER.size + FILE_HEADER.unpack_from(data)[2]
    while position < len(data):
        starts.append(position)
        position += BLOCK_HEADER.size + BLOCK_HEADER.unpack_from(data, position)[1]
    return starts


entries = st.dictionaries(st.text(min_size=1, max_size=12), st.binary(max_size=60), max_size=4)
recorded = st.lists(st.lists(st.tuples(st.floats(0, 1e6), entries, st.booleans()), max_size=4), max_size=4)


@given(recorded)
def test_what_was_recorded_comes_back(blocks: list[list[tuple[float, Entries, bool]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lfrec")
        ticks = write(path, blocks)
        assert read_frames(path) == (ticks, [])


@given(recorded, st.data())
def test_any_truncation_keeps_a_prefix_of_the_ticks(
    blocks: list[list[tuple[float, Entries, bool]]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lfrec")
        ticks = write(path, blocks)
        whole = path.read_bytes()
        header = FILE_HEADER.size + FILE_HEADER.unpack_from(whole)[2]
        cut = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:cut])
        if cut < header:
            with pytest.raises(RecordingError, match=r"empty|within its header"):
                read_frames(path)
            return
        salvaged = read_frames(path)
        assert salvaged.ticks == ticks[: len(salvaged.ticks)]
        assert bool(salvaged.warnings) == (cut not in [*block_starts(whole), len(whole)])


@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_never_raise_anything_but_a_recording_error(noise: bytes, with_magic: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lfrec")
        path.write_bytes(MAGIC + noise if with_magic else noise)
        with contextlib.suppress(RecordingError):
            read_frames(path)


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_byte_costs_one_block_at_most_and_is_reported(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lfrec")
        ticks = three_blocks(path)
        content = bytearray(path.read_bytes())
        position = data.draw(st.integers(block_starts(bytes(content))[0], len(content) - 1))
        content[position] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        salvaged = read_frames(path)
        assert salvaged.warnings
        assert salvaged.ticks in [ticks[4:], ticks[:4] + ticks[8:], ticks[:8]]


def test_noise_between_blocks_is_skipped_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    ticks = three_blocks(path)
    content = path.read_bytes()
    second = block_starts(content)[1]
    path.write_bytes(content[:second] + b"noise LFB\xf1 noise" + content[second:])
    salvaged = read_frames(path)
    assert salvaged.ticks == ticks
    assert salvaged.warnings == [f"16 bytes at offset {second} are no block; skipped."]


def test_foreign_empty_and_newer_files_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    path.write_bytes(b"")
    with pytest.raises(RecordingError, match="is empty"):
        read_frames(path)
    path.write_bytes(b"SQLite format 3\0")
    with pytest.raises(RecordingError, match="not a recording"):
        read_frames(path)
    path.write_bytes(FILE_HEADER.pack(MAGIC, 99, 0, 0))
    with pytest.raises(RecordingError, match="version 99"):
        read_frames(path)
    with pytest.raises(RecordingError, match="cannot be read"):
        read_frames(tmp_path / "absent")


def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    ticks = three_blocks(path)
    with pytest.raises(RecordingError, match="cannot be created"):
        FrameWriter(path, FACTS)
    assert read_frames(path).ticks == ticks
