"""Connected Unix sockets, and who is at their end."""

import errno
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from loadframe.host.signals import stopped_by_signal

PROBE_S = 5.0
LET_IT_GO_ON = "Find out what stopped it (`kill -CONT` lets it go on), and run it again."


def open_socket(path: str, *, timeout_s: float | None = None) -> socket.socket:
    """OSError where no server answers, with nothing left open (pymysql would keep it open until the next garbage
    collection). A link is followed only if we or root have made it: the folder may be another user's."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_s)
        with _held(Path(path)) as place:
            connection.connect(place)
    except OSError:
        connection.close()
        raise
    return connection


@contextmanager
def _held(path: Path) -> Iterator[str]:
    """A name for what is at this path now, which cannot be replaced meanwhile."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        held = os.open(path.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            status = os.fstat(held)
            if not stat.S_ISLNK(status.st_mode):
                yield f"/proc/self/fd/{held}"
            elif status.st_uid in (0, os.geteuid()):
                yield str(path)
            else:
                raise OSError(errno.ELOOP, f"{path} is a link of user {status.st_uid}")
        finally:
            os.close(held)
    finally:
        os.close(folder)


def stopped(path: str) -> str:
    """A sentence that the process listening at this path was stopped, else "": the kernel lets clients connect to it
    all the same."""
    listener = listening(path)
    return "" if listener is None else stopped_by_signal([listener])


def listening(path: str) -> int | None:
    """The process that listens at this path; None where none is visible."""
    if not path:
        return None
    try:
        with open_socket(path, timeout_s=PROBE_S) as connection:
            return peer(connection)
    except OSError:
        return None


def peer(connection: socket.socket) -> int | None:
    """The process that listens at the other end; None where it is not visible. It may have ended since."""
    return _credentials(connection)[0] or None


def peer_user(connection: socket.socket) -> int:
    """The user of the process at the other end, when it began to listen."""
    return _credentials(connection)[1]


def _credentials(connection: socket.socket) -> tuple[int, int]:
    """pid and uid of SO_PEERCRED (unix(7))."""
    size = struct.calcsize("=iII")
    pid, uid, _ = struct.unpack("=iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return pid, uid
