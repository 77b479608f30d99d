"""Whatever outlives a command is written down before it is changed, and put back: at its end, or by the next one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from loadframe.cage import identity
from loadframe.changes import durable
from loadframe.changes.durable import DurableJournal, Record
from loadframe.changes.host import Host
from loadframe.changes.journal import FILE, Entry, read, standing
from loadframe.errors import ChangeError, RunError
from loadframe.model import SettingValue
from loadframe.runs.folder import RunFolder


class Looking(Host):
    """A machine that looks at what is on the disk when it is changed. most: larger numbers are cut to it."""

    def __init__(self, root: Path, *, most: int = 10**9) -> None:
        super().__init__(root)
        self.seen: list[Record] = []
        self.most = most

    def write(self, name: str, value: SettingValue) -> None:
        self.seen = durable.read()
        super().write(name, min(value, self.most) if isinstance(value, int) else value)


def journal(root: Path) -> DurableJournal:
    return DurableJournal("a study", root.parent / "run")


def values(root: Path) -> tuple[SettingValue, SettingValue]:
    return Host(root).read("vm.dirty_ratio"), Host(root).read("vm.swappiness")


def killed(root: Path, code: str) -> None:
    """A command that changes what `code` says, and is killed."""
    frame = (
        "import os, signal; from pathlib import Path; from loadframe.changes.durable import DurableJournal\n"
        "from loadframe.changes.host import Host\n"
        f"host = Host(Path({str(root)!r})); journal = DurableJournal('a study', Path('run'))\n"
    )
    done = subprocess.run([sys.executable, "-c", f"{frame}{code}\nos.kill(os.getpid(), signal.SIGKILL)"], check=False)
    assert done.returncode == -signal.SIGKILL


def test_what_was_there_is_on_the_disk_before_anything_is_changed(root: Path) -> None:
    host = Looking(root)
    assert journal(root).set(host, "vm.dirty_ratio", 5) == 5
    ((change,),) = (record.changes for record in host.seen)
    assert (change.setting, change.before, change.after, change.read_back) == ("vm.dirty_ratio", 20, 5, None)
    ((change,),) = (record.changes for record in durable.read())
    assert change.read_back == 5


def test_everything_goes_back_in_reverse_order_and_nothing_stays_on_the_disk(root: Path) -> None:
    host, book = Looking(root), journal(root)
    book.set(host, "vm.dirty_ratio", 5)
    book.set(host, "vm.swappiness", 1)
    book.set(host, "vm.dirty_ratio", 7)
    outcomes = book.back(host)
    assert [outcome.change.setting for outcome in outcomes] == ["vm.swappiness", "vm.dirty_ratio"]
    assert values(root) == (20, 60)
    assert durable.read() == []
    assert book.back(host) == []


def test_what_the_kernel_moves_along_goes_back_too(root: Path) -> None:
    book, host = journal(root), Host(root)
    book.set(host, "transparent_hugepage.enabled", "never", moves=("vm.min_free_kbytes",))
    host.write("vm.min_free_kbytes", 67584)
    assert [outcome.what for outcome in book.back(host)] == ["reverted", "reverted"]
    book.set(host, "transparent_hugepage.enabled", "always", moves=("vm.min_free_kbytes",))
    host.write("vm.min_free_kbytes", 70000)
    left = {outcome.change.setting: outcome.what for outcome in book.back(host)}
    assert left == {"transparent_hugepage.enabled": "reverted", "vm.min_free_kbytes": "left"}


class Kernel(Host):
    """A machine that sets the length of a queue anew whenever its scheduler changes."""

    def write(self, name: str, value: SettingValue) -> None:
        super().write(name, value)
        if name.endswith("scheduler"):
            super().write("block.vda.nr_requests", {"none": 1023, "mq-deadline": 256}[str(value)])


@pytest.mark.parametrize("killed", [False, True])
def test_what_the_kernel_moves_again_when_it_goes_back_is_put_back_too(
    root: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """Its owner had chosen 128, which is neither scheduler's own."""
    book, machine = journal(root), Kernel(root)
    book.set(machine, "block.vda.scheduler", "mq-deadline", moves=("block.vda.nr_requests",))
    assert machine.read("block.vda.nr_requests") == 256
    if killed:
        monkeypatch.setattr(durable, "Host", Kernel)
        monkeypatch.setattr(Record, "alive", lambda record: False)
    outcomes = durable.revert() if killed else book.back(machine)
    assert [outcome.what for outcome in outcomes] == ["reverted", "reverted"]
    assert machine.read("block.vda.nr_requests") == 128
    assert durable.read() == []


def test_after_a_kill_the_next_one_puts_back(root: Path) -> None:
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5); journal.set(host, 'vm.swappiness', 1)")
    assert values(root) == (5, 1)
    (record,) = durable.read()
    assert not record.alive()
    assert [(outcome.what, outcome.value) for outcome in durable.revert()] == [("reverted", 60), ("reverted", 20)]
    assert values(root) == (20, 60)
    assert (durable.read(), durable.revert()) == ([], [])


def test_killed_between_the_intent_and_the_change_nothing_was_changed(root: Path) -> None:
    killed(root, "host.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL); journal.set(host, 'vm.swappiness', 1)")
    (outcome,) = durable.revert()
    assert str(outcome) == "vm.swappiness of this machine: is 60, as before"


def test_killed_while_the_intent_was_written_nothing_is_left(root: Path) -> None:
    killed(root, "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL); journal.set(host, 'vm.swappiness', 1)")
    (torn,) = durable._folder().glob("*.tmp")
    assert durable.revert() == []
    assert not torn.exists()
    assert values(root) == (20, 60)


