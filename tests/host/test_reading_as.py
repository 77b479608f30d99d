"""A file is read with the rights of who named it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadframe.host import processes
from loadframe.host.processes import read_as, user_of

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change users")


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """One that every user may enter."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    return tmp_path


def test_the_user_of_a_process() -> None:
    assert user_of(os.getpid()) == os.geteuid()
    with pytest.raises(OSError):
        user_of(0)


@as_root
@pytest.mark.parametrize(("mode", "owner", "read"), [(0o644, 0, True), (0o600, 0, False), (0o600, NOBODY, True)])
def test_what_is_closed_to_the_user_is_closed_to_root(mode: int, owner: int, read: bool, open_folder: Path) -> None:
    file = open_folder / "my.cnf"
    file.write_text("[mysqld]\n")
    file.chmod(mode)
    os.chown(file, owner, owner)
    if read:
        assert read_as(NOBODY, file, 100) == b"[mysqld]\n"
        assert read_as(NOBODY, file, 3) == b"[mys", "one more than asked for"
    else:
        with pytest.raises(OSError, match="cannot read"):
            read_as(NOBODY, file, 100)


@as_root
def test_a_folder_that_is_closed_to_the_user_is_closed(open_folder: Path) -> None:
    (open_folder / "closed").mkdir(mode=0o700)
    (open_folder / "closed/my.cnf").write_text("[mysqld]\n")
    with pytest.raises(OSError, match="cannot read"):
        read_as(NOBODY, open_folder / "closed/my.cnf", 100)


@as_root
def test_a_file_that_becomes_a_pipe_meanwhile(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(open_folder / "pipe", 0o666)
    monkeypatch.setattr(Path, "is_file", lambda _: True)
    monkeypatch.setattr(processes, "PATIENCE_S", 0.1)
    with pytest.raises(TimeoutError, match="not read within"):
        read_as(NOBODY, open_folder / "pipe", 100)


@pytest.mark.parametrize("place", ["/dev/zero", "/dev", "gone", "a\0b"])
def test_what_is_no_regular_file_is_not_opened(place: str) -> None:
    with pytest.raises((OSError, ValueError)):
        read_as(NOBODY, Path(place), 100)
