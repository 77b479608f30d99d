"""A recording can be read while it grows, window by window."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.errors import RecordingError
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import Facts
from loadframe.recording.readers import COUNTER_MARGIN_S, RecordingReader

FACTS = Facts(0.1, 100, 2, 4096, 0.5, 0.0, 1e9)


def add_block(writer: FrameWriter, *times_s: float) -> None:
    for at_s in times_s:
        writer.record(at_s, at_s, [(writer.source("system:/proc/stat"), b"%f" % at_s)])
    writer.write_block()


def times(reader: RecordingReader, start_s: float, end_s: float, margin_s: float = 0) -> list[float]:
    inside_s = COUNTER_MARGIN_S - margin_s
    return [tick.monotonic_s for tick in reader.ticks_between(start_s + inside_s, end_s - inside_s)]


def test_what_is_appended_later_is_found(tmp_path: Path) -> None:
    writer = FrameWriter(tmp_path / "a.lfrec", FACTS)
    with RecordingReader(tmp_path / "a.lfrec") as reader:
        assert times(reader, 0, 9) == []
        add_block(writer, 1.0, 2.0)
        assert times(reader, 0, 9) == [1.0, 2.0]
        add_block(writer, 3.0, 4.0)
        assert times(reader, 2, 3) == [2.0, 3.0]
        assert times(reader, 3, 3, margin_s=1) == [2.0, 3.0, 4.0]
        assert reader.facts == FACTS
        assert not reader.warnings
    writer.close()


def test_a_note_that_comes_late_is_found_at_its_own_time(tmp_path: Path) -> None:
    writer = FrameWriter(tmp_path / "a.lfrec", FACTS)
    add_block(writer, 1.0, 2.0)
    writer.record(1.5, 1.5, [(writer.source("note:service"), b"{}")], sample=False)
    add_block(writer, 3.0)
    writer.close()
    with RecordingReader(tmp_path / "a.lfrec") as reader:
        assert times(reader, 1.2, 2.5) == [1.5, 2.0]


def test_a_block_half_written_is_left_for_the_next_time(tmp_path: Path) -> None:
    whole, growing = tmp_path / "whole.lfrec", tmp_path / "growing.lfrec"
    writer = FrameWriter(whole, FACTS)
    add_block(writer, 1.0)
    first = whole.stat().st_size
    add_block(writer, 2.0)
    writer.close()
    content = whole.read_bytes()
    growing.write_bytes(content[: first + 40])
    with RecordingReader(growing) as reader:
        assert times(reader, 0, 9) == [1.0]
        with growing.open("ab") as file:
            file.write(content[first + 40 :])
        assert times(reader, 0, 9) == [1.0, 2.0]
        assert not reader.warnings


def test_a_torn_tail_is_told_once_the_recording_no_longer_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    writer = FrameWriter(path, FACTS)
    add_block(writer, 1.0)
    first = path.stat().st_size
    add_block(writer, 2.0)
    writer.close()
    path.write_bytes(path.read_bytes()[: first + 40])
    with RecordingReader(path) as reader:
        for _ in range(2):
            assert [tick.monotonic_s for tick in reader.all_ticks()] == [1.0]
        assert reader.warnings == ["The last 40 bytes are no complete block (the recorder was killed); left out."]


def test_a_corrupt_block_is_left_out_and_told_once(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    writer = FrameWriter(path, FACTS)
    add_block(writer, 1.0)
    first = path.stat().st_size
    add_block(writer, 2.0)
    writer.close()
    content = bytearray(path.read_bytes())
    content[first - 1] ^= 0xFF
    path.write_bytes(content)
    with RecordingReader(path) as reader:
        assert times(reader, 0, 9) == times(reader, 0, 9) == [2.0]
        assert len(reader.warnings) == 1


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    path.write_bytes(b"%PDF-1.4 nothing of ours")
    with pytest.raises(RecordingError, match="not a recording"):
        RecordingReader(path)
    with pytest.raises(RecordingError, match="cannot be read"):
        RecordingReader(tmp_path / "absent")


def test_a_folder_is_refused_and_not_kept_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(RecordingError, match="cannot be read: Is a directory"):
        RecordingReader(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
