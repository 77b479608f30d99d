"""Of shared memory only what a dead server of a lease has left is removed."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from loadframe.host import shared_memory
from loadframe.host.shared_memory import Segment, listed, named_segment, segments

PID_FILE = b"4619\n/data\n1790000000\n5432\n/run\n\n  1142532    688132\nready   \n"
LISTING = (
    "  key  shmid perms size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime\n"
    "    1 688132   600   56  4619  4700      0   106   110   106   110 1790000000 1790000001\n"
)


@pytest.mark.parametrize("text", [b"", b"1\n2\n", PID_FILE.replace(b"688132", b"x"), PID_FILE.replace(b"8", b"8" * 20)])
def test_a_file_that_names_no_segment(text: bytes) -> None:
    assert named_segment(text) is None


def test_the_segment_is_the_one_that_the_server_has_written_down(tmp_path: Path) -> None:
    (tmp_path / "shm").write_text(LISTING)
    assert named_segment(PID_FILE) == 688132
    assert segments(tmp_path / "shm") == [Segment(688132, 56, 0, 106)]
    assert segments(tmp_path / "none") == []


def test_pieces_in_use_are_listed_and_nothing_of_another_form() -> None:
    items = [(8, 2), (10, 0), (12, 1)]
    body = b"".join(struct.pack("=II32x", *each) for each in items)
    content = struct.pack("=III4x", shared_memory.LIST_MAGIC, 3, 64) + body
    assert listed(content) == [8, 12]
    assert listed(struct.pack("=III4x", 1, 3, 64) + body) == []
    assert listed(content[:20]) == []
    assert listed(b"") == []


@pytest.mark.parametrize(
    "change", [{"attached": 1}, {"size_bytes": 57}, {"uid": 1}, {"id": 7}, {"inode": 1}, {"version": "13"}]
)
def test_what_is_not_a_dead_servers_own_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, int | str]
) -> None:
    assert _removed(tmp_path / "own", monkeypatch, {}) == [688132, 8, 16]
    assert _removed(tmp_path / "other", monkeypatch, change) == []


def _removed(place: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, int | str]) -> list[int]:
    data, shared = place / "postgres/data", place / "shm"
    data.mkdir(parents=True)
    shared.mkdir()
    (data / "postmaster.pid").write_bytes(PID_FILE)
    (data / "PG_VERSION").write_text(f"{change.get('version', 15)}\n")
    (shared / "PostgreSQL.16").write_bytes(
        struct.pack("=III4x", shared_memory.LIST_MAGIC, 2, 64) + struct.pack("=II32xII32x", 8, 1, 99, 1)
    )
    (shared / "PostgreSQL.8").touch()
    (shared / "PostgreSQL.10").touch()
    found = {"id": 688132, "size_bytes": 56, "attached": 0, "uid": os.geteuid()} | {
        name: value for name, value in change.items() if name in ("id", "size_bytes", "attached", "uid")
    }
    own = data.lstat()
    header = shared_memory.HEADER.pack(
        shared_memory.HEADER_MAGIC, 4619, 56, 0, 16, 0, own.st_dev, int(change.get("inode", own.st_ino))
    )
    forgotten: list[int] = []
    monkeypatch.setattr(shared_memory, "FOLDER", shared)
    monkeypatch.setattr(shared_memory, "segments", lambda _: [Segment(**found)])  # type: ignore[arg-type]
    monkeypatch.setattr(shared_memory, "bytes_of", lambda _: header)
    monkeypatch.setattr(shared_memory, "forget", lambda segment: not forgotten.append(segment.id))
    before = {path.name for path in shared.iterdir()}
    shared_memory.remove_left("another", place)
    gone = before - {path.name for path in shared.iterdir()}
    return [*forgotten, *sorted(int(name.partition(".")[2]) for name in gone)]
