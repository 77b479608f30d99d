"""Whatever outlives a command is written down before it is changed, and put back: at its end, or by the next one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from loadframe.bench import places
from loadframe.changes import durable, lists
from loadframe.changes.durable import DurableJournal, Record
from loadframe.changes.host import Host
from loadframe.changes.journal import FILE, not_reverted, read
from loadframe.errors import ChangeError
from loadframe.host import identity
from loadframe.model import ChangeRecord, SettingValue
from loadframe.runs.folder import RunFolder


class Looking(Host):
    """A machine that looks at what is on the disk when it is changed. most: larger numbers are cut to it."""

    def __init__(self, root: Path, *, most: int = 10**9) -> None:
        super().__init__(root)
        self.seen: list[Record] = []
        self.most = most

    def write(self, name: str, value: SettingValue) -> None:
        self.seen = lists.read()
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
    ((change,),) = (record.changes for record in lists.read())
    assert change.read_back == 5


def test_everything_goes_back_in_reverse_order_and_nothing_stays_on_the_disk(root: Path) -> None:
    host, book = Looking(root), journal(root)
    book.set(host, "vm.dirty_ratio", 5)
    book.set(host, "vm.swappiness", 1)
    book.set(host, "vm.dirty_ratio", 7)
    outcomes = book.back(host)
    assert [outcome.setting for outcome in outcomes] == ["vm.swappiness", "vm.dirty_ratio"]
    assert values(root) == (20, 60)
    assert lists.read() == []
    assert book.back(host) == []


def test_what_the_kernel_moves_along_goes_back_too(root: Path) -> None:
    book, host = journal(root), Host(root)
    book.set(host, "transparent_hugepage.enabled", "never", moves=("vm.min_free_kbytes",))
    host.write("vm.min_free_kbytes", 67584)
    assert [outcome.status for outcome in book.back(host)] == ["reverted", "reverted"]
    book.set(host, "transparent_hugepage.enabled", "always", moves=("vm.min_free_kbytes",))
    host.write("vm.min_free_kbytes", 70000)
    left = {outcome.setting: outcome.status for outcome in book.back(host)}
    assert left == {"transparent_hugepage.enabled": "reverted", "vm.min_free_kbytes": "left"}


class Kernel(Host):
    """A machine that sets the length of a queue again whenever its scheduler changes."""

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
        monkeypatch.setattr(places, "Host", Kernel)
        monkeypatch.setattr(Record, "alive", lambda record: False)
    outcomes = places.revert() if killed else book.back(machine)
    assert [outcome.status for outcome in outcomes] == ["reverted", "reverted"]
    assert machine.read("block.vda.nr_requests") == 128
    assert lists.read() == []


def test_after_a_kill_the_next_one_puts_back(root: Path) -> None:
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5); journal.set(host, 'vm.swappiness', 1)")
    assert values(root) == (5, 1)
    (record,) = lists.read()
    assert not record.alive()
    assert [(outcome.status, outcome.read_back) for outcome in places.revert()] == [("reverted", 60), ("reverted", 20)]
    assert values(root) == (20, 60)
    assert (lists.read(), places.revert()) == ([], [])


def test_killed_between_the_intent_and_the_change_nothing_was_changed(root: Path) -> None:
    killed(root, "host.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL); journal.set(host, 'vm.swappiness', 1)")
    (outcome,) = places.revert()
    assert str(outcome) == "vm.swappiness of this machine: is 60, as before"


def test_killed_while_the_intent_was_written_nothing_is_left(root: Path) -> None:
    killed(root, "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL); journal.set(host, 'vm.swappiness', 1)")
    (torn,) = lists.folder().glob(".*.part")
    assert places.revert() == []
    assert not torn.exists()
    assert values(root) == (20, 60)


def test_killed_before_it_was_read_back_a_cut_value_is_ours(root: Path) -> None:
    """The server took less than it was given."""
    killed(root, "host.read = lambda _, read=host.read: read('vm.dirty_ratio') if read('vm.dirty_ratio') == 20 else "
                 "os.kill(os.getpid(), signal.SIGKILL); journal.set(host, 'vm.dirty_ratio', 5)")  # fmt: skip
    Host(root).write("vm.dirty_ratio", 4)
    assert [outcome.status for outcome in places.revert()] == ["reverted"]
    assert values(root) == (20, 60)


def test_a_cut_value_is_known_as_ours(root: Path) -> None:
    host, book = Looking(root, most=4), journal(root)
    assert book.set(host, "vm.dirty_ratio", 5) == 4
    host.most = 100
    assert [outcome.status for outcome in book.back(host)] == ["reverted"]


def test_what_somebody_else_has_changed_is_left_and_said(root: Path) -> None:
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5)")
    Host(root).write("vm.dirty_ratio", 33)
    (outcome,) = places.revert()
    assert (outcome.status, outcome.read_back) == ("left", 33)
    for word in ("33", "20", "5"):
        assert word in str(outcome)
    assert values(root)[0] == 33
    assert places.revert() == []


def test_who_changes_what_somebody_else_changes_too_is_stopped(root: Path) -> None:
    host, book = Host(root), journal(root)
    book.set(host, "vm.dirty_ratio", 5)
    host.write("vm.dirty_ratio", 33)
    with pytest.raises(ChangeError, match="another program"):
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
    assert places.revert() == []
    assert values(root)[0] == 5


@pytest.mark.long
def test_what_cannot_be_put_back_stands_and_is_tried_again(root: Path) -> None:
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5); journal.set(host, 'vm.swappiness', 1)")
    away = root / "away"
    (root / "proc/sys/vm/swappiness").rename(away)
    assert [outcome.status for outcome in places.revert()] == ["failed", "reverted"]
    assert [change.setting for record in lists.read() for change in record.changes] == ["vm.swappiness"]
    away.rename(root / "proc/sys/vm/swappiness")
    assert [outcome.status for outcome in places.revert()] == ["reverted"]
    assert values(root) == (20, 60)


def test_a_reboot_has_put_the_machine_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has the same value now was set by somebody since."""
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5)")
    monkeypatch.setattr(identity, "boot_id", lambda: "another")
    (outcome,) = places.revert()
    assert "restarted since" in str(outcome)
    assert values(root)[0] == 5


