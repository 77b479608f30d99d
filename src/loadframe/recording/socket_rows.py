"""Sockets from the kernel by netlink (sock_diag(7)): /proc/net/tcp does not show how many connections may wait to be
accepted. And the rows of a `sockets` entry. Layouts: linux/inet_diag.h, linux/tcp.h, linux/unix_diag.h,
linux/netlink.h."""

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from loadframe.errors import RecordingError

ESTABLISHED, SYN_SENT, CLOSE_WAIT, LISTEN = 1, 2, 8, 10
"""include/net/tcp_states.h"""
ROW = struct.Struct("<IIBHH")
"""Descriptor, inode, family (0: neither TCP nor Unix), and the lengths of what follows: the kernel's message without
its attributes, and what is kept of them."""
INET_MESSAGE = struct.Struct("=BBBBHH16s16sIIIIIIII")
"""family, state, timer, retransmits; ports (network order), addresses, interface, cookie; expires, receive queue, send
queue, user, inode."""
UNIX_MESSAGE = struct.Struct("=BBBxIII")
UNIX_EXTRA = struct.Struct("=IIIH")
"""Kept of a Unix socket: the peer's inode, the queues, the length of its own name; the peer's name is the rest."""
INFO = struct.Struct("=IIIIIII")
"""Kept of tcp_info: last_data_sent, last_ack_sent, last_data_recv, last_ack_recv (ms ago), total_retrans, data_segs_in,
data_segs_out."""
INFO_PARTS = ((44, 60), (100, 104), (152, 160))
"""Where these are in tcp_info."""
ATTRIBUTE = struct.Struct("=HH")
"""Head: length, kind."""
HEADER = struct.Struct("=IHHII")
"""Head: length, kind, flags, sequence, port."""
INET_REQUEST = struct.Struct("=BBBxIH46x")
"""family, protocol, extensions, states; a local port in network order (0: all)."""
UNIX_REQUEST = struct.Struct("=BBHIIIII")
DUMP, BY_FAMILY, SOCK_DIAG = 0x301, 20, 4
"""NLM_F_REQUEST | NLM_F_DUMP; SOCK_DIAG_BY_FAMILY; NETLINK_SOCK_DIAG."""
ERROR, DONE = 2, 3
UNIX_NAME, UNIX_PEER, UNIX_QUEUES = 0, 2, 4
UNIX_SHOW = 0x1 | 0x4 | 0x10
"""UDIAG_SHOW_NAME, UDIAG_SHOW_PEER, UDIAG_SHOW_RQLEN"""
QUEUES = struct.Struct("=II")
FAMILIES = (socket.AF_INET, socket.AF_INET6)
_HEAD, _NUMBER = struct.Struct("=IH"), struct.Struct("=i")
_V4_IN_V6 = b"\0" * 10 + b"\xff\xff"


@dataclass(frozen=True, slots=True)
class TcpTimes:
    """Milliseconds since data was sent, received, and anything was received; counters since the begin."""

    sent_ms: int
    received_ms: int
    heard_ms: int
    retransmits: int
    data_in: int
    data_out: int


@dataclass(frozen=True, slots=True)
class OpenSocket:
    """local, remote: "127.0.0.1:80", "[::1]:80", "unix:/path" ("" without a name). receive, send: bytes in its queues;
    of a listening socket connections that wait, and how many may. times: None if not reported."""

    descriptor: int
    inode: int
    family: int
    state: int
    local: str
    remote: str
    receive: int
    send: int
    times: TcpTimes | None = None

    @property
    def listens(self) -> bool:
        return self.state == LISTEN


def parse_rows(data: bytes) -> list[OpenSocket]:
    sockets, position = [], 0
    try:
        while position < len(data):
            descriptor, inode, family, length, extra = ROW.unpack_from(data, position)
            begin = position + ROW.size
            position = begin + length + extra
            if position > len(data):
                raise struct.error
            message, rest = data[begin : begin + length], data[begin + length : position]
            if family in FAMILIES:
                sockets.append(_inet(descriptor, inode, message, rest))
            elif family == socket.AF_UNIX:
                sockets.append(_unix(descriptor, inode, message, rest))
            else:
                sockets.append(OpenSocket(descriptor, inode, family, 0, "", "", 0, 0))
    except struct.error as error:
        raise RecordingError("A list of sockets lacks its end.") from error
    return sockets


