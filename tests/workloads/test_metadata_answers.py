"""The case's study of growth: whole scans whose answers are compared with du and find, told in the run."""

from __future__ import annotations

import json
from pathlib import Path

import loadframe


def test_whole_scans_are_compared_with_du_and_find_and_tell_how_a_load_grows(tmp_path: Path) -> None:
    levels = "load.levels=[200,400,800,1600]"
    study = loadframe.case("metadata-index").study(which="entries", overrides=[levels, "measure.budget=40s"])
    done = loadframe.measure(study, tmp_path)
    notes = json.loads((done.run / "bench.json").read_text())["notes"]
    said = [note for note in notes if note.startswith("The database answers as du and find do")]
    assert {f"{level:,} entries" in " ".join(said) for level in (200, 400, 800, 1600)} == {True}
    windows = loadframe.windows_of_run(loadframe.open_run(done.run))
    assert {one.after for one in windows} >= {200, 400, 800, 1600}
    assert all(one.before == 0 and one.seconds > 0 for one in windows)
