"""A tree of which the kernel has nothing in memory: what is permitted, and what is said where it is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadframe.errors import StudyError
from loadframe_index import metadata_cold


def test_where_it_is_not_permitted_the_option_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_cold, "DROP_CACHES", tmp_path / "not there" / "drop_caches")
    with pytest.raises(StudyError, match=r"workload\.options\.cold = true: the kernel does not forget") as caught:
        metadata_cold.forget(tmp_path)
    assert "root" in caught.value.remedy


def test_contents_stay_where_metadata_are_in_blocks_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is asked for all only where its file system keeps metadata otherwise."""
    asked = tmp_path / "drop_caches"
    monkeypatch.setattr(metadata_cold, "DROP_CACHES", asked)
    monkeypatch.setattr(metadata_cold, "IN_BLOCKS_OF_THE_DISK", frozenset())
    assert "contents of files" in metadata_cold.forget(tmp_path)
    assert asked.read_text() == "3"


def test_a_disk_whose_blocks_may_not_be_forgotten_takes_all_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "drop_caches"
    monkeypatch.setattr(metadata_cold, "DROP_CACHES", asked)

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(metadata_cold.fcntl, "ioctl", refused)
    metadata_cold.forget(tmp_path)
    assert asked.read_text() == "3"


def test_a_database_that_is_a_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not through what another user may have put in the place of its journal."""
    monkeypatch.setattr(metadata_cold, "DROP_CACHES", tmp_path / "drop_caches")
    monkeypatch.setattr(metadata_cold, "IN_BLOCKS_OF_THE_DISK", frozenset())
    database, secret = tmp_path / "entries.db", tmp_path / "secret"
    for path in (database, secret):
        path.write_bytes(b"x" * 100_000)
        os.utime(path, ns=(0, 1))  # relatime: a read changes the time of the last access
    Path(f"{database}-wal").symlink_to(secret)
    os.mkfifo(f"{database}-journal")  # without a writer
    metadata_cold.forget(tmp_path, str(database))
    assert database.stat().st_atime_ns > 1
    assert secret.stat().st_atime_ns == 0
