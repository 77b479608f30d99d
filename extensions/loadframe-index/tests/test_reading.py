"""Which change log is taken, and one that is read while the database is busy."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from loadframe.errors import MachineError
from loadframe_index import syscalls
from loadframe_index.entries import Change
from loadframe_index.fanotify import Fanotify
from loadframe_index.keeping import Buffered, choose, permitted
from loadframe_index.log_readers import Records
from loadframe_index.recorded import Injected
from tree_churn import Churn, permit
from waiting import await_that


class Endless:
    """A Reader with as many records as are asked for, ten at a time; after `most` it refuses."""

    name, resumes, waiting = "endless", True, 0

    def __init__(self, most: int) -> None:
        self.most, self.number, self.closed = most, 0, False
        self.asked = threading.Semaphore(0)

    def read(self, timeout_s: float) -> Records:
        self.asked.release()
        if self.number >= self.most:
            raise MachineError("no more")
        changes = [Change("create", b"x", number=self.number + more) for more in range(1, 11)]
        self.number += 10
        return Records(changes, "one was lost" if self.number == 30 else "", False)

    def inode_of(self, file: bytes) -> int | None:
        return None

    def close(self) -> None:
        self.closed = True


def test_a_log_is_read_on_while_its_records_wait() -> None:
    inner = Endless(100)
    buffered = Buffered(inner)
    for _ in range(11):
        inner.asked.acquire()
    numbers: list[int] = []
    lost: list[str] = []
    with pytest.raises(MachineError, match="no more"):
        while True:
            read = buffered.read(1)
            numbers += [change.number for change in read.changes]
            lost += [read.lost] if read.lost else []
    assert numbers == list(range(1, 101)) and lost == ["one was lost"]
    buffered.close()
    buffered.close()
    assert inner.closed


class Broken(Endless):
    """A mistake of ours."""

    def read(self, timeout_s: float) -> Records:
        raise RecursionError("a path that is too deep")


def test_whatever_ends_the_thread_that_reads_is_raised_by_who_waits_for_it() -> None:
    """It waited for ever, as if nothing changed any more."""
    buffered = Buffered(Broken(1))
    with pytest.raises(RecursionError, match="too deep"):
        for _ in range(100):
            buffered.read(0.1)
    buffered.close()


def test_no_more_records_are_kept_than_the_bound() -> None:
    inner = Endless(1_000_000)
    buffered = Buffered(inner, most=25)
    for _ in range(3):
        inner.asked.acquire()
    taken = 0
    while taken < 500:
        assert buffered.waiting <= 30
        taken += len(buffered.read(1).changes)
    assert inner.number - taken <= 40
    buffered.close()


def test_injected_records_come_at_their_rate_and_tell_when_they_were_due() -> None:
    now = [0.0]
    reader = Injected([b"a", b"b"], 100.0, count=250, clock=lambda: now[0], wall=lambda: 1000.0 + now[0])
    assert reader.read(0).changes == []
    now[0] = 1.0
    first = list(reader.read(0).changes)
    assert len(first) == 100 and first[-1].time_s == pytest.approx(1001.0) and first[0].number == 1
    now[0] = 60.0
    assert len(reader.read(0).changes) == 150  # no more than its count
    assert reader.read(0) == Records([])
    again = Injected([b"a", b"b"], 100.0, count=250, clock=lambda: now[0], wall=lambda: 0.0)
    assert again.read(0).changes == []  # the first reading begins
    now[0] = 61.0
    assert [(each.kind, each.path) for each in again.read(0).changes] == [(each.kind, each.path) for each in first]


def test_records_cannot_be_injected_over_nothing() -> None:
    with pytest.raises(MachineError, match="over 0 entries"):
        Injected([], 10.0)


def test_the_log_is_told_and_the_others_with_their_reasons(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(syscalls, "fanotify_init", refuse)
    chosen = choose(tree)
    assert chosen.reader.name == "inotify"
    assert "Operation not permitted" in chosen.refused["fanotify"] and "Run as root" in chosen.refused["fanotify"]
    chosen.reader.close()
    monkeypatch.setattr(syscalls, "inotify_init", refuse)
    with pytest.raises(MachineError, match="cannot be followed") as refused:
        choose(tree)
    assert "injected" in str(refused.value)
    assert [(each.what, each.present) for each in permitted(tree)] == [
        ("change log: fanotify", None),
        ("change log: inotify", None),
    ]
    with pytest.raises(MachineError, match="'other' is no change log"):
        choose(tree, "other")


def test_too_few_watches_are_told_with_the_limit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "a/b").mkdir(parents=True)
    before = len(list(Path("/proc/self/fd").iterdir()))

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(syscalls, "inotify_add_watch", refuse)
    with pytest.raises(MachineError, match=r"at the directory \.: 0 directories are watched, and [\d,]+ watches"):
        choose(tree, "inotify")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(("number", "opened", "lost"), [(12, 4, "could not be opened"), (12, 2, ""), (116, 1, "")])
def test_a_directory_that_cannot_be_opened_is_a_lost_record_and_one_that_is_gone_is_not(
    tree: Path, monkeypatch: pytest.MonkeyPatch, number: int, opened: int, lost: str
) -> None:
    """ENOMEM is refused; ESTALE says that the directory is gone."""
    (tree / "a").mkdir()
    try:
        reader = Fanotify(tree)
    except MachineError as error:
        pytest.skip(str(error))
    directory = os.open(tree / "a", os.O_PATH)
    ours, found, open_by_handle = syscalls.handle_of(directory), [0], syscalls.open_by_handle
    os.close(directory)

    def refuse(mount: int, handle: bytes) -> int:
        if handle != ours:
            return open_by_handle(mount, handle)
        found[0] += 1
        if found[0] < opened or lost or number == 116:
            raise OSError(number, os.strerror(number))
        return open_by_handle(mount, handle)

    monkeypatch.setattr(syscalls, "open_by_handle", refuse)
    (tree / "a/new").touch()
    said, changes = "", []

    def refused() -> bool:
        nonlocal said
        read = reader.read(1)
        said += read.lost
        changes.extend(read.changes)
        return found[0] > 0

    await_that(refused, "the file is opened")
    assert lost in said and bool(lost) == bool(said)
    assert (b"a/new" in {change.path for change in changes}) == (number == 12 and not lost)
    reader.close()


def test_churn_changes_only_a_tree_that_permits_it(tree: Path) -> None:
    (tree / "mine").touch()
    with pytest.raises(MachineError, match="does not say that it may be changed"):
        Churn(tree)
    permit(tree)
    other = tree.parent / "outside"
    other.write_text("outside")
    (tree / "link").symlink_to(other)
    churn = Churn(tree, seed=3)
    kinds = {change.kind for _ in range(500) for change in churn.change()}
    assert kinds == {"create", "unlink", "rename", "setattr", "close_write"}
    assert other.read_text() == "outside" and (tree / "link").is_symlink()
