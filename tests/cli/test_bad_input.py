"""Bad input: a clear message with what to do next, exit 1 (2 for usage), no traceback, nothing lost, nothing left."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadframe.host.state import state_directory

Command = Callable[..., object]


def refused(result: object, *words: str, code: int = 1) -> None:
    assert result.code == code, result.err  # type: ignore[attr-defined]
    for word in words:
        assert word in result.err, result.err  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _nothing_left() -> object:
    yield
    leases = list((state_directory() / "leases").glob("*.json")) if (state_directory() / "leases").exists() else []
    assert leases == []


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("measure.windw=2s", ["--set measure.windw", "unknown key", "window"]),
        ("measure.window=2", ["--set measure.window", "unit"]),
        ("load.levels=[]", ["no levels"]),
        ("load.levels=[1.5]", ["1.5", "whole"]),
        ("load.levels=[100000]", ["100000", "1024"]),
        ("load.axis=jobs", ["'jobs'", "concurrency"]),
        ("target.kind=oracle", ["oracle", "sqlite"]),
        ("target.kind=mariadb", ["job-queue", "mariadb", "sqlite"]),
        ("target.settings.jurnal_mode=wal", ["jurnal_mode", "journal_mode"]),
        ("target.settings.journal_mode=paper", ["paper", "WAL"]),
        ("workload.kind=farm", ["farm", "render-farm"]),
        ("workload.options.backlog=-1", ["backlog", "-1"]),
        ("workload.options.backlgo=1", ["backlgo", "backlog"]),
        ("cage.cpus=0-999", ["999"]),
        ("cage.cpus=all", ["all"]),
        ("cage.memory=2", ["cage.memory", "512MiB"]),
        ("cage.memry=2GiB", ["memry", "memory"]),
        ("cage.shard.memory=2GiB", ["sqlite has no component 'shard'"]),
        ("cage.driver.memory=2GiB", ["inside the driver"]),
        ("cage.open_files=100", ["open_files", "sqlite"]),
        pytest.param(
            "measure.cold=true", ["sqlite is not a cache", "varnish"], marks=pytest.mark.extension("loadframe_caches")
        ),
    ],
)
def test_a_wrong_study_is_refused_before_anything_starts(
    loadframe: Command, study: Path, tmp_path: Path, override: str, words: list[str]
) -> None:
    refused(loadframe("investigate", str(study), "--set", override), *words)
    assert not (tmp_path / "runs").exists()


def test_what_is_no_override_is_a_fault_of_the_command_line(loadframe: Command, study: Path) -> None:
    refused(loadframe("investigate", str(study), "--set", "nonsense"), "section.key=value", code=2)


def test_with_json_the_error_is_an_object_too(loadframe: Command, study: Path) -> None:
    result = loadframe("measure", str(study), "--json", "--set", "load.levels=[]")
    assert result.code == 1  # type: ignore[attr-defined]
    assert result.json["schema"] == "loadframe.error/1"  # type: ignore[attr-defined]
    assert "no levels" in result.json["message"]  # type: ignore[attr-defined]


def test_a_broken_file_names_its_line(loadframe: Command, study: Path) -> None:
    study.write_text(study.read_text().replace('axis = "concurrency"', "axis = concurrency"))
    refused(loadframe("measure", str(study)), "not valid TOML", "line")


def test_missing_files_and_folders(loadframe: Command, tmp_path: Path) -> None:
    refused(loadframe("investigate", "nowhere.toml"), "no study nowhere.toml")
    refused(loadframe("curve", "nowhere"), "no file or run folder nowhere")
    refused(loadframe("report", str(tmp_path)), "not a run folder")
    refused(loadframe("changes", "list", "nowhere"), "no run folder nowhere")
    refused(loadframe("case", "run", "render-fram"), "render-farm")
    refused(loadframe("case", "run", "job-queue", "--quick", "--full"), "--quick and --full", code=2)
    refused(loadframe("case", "run", "bulk-ingest", "--set", "load.levels=[1]"), "--study: sizes, pipelines", code=2)
    refused(loadframe("case", "run", "bulk-ingest", "--study", "speed"), "sizes, pipelines")
    refused(loadframe("no-such-verb"), "No such command", code=2)
    refused(loadframe("investigate"), "Missing argument", code=2)


def test_a_missing_program_is_named_with_its_package(loadframe: Command, tmp_path: Path) -> None:
    result = loadframe("case", "run", "render-farm", "--quick", PATH="/nonexistent")
    refused(result, "sysbench", "apt-get install")
    assert not (tmp_path / "runs").exists()


def test_runs_that_cannot_be_written(loadframe: Command, study: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(loadframe("measure", str(study), "--runs", str(tmp_path / "file")), "cannot be made", "--runs")


def test_a_scratch_folder_that_takes_nothing_says_so(loadframe: Command, study: Path) -> None:
    refused(loadframe("measure", str(study), LOADFRAME_SCRATCH="/proc"), "/proc", "LOADFRAME_SCRATCH")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(place)], check=False, capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.long
def test_a_full_disk_says_so_and_keeps_what_was_measured(loadframe: Command, study: Path, small_disk: Path) -> None:
    result = loadframe("investigate", str(study), "--runs", str(small_disk / "runs"))
    refused(result, "No space left", "--runs")
    (run,) = (small_disk / "runs").iterdir()
    refused(loadframe("report", str(run)), "No space left")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_scratch_folder_without_permission(loadframe: Command, study: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=stat.S_IRUSR)
    refused(loadframe("measure", str(study), LOADFRAME_SCRATCH=str(tmp_path / "closed")), "closed")


@pytest.mark.long
@pytest.mark.server
def test_a_server_that_will_not_start_shows_its_log(loadframe: Command) -> None:
    result = loadframe("case", "run", "render-farm", "--quick", "--set", "target.settings.innodb_page_size=3")
    refused(result, "innodb", "ERROR")


ACCOUNT = "postgres://me:s3cret-pw1@127.0.0.1:9/shop"


@pytest.mark.parametrize(
    "arguments",
    [
        ["limits", "--attach", ACCOUNT],
        ["limits", "--attach", "postgres:me:s3cret-pw1@127.0.0.1:9", "--json"],
        ["measure", "tiny.toml", "--set", f"target.attach={ACCOUNT}"],
        ["measure", "tiny.toml", "--set", "target.environment.DB_PASSWORD=s3cret-pw1", "--json"],
        ["measure", ACCOUNT],
        ["init", "--command", f"DB={ACCOUNT} no-such-program --port 80"],
        ["watch", "tiny.toml", "--webhook", "http://me:s3cret-pw1@127.0.0.1:1/"],
        ["serve", ACCOUNT],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_no_error_repeats_a_password(loadframe: Command, study: Path, arguments: list[str]) -> None:
    done = loadframe(*(str(study) if word == "tiny.toml" else word for word in arguments))
    assert done.code != 0
    assert "s3cret-pw1" not in done.out + done.err
