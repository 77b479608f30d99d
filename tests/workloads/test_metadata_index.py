"""What metadata-index does beyond the contract: its tree, the state that a step begins with, and what it checks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from loadframe.errors import StudyError, WorkloadError
from loadframe.host.privilege import US
from loadframe.host.processes import Allowance
from loadframe.model import Endpoint, SettingValue
from loadframe.workloads import registry
from loadframe_index.metadata_index import MetadataIndex, database_of
from loadframe_index.store import Batch, Store, connect

SOON_S = 60.0


@pytest.fixture
def endpoint(tmp_path: Path) -> Endpoint:
    path = tmp_path / "entries.db"
    path.touch()
    return Endpoint("sqlite", str(path), {"pragmas": '{"synchronous": "OFF"}'})


@pytest.fixture
def store(endpoint: Endpoint) -> Iterator[Store]:
    with closing(connect(database_of(endpoint))) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "steps"


def made(endpoint: Endpoint, axis: str = "entries", **options: SettingValue) -> MetadataIndex:
    workload = registry.make("metadata-index", options, Allowance(US), axis=axis)
    assert isinstance(workload, MetadataIndex)
    workload.install(endpoint)
    return workload


def step(workload: MetadataIndex, endpoint: Endpoint, level: float, folder: Path, seconds: float = 0.3) -> int:
    """One step without the check after it; how many requests it had."""
    workload.set_level(endpoint, level)
    at = folder / str(len(list(folder.iterdir()))) if folder.exists() else folder / "0"
    at.mkdir(parents=True)
    driver = workload.start(endpoint, level, at, seconds)
    try:
        assert driver.wait(SOON_S)
        return len(driver.requests())
    finally:
        driver.kill()


def test_a_step_of_entries_is_one_scan_of_a_tree_of_that_size(endpoint: Endpoint, store: Store, folder: Path) -> None:
    workload = made(endpoint)
    for level in (200, 50, 200):
        assert step(workload, endpoint, level, folder) == level == store.count()
        workload.after_step(endpoint)


@pytest.mark.long
def test_a_step_begins_with_an_empty_database_or_with_the_tree_in_it(
    endpoint: Endpoint, store: Store, folder: Path
) -> None:
    empty = made(endpoint, "scan_threads", entries=300)
    step(empty, endpoint, 1, folder)
    empty.after_step(endpoint)
    empty.set_level(endpoint, 1)
    assert store.count() == 0
    indexed = made(endpoint, "scan_threads", entries=300, start="indexed")
    for _ in range(2):
        step(indexed, endpoint, 1, folder)
        result = json.loads(max(folder.glob("*/result.json"), key=os.path.getmtime).read_text())
        assert result["new"] == 0 < result["unchanged"]
        indexed.after_step(endpoint)
        assert store.count() == 300


def test_what_is_lost_is_told(endpoint: Endpoint, store: Store, folder: Path) -> None:
    workload = made(endpoint)
    step(workload, endpoint, 100, folder)
    store.apply(Batch(removed=[b"d0000000"], seen_ns=store.last_seen_ns()))
    with pytest.raises(WorkloadError, match="99 of 100 entries are not there") as caught:
        workload.after_step(endpoint)
    assert caught.value.remedy


def test_other_options_go_on_with_the_same_tree(endpoint: Endpoint, store: Store, folder: Path) -> None:
    workload = made(endpoint, "scanners", entries=150, start="indexed")
    step(workload, endpoint, 1, folder)
    workload.after_step(endpoint)
    seen = {row[5] for row in store.rows()}
    other = workload.with_options({"db_threads": 2, "batch": 10})
    assert (other.options.db_threads, other.options.batch, other.options.entries) == (2, 10, 150)
    other.set_level(endpoint, 2)
    assert store.count() == 150, "the tree is still in the database"
    step(other, endpoint, 2, folder)
    other.after_step(endpoint)
    assert {row[5] for row in store.rows()} == seen, "the inodes are those of the same files"
    assert other.axes == workload.axes
    with pytest.raises(StudyError, match="db_threads"):
        workload.with_options({"db_threads": 0})


def test_other_indexes_make_the_tables_again(endpoint: Endpoint, store: Store, folder: Path) -> None:
    workload = made(endpoint, "scanners", entries=50, start="indexed", indexes="none")
    step(workload, endpoint, 1, folder)
    workload.after_step(endpoint)
    workload.with_options({"indexes": "all"}).set_level(endpoint, 1)
    assert store.count() == 0
    step(workload.with_options({"indexes": "all"}), endpoint, 1, folder)
    assert store.count() == 50


def test_a_tree_of_the_users_is_read_and_nothing_else(
    endpoint: Endpoint, store: Store, folder: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "mine"
    (tree / "below").mkdir(parents=True)
    (tree / "below" / "file").write_text("content")
    before = {path: path.lstat().st_ctime_ns for path in [tree, *tree.rglob("*")]}
    workload = made(endpoint, "scanners", tree=str(tree))
    step(workload, endpoint, 2, folder)
    workload.after_step(endpoint)
    assert {row[2] for row in store.rows()} == {b"", b"below", b"below/file"}
    assert {path: path.lstat().st_ctime_ns for path in [tree, *tree.rglob("*")]} == before


@pytest.mark.parametrize(("level", "fits"), [(20, True), (19, True), (2, False), (1000, False)])
def test_a_tree_of_the_users_has_one_size_and_other_levels_are_refused(
    endpoint: Endpoint, folder: Path, tmp_path: Path, level: int, fits: bool
) -> None:
    """Each level was told as the size of the tree, with its rate."""
    tree = tmp_path / "mine"
    tree.mkdir()
    for number in range(19):
        (tree / str(number)).touch()
    workload = made(endpoint, "entries", tree=str(tree))
    step(workload, endpoint, level, folder)
    if fits:
        workload.after_step(endpoint)
        assert [(one.load, one.equal) for one in workload.answers()] == [(level, True)]
    else:
        with pytest.raises(StudyError, match="has 20") as caught:
            workload.after_step(endpoint)
        assert "levels = [20]" in caught.value.remedy


@pytest.mark.parametrize("tree", ["relative", "/not/there", "/etc/passwd"])
def test_a_tree_that_is_none_is_refused_and_named(endpoint: Endpoint, tree: str) -> None:
    with pytest.raises(StudyError, match=tree) as caught:
        made(endpoint, tree=tree)
    assert caught.value.remedy


def test_a_tree_that_is_a_link_is_refused_with_what_it_leads_to(endpoint: Endpoint, tmp_path: Path) -> None:
    """As /bin is on most machines. The scan would have ended with "Not a directory"."""
    (tmp_path / "files").mkdir()
    (tmp_path / "link").symlink_to("files")
    with pytest.raises(StudyError, match="is a symbolic link") as caught:
        made(endpoint, tree=str(tmp_path / "link")).install(endpoint)
    assert str(tmp_path / "files") in caught.value.remedy


def test_a_password_is_in_no_file_and_no_argument(endpoint: Endpoint, folder: Path) -> None:
    workload = made(endpoint, "scanners", entries=20_000)
    folder.mkdir()
    driver = workload.start(endpoint, 1, folder, SOON_S)
    try:
        (pid,) = driver.pids()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"loadframe_index" in command and endpoint.address.encode() not in command
        assert all(endpoint.address.encode() not in path.read_bytes() for path in folder.iterdir())
    finally:
        driver.kill()
        workload.after_step(endpoint)
