"""Connected Unix sockets: opened for clients that would leave one of their own open where nobody answers; and who is at
the other end."""

from __future__ import annotations

import socket
import struct


def open_socket(path: str, *, timeout_s: float | None = None) -> socket.socket:
    """Connect to the socket at this path; OSError where nobody answers, with nothing left open.

    pymysql keeps a reference cycle around the socket of a refused connection, so that it stays open until the next
    garbage collection; it takes one that is connected already.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_s)
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def peer(connection: socket.socket) -> int | None:
    """The process that listens at the other end (unix(7), SO_PEERCRED); None where it is out of our sight."""
    size = struct.calcsize("=iII")
    pid, _, _ = struct.unpack("=iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(pid) or None
