"""Files of a step's folder, which is the driver's user's: follow no link there, take only regular files (we may be
root)."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from loadframe.errors import UserError, WorkloadError
from loadframe.host.privilege import US, Privilege, ids_of

LARGEST = 2 << 30


def create(path: Path, owner: Privilege) -> IO[bytes]:
    """A new file, replacing what was there; only its owner may read and write it. Unbuffered."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if owner != US:
        ids = ids_of(owner)
        os.fchown(descriptor, ids.uid, ids.gid)
    return os.fdopen(descriptor, "r+b", buffering=0)


def write(path: Path, content: bytes, owner: Privilege) -> None:
    with create(path, owner) as file:
        write_whole(file, content)


def write_whole(file: IO[bytes], content: bytes) -> None:
    """Of an unbuffered file."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


@contextmanager
def in_memory(content: bytes) -> Iterator[int]:
    """The descriptor of a file in memory, for a process that inherits it: no other user can read it."""
    with os.fdopen(os.memfd_create("loadframe"), "wb", buffering=0) as file:
        write_whole(file, content)
        yield file.fileno()


def read(path: Path) -> bytes:
    """Empty if there is no such file. WorkloadError as `opened`."""
    file = opened(path)
    if file is None:
        return b""
    with file:
        return file.read(LARGEST)


def text(path: Path) -> str:
    return read(path).decode(errors="replace")


def size(path: Path) -> int:
    """0 if there is no such file."""
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0


def opened(path: Path) -> IO[bytes] | None:
    """A driver's file, for reading; None for none. WorkloadError for other than regular files, too large ones, and
    those with a second name, which may be another's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _strange(path) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_size > LARGEST:
        os.close(descriptor)
        raise _strange(path)
    return os.fdopen(descriptor, "rb")


def check_room(folder: Path, wanted: int, what: str, remedy: str, error: type[UserError]) -> None:
    """Raise `error` if the wanted bytes would fill the disk. what: the subject of its message."""
    free = shutil.disk_usage(folder).free
    if wanted > free:
        raise error(f"{what} {wanted / 2**30:.1f} GiB, and {folder} has {free / 2**30:.1f} GiB left.", remedy=remedy)


def _strange(path: Path) -> WorkloadError:
    return WorkloadError(
        f"The load driver has put something into its folder that is no file of its own: {path.name}.",
        remedy="It is not read. The server may have taken the driver over; look at what it answers.",
    )
