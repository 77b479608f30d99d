"""The rights of another user on files, for one thread of ours."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from loadframe.errors import CageError
from loadframe.host.privilege import US, Privilege, ids_of

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
    ids = ids_of(user)
    try:
        _set(ids.uid, ids.gid if group is None else group)
        yield
    finally:
        _set(os.geteuid(), os.getegid())


def _set(uid: int, gid: int) -> None:
    libc = ctypes.CDLL(None)
    for function, number in ((libc.setfsgid, gid), (libc.setfsuid, uid)):
        function(number)
        if function(_SAME) & _SAME != number:
            raise CageError(
                f"The kernel does not give files the rights of user {uid}, group {gid}",
                remedy="Run Loadframe with CAP_SETUID and CAP_SETGID, or as another user than root.",
            )