def fullest(queues: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The fullest of queues (connections that wait, how many may). The kernel admits one more than that
    (sk_acceptq_is_full)."""
    return max(queues, key=lambda queue: (queue[0] / queue[1], -queue[1]))


def _inet(descriptor: int, inode: int, message: bytes, rest: bytes) -> OpenSocket:
    fields = INET_MESSAGE.unpack(message)
    family, state, port, remote_port, address, remote = fields[0], fields[1], *fields[4:8]
    times = None
    if len(rest) == INFO.size:
        sent, _, received, heard, again, data_in, data_out = INFO.unpack(rest)
        times = TcpTimes(sent, received, heard, again, data_in, data_out)
    ends = address_of(family, address, port), address_of(family, remote, remote_port)
    return OpenSocket(descriptor, inode, family, state, *ends, fields[12], fields[13], times)


def _unix(descriptor: int, inode: int, message: bytes, rest: bytes) -> OpenSocket:
    family, _, state, _, _, _ = UNIX_MESSAGE.unpack(message)
    _, receive, send, length = UNIX_EXTRA.unpack_from(rest)
    names = rest[UNIX_EXTRA.size :]
    return OpenSocket(descriptor, inode, family, state, path_of(names[:length]), path_of(names[length:]), receive, send)


def address_of(family: int, address: bytes, port: int) -> str:
    """IPv4 within IPv6 as IPv4. port: in network order."""
    port = socket.ntohs(port)
    if family == socket.AF_INET or address.startswith(_V4_IN_V6):
        four = address[:4] if family == socket.AF_INET else address[12:16]
        return f"{socket.inet_ntop(socket.AF_INET, four)}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, address)}]:{port}"


def path_of(name: bytes) -> str:
    """unix:/run/a.sock, unix:@abstract."""
    if not name:
        return ""
    text = name.removesuffix(b"\0") if not name.startswith(b"\0") else b"@" + name[1:]
    return "unix:" + text.decode("utf-8", "backslashreplace")


def attributes(data: bytes | bytearray, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(kind, begin, end); stops at an attribute that is cut short."""
    while position + ATTRIBUTE.size <= end:
        length, kind = ATTRIBUTE.unpack_from(data, position)
        if length < ATTRIBUTE.size or position + length > end:
            return
        yield kind, position + ATTRIBUTE.size, position + length
        position += (length + 3) & ~3


def unix_parts(message: bytes) -> tuple[bytes, int, tuple[int, int]]:
    """Name, inode of the peer, queues: empty, or 0, if not reported."""
    name, peer, queues = b"", 0, (0, 0)
    for kind, begin, end in attributes(message, UNIX_MESSAGE.size, len(message)):
        if kind == UNIX_NAME:
            name = message[begin:end]
        elif kind == UNIX_PEER and end - begin >= _NUMBER.size:
            (peer,) = _NUMBER.unpack_from(message, begin)
        elif kind == UNIX_QUEUES and end - begin >= QUEUES.size:
            queues = QUEUES.unpack_from(message, begin)
    return name, peer, queues


def inet_request(family: int, states: int, *, extensions: int = 0, port: int = 0) -> bytes:
    """states: a bit for each. port: the local one."""
    return INET_REQUEST.pack(family, socket.IPPROTO_TCP, extensions, states, socket.htons(port))


def unix_request(states: int) -> bytes:
    return UNIX_REQUEST.pack(socket.AF_UNIX, 0, 0, states, 0, UNIX_SHOW, 0, 0)


def netlink(timeout_s: int) -> socket.socket:
    """A netlink socket in this thread's network namespace. OSError."""
    asking = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, SOCK_DIAG)
    # Not settimeout, which would call poll(2) before each answer.
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", timeout_s, 0))
    return asking