def test_the_journal_of_a_killed_run_says_what_became_of_its_changes(root: Path) -> None:
    run = RunFolder.create(root.parent, "study")
    intent = ChangeRecord("vm.dirty_ratio", 20, 5, id=4, target="host", layer="host", treatment="B", why="less dirty")
    run.append_line(FILE, "change", intent)
    with (run.path / FILE).open("a") as file:
        file.write('{"schema":"loadframe.change/1","num')  # torn by the kill
    mine = f"journal = DurableJournal('a study', Path({str(run.path)!r}))"
    killed(root, f"{mine}; journal.set(host, 'vm.dirty_ratio', 5); journal.set(host, 'vm.swappiness', 1)")
    away = root / "away"
    (root / "proc/sys/vm/swappiness").rename(away)
    places.revert()
    away.rename(root / "proc/sys/vm/swappiness")
    Host(root).write("vm.swappiness", 33)
    places.revert()
    assert not_reverted(read(run.path)) == []
    told = [(each.id, each.status, each.setting, each.before, each.after, each.read_back) for each in read(run.path)]
    assert told == [
        (4, "intent", "vm.dirty_ratio", 20, 5, None),
        (5, "reverted", "vm.dirty_ratio", 5, 20, 20),
        (6, "left", "vm.swappiness", 1, 60, 33),
    ]
    assert [each.why for each in read(run.path)] == ["less dirty", "less dirty", ""]


def test_what_a_killed_run_has_changed_goes_back_though_its_journal_takes_no_more(root: Path) -> None:
    run = RunFolder.create(root.parent, "study")
    (run.path / FILE).mkdir()
    mine = f"journal = DurableJournal('a study', Path({str(run.path)!r}))"
    killed(root, f"{mine}; journal.set(host, 'vm.dirty_ratio', 5)")
    (outcome,) = places.revert()
    assert (values(root), lists.read()) == ((20, 60), [])
    assert (outcome.status, "not noted in its run" in str(outcome)) == ("reverted", True)


RACING = """
import sys
from pathlib import Path
from loadframe.changes.durable import DurableJournal
from loadframe.changes.host import Host
from loadframe.errors import ChangeError
host, name = Host(Path(sys.argv[1])), sys.argv[2]
sys.stdin.readline()
changed = 0
while changed < 40:
    journal = DurableJournal("a study", Path("run"))
    try:
        journal.set(host, name, int(sys.argv[3]))
        changed += 1
    except ChangeError:
        continue
    finally:
        journal.back(host)
"""


