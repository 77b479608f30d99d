"""What is written down has to find the path again: one that is no text is refused before anything is made there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadframe.errors import CageError, RunError
from loadframe.formats.said import why_no_text
from loadframe.host.state import scratch_directory, state_directory
from loadframe.runs.folder import RunFolder

BYTES = os.fsdecode(b"r\xffns")


def test_what_is_text(tmp_path: Path) -> None:
    assert why_no_text(tmp_path) is None
    assert why_no_text(Path("läufe")) is None
    assert r"r\udcffns" in str(why_no_text(Path(BYTES)))


def test_the_working_folder_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / BYTES).mkdir()
    monkeypatch.chdir(tmp_path / BYTES)
    assert why_no_text(Path("runs")) is not None


def test_no_run_folder_is_made_or_read_there(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not text in the encoding of file names, utf-8"):
        RunFolder.create(tmp_path / BYTES, "tiny")
    assert list(tmp_path.iterdir()) == []
    made = RunFolder.create(tmp_path / "runs", "tiny").path
    (tmp_path / "runs").rename(tmp_path / BYTES)
    with pytest.raises(RunError, match="Choose a path in plain letters"):
        RunFolder.open(tmp_path / BYTES / made.name)


def test_neither_state_nor_temporary_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their records would be refused as damaged by the command that has to clean up."""
    monkeypatch.setenv("LOADFRAME_SCRATCH", str(tmp_path / BYTES))
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / BYTES))
    for folder in (scratch_directory, state_directory):
        with pytest.raises(CageError, match="not text"):
            folder()
    assert list(tmp_path.iterdir()) == []
