"""Entries of a subtree, one directory after the other: what a renamed directory has, and what a lost record was of.

One file system, as find -xdev: a directory on another one is an entry and is not entered. A directory that is its own
ancestor (a loop by a bind mount) is not entered, either. A file that vanishes between listing and looking is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from loadframe.indexing.beneath import Beneath, joined, lasts, shown
from loadframe.indexing.entries import Entry, entry_of, split

MOST_TOLD = 100
"""Paths of each sort; all are counted."""


@dataclass
class Passed:
    """What was not looked into, counted; the first of each are told. failed: for another reason than its rights."""

    vanished: int = 0
    failed: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    told: dict[str, list[str]] = field(default_factory=dict)

    def tell(self, why: str, path: bytes) -> None:
        """This path, and why."""
        self.counts[why] = self.counts.get(why, 0) + 1
        first = self.told.setdefault(why, [])
        if len(first) < MOST_TOLD:
            first.append(shown(path))

    def refuse(self, error: OSError, path: bytes) -> None:
        """This path, which cannot be looked into. MachineError where the reason is ours."""
        self.failed += not lasts(error)
        self.tell(error.strerror or "unreadable", path)


LOOP, ELSEWHERE = "a directory that is its own ancestor", "another file system"


@dataclass(frozen=True, slots=True)
class _Above:
    """The directories from here to the root."""

    device: int
    inode: int
    above: _Above | None

    def has(self, entry: Entry) -> bool:
        at: _Above | None = self
        while at:
            if (at.device, at.inode) == (entry.device, entry.inode):
                return True
            at = at.above
        return False


def looked_up(tree: Beneath, path: bytes, passed: Passed) -> Entry | None:
    """The entry at this path; None where nothing is. OSError where it may not be looked up."""
    try:
        return entry_of(*split(path), tree.entry(path))
    except (FileNotFoundError, NotADirectoryError):
        passed.vanished += 1
        return None


def below(tree: Beneath, top: Entry, passed: Passed) -> Iterator[Entry]:
    """Every entry below this directory, which itself is left out."""
    left = [(top, _above(tree, top.path))]
    while left:
        directory, above = left.pop()
        here = _Above(directory.device, directory.inode, above)
        for entry in _entries(tree, directory, passed):
            yield entry
            if entry.type != "d":
                continue
            if here.has(entry):
                passed.tell(LOOP, entry.path)
            else:
                left.append((entry, here))


def _above(tree: Beneath, path: bytes) -> _Above | None:
    """Of the directory with this path: those above it."""
    above: _Above | None = None
    steps = path.split(b"/") if path else []
    for depth in range(len(steps)):
        try:
            status = os.fstat(tree.directory(b"/".join(steps[:depth])))
        except OSError:
            return above  # it was renamed meanwhile: its record is on the way
        above = _Above(status.st_dev, status.st_ino, above)
    return above


def _entries(tree: Beneath, directory: Entry, passed: Passed) -> Iterator[Entry]:
    path = directory.path
    if directory.device != tree.status.st_dev:
        passed.tell(ELSEWHERE, path)
        return
    try:
        listing = tree.listing(path)
    except (FileNotFoundError, NotADirectoryError):
        passed.vanished += 1
        return
    except OSError as error:
        passed.refuse(error, path)
        return
    try:
        with os.scandir(listing) as found:
            for each in found:
                name = os.fsencode(each.name)
                try:
                    yield entry_of(path, name, each.stat(follow_symlinks=False))
                except FileNotFoundError:
                    passed.vanished += 1
                except OSError as error:
                    passed.refuse(error, joined(path, name))
    except OSError as error:
        passed.refuse(error, path)
    finally:
        os.close(listing)