def race(root: Path, name: str, values: Sequence[int]) -> None:
    """Three commands that change a setting and put it back, time and again."""
    command = [sys.executable, "-c", RACING, str(root), name]
    racing = [subprocess.Popen([*command, str(value)], stdin=subprocess.PIPE) for value in values]
    for each in racing:
        assert each.stdin is not None
        each.stdin.write(b"now\n")
        each.stdin.flush()
    for each in racing:
        each.communicate(timeout=120)
        assert each.returncode == 0


@pytest.mark.long
def test_three_commands_that_change_the_same_leave_it_as_it_was(root: Path) -> None:
    """One of them read what another one had set, and put that back in the end."""
    race(root, "vm.swappiness", (10, 11, 13))
    assert (values(root)[1], lists.read(), lists.unreadable()) == (60, [], [])
    assert not list(lists.folder().glob("*.alive"))


PAGE_CLUSTER = Path("/proc/sys/vm/page-cluster")


@pytest.mark.long
@pytest.mark.skipif(not os.access(PAGE_CLUSTER, os.W_OK), reason="settings of this machine may not be changed")
@pytest.mark.usefixtures("root")
def test_three_commands_leave_a_setting_of_this_machine_as_it_was() -> None:
    """How many pages are read at once from swap."""
    before = PAGE_CLUSTER.read_text()
    try:
        race(Path("/"), "vm.page-cluster", [value for value in range(1, 5) if value != int(before)][:3])
        assert PAGE_CLUSTER.read_text() == before
    finally:
        PAGE_CLUSTER.write_text(before)


class Meanwhile(Host):
    """A machine on which something happens while a setting of it is read for the first time."""

    def __init__(self, root: Path, happens: Callable[[], None]) -> None:
        super().__init__(root)
        self.happens: Callable[[], None] | None = happens

    def read(self, name: str) -> SettingValue:
        value, happens, self.happens = super().read(name), self.happens, None
        if happens is not None:
            happens()
        return value


def test_what_another_command_puts_back_meanwhile_is_not_taken_for_what_was_there(root: Path) -> None:
    one, two, host = journal(root), journal(root), Host(root)
    one.set(host, "vm.swappiness", 10)
    with pytest.raises(ChangeError, match="another command"):
        two.set(Meanwhile(root, lambda: one.back(host) and None), "vm.swappiness", 13)
    one.back(host)
    assert values(root)[1] == 60


def test_one_server_reached_in_two_ways_is_one_server(root: Path) -> None:
    one, two, by_socket, by_port = journal(root), journal(root), Host(root), Host(root)
    by_socket.address = {"kind": "mariadb", "address": "/run/a.sock", "option_file": "", "user": "", "thing": "it"}
    by_port.address = {**by_socket.address, "address": "127.0.0.1:3306", "option_file": "/x"}
    one.set(by_socket, "vm.swappiness", 10)
    with pytest.raises(ChangeError, match="another command"):
        two.set(by_port, "vm.swappiness", 13)
    by_port.address = {**by_port.address, "kind": "config"}
    with pytest.raises(ChangeError, match="another command"):
        two.set(by_port, "vm.dirty_ratio", 13)  # it would restart the server
    one.back(by_socket)


def odd(name: str, text: str) -> Path:
    file = lists.folder() / f"{name}.json"
    file.write_text(text)
    return file


ODD = [
    "",
    "null",
    "{}",
    "[]",
    "[" * 100_000,
    '{"schema": ' + "9" * 5000 + "}",
    '{"schema": "loadframe.standing/3"}',
    "\0",
]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_a_file_that_cannot_be_used_is_told_and_left_and_the_others_are_put_back(root: Path, text: str) -> None:
    first, last = odd("0", text), odd("zz", text)
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5)")
    assert [outcome.status for outcome in places.revert()] == ["reverted"]
    assert values(root) == (20, 60)
    assert [each.file for each in lists.unreadable()] == [first, last]
    told = durable.unreverted()
    for file, words in zip((first, last), told, strict=True):
        assert str(file) in words
        assert "delete it" in words
        assert file.exists()
    journal(root).set(Host(root), "vm.swappiness", 1)


