"""Real changes to a tree of our own, at a given rate from a seed: the load of the axis `change_rate`, and of the tests.

Run as `python -P -m loadframe.indexing.churn TREE RATE SEED`; it ends when its standard input does. It makes no
hard links: of those a fast change log does not tell all.

Creates and writes files, removes, renames files and whole directories, links, changes modes and times. Each change is
told as a change log tells it. Only for a tree that was made for this: what is in it is removed without asking.
"""

from __future__ import annotations

import os
import random
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from loadframe.errors import MachineError
from loadframe.indexing.beneath import joined
from loadframe.indexing.changes import Change
from loadframe.indexing.kernel import readable

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


def permit(root: Path) -> None:
    """Say that this tree may be changed. OSError."""
    (root / MARK).touch()


class Churn:
    """Changes the tree, one thing at a time."""

    def __init__(self, root: Path, *, seed: int = 0, first: int = 1, links: bool = True) -> None:
        """first: the number of the first record. links: whether files get several names. MachineError where the tree
        does not say that it may be changed."""
        if not (root / MARK).is_file():
            raise MachineError(
                f"The tree {root} does not say that it may be changed: it has no file {MARK}",
                remedy="Churn only a tree that was generated for it.",
            )
        self._root, self._number = root, first
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
        for directory, below, files in os.walk(self._root):
            above = Path(directory)
            self._directories += [self._told(above / name) for name in below if not (above / name).is_symlink()]
            within = [above / name for name in files if name != MARK]
            self._files += [self._told(full) for full in within if full.is_file() and not full.is_symlink()]

    def _told(self, full: Path) -> bytes:
        """The path as a record tells it."""
        return os.fsencode(full.relative_to(self._root))

    def change(self) -> list[Change]:
        """Change one thing. The records of it; none where it could not be done (others have removed the file)."""
        kind = self._rng.choices(tuple(self._shares), tuple(self._shares.values()))[0]
        operation: Callable[[], Iterator[Change]] = getattr(self, f"_{kind}")
        told: list[Change] = []
        self.made += 1
        with suppress(FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError):
            told.extend(operation())
        return told

    def _tell(self, kind: str, path: bytes, to: bytes = b"") -> Change:
        self._number += 1
        return Change(kind, path, to, self._number - 1, time.time())

    def _full(self, path: bytes) -> Path:
        return self._root / os.fsdecode(path)

    def _new(self) -> bytes:
        """A name that is free, in one of the directories."""
        while True:
            self._names += 1
            path = joined(self._rng.choice(self._directories), b"%x-%x" % (self._names, self._rng.getrandbits(32)))
            if not os.path.lexists(self._full(path)):
                return path

    def _some_file(self) -> bytes:
        if not self._files:
            raise FileNotFoundError
        return self._rng.choice(self._files)

    def _forget(self, path: bytes) -> None:
        """Of the files; the order is not kept."""
        at = self._files.index(path)
        self._files[at] = self._files[-1]
        self._files.pop()

    def _create(self) -> Iterator[Change]:
        path = self._new()
        with self._full(path).open("xb") as file:
            file.write(bytes(self._rng.randrange(MOST_BYTES)))
        self._files.append(path)
        yield self._tell("create", path)
        yield self._tell("close_write", path)

    def _close_write(self) -> Iterator[Change]:
        path = self._some_file()
        with self._full(path).open("r+b") as file:
            file.truncate(self._rng.randrange(MOST_BYTES))
        yield self._tell("close_write", path)

    def _setattr(self) -> Iterator[Change]:
        path = self._some_file()
        if self._rng.random() < 0.5:
            self._full(path).chmod(self._rng.choice((0o600, 0o640, 0o644, 0o755)))
        else:
            at_s = self._rng.randrange(1_000_000_000, 1_700_000_000)
            os.utime(self._full(path), (at_s, at_s))
        yield self._tell("setattr", path)

    def _unlink(self) -> Iterator[Change]:
        path = self._some_file()
        self._full(path).unlink()
        self._forget(path)
        yield self._tell("unlink", path)

    def _rename(self) -> Iterator[Change]:
        path = self._some_file()
        to = self._new() if self._rng.random() < 0.8 else self._some_file()  # over another one
        if to == path or (to in self._files and self._full(path).samefile(self._full(to))):
            return  # rename(2) does nothing for two names of one file
        self._full(path).rename(self._full(to))
        self._forget(path)
        if to not in self._files:
            self._files.append(to)
        yield self._tell("rename", path, to)

    def _link(self) -> Iterator[Change]:
        path, to = self._some_file(), self._new()
        self._full(to).hardlink_to(self._full(path))
        self._files.append(to)
        yield self._tell("create", to)

    def _make_directory(self) -> Iterator[Change]:
        path = self._new()
        self._full(path).mkdir()
        self._directories.append(path)
        yield self._tell("create", path)

    def _rename_directory(self) -> Iterator[Change]:
        path, to = self._rng.choice(self._directories), self._new()
        if not path or to.startswith(path + b"/"):
            return
        self._full(path).rename(self._full(to))
        below = path + b"/"
        for kept in (self._files, self._directories):
            kept[:] = [to + each[len(path) :] if each == path or each.startswith(below) else each for each in kept]
        yield self._tell("rename", path, to)

    def _remove_directory(self) -> Iterator[Change]:
        """With all that is in it, deepest first, as rm -r does."""
        path = self._rng.choice(self._directories)
        if not path:
            return
        for directory, below, files in os.walk(self._full(path), topdown=False):
            for full in (Path(directory) / name for name in (*files, *below)):
                full.rmdir() if full.is_dir() and not full.is_symlink() else full.unlink()
                yield self._tell("unlink", self._told(full))
        self._full(path).rmdir()
        yield self._tell("unlink", path)
        below_it = path + b"/"
        self._files[:] = [each for each in self._files if not each.startswith(below_it)]
        self._directories[:] = [each for each in self._directories if each != path and not each.startswith(below_it)]

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
