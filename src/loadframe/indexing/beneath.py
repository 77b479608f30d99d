"""Directories and entries below a root, whatever their paths are: longer than PATH_MAX, of bytes that are no text.

A path is relative to the root: bytes, names separated by "/", b"" for the root itself. It is walked one name at a time
from the descriptor of the directory above (openat(2)), so no length is too long, and no symbolic link on the way is
followed: what a stranger puts in place of a directory leads nowhere else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from errno import EMFILE, ENFILE, ENOMEM
from pathlib import Path

from loadframe.errors import MachineError

ENCODING, ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
"""By which the names that os.scandir gives become bytes again. os.fsencode does the same, and takes longer."""
OURS = frozenset({EMFILE, ENFILE, ENOMEM})
_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def parent_of(path: bytes) -> bytes:
    """The path of the directory that has it; b"" for the root and for what is in it."""
    return path.rpartition(b"/")[0]


def lasts(error: OSError) -> bool:
    """Whether an entry may not be looked into as long as its rights stay; else the file system failed, and it may be
    there all the same. MachineError for what this process or the machine lacks: it says nothing of the tree."""
    if error.errno in OURS:
        raise MachineError(
            f"The tree cannot be read on: {error.strerror}.",
            remedy="Raise the limit of open files (ulimit -n), or use fewer threads; the database has what it had.",
        ) from error
    return isinstance(error, PermissionError)


def joined(directory: bytes, name: bytes) -> bytes:
    """The path of this name in that directory."""
    return directory + b"/" + name if directory else name


def shown(path: bytes) -> str:
    """A path as a message shows it: on one line, bytes that are no text escaped, the middle of a long one left out."""
    text = path.decode("utf-8", "backslashreplace")
    text = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
    return text if len(text) <= 300 else f"{text[:150]}[...]{text[-150:]}"


class Beneath:
    """Keeps the directory that it looked into last open: ask in the order of the paths."""

    def __init__(self, root: Path, *, directory: int | None = None) -> None:
        """directory: an open one that the root is in, if it is no absolute path. MachineError where the root cannot be
        opened."""
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
        """A descriptor (O_PATH) of the directory, open until the next question. OSError: FileNotFoundError,
        NotADirectoryError (also for a symbolic link)."""
        if self._path and path != self._path and not path.startswith(self._path + b"/"):
            self._back()
        rest = path[len(self._path) :].lstrip(b"/")
        for name in rest.split(b"/") if rest else ():
            below = os.open(name, _WAY, dir_fd=self._at)
            path_of_it = joined(self._path, name)
            self._close()
            self._at, self._path = below, path_of_it
        return self._at

    def entry(self, path: bytes) -> os.stat_result:
        """What is at this path, symbolic links not followed (fstatat(2)). OSError: FileNotFoundError,
        NotADirectoryError where nothing is."""
        if not path:
            return os.fstat(self.root)
        directory, _, name = path.rpartition(b"/")
        return os.stat(name, dir_fd=self.directory(directory), follow_symlinks=False)

    def listing(self, path: bytes) -> int:
        """A descriptor to list the directory with, which the caller closes. OSError: also PermissionError."""
        return os.open(b".", _LIST, dir_fd=self.directory(path))

    def forget(self) -> None:
        """Begin from the root with the next question: directories may have been renamed since."""
        self._back()

    def close(self) -> None:
        """Idempotent."""
        self._back()
        if self.root >= 0:
            os.close(self.root)
        self.root = self._at = -1

    def _close(self) -> None:
        if self._at != self.root:
            os.close(self._at)

    def _back(self) -> None:
        self._close()
        self._at, self._path = self.root, b""

    def __enter__(self) -> Beneath:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def names(listing: int) -> Iterator[bytes]:
    """The names in a directory that is open for listing. OSError amid it where the directory cannot be read on."""
    with os.scandir(listing) as found:
        for each in found:
            yield os.fsencode(each.name)
