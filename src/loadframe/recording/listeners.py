"""Listening sockets with their accept queues, from the kernel by netlink (sock_diag(7)), as ss(8) does: /proc/net/tcp
shows how many connections wait to be accepted, but not how many may; and of Unix sockets neither. Layouts:
linux/inet_diag.h, linux/unix_diag.h."""

import os
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadframe.errors import RecordingError
from loadframe.recording import socket_rows as diag

SHOW_NAME, SHOW_PEER, SHOW_QUEUES = 0x1, 0x4, 0x10
_WITHIN = struct.pack("@ll", 5, 0)
"""struct timeval: 5 s."""
_LONGEST = 1 << 16
"""Bytes of a part of an answer: the kernel makes none above 32 KiB (netlink_dump in net/netlink/af_netlink.c)."""


@dataclass(frozen=True, slots=True)
class Listener:
    """waiting: not accepted yet; most: how many may wait (the smaller of backlog and net.core.somaxconn)."""

    inode: int
    waiting: int
    most: int


def listeners() -> list[Listener]:
    """All listening stream sockets of our network namespace. Raises RecordingError if the kernel refuses."""
    listening = []
    for family in FAMILIES:
        bodies = _dump(_request(family, diag.LISTEN))
        listening += [listener for body in bodies if (listener := parse_inet(body)) is not None]
    request = diag.UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, 1 << diag.LISTEN, 0, SHOW_QUEUES, 0, 0)
    listening += [listener for body in _dump(request) if (listener := parse_unix(body)) is not None]
    return listening


FAMILIES = (socket.AF_INET, socket.AF_INET6)


def established(port: int, families: Sequence[int] = FAMILIES, *, asking: "Asking | None" = None) -> int:
    """The number of TCP connections open at this local port, in our network namespace; the kernel searches a table of
    all sockets for each family. A connection has the family of the socket that accepted it: one to `::` has AF_INET6,
    whatever its client used. asking: for repeated questions. Raises RecordingError if the kernel refuses."""
    return sum(len(_dump(_request(family, diag.ESTABLISHED, port), asking)) for family in families)


def families_of(port: int, *, asking: "Asking | None" = None) -> tuple[int, ...]:
    """Of the sockets that listen at this local port; all if none does. Raises RecordingError like `established`."""
    return tuple(family for family in FAMILIES if _dump(_request(family, diag.LISTEN, port), asking)) or FAMILIES


def users_of(port: int, *, asking: "Asking | None" = None) -> frozenset[int]:
    """The users of the sockets that listen at this local port. Raises RecordingError like `established`."""
    bodies = (body for family in FAMILIES for body in _dump(_request(family, diag.LISTEN, port), asking))
    return frozenset(
        int(diag.INET_MESSAGE.unpack_from(body)[-2]) for body in bodies if len(body) >= diag.INET_MESSAGE.size
    )


def parse_inet(body: bytes) -> Listener | None:
    """One inet_diag_msg; None if it is cut short or does not listen."""
    if len(body) < diag.INET_MESSAGE.size:
        return None
    _, state, *_, waiting, most, _, inode = diag.INET_MESSAGE.unpack_from(body)
    return Listener(inode, waiting, most) if state == diag.LISTEN else None


def parse_unix(body: bytes) -> Listener | None:
    """One unix_diag_msg with its attributes; None if it is cut short, has no queues or does not listen."""
    if len(body) < diag.UNIX_MESSAGE.size:
        return None
    _, _, state, inode, _, _ = diag.UNIX_MESSAGE.unpack_from(body)
    for kind, begin, end in diag.attributes(body, diag.UNIX_MESSAGE.size, len(body)):
        if kind == diag.UNIX_QUEUES and end - begin >= diag.QUEUES.size and state == diag.LISTEN:
            return Listener(inode, *diag.QUEUES.unpack_from(body, begin))
    return None


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """name: its path, abstract if it begins with a zero byte, or empty. peer: the inode of the other end, or 0."""

    inode: int
    name: bytes
    peer: int
    listens: bool


def unix_sockets() -> dict[int, UnixSocket]:
    """Inode -> Unix stream socket that listens or is connected: /proc/net/unix lacks the peer. Raises
    RecordingError."""
    states, shown = 1 << diag.ESTABLISHED | 1 << diag.LISTEN, SHOW_NAME | SHOW_PEER
    sockets = map(_unix_socket, _dump(diag.UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, states, 0, shown, 0, 0)))
    return {unix_socket.inode: unix_socket for unix_socket in sockets if unix_socket is not None}


def _unix_socket(body: bytes) -> UnixSocket | None:
    if len(body) < diag.UNIX_MESSAGE.size:
        return None
    _, _, state, inode, _, _ = diag.UNIX_MESSAGE.unpack_from(body)
    parts = {kind: body[begin:end] for kind, begin, end in diag.attributes(body, diag.UNIX_MESSAGE.size, len(body))}
    peer = int.from_bytes(parts.get(diag.UNIX_PEER, b"")[:4], sys.byteorder)
    return UnixSocket(inode, parts.get(diag.UNIX_NAME, b""), peer, state == diag.LISTEN)


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, body) of each netlink message; stops at one that is cut short."""
    position = 0
    while position + diag.HEADER.size <= len(data):
        length, kind, _, _, _ = diag.HEADER.unpack_from(data, position)
        if length < diag.HEADER.size or position + length > len(data):
            return
        yield kind, data[position + diag.HEADER.size : position + length]
        position += (length + 3) & ~3


class Asking:
    """One socket for many questions: making one takes a fifth of the time of an answer. It is made at the first
    question, and again after one that failed, whose answer may come later."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    def bodies(self, request: bytes) -> list[bytes]:
        """The bodies of the answer to one dump request. Raises RecordingError if the kernel refuses."""
        try:
            return self._asked(request)
        except RecordingError:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise RecordingError(f"the kernel does not list sockets (sock_diag): {error.strerror or error}") from error

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _asked(self, request: bytes) -> list[bytes]:
        asking = self._socket
        if asking is None:
            asking = self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, diag.SOCK_DIAG)
            asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _WITHIN)  # no poll(2) before each answer
        asking.send(diag.HEADER.pack(diag.HEADER.size + len(request), diag.BY_FAMILY, diag.DUMP, 1, 0) + request)
        bodies: list[bytes] = []
        while True:
            for kind, body in messages(asking.recv(_LONGEST)):
                if kind == diag.DONE:
                    return bodies
                if kind == diag.ERROR:
                    raise RecordingError(f"the kernel refuses to list sockets: {_error(body)}")
                bodies.append(body)


def _request(family: int, state: int, port: int = 0) -> bytes:
    """port: 0 for any."""
    return diag.INET_REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << state, socket.htons(port))


def _dump(request: bytes, asking: Asking | None = None) -> list[bytes]:
    if asking is not None:
        return asking.bodies(request)
    asking = Asking()
    try:
        return asking.bodies(request)
    finally:
        asking.close()


def _error(body: bytes) -> str:
    return os.strerror(-struct.unpack_from("=i", body)[0]) if len(body) >= 4 else "no reason given"
