"""A file of the owner's of a running service, in a folder in which another user swaps it for a link all the time."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from loadframe.errors import ChangeError
from loadframe.kinds.service.file_settings import OwnFile

THEIRS, NEIGHBOUR = 61998, 61999
SECRET = "[a]\nx = 7\npassword = neighbours\n"
ROOT_ALONE = pytest.mark.skipif(os.geteuid() != 0, reason="only root writes files of others")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, THEIRS if os.geteuid() == 0 else -1, -1)
    return written(folder / "app.ini")


def written(path: Path) -> Path:
    path.write_text("[a]\nx = 1\n")
    os.chown(path, THEIRS if os.geteuid() == 0 else -1, -1)
    return path


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.ini"
    path.write_text(SECRET)
    path.chmod(0o600)
    os.chown(path, NEIGHBOUR if os.geteuid() == 0 else -1, -1)
    return path


@contextmanager
def swapped(file: Path, secret: Path) -> Iterator[None]:
    """The file and a link to the secret take turns at its name, as fast as can be."""
    ended = threading.Event()
    aside, link = file.with_name("aside"), file.with_name("link")

    def swap() -> None:
        link.symlink_to(secret)
        while not ended.is_set():
            for one, other in ((file, aside), (link, file), (file, link), (aside, file)):
                try:
                    one.rename(other)
                except FileNotFoundError:  # it was written meanwhile
                    link.unlink(missing_ok=True)
                    link.symlink_to(secret)
                    if not aside.exists() and file.is_symlink():  # else the link would stay there
                        written(aside).rename(file)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=60)


def files_of(folder: Path) -> Iterator[str]:
    """What stands in its files, which come and go; not behind links."""
    for name in os.listdir(folder):  # noqa: PTH208 - it may be gone
        with suppress(OSError), os.fdopen(os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW)) as found:
            yield found.read()


@ROOT_ALONE
def test_a_secret_behind_a_link_is_never_written_into_the_users_file(file: Path, secret: Path) -> None:
    own, done, refused = OwnFile(file, "ini", ["a.x"]), 0, 0
    with swapped(file, secret):
        for number in range(300):
            try:
                own.set("a.x", 2 + number)
                done += 1
            except ChangeError:
                refused += 1
            assert not any("neighbours" in text for text in files_of(file.parent)), f"attempt {number}"
    assert secret.read_text() == SECRET
    assert done and refused, (done, refused)


@ROOT_ALONE
def test_another_name_of_a_strangers_file_and_what_is_no_file_are_refused(file: Path, secret: Path) -> None:
    for plant in (lambda: file.symlink_to(secret), lambda: os.link(secret, file), lambda: os.mkfifo(file)):
        file.unlink()
        plant()
        with pytest.raises(ChangeError):
            OwnFile(file, "ini", ["a.x"]).set("a.x", 2)
    file.unlink()
    file.write_text(SECRET)
    os.chown(file, NEIGHBOUR, NEIGHBOUR)
    with pytest.raises(ChangeError, match="belongs to"):
        OwnFile(file, "ini", ["a.x"]).set("a.x", 2)
    assert secret.read_text() == SECRET


def test_owner_and_mode_stay(file: Path) -> None:
    file.chmod(0o640)
    before = file.stat()
    own = OwnFile(file, "ini", ["a.x"])
    own.set("a.x", 2)
    own.set("a.x", 1)
    own.done()
    after = file.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    assert file.read_text() == "[a]\nx = 1\n"
    assert [each.name for each in file.parent.iterdir()] == ["app.ini"]


@ROOT_ALONE
def test_a_file_of_the_services_user_in_a_folder_of_roots_is_changed(file: Path) -> None:
    os.chown(file.parent, 0, 0)
    file.chmod(0o600)
    OwnFile(file, "ini", ["a.x"]).set("a.x", 2)
    assert file.read_text() == "[a]\nx = 2\n"
    assert file.stat().st_uid == THEIRS
