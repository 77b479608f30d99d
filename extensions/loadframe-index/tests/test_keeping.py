"""The program that keeps a database current: what it leaves behind, and that nothing of it stays."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

import tree_churn
from change_lines import line_of
from loadframe.host.environment import python
from loadframe.workloads.request_log import RECORD
from loadframe_index.config import RESULT, STATISTICS
from loadframe_index.entries import Change
from loadframe_index.keeping import Keeping
from loadframe_index.store import Store, connect
from tree_churn import Churn, changing, permit
from waiting import await_that
from whole_tree import everything

PROGRAM = tuple(python("loadframe_index.keeping"))


def started(database: dict[str, str], tree: Path, folder: Path, **options: Any) -> subprocess.Popen[str]:
    folder.mkdir()
    keeping = Keeping(tree=str(tree), folder=str(folder), database=database, **options)
    (folder / "config.json").write_text(keeping.text())
    pipe = subprocess.PIPE
    return subprocess.Popen([*PROGRAM, str(folder / "config.json")], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def begin(running: subprocess.Popen[str]) -> None:
    await_ready(running)
    go(running)


def await_ready(running: subprocess.Popen[str]) -> None:
    assert running.stdout
    assert running.stdout.readline() == "ready\n", running.communicate()


def go(running: subprocess.Popen[str]) -> None:
    assert running.stdin
    running.stdin.write(f"{time.monotonic()!r}\n")
    running.stdin.flush()


@pytest.mark.long
@pytest.mark.parametrize("log", ["auto", "inotify", "injected"])
def test_changes_are_applied_while_they_are_made(
    database: dict[str, str], store: Store, tree: Path, tmp_path: Path, log: str
) -> None:
    permit(tree)
    churn = Churn(tree, seed=1)
    for _ in range(100):
        churn.change()
    if log == "injected":  # it makes records over entries that the database has
        running = started(database, tree, tmp_path / "first", log="inotify", seconds=0.1)
        begin(running)
        running.communicate(timeout=60)
    running = started(database, tree, tmp_path / "run", log=log, change_rate=300.0, seconds=1.5, seed=2, drain=True)
    await_ready(running)
    there = set(tree.iterdir())
    with changing(tree, 300.0, seed=2) if log != "injected" else nullcontext():
        if log != "injected":
            await_that(lambda: set(tree.iterdir()) != there, "the tree changes", of=running)
        go(running)
        await_that(lambda: (tmp_path / "run" / RESULT).exists(), "the time is up", of=running)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 0, said
    told = json.loads((tmp_path / "run" / RESULT).read_text())
    assert told["log"] in ("fanotify", "inotify") if log == "auto" else told["log"] == log
    assert told["applied"] + told["pending"] > 0 and told["lost"] == []
    assert everything(store, tree).equal, everything(store, tree)
    lines = [json.loads(line) for line in (tmp_path / "run" / STATISTICS).read_text().splitlines()]
    assert {line.get("stage", line.get("log")) for line in lines} == {"GET_INFO_FS", "DB_APPLY", told["log"]}
    requests = list(RECORD.iter_unpack((tmp_path / "run/requests-0.log").read_bytes()))
    assert len(requests) == lines[-1]["applied"] > 0 and lines[-1]["pending"] == 0
    assert all(latency_ms >= 0 for _, latency_ms, *_ in requests)


@pytest.mark.long
def test_a_recorded_log_is_followed_and_read_on_by_the_next_one(
    database: dict[str, str], store: Store, tree: Path, tmp_path: Path
) -> None:
    log, told = tmp_path / "changes", list[int]()
    options: dict[str, Any] = {"log": "recorded", "records": str(log), "seconds": 0.3, "drain": True}
    for number, name in enumerate(("one", "two")):
        (tree / name).touch()
        with log.open("ab") as file:
            file.write(line_of(Change("create", name.encode(), number=number + 1, time_s=time.time())))
        running = started(database, tree, tmp_path / name, **options)
        begin(running)
        _, said = running.communicate(timeout=60)
        assert running.returncode == 0, said
        told.append(len((tmp_path / name / "requests-0.log").read_bytes()) // RECORD.size)
        assert everything(store, tree).equal
    assert told == [1, 1] and store.acknowledged("recorded") == 2


@pytest.mark.parametrize("said", ["", "\n"])
def test_a_person_who_starts_it_need_not_tell_the_instant(
    sqlite_database: dict[str, str], tree: Path, tmp_path: Path, said: str
) -> None:
    with closing(connect(sqlite_database)) as store:
        store.create()
    running = started(sqlite_database, tree, tmp_path / "run", log="inotify", seconds=0.1)
    out, error = running.communicate(said, timeout=60)
    assert (running.returncode, out, error) == (0, "ready\n", "")


def test_an_instant_that_is_none_is_said_in_one_line(
    sqlite_database: dict[str, str], tree: Path, tmp_path: Path
) -> None:
    with closing(connect(sqlite_database)) as store:
        store.create()
    running = started(sqlite_database, tree, tmp_path / "run", log="inotify", seconds=0.1)
    _, error = running.communicate("soon\n", timeout=60)
    assert running.returncode == 1 and error.count("\n") == 1 and "'soon'" in error


def test_what_refuses_is_said_in_one_line(database: dict[str, str], tree: Path, tmp_path: Path) -> None:
    running = started(database, tree, tmp_path / "run", log="injected", change_rate=5.0)
    out, said = running.communicate(timeout=60)
    assert running.returncode == 1 and out == ""
    assert said.startswith("FATAL MachineError: Records cannot be injected over 0 entries at 5/s")


def test_changes_end_with_who_asked_for_them(tree: Path) -> None:
    permit(tree)
    churning = subprocess.Popen(
        [sys.executable, "-P", tree_churn.__file__, str(tree), "200", "1"], stdin=subprocess.PIPE
    )
    await_that(lambda: len(list(tree.iterdir())) > 1, "it changes the tree", of=churning)
    churning.communicate(timeout=60)
    assert churning.returncode == 0
