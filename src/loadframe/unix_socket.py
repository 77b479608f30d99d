"""A connected Unix socket, for clients that would leave one of their own open where nobody answers."""

from __future__ import annotations

import socket


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
