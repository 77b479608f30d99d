"""A study is refused before anything is started where it says what would have no effect."""

from __future__ import annotations

from contextlib import suppress

import pytest

from loadframe.bench import checking
from loadframe.bench.checking import check_study
from loadframe.errors import MissingTool, StudyError
from loadframe.study import Study, parse
from loadframe.study.cases import find
from loadframe.workloads import databases


def burst(*overrides: str) -> Study:
    return find("render-farm").study(which="burst", overrides=overrides)


@pytest.mark.parametrize("stated", ["measure.window=3s", "measure.warmup=2s", "measure.warmup=auto"])
def test_a_burst_has_no_times_to_state(stated: str) -> None:
    key = stated.partition("=")[0]
    with pytest.raises(StudyError, match=f"{key} has no meaning for workload 'render-farm-burst'") as caught:
        check_study(burst(stated))
    assert "Omit it" in str(caught.value.remedy)


@pytest.mark.server
def test_the_study_that_a_run_leaves_behind_can_be_carried_out_again() -> None:
    given = burst()
    written = parse(given.as_toml())
    assert written == given
    check_study(written)


def test_times_that_are_stated_are_written_down() -> None:
    study = find("job-queue").study(overrides=["measure.window=1s", "measure.warmup=500ms"])
    written = parse(study.as_toml())
    assert (written.measure.window, written.measure.warmup) == (1.0, 0.5)
    check_study(written)


def test_a_running_server_is_loaded_only_where_what_a_killed_run_leaves_can_be_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kind from outside may say how it is attached to; its schema would be dropped as if it were MariaDB's."""
    monkeypatch.setattr(databases, "REMOVABLE", frozenset({"postgres"}))
    with pytest.raises(StudyError, match="reads a running mariadb, but cannot load it") as caught:
        check_study(burst("target.attach=/run/nowhere.sock"))
    assert "limits --attach" in caught.value.remedy


SERVICE = """
[study]
name = "slow"
question = "?"
[target]
kind = "service"
command = ["python3", "app.py", "{{port}}"]
{tables}
[workload]
kind = "http"
{think}
[load]
axis = "concurrency"
levels = {levels}
[measure]
window = "1s"
"""


def test_a_limit_whose_counters_no_one_tells_is_refused() -> None:
    limit = '[[target.limit]]\nname = "pool"\nuse = "in_use"\nceiling = 4\n'
    told = '[[target.metrics]]\njson = "http://127.0.0.1:{port}/stats"\n'
    check_study(parse(SERVICE.format(tables=told + limit, think="", levels=[1])))
    with pytest.raises(StudyError, match=r"target\.limit pool speaks of in_use, and nothing says where") as caught:
        check_study(parse(SERVICE.format(tables=limit, think="", levels=[1])))
    assert "[[target.metrics]]" in caught.value.remedy


@pytest.mark.parametrize(
    ("think", "levels", "refused"), [("1h", "[1, 2]", True), ("2s", "[4]", False), ("3s", "[2]", True)]
)
def test_users_who_think_longer_than_a_step_are_refused(think: str, levels: str, refused: bool) -> None:
    study = parse(SERVICE.format(tables="", think=f'think_time = "{think}"', levels=levels))
    if not refused:
        check_study(study)
        return
    with pytest.raises(StudyError, match="less than one request is to be expected in a window of 1 s") as caught:
        check_study(study)
    assert "more users" in caught.value.remedy


@pytest.mark.extension("loadframe_drivers", "loadframe_ndb")
def test_of_a_target_in_several_pieces_a_change_binds_the_driver_alone() -> None:
    text = find("cluster-ladder").studies["study"].read_text(encoding="utf-8")
    driver = 'cage = { driver = { cpus = "0" } }'
    given = text.replace('cage = { driver = { cpus = "1" } }', driver)
    assert driver in given
    with suppress(MissingTool):  # of its programs, which are asked for last
        check_study(parse(given))
    with pytest.raises(StudyError, match=r"changes cage\.cpus of ndb-sql, which is made of several pieces") as caught:
        check_study(parse(given.replace(driver, 'cage = { cpus = "0" }')))
    assert "settings" in caught.value.remedy


def test_a_driver_that_may_not_open_the_files_of_its_highest_level_is_told_before_the_load() -> None:
    text = SERVICE.format(tables="", think="", levels=[1, 200]) + "\n[cage.driver]\nopen_files = "
    with pytest.raises(StudyError, match="needs 832 open files for 200 clients, and its limit is 500") as caught:
        check_study(parse(f"{text}500"))
    assert "cage.driver.open_files = 832" in caught.value.remedy
    check_study(parse(f"{text}832"))


def test_clients_for_which_the_machine_has_no_local_ports_are_told_before_the_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = parse(SERVICE.format(tables="", think="", levels=[1, 200]) + "\n[cage.driver]\nopen_files = 832")
    monkeypatch.setattr(checking, "port_range", lambda: 100)
    with pytest.raises(StudyError, match="200 clients of one server need as many local ports") as caught:
        check_study(study)
    assert "net.ipv4.ip_local_port_range" in caught.value.remedy
    monkeypatch.setattr(checking, "port_range", lambda: 200)
    check_study(study)


def test_all_faults_of_a_study_are_said_at_once() -> None:
    study = find("job-queue").study(
        overrides=[
            "load.axis=rates",
            "target.settings.journal_mode=paper",
            "target.settings.bogus=1",
            "cage.open_files=100",
            "cage.cpus=4000",
            "host.settings.no_such_setting=1",
        ]
    )
    with pytest.raises(StudyError) as caught:
        check_study(study)
    for words in (
        "has no axis 'rates'",
        "journal_mode = 'paper'",
        "target.settings.bogus",
        "cage.open_files has no meaning",
        "4000",
        "no_such_setting",
        "Correct all of these.",
    ):
        assert str(caught.value).count(words) == 1, str(caught.value)