def test_killed_before_it_was_read_back_a_cut_value_is_ours(root: Path) -> None:
    """The server took less than it was given."""
    killed(root, "host.read = lambda _, read=host.read: read('vm.dirty_ratio') if read('vm.dirty_ratio') == 20 else "
                 "os.kill(os.getpid(), signal.SIGKILL); journal.set(host, 'vm.dirty_ratio', 5)")  # fmt: skip
    Host(root).write("vm.dirty_ratio", 4)
    assert [outcome.what for outcome in durable.revert()] == ["reverted"]
    assert values(root) == (20, 60)


def test_a_cut_value_is_known_as_ours(root: Path) -> None:
    host, book = Looking(root, most=4), journal(root)
    assert book.set(host, "vm.dirty_ratio", 5) == 4
    host.most = 100
    assert [outcome.what for outcome in book.back(host)] == ["reverted"]


def test_what_somebody_else_has_changed_is_left_and_said(root: Path) -> None:
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5)")
    Host(root).write("vm.dirty_ratio", 33)
    (outcome,) = durable.revert()
    assert (outcome.what, outcome.value) == ("left", 33)
    for word in ("33", "20", "5"):
        assert word in str(outcome)
    assert values(root)[0] == 33
    assert durable.revert() == []


def test_who_changes_what_somebody_else_changes_too_is_stopped(root: Path) -> None:
    host, book = Host(root), journal(root)
    book.set(host, "vm.dirty_ratio", 5)
    host.write("vm.dirty_ratio", 33)
    with pytest.raises(ChangeError, match="somebody else"):
        book.set(host, "vm.dirty_ratio", 6)
    assert values(root)[0] == 33


def test_two_commands_do_not_change_the_same(root: Path) -> None:
    """The second would take the first one's value for what was there."""
    one, two, host = journal(root), journal(root), Host(root)
    one.set(host, "vm.dirty_ratio", 5)
    two.set(host, "vm.swappiness", 1)
    with pytest.raises(ChangeError, match=f"pid {os.getpid()}"):
        two.set(host, "vm.dirty_ratio", 6)
    killed(root, "journal.set(host, 'vm.min_free_kbytes', 70000)")
    with pytest.raises(ChangeError, match="changes revert"):
        two.set(host, "vm.min_free_kbytes", 80000)
    two.back(host)
    one.back(host)
    assert values(root) == (20, 60)


def test_what_a_running_command_has_changed_is_not_touched(root: Path) -> None:
    book = journal(root)
    book.set(Host(root), "vm.dirty_ratio", 5)
    assert durable.revert() == []
    assert values(root)[0] == 5


def test_what_cannot_be_put_back_stands_and_is_tried_again(root: Path) -> None:
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5); journal.set(host, 'vm.swappiness', 1)")
    away = root / "away"
    (root / "proc/sys/vm/swappiness").rename(away)
    assert [outcome.what for outcome in durable.revert()] == ["failed", "reverted"]
    assert [change.setting for record in durable.read() for change in record.changes] == ["vm.swappiness"]
    away.rename(root / "proc/sys/vm/swappiness")
    assert [outcome.what for outcome in durable.revert()] == ["reverted"]
    assert values(root) == (20, 60)


def test_a_reboot_has_put_the_machine_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has the same value now was set by somebody since."""
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5)")
    monkeypatch.setattr(identity, "boot_id", lambda: "another")
    (outcome,) = durable.revert()
    assert "started anew" in str(outcome)
    assert values(root)[0] == 5


def test_the_journal_of_a_killed_run_says_what_became_of_its_changes(root: Path) -> None:
    run = RunFolder.create(root.parent, "study")
    intent = Entry(4, "intent", "now", "host", "B", "host", "vm.dirty_ratio", 20, 5, private=False)
    run.append_line(FILE, "change", intent)
    with (run.path / FILE).open("a") as file:
        file.write('{"schema":"loadframe.change/1","num')  # torn by the kill
    mine = f"journal = DurableJournal('a study', Path({str(run.path)!r}))"
    killed(root, f"{mine}; journal.set(host, 'vm.dirty_ratio', 5); journal.set(host, 'vm.swappiness', 1)")
    away = root / "away"
    (root / "proc/sys/vm/swappiness").rename(away)
    durable.revert()
    away.rename(root / "proc/sys/vm/swappiness")
    Host(root).write("vm.swappiness", 33)
    durable.revert()
    assert standing(read(run.path)) == []
    told = [(each.number, each.phase, each.setting, each.before, each.after, each.read_back) for each in read(run.path)]
    assert told == [
        (4, "intent", "vm.dirty_ratio", 20, 5, None),
        (5, "reverted", "vm.dirty_ratio", 5, 20, 20),
        (6, "left", "vm.swappiness", 1, 60, 33),
    ]


def test_what_a_killed_run_has_changed_goes_back_though_its_journal_takes_no_more(root: Path) -> None:
    run = RunFolder.create(root.parent, "study")
    (run.path / FILE).mkdir()
    mine = f"journal = DurableJournal('a study', Path({str(run.path)!r}))"
    killed(root, f"{mine}; journal.set(host, 'vm.dirty_ratio', 5)")
    with pytest.raises(RunError, match="cannot be written"):
        durable.revert()
    assert (values(root), durable.read()) == ((20, 60), [])


@pytest.mark.parametrize("damage", [{"schema": "loadframe.standing/2"}, {"changes": [{"what": 1}]}])
def test_a_file_of_another_kind_is_named_and_left(root: Path, damage: Mapping[str, object]) -> None:
    journal(root).set(Host(root), "vm.dirty_ratio", 5)
    (file,) = (root.parent / "state" / "changes").glob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **damage}))
    with pytest.raises(ChangeError, match=file.name):
        durable.revert()
    assert file.exists()
