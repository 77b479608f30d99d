"""Sockets as the recorder writes them down."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from loadframe.recording.socket_rows import INET_MESSAGE, INFO, ROW

HOME = socket.inet_aton("127.0.0.1") + b"\0" * 12


def _connection(
    descriptor: int,
    local: int,
    remote: int,
    *,
    state: int = 1,
    queues: tuple[int, int] = (0, 0),
    ago_ms: tuple[int, int, int] = (100, 100, 100),
    data: tuple[int, int] = (5, 5),
    retransmits: int = 0,
) -> bytes:
    """A row of a `sockets` entry. ago_ms: sent, received, heard; data: segments in and out."""
    ports = (socket.htons(local), socket.htons(remote))
    message = INET_MESSAGE.pack(2, state, 0, 0, *ports, HOME, HOME, 0, 0, 0, 0, *queues, 0, 1000 + descriptor)
    sent, received, heard = ago_ms
    info = INFO.pack(sent, 0, received, heard, retransmits, *data)
    return ROW.pack(descriptor, 1000 + descriptor, 2, len(message), len(info)) + message + info


@pytest.fixture(scope="session")
def connection() -> Callable[..., bytes]:
    """Makes a row of a connection of 127.0.0.1."""
    return _connection
