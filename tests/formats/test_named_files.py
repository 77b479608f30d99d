"""What the user names is read up to its bound, whatever it is, and none of it is waited for without end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from loadframe.formats import named_files
from loadframe.formats.named_files import read_up_to


def test_one_byte_more_than_the_bound_tells_that_there_is_more(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_up_to(tmp_path / "file", 5) == b"12345"
    assert read_up_to(tmp_path / "file", 3) == b"1234"
    assert len(read_up_to(Path("/dev/zero"), 10)) == 11


def test_a_name_that_no_file_can_have_is_an_os_error() -> None:
    with pytest.raises(OSError, match="null byte"):
        read_up_to(Path("a\0b"), 5)
    with pytest.raises(OSError, match="too long"):
        read_up_to(Path("a" * 5000), 5)


def test_a_pipe_that_no_process_writes_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_files, "PATIENCE_S", 0.0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no process writes into this pipe"):
        read_up_to(tmp_path / "pipe", 5)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"load,throughput\n",))
    writer.start()
    assert read_up_to(tmp_path / "pipe", 100) == b"load,throughput\n"
    writer.join()


def test_what_a_process_substitution_gives_is_read(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"value\n1\n")
    os.close(writing)
    assert read_up_to(Path(f"/proc/self/fd/{reading}"), 100) == b"value\n1\n"
    os.close(reading)
