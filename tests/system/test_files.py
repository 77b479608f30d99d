"""A run folder may be a stranger's: it is reached by names below it alone, and nothing in it leads elsewhere."""

from __future__ import annotations

import ast
import fcntl
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sources
from loadframe.errors import RunError
from loadframe.runs.folder import RunFolder
from loadframe.system import files
from loadframe.system.files import Folder, Whose
from loadframe.system.trees import remove_tree


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.write_text("secret")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    found = Folder(tmp_path / "run", Whose.NAMED)
    found.make()
    return found


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../../x", "a//b", "./x", "x/", "a\0b", "y" * 201, ".."])
def test_a_name_that_leads_out_is_refused(folder: Folder, name: str) -> None:
    for do in (folder.exists, folder.descriptor, folder.make_folder, folder.new_file):
        with pytest.raises(RunError, match="not the name of a file below a folder"):
            do(name)
    for write in (folder.replace, folder.append):
        with pytest.raises(RunError, match="not the name of a file below a folder"):
            write(name, b"x")


def a_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def a_device(path: Path, _outside: Path) -> None:
    path.symlink_to("/dev/zero")


def a_pipe(path: Path, _outside: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path, _outside: Path) -> None:
    path.mkdir()


def a_socket(path: Path, _outside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


@pytest.mark.parametrize("plant", [a_link, a_device, a_pipe, a_folder, a_socket])
def test_only_regular_files_are_read_and_written_in_place(
    folder: Folder, outside: Path, plant: Callable[[Path, Path], None]
) -> None:
    plant(folder.path / "x", outside)
    for do in (lambda: folder.read("x", 100), lambda: folder.append("x", b"more"), lambda: folder.cut("x", 0)):
        with pytest.raises(RunError, match="not a regular file"):
            do()
    assert outside.read_text() == "secret"


def test_a_whole_file_takes_the_place_of_a_link_and_does_not_follow_it(folder: Folder, outside: Path) -> None:
    (folder.path / "x").symlink_to(outside)
    (folder.path / "x.part").symlink_to(outside)
    folder.replace("x", b"ours")
    assert outside.read_text() == "secret"
    assert folder.read("x", 100) == b"ours"


def test_a_new_file_is_never_one_that_was_there(folder: Folder, outside: Path) -> None:
    (folder.path / "x").symlink_to(outside)
    with pytest.raises(FileExistsError):
        folder.new_file("x")


def test_a_folder_inside_that_is_a_link_is_not_entered(folder: Folder, tmp_path: Path, outside: Path) -> None:
    (folder.path / "raw").symlink_to(tmp_path)
    for do in (
        lambda: folder.read("raw/outside", 100),
        lambda: folder.replace("raw/outside", b"x"),
        lambda: folder.append("raw/outside", b"x"),
        lambda: folder.new_file("raw/y"),
        lambda: folder.exists("raw/outside"),
    ):
        with pytest.raises(RunError, match="raw is a link, or no folder"):
            do()
    assert outside.read_text() == "secret"
    assert not (tmp_path / "y").exists()


def test_a_second_name_of_a_file_elsewhere_is_not_written(folder: Folder, outside: Path) -> None:
    (folder.path / "x").hardlink_to(outside)
    with pytest.raises(RunError, match="another name elsewhere"):
        folder.append("x", b"more")
    folder.replace("x", b"ours")
    assert outside.read_text() == "secret"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder away")
def test_a_second_name_of_a_file_of_ours_in_a_strangers_folder_is_neither_read_nor_written(
    folder: Folder, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel lets anybody link to any file (fs.protected_hardlinks = 0), a stranger's folder could hold one
    that only root may read; and the name may go as soon as the file is open, so that it has only one name left."""
    os.chown(folder.path, 65534, 65534)
    outside.chmod(0o600)
    (folder.path / "x").hardlink_to(outside)
    with pytest.raises(RunError, match="does not belong to its folder's owner"):
        folder.read("x", 100)
    really = os.open

    def swapped(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        name = folder.path / path
        if path == "x":
            name.unlink()
            name.hardlink_to(outside)
        descriptor = really(path, flags, mode, dir_fd=dir_fd)
        if path == "x":
            name.unlink()
        return descriptor

    for do in (lambda: folder.read("x", 100), lambda: folder.append("x", b"more"), lambda: folder.cut("x", 0)):
        (folder.path / "x").unlink(missing_ok=True)
        (folder.path / "x").write_text("theirs")
        os.chown(folder.path / "x", 65534, 65534)
        with monkeypatch.context() as patched, pytest.raises(RunError, match="its folder's owner"):
            patched.setattr(os, "open", swapped)
            do()
    assert outside.read_text() == "secret"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder away")
def test_the_owner_of_a_folder_reads_what_root_writes_into_it(folder: Folder) -> None:
    os.chown(folder.path, 65534, 65534)
    before = os.umask(0o077)
    try:
        folder.replace("x", b"ours")
    finally:
        os.umask(before)
    assert (folder.path / "x").stat().st_mode & 0o777 == 0o644
    assert folder.read("x", 100) == b"ours"


def test_the_folder_that_was_opened_is_the_one_that_is_used(folder: Folder, tmp_path: Path) -> None:
    folder.replace("x", b"ours")
    folder.path.rename(tmp_path / "away")
    trap = tmp_path / "trap"
    trap.mkdir()
    folder.path.symlink_to(trap)
    folder.replace("x", b"more")
    folder.append("lines", b"1\n")
    assert list(trap.iterdir()) == []
    assert (tmp_path / "away" / "x").read_bytes() == b"more"


def test_what_a_killed_writer_has_left_goes_and_nothing_else(folder: Folder, tmp_path: Path, outside: Path) -> None:
    folder.make_folder("raw")
    left = ".a.json.0123456789abcdef.part"
    for name in (left, f"raw/{left}", ".a.part", "a.0123456789abcdef.part", ".a.json.0123456789ABCDEF.part"):
        (tmp_path / "run" / name).touch()
    (tmp_path / "run/.link.0123456789abcdef.part").symlink_to(outside)
    os.link(outside, tmp_path / "run/.other.0123456789abcdef.part")
    (tmp_path / "run/.folder.0123456789abcdef.part").mkdir()
    before = {path.name for path in (tmp_path / "run").iterdir()}
    folder.remove_torn("raw", "latency")
    assert {path.name for path in (tmp_path / "run").iterdir()} == before - {left}
    assert list((tmp_path / "run/raw").iterdir()) == []
    assert outside.read_text() == "secret"


def test_what_is_being_written_is_not_taken_for_what_was_left(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def swept_meanwhile(descriptor: int, data: bytes) -> int:
        Folder(tmp_path / "run", Whose.NAMED).remove_torn()
        return write(descriptor, data)

    monkeypatch.setattr(files.os, "write", swept_meanwhile)
    folder.replace("a.json", b"x")
    assert folder.read("a.json", 10) == b"x"


def test_a_file_that_was_taken_before_it_was_locked_is_made_again(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, swept = files.fcntl.flock, [False]

    def late(descriptor: int, how: int) -> None:
        if how == files.fcntl.LOCK_EX and not swept[0]:
            swept[0] = True
            Folder(tmp_path / "run", Whose.NAMED).remove_torn()
        lock(descriptor, how)

    monkeypatch.setattr(files.fcntl, "flock", late)
    folder.replace("a.json", b"x")
    assert folder.read("a.json", 10) == b"x"
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["a.json"]


def test_an_older_run_put_in_the_place_of_a_new_one_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever owns the folder that runs are in: it belongs to us, too, and would be added to."""
    older = Folder(tmp_path / "older", Whose.NAMED)
    older.make()
    older.replace("run.json", b"{}")
    mkdir = os.mkdir

    def swapped(name: str, mode: int, *, dir_fd: int | None = None) -> None:
        mkdir(name, mode, dir_fd=dir_fd)
        if dir_fd is None:  # of the folders above, which are there
            return
        (tmp_path / name).rename(tmp_path / "taken")
        (tmp_path / "older").rename(tmp_path / name)

    monkeypatch.setattr(files.os, "mkdir", swapped)
    with pytest.raises(RunError, match="replaced by another folder"):
        Folder(tmp_path / "new", Whose.NAMED).make()


@pytest.mark.parametrize("size", [101, 10 * 2**40])
def test_no_more_is_read_than_was_asked_for(folder: Folder, size: int) -> None:
    with (folder.path / "x").open("wb") as file:
        try:
            file.truncate(size)
        except OSError:
            pytest.skip("this file system has no file so large")
    with pytest.raises(RunError, match="is larger than"):
        folder.read("x", 100)


def test_what_others_may_do_with_it_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        run = RunFolder.create(tmp_path, "farm")
        run.write_text("x", "ours")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o022 for path in (run.path, *run.path.rglob("*"))}
    assert set(modes.values()) == {0}, modes


def test_everything_is_on_the_disk_before_the_line_of_its_step(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each new file also the entry of its folder."""
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
    )
    folder.make_folder("raw")
    folder.replace("raw/x", b"ours")
    folder.append("lines", b"1\n")
    folder.append("lines", b"2\n")
    assert synced[0] == "run"
    assert synced[1].startswith(".x.") and synced[2:] == ["raw", "lines", "run", "lines"]


# --- who else writes there ---


def modules() -> Iterator[tuple[str, ast.Module]]:
    return ((name, ast.parse(path.read_text())) for name, path in sources.modules())


@pytest.mark.long
def test_nobody_reaches_into_a_run_folder_by_its_path() -> None:
    """RunFolder.path is for messages and records: `run.path / name` may only be told, as str(...)."""
    found = []
    for name, tree in modules():
        if name.startswith("runs/"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and ends_with_run_path(node.left):
                found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
            if isinstance(node, ast.Attribute) and ends_with_run_path(node.value) and node.attr in REACHING:
                found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


REACHING = {"open", "joinpath", "glob", "iterdir", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir"}


def ends_with_run_path(node: ast.expr) -> bool:
    """run.path, self.run.path, book.bench.run.path, folder.path"""
    if not (isinstance(node, ast.Attribute) and node.attr == "path"):
        return False
    owner = node.value
    name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    return name.strip("_") in ("run", "folder", "before", "after", "earlier")


# --- whose it is ---

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a second user")
STRANGER = 61184


@as_root
def test_a_folder_of_ours_is_refused_where_another_user_could_change_it_or_the_way_to_it(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    (ours / "below").mkdir(parents=True)
    (theirs / "below").mkdir(parents=True)
    os.chown(theirs, STRANGER, STRANGER)
    (tmp_path / "link").symlink_to(ours)
    Folder(ours / "below", Whose.OURS).open()
    for path, why in (
        (theirs, "belongs to"),
        (theirs / "below", "belongs to"),
        (tmp_path / "link", "it is a link"),
    ):
        with pytest.raises(RunError, match=why):
            Folder(path, Whose.OURS).open()
    ours.chmod(0o777)
    with pytest.raises(RunError, match="can be written by other users"):
        Folder(ours / "below", Whose.OURS).open()


@as_root
def test_a_link_of_roots_is_followed_to_where_it_led_when_its_owner_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    for name in ("open", "secret", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (theirs / "way").symlink_to(tmp_path / "open")
    (theirs / "other").symlink_to(tmp_path / "secret")
    os.lchown(theirs / "other", STRANGER, STRANGER)
    os.chown(theirs, STRANGER, STRANGER)
    readlink = os.readlink

    def swapped(*place: Any, **below: Any) -> str:
        if os.path.lexists(theirs / "other"):
            (theirs / "other").rename(theirs / "way")
        return readlink(*place, **below)

    monkeypatch.setattr(os, "readlink", swapped)
    assert Folder(theirs / "way", Whose.ANOTHERS).read("file", 100) == b"open"


@as_root
def test_on_the_way_to_a_folder_of_another_user_none_of_that_users_links_is_followed(tmp_path: Path) -> None:
    secret, theirs = tmp_path / "secret", tmp_path / "theirs"
    secret.mkdir(mode=0o700)
    (secret / "file").write_text("root's")
    theirs.mkdir()
    os.chown(theirs, STRANGER, STRANGER)
    (theirs / "way").symlink_to(secret)
    os.lchown(theirs / "way", STRANGER, STRANGER)
    (tmp_path / "roots-link").symlink_to(theirs)
    with pytest.raises(RunError, match="a link of user 61184"):
        Folder(theirs / "way", Whose.ANOTHERS).open()
    found = Folder(tmp_path / "roots-link", Whose.ANOTHERS)
    assert found.names(10) == ["way"]
    (theirs / "file").hardlink_to(secret / "file")
    (secret / "file").chmod(0o600)
    with pytest.raises(RunError, match="does not belong to its folder's owner"):
        found.read("file", 100)
    found.replace("file", b"new", mode=0o644)  # takes the name, leaves what it led to
    assert (secret / "file").read_text() == "root's"
    assert (secret / "file").stat().st_mode & 0o777 == 0o600


@as_root
def test_a_file_is_written_with_the_owner_and_mode_of_the_one_before_by_its_descriptor(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", STRANGER, STRANGER)
    file = tmp_path / "theirs/settings"
    file.write_text("a = 1\n")
    os.chown(file, STRANGER, STRANGER)
    file.chmod(0o640)
    Folder(tmp_path / "theirs", Whose.ANOTHERS).replace("settings", b"a = 2\n", like=file.stat())
    status = file.stat()
    assert (file.read_text(), status.st_uid, status.st_mode & 0o777) == ("a = 2\n", STRANGER, 0o640)


def test_a_tree_is_removed_and_links_in_it_lead_nowhere(folder: Folder, outside: Path) -> None:
    folder.make_folder("tree", 0o700)
    folder.replace("tree/file", b"x")
    (folder.path / "tree/link").symlink_to(outside.parent)
    (folder.path / "linked").symlink_to(outside.parent)
    folder.remove_tree("tree")
    folder.remove_tree("linked")
    folder.remove_tree("absent")
    folder.remove("absent")
    assert folder.names(10) == ["linked"]
    assert outside.read_text() == "secret"
    with pytest.raises(OSError), folder.changing("linked"):
        pytest.fail("a link was opened")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("planted", ["link", "fifo"])
def test_a_tree_is_removed_by_no_link_and_waits_at_no_fifo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    """What another user puts in the place of a folder between the look at it and its opening."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    opened = os.open

    def swapped(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        inner = tree / "inner"
        if path == "inner" and inner.is_dir() and not inner.is_symlink():
            inner.rename(tmp_path / "away")
            inner.symlink_to(precious) if planted == "link" else os.mkfifo(inner)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapped)
    remove_tree(tree)
    assert (tmp_path / "away").exists(), "it was swapped"
    assert (precious / "file").exists()
    monkeypatch.undo()
    remove_tree(tree)
    assert not tree.exists()


def deep_tree(above: Path, depth: int) -> Path:
    at = os.open(above, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    return above / "d"


def test_a_tree_deeper_than_descriptors_and_frames_is_removed(tmp_path: Path) -> None:
    remove_tree(deep_tree(tmp_path, 3000))
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_leaves_of_a_deep_tree_is_still_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever removes what was left knows the tree by its name."""
    tree, rename = deep_tree(tmp_path, 200), os.rename

    class Killed(BaseException):
        pass

    def last(*given: Any, **places: Any) -> None:
        rename(*given, **places)
        raise Killed

    monkeypatch.setattr(os, "rename", last)
    with pytest.raises(Killed):
        remove_tree(tree)
    assert list(tmp_path.iterdir()) == [tree]
    monkeypatch.undo()
    remove_tree(tree)
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_that_another_process_has_locked_first_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, locked, modes = os.open, fcntl.flock, []
    strangers: list[int] = []

    def opens(path: Any, flags: int, *mode: Any, **at: Any) -> int:
        descriptor = opened(path, flags, *mode, **at)
        if flags & os.O_EXCL:
            modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
            if not strangers:
                strangers.append(opened(path, os.O_RDONLY, **at))
                locked(strangers[0], fcntl.LOCK_EX)
        return descriptor

    def locks(descriptor: int, how: int) -> None:
        assert how & fcntl.LOCK_NB, "it would wait"
        locked(descriptor, how)

    monkeypatch.setattr(os, "open", opens)
    monkeypatch.setattr(fcntl, "flock", locks)
    umask = os.umask(0o027)
    try:
        Folder(tmp_path, Whose.OURS).replace("out", b"new")
    finally:
        os.umask(umask)
        for descriptor in strangers:
            os.close(descriptor)
    assert list(tmp_path.iterdir()) == [tmp_path / "out"] and (tmp_path / "out").read_bytes() == b"new"
    assert modes == [0o600, 0o600] and stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640
