"""Real changes to a tree of our own, at a given rate from a seed, for benchmarks/following.py and the tests.

Run as `python -P benchmarks/tree_churn.py TREE RATE SEED`; it ends when its standard input does. It makes no hard
links: of those a fast change log does not tell all.

Creates and writes files, removes, renames files and whole directories, links, changes modes and times. Each change is
told as a change log tells it. Only for a tree that was made for this: what is in it is removed without asking. Another
user may be at work in the tree: everything is reached by descriptors (beneath.py), and what is not as it was made here
is left alone.
"""

from __future__ import annotations

import os
import random
import select
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EEXIST, EINVAL, EISDIR, ELOOP, EMLINK, ENOENT, ENOTDIR, ENOTEMPTY, ENXIO, ETXTBSY
from functools import partial
from pathlib import Path

from loadframe.errors import MachineError
from loadframe_index.beneath import Beneath, Passed, below, joined, looked_up
from loadframe_index.entries import Change
from loadframe_index.syscalls import readable

MARK = ".loadframe-churn"
"""A tree has this file, empty, where it may be changed."""
SHARES = {
    "create": 30,
    "close_write": 20,
    "setattr": 15,
    "unlink": 18,
    "rename": 8,
    "link": 3,
    "make_directory": 4,
    "rename_directory": 2,
    "remove_directory": 0.3,
}
"""Parts of all changes."""
MOST_BYTES = 20_000
OTHERS_WERE_THERE = frozenset({EEXIST, EINVAL, EISDIR, ELOOP, EMLINK, ENOENT, ENOTDIR, ENOTEMPTY, ENXIO, ETXTBSY})
"""What becomes of a change where others have removed, made or replaced something."""
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def permit(root: Path) -> None:
    """Say that this tree may be changed. MachineError, OSError."""
    with Beneath(root) as tree:
        os.close(os.open(MARK, os.O_WRONLY | os.O_CREAT | _FILE, 0o644, dir_fd=tree.root))


