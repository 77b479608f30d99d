"""The case's study of growth: whole scans whose answers are compared with du and find, told in the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import loadframe
from loadframe_watch.api import windows_of_run


@pytest.mark.long
def test_whole_scans_are_compared_with_du_and_find_and_tell_how_a_load_grows(tmp_path: Path) -> None:
    levels = "load.levels=[200,400,800,1600]"
    study = loadframe.case("metadata-index").study(which="entries", overrides=[levels, "measure.budget=40s"])
    done = loadframe.measure(study, tmp_path)
    told = json.loads((done.run / "bench.json").read_text())["answers"]
    assert sorted(one["load"] for one in told) == [200, 400, 800, 1600]
    assert sorted(one.load for one in done.answers if one.equal) == [200, 400, 800, 1600]
    for one in done.answers:
        assert {each.answer: each.target for each in one.answers}["entries"] == one.load
        assert not any("du and find" in warning for warning in done.warnings), "what is as it should be is no warning"
    windows = windows_of_run(loadframe.open_run(done.run))
    assert max(one.after for one in windows) == pytest.approx(1600), "four sizes are no law: slices of the largest"
    assert min(one.before for one in windows) == 0
    assert all(one.seconds > 0 for one in windows)
