"""What benchmarks/tuning_live.py needs is looked for before anything is measured."""

from __future__ import annotations

import sys

import pytest

import loadframe_tune
import tuning_live


class MeasuredError(Exception):
    """It began to search."""


def test_a_program_that_is_missing_is_told_before_the_first_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object) -> None:
        raise MeasuredError

    monkeypatch.setattr(loadframe_tune, "tune", search)
    monkeypatch.setattr(tuning_live.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["tuning_live.py"])
    with pytest.raises(SystemExit, match="mysqltuner is not installed"):
        tuning_live.main()
    monkeypatch.setattr(sys, "argv", ["tuning_live.py", "--without", "mysqltuner"])
    with pytest.raises(MeasuredError):
        tuning_live.main()
