"""Whatever a tree has, it is counted and in the database, or told: nothing is lost, nothing crashes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

import loadframe
import whole_scan
from hostile_trees import LONG_NAME, NAMES, deep, hostile_tree
from loadframe.errors import MachineError
from loadframe_index import seeded
from loadframe_index.applying import Following
from loadframe_index.beneath import Beneath, Passed, below, looked_up, shown
from loadframe_index.config import BOARD, RESULT, Config
from loadframe_index.entries import entry_of
from loadframe_index.fanotify import Fanotify
from loadframe_index.inotify import Inotify
from loadframe_index.keeping import Buffered
from loadframe_index.log_readers import Reader
from loadframe_index.pipeline import Process
from loadframe_index.queries import Wanted
from loadframe_index.recorded import Recorded
from loadframe_index.seeded import Shape
from loadframe_index.store import Store, connect
from loadframe_index.verifying import compare_find, compare_usage
from waiting import await_that
from whole_tree import everything

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs the rights of root")
SOURCE = str(Path(loadframe.__file__).parents[1])
PIPELINE = (sys.executable, "-P", whole_scan.__file__)
ID_BYTES = 16


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Path]:
    with hostile_tree(tmp_path / "hostile") as tree:
        yield tree


def readable_python() -> str:
    """A Python that a user without rights may run, with Loadframe's source; the test is skipped where there is none."""
    for program in (sys.executable, "/usr/bin/python3"):
        command = [program, "-P", "-c", "import loadframe_index.pipeline"]
        with suppress(OSError):
            if not subprocess.run(
                command, env={"PYTHONPATH": SOURCE}, cwd="/", user=65534, capture_output=True
            ).returncode:
                return program
    pytest.skip(f"another user may not run a Python with {SOURCE}")


def scan(database: dict[str, str], tree: Path, folder: Path, *before: str, **options: Any) -> dict[str, Any]:
    """By the program of the pipeline, with several processes and threads; before: what it is called by."""
    folder.mkdir()
    shared = {"scanners": 2, "scan_threads": 2, "fs_threads": 2, "batch": 50}
    config = Config(tree=str(tree), folder=str(folder), database=database, **(shared | options))
    (folder / "config.json").write_text(config.text())
    command = [*before, *PIPELINE, str(folder / "config.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
    result: dict[str, Any] = json.loads((folder / RESULT).read_text())
    return result


def equal(store: Store, tree: Path) -> None:
    compared = everything(store, tree)
    assert compared.equal, compared


@pytest.mark.long
def test_the_pipeline_has_every_entry(database: dict[str, str], store: Store, hostile: Path, tmp_path: Path) -> None:
    counted = scan(database, hostile, tmp_path / "run")
    equal(store, hostile)
    assert store.count() == counted["applied"]
    assert not any(counted[what] for what in ("vanished", "unreadable", "loops", "elsewhere"))
    for compared in (*compare_usage(store, hostile), *compare_find(store, hostile, Wanted(name=b"*\n*"))):
        assert compared.equal, compared
    again = scan(database, hostile, tmp_path / "again")
    equal(store, hostile)
    assert again["new"] == again["forgotten"] == 0


@pytest.mark.long
def test_killed_in_a_scan_the_next_one_ends_with_every_entry(
    database: dict[str, str], store: Store, hostile: Path, tmp_path: Path
) -> None:
    """kill -9 of the pipeline, amid names of every kind: what it acknowledged is there, and all else after the next."""
    seeded.make(hostile / "made", Shape(3000))
    folder = tmp_path / "killed"
    folder.mkdir()
    config = Config(tree=str(hostile), folder=str(folder), database=database, scanners=2, batch=5)
    (folder / "config.json").write_text(config.text())
    process = subprocess.Popen([*PIPELINE, str(folder / "config.json")])
    applied = [config.applied(number) for number in range(2)]
    await_that(
        lambda: sum(path.stat().st_size for path in applied if path.exists()) >= 200 * ID_BYTES,
        "200 entries are acknowledged", of=process, pause_s=0.001,
    )  # fmt: skip
    process.kill()
    process.wait()
    told = b"".join(path.read_bytes() for path in applied)
    acknowledged = {told[at : at + ID_BYTES] for at in range(0, len(told) - ID_BYTES + 1, ID_BYTES)}
    assert len(acknowledged) >= 200 and acknowledged <= set(store.ids())
    assert not everything(store, hostile).equal, "it was killed before its end"
    scan(database, hostile, tmp_path / "next")
    equal(store, hostile)


def catch_up(following: Following) -> None:
    await_that(lambda: not following.step(0.05) and following.drained, "all changes are applied", 200.0, pause_s=0.0)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["fanotify", "inotify"])
def test_the_change_log_has_every_change(store: Store, hostile: Path, kind: str) -> None:
    try:
        reader: Reader = {"fanotify": Fanotify, "inotify": Inotify}[kind](hostile)
    except MachineError as error:
        pytest.skip(str(error))
    following = Following(store, hostile, reader, batch=20, rows=100)
    following.start()
    equal(store, hostile)
    with Beneath(hostile) as tree:
        last = tree.directory(b"/".join([LONG_NAME] * 20))
        os.mkdir(b"new", dir_fd=last)
        os.close(os.open(b"new/file", os.O_CREAT | os.O_WRONLY, dir_fd=last))
        os.chmod(b"last", 0o600, dir_fd=last)
        for name in NAMES:
            within = tree.directory(name)
            os.rename(NAMES[0], b"renamed", src_dir_fd=within, dst_dir_fd=within)
            os.unlink(NAMES[1], dir_fd=within)
            os.mkfifo(NAMES[0], dir_fd=within)
        catch_up(following)
        equal(store, hostile)
        os.rename(LONG_NAME, b"short", src_dir_fd=tree.root, dst_dir_fd=tree.root)  # 21 directories and two files move
        deep = tree.directory(b"/".join([b"n"] * 600))
        os.unlink(b"last", dir_fd=deep)
        os.rename(b"n", b"m", src_dir_fd=tree.root, dst_dir_fd=tree.root)
    (hostile / "links/one").write_bytes(b"shorter")  # at six names
    (hostile / "links/below/name 0").unlink()
    catch_up(following)
    equal(store, hostile)
    following.close()
    reader.close()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["fanotify", "inotify"])
