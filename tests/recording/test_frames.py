"""A recording gives back what was recorded, and loses no more than what is damaged."""

from __future__ import annotations

import contextlib
import json
import tempfile
import zlib
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loadframe.errors import RecordingError
from loadframe.recording.frame_writer import FrameWriter
from loadframe.recording.frames import (
    BLOCK_HEADER,
    BLOCK_MAGIC,
    FILE_HEADER,
    HOST,
    MAGIC,
    RECORD,
    SAMPLE,
    VERSION,
    Facts,
    Tick,
)
from loadframe.recording.readers import RecordingReader

FACTS = Facts(0.1, 100, 2, 4096, 0.5, 10.0, 1e9)

Entries = dict[str, bytes]


def write(path: Path, blocks: list[list[tuple[float, Entries, bool]]]) -> list[Tick]:
    """Write these blocks of (time, entries, is a sample) and return the ticks that must come back."""
    writer = FrameWriter(path, FACTS)
    ticks = []
    for block in blocks:
        for at_s, entries, sample in block:
            texts = [(writer.source(name), data) for name, data in entries.items()]
            writer.record(at_s, at_s + 1e9, texts, sample=sample)
            ticks.append(Tick(at_s, at_s + 1e9, entries, FACTS, sample))
        writer.write_block()
    writer.close()
    return ticks


def read(path: Path) -> tuple[list[Tick], list[str]]:
    """Every tick of it, and what could not be read."""
    with RecordingReader(path) as reader:
        return reader.all_ticks(), reader.warnings


def in_time(ticks: list[Tick]) -> list[Tick]:
    return sorted(ticks, key=lambda tick: tick.monotonic_s)


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


def framed(kind: int, body: bytes) -> bytes:
    """A record whose length is right."""
    return RECORD.pack(kind, len(body)) + body


def to_json(value: object) -> bytes:
    return json.dumps(value).encode()


def damaged(name: str, value: object) -> dict[str, object]:
    return asdict(FACTS) | {name: value}


facts_like = st.builds(
    damaged,
    st.sampled_from([*asdict(FACTS), "unheard_of"]),
    st.one_of(st.none(), st.integers(-1, 2**70), st.floats(), st.text(max_size=3), st.lists(st.integers(), max_size=2)),
)
entries = st.dictionaries(st.text(min_size=1, max_size=12), st.binary(max_size=60), max_size=4)
recorded = st.lists(st.lists(st.tuples(st.floats(0, 1e6), entries, st.booleans()), max_size=4), max_size=4)


