"""The change log of a whole file system, from fanotify(7): one mark, however large the tree is. A record has a
directory's handle, which is opened to learn its path (open_by_handle_at(2)), and a name. Needs CAP_SYS_ADMIN and
CAP_DAC_READ_SEARCH, Linux 5.9, and a file system with handles. Records of other trees are left out."""

import errno
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from loadframe_index import syscalls
from loadframe_index.beneath import joined
from loadframe_index.log_readers import (
    ATTRIB,
    CLOSE_WRITE,
    CREATE,
    DELETE,
    MOVED_FROM,
    MOVED_TO,
    OVERFLOW,
    READ_BYTES,
    OfKernel,
    Records,
    UnreadableEventError,
)  # fmt: skip

# <linux/fanotify.h>
CLOEXEC, NONBLOCK = 0x1, 0x2
REPORT_FID, REPORT_DIR_FID, REPORT_NAME, REPORT_TARGET_FID = 0x200, 0x400, 0x800, 0x1000
MARK_ADD, MARK_FILESYSTEM = 0x1, 0x100
RENAME, ONDIR = 0x10000000, 0x40000000
WATCHED = CREATE | DELETE | ATTRIB | CLOSE_WRITE | ONDIR
_EVENT = struct.Struct("=IBBHQii")
_INFO = struct.Struct("=BBH")
_VERSION = 3
_FILE, _DIRECTORY_AND_NAME, _OLD, _NEW = 1, 2, 10, 12
_FSID = 8
T = TypeVar("T")

ATTEMPTS = 3
"""How often to open a directory that the kernel refuses."""
MOST_DIRECTORIES = 100_000
"""Directories whose paths are remembered."""
KINDS = {
    DELETE: "unlink",
    MOVED_FROM: "unlink",
    CREATE: "create",
    MOVED_TO: "create",
    ATTRIB: "setattr",
    CLOSE_WRITE: "close_write",
}
"""The kind of record for each bit; where a mask has several, the name goes before it comes."""


@dataclass(frozen=True, slots=True)
class Place:
    """A name in a directory with this handle (a `struct file_handle`)."""

    directory: bytes
    name: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """mask: what happened, perhaps several things. at, to: None where unknown; to: where a rename leads. file: the
    handle of the file, b"" where unknown."""

    mask: int
    at: Place | None = None
    to: Place | None = None
    file: bytes = b""


def events(data: bytes) -> Iterator[Event]:
    """The events in what was read from a group. UnreadableEventError."""
    at = 0
    while at < len(data):
        if len(data) - at < _EVENT.size:
            raise UnreadableEventError(f"{len(data) - at} bytes are left; an event has {_EVENT.size}")
        length, version, _, head, mask, _, _ = _EVENT.unpack_from(data, at)
        if version != _VERSION:
            raise UnreadableEventError(f"version {version} of the interface; {_VERSION} is known")
        if not _EVENT.size <= head <= length <= len(data) - at:
            raise UnreadableEventError(
                f"an event of {length} bytes with a head of {head} where {len(data) - at} are left"
            )
        yield _event(mask, data[at + head : at + length])
        at += length


def _event(mask: int, infos: bytes) -> Event:
    places: dict[int, Place] = {}
    at = 0
    while at < len(infos):
        if len(infos) - at < _INFO.size:
            raise UnreadableEventError(f"{len(infos) - at} bytes of information are left; a head has {_INFO.size}")
        kind, _, length = _INFO.unpack_from(infos, at)
        if not _INFO.size <= length <= len(infos) - at:
            raise UnreadableEventError(f"information of {length} bytes where {len(infos) - at} are left")
        if kind in (_FILE, _DIRECTORY_AND_NAME, _OLD, _NEW):
            places[kind] = _place(infos[at + _INFO.size : at + length])
        at += length
    file = places[_FILE].directory if _FILE in places else b""
    if _OLD in places or _NEW in places:
        return Event(mask, places.get(_OLD), places.get(_NEW), file)
    return Event(mask, places.get(_DIRECTORY_AND_NAME), None, file)


def _place(data: bytes) -> Place:
    if len(data) < _FSID + 8:
        raise UnreadableEventError(f"{len(data)} bytes are no handle")
    size = int.from_bytes(data[_FSID : _FSID + 4], "little")
    end = _FSID + 8 + size
    if end > len(data):
        raise UnreadableEventError(f"a handle of {size} bytes where {len(data) - _FSID - 8} are left")
    return Place(data[_FSID:end], data[end:].partition(b"\0")[0])