def test_directories_thousands_deep_are_scanned_and_followed(
    sqlite_database: dict[str, str], tree: Path, tmp_path: Path, kind: str
) -> None:
    """The path of a record was found one call within another: beyond a thousand of them the reader of the log ended,
    and what waited for it went on waiting."""
    levels = 3500
    try:
        with Beneath(tree) as root:
            deep(root.root, b"n", levels)
        with closing(connect(sqlite_database)) as store:
            store.create()
            scan(sqlite_database, tree, tmp_path / "run", batch=1000)
            equal(store, tree)
            try:
                reader: Reader = Buffered({"fanotify": Fanotify, "inotify": Inotify}[kind](tree))
            except MachineError as error:
                pytest.skip(str(error))
            with closing(reader), Beneath(tree) as root, closing(Following(store, tree, reader)) as following:
                last = root.directory(b"/".join([b"n"] * levels))
                os.close(os.open(b"new", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=last))
                await_that(lambda: following.step(5.0) and following.done.records, "a record of the change")
                catch_up(following)
                equal(store, tree)
    finally:
        subprocess.run(["rm", "-rf", "--", tree], check=True)


def test_a_file_that_vanishes_between_listing_and_looking_is_counted(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}").touch()
    passed = Passed()
    with Beneath(tmp_path) as tree:
        top = looked_up(tree, b"", passed)
        assert top is not None
        entries = below(tree, top, passed)
        first = next(entries)
        for path in tmp_path.iterdir():
            path.unlink()
        assert [first, *entries] == [first]
    assert passed.vanished == 19


def test_a_directory_that_a_link_replaces_leads_nowhere(tmp_path: Path) -> None:
    """What a stranger puts in the place of a directory is not followed out of the tree."""
    (tmp_path / "tree/a/b").mkdir(parents=True)
    (tmp_path / "elsewhere/b").mkdir(parents=True)
    (tmp_path / "elsewhere/b/secret").touch()
    shutil.rmtree(tmp_path / "tree/a")
    (tmp_path / "tree/a").symlink_to(tmp_path / "elsewhere")
    passed = Passed()
    with Beneath(tmp_path / "tree") as tree:
        assert looked_up(tree, b"a/b/secret", passed) is None
        status = (tmp_path / "elsewhere").stat()
        assert list(below(tree, entry_of(b"", b"a", status), passed)) == []
    assert passed.vanished == 2


