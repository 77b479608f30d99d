"""A study that changes settings of the machine: only where it says that it may, and everything is put back."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from loadframe.bench.bench import RealBench
from loadframe.bench.bookkeeping import Bookkeeping
from loadframe.bench.checking import check_study
from loadframe.changes import host, lists
from loadframe.changes.host import Host
from loadframe.changes.journal import not_reverted, read
from loadframe.errors import ChangeError, Interrupted, StudyError
from loadframe.experiments import frame
from loadframe.experiments.climbing import LadderStates
from loadframe.experiments.side_by_side import declare
from loadframe.model import SettingValue, TargetState
from loadframe.runs.folder import RunFolder
from loadframe.study import Study, parse

STUDY = """\
[study]
name = "kernel"
question = "What does a setting of the kernel give?"
[target]
kind = "sqlite"
[workload]
kind = "job-queue"
[load]
axis = "concurrency"
levels = [1]
[measure]
warmup = "150ms"
window = "300ms"
[remedies]
allow = ["target", "host"]
[[alternative]]
name = "less-dirty"
host = { settings = { "vm.dirty_ratio" = 5 } }
"""
Opened = Callable[[Study], RunFolder]
ALSO = '[host.settings]\n"vm.swappiness" = 10\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a machine with two settings."""
    folder = tmp_path / "machine/proc/sys/vm"
    folder.mkdir(parents=True)
    for name, value in (("dirty_ratio", 20), ("dirty_bytes", 0), ("swappiness", 60)):
        (folder / name).write_text(f"{value}\n")
    monkeypatch.setattr(host, "ROOT", tmp_path / "machine")
    return tmp_path / "machine"


def declare_all(bench: RealBench) -> None:
    """The states of a study on its bench."""
    book = Bookkeeping(bench, None, None, None)  # type: ignore[arg-type]
    book.next_treatment("as given", bench.start_state)
    declare(book)


def test_a_study_brings_the_machine_from_state_to_state_and_back(root: Path, opened: Opened) -> None:
    study = parse(STUDY + ALSO)
    check_study(study)
    assert parse(study.as_toml()) == study
    run = opened(study)
    read_now = Host(root).read
    with RealBench(study, run) as bench:
        declare_all(bench)
        for name, dirty in (("A", 20), ("B", 5), ("A", 20), ("B", 5)):
            effective = bench.use(name)
            assert (effective["vm.dirty_ratio"], effective["vm.swappiness"]) == (dirty, 10)
            assert (read_now("vm.dirty_ratio"), read_now("vm.swappiness")) == (dirty, 10)
    assert (read_now("vm.dirty_ratio"), read_now("vm.swappiness")) == (20, 60)
    assert sorted(outcome.setting for outcome in bench.put_back) == ["vm.dirty_ratio", "vm.swappiness"]
    assert lists.read() == []
    told = [(entry.status, entry.setting, entry.before, entry.after, entry.read_back) for entry in read(run.path)]
    assert told[1] == ("applied", "vm.swappiness", 60, 10, 10)
    assert told[3] == ("applied", "vm.dirty_ratio", 20, 5, 5)
    assert told[5] == ("applied", "vm.dirty_ratio", 5, 20, 20)
    assert told[-2:] == [("reverted", "vm.dirty_ratio", 5, 20, 20), ("reverted", "vm.swappiness", 10, 60, 60)]
    assert not_reverted(read(run.path)) == []


def test_a_private_target_has_the_room_that_its_file_system_has(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = parse(STUDY)
    with RealBench(study, opened(study)) as bench:
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: Mock(free=7 if "loadframe" in str(folder) else 0))
        assert bench.free_disk_bytes == 7


def test_a_ladder_sets_the_machine_rung_by_rung(root: Path, opened: Opened) -> None:
    rungs = ('"vm.swappiness" = 20', '"vm.swappiness" = 30, "vm.dirty_ratio" = 5')
    tables = "".join(
        f'[[change]]\nname = "c{n}"\nhost = {{ settings = {{ {each} }} }}\n' for n, each in enumerate(rungs)
    )
    study = parse(STUDY + ALSO + tables)
    check_study(study)
    with RealBench(study, opened(study)) as bench:
        book = Bookkeeping(bench, None, None, None)  # type: ignore[arg-type]
        book.next_treatment("as given", bench.start_state)
        states = LadderStates(book)
        for state, dirty, swappiness in (((), 20, 10), (("c0", "c1"), 5, 30), (("c0",), 20, 20)):
            effective = bench.use(states.name(state))
            assert (effective["vm.dirty_ratio"], effective["vm.swappiness"]) == (dirty, swappiness)
            assert (Host(root).read("vm.dirty_ratio"), Host(root).read("vm.swappiness")) == (dirty, swappiness)
    assert (Host(root).read("vm.dirty_ratio"), Host(root).read("vm.swappiness")) == (20, 60)


def test_what_fails_in_the_middle_is_put_back_too(root: Path, opened: Opened) -> None:
    study = parse(STUDY + ALSO)
    with pytest.raises(ChangeError, match="swappiness"), RealBench(study, opened(study)) as bench:
        bench.declare("A", "as given", bench.start_state)
        bench.declare("B", "other", TargetState(host={"vm.dirty_ratio": 5, "vm.swappiness": 7}))
        bench.use("A")
        Host(root).write("vm.swappiness", 33)
        bench.use("B")
    assert (Host(root).read("vm.dirty_ratio"), Host(root).read("vm.swappiness")) == (20, 33)
    assert [outcome.status for outcome in bench.put_back] == ["reverted", "left"]


def test_who_goes_back_to_what_somebody_else_has_changed_is_stopped(root: Path, opened: Opened) -> None:
    """What is measured next would not be the state that it is called."""
    study = parse(STUDY + ALSO)
    with pytest.raises(ChangeError, match="left at 33"), RealBench(study, opened(study)) as bench:
        declare_all(bench)
        bench.use("B")
        Host(root).write("vm.dirty_ratio", 33)
        bench.use("A")
    assert (Host(root).read("vm.dirty_ratio"), Host(root).read("vm.swappiness")) == (33, 60)
    assert lists.read() == []


def test_who_stops_a_run_is_told_whether_everything_was_put_back(
    root: Path, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(host: Host, name: str, value: SettingValue) -> None:
        raise ChangeError(f"{name} cannot be set to {value}")

    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "state"))
    study = parse(STUDY)
    for write, words in ((Host.write, "Everything was reverted"), (refuse, "Not everything could be reverted")):
        run = opened(study)
        with pytest.raises(Interrupted, match=words), frame.explaining(run), RealBench(study, run) as bench:
            declare_all(bench)
            bench.use("B")
            monkeypatch.setattr(Host, "write", write)
            raise KeyboardInterrupt
    assert [change.before for record in lists.read() for change in record.changes] == [20]


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (STUDY.replace(', "host"', ""), "vm.dirty_ratio of the whole machine"),
        (STUDY.replace(', "host"', "").replace("dirty_ratio", "swappiness") + ALSO, "remedies.allow"),
        (STUDY.replace("dirty_ratio", "dirty_ration"), "vm.dirty_ratio"),
        (STUDY.replace("= 5", "= 500"), "0 to 100"),
    ],
)
def test_a_study_that_may_not_or_cannot_is_refused_before_anything_starts(root: Path, study: str, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        check_study(parse(study))
    assert words in str(caught.value)
