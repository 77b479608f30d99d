"""Scores of forecasts outlive commands, and no forecast counts twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.errors import RunError
from loadframe.experiments import forecasting
from loadframe.model import Scored

ONE, TWO = Scored(8, 80, 70, 90, 85, True), Scored(16, 150, 140, 160, 100, False)


def test_what_was_kept_is_read_back_once(tmp_path: Path) -> None:
    assert forecasting.read_scores(tmp_path) == []
    forecasting.add_scores(tmp_path, "a", [ONE, TWO])
    forecasting.add_scores(tmp_path, "b", [ONE])
    forecasting.add_scores(tmp_path, "a", [TWO])
    assert forecasting.read_scores(tmp_path) == [ONE, TWO, ONE]


def test_a_torn_line_is_left_out_and_a_foreign_one_refused(tmp_path: Path) -> None:
    forecasting.add_scores(tmp_path, "a", [ONE])
    path = tmp_path / forecasting.SCORES
    path.write_text(path.read_text() + '{"schema": "loadf')
    assert forecasting.read_scores(tmp_path) == [ONE]
    path.write_text('{"schema": "loadframe.step/1"}\n')
    with pytest.raises(RunError, match="line 1"):
        forecasting.read_scores(tmp_path)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="LOADFRAME_STATE"):
        forecasting.add_scores(tmp_path / "nowhere", "a", [ONE])
