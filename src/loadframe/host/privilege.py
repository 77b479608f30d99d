"""As whom a process runs: the caller says so in one of three ways, without a default. If a user cannot run the program,
the process is not started: no branch falls back to root."""

import ctypes
import grp
import os
import platform
import pwd
import random
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from loadframe.errors import CageError
from loadframe.host.signals import whole
from loadframe.system.kernel import PROC, kernel_text, pids, process_status
from loadframe.system.trees import closing
from loadframe.system.trust import ACCESS_LIST, DEFAULT_LIST


@dataclass(frozen=True, slots=True)
class Us:
    """The user who runs Loadframe, root included."""

    def __str__(self) -> str:
        return "the user who ran Loadframe"


@dataclass(frozen=True, slots=True)
class LeaseUser:
    """A number that no user and no group of the machine has."""

    number: int

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class NamedUser:
    """An account of this machine, with its groups, or a number without an account."""

    name: str | int

    def __str__(self) -> str:
        return str(self.name)


Privilege = Us | LeaseUser | NamedUser
US = Us()


@dataclass(frozen=True, slots=True)
class Ids:
    """groups: all that the user is in, without those that a lease adds."""

    uid: int
    gid: int
    groups: frozenset[int]


def ids_of(privilege: Privilege) -> Ids:
    match privilege:
        case Us():
            return Ids(os.geteuid(), os.getegid(), frozenset({os.getegid(), *os.getgroups()}))
        case LeaseUser(number) | NamedUser(int(number)):
            return Ids(number, number, frozenset({number}))
        case NamedUser(name):
            try:
                account = pwd.getpwnam(str(name))
            except KeyError as error:
                raise CageError(
                    f"There is no user {name!r} on this machine",
                    remedy="Create it, or name another one in the study (target.user, workload.user).",
                ) from error
            return Ids(account.pw_uid, account.pw_gid, frozenset(os.getgrouplist(str(name), account.pw_gid)))
    assert_never(privilege)


def of_uid(uid: int) -> Privilege:
    if uid == os.geteuid():
        return US
    try:
        return NamedUser(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return NamedUser(uid)


CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE = 2, 5, 6, 7, 19
CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_SYS_RESOURCE = 21, 23, 24
"""linux/capability.h."""
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_CAPABILITY_VERSION_3 = 0x20080522


def holds(capability: int, proc: Path = PROC) -> bool:
    """In effect (capabilities(7))."""
    return bool(int(process_status("self", "CapEff", proc=proc)[0], 16) >> capability & 1)


def keep_only(capabilities: Collection[int], *, also_in_children: bool) -> None:
    """Give up all other capabilities for good, in a process with one thread. also_in_children: no program that it runs
    regains them (PR_SET_NO_NEW_PRIVS). CageError."""
    libc = ctypes.CDLL(None, use_errno=True)
    kept = int(process_status("self", "CapPrm")[0], 16) & sum(1 << number for number in set(capabilities))
    halves = [number for half in (kept & 0xFFFFFFFF, kept >> 32) for number in (half, half, 0)]
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)(*halves)) != 0 or (
        also_in_children and libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
    ):
        raise CageError(
            f"privileges cannot be given up: {os.strerror(ctypes.get_errno())}", remedy="Run it as another user."
        )


