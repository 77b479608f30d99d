"""As whom a process runs: whoever starts it says so, one of three ways, and there is no default. Where it is not known,
or a user cannot run what it should, the process is not started: no branch ends as root for want of an answer."""

import os
import pwd
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from loadframe.errors import CageError


@dataclass(frozen=True, slots=True)
class Us:
    """The user who runs Loadframe, root included."""

    def __str__(self) -> str:
        return "the user who ran Loadframe"


@dataclass(frozen=True, slots=True)
class LeaseUser:
    """The user of a lease, whom nothing else on the machine has: a number that is in no list of users, and that of a
    group too."""

    number: int

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class NamedUser:
    """A user of this machine: an account, with the groups that it is in, or the number of one without an account."""

    name: str | int

    def __str__(self) -> str:
        return str(self.name)


Privilege = Us | LeaseUser | NamedUser
US = Us()


@dataclass(frozen=True, slots=True)
class Ids:
    """Of a user. groups: all that it is in, without those that a lease adds."""

    uid: int
    gid: int
    groups: frozenset[int]


def ids_of(privilege: Privilege) -> Ids:
    """CageError where there is no such user."""
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
    """Who has this number: ourselves; an account, with its groups; else a user without an account."""
    if uid == os.geteuid():
        return US
    try:
        return NamedUser(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return NamedUser(uid)


PROC = Path("/proc")
CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE = 2, 5, 6, 7, 19
CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_SYS_RESOURCE = 21, 23, 24
"""linux/capability.h."""
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_CAPABILITY_VERSION_3 = 0x20080522


def holds(capability: int, proc: Path = PROC) -> bool:
    """Whether we have a capability in effect, by its number in linux/capability.h (capabilities(7))."""
    return bool(_capabilities("CapEff", proc) >> capability & 1)


def _capabilities(which: str, proc: Path = PROC) -> int:
    text = (proc / "self/status").read_text(encoding="utf-8", errors="replace")
    return int(re.findall(rf"^{which}:\t(\w+)", text, re.M)[0], 16)


def keep_only(capabilities: Collection[int], *, also_in_children: bool) -> None:
    """Of a process of root's with one thread: give up all other capabilities for good (capabilities(7)).
    also_in_children: no program that is run gets them back (PR_SET_NO_NEW_PRIVS). CageError."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    kept = _capabilities("CapPrm") & sum(1 << number for number in set(capabilities))
    halves = [number for half in (kept & 0xFFFFFFFF, kept >> 32) for number in (half, half, 0)]
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)(*halves)) != 0 or (
        also_in_children and libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
    ):
        raise CageError(
            f"privileges cannot be given up: {os.strerror(ctypes.get_errno())}", remedy="Run it as another user."
        )


def leave_no_memory_behind() -> None:
    """This process's memory is in no core dump, and no process of its user's reads it (PR_SET_DUMPABLE, ptrace(2))."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
