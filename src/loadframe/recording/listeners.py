"""Listening sockets with their accept queues, from the kernel by netlink (sock_diag(7)), as ss(8) does: /proc/net/tcp
shows how many connections wait to be accepted, but not how many may; and of Unix sockets neither. Layouts:
linux/inet_diag.h, linux/unix_diag.h."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from loadframe.errors import RecordingError
from loadframe.recording import socket_rows as diag

FAMILIES = diag.FAMILIES
_WITHIN_S = 5
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
    bodies = [body for family in FAMILIES for body in _dump(diag.inet_request(family, 1 << diag.LISTEN))]
    inet = [listener for body in bodies if (listener := parse_inet(body)) is not None]
    unix = unix_sockets(1 << diag.LISTEN).values()
    return [*inet, *(Listener(listener.inode, *listener.queues) for listener in unix)]


def established(port: int, families: Sequence[int] = FAMILIES, *, asking: "Asking | None" = None) -> int:
    """The number of TCP connections open at this local port, in our network namespace; the kernel searches a table of
    all sockets for each family. A connection has the family of the socket that accepted it: one to `::` has AF_INET6,
    whatever its client used. asking: for repeated questions. Raises RecordingError if the kernel refuses."""
    requests = (diag.inet_request(family, 1 << diag.ESTABLISHED, port=port) for family in families)
    return sum(len(_dump(request, asking)) for request in requests)


def families_of(port: int, *, asking: "Asking | None" = None) -> tuple[int, ...]:
    """Of the sockets that listen at this local port; all if none does. Raises RecordingError like `established`."""
    return tuple(family for family in FAMILIES if _listening(family, port, asking)) or FAMILIES


def users_of(port: int, *, asking: "Asking | None" = None) -> frozenset[int]:
    """The users of the sockets that listen at this local port. Raises RecordingError like `established`."""
    bodies = (body for family in FAMILIES for body in _listening(family, port, asking))
    return frozenset(
        int(diag.INET_MESSAGE.unpack_from(body)[-2]) for body in bodies if len(body) >= diag.INET_MESSAGE.size
    )


def parse_inet(body: bytes) -> Listener | None:
    """One inet_diag_msg; None if it is cut short or does not listen."""
    if len(body) < diag.INET_MESSAGE.size:
        return None
    _, state, *_, waiting, most, _, inode = diag.INET_MESSAGE.unpack_from(body)
    return Listener(inode, waiting, most) if state == diag.LISTEN else None


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """name: its path, abstract if it begins with a zero byte, or empty. peer: the inode of the other end, or 0. queues:
    of a listening one as in Listener."""

    inode: int
    name: bytes
    peer: int
    queues: tuple[int, int]
    listens: bool


def unix_sockets(states: int = 1 << diag.ESTABLISHED | 1 << diag.LISTEN) -> dict[int, UnixSocket]:
    """Inode -> Unix stream socket that listens or is connected: /proc/net/unix lacks the peer. Raises
    RecordingError."""
    sockets = map(parse_unix, _dump(diag.unix_request(states)))
    return {unix_socket.inode: unix_socket for unix_socket in sockets if unix_socket is not None}


def parse_unix(body: bytes) -> UnixSocket | None:
    """One unix_diag_msg with its attributes; None if it is cut short."""
    if len(body) < diag.UNIX_MESSAGE.size:
        return None
    _, _, state, inode, _, _ = diag.UNIX_MESSAGE.unpack_from(body)
    return UnixSocket(inode, *diag.unix_parts(body), state == diag.LISTEN)


class Asking:
    """One socket for many questions: making one takes a fifth of the time of an answer. It is made at the first
    question, and again after one that failed, whose answer may come later."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._buffer = bytearray(_LONGEST)

    def bodies(self, request: bytes) -> list[bytes]:
        """The bodies of the answer to one dump request. Raises RecordingError if the kernel refuses."""
        try:
            if self._socket is None:
                self._socket = diag.netlink(_WITHIN_S)
            answers = diag.dump(self._socket, self._buffer, request)
            return [bytes(self._buffer[begin:end]) for begin, end in answers]
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


def _listening(family: int, port: int, asking: Asking | None) -> list[bytes]:
    return _dump(diag.inet_request(family, 1 << diag.LISTEN, port=port), asking)


def _dump(request: bytes, asking: Asking | None = None) -> list[bytes]:
    if asking is not None:
        return asking.bodies(request)
    asking = Asking()
    try:
        return asking.bodies(request)
    finally:
        asking.close()
