"""Which process listens at a port of this machine, and which peers a process has connections to, from /proc:
proc_net_tcp.rst names the socket, /proc/PID/fd its holders."""

import socket
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loadframe.formats.plain_numbers import whole
from loadframe.host import identity
from loadframe.system.kernel import PROC, pids

ESTABLISHED, LISTEN = "01", "0A"
"""include/net/tcp_states.h"""
LARGEST_TABLE = 64 << 20
"""Bytes of /proc/net/tcp: a line has 150, and a machine may have some 100,000 connections."""


@dataclass(frozen=True, slots=True)
class Listening:
    """number: its address, "0.0.0.0" or "::" for all. user: who made it."""

    number: str
    port: int
    inode: int
    user: int


def sockets(root: Path = PROC) -> tuple[Listening, ...]:
    listeners = (parse(words, family) for words, family in _rows(root / "self/net"))
    return tuple(listener for listener in listeners if listener is not None)


def parse(words: Sequence[str], family: socket.AddressFamily) -> Listening | None:
    if len(words) < 10 or words[3] != LISTEN or (place := _place(words[1], family)) is None:
        return None
    user, inode = whole(words[7]), whole(words[9])
    return None if user is None or inode is None else Listening(*place, inode, user)


def _place(text: str, family: socket.AddressFamily) -> tuple[str, int] | None:
    address, _, port = text.partition(":")
    try:
        data = bytes.fromhex(address)
        packed = struct.pack(f"={len(data) // 4}I", *struct.unpack(f">{len(data) // 4}I", data))
        return socket.inet_ntop(family, packed), struct.unpack(">H", bytes.fromhex(port))[0]
    except (ValueError, struct.error, OSError):
        return None


@dataclass(frozen=True, slots=True)
class Peer:
    """connections: how many are open. here: on this machine, in the same network namespace."""

    number: str
    port: int
    connections: int
    here: bool = False


def peers(pids: Collection[int], root: Path = PROC) -> tuple[Peer, ...]:
    """The peers of the open TCP connections that these processes, of one network namespace, made themselves, most
    connections first: connections from a port at which they listen were made by others."""
    links = {link for pid in pids for link in links_of(pid, root)}
    connections: Counter[tuple[str, int, bool]] = Counter()
    rows = (row for pid in [*pids][:1] for row in _rows(root / str(pid) / "net"))
    held = [(words, family) for words, family in rows if f"socket:[{words[9]}]" in links]
    own = {place[1] for words, family in held if words[3] == LISTEN and (place := _place(words[1], family))}
    for words, family in held:
        here, there = _place(words[1], family), _place(words[2], family)
        if words[3] == ESTABLISHED and here and there and here[1] not in own:
            number = _plain(there[0])
            connections[number, there[1], number == _plain(here[0]) or number.startswith("127.")] += 1
    return tuple(Peer(number, port, count, is_here) for (number, port, is_here), count in connections.most_common())


def _rows(folder: Path) -> Iterator[tuple[list[str], socket.AddressFamily]]:
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        try:
            with (folder / name).open(encoding="ascii", errors="replace") as table:
                text = table.read(LARGEST_TABLE)
        except OSError:  # a kernel without IPv6, or the process has ended
            continue
        yield from ((words, family) for line in text.splitlines()[1:] if len(words := line.split()) >= 10)


def at(port: int, number: str = "", root: Path = PROC) -> tuple[Listening, ...]:
    """Sockets that listen at a port of this address ("": any), or of all addresses."""
    known = {listener: _plain(listener.number) for listener in sockets(root) if listener.port == port}
    exact = [listener for listener, own in known.items() if not number or own == _plain(number)]
    return tuple(exact or [listener for listener, own in known.items() if own in ("0.0.0.0", "::")])


def _plain(number: str) -> str:
    return number.partition("%")[0].removeprefix("::ffff:")


def holders(inodes: Collection[int]) -> tuple[int, ...]:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return tuple(sorted(pid for pid in pids() if wanted.intersection(links_of(pid))))


def held() -> dict[int, tuple[int, ...]]:
    """The processes at each listening socket, by its inode, as far as we have permission."""
    links = {pid: set(links_of(pid)) for pid in sorted(pids())}
    inodes = [listener.inode for listener in sockets()]
    return {inode: tuple(pid for pid, held in links.items() if f"socket:[{inode}]" in held) for inode in inodes}


def ports_of(pids: Iterable[int]) -> tuple[int, ...]:
    links = {link for pid in pids for link in links_of(pid)}
    return tuple(sorted({listener.port for listener in sockets() if f"socket:[{listener.inode}]" in links}))


def first_of(pids: Collection[int]) -> tuple[int, ...]:
    return tuple(pid for pid in pids if not set(identity.ancestors(pid)[1:]).intersection(pids))


def links_of(pid: int, root: Path = PROC) -> list[str]:
    links = []
    with suppress(OSError):  # it has ended, or belongs to another user
        for descriptor in (root / str(pid) / "fd").iterdir():
            with suppress(OSError):
                links.append(str(descriptor.readlink()))
    return links
