"""The cases are valid studies in every profile, and the code that solves them knows none of their answers."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from alone import of_studies
from loadframe.bench.checking import check_study
from loadframe.errors import MissingTool, StudyError
from loadframe.study.cases import PROFILES, all_cases, find
from sources import modules

ROOT = Path(__file__).resolve().parents[2]
CASES = [case.name for case in all_cases()]
WITH_EXTENSIONS = [
    pytest.param(case.name, marks=of_studies(*(tomllib.loads(path.read_text()) for path in case.studies.values())))
    for case in all_cases()
]


def test_the_cases_of_this_issue_are_there() -> None:
    assert {"job-queue", "render-farm", "bulk-ingest", "oltp-ladder", "cluster-ladder"} <= set(CASES)


def test_a_case_may_carry_out_several_studies() -> None:
    assert find("bulk-ingest").main == ("sizes", "pipelines")
    assert find("render-farm").main == ("study",)


@pytest.mark.parametrize("name", WITH_EXTENSIONS)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_study_of_every_profile_is_valid(name: str, profile: str) -> None:
    case = find(name)
    for which in case.studies:
        study = case.study(profile=profile, which=which)
        try:
            check_study(study)
        except MissingTool as missing:  # it is the last thing that is asked
            assert study.target.kind == "ndb-sql", "the programs of all others are in packages that CI has"
            assert "scripts/build-mysql-cluster" in missing.remedy or "scripts/unpack-mysql" in missing.remedy


@pytest.mark.parametrize("name", CASES)
def test_profiles_name_studies_that_exist(name: str) -> None:
    case = find(name)
    for profile, changes in case.profiles.items():
        assert profile.removesuffix("-fleet") in PROFILES
        assert set(changes) <= set(case.studies)


def test_over_a_fleet_the_quick_profile_has_more_time_unless_it_is_told_otherwise() -> None:
    case = find("media-cache")
    here, over = (case.study(profile="quick", over_fleet=far) for far in (False, True))
    assert over.measure.budget == 250 > here.measure.budget and over.levels == here.levels
    told = case.study(profile="quick", over_fleet=True, overrides=["measure.budget=33s"])
    assert told.measure.budget == 33
    assert case.study(over_fleet=True) == case.study()


@pytest.mark.parametrize("name", CASES)
def test_quick_fits_into_two_minutes(name: str) -> None:
    case = find(name)
    assert sum(case.study(profile="quick", which=which).measure.budget for which in case.main) < 120


@pytest.mark.parametrize("name", CASES)
def test_every_case_tells_its_story_and_has_a_known_answer(name: str) -> None:
    case = find(name)
    assert "known answer" in case.readme().lower()
    expected = tomllib.loads((case.folder / "expected.toml").read_text())
    assert expected["finding"] if case.verb == "investigate" else expected["kept"] + expected["without_gain"]


def test_no_rule_reads_the_name_of_a_case() -> None:
    """Case names may stand in the list of workloads, nowhere else in the program; expected answers are never read."""
    allowed = {
        Path("workloads/registry.py"),
        Path("workloads/job_queue.py"),
        Path("cli/case.py"),
        Path("entry_points.py"),
    }
    for module, path in modules():
        relative = Path(module)
        text = path.read_text()
        assert "expected.toml" not in text
        if relative in allowed or relative.parts[0] in ("workloads", "loadframe_bulk", "loadframe_index", "cases"):
            continue
        for name in CASES:
            assert not re.search(rf"[\"']{re.escape(name)}[\"']", text), f"{relative} names the case {name}"


def test_unknown_cases_and_studies_are_refused_with_what_there_is() -> None:
    with pytest.raises(StudyError, match="no case 'render-fram'") as caught:
        find("render-fram")
    assert "render-farm" in caught.value.remedy
    with pytest.raises(StudyError, match="no study 'main'") as caught:
        find("render-farm").study(which="main")
    assert "burst" in caught.value.remedy
