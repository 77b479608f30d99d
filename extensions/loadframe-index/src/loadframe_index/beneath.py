"""Directories and entries below a root, whatever their paths are: longer than PATH_MAX, of bytes that are not text.

A path is relative to the root: bytes, names separated by "/", b"" for the root. It is walked one name at a time from
the directory above (openat(2)): no length is too long, no symbolic link is followed. A walk stays on one file
system."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EMFILE, ENFILE, ENOMEM
from pathlib import Path

from loadframe.errors import MachineError
from loadframe_index.entries import Entry, entry_of, split

ENCODING, ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
"""How the names that os.scandir gives become bytes again. os.fsencode does the same, and takes longer."""
OURS = frozenset({EMFILE, ENFILE, ENOMEM})
_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def lasts(error: OSError) -> bool:
    """Whether an entry stays unreadable as long as its rights stay; else the file system failed, and the entry may
    still exist. MachineError for a lack of resources here."""
    if error.errno in OURS:
        raise MachineError(
            f"The tree cannot be read on: {error.strerror}.",
            remedy="Raise the limit of open files (ulimit -n), or use fewer threads; the database has what it had.",
        ) from error
    return isinstance(error, PermissionError)


def joined(directory: bytes, name: bytes) -> bytes:
    return directory + b"/" + name if directory else name


def shown(path: bytes) -> str:
    """For messages: on one line, bytes that are not text escaped, a long one shortened in the middle."""
    text = path.decode("utf-8", "backslashreplace")
    text = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return text if len(text) <= 300 else f"{text[:150]}[...]{text[-150:]}"


class Beneath:
    """Keeps the last directory open: ask in the order of the paths."""

    def __init__(self, root: Path, *, directory: int | None = None) -> None:
        """directory: an open one that contains a relative root. MachineError where the root cannot be opened."""
        try:
            self.root = os.open(root, _LIST, dir_fd=directory)
        except OSError as error:
            lasts(error)
            raise MachineError(
                f"The tree {root} cannot be read: {error.strerror}", remedy="Name a directory that you may read."
            ) from error
        self.status = os.fstat(self.root)
        self._at, self._path = self.root, b""

    def directory(self, path: bytes) -> int:
        """An O_PATH descriptor, open until the next call. OSError, also for a symbolic link."""
        if self._path and path != self._path and not path.startswith(self._path + b"/"):
            self.forget()
        rest = path[len(self._path) :].lstrip(b"/")
        for name in rest.split(b"/") if rest else ():
            below = os.open(name, _WAY, dir_fd=self._at)
            path_of_it = joined(self._path, name)
            self._close()
            self._at, self._path = below, path_of_it
        return self._at

    def entry(self, path: bytes) -> os.stat_result:
        """As lstat(2). OSError: FileNotFoundError, NotADirectoryError where nothing is."""
        if not path:
            return os.fstat(self.root)
        directory, name = split(path)
        return os.stat(name, dir_fd=self.directory(directory), follow_symlinks=False)

    def listing(self, path: bytes) -> int:
        """A descriptor for listing; the caller closes it. OSError: also PermissionError."""
        return os.open(b".", _LIST, dir_fd=self.directory(path))

    def forget(self) -> None:
        """Start the next path from the root: directories may have been renamed since."""
        self._close()
        self._at, self._path = self.root, b""

    def close(self) -> None:
        self.forget()
        if self.root >= 0:
            os.close(self.root)
        self.root = self._at = -1

    def _close(self) -> None:
        if self._at != self.root:
            os.close(self._at)

    def __enter__(self) -> "Beneath":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class Passed:
    """What was not looked into, by reason. failed: for another reason than its rights."""

    vanished: int = 0
    failed: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def count(self, error: OSError) -> None:
        """MachineError where the reason is ours."""
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            self.vanished += 1
            return
        self.failed += not lasts(error)
        self.counts[error.strerror or "unreadable"] += 1


LOOP, ELSEWHERE = "a directory that is its own ancestor", "another file system"


def looked_up(tree: Beneath, path: bytes, passed: Passed) -> Entry | None:
    """None where nothing is. OSError where it may not be looked up."""
    try:
        return entry_of(*split(path), tree.entry(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        passed.count(error)
        return None


def below(tree: Beneath, top: Entry, passed: Passed) -> Iterator[Entry]:
    """All entries below this directory, without itself."""
    left = [(top, _above(tree, top.path))]
    while left:
        directory, above = left.pop()
        here = (*above, (directory.device, directory.inode))
        for entry in _entries(tree, directory, passed):
            yield entry
            if entry.type != "d":
                continue
            if (entry.device, entry.inode) in here:
                passed.counts[LOOP] += 1
            else:
                left.append((entry, here))


def _above(tree: Beneath, path: bytes) -> tuple[tuple[int, int], ...]:
    """Device and inode of each directory above, to find loops."""
    above: tuple[tuple[int, int], ...] = ()
    steps = path.split(b"/") if path else []
    with suppress(OSError):  # it was renamed meanwhile: a record will say so
        for depth in range(len(steps)):
            status = os.fstat(tree.directory(b"/".join(steps[:depth])))
            above = (*above, (status.st_dev, status.st_ino))
    return above


def _entries(tree: Beneath, directory: Entry, passed: Passed) -> Iterator[Entry]:
    path = directory.path
    if directory.device != tree.status.st_dev:
        passed.counts[ELSEWHERE] += 1
        return
    try:
        listing = tree.listing(path)
        try:
            with os.scandir(listing) as entries:
                for entry in entries:
                    try:
                        yield entry_of(path, os.fsencode(entry.name), entry.stat(follow_symlinks=False))
                    except OSError as error:
                        passed.count(error)
        finally:
            os.close(listing)
    except OSError as error:
        passed.count(error)
