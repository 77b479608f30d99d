"""Whatever the change log brings, in the end the database equals the tree, as find(1) tells it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from change_lines import line_of
from loadframe.errors import MachineError
from loadframe_index import syscalls
from loadframe_index.applying import Following
from loadframe_index.entries import Change
from loadframe_index.fanotify import Fanotify
from loadframe_index.inotify import Inotify
from loadframe_index.log_readers import Reader, Records
from loadframe_index.recorded import Injected
from loadframe_index.store import Store
from loadframe_index.verifying import compare_usage
from sources import ROOT
from tree_churn import Churn, permit
from waiting import await_that
from whole_tree import everything

FOLLOW = ROOT / "tests/commands/follow.py"


def opened(kind: str, tree: Path) -> Reader:
    """A reader of the kernel's; the test is skipped where this machine does not permit it."""
    try:
        return {"fanotify": Fanotify, "inotify": Inotify}[kind](tree)
    except MachineError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["fanotify", "inotify"])
def reader(request: pytest.FixtureRequest, tree: Path) -> Iterator[Reader]:
    permit(tree)
    reader = opened(request.param, tree)
    yield reader
    reader.close()


@contextmanager
def following(store: Store, tree: Path, reader: Reader, **options: int) -> Iterator[Following]:
    made = Following(store, tree, reader, **options)
    try:
        yield made
    finally:
        made.close()


def catch_up(following: Following) -> None:
    """Until nothing comes any more. Records of what was done are in the kernel's queue when the call returns."""
    await_that(lambda: not following.step(0.05) and following.drained, "all changes are applied", 200.0, pause_s=0.0)


def equal(store: Store, tree: Path) -> None:
    """Every entry, and du, which is answered from the totals of the directories."""
    compared = everything(store, tree)
    assert compared.equal, compared
    for answer in compare_usage(store, tree):
        assert answer.equal, answer


def test_a_tree_that_changes_all_the_time(store: Store, tree: Path, reader: Reader) -> None:
    churn = Churn(tree, seed=1)
    for _ in range(200):
        churn.change()
    with following(store, tree, reader, batch=40, rows=30) as follower:
        follower.start()
        equal(store, tree)
        for _ in range(600):
            churn.change()
            if churn.made % 5 == 0:
                follower.step(0)
        catch_up(follower)
        equal(store, tree)
        assert follower.done.records > 300


def test_all_changes_before_the_first_is_read(store: Store, tree: Path, reader: Reader) -> None:
    churn = Churn(tree, seed=2)
    with following(store, tree, reader, batch=40, rows=30) as follower:
        follower.start()
        for _ in range(800):
            churn.change()
        catch_up(follower)
        equal(store, tree)


def _deep(tree: Path) -> None:
    (tree / "a/b/c").mkdir(parents=True)
    (tree / "a/b/c/file").write_text("x" * 5000)
    (tree / "other").mkdir()


def _rename(tree: Path) -> None:
    (tree / "a").rename(tree / "other/a")


def _rename_twice(tree: Path) -> None:
    (tree / "a/b/new").touch()
    (tree / "a").rename(tree / "e")
    (tree / "e/b/new2").touch()
    (tree / "e").rename(tree / "f")
    (tree / "f/b/c/file").unlink()


def _rename_and_make_another(tree: Path) -> None:
    (tree / "a").rename(tree / "e")
    (tree / "a").write_text("now a file")


def _over_an_empty_one(tree: Path) -> None:
    (tree / "a").rename(tree / "other")


def _out_of_the_tree(tree: Path) -> None:
    (tree / "a").rename(tree.parent / "outside")


def _into_the_tree(tree: Path) -> None:
    outside = tree.parent / "was outside"
    (outside / "x/y").mkdir(parents=True)
    (outside / "x/y/z").touch()
    outside.rename(tree / "inside")
    (tree / "inside/x/later").touch()


def _one_name_less(tree: Path) -> None:
    (tree / "a/b/again").hardlink_to(tree / "a/b/c/file")
    (tree / "other/again").hardlink_to(tree / "a/b/c/file")
    (tree / "a/b/again").write_text("shorter")


def _link_in_a_directory_that_goes(tree: Path) -> None:
    (tree / "other/again").hardlink_to(tree / "a/b/c/file")
    (tree / "a/b/c/file").unlink()
    (tree / "a/b/c").rmdir()


def _link_and_rename_the_directory(tree: Path) -> None:
    (tree / "other/again").hardlink_to(tree / "a/b/c/file")
    (tree / "other").rename(tree / "another")


def _all_sorts(tree: Path) -> None:
    (tree / "a/to").symlink_to("nowhere")
    os.mkfifo(tree / "a/pipe")
    (tree / "a/pipe").chmod(0o600)
    os.utime(tree / "a", (1, 1))
    os.utime(tree, (2, 2))


