"""The Unix stream sockets of this network namespace and who is at their other ends, asked of the kernel by netlink
(sock_diag(7), include/uapi/linux/unix_diag.h): /proc/net/unix does not say to whom a socket is connected."""

import errno
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER, _HEAD, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=IH"), struct.Struct("=HH")
_REQUEST, _MESSAGE = struct.Struct("=BBHIIIII"), struct.Struct("=BBBxIII")
_SOCK_DIAG, _BY_FAMILY, _REQUEST_DUMP = 4, 20, 0x301
_ERROR, _DONE = 2, 3
_ESTABLISHED, _LISTEN = 1, 10
_SHOW_NAME_AND_PEER = 0x1 | 0x4
_NAME, _PEER = 0, 2
_LARGEST = 1 << 18
TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """name: its path, or one that begins with a zero byte; empty where it has none. peer: the inode of the other end, 0
    where there is none. link: as /proc/PID/fd has it."""

    inode: int
    name: bytes
    peer: int
    listens: bool

    @property
    def link(self) -> str:
        return f"socket:[{self.inode}]"


def sockets() -> dict[int, UnixSocket]:
    """All that listen or are connected, by inode. OSError where the kernel does not list them."""
    states = 1 << _ESTABLISHED | 1 << _LISTEN
    request = _REQUEST.pack(socket.AF_UNIX, 0, 0, states, 0, _SHOW_NAME_AND_PEER, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as asking:
        asking.settimeout(TIMEOUT_S)
        asking.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + request)
        return {one.inode: one for one in _answers(asking)}


def _answers(asking: socket.socket) -> Iterator[UnixSocket]:
    while data := asking.recv(_LARGEST):
        position = 0
        while position + _HEADER.size <= len(data):
            length, kind = _HEAD.unpack_from(data, position)
            if kind == _DONE:
                return
            if kind == _ERROR or length < _HEADER.size:
                raise OSError(errno.EPROTO, "the kernel does not list Unix sockets")
            yield _socket(data, position + _HEADER.size, min(position + length, len(data)))
            position += (length + 3) & ~3


def _socket(data: bytes, position: int, end: int) -> UnixSocket:
    _, _, state, inode, _, _ = _MESSAGE.unpack_from(data, position)
    name, peer, position = b"", 0, position + _MESSAGE.size
    while position + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, position)
        if length < _ATTRIBUTE.size or position + length > end:
            break
        value = data[position + _ATTRIBUTE.size : position + length]
        if kind == _NAME:
            name = value
        elif kind == _PEER and len(value) >= 4:
            peer = int.from_bytes(value[:4], "little" if struct.pack("=H", 1)[0] else "big")
        position += (length + 3) & ~3
    return UnixSocket(inode, name, peer, state == _LISTEN)
