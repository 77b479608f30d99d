"""An entry of a tree, in the pipeline and in the database. Paths are bytes relative to the root; b"" is the root. The
database finds an entry by a hash of its path, which may be of any length and bytes."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os

ID_BYTES = 16
NO_PARENT = bytes(ID_BYTES)
TYPES = {
    stat.S_IFREG: "f",
    stat.S_IFDIR: "d",
    stat.S_IFLNK: "l",
    stat.S_IFIFO: "p",
    stat.S_IFSOCK: "s",
    stat.S_IFCHR: "c",
    stat.S_IFBLK: "b",
}
"""Types as find(1) prints them by %y."""
FORMAT = 0o170000
"""S_IFMT of inode(7)."""
BLOCK_BYTES = 512
"""Of a block of st_blocks (stat(3type))."""
EARLIEST_NS, LATEST_NS = -(1 << 63), (1 << 63) - 1
"""The databases have 64 bits for a time in nanoseconds: the years 1677 to 2262. A file system may have any."""


class Entry(NamedTuple):
    """size: bytes. blocks: of 512 bytes. atime_ns, mtime_ns, ctime_ns: since the epoch, in 64 bits. A plain tuple may
    stand for it: there are millions."""

    path: bytes
    parent: bytes
    name: bytes
    device: int
    inode: int
    type: str
    size: int
    blocks: int
    links: int
    uid: int
    gid: int
    mode: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int


def id_of(path: bytes) -> bytes:
    """16 bytes of BLAKE2b (RFC 7693) of its path; 10^8 paths collide with probability 10^-23."""
    return blake2b(path, digest_size=ID_BYTES).digest()


def split(path: bytes) -> tuple[bytes, bytes]:
    """The containing directory and the name there; b"" for the root and for what is in it."""
    parent, _, name = path.rpartition(b"/")
    return parent, name


_state = attrgetter("st_dev", "st_ino", "st_mode", "st_size", "st_blocks", "st_nlink", "st_uid", "st_gid")
_times = attrgetter("st_atime_ns", "st_mtime_ns", "st_ctime_ns")


def in_64_bits(time_ns: int) -> int:
    return max(EARLIEST_NS, min(LATEST_NS, time_ns))


def entry_of(parent: bytes, name: bytes, status: os.stat_result) -> Entry:
    """(b"", b"") is the root."""
    device, inode, mode, size, blocks, links, uid, gid = _state(status)
    times: Iterable[int] = _times(status)
    if max(times) > LATEST_NS or min(times) < EARLIEST_NS:
        times = map(in_64_bits, times)
    path, kind = parent + b"/" + name if parent else name, TYPES.get(mode & FORMAT, "?")
    return Entry(path, parent, name, device, inode, kind, size, blocks, links, uid, gid, mode & 0o7777, *times)


KINDS = ("create", "unlink", "rename", "setattr", "close_write")


@dataclass(frozen=True, slots=True)
class Change:
    """path, to: relative to the root of the tree; to: where a rename leads. number: grows within a log. time_s: since
    the epoch. file: identifies the file (Reader.inode_of), whatever its name; b"": unknown."""

    kind: str
    path: bytes
    to: bytes = b""
    number: int = 0
    time_s: float = 0.0
    file: bytes = b""