@pytest.mark.parametrize(
    "change",
    [
        _rename,
        _rename_twice,
        _rename_and_make_another,
        _over_an_empty_one,
        _out_of_the_tree,
        _into_the_tree,
        _one_name_less,
        _link_in_a_directory_that_goes,
        _link_and_rename_the_directory,
        _all_sorts,
    ],
)
def test_one_change(store: Store, tree: Path, reader: Reader, change: Callable[[Path], None]) -> None:
    _deep(tree)
    (tree / "a/b/linked").hardlink_to(tree / "a/b/c/file")
    reader.close()
    reader = opened(reader.name, tree)
    with following(store, tree, reader) as follower:
        follower.start()
        change(tree)
        catch_up(follower)
        equal(store, tree)
        (tree / "last").touch()  # it is still followed
        catch_up(follower)
        equal(store, tree)
    reader.close()


@pytest.mark.parametrize("kind", ["fanotify", "inotify"])
def test_two_directories_that_change_places(store: Store, tree: Path, kind: str) -> None:
    """renameat2(2) with RENAME_EXCHANGE, for which Python has no call."""
    import ctypes

    exchange = getattr(ctypes.CDLL(None), "renameat2", None)
    if exchange is None:
        pytest.skip("the C library has no renameat2")
    _deep(tree)
    reader = opened(kind, tree)
    with following(store, tree, reader) as follower:
        follower.start()
        assert exchange(-100, bytes(tree / "a"), -100, bytes(tree / "other"), 2) == 0
        (tree / "a/in a").touch()
        (tree / "other/in other").touch()
        catch_up(follower)
        equal(store, tree)
        (tree / "a/more").touch()
        (tree / "other/b/more").touch()
        catch_up(follower)
        equal(store, tree)
    reader.close()


@pytest.mark.parametrize("kind", ["fanotify", "inotify"])
def test_a_tree_whose_root_is_renamed_is_followed_where_it_is_now(store: Store, tree: Path, kind: str) -> None:
    """fanotify took all that happened from then on for changes of another tree."""
    _deep(tree)
    reader = opened(kind, tree)
    with following(store, tree, reader) as follower:
        follower.start()
        (tree / "a/before").touch()
        now = tree.rename(tree.with_name("elsewhere"))
        (now / "a/after").touch()
        (now / "in the root").touch()
        catch_up(follower)
        equal(store, now)
        (now / "other/later").touch()
        catch_up(follower)
        equal(store, now)
    reader.close()


def _come_and_go(tree: Path) -> None:
    """A further name of a file, which is gone before anything is looked up: the file has another size and time."""
    (tree / "other/again").hardlink_to(tree / "a/b/single")
    (tree / "other/again").write_text("longer than before")
    (tree / "other/again").unlink()


def _come_and_be_another(tree: Path) -> None:
    """The same, where another file has the name afterwards."""
    _come_and_go(tree)
    (tree / "other/again").write_text("another")


@pytest.mark.parametrize("change", [_come_and_go, _come_and_be_another])
def test_a_name_that_is_gone_before_it_is_looked_up_tells_its_file(
    store: Store, tree: Path, change: Callable[[Path], None]
) -> None:
    """fanotify tells the file itself; inotify does not."""
    _deep(tree)
    (tree / "a/b/single").write_text("x")
    reader = opened("fanotify", tree)
    with following(store, tree, reader) as follower:
        follower.start()
        change(tree)
        catch_up(follower)
        equal(store, tree)
    reader.close()


def test_a_recorded_inode_leads_to_the_other_names(store: Store, tree: Path) -> None:
    (tree / "file").write_text("x")
    inode = (tree / "file").stat().st_ino
    reader = Scripted()
    with following(store, tree, reader) as follower:
        follower.start()
        (tree / "file").write_text("longer")
        reader.given.append(Records([Change("unlink", b"gone", number=1, file=b"%d" % inode)]))
        follower.step(0)
        equal(store, tree)


class Scripted:
    """A Reader that gives what it is given."""

    name, resumes, waiting = "scripted", False, 0

    def __init__(self, *given: Records) -> None:
        self.given = list(given)

    def read(self, timeout_s: float) -> Records:
        return self.given.pop(0) if self.given else Records()

    def inode_of(self, file: bytes) -> int | None:
        return int(file)

    def close(self) -> None:
        pass


def test_records_that_are_lost_are_told_and_answered_by_a_scan(store: Store, tree: Path) -> None:
    (tree / "gone").touch()
    reader = Scripted(Records(lost="the queue was full"))
    with following(store, tree, reader) as follower:
        follower.start()
        (tree / "gone").unlink()
        (tree / "new").touch()
        follower.step(0)
        assert follower.done.lost == ["the queue was full"]
        equal(store, tree)


def test_a_full_queue_of_the_kernel_is_an_overflow(tree: Path, reader: Reader) -> None:
    """More changes than the kernel keeps: the reader says so; it never leaves out the difference."""
    most = int(Path(f"/proc/sys/fs/{reader.name}/max_queued_events").read_text())
    if most > 100_000:
        pytest.skip(f"{most:,} records may wait: too many for a test")
    path = tree / "0"
    path.touch()
    for number in range(1, most + 1000):  # equal records would be merged
        path = path.rename(tree / f"{number}")
    read = reader.read(0)
    while f"{most:,}" not in read.lost:  # before it, a directory may not have been opened
        assert not read.drained, f"all was read, and the last words were {read.lost!r}"
        read = reader.read(0)