class Churn:
    """Changes the tree, one thing at a time."""

    def __init__(self, root: Path, *, seed: int = 0, first: int = 1, links: bool = True) -> None:
        """first: the number of the first record. links: whether files get several names. MachineError where the tree
        does not say that it may be changed."""
        self._tree = Beneath(root)
        mark = looked_up(self._tree, os.fsencode(MARK), Passed())
        if mark is None or mark.type != "f":
            raise MachineError(
                f"The tree {root} does not say that it may be changed: it has no file {MARK}",
                remedy="Churn only a tree that was generated for it.",
            )
        self._number, self._links = first, links
        self._shares = {kind: share for kind, share in SHARES.items() if links or kind != "link"}
        self._rng = random.Random(seed)
        self.made = 0
        """Changes so far, also those that could not be made."""
        self._names = 0
        self._files: list[bytes] = []
        self._directories: list[bytes] = [b""]
        self._learn()

    def _learn(self) -> None:
        """What is there. Symbolic links and the like are left alone."""
        passed = Passed()
        top = looked_up(self._tree, b"", passed)
        kept = {"d": self._directories, "f": self._files}
        for entry in below(self._tree, top, passed) if top else ():
            if entry.type in kept and entry.path != os.fsencode(MARK):
                kept[entry.type].append(entry.path)

    def change(self) -> list[Change]:
        """Change one thing. The records of it; none where it could not be done (others have removed the file)."""
        kind = self._rng.choices(tuple(self._shares), tuple(self._shares.values()))[0]
        operation: Callable[[], Iterator[Change]] = getattr(self, f"_{kind}")
        told: list[Change] = []
        self.made += 1
        self._tree.forget()
        try:
            told.extend(operation())
        except OSError as error:
            if error.errno not in OTHERS_WERE_THERE:
                raise
        return told

    def _tell(self, kind: str, path: bytes, to: bytes = b"") -> Change:
        self._number += 1
        return Change(kind, path, to, self._number - 1, time.time())

    def _place(self, path: bytes) -> tuple[bytes, int]:
        """The last name of a path, and the directory that it is in, open until the next question."""
        directory, _, name = path.rpartition(b"/")
        return name, self._tree.directory(directory)

    @contextmanager
    def _file(self, path: bytes, flags: int) -> Iterator[int]:
        """One that may be changed: a second name that none of our changes gave it may lead out of the tree."""
        name, directory = self._place(path)
        file = os.open(name, flags | _FILE, dir_fd=directory)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or (status.st_nlink > 1 and not self._links):
                raise FileNotFoundError(ENOENT, "it was replaced")
            yield file
        finally:
            os.close(file)

    def _new(self) -> bytes:
        """A name that is free, in one of the directories."""
        while True:
            self._names += 1
            path = joined(self._rng.choice(self._directories), b"%x-%x" % (self._names, self._rng.getrandbits(32)))
            if looked_up(self._tree, path, Passed()) is None:
                return path

    def _some_file(self) -> bytes:
        if not self._files:
            raise FileNotFoundError(ENOENT, "there is no file")
        return self._rng.choice(self._files)

    def _forget(self, path: bytes) -> None:
        """Of the files; the order is not kept."""
        at = self._files.index(path)
        self._files[at] = self._files[-1]
        self._files.pop()

    def _create(self) -> Iterator[Change]:
        path = self._new()
        name, directory = self._place(path)
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=directory)
        try:
            os.write(file, bytes(self._rng.randrange(MOST_BYTES)))
        finally:
            os.close(file)
        self._files.append(path)
        yield self._tell("create", path)
        yield self._tell("close_write", path)

    def _close_write(self) -> Iterator[Change]:
        path = self._some_file()
        with self._file(path, os.O_WRONLY) as file:
            os.ftruncate(file, self._rng.randrange(MOST_BYTES))
        yield self._tell("close_write", path)

    def _setattr(self) -> Iterator[Change]:
        path = self._some_file()
        with self._file(path, os.O_RDONLY) as file:
            if self._rng.random() < 0.5:
                os.fchmod(file, self._rng.choice((0o600, 0o640, 0o644, 0o755)))
            else:
                at_s = self._rng.randrange(1_000_000_000, 1_700_000_000)
                os.utime(file, (at_s, at_s))
        yield self._tell("setattr", path)

    def _unlink(self) -> Iterator[Change]:
        path = self._some_file()
        name, directory = self._place(path)
        os.unlink(name, dir_fd=directory)
        self._forget(path)
        yield self._tell("unlink", path)

    def _rename(self) -> Iterator[Change]:
        path = self._some_file()
        to = self._new() if self._rng.random() < 0.8 else self._some_file()  # over another one
        if to == path or (to in self._files and os.path.samestat(self._tree.entry(path), self._tree.entry(to))):
            return  # rename(2) does nothing for two names of one file
        self._move(os.rename, path, to)
        self._forget(path)
        if to not in self._files:
            self._files.append(to)
        yield self._tell("rename", path, to)

    def _move(self, call: Callable[..., None], path: bytes, to: bytes) -> None:
        """rename(2) or link(2), which follow no link in the last name."""
        name, directory = self._place(path)
        source = os.dup(directory)
        try:
            new_name, directory = self._place(to)
            call(name, new_name, src_dir_fd=source, dst_dir_fd=directory)
        finally:
            os.close(source)
        self._tree.forget()

    def _link(self) -> Iterator[Change]:
        path, to = self._some_file(), self._new()
        self._move(partial(os.link, follow_symlinks=False), path, to)
        self._files.append(to)
        yield self._tell("create", to)

    def _make_directory(self) -> Iterator[Change]:
        path = self._new()
        name, directory = self._place(path)
        os.mkdir(name, dir_fd=directory)
        self._directories.append(path)
        yield self._tell("create", path)

    def _rename_directory(self) -> Iterator[Change]:
        path, to = self._rng.choice(self._directories), self._new()
        if not path or to.startswith(path + b"/"):
            return
        self._move(os.rename, path, to)
        below_it = path + b"/"
        for kept in (self._files, self._directories):
            kept[:] = [to + each[len(path) :] if each == path or each.startswith(below_it) else each for each in kept]
        yield self._tell("rename", path, to)

    def _remove_directory(self) -> Iterator[Change]:
        """With all that is in it, deepest first, as rm -r does."""
        path = self._rng.choice(self._directories)
        if not path:
            return
        yield from self._empty(path)
        below_it = path + b"/"
        self._files[:] = [each for each in self._files if not each.startswith(below_it)]
        self._directories[:] = [each for each in self._directories if each != path and not each.startswith(below_it)]

    def _empty(self, path: bytes) -> Iterator[Change]:
        """Remove a directory, and before it what is in it."""
        listing = self._tree.listing(path)
        try:
            inside = [joined(path, os.fsencode(name)) for name in os.listdir(listing)]  # noqa: PTH208 - by its descriptor
        finally:
            os.close(listing)
        for each in inside:
            if stat.S_ISDIR(self._tree.entry(each).st_mode):
                yield from self._empty(each)
            else:
                name, directory = self._place(each)
                os.unlink(name, dir_fd=directory)
                yield self._tell("unlink", each)
        name, directory = self._place(path)
        os.rmdir(name, dir_fd=directory)
        yield self._tell("unlink", path)

    def run(
        self, rate_per_s: float, until: Callable[[], bool], tell: Callable[[Change], object] = lambda _: None
    ) -> int:
        """Change at this rate until told to stop. How many changes were made: fewer than the rate asks for where the
        machine is slower."""
        start, before = time.monotonic(), self.made
        while not until():
            ahead_s = start + (self.made - before) / rate_per_s - time.monotonic()
            if ahead_s > 0:
                select.select([], [], [], min(ahead_s, 0.1))
                continue
            for change in self.change():
                tell(change)
        return self.made - before


@contextmanager
def changing(tree: Path, rate: float, seed: int = 0) -> Iterator[None]:
    """Changes are made by a process of their own meanwhile. It ends when its standard input does, also where we are
    killed."""
    command = [sys.executable, "-P", __file__, str(tree), str(rate), str(seed)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        child.communicate()
    if child.returncode:
        raise MachineError(
            f"The changes of {tree} ended with exit code {child.returncode}.",
            remedy="The line before this one says why.",
        )


def main(arguments: list[str]) -> int:
    """Exit 1 with one line on standard error where the tree may not be changed."""
    tree, rate, seed = arguments
    try:
        Churn(Path(tree), seed=int(seed), links=False).run(float(rate), lambda: readable(0))
    except (MachineError, OSError, ValueError) as error:
        print(f"FATAL {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
