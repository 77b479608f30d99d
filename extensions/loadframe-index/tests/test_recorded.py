"""Change logs in files: every record comes back, a torn line is waited for, and garbage says which line it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from change_lines import line_of
from loadframe.errors import MachineError
from loadframe_index.entries import KINDS, Change
from loadframe_index.recorded import Recorded, UnreadableRecordError, record_of

NAMES = st.binary(min_size=1, max_size=255).filter(
    lambda name: b"\0" not in name and b"/" not in name and name not in (b".", b"..")
)
PATHS = st.lists(NAMES, max_size=20).map(b"/".join)


FILES = st.just(b"") | st.integers(0, 2**64 - 1).map(lambda inode: b"%d" % inode)


@given(st.sampled_from(KINDS), PATHS, PATHS, st.integers(0, 2**63 - 1), st.floats(0, 1e11), FILES)
def test_a_record_comes_back(kind: str, path: bytes, to: bytes, number: int, time_s: float, file: bytes) -> None:
    change = Change(kind, path, to if kind == "rename" else b"", number, time_s, file)
    line = line_of(change)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert record_of(line) == change


WHOLE = {"number": 1, "time_s": 1.5, "kind": "create", "path": "a"}


@given(
    st.binary(max_size=80)
    | st.recursive(st.none() | st.text() | st.floats() | st.integers(), st.lists).map(repr).map(str.encode)
)
def test_garbage_is_unreadable(line: bytes) -> None:
    with pytest.raises(UnreadableRecordError):
        record_of(line)


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": -1},
        {"number": True},
        {"number": 2**63},
        {"number": "1"},
        {"time_s": None},
        {"time_s": float("nan")},
        {"time_s": -1},
        {"kind": "read"},
        {"kind": ["create"]},
        {"path": 3},
        {"path": "/etc/passwd"},
        {"path": "a/../../b"},
        {"path": "a//b"},
        {"path": "a/"},
        {"path": "a\0b"},
        {"path": "\ud800"},
        {"kind": "rename", "to": "../b"},
        {"kind": "rename"},
        {"inode": -1},
        {"inode": 2**64},
        {"inode": "7"},
    ],
)
def test_a_record_with_something_wrong_is_unreadable(wrong: dict[str, object]) -> None:
    record_of(json.dumps(WHOLE).encode())
    with pytest.raises(UnreadableRecordError):
        record_of(json.dumps(WHOLE | wrong).encode())


def test_nesting_without_end_is_unreadable() -> None:
    with pytest.raises(UnreadableRecordError):
        record_of(b"[" * 500_000)


def test_a_log_is_read_on_after_the_record_that_was_acknowledged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(line_of(Change("create", b"%d" % number, number=number)) for number in range(1, 6)))
    reader = Recorded(log, after=3)
    assert [change.number for change in reader.read(0).changes] == [4, 5]
    reader.close()


def test_a_log_whose_numbers_begin_with_0_is_read_from_there(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(line_of(Change("create", b"%d" % number, number=number)) for number in range(3)))
    reader = Recorded(log)
    assert [change.number for change in reader.read(0).changes] == [0, 1, 2]
    reader.close()


def test_a_line_without_its_end_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = line_of(Change("create", b"name", number=1))
    log.write_bytes(line[:20])
    reader = Recorded(log)
    assert reader.read(0).changes == []
    with log.open("ab") as file:
        file.write(line[20:])
    assert [change.path for change in reader.read(0).changes] == [b"name"]
    reader.close()


def test_a_line_that_is_no_record_is_told_with_its_number(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(line_of(Change("create", b"name", number=1)) + b"what?\n")
    reader = Recorded(log)
    with pytest.raises(MachineError, match="Line 2 of the change log"):
        reader.read(0)
    reader.close()
