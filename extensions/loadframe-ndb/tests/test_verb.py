"""`loadframe ndb`: what it says of a config.ini, how it ends, what it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from loadframe.cli.main import app

DATA = Path(__file__).with_name("data")
STORY, SERVER = str(DATA / "story.ini"), str(DATA / "story.cnf")
HOST = ("--cpus", "16", "--memory", "16GiB")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`loadframe ndb ARGUMENTS` in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Result:
        done = CliRunner().invoke(app, ["ndb", *arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return run


def document(done: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_storys_files_are_read_and_their_threads_shown(here: Callable[..., Result]) -> None:
    done = here(STORY, "--mysqld", SERVER, *HOST, "--bound", "mysqld=6-11", "--bound", "sysbench=12-15")
    assert done.exit_code == 0, done.output
    assert "1 data node, 1 management server, 9 API slots" in done.stdout
    assert "4 ldm on CPU 0-3; recv on CPU 5" in done.stdout
    assert "Wrong" not in done.stdout
    assert "whether a cluster starts with it" in done.stdout


def test_json_has_the_same_facts(here: Callable[..., Result]) -> None:
    shape = document(here(STORY, "--mysqld", SERVER, *HOST, "--json"))
    assert shape["schema"] == "loadframe.ndb/1"
    assert shape["refused"] is False
    assert shape["api_slots"] == 9
    assert shape["servers"] == [{"file": SERVER, "connections": 8}]
    (node,) = shape["data_nodes"]
    assert {"kind": "ldm", "count": 4, "cpus": [0, 1, 2, 3], "shared": False} in node["threads"]
    assert node["redo_bytes"] == 2**30
    assert [(one["rule"], one["line"]) for one in shape["findings"]] == [("durability", 6)]
    assert set(shape["programs"]) == {"ndb_mgmd", "ndbmtd", "ndb_mgm", "ndbd"}


def test_it_ends_with_1_where_something_is_wrong_and_writes_nothing(
    here: Callable[..., Result], tmp_path: Path
) -> None:
    done = here(STORY, *HOST, "--set", "ndbd default.DataMemory=64G", "--write", "new.ini")
    assert done.exit_code == 1
    assert "at least 64.4 GiB of memory, and localhost has 16.0 GiB" in done.stdout
    assert "new.ini is not written" in done.stderr
    assert not (tmp_path / "new.ini").exists()
    assert document(here(STORY, "--cpus", "4", "--json"))["refused"] is True


def test_what_is_written_has_the_change_and_all_else_as_it_was(here: Callable[..., Result], tmp_path: Path) -> None:
    done = here(
        STORY, *HOST, "--set", "ndbd default.DataMemory=2G", "--set", "mysqld.BatchSize=64", "--write", "new.ini"
    )
    assert done.exit_code == 0, done.output
    old, new = Path(STORY).read_text().splitlines(), (tmp_path / "new.ini").read_text().splitlines()
    assert [line for line in new if line not in old] == ["DataMemory=2G", *["BatchSize=64"] * 9]
    assert [line for line in old if line not in new] == ["DataMemory=1G"]
    assert here("new.ini", *HOST).exit_code == 0


def test_without_a_word_of_the_host_this_machine_counts_for_localhost_only(here: Callable[..., Result]) -> None:
    Path("away.ini").write_text(Path(STORY).read_text().replace("localhost", "db1.example").replace("1G", "900G"))
    done = here("away.ini")
    assert done.exit_code == 0, done.output
    assert "CPUs and memory of db1.example" in done.stdout
    Path("local.ini").write_text(Path(STORY).read_text().replace("1G", "16000G"))
    assert here("local.ini").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nowhere.ini",), 1, ["nowhere.ini cannot be read", "UTF-8"]),
        ((STORY, "--mysqld", "nowhere.cnf"), 1, ["nowhere.cnf cannot be read"]),
        ((STORY, "--set", "DataMemory=1G"), 2, ["is not a change", "ndbd default.DataMemory"]),
        ((STORY, "--set", "ndbdd.DataMemory=1G"), 1, ["no section [ndbdd]"]),
        ((STORY, "--bound", "mysqld"), 2, ["names no CPUs", "mysqld=8-11"]),
        ((STORY, "--bound", "mysqld=a-b"), 2, ["names no CPUs"]),
        ((STORY, "--bound", "=1"), 2, ["names no process", "mysqld=8-11"]),
        ((STORY, "--memory", "16"), 2, ["--memory", "64GiB"]),
        ((STORY, *HOST, "--write", "no/folder/new.ini"), 1, ["cannot be written"]),
        ((STORY, *HOST, "--write", f"{STORY}/new.ini"), 1, ["cannot be written"]),
    ],
)
def test_bad_input_says_what_to_do(
    here: Callable[..., Result], arguments: tuple[str, ...], code: int, words: list[str]
) -> None:
    done = here(*arguments)
    assert done.exit_code == code
    for word in words:
        assert word in done.stderr


def test_without_the_programs_a_start_says_how_to_have_them(
    here: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = here(STORY, *HOST, "--start")
    assert done.exit_code == 1
    assert "ndbmtd is not installed" in done.stderr
    assert "scripts/build-mysql-cluster" in done.stderr


def test_a_file_with_errors_is_not_started(here: Callable[..., Result]) -> None:
    done = here(STORY, *HOST, "--set", "ndbd default.DataMemory=64G", "--start")
    assert done.exit_code == 1
    assert "is not started: it has errors" in done.stderr


@pytest.mark.ndb
def test_a_cluster_is_started_with_the_file_and_told(here: Callable[..., Result]) -> None:
    small = ("--set", "ndbd default.DataMemory=80M", "--set", "ndbd default.LockExecuteThreadToCPU=0")
    done = here(STORY, *small, "--set", "ndbd default.MaxNoOfExecutionThreads=2", "--start", "--json")
    assert done.exit_code == 0, done.output
    start = document(done)["start"]
    assert start["version"].startswith("MySQL Cluster 9.")
    assert start["seconds"] > 0
    assert start["refused"] == ""
    (node,) = start["nodes"]
    (checked,) = document(done)["data_nodes"]
    assert node["memory_bytes"] > checked["memory_bytes"], "what the settings take is a lower bound"
    kinds = {group["kind"]: group for group in node["threads"]}
    assert kinds["ldm"]["count"] == 1
    assert kinds["ldm"]["cpus"] == [0]
    shown = here(STORY, *small, "--set", "ndbd default.MaxNoOfExecutionThreads=2", "--start")
    assert "starts with it: all data nodes on this machine, after" in shown.stdout
    assert "Not checked: whether" not in shown.stdout


@pytest.mark.ndb
def test_what_this_machine_has_not_is_said_before_anything_starts(here: Callable[..., Result]) -> None:
    done = here(STORY, *HOST, "--set", "ndbd default.LockExecuteThreadToCPU=14,15", "--start")
    assert done.exit_code == 1
    assert "It is not started, as on this machine" in done.stderr


def test_a_folder_and_a_file_that_is_no_text_are_refused(here: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "binary.ini").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in here("binary.ini").stderr
    assert "cannot be read" in here(str(tmp_path)).stderr


def test_a_study_of_a_cluster_without_data_nodes_says_what_loads_one(
    here: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "n"\nquestion = "q"\n[target]\nkind = "ndb"\n[workload]\nkind = "command"\n'
        'command = ["true"]\n[workload.options]\nloop = "closed"\n[load]\naxis = "threads"\nlevels = [1]\n'
    )
    done = CliRunner().invoke(app, ["study", "check", "study.toml"])
    assert done.exit_code == 1
    assert "cannot load a target of kind 'ndb'" in done.stderr
    assert "sharded ndb" in done.stderr