@pytest.mark.parametrize(
    "damage",
    [
        {"schema": "loadframe.standing/9"},
        {"changes": [{"what": 1}]},
        {"changes": {}},
        {"owner": None},
        {"tried_at": "soon"},
        {"namespaces": {"net": 1}},
        {"id": "other"},
        {"more": 1},
    ],
)
def test_what_is_in_a_file_that_cannot_be_used_is_not_changed_once_more(
    root: Path, damage: Mapping[str, object]
) -> None:
    """Its value would be taken for what was there."""
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5)")
    (file,) = lists.folder().glob("*.json")
    changes = json.loads(file.read_text())["changes"]
    file.write_text(json.dumps({**json.loads(file.read_text()), **damage, "was": changes}))
    assert (places.revert(), [each.file for each in lists.unreadable()]) == ([], [file])
    with pytest.raises(ChangeError, match=file.name):
        journal(root).set(Host(root), "vm.dirty_ratio", 7)
    journal(root).set(Host(root), "vm.swappiness", 1)


@pytest.mark.parametrize(
    ("place", "word"),
    [
        ({"kind": "moon"}, "moon"),
        ({"kind": "host"}, "not complete"),
        ({"kind": "process", "pid": "x", "started_ticks": "1", "server": "", "words": ""}, "not complete"),
        ({"kind": "mariadb"}, "not complete"),
        ({"kind": "schema"}, "not complete"),
        ({"kind": "config", "server": "moon", "path": "/x", "restart": "[]", "words": ""}, "not complete"),
    ],
)
def test_a_place_that_cannot_be_found_keeps_nothing_else_from_going_back(
    root: Path, place: dict[str, str], word: str
) -> None:
    killed(root, "journal.set(host, 'vm.dirty_ratio', 5); journal.set(host, 'vm.swappiness', 1)")
    (file,) = lists.folder().glob("*.json")
    record = json.loads(file.read_text())
    record["changes"][1]["place"] = place
    file.write_text(json.dumps(record))
    assert {outcome.status: word in str(outcome) for outcome in places.revert()} == {"failed": True, "reverted": False}
    assert (values(root)[0], len(lists.read())) == (20, 1)


def test_a_revert_that_failed_is_not_tried_by_the_next_command_at_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(root, "journal.set(host, 'vm.swappiness', 1)")
    file = root / "proc/sys/vm/swappiness"
    file.rename(root / "away")
    assert [outcome.status for outcome in places.revert(again=False)] == ["failed"]
    (root / "away").rename(file)
    assert places.revert(again=False) == []
    (told,) = durable.unreverted()
    for word in ("vm.swappiness of this machine", "Last tried", "cannot be put back to 60", "changes revert"):
        assert word in told
    monkeypatch.setattr(lists, "AGAIN_AFTER_S", 0.0)
    assert [outcome.status for outcome in places.revert(again=False)] == ["reverted"]
    assert values(root) == (20, 60)


def test_it_is_said_before_what_takes_long(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(root, "host.address = {'kind': 'config', 'path': '/x'}; host.words = 'a server'; "
                 "journal.set(host, 'vm.swappiness', 1)")  # fmt: skip
    said: list[str] = []
    places.revert(before=said.append)
    (words,) = said
    for word in ("vm.swappiness of a server", "up to 390 s"):
        assert word in words


def test_what_was_changed_in_another_container_is_put_back_only_where_it_means_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(root, "journal.set(host, 'vm.swappiness', 1); journal.set(host, 'net.core.somaxconn', 8192)")
    real = identity.namespace
    monkeypatch.setattr(identity, "namespace", lambda kind: "7" if kind == "net" else real(kind))
    told = {outcome.setting: str(outcome) for outcome in places.revert()}
    assert "put back from 1 to 60" in told["vm.swappiness"]
    assert "another network namespace" in told["net.core.somaxconn"]
    assert Host(root).read("net.core.somaxconn") == 8192
    monkeypatch.setattr(identity, "namespace", real)
    assert [outcome.status for outcome in places.revert()] == ["reverted"]
    assert Host(root).read("net.core.somaxconn") == 4096


def test_a_list_of_the_version_before_is_put_back_too(root: Path) -> None:
    killed(root, "journal.set(host, 'vm.swappiness', 1)")
    (file,) = lists.folder().glob("*.json")
    old = json.loads(file.read_text())
    for key in ("machine", "namespaces", "tried_at", "because"):
        del old[key]
    del old["owner"]["namespace"]
    file.with_suffix(".alive").unlink()
    file.write_text(json.dumps({**old, "schema": "loadframe.standing/1"}))
    assert [outcome.status for outcome in places.revert()] == ["reverted"]
    assert values(root) == (20, 60)
