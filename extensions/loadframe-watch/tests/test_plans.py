"""What a study says of a watch: what is asked for, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

import loadframe
from loadframe.errors import StudyError
from loadframe_watch.starting import of_study

STUDY = """
[study]
name = "shop"
question = "Does it answer?"
[target]
kind = "url"
[target.settings]
url = "http://127.0.0.1:8099"
{paths}
[workload]
kind = "http"
[load]
axis = "concurrency"
levels = [1, 2]
"""


@pytest.mark.parametrize(("paths", "asked"), [("", "/"), ('paths = "/about /"', "/about")])
def test_a_web_address_is_asked_for_its_first_path(tmp_path: Path, paths: str, asked: str) -> None:
    """It is all that a watch has of it."""
    (tmp_path / "shop.toml").write_text(STUDY.format(paths=paths), encoding="utf-8")
    study = loadframe.load_study(tmp_path / "shop.toml", [])
    unit = of_study(study).unit
    assert (unit["form"], unit["host"], unit["port"], unit["path"]) == ("http", "127.0.0.1", 8099, asked)


def test_a_unit_of_work_more_often_than_the_watch_looks_is_refused(tmp_path: Path) -> None:
    """Else it would be done less often than was said, and no word of it."""
    (tmp_path / "shop.toml").write_text(STUDY.format(paths=""), encoding="utf-8")
    study = loadframe.load_study(tmp_path / "shop.toml", ["watch.every=1s"])
    with pytest.raises(StudyError, match="due every 1 s, and the watch looks only every 10 s"):
        of_study(study)
    assert of_study(study, interval_s=1.0).every_s == 1.0
