"""The rights of another user on files, for one thread of ours."""

import ctypes
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from loadframe.errors import CageError
from loadframe.host.privilege import US, Privilege, ids_of
from loadframe.host.signals import undisturbed

SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159, "ppc64le": 81, "s390x": 206}
"""The number of the system call (syscalls(2))."""
_SAME = 2**32 - 1
"""Changes nothing, and answers what is (setfsuid(2))."""


@contextmanager
def rights_of(user: Privilege, group: int | None = None) -> Iterator[None]:
    """Within, files are opened, made and removed as this user: for libraries that work by path in a folder in which the
    user may put links. group: of the folder on the way that the user may pass through; None: the user's own. It holds
    for this thread and those that it starts meanwhile. CageError where the kernel refuses."""
    if user == US or os.geteuid() != 0:
        yield
        return
    ids, own = ids_of(user), os.getgroups()
    gid = ids.gid if group is None else group
    try:
        with undisturbed():
            _set_groups(sorted({*ids.groups, gid}))
            _set(ids.uid, gid)
        yield
    finally:
        with undisturbed():
            _set(os.geteuid(), os.getegid())
            _set_groups(own)


def _set_groups(numbers: Sequence[int]) -> None:
    """Of this thread alone: the function of the C library changes all threads."""
    number = SETGROUPS.get(platform.machine())
    groups = (ctypes.c_uint32 * len(numbers))(*numbers)
    if number is None or ctypes.CDLL(None).syscall(number, len(numbers), groups) != 0:
        raise CageError(
            f"The groups of this thread cannot be changed to {', '.join(map(str, numbers)) or 'none'}",
            remedy="Run Loadframe with CAP_SETUID and CAP_SETGID, or as another user than root.",
        )


def _set(uid: int, gid: int) -> None:
    libc = ctypes.CDLL(None)
    for function, number in ((libc.setfsgid, gid), (libc.setfsuid, uid)):
        function(number)
        if function(_SAME) & _SAME != number:
            raise CageError(
                f"The kernel does not give files the rights of user {uid}, group {gid}",
                remedy="Run Loadframe with CAP_SETUID and CAP_SETGID, or as another user than root.",
            )