@pytest.mark.long
@ROOT
def test_a_tree_that_changes_while_it_is_scanned(
    database: dict[str, str], store: Store, hostile: Path, tmp_path: Path
) -> None:
    """What comes and goes is counted; what stays is there."""
    ends = tmp_path / "ends"
    code = (
        "import itertools, pathlib, sys\n"
        "tree, ends = map(pathlib.Path, sys.argv[1:])\n"
        "for number in itertools.count():\n"
        "    one = tree / f'come and go {number % 7}'\n"
        "    (one / 'deeper').mkdir(parents=True)\n"
        "    (one / 'deeper/file').touch()\n"
        "    if number == 20: print('ready', flush=True)\n"
        "    (one / 'deeper/file').unlink(); (one / 'deeper').rmdir(); one.rmdir()\n"
        "    if ends.exists(): break\n"
    )
    changing = subprocess.Popen([sys.executable, "-c", code, hostile, ends], stdout=subprocess.PIPE)
    assert changing.stdout and changing.stdout.readline()
    try:
        for number in range(4):
            scan(database, hostile, tmp_path / f"run-{number}")
    finally:
        ends.touch()
        changing.communicate()
    assert changing.returncode == 0
    scan(database, hostile, tmp_path / "last")
    equal(store, hostile)


@ROOT
def test_directories_that_may_not_be_read_are_counted(tmp_path: Path) -> None:
    """As a user without rights: what is below them is not there, all else is."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o777)
        tree = folder / "tree"
        for name in ("closed", "names only", "open"):
            (tree / name).mkdir(parents=True)
            (tree / name / "file").touch()
        (tree / "closed").chmod(0o000)
        (tree / "names only").chmod(0o444)
        path = folder / "entries.db"
        path.touch()
        database = {"kind": "sqlite", "path": str(path)}
        with closing(connect(database)) as store:
            store.create()
        for each in (path, *folder.iterdir()):
            os.chown(each, 65534, 65534)
        python = readable_python()
        (folder / "run").mkdir()
        (folder / "run").chmod(0o777)
        config = Config(tree=str(tree), folder=str(folder / "run"), database=database)
        (folder / "run/config.json").write_text(config.text())
        command = [python, *PIPELINE[1:], str(folder / "run/config.json")]
        options: dict[str, Any] = {"cwd": folder, "env": {"PYTHONPATH": SOURCE}, "user": 65534, "group": 65534}
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
        assert done.returncode == 0, done.stderr
        assert json.loads((folder / "run" / RESULT).read_text())["unreadable"] == 2
        with closing(connect(database)) as store:
            paths = {row[2] for row in store.rows()}
        assert paths == {b"", b"closed", b"names only", b"open", b"open/file"}


MOUNTS = """
mount --bind "$1" "$1/a/loop" || exit 77
mount -t tmpfs none "$1/mounted" || exit 77
touch "$1/mounted/file"
shift
exec "$@"
"""


def mounts_of_its_own(folder: Path) -> Path:
    """A script that mounts within a tree and calls a command; the test is skipped where that is not permitted."""
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode
    ):
        pytest.skip("mounts of its own are not permitted")
    script = folder / "mounts"
    script.write_text(MOUNTS)
    return script


@ROOT
def test_a_loop_of_mounts_is_an_entry_and_is_not_entered(
    database: dict[str, str], store: Store, tree: Path, tmp_path: Path
) -> None:
    (tree / "a/loop").mkdir(parents=True)
    (tree / "a/file").touch()
    (tree / "mounted").mkdir()
    script = mounts_of_its_own(tmp_path)
    counted = scan(database, tree, tmp_path / "run", "unshare", "--mount", "sh", str(script), str(tree))
    assert counted["loops"] == 1 and counted["elsewhere"] == 1
    assert {row[2] for row in store.rows()} == {b"", b"a", b"a/loop", b"a/file", b"mounted"}
    walk = (
        "import sys; from pathlib import Path; from loadframe_index.beneath import *\n"
        "with Beneath(Path(sys.argv[1])) as tree:\n"
        "    passed = Passed()\n"
        "    print(len(list(below(tree, looked_up(tree, b'', passed), passed))), sorted(passed.counts.items()))\n"
    )
    command = ["unshare", "--mount", "sh", str(script), str(tree), sys.executable, "-c", walk, str(tree)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "4 [('a directory that is its own ancestor', 1), ('another file system', 1)]\n"


CHANGES_WITHIN = """
import sys
from pathlib import Path
from loadframe.errors import MachineError
from loadframe_index.keeping import KERNEL
root = Path(sys.argv[2])
try:
    reader = KERNEL[sys.argv[1]](root)
except MachineError as error:
    sys.exit(f"refused: {error}")