def test_records_of_one_path_are_one_question(store: Store, tree: Path) -> None:
    (tree / "file").touch()
    reader = Scripted(Records([Change("setattr", b"file", number=number) for number in range(1, 101)]))
    with following(store, tree, reader) as follower:
        follower.step(0)
        assert follower.done.questions == 2  # the file, and its directory
        assert store.acknowledged("scripted") == 100


def test_records_that_come_twice_and_in_another_order_change_nothing(store: Store, tree: Path) -> None:
    permit(tree)
    churn, told = Churn(tree, seed=5), list[Change]()
    reader = Scripted()
    with following(store, tree, reader, batch=50) as follower:
        follower.start()
        for _ in range(300):
            told += churn.change()
        random.Random(1).shuffle(told)
        reader.given += [Records(told), Records(told)]
        await_that(lambda: not follower.step(0), "all changes are applied", pause_s=0.0)
        equal(store, tree)


def test_injected_records_leave_the_database_equal_to_the_tree(store: Store, tree: Path) -> None:
    names = [b"%d" % number for number in range(50)]
    for name in names:
        (tree / os.fsdecode(name)).touch()
    now = iter(range(100))
    reader = Injected(names, 1000, count=3000, clock=lambda: float(next(now)))
    with following(store, tree, reader) as follower:
        follower.start()
        await_that(lambda: not follower.step(0) and follower.done.records >= 3000, "3,000 records", pause_s=0.0)
        equal(store, tree)
        assert follower.done.records == 3000


def test_the_lag_is_the_age_of_the_newest_record_while_others_wait(store: Store, tree: Path) -> None:
    now_ns = [100_000_000_000]
    changes = [Change("setattr", b"", number=number, time_s=90.0 + number) for number in (1, 2)]
    follower = Following(store, tree, Scripted(Records(changes)), batch=1, clock_ns=lambda: now_ns[0])
    assert follower.lag_s() == 0.0
    follower.step(0)
    assert follower.lag_s() == pytest.approx(9.0)
    follower.step(0)
    assert follower.drained and follower.lag_s() == 0.0
    follower.close()


def test_a_clock_that_is_put_back_does_not_stop_the_database(store: Store, tree: Path) -> None:
    times = iter([10**18, 10**9, 10**9 + 1])
    (tree / "file").touch()
    reader = Scripted(Records([Change("create", b"file", number=1)]), Records([Change("unlink", b"file", number=2)]))
    follower = Following(store, tree, reader, clock_ns=lambda: next(times))
    follower.start()
    follower.step(0)
    (tree / "file").unlink()
    follower.step(0)
    equal(store, tree)
    follower.close()


KILLS = 12


@pytest.mark.long
def test_killed_at_any_moment_the_database_equals_the_tree_in_the_end(
    tree: Path, database: dict[str, str], store: Store, tmp_path: Path
) -> None:
    """At least once: kill -9 in the scan, within a transaction, between two; the next one goes on from there."""
    permit(tree)
    rng, churn, log = random.Random(7), Churn(tree, seed=7, links=False), tmp_path / "log"
    (tmp_path / "database.json").write_text(json.dumps(database))
    where: list[str] = []
    with log.open("ab") as written:

        def change(times: int) -> None:
            for _ in range(times):
                for told in churn.change():
                    written.write(line_of(told))
            written.flush()

        change(150)
        for kill in range(KILLS + 1):
            command = [sys.executable, str(FOLLOW), str(tmp_path / "database.json"), str(tree), str(log)]
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert child.stdin and child.stdout
            change(60)
            if kill == KILLS:
                said, _ = child.communicate()
                assert child.returncode == 0 and said.endswith(b"."), said
                break
            said = b""
            for _ in range(rng.choice((1, 2, 3, rng.randrange(4, 14)))):
                said += child.stdout.read(1)
            child.send_signal(signal.SIGKILL)
            child.communicate()
            where.append(said.decode()[-1:])
    equal(store, tree)
    assert len(set(where)) >= 3, where  # within a scan, within a transaction, between two


def test_a_descriptor_of_any_number_is_waited_for() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x")
    assert syscalls.readable(reading)
    os.read(reading, 1)
    assert not syscalls.readable(reading)
    os.close(reading)
    os.close(writing)


def test_an_entry_whose_directories_were_not_known_yet_goes_with_them(store: Store, tree: Path) -> None:
    """Its record came before those of its directories: these are written with it, or nothing would find it later."""
    reader = Scripted()
    with following(store, tree, reader) as follower:
        follower.start()
        (tree / "a/b/c").mkdir(parents=True)
        (tree / "a/b/c/file").touch()
        reader.given.append(Records([Change("create", b"a/b/c/file", number=1), Change("setattr", b"", number=2)]))
        follower.step(0)
        equal(store, tree)
        (tree / "a").rename(tree.parent / "outside")
        reader.given.append(Records([Change("unlink", b"a", number=3)]))
        follower.step(0)
        equal(store, tree)
