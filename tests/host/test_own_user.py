"""A user whom nothing else has, folders of one user alone, and the lease's folder, which only its processes pass."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from loadframe.errors import CageError
from loadframe.host import privilege
from loadframe.host.leases import Lease
from loadframe.host.privilege import (
    FREE,
    NEEDED,
    US,
    LeaseUser,
    NamedUser,
    free_user,
    ids_of,
    make_private,
    why_no_free_user,
)
from loadframe.host.processes import Allowance, spawn, unreachable

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes under another user")
ALL = sum(1 << number for number in NEEDED.values())


def _proc(folder: Path, *, capabilities: int = ALL, setgroups: str = "allow", mapped: str = "0 0 65536") -> Path:
    (folder / "self").mkdir()
    (folder / "self/status").write_text(f"CapEff:\t{capabilities:016x}\n")
    (folder / "self/setgroups").write_text(f"{setgroups}\n")
    for name in ("uid_map", "gid_map"):
        (folder / "self" / name).write_text(f"{mapped}\n")
    return folder


@root
def test_a_free_user_is_in_no_list_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = free_user()
    assert number in FREE
    for look in (pwd.getpwuid, grp.getgrgid):
        with pytest.raises(KeyError):
            look(number)
    proc = _proc(tmp_path)
    monkeypatch.setattr(privilege, "FREE", range(61184, 61187))
    for pid, line in ((5, "Uid:\t0\t61184\t0\t0"), (6, "Groups:\t4 61186 ")):
        (proc / str(pid)).mkdir()
        (proc / str(pid) / "status").write_text(f"Name:\tx\n{line}\n")
    assert {free_user(proc) for _ in range(20)} == {61185}


@root
@pytest.mark.parametrize(
    ("machine", "why"),
    [
        ({"capabilities": ALL & ~(1 << 7)}, "no CAP_SETUID"),
        ({"capabilities": ALL & ~(1 << 19)}, "no CAP_SYS_PTRACE"),
        ({"setgroups": "deny"}, "lets no process change its groups"),
        ({"mapped": "0 1000 1"}, "no number for such a user"),
    ],
)
def test_where_no_process_may_become_one_there_is_none(tmp_path: Path, machine: dict[str, str], why: str) -> None:
    proc = _proc(tmp_path, **machine)  # type: ignore[arg-type]
    assert free_user(proc) is None
    assert why in why_no_free_user(proc)


def test_who_is_not_root_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert free_user() is None
    assert "only root" in why_no_free_user()


@root
@pytest.mark.parametrize("umask", [0, 0o777])
def test_a_private_folder_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_private(tmp_path / "own", LeaseUser(61184))
        make_private(tmp_path / "passed", US, group=61184)
    finally:
        os.umask(before)
    own, passed = ((tmp_path / name).stat() for name in ("own", "passed"))
    assert (own.st_mode & 0o7777, own.st_uid, own.st_gid) == (0o700, 61184, 61184)
    assert (passed.st_mode & 0o7777, passed.st_uid, passed.st_gid) == (0o710, 0, 61184)


def test_what_is_there_already_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "own").symlink_to("elsewhere")
    with pytest.raises(FileExistsError):
        make_private(tmp_path / "own", US)


@root
def test_what_has_been_put_in_its_place_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder in which others may rename what is ours."""
    make = Path.mkdir

    def overtaken(path: Path, mode: int = 0o777) -> None:
        make(path, mode)
        os.chown(path, 1234, 1234)

    monkeypatch.setattr(Path, "mkdir", overtaken)
    with pytest.raises(CageError, match="put there by user 1234"):
        make_private(tmp_path / "own", US)
    link = tmp_path / "link"
    monkeypatch.setattr(Path, "mkdir", lambda path, mode=0o777: path.symlink_to("/etc"))
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        make_private(link, US)


@root
def test_a_process_under_a_free_user_has_no_rights_and_no_way_back(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with said.open("wb") as output:
        allowance = Allowance(LeaseUser(61200), shared_group=61300)
        command = ["grep", "-E", "Uid|Gid|Groups|NoNewPrivs|CapEff|CapBnd", "/proc/self/status"]
        assert spawn(command, allowance, stdout=output, stderr=output).wait() == 0
    found = dict(line.split(":\t") for line in said.read_text().splitlines())
    assert found["Uid"].split() == found["Gid"].split() == ["61200"] * 4
    assert found["Groups"].split() == ["61200", "61300"]
    assert int(found["CapEff"], 16) == 0
    assert found["NoNewPrivs"] == "1"


@root
def test_only_who_is_in_its_group_passes_through_the_folder_of_a_lease() -> None:
    with Lease.acquire("a test") as lease:
        (lease.folder / "data").mkdir()
        assert unreachable(lease.folder / "data", NamedUser("nobody")) == lease.folder
        assert unreachable(lease.folder / "data", NamedUser("nobody"), lease.user) is None
        assert unreachable(lease.folder / "data", LeaseUser(lease.user)) is None
        for allowance, may in (
            (Allowance(NamedUser("nobody")), False),
            (Allowance(NamedUser("nobody"), shared_group=lease.user), True),
            (Allowance(LeaseUser(lease.user)), True),
        ):
            done = spawn(["ls", f"{lease.folder}/data"], allowance, stdout=None, stderr=None).wait()
            assert (done == 0) == may


def test_ids_of_a_user() -> None:
    account = pwd.getpwnam("nobody")
    assert (ids_of(NamedUser("nobody")).uid, ids_of(NamedUser("nobody")).gid) == (account.pw_uid, account.pw_gid)
    assert ids_of(LeaseUser(61184)).groups == {61184}
    with pytest.raises(CageError, match="no user 'nosuch'"):
        ids_of(NamedUser("nosuch"))