class Fanotify(OfKernel):
    """A mark on the whole file system."""

    name = "fanotify"

    def __init__(self, root: Path) -> None:
        """MachineError where the kernel refuses."""
        super().__init__(root)
        with self._opening(root, lambda number: REMEDIES.get(number, OTHERWISE)):
            os.close(syscalls.open_by_handle(self._tree.root, syscalls.handle_of(self._tree.root)))
            flags, marked = CLOEXEC | NONBLOCK | REPORT_DIR_FID | REPORT_NAME, MARK_ADD | MARK_FILESYSTEM
            # From Linux 5.17 on records have the file, too, and a rename is one record.
            self._queue = _supported(syscalls.fanotify_init, flags | REPORT_FID | REPORT_TARGET_FID, flags)
            _supported(
                lambda watched: syscalls.fanotify_mark(self._queue, marked, watched, self._tree.root),
                WATCHED | RENAME,
                WATCHED | MOVED_FROM | MOVED_TO,
            )
        self._lost = ""
        self._paths: dict[bytes, bytes | None] = {}

    def read(self, timeout_s: float) -> Records:
        if not syscalls.readable(self._queue, timeout_s):
            return Records()
        try:
            data = os.read(self._queue, READ_BYTES)
        except BlockingIOError:
            return Records()
        self._lost = ""
        for event in events(data):
            if event.mask & OVERFLOW:
                self._lost = self._overflowed()
                self._paths.clear()
            else:
                self._take(event)
        return Records(self._taken(), self._lost, not syscalls.readable(self._queue))

    def _take(self, event: Event) -> None:
        if event.mask & ONDIR and event.mask & (RENAME | MOVED_FROM | MOVED_TO):
            self._paths.clear()  # everything below it is elsewhere now
        at, to = self._where(event.at), self._where(event.to)
        if event.mask & RENAME:
            if at is not None and to is not None:
                self._record("rename", at, to, event.file)
            elif at is not None:
                self._record("unlink", at, file=event.file)
            elif to is not None:
                self._record("create", to, file=event.file)
        for bit, kind in KINDS.items():
            if event.mask & bit and at is not None:
                self._record(kind, at, file=event.file)

    def _where(self, place: Place | None) -> bytes | None:
        """None where it is not in the tree, or the directory is gone."""
        if place is None:
            return None
        known, handle = self._paths, place.directory
        directory = known[handle] if handle in known else self._resolved(handle)
        if directory is None or place.name in (b"", b"."):
            return directory
        return joined(directory, place.name)

    def _resolved(self, handle: bytes) -> bytes | None:
        """A directory that cannot be opened (ENOMEM now and then) loses its record."""
        for _ in range(ATTEMPTS):
            try:
                opened = syscalls.open_by_handle(self._tree.root, handle)
            except OSError as error:
                if error.errno in (errno.ESTALE, errno.ENOENT):
                    return self._remember(handle, None)
                why = error.strerror
                continue
            try:
                root, path = path_of(self._tree.root), path_of(opened)
                if root == path_of(self._tree.root):
                    return self._remember(handle, _below(root, path))
                why = "the tree was renamed meanwhile"
            finally:
                os.close(opened)
        self._lost = f"a directory of a record could not be opened ({why})"
        return None

    def _remember(self, handle: bytes, path: bytes | None) -> bytes | None:
        if len(self._paths) >= MOST_DIRECTORIES:
            self._paths.clear()
        self._paths[handle] = path
        return path

    def inode_of(self, file: bytes) -> int | None:
        with suppress(OSError):  # its last name is gone, as a rule (ESTALE)
            opened = syscalls.open_by_handle(self._tree.root, file)
            try:
                return os.fstat(opened).st_ino
            finally:
                os.close(opened)
        return None


def _supported(call: Callable[[int], T], newer: int, older: int) -> T:
    """The older flags where the kernel does not know the newer ones."""
    try:
        return call(newer)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return call(older)


def _below(root: bytes | None, path: bytes | None) -> bytes | None:
    """Relative to the root; None where it is not below it, or one of both is gone."""
    if root is None or path is None:
        return None
    above = root.rstrip(b"/") + b"/"
    return b"" if path == root else path[len(above) :] if path.startswith(above) else None


OTHERWISE = "Follow with inotify (a watch for each directory), or with injected records."
REMEDIES = {
    errno.EPERM: f"Run as root, outside of a container. {OTHERWISE}",
    errno.EINVAL: f"fanotify with directory handles needs Linux 5.9. {OTHERWISE}",
    errno.ENODEV: f"This file system has no identity. {OTHERWISE}",
    errno.EOPNOTSUPP: f"This file system has no handles. {OTHERWISE}",
    errno.EXDEV: f"This is a subvolume, whose file system has another identity. {OTHERWISE}",
}


def path_of(opened: int) -> bytes | None:
    """An open directory's absolute path; None where it has been removed. A path too long for the kernel is found name
    by name. OSError."""
    below: list[bytes] = []
    at = os.dup(opened)
    try:
        while (status := os.fstat(at)).st_nlink:
            try:
                path = os.fsencode(Path(f"/proc/self/fd/{at}").readlink())
                return b"/".join([path.rstrip(b"/"), *reversed(below)]) if below else path
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
            above = os.open(b"..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = above
            if (name := _name_in(at, status)) is None:
                return None
            below.append(name)
        return None
    finally:
        os.close(at)


def _name_in(directory: int, wanted: os.stat_result) -> bytes | None:
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):  # it vanished meanwhile
                if os.path.samestat(entry.stat(follow_symlinks=False), wanted):
                    return os.fsencode(entry.name)
    return None
