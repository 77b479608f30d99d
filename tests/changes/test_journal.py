"""Every change is written down before it is made, read back after, and never lost sight of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loadframe.changes.journal import FILE, Journal, Reasons, differences, not_reverted, read, runs_with_changes
from loadframe.errors import TargetError
from loadframe.model import Change, Price, Remedy, SettingValue, TargetState
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
        self.seen = [entry.status for entry in read(self.run.path)]
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
    assert {entry.setting for entry in not_reverted(read(run.path))} == {"cache", "pool", "RLIMIT_NOFILE"}
    book.go("A", other, START)
    assert not_reverted(read(run.path)) == []
    book.go("C", START, LARGER)
    assert {entry.setting for entry in not_reverted(read(run.path))} == {"cache", "RLIMIT_NOFILE"}


def test_what_was_read_back_stands_beside_what_was_asked_for(run: RunFolder) -> None:
    journal(run, Cutting(run)).go("B", START, LARGER)
    applied = {entry.setting: entry for entry in read(run.path) if entry.status == "applied"}
    assert (applied["cache"].before, applied["cache"].after, applied["cache"].read_back) == (64, 400, 300)
    assert set(applied) == {"cache", "RLIMIT_NOFILE"}


def test_a_change_that_fails_is_said_to_have_failed(run: RunFolder) -> None:
    with pytest.raises(TargetError):
        journal(run, Cutting(run, fails=True)).go("B", START, LARGER)
    assert [entry.status for entry in read(run.path)] == ["intent", "intent", "failed", "failed"]
    assert not_reverted(read(run.path)) == []


def test_limits_of_the_process_come_before_the_settings_that_need_them() -> None:
    assert [change.layer for change in differences(START, LARGER)] == ["process", "server"]
    back = differences(LARGER, TargetState())
    assert {change.setting: change.after for change in back} == {"RLIMIT_NOFILE": "", "cache": "", "mode": ""}
    assert differences(START, START) == []


def test_after_a_kill_the_journal_shows_what_stood(run: RunFolder) -> None:
    book = journal(run, Cutting(run))
    book.go("B", START, LARGER)
    assert {entry.setting for entry in not_reverted(read(run.path))} == {"cache", "RLIMIT_NOFILE"}
    path = run.path / "changes.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    assert {entry.setting for entry in not_reverted(read(run.path))} == {"cache", "RLIMIT_NOFILE"}


def test_with_the_target_everything_has_ended(run: RunFolder) -> None:
    book = journal(run, Cutting(run))
    book.go("B", START, LARGER)
    book.close(LARGER, START)
    assert not_reverted(read(run.path)) == []
    assert runs_with_changes(run.path.parent) == [run.path]


CACHE = Remedy(
    "more-tables", "a larger table cache", ("mariadb.table_open_cache",),
    (Change("process", "RLIMIT_NOFILE", 1024, 1024, needed=False), Change("server", "cache", 64, 400, why="320 jobs")),
    Price(),
)  # fmt: skip


def test_it_says_for_which_finding_and_remedy_each_change_is(run: RunFolder) -> None:
    """What the chain of a remedy does not need, and what the study itself asks for, is for no finding."""
    reasons = Reasons()
    book = Journal(run, Cutting(run), reasons=reasons)  # type: ignore[arg-type]
    reasons.note("A", "as given", START)
    reasons.note("B", CACHE.title, LARGER, CACHE)
    book.go("B", START, LARGER)
    book.go("A", LARGER, START)
    told = [(each.setting, each.finding, each.remedy, each.why) for each in read(run.path) if each.status == "intent"]
    assert told == [
        ("RLIMIT_NOFILE", "", "", "a larger table cache"),
        ("cache", "mariadb.table_open_cache", "a larger table cache", "320 jobs"),
        ("RLIMIT_NOFILE", "", "", "as given"),
        ("cache", "", "", "as given"),
    ]


def test_what_goes_on_from_a_remedy_that_was_kept_is_still_for_its_finding(run: RunFolder) -> None:
    reasons = Reasons()
    book = Journal(run, Cutting(run), reasons=reasons)  # type: ignore[arg-type]
    reasons.note("B", CACHE.title, LARGER, CACHE)
    reasons.note("C", "next", replace(LARGER, settings={**LARGER.settings, "pool": 4}))
    book.go("C", START, replace(LARGER, settings={**LARGER.settings, "pool": 4}))
    told = {each.setting: (each.remedy, each.why) for each in read(run.path)}
    assert (told["cache"], told["pool"]) == (("a larger table cache", "320 jobs"), ("", "next"))


def test_a_journal_of_the_first_version_is_read_and_goes_on(run: RunFolder) -> None:
    """That had a number and a phase, and did not say why."""
    line = (
        '{"schema":"loadframe.change/1","number":7,"phase":"intent","at":"2026-11-21T18:42:00.000+00:00",'
        '"target":"simulated","treatment":"B","layer":"server","setting":"cache","before":64,"after":400,'
        '"read_back":null,"private":true}\n'
    )
    (run.path / FILE).write_text(line)
    (old,) = read(run.path)
    assert (old.id, old.status, old.setting, old.before, old.after, old.private, old.why) == (
        7, "intent", "cache", 64, 400, True, "",
    )  # fmt: skip
    assert not_reverted([old]) == [old]
    journal(run, Cutting(run)).close(LARGER, START)
    assert [each.status for each in read(run.path)] == ["intent", "ended", "ended"]
    assert not_reverted(read(run.path)) == []