(root / "new").touch()
(root / "a/file").chmod(0o600)
print(sorted({change.path for change in reader.read(1.0).changes}))
"""


@ROOT
@pytest.mark.parametrize("kind", ["fanotify", "inotify"])
def test_a_change_log_tells_the_first_path_of_a_directory_that_is_mounted_twice(
    tree: Path, tmp_path: Path, kind: str
) -> None:
    """inotify has one watch for it, whatever its paths are: the scan never enters the loop, which is the second."""
    (tree / "a/loop").mkdir(parents=True)
    (tree / "a/file").touch()
    (tree / "mounted").mkdir()
    before = ["unshare", "--mount", "sh", str(mounts_of_its_own(tmp_path)), str(tree)]
    command = [*before, sys.executable, "-c", CHANGES_WITHIN, kind, str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.stderr.startswith("refused"):
        pytest.skip(done.stderr)
    assert done.stdout == "[b'a/file', b'new']\n", done.stderr


def test_a_path_is_shown_on_one_line() -> None:
    assert shown(b"a\nb\xff\x1b[31m") == "a\\nb\\xff\\x1b[31m"
    assert len(shown(b"x" * 10_000)) < 400


@pytest.mark.long
def test_too_few_descriptors_end_a_scan_and_forget_nothing(
    sqlite_database: dict[str, str], tree: Path, tmp_path: Path
) -> None:
    """The scan could not list the root, counted it as unreadable, and forgot all that the database had."""
    seeded.make(tree / "made", Shape(300, depth=10, files_per_directory=5))
    with closing(connect(sqlite_database)) as store:
        store.create()
        scan(sqlite_database, tree, tmp_path / "first")
        for most in (20, 28, 32, 36, 64):
            folder = tmp_path / f"few {most}"
            folder.mkdir()
            config = Config(
                tree=str(tree), folder=str(folder), database=sqlite_database, scan_threads=8, fs_threads=8, batch=50
            )
            (folder / "config.json").write_text(config.text())
            command = ["sh", "-c", f'ulimit -n {most} && exec "$@"', "sh", *PIPELINE, str(folder / "config.json")]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
            equal(store, tree)


def run_here(config: Config) -> dict[str, Any]:
    """One process of the pipeline, in this one."""
    config.path(BOARD).write_bytes(bytes(config.shape.bytes))
    with ExitStack() as stack:
        process = Process(config, 0, stack)
        process.run(time.monotonic(), process.coordinator())
    result: dict[str, Any] = json.loads(config.path(RESULT).read_text())
    return result


@pytest.mark.parametrize("way", ["listing", "directory"])
def test_what_a_file_system_fails_to_give_is_counted_and_not_forgotten(
    sqlite_database: dict[str, str], tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    for name in ("broken", "whole"):
        (tree / name / "below").mkdir(parents=True)
        (tree / name / "below/file").touch()
    config = Config(tree=str(tree), folder=str(tmp_path), database=sqlite_database)
    with closing(connect(sqlite_database)) as store:
        store.create()
        run_here(config)
        before, right = set(store.ids()), getattr(Beneath, way)

        def broken(beneath: Beneath, path: bytes) -> int:
            if path.startswith(b"broken"):
                raise OSError(errno.EIO, "Input/output error")
            return int(right(beneath, path))

        monkeypatch.setattr(Beneath, way, broken)
        (tree / "whole/below/file").unlink()
        counted = run_here(config)
        assert counted["failed"] > 0 and counted["forgotten"] == 0
        (tmp_path / "none").touch()
        with closing(connect(sqlite_database)) as again, closing(Recorded(tmp_path / "none")) as reader:
            following = Following(again, tree, reader)
            following.start()
            following.close()
        assert set(store.ids()) == before
        monkeypatch.undo()
        assert run_here(config)["failed"] == 0
        equal(store, tree)


def test_a_change_within_the_tick_of_a_look_is_written_by_the_next_scan(
    sqlite_database: dict[str, str], tree: Path, tmp_path: Path
) -> None:
    """Its times are those that the database has already."""
    (tree / "file").write_text("what was there")
    scan(sqlite_database, tree, tmp_path / "first")
    with closing(sqlite3.connect(sqlite_database["path"])) as asked:
        asked.execute("UPDATE entries SET size = 1, seen_ns = ctime_ns + 1000000")
        asked.commit()
    scan(sqlite_database, tree, tmp_path / "next")
    with closing(connect(sqlite_database)) as store:
        equal(store, tree)
