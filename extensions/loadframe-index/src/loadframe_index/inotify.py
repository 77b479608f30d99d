"""The change log of a small tree, from inotify(7): a watch for each directory, without rights beyond reading them."""

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import MachineError
from loadframe_index import syscalls
from loadframe_index.beneath import joined, shown
from loadframe_index.log_readers import (
    ATTRIB,
    CLOSE_WRITE,
    CREATE,
    DELETE,
    LIMITS,
    MOVED_FROM,
    MOVED_TO,
    OVERFLOW,
    READ_BYTES,
    OfKernel,
    Records,
    UnreadableEventError,
    shown_limit,
)  # fmt: skip

# <sys/inotify.h>
IGNORED, ISDIR = 0x8000, 0x40000000
ONLYDIR, EXCL_UNLINK = 0x01000000, 0x04000000
WATCHED = ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | ONLYDIR | EXCL_UNLINK
_EVENT = struct.Struct("=iIII")


@dataclass(frozen=True, slots=True)
class Event:
    """watch: its number, -1 for the whole instance. cookie: the same in the two events of a rename."""

    watch: int
    mask: int
    cookie: int
    name: bytes


def events(data: bytes) -> Iterator[Event]:
    """The events in what was read from an instance. UnreadableEventError."""
    at = 0
    while at < len(data):
        if len(data) - at < _EVENT.size:
            raise UnreadableEventError(f"{len(data) - at} bytes are left; an event has {_EVENT.size}")
        watch, mask, cookie, length = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        if length > len(data) - at:
            raise UnreadableEventError(f"a name of {length} bytes where {len(data) - at} are left")
        yield Event(watch, mask, cookie, data[at : at + length].partition(b"\0")[0])
        at += length


class Inotify(OfKernel):
    """A directory that is mounted twice is followed at the path that was watched first."""

    name = "inotify"

    def __init__(self, root: Path) -> None:
        """Watches every directory before it returns. MachineError where the kernel refuses, or has too few watches."""
        super().__init__(root)
        instances = f"{LIMITS}/inotify/max_user_instances"
        remedy = f"End other programs of this user that use inotify, or raise {instances}."
        with self._opening(root, lambda _: remedy):
            self._queue = syscalls.inotify_init()
        self._paths: dict[int, bytes] = {}
        self._leaving: dict[int, tuple[bytes, bool]] = {}
        """The first halves of renames by their cookies: the path, and whether it is a directory."""
        self._unwatched: set[bytes] = set()
        """Directories that cannot be read, are elsewhere, or are mounted a second time: their entries are not
        followed."""
        try:
            self._watch_below(b"", record=False)
        except BaseException:
            self.close()
            raise

    def read(self, timeout_s: float) -> Records:
        waited = dict(self._leaving)
        lost = ""
        if syscalls.readable(self._queue, 0 if waited else timeout_s):
            for event in events(os.read(self._queue, READ_BYTES)):
                if event.mask & OVERFLOW:
                    lost = self._overflowed()
                else:
                    self._take(event)
        for cookie, leaving in waited.items():
            if self._leaving.pop(cookie, None):  # its other half did not follow: it has left the tree
                self._left(*leaving)
        if lost:
            self._leaving.clear()
            self._watch_below(b"", record=False)
        drained = not self._leaving and not syscalls.readable(self._queue)
        return Records(self._taken(), lost, drained)

    def _take(self, event: Event) -> None:
        if event.mask & IGNORED:
            self._paths.pop(event.watch, None)
            return
        directory = self._paths.get(event.watch)
        if directory is None:
            return
        path = joined(directory, event.name) if event.name else directory
        is_directory = bool(event.mask & ISDIR)
        if event.mask & CREATE:
            file = b""
            with suppress(OSError):  # it may be a further name of a known file, or be gone already
                file = b"" if is_directory else b"%d" % self._tree.entry(path).st_ino
            self._record("create", path, file=file)
            if is_directory:
                self._watch_below(path, record=True)
        if event.mask & DELETE:
            self._record("unlink", path)
        if event.mask & MOVED_FROM:
            self._leaving[event.cookie] = path, is_directory
        if event.mask & MOVED_TO:
            leaving = self._leaving.pop(event.cookie, None)
            if leaving:
                self._record("rename", leaving[0], path)
            else:
                self._record("create", path)
            if is_directory:
                self._watch_below(path, record=leaving is None)
        if event.mask & ATTRIB:
            self._record("setattr", path)
            if path in self._unwatched:  # it may be readable now
                self._watch_below(path, record=True)
        if event.mask & CLOSE_WRITE:
            self._record("close_write", path)

    def _left(self, path: bytes, is_directory: bool) -> None:
        self._record("unlink", path)
        watches = [number for number, at in self._paths.items() if at == path or at.startswith(path + b"/")]
        for watch in watches if is_directory else ():
            with suppress(OSError):  # the directory, and its watch with it, may be gone already
                syscalls.inotify_rm_watch(self._queue, watch)
            self._paths.pop(watch, None)

    def _watch_below(self, top: bytes, *, record: bool) -> None:
        """record: each entry there."""
        self._tree.forget()
        left = [top]
        while left:
            path = left.pop()
            try:
                listing = self._watched(path)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it vanished; its record is on the way
            except PermissionError:
                self._unwatched.add(path)
                continue
            for name, is_directory in listing:
                below = joined(path, name)
                if record:
                    self._record("create", below)
                if is_directory:
                    left.append(below)

    def _watched(self, path: bytes) -> list[tuple[bytes, bool]]:
        """Watch it first, and list it then. OSError."""
        listing = self._tree.listing(path)
        try:
            status = os.fstat(listing)
            if status.st_dev != self._tree.status.st_dev:
                self._unwatched.add(path)
                return []
            watch = self._add(listing, path)
            if self._is_elsewhere(watch, path, status):
                self._unwatched.add(path)
                return []
            self._paths[watch] = path
            self._unwatched.discard(path)
            with os.scandir(listing) as entries:
                return [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
        finally:
            os.close(listing)

    def _is_elsewhere(self, watch: int, path: bytes, status: os.stat_result) -> bool:
        """Whether the directory of this watch is still at another path: then a mount shows it a second time."""
        other = self._paths.get(watch, path)
        with suppress(OSError):
            return other != path and os.path.samestat(self._tree.entry(other), status)
        return False

    def _add(self, listing: int, path: bytes) -> int:
        try:
            return syscalls.inotify_add_watch(self._queue, listing, WATCHED)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise MachineError(
                f"inotify has no more watches, at the directory {shown(path) or '.'}: {len(self._paths):,} directories"
                f" are watched, and {shown_limit('inotify/max_user_watches')} watches are all that this user may have",
                remedy=f"Raise {LIMITS}/inotify/max_user_watches, follow with fanotify as root, or follow a smaller "
                "tree.",
            ) from error
