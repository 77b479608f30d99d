"""The rights of another user on files, for one thread."""

import os
import threading
from pathlib import Path

import pytest

from loadframe.host.privilege import US, LeaseUser, rights_of

STRANGER = LeaseUser(61999)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has the rights of others")
def test_a_link_leads_to_nothing_that_its_user_may_not_open(tmp_path: Path) -> None:
    secret, theirs = tmp_path / "secret", tmp_path / "theirs"
    secret.write_text("root's")
    secret.chmod(0o600)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    theirs.mkdir(mode=0o700)
    os.chown(theirs, STRANGER.number, STRANGER.number)
    (theirs / "link").symlink_to(secret)
    elsewhere: list[str] = []
    begun = threading.Event()
    other = threading.Thread(target=lambda: elsewhere.append(secret.read_text() if begun.wait(30) else ""))
    other.start()
    with rights_of(STRANGER):
        with pytest.raises(PermissionError):
            (theirs / "link").read_text()
        with pytest.raises(PermissionError):
            (tmp_path / "made").touch()
        (theirs / "made").touch()
        begun.set()
        other.join(timeout=30)
    assert elsewhere == ["root's"], "other threads keep theirs"
    assert (theirs / "made").stat().st_uid == STRANGER.number
    assert (theirs / "link").read_text() == "root's"


def test_of_ourselves_nothing_changes(tmp_path: Path) -> None:
    with rights_of(US):
        (tmp_path / "made").touch()
    assert (tmp_path / "made").stat().st_uid == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has the rights of others")
def test_they_are_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), rights_of(STRANGER):
        raise KeyboardInterrupt
    tmp_path.chmod(0o700)
    (tmp_path / "made").touch()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has the rights of others")
def test_groups_of_ours_give_no_rights(tmp_path: Path) -> None:
    grouped = tmp_path / "grouped"
    grouped.write_text("of a group of root's")
    os.chown(grouped, 0, 6)
    grouped.chmod(0o660)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    before = os.getgroups()
    os.setgroups([0, 6])
    try:
        with rights_of(STRANGER), pytest.raises(PermissionError):
            grouped.read_text()
        assert grouped.read_text() == "of a group of root's" and os.getgroups() == [0, 6]
    finally:
        os.setgroups(before)
