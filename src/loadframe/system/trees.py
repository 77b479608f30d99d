"""Below the door to the file system: a folder reached name by name, and a tree removed."""

import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from loadframe.errors import UserError
from loadframe.system.trust import MOST_LINKS, user

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
WAY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
ANY = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 64
"""Depth of nested folders that are held at once."""


@contextmanager
def closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Link:
    owner: int
    to: str


def link_of(descriptor: int) -> Link | None:
    status = os.fstat(descriptor)
    return Link(status.st_uid, os.readlink("", dir_fd=descriptor)) if stat.S_ISLNK(status.st_mode) else None


def walked(path: Path, what: str, refusal: type[UserError]) -> int:
    """Name by name; only links that we or root made are followed."""
    at, left, links = os.open("/", WAY), deque(path.absolute().parts[1:]), 0
    try:
        while left:
            name = left.popleft()
            below = os.open(name, ANY, dir_fd=at)
            if (link := link_of(below)) is not None:
                os.close(below)
                links += 1
                if links > MOST_LINKS or link.owner not in (0, os.geteuid()):
                    raise refusal(
                        f"the {what} {path} is not used: {name} on the way to it is a link of {user(link.owner)}",
                        remedy="Give the path without links.",
                    )
                to = Path(link.to)
                left.extendleft(reversed(to.parts[1:] if to.is_absolute() else to.parts))
                if not to.is_absolute():
                    continue
                below = os.open("/", WAY)
            os.close(at)
            at = below
        return os.open(".", FOLDER, dir_fd=at)
    finally:
        os.close(at)


def remove_tree(path: Path) -> None:
    """Remove a folder in one of ours, with all that is in it, whoever made that; what cannot be removed is left.
    shutil.rmtree would follow what another user puts in the place of a folder meanwhile, and wait at a FIFO."""
    with suppress(OSError), closing(os.open(path.parent, FOLDER)) as above:
        remove_below(above, path.name)


def remove_below(above: int, name: str) -> None:
    """What is too deep is first moved up into the folder itself: also after a kill everything left is in it."""
    left: list[str] = []

    def remove(parent: int, folder: str, depth: int) -> None:
        with suppress(OSError):
            if depth > DEEPEST:  # each level takes a descriptor and a frame
                left.append(f".{os.urandom(8).hex()}.part")
                os.rename(folder, left[-1], src_dir_fd=parent, dst_dir_fd=top)
                return
            with closing(os.open(folder, FOLDER | os.O_NOFOLLOW, dir_fd=parent)) as descriptor:
                empty(descriptor, depth + 1)
            os.rmdir(folder, dir_fd=parent)

    def empty(descriptor: int, depth: int) -> None:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    remove(descriptor, entry.name, depth)
                else:
                    with suppress(OSError):
                        os.unlink(entry.name, dir_fd=descriptor)

    with suppress(OSError):
        with closing(os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=above)) as top:
            empty(top, 0)
            while left:
                remove(top, left.pop(), 0)
        os.rmdir(name, dir_fd=above)