def leave_no_memory_behind() -> None:
    """No core dumps, and no access for other processes of our user (PR_SET_DUMPABLE, ptrace(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


FREE = range(61184, 65520)
"""systemd's range for temporary users of services (systemd.exec(5), DynamicUser=), given to no other users."""
NEEDED = {"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7, "CAP_SYS_PTRACE": 19}
"""linux/capability.h. Without the last one, /proc does not show what a process of another user has open."""


def free_user(proc: Path = PROC, *, besides: int | None = None) -> int | None:
    """A random number of FREE that no user, group or process has, and not `besides`; None if we may not start processes
    under it: we are not root, lack a capability of NEEDED, or the namespace has no such users."""
    if os.geteuid() != 0 or _lacking(proc):
        return None
    setgroups = proc / "self/setgroups"  # not there on a kernel without user namespaces
    if setgroups.exists() and kernel_text(setgroups).strip() == "deny":
        return None
    taken = {besides}
    for pid in pids(proc):
        with suppress(OSError):  # it has ended
            taken |= set(map(int, process_status(pid, "Uid", "Gid", "Groups", proc=proc)))
    maps = [_ranges(proc / "self" / name) for name in ("uid_map", "gid_map")]
    for number in random.sample(FREE, len(FREE)):
        mapped = all(any(number in span for span in ranges) for ranges in maps)
        if mapped and number not in taken and not _known(number):
            return number
    return None


def why_no_free_user(proc: Path = PROC) -> str:
    if os.geteuid() != 0:
        return "only root starts processes under another user"
    if lacking := _lacking(proc):
        return f"this process has no {', '.join(lacking)}"
    return "this user namespace has no number for such a user, or lets no process change its groups"


def make_private(path: Path, owner: Privilege, *, group: int | None = None) -> None:
    """Only its owner may read and write; `group` may pass through it. FileExistsError, CageError if another user
    replaced it before it was closed, OSError."""
    path.mkdir(mode=0o700)
    with closing(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)) as descriptor:
        if (uid := os.fstat(descriptor).st_uid) != os.geteuid():
            raise CageError(f"{path} was put there by user {uid}", remedy="Set LOADFRAME_SCRATCH to another folder.")
        if owner != US:
            ids = ids_of(owner)
            os.fchown(descriptor, ids.uid, ids.gid)
        if group is not None:
            os.fchown(descriptor, -1, group)
        for inherited in (ACCESS_LIST, DEFAULT_LIST):  # from the folder above: they would admit others
            with suppress(OSError):  # there is none
                os.removexattr(descriptor, inherited)
        os.fchmod(descriptor, 0o700 if group is None else 0o710)


def _lacking(proc: Path) -> list[str]:
    return [name for name, number in NEEDED.items() if not holds(number, proc)]


def _ranges(path: Path) -> list[range]:
    """All numbers on a kernel without user namespaces, which lacks the file."""
    if not path.exists():
        return [range(2**32)]
    rows = (map(int, line.split()) for line in kernel_text(path).splitlines())
    return [range(first, first + count) for first, _, count in rows]


def _known(number: int) -> bool:
    for look in (pwd.getpwuid, grp.getgrgid):
        with suppress(KeyError):
            look(number)
            return True
    return Path(f"/run/systemd/dynamic-uid/{number}").exists()


SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159, "ppc64le": 81, "s390x": 206}
_NO_RIGHTS = "Run Loadframe with CAP_SETUID and CAP_SETGID, or as another user than root."
_SAME = 2**32 - 1
"""Changes nothing, and returns the present value (setfsuid(2))."""


@contextmanager
@whole
def rights_of(user: Privilege, group: int | None = None) -> Iterator[None]:
    """Within, files are opened, made and removed as this user, by this thread and those that it starts meanwhile: for
    libraries that work by path in a folder in which the user may put links. group: of the folder on the way that the
    user may pass through; None: the user's own. CageError."""
    if user == US or os.geteuid() != 0:
        yield
        return
    ids, own = ids_of(user), os.getgroups()
    gid = ids.gid if group is None else group
    try:
        _set_groups(sorted({*ids.groups, gid}))
        _set(ids.uid, gid)
        yield
    finally:
        _set(os.geteuid(), os.getegid())
        _set_groups(own)


def _set_groups(numbers: Sequence[int]) -> None:
    """Of this thread alone: the C library's function changes all threads."""
    number = SETGROUPS.get(platform.machine())
    groups = (ctypes.c_uint32 * len(numbers))(*numbers)
    if number is None or ctypes.CDLL(None).syscall(number, len(numbers), groups) != 0:
        shown = ", ".join(map(str, numbers)) or "none"
        raise CageError(f"The groups of this thread cannot be changed to {shown}", remedy=_NO_RIGHTS)


def _set(uid: int, gid: int) -> None:
    libc = ctypes.CDLL(None)
    for function, number in ((libc.setfsgid, gid), (libc.setfsuid, uid)):
        function(number)
        if function(_SAME) & _SAME != number:
            raise CageError(f"The kernel does not give files the rights of user {uid}, group {gid}", remedy=_NO_RIGHTS)
