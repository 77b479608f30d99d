"""What stands in the state directory is acted on, so nobody else may write to it, and what cannot be used is left."""

from __future__ import annotations

import json
import os
import pwd
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loadframe.errors import CageError
from loadframe.host import state
from loadframe.host.leases import Lease
from loadframe.host.leftovers import sweep
from loadframe.host.state import scratch_directory, state_directory
from loadframe.system import trust

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
NOBODY = pwd.getpwnam("nobody").pw_uid


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOADFRAME_STATE", str(tmp_path / "way" / "state"))
    monkeypatch.setenv("LOADFRAME_SCRATCH", str(tmp_path / "scratch"))
    return tmp_path / "way" / "state"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_for_us_alone_whatever_the_umask(place: Path) -> None:
    before = os.umask(0)
    try:
        with Lease.acquire("a study") as lease:
            assert [mode(folder) for folder in (place.parent, place, place / "leases")] == [0o755, 0o700, 0o700]
            assert {mode(file) for file in (place / "leases").iterdir()} == {0o600}
            assert mode(lease.folder) & 0o022 == 0
    finally:
        os.umask(before)


def test_one_that_an_older_version_has_made_is_closed_to_others(place: Path) -> None:
    (place / "leases").mkdir(parents=True)
    for folder in (place, place / "leases"):
        folder.chmod(0o755)
    sweep()
    assert [mode(place), mode(place / "leases")] == [0o700, 0o700]


def test_a_folder_with_other_things_in_it_keeps_its_mode(place: Path) -> None:
    """LOADFRAME_STATE may name a home folder."""
    place.mkdir(parents=True)
    (place / "mail").touch()
    place.chmod(0o755)
    sweep()
    assert [mode(place), mode(place / "leases")] == [0o755, 0o700]


@pytest.mark.parametrize("bits", [0o777, 0o757, 0o1777, 0o773])
def test_one_that_others_can_write_to_is_refused(place: Path, bits: int) -> None:
    place.mkdir(parents=True)
    place.chmod(bits)
    with pytest.raises(CageError, match=str(place)) as caught:
        sweep()
    assert "chmod 700" in caught.value.remedy and "LOADFRAME_STATE" in caught.value.remedy
    assert mode(place) == bits


def test_a_way_that_others_can_change_is_refused(place: Path) -> None:
    place.mkdir(parents=True)
    place.parent.chmod(0o777)
    with pytest.raises(CageError, match="can be written by other users"):
        state_directory()
    place.parent.chmod(0o1777)
    assert state_directory() == place


