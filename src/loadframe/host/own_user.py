"""A user whom nothing else on the machine knows, for what needs no rights; and folders of one user alone."""

import grp
import os
import pwd
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from loadframe.errors import CageError
from loadframe.host.privilege import PROC, US, Privilege, holds, ids_of
from loadframe.system.trust import ACCESS_LIST, DEFAULT_LIST

FREE = range(61184, 65520)
"""From these systemd takes the users of services that have one for as long as they run (systemd.exec(5), DynamicUser=):
no distribution gives them to other users."""
NEEDED = {"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7, "CAP_SYS_PTRACE": 19}
"""linux/capability.h. Without the last one, /proc does not say what a process of another user has open."""


def free_user(proc: Path = PROC, *, besides: int | None = None) -> int | None:
    """A number of FREE, at random, that is no user's and no group's, not `besides`, and that no process has; None where
    we may not start processes under it: we are not root, lack a capability of NEEDED, or are in a namespace without
    such users."""
    if os.geteuid() != 0 or _lacking(proc):
        return None
    setgroups = proc / "self/setgroups"  # not there on a kernel without user namespaces
    if setgroups.exists() and setgroups.read_text(encoding="utf-8", errors="replace").strip() == "deny":
        return None
    taken = frozenset((*_in_use(proc), besides))
    maps = [_ranges(proc / "self" / name) for name in ("uid_map", "gid_map")]
    for number in random.sample(FREE, len(FREE)):
        mapped = all(any(number in one for one in ranges) for ranges in maps)
        if mapped and number not in taken and not _known(number):
            return number
    return None


def why_no_free_user(proc: Path = PROC) -> str:
    """Why `free_user` answers None, in words."""
    if os.geteuid() != 0:
        return "only root starts processes under another user"
    if lacking := _lacking(proc):
        return f"this process has no {', '.join(lacking)}"
    return "this user namespace has no number for such a user, or lets no process change its groups"


def make_private(path: Path, owner: Privilege, *, group: int | None = None) -> None:
    """A new folder that its owner alone may read and write; a group may pass through it. FileExistsError
    where there is something; CageError where it has become another's before it was closed; OSError."""
    path.mkdir(mode=0o700)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if (found := os.fstat(descriptor).st_uid) != os.geteuid():
            raise CageError(f"{path} was put there by user {found}", remedy="Set LOADFRAME_SCRATCH to another folder.")
        if owner != US:
            ids = ids_of(owner)
            os.fchown(descriptor, ids.uid, ids.gid)
        if group is not None:
            os.fchown(descriptor, -1, group)
        for inherited in (ACCESS_LIST, DEFAULT_LIST):  # from the folder above: they would let others in
            with suppress(OSError):  # there is none
                os.removexattr(descriptor, inherited)
        os.fchmod(descriptor, 0o700 if group is None else 0o710)
    finally:
        os.close(descriptor)


def _lacking(proc: Path) -> list[str]:
    return [name for name, number in NEEDED.items() if not holds(number, proc)]


def _ranges(path: Path) -> list[range]:
    """The numbers that a user namespace has (user_namespaces(7)); a kernel without them has no such file, and all."""
    if not path.exists():
        return [range(2**32)]
    rows = [list(map(int, line.split())) for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    return [range(first, first + count) for first, _, count in rows]


def _in_use(proc: Path) -> Iterator[int]:
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        for line in text.splitlines():
            if line.startswith(("Uid:", "Gid:", "Groups:")):
                yield from map(int, line.split()[1:])


def _known(number: int) -> bool:
    for look in (pwd.getpwuid, grp.getgrgid):
        with suppress(KeyError):
            look(number)
            return True
    return Path(f"/run/systemd/dynamic-uid/{number}").exists()