@given(recorded)
def test_what_was_recorded_comes_back(blocks: list[list[tuple[float, Entries, bool]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lfrec")
        ticks = write(path, blocks)
        assert read(path) == (in_time(ticks), [])


@pytest.mark.long
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
                read(path)
            return
        salvaged, warnings = read(path)
        assert salvaged == in_time(ticks[: len(salvaged)])
        assert bool(warnings) == (cut not in [*block_starts(whole), len(whole)])


@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_never_raise_anything_but_a_recording_error(noise: bytes, with_magic: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lfrec")
        path.write_bytes(MAGIC + noise if with_magic else noise)
        with contextlib.suppress(RecordingError):
            read(path)


@settings(max_examples=100)
@given(st.data())
def test_a_damaged_byte_costs_one_block_at_most_and_is_reported(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lfrec")
        ticks = three_blocks(path)
        content = bytearray(path.read_bytes())
        position = data.draw(st.integers(block_starts(bytes(content))[0], len(content) - 1))
        content[position] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        salvaged, warnings = read(path)
        # zstd has bits that mean nothing: what is read is right then, and nothing is told.
        assert bool(warnings) == (salvaged != ticks)
        assert salvaged in [ticks, ticks[4:], ticks[:4] + ticks[8:], ticks[:8]]


def test_noise_between_blocks_is_skipped_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    ticks = three_blocks(path)
    content = path.read_bytes()
    second = block_starts(content)[1]
    path.write_bytes(content[:second] + b"noise LFB\xf1 noise" + content[second:])
    salvaged, warnings = read(path)
    assert salvaged == ticks
    assert warnings == [f"16 bytes at offset {second} are no block; skipped."]


@settings(max_examples=100)
@given(st.data())
def test_any_damage_is_salvaged_or_refused_in_words_also_while_it_is_written(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lfr")
        ticks = three_blocks(path)
        content = path.read_bytes()
        for _ in range(data.draw(st.integers(1, 4))):
            begin = data.draw(st.integers(0, len(content)))
            end = data.draw(st.integers(begin, min(len(content), begin + 40)))
            content = content[:begin] + data.draw(st.binary(max_size=40)) + content[end:]
        path.write_bytes(content)
        try:
            salvaged, warnings = read(path)
        except RecordingError as error:
            assert str(path) in error.fact
            return
        assert [tick for tick in salvaged if tick not in ticks] == []
        assert warnings or salvaged == ticks


deep = st.sampled_from([b"[" * 200_000, b'{"host":' * 100_000])
anything = st.one_of(
    st.binary(max_size=200),
    st.builds(framed, st.just(SAMPLE), st.binary(max_size=200)),
    st.builds(framed, st.just(HOST), st.one_of(st.binary(max_size=60), deep, facts_like.map(to_json))),
)


@given(anything)
@example(framed(HOST, b"[" * 200_000))
def test_a_block_with_anything_in_it_is_read_or_skipped(content: bytes) -> None:
    """A frame whose checksums are right and whose content is not ours: nothing but a warning comes of it."""
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(content)
    head = BLOCK_HEADER.pack(BLOCK_MAGIC, len(frame), len(content), 1.0, 2.0, 0)[:-4]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lfr")
        ticks = three_blocks(path)
        with path.open("ab") as file:
            file.write(head + zlib.crc32(head).to_bytes(4, "little") + frame)
        salvaged, warnings = read(path)
        assert [tick for tick in ticks if tick not in salvaged] == []
        assert warnings or salvaged == ticks or content[0] == SAMPLE


@pytest.mark.parametrize(
    "facts",
    ["[]", "{}", '{"interval_s": "0.1"}', '{"interval_s": 0}', "null", '{"unheard_of": 1}', '{"interval_s": NaN}'],
)
def test_facts_of_another_kind_are_refused(tmp_path: Path, facts: str) -> None:
    path = tmp_path / "a.lfr"
    whole = asdict(FACTS) | json.loads(facts) if facts.startswith('{"interval') else json.loads(facts)
    text = json.dumps(whole).encode()
    path.write_bytes(FILE_HEADER.pack(MAGIC, VERSION, len(text), zlib.crc32(text)) + text)
    with pytest.raises(RecordingError, match=r"header of the recording .* is corrupt"):
        read(path)


def test_version_1_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "a.lfr"
    ticks = three_blocks(path)
    content = path.read_bytes()
    facts = {name: value for name, value in asdict(FACTS).items() if name != "host"}
    text = json.dumps(facts).encode()
    blocks = content[block_starts(content)[0] :]
    path.write_bytes(FILE_HEADER.pack(MAGIC, 1, len(text), zlib.crc32(text)) + text + blocks)
    assert read(path) == (ticks, [])


def test_of_a_recording_of_several_hosts_those_of_the_first_are_read(tmp_path: Path) -> None:
    """The format has blocks of another host, with times of its clock; no writer makes them."""
    path = tmp_path / "a.lfr"
    here, there = replace(FACTS, host="here"), replace(FACTS, host="there", cpus=64)
    writer = FrameWriter(path, here)
    for at_s, facts in ((1.0, here), (900.0, there), (901.0, there), (2.0, here)):
        if facts == there:
            text = json.dumps(asdict(facts)).encode()
            record = RECORD.pack(HOST, len(text)) + text
            writer.buffer[: len(record)] = record
            writer.end = len(record)
        writer.record(at_s, at_s, [(writer.source("system:/proc/stat"), b"%d" % at_s)])
        writer.write_block()
    writer.close()
    with RecordingReader(path) as reader:
        assert [tick.monotonic_s for tick in reader.all_ticks()] == [1.0, 2.0]
        assert {tick.facts.cpus for tick in reader.all_ticks()} == {FACTS.cpus}


def test_foreign_empty_and_newer_files_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    path.write_bytes(b"")
    with pytest.raises(RecordingError, match="is empty"):
        read(path)
    path.write_bytes(b"SQLite format 3\0")
    with pytest.raises(RecordingError, match="not a recording"):
        read(path)
    path.write_bytes(FILE_HEADER.pack(MAGIC, 99, 0, 0))
    with pytest.raises(RecordingError, match="version 99"):
        read(path)
    with pytest.raises(RecordingError, match="cannot be read"):
        read(tmp_path / "absent")


def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.lfrec"
    ticks = three_blocks(path)
    with pytest.raises(RecordingError, match="cannot be created"):
        FrameWriter(path, FACTS)
    assert read(path)[0] == ticks