def test_a_group_without_other_members_is_its_owners_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As most distributions have it, with umask 002."""
    place.mkdir(parents=True)
    place.parent.chmod(0o775)
    assert state_directory() == place
    monkeypatch.setattr(trust, "own_group", lambda gid: False)
    with pytest.raises(CageError):
        state_directory()


@ROOT_ONLY
def test_one_of_another_user_is_refused_and_what_is_planted_there_not_touched(place: Path, tmp_path: Path) -> None:
    with Lease.acquire("a study") as lease:
        lease._life.forget()
        os.chown(place, NOBODY, -1)
        with pytest.raises(CageError, match="belongs to user nobody") as caught:
            sweep()
        assert lease.folder.exists()
        assert "LOADFRAME_STATE" in caught.value.remedy
        os.chown(place, 0, -1)
        os.chown(place.parent, NOBODY, -1)
        with pytest.raises(CageError, match="way belongs to user nobody"):
            sweep()
        os.chown(place.parent, 0, -1)
        (file,) = (place / "leases").glob("*.json")
        os.chown(file, NOBODY, -1)
        (swept,) = sweep()
        assert "belongs to user nobody" in str(swept)
        assert lease.folder.exists()


def others_may(folder: Path, which: str) -> None:
    """A list (acl(5)) by which the user nobody may do everything there, as `setfacl -m u:nobody:rwx` writes it."""
    every = 2**32 - 1
    entries = [(1, 7, every), (2, 7, NOBODY), (4, 5, every), (16, 7, every), (32, 5, every)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(folder, f"system.posix_acl_{which}", packed)
    except OSError as error:
        pytest.skip(f"this file system has no lists of who may: {error.strerror}")


def test_whom_a_list_lets_write_is_seen(place: Path) -> None:
    """The mode shows those on the list as the group, which may be our own."""
    place.parent.mkdir(mode=0o755)
    others_may(place.parent, "access")
    with pytest.raises(CageError, match="can be written by other users"):
        state_directory()


@ROOT_ONLY
def test_a_list_that_is_handed_down_lets_others_into_no_lease(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    others_may(scratch, "default")
    with Lease.acquire("a test") as lease:
        (lease.folder / "below").mkdir()
        assert not [name for path in (lease.folder, lease.folder / "below") for name in os.listxattr(path)]


@ROOT_ONLY
def test_a_link_of_another_user_in_a_sticky_folder_leads_nowhere(place: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    place.parent.mkdir()
    place.parent.chmod(0o1777)
    link = place.parent / "link"
    link.symlink_to(tmp_path / "real")
    os.environ["LOADFRAME_STATE"] = str(link / "state")
    assert state_directory() == link / "state"
    os.chown(link, NOBODY, -1, follow_symlinks=False)
    with pytest.raises(CageError, match="link belongs to user nobody"):
        state_directory()


def test_a_link_is_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    place.parent.mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CageError, match="it is a link to"):
        state_directory()


def test_temporary_data_go_where_others_cannot_replace_them(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scratch.chmod(0o777)
    with pytest.raises(CageError, match="other users") as caught:
        Lease.acquire("a study")
    assert "LOADFRAME_SCRATCH" in caught.value.remedy
    scratch.chmod(0o1777)
    assert scratch_directory() == scratch
    Lease.acquire("a study").release()


def test_without_a_home_folder_the_variable_is_enough(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state_directory() == place
    monkeypatch.delenv("LOADFRAME_STATE")
    with pytest.raises(CageError, match="no home folder") as caught:
        state_directory()
    assert "LOADFRAME_STATE" in caught.value.remedy


def make_fifo(file: Path) -> None:
    os.mkfifo(file)


def make_link(file: Path) -> None:
    target = file.with_name("target")
    target.write_text("{}")
    file.symlink_to(target)


def make_loop(file: Path) -> None:
    file.symlink_to(file)


def saying(text: str) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        file.write_text(text)

    return write


ODD: dict[str, Callable[[Path], None]] = {
    "fifo": make_fifo,
    "link": make_link,
    "loop": make_loop,
    "folder": Path.mkdir,
    "bytes": lambda file: (file.write_bytes(b"\xff\xfe"), None)[1],
    "large": saying(" " * (state.MOST_BYTES + 1)),
    "empty": saying(""),
    "null": saying("null"),
    "object": saying("{}"),
    "list": saying("[]"),
    "deep": saying("[" * 100_000),
    "digits": saying('{"schema": ' + "9" * 5000 + "}"),
    "nan": saying('{"schema": "loadframe.lease/2", "id": NaN}'),
    "future": saying('{"schema": "loadframe.lease/4"}'),
    "foreign": saying('{"schema": "loadframe.study/1"}'),
    "surrogate": saying('{"schema": "loadframe.lease/2", "id": "\\ud800"}'),
}


@pytest.mark.parametrize("name", ODD)
def test_a_file_that_cannot_be_used_is_told_and_left_and_the_others_are_swept(place: Path, name: str) -> None:
    lease = Lease.acquire("a study")
    lease._life.forget()
    odd = place / "leases" / "odd.json"
    ODD[name](odd)
    told = {swept.what: str(swept) for swept in sweep()}
    assert str(odd) in told["unknown lease"]
    assert "delete it" in told["unknown lease"]
    assert f"removed {lease.folder}" in told["a study"]
    assert os.path.lexists(odd)


@pytest.mark.parametrize(
    "damage",
    [
        {"owner": None},
        {"owner": {"pid": 0, "started_ticks": 1}},
        {"owner": {"pid": "1", "started_ticks": 1}},
        {"owner": {"pid": True, "started_ticks": 1}},
        {"owner": {"pid": 2**40, "started_ticks": 1}},
        {"owner": {"pid": 1, "started_ticks": 1, "uid": 0}},
        {"processes": {"pid": 1}},
        {"processes": [7]},
        {"groups": ["/sys/fs/cgroup/foreign"]},
        {"folder": "relative/loadframe-x"},
        {"boot": 7},
        {"run": ["x"]},
        {"more": 1},
        {"id": "../../x"},
    ],
)
def test_a_lease_with_a_field_that_is_wrong_is_told_and_left(place: Path, damage: dict[str, object]) -> None:
    lease = Lease.acquire("a study")
    (file,) = (place / "leases").glob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | damage))
    lease._life.forget()
    (swept,) = sweep()
    assert swept.what == "unknown lease"
    assert file.exists()
    assert lease.folder.exists()


@pytest.mark.parametrize("make", [make_fifo, make_link, Path.mkdir], ids=["fifo", "link", "folder"])
def test_a_lock_that_is_none_of_ours_is_not_opened(place: Path, make: Callable[[Path], None]) -> None:
    leases = place / "leases"
    leases.mkdir(parents=True)
    make(leases / "writing.lock")
    with pytest.raises(CageError, match=r"writing\.lock"):
        Lease.acquire("a study")


def test_a_lock_that_is_held_for_too_long_is_told(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with state.locked(lock), pytest.raises(CageError, match="has held"), state.locked(lock, within_s=0.01):
        pass


def test_a_sign_of_life_without_a_lease_is_removed(place: Path) -> None:
    lease = Lease.acquire("a study")
    (file,) = (place / "leases").glob("*.json")
    file.unlink()
    sweep()
    assert list(place.glob("leases/*.alive")), "its owner is about to write the lease"
    lease._life.forget()
    sweep()
    assert not list(place.glob("leases/*.alive"))


def test_a_forked_child_does_not_hold_its_parents_sign_of_life(place: Path) -> None:
    code = """
import os, sys
from loadframe.host.leases import Lease
Lease.acquire("a study")
if os.fork():
    os._exit(0)
print(os.getppid(), flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.wait(30)
        assert [swept.what for swept in sweep()] == ["a study"]
