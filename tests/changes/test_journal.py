"""Every change is written down before it is made, read back after, and never lost sight of."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadframe.changes.journal import Journal, differences, read, runs_with_changes, standing
from loadframe.errors import TargetError
from loadframe.model import SettingValue, TargetState
from loadframe.runs.folder import RunFolder

START = TargetState({"cache": 64, "mode": "a"}, {"RLIMIT_NOFILE": 1024})
LARGER = TargetState({"cache": 400, "mode": "a"}, {"RLIMIT_NOFILE": 4096})


class Cutting:
    """A target that gives at most 300 and looks at the journal while it is changed."""

    kind = "simulated"

    def __init__(self, run: RunFolder, *, fails: bool = False) -> None:
        self.run = run
        self.fails = fails
        self.seen: list[str] = []
        self.state = START

    def apply(self, state: TargetState) -> None:
        self.seen = [entry.phase for entry in read(self.run.path)]
        if self.fails:
            raise TargetError("it will not start")
        self.state = state

    def effective(self) -> dict[str, SettingValue]:
        return {"cache": min(int(self.state.settings["cache"]), 300), **self.state.limits}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "study")


def journal(run: RunFolder, target: Cutting) -> Journal:
    return Journal(run, target)  # type: ignore[arg-type]


def test_intents_are_on_disk_before_anything_is_changed(run: RunFolder) -> None:
    target = Cutting(run)
    journal(run, target).go("B", START, LARGER)
    assert target.seen == ["intent", "intent"]


def test_what_was_changed_back_stands_no_more(run: RunFolder) -> None:
    """A remedy that was tried and not kept; one of its settings had the target's own default before."""
    target, other = Cutting(run), TargetState({**LARGER.settings, "pool": 4}, LARGER.limits)
    book = journal(run, target)
    book.go("B", START, other)
    assert {entry.setting for entry in standing(read(run.path))} == {"cache", "pool", "RLIMIT_NOFILE"}
    book.go("A", other, START)
    assert standing(read(run.path)) == []
    book.go("C", START, LARGER)
    assert {entry.setting for entry in standing(read(run.path))} == {"cache", "RLIMIT_NOFILE"}


def test_what_was_read_back_stands_beside_what_was_asked_for(run: RunFolder) -> None:
    journal(run, Cutting(run)).go("B", START, LARGER)
    applied = {entry.setting: entry for entry in read(run.path) if entry.phase == "applied"}
    assert (applied["cache"].before, applied["cache"].after, applied["cache"].read_back) == (64, 400, 300)
    assert set(applied) == {"cache", "RLIMIT_NOFILE"}


def test_a_change_that_fails_is_said_to_have_failed(run: RunFolder) -> None:
    with pytest.raises(TargetError):
        journal(run, Cutting(run, fails=True)).go("B", START, LARGER)
    assert [entry.phase for entry in read(run.path)] == ["intent", "intent", "failed", "failed"]
    assert standing(read(run.path)) == []


def test_limits_of_the_process_come_before_the_settings_that_need_them() -> None:
    assert [change.layer for change in differences(START, LARGER)] == ["process", "server"]
    back = differences(LARGER, TargetState())
    assert {change.setting: change.after for change in back} == {"RLIMIT_NOFILE": "", "cache": "", "mode": ""}
    assert differences(START, START) == []


def test_after_a_kill_the_journal_shows_what_stood(run: RunFolder) -> None:
    book = journal(run, Cutting(run))
    book.go("B", START, LARGER)
    assert {entry.setting for entry in standing(read(run.path))} == {"cache", "RLIMIT_NOFILE"}
    path = run.path / "changes.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    assert {entry.setting for entry in standing(read(run.path))} == {"cache", "RLIMIT_NOFILE"}


def test_with_the_target_everything_has_ended(run: RunFolder) -> None:
    book = journal(run, Cutting(run))
    book.go("B", START, LARGER)
    book.close(LARGER, START)
    assert standing(read(run.path)) == []
    assert runs_with_changes(run.path.parent) == [run.path]
