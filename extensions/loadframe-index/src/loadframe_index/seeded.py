"""Trees to scan, made from a seed. Sizes are log-normal, as those of real file systems (Agrawal et al., A Five-Year
Study of File-System Metadata, 2007). Files are sparse: a million fit on a small disk."""

import fcntl
import json
import os
import random
import secrets
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from typing import Any

from loadframe.errors import MachineError
from loadframe.system.files import Folder, Whose
from loadframe_index.beneath import Beneath, joined
from loadframe_index.entries import split

FORM = 1
"""Another tree is made where this changes."""
LARGEST_BYTES = 1 << 40
FIRST_OWNER = 20_000
MOST_NOTE_BYTES = 4_096
DAY_NS = 86_400 * 10**9
WORDS = ("data", "log", "img", "tmp", "txt", "h5", "tar", "old")
MOST_DEPTH = 400
GET_FLAGS, SET_FLAGS, TOP_OF_TREES = 0x80086601, 0x40086602, 0x20000
"""Numbers of linux/fs.h: FS_IOC_GETFLAGS, FS_IOC_SETFLAGS on 64-bit machines, FS_TOPDIR_FL."""


@dataclass(frozen=True)
class Shape:
    """entries: in all, the root and the directories included. depth: of directories below the root.
    files_per_directory: the last one has fewer. median_bytes, sigma: of the log-normal sizes; sigma is of the natural
    logarithm. owners: user ids, from FIRST_OWNER on; 0, or without root: all are ours. age_days: times are spread
    evenly over these days before now."""

    entries: int
    files_per_directory: int = 30
    depth: int = 5
    median_bytes: int = 16_384
    sigma: float = 2.0
    owners: int = 10
    age_days: int = 730
    seed: int = 0


def make(tree: Path, shape: Shape) -> bool:
    """Make a tree of this shape, or use the one that was made here; whether it was made. MachineError."""
    place, wanted = Folder(tree.parent, Whose.ANOTHERS, MachineError), {"form": FORM, **asdict(shape)}
    try:
        made = _made(place, tree)
        if made == wanted:
            return False
        if made is not None:
            place.remove_tree(tree.name)
        there = place.exists(tree.name)
        place.make_folder(tree.name)
        with place.changing(tree.name) as directory:
            if there or os.listdir(directory) or os.fstat(directory).st_uid != os.geteuid():  # noqa: PTH208 - by its descriptor
                raise MachineError(f"{tree} is there, and Loadframe has not made it.", remedy="Name another place.")
            _note(place, tree, directory, {})  # what is made is ours from its beginning
            with Beneath(Path(), directory=directory) as root:
                _fill(root, shape)
            _note(place, tree, directory, wanted)
    except OSError as error:
        raise MachineError(
            f"A tree of {shape.entries:,} entries cannot be made at {tree}: {error.strerror}.",
            remedy="Each entry takes an inode (df -i). Name fewer, or another place (LOADFRAME_SCRATCH).",
        ) from error
    return True


def marked(tree: Path) -> Path:
    """The file that records which directory was made here, and its shape."""
    return tree.with_name(f"{tree.name}.shape.json")


def _made(place: Folder, tree: Path) -> dict[str, Any] | None:
    try:
        note = json.loads(place.read(marked(tree).name, MOST_NOTE_BYTES))
        with place.changing(tree.name) as directory:
            here = isinstance(note, dict) and note.get("directory") == _identity(directory)
    except (OSError, ValueError):
        return None
    return note.get("shape") if here else None


def _note(place: Folder, tree: Path, directory: int, shape: dict[str, Any]) -> None:
    note = {"directory": _identity(directory), "shape": shape}
    place.replace(marked(tree).name, json.dumps(note).encode())


def _identity(directory: int) -> list[int]:
    status = os.fstat(directory)
    return [status.st_dev, status.st_ino]


def spread(folder: Path) -> None:
    """Have ext4 place the folders in this one apart (chattr +T): it checks each inode that was just freed, so a tree
    next to one just removed took ten times as long. No effect elsewhere."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            flags = bytearray(8)
            fcntl.ioctl(opened, GET_FLAGS, flags)
            fcntl.ioctl(opened, SET_FLAGS, struct.pack("l", struct.unpack("l", flags)[0] | TOP_OF_TREES))
    finally:
        os.close(opened)


def apart(folder: Path) -> Path:
    """Where in a folder a tree may be made. Its name is random: ext4 places a folder by the hash of its name, and would
    give it the inodes of one of that name that was just removed."""
    return folder / f"tree-{secrets.token_hex(4)}"


def directories_of(shape: Shape) -> Iterator[bytes]:
    """The directories, each after its parent: chains of `depth`."""
    at = [b""]
    for made in range(-(-max(shape.entries - 1, 0) // (shape.files_per_directory + 1))):
        level = made % max(1, min(shape.depth, MOST_DEPTH))
        at = [*at[: level + 1], joined(at[level], b"d%07d" % made)]
        yield at[-1]


def _fill(tree: Beneath, shape: Shape) -> None:
    numbers, now_ns = random.Random(shape.seed), time.time_ns()
    paths = list(directories_of(shape))
    files = max(0, shape.entries - 1 - len(paths))
    first = 0
    for path in paths:
        parent, name = split(path)
        os.mkdir(name, 0o755, dir_fd=tree.directory(parent))
        last = min(files, first + shape.files_per_directory)
        _files(tree.directory(path), range(first, last), shape, numbers, now_ns)
        first = last


def _files(directory: int, which: range, shape: Shape, numbers: random.Random, now_ns: int) -> None:
    mean, owners = log(max(1, shape.median_bytes)), shape.owners if os.geteuid() == 0 else 0
    for number in which:
        name = b"f%08d.%s" % (number, numbers.choice(WORDS).encode())
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=directory)
        try:
            size = min(LARGEST_BYTES, int(numbers.lognormvariate(mean, shape.sigma)))
            with suppress(OSError):  # larger than a file may be here (RLIMIT_FSIZE, the file system): it stays empty
                os.ftruncate(file, size)
            if owners:
                owner = FIRST_OWNER + numbers.randrange(owners)
                os.fchown(file, owner, owner)
            then_ns = now_ns - int(numbers.random() * shape.age_days * DAY_NS)
            os.utime(file, ns=(then_ns, then_ns))
        finally:
            os.close(file)