def dump(asking: socket.socket, buffer: bytearray, request: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of the body of each answer in the buffer, valid until the next one is taken. OSError if none comes,
    RecordingError if the kernel refuses; the socket is of no further use then."""
    asking.send(HEADER.pack(HEADER.size + len(request), BY_FAMILY, DUMP, 1, 0) + request)
    unpack = _HEAD.unpack_from
    while True:
        got, position = asking.recv_into(buffer), 0
        while position + HEADER.size <= got:
            length, kind = unpack(buffer, position)
            begin, end = position + HEADER.size, position + length
            if kind == DONE:
                return
            if kind == ERROR or not begin <= end <= got:
                given = kind == ERROR and begin + _NUMBER.size <= end <= got
                reason = os.strerror(-_NUMBER.unpack_from(buffer, begin)[0]) if given else "no reason given"
                raise RecordingError(f"the kernel refuses to list sockets: {reason}")
            yield begin, end
            position += (length + 3) & ~3


_WITHIN_S = 5
_LONGEST = 1 << 16
"""The kernel makes no larger part than 32 KiB (netlink_dump in net/netlink/af_netlink.c)."""


def listeners() -> dict[int, tuple[int, int]]:
    """Listening stream sockets of our network namespace, by inode: connections that wait, and how many may (the smaller
    of backlog and net.core.somaxconn). RecordingError."""
    inet = {inode: (waiting, most) for *_, waiting, most, _, inode in _inet_messages(LISTEN)}
    return inet | {inode: unix.queues for inode, unix in unix_sockets(1 << LISTEN).items()}


def established(port: int, families: Sequence[int] = FAMILIES, *, asking: "Asking | None" = None) -> int:
    """TCP connections at this local port, in our network namespace. A connection has the family of the socket that
    accepted it: one to `::` has AF_INET6, whatever its client used. The kernel searches a table of all sockets per
    family. RecordingError."""
    return sum(1 for _ in _inet_messages(ESTABLISHED, port, families, asking))


def families_of(port: int, *, asking: "Asking | None" = None) -> tuple[int, ...]:
    """Address families of the sockets that listen at this local port; all if none does. RecordingError."""
    there = {family for family, *_ in _inet_messages(LISTEN, port, FAMILIES, asking)}
    return tuple(family for family in FAMILIES if family in there) or FAMILIES


def users_of(port: int, *, asking: "Asking | None" = None) -> frozenset[int]:
    """User ids, as `families_of`."""
    return frozenset(user for *_, user, _ in _inet_messages(LISTEN, port, FAMILIES, asking))


def _inet_messages(
    state: int, port: int = 0, families: Sequence[int] = FAMILIES, asking: "Asking | None" = None
) -> Iterator[tuple[Any, ...]]:
    for family in families:
        for body in _dump(inet_request(family, 1 << state, port=port), asking):
            if len(body) >= INET_MESSAGE.size:
                yield INET_MESSAGE.unpack_from(body)


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """name: abstract if it begins with a zero byte, or empty. peer: the inode of the other end, or 0. queues: as in
    `listeners`."""

    inode: int
    name: bytes
    peer: int
    queues: tuple[int, int]
    listens: bool


def unix_sockets(states: int = 1 << ESTABLISHED | 1 << LISTEN) -> dict[int, UnixSocket]:
    """Stream sockets, by inode; /proc/net/unix lacks the peer. RecordingError."""
    sockets = {}
    for body in _dump(unix_request(states)):
        if len(body) >= UNIX_MESSAGE.size:
            _, _, state, inode, _, _ = UNIX_MESSAGE.unpack_from(body)
            sockets[inode] = UnixSocket(inode, *unix_parts(body), state == LISTEN)
    return sockets


class Asking:
    """A socket for many questions: making one takes a fifth of the time of an answer. Made again after a question that
    failed, whose answer may come later."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._buffer = bytearray(_LONGEST)

    def bodies(self, request: bytes) -> list[bytes]:
        try:
            if self._socket is None:
                self._socket = netlink(_WITHIN_S)
            answers = dump(self._socket, self._buffer, request)
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


def _dump(request: bytes, asking: Asking | None = None) -> list[bytes]:
    if asking is not None:
        return asking.bodies(request)
    with closing(Asking()) as own:
        return own.bodies(request)
